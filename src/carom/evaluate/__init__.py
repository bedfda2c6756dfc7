"""Methods set side by side on strikes they have not seen."""

from carom.evaluate.compare import Score, compare
from carom.evaluate.methods import ABLATIONS, METHODS, Lesson

__all__ = ["ABLATIONS", "METHODS", "Lesson", "Score", "compare"]
