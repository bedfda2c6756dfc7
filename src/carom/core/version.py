"""The version of Carom."""

__version__ = "0.1.0"
