"""How a recordings folder says what is wrong with it: the place, what was expected, what came, what to do."""

from __future__ import annotations

from pathlib import Path

from carom.core.errors import RecordingError, short

LONGEST = 800  #: characters of a message


class FaultError(RecordingError):
    """A `RecordingError` that knows its place, so that `check` can list many of them side by side."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        file: Path,
        row: int | None = None,
        column: str | None = None,
        row_word: str = "row",
    ) -> None:
        place = str(file)
        if row is not None:
            place += f", {row_word} {row}"
        if column is not None:
            place += f", column '{short(column)}'"
        message = " ".join(message.split())
        message = message if len(message) <= LONGEST else f"{message[:LONGEST]}..."
        super().__init__(" ".join(f"{place}: {message}".split()))
        self.code = code  #: short name of the kind of fault, for instance "not-a-number"
        self.file = file
        self.row = row  #: 1-based line of a text file, or 1-based sample of a binary one
        self.column = column
        self.detail = message  #: the message without the place
