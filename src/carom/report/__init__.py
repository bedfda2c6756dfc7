"""What a person sees: metrics, figures, and the one-page HTML report."""

from carom.report.metrics import accuracy, coverage, relative_error, summary
from carom.report.page import Figure, Section, Table, Text, write_report

__all__ = [
    "Figure",
    "Section",
    "Table",
    "Text",
    "accuracy",
    "coverage",
    "relative_error",
    "summary",
    "write_report",
]
