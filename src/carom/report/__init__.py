"""What a person sees: figures, and the one-page HTML report."""

from carom.report.page import Figure, Section, Table, Text, write_report

__all__ = ["Figure", "Section", "Table", "Text", "write_report"]
