"""Methods set side by side on strikes they have not seen, and how good they are."""

from carom.compare.methods import ABLATIONS, ABOUT, METHODS, SIMPLE, Lesson
from carom.compare.metrics import accuracy, coverage, relative_error, summary
from carom.compare.scores import Score, compare

__all__ = [
    "ABLATIONS",
    "ABOUT",
    "METHODS",
    "SIMPLE",
    "Lesson",
    "Score",
    "accuracy",
    "compare",
    "coverage",
    "relative_error",
    "summary",
]
