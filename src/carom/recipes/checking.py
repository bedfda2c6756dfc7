"""`carom check`: what is in a folder of recordings, how good it is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from carom.recipes.result import PrintedTable, Result, command
from carom.recordings import CheckReport, read
from carom.recordings import check as check_recordings
from carom.recordings.kind import Kind, kind_of


@final
@dataclass(frozen=True)
class CheckResult(Result):
    """The state of a folder of recordings."""

    folder: Path
    report: CheckReport
    kind: Kind | None = None  #: None: that of free bodies, or nothing to go on with

    def to_dict(self) -> dict[str, Any]:
        return self.report.to_dict()

    def tables(self) -> Sequence[PrintedTable]:
        if not self.report.listed:
            return ()
        findings = [[f.level, f.message] for f in self.report.findings] or [["note", "nothing to report"]]
        return (
            PrintedTable(f"{self.folder}", ("what", "found"), self.report.summary()),
            PrintedTable("findings", ("level", "message"), findings),
        )

    def next_commands(self) -> Sequence[str]:
        name = self.folder.resolve().name
        if self.report.pushes is not None:
            return (command("identify", self.folder, "--out", f"calibrated/{name}"),)
        if not self.report.impacts:
            return ()
        if self.kind == "strikes":
            return (command("adapt", self.folder, "--out", f"models/{name}"),)
        return (command("identify", self.folder, "--out", f"calibrated/{name}"),)

    def problem(self) -> str | None:
        if not self.report.listed:
            return self.report.findings[0].message
        if self.report.ok:
            return None
        return f"{self.folder}: errors were found (see the findings); the files named there cannot be used as they are"


def check(recordings: str | Path) -> CheckResult:
    """Check a folder of recordings. Nothing is repaired, and faults are part of the result."""
    folder = Path(recordings)
    report = check_recordings(folder)
    struck = any(kind.startswith("strike") for kind in report.impacts)
    return CheckResult(folder, report, kind_of(read(folder)) if report.ok and struck else None)


def findings_of(recordings: str | Path) -> tuple[str, ...]:
    """Errors and warnings of `check`, a line each, for commands that learn from the same folder."""
    found = check_recordings(Path(recordings)).findings
    return tuple(f"check: {f.level}: {f.message}" for f in found if f.level != "note")
