"""Methods set side by side on strikes they have not seen, and how good they are."""

from carom.compare.methods import ABLATIONS, METHODS, SIMPLE, Lesson, Method, method_words
from carom.compare.metrics import accuracy, coverage, relative_error, summary
from carom.compare.scores import Score, compare

__all__ = [
    "ABLATIONS",
    "METHODS",
    "SIMPLE",
    "Lesson",
    "Method",
    "Score",
    "accuracy",
    "compare",
    "coverage",
    "method_words",
    "relative_error",
    "summary",
]
