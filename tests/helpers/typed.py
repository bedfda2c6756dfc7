"""Commands as a user types them, in this process: starting Python and torch anew takes some seconds each time."""

from __future__ import annotations

import io
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from said import without_progress

from carom import cli
from carom.cli import console


def typed(*words: object, cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit code, stdout, and stderr without its progress."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code = 0
    with (
        patch.object(sys, "argv", ["carom", *map(str, words)]),
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(cwd or Path.cwd()),
    ):
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            console.hush(False)
    said, told = (stream.buffer.getvalue().decode() for stream in (out, err))
    return code, said, without_progress(told)
