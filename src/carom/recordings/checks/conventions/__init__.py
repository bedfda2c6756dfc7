"""Which convention quaternions follow, told by what physics allows: w first or last, world from body or its inverse."""

from carom.recordings.checks.conventions.verdict import Convention, check_conventions, conventions

__all__ = ["Convention", "check_conventions", "conventions"]
