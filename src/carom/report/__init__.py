"""What a person sees: figures, and the one-page HTML report."""

from carom.report.page import Figure, Next, Section, Step, Table, Text, write_report

__all__ = ["Figure", "Next", "Section", "Step", "Table", "Text", "write_report"]
