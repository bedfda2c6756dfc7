"""What `check` has to say: findings, gathered over files, and the report that carries them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from carom.core.artefacts import plain
from carom.recordings.pushes import PushSummary

Level = Literal["error", "warning", "note"]
_ORDER: dict[str, int] = {"error": 0, "warning": 1, "note": 2}
EXAMPLES = 3  #: files named in a finding that concerns many


@dataclass(frozen=True)
class Observation:
    """One thing seen in one file. Observations of the same `code`, `column` and `text` become one finding."""

    level: Level
    code: str
    text: str  #: the same for every file; may hold {value}, replaced by the value or the range of values
    file: str | None = None
    row: int | None = None
    column: str | None = None
    value: float | None = None
    style: str = "{:.3g}"  #: how the value is written, with its unit
    advice: str = ""  #: may hold {most}, replaced by the largest `most` of all files
    most: float | None = None
    name_all: bool = False  #: whether every file is named, however many they are


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    level: Level
    code: str  #: short name of the kind of finding, for instance "lost-samples"
    message: str  #: one line: what was seen, where, and what to do
    file: str | None = None  #: the first file concerned; None: the folder as a whole
    row: int | None = None  #: 1-based line of that file (sample, for npz and Parquet)
    column: str | None = None
    count: int = 1  #: files concerned


@dataclass(frozen=True)
class BodySummary:
    """What a folder says about one body, over all its files."""

    role: str
    shape: str | None
    mass: float | None  #: [kg]; None: not stated, or not the same in all files
    mass_range: tuple[float, float] | None  #: [kg] lightest and heaviest over the files; None: not stated in all
    position_noise: float  #: [m] standard deviation of one coordinate about a smooth path
    yaw_noise: float  #: [rad]; NaN: orientation is not measured
    orientation_share: float  #: share of the files that measure its orientation
    lost_share: float  #: share of its samples that are lost while it is tracked
    tracked: str | None = None  #: where the tracked frame is in the body's own; None: it is the body's own


@dataclass(frozen=True)
class Convention:
    """What the recordings say about the quaternions of one body: w first or last, world from body or its inverse."""

    found: str  #: the most probable way in which they are meant; "as declared" unless something is wrong
    probability: Mapping[str, float]  #: of each of the ways
    evidence: Mapping[str, Mapping[str, float]]  #: by witness: log likelihood of each way, less that as declared
    untold: tuple[str, ...]  #: ways that these recordings cannot tell from the one found


@dataclass(frozen=True)
class CheckReport:
    """The state of a recordings folder: a summary, and everything found, worst first."""

    path: Path
    listed: int  #: data files of the folder
    readable: int  #: of them, those that could be read
    bodies: Mapping[str, BodySummary] = field(default_factory=dict)
    rate: float = float("nan")  #: [Hz] median over files
    rate_range: tuple[float, float] = (float("nan"), float("nan"))  #: [Hz]
    interval_jitter: float = float("nan")  #: scatter of the time stamps' intervals, in sample periods
    timing_jitter: float = float("nan")  #: median error of the true sample times seen in the motion, in periods
    beat_period: float = float("nan")  #: [s] of the jumps that two clocks make, where there are some
    impacts: Mapping[str, int] = field(default_factory=dict)  #: number of impacts, by "kind quality"
    settle: float = float("nan")  #: [s] median time after first motion at which states are taken
    gravity: float = float("nan")  #: [m/s^2] of free flight
    gravity_std: float = float("nan")  #: [m/s^2] standard error
    ground_height: float = float("nan")  #: [m] of the lowest points at rest
    ground_tilt: float = float("nan")  #: [rad] of the faces that bodies rest on, median
    conventions: Mapping[str, Convention] = field(default_factory=dict)  #: of the quaternions, by body
    pushes: PushSummary | None = None  #: of a folder of pushes
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing stops the folder from being read."""
        return not any(finding.level == "error" for finding in self.findings)

    def summary(self) -> list[tuple[str, str]]:
        """What is there, in words and with units, for a table; what could not be told is left out."""
        rows = [("recordings", f"{self.readable} of {self.listed} readable")]
        numbers = (
            ("rate", self.rate, "{:.4g} Hz"),
            ("jitter of the intervals", self.interval_jitter, "{:.2g} periods"),
            ("jitter of the sample times", self.timing_jitter, "{:.2g} periods"),
            ("beat of two clocks", self.beat_period, "every {:.3g} s"),
            ("outcomes are read after", self.settle, "{:.3g} s"),
            ("free fall", self.gravity, "{:.4g} m/s^2"),
            ("ground height", self.ground_height, "{:.2g} m"),
            ("ground tilt", self.ground_tilt, "{:.2g} rad"),
        )
        rows += [(name, form.format(v)) for name, v, form in numbers if v is not None and np.isfinite(v)]
        if self.pushes is not None:
            rows += self.pushes.rows()
        else:
            rows.append(("impacts found", ", ".join(f"{n} {kind}" for kind, n in self.impacts.items()) or "none"))
        for name, b in self.bodies.items():
            low, high = b.mass_range or (b.mass, b.mass)
            mass = "no mass" if low is None else f"{low:.4g} kg" if low == high else f"{low:.4g} to {high:.4g} kg"
            noise = f"noise {1000 * b.position_noise:.2g} mm" if np.isfinite(b.position_noise) else "noise unknown"
            lost = f"{100 * b.lost_share:.2g} % lost"
            rows.append((f"body {name}", f"{b.role}, {b.shape or 'no shape'}, {mass}, {noise}, {lost}"))
            if b.tracked is not None:
                words = f"{b.tracked}; poses are moved to the body's own frame, quaternions are taken at their word"
                rows.append((f"tracked frame of {name}", words))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold; an unknown number is None."""
        values: dict[str, Any] = plain({**asdict(self), "ok": self.ok})
        return values


def without_number(reason: str) -> tuple[str, float | None]:
    """A reason with {value} for its first length or time, and that: so that the same reason is said once for all."""
    found = re.search(r"\b(\d+)(?= (?:mm|ms)\b)", reason)
    if found is None:
        return reason, None
    return reason[: found.start()] + "{value}" + reason[found.end() :], float(found.group())


def gather(observations: Iterable[Observation], files: int) -> tuple[Finding, ...]:
    """Findings, worst first, one for all observations that say the same."""
    groups: dict[tuple[str, str, str, str | None], list[Observation]] = {}
    for seen in observations:
        groups.setdefault((seen.level, seen.code, seen.text, seen.column), []).append(seen)
    findings = [_finding(group, files) for group in groups.values()]
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.level]))


def _finding(group: list[Observation], files: int) -> Finding:
    first = group[0]
    names = list(dict.fromkeys(seen.file for seen in group if seen.file is not None))
    values = [seen.value for seen in group if seen.value is not None]
    text = first.text.replace("{value}", _range(values, first.style))
    if len(names) == 1:
        place = names[0]
        if first.row is not None:
            place += f", row {first.row}"
        if first.column is not None:
            place += f", column '{first.column}'"
        message = f"{place}: {text}"
    elif names:
        examples = len(names) if first.name_all else EXAMPLES
        shown = ", ".join(names[:examples]) + (", ..." if len(names) > examples else "")
        column = "" if first.column is None else f"column '{first.column}': "
        message = f"{column}{text}, in {len(names)} of {files} files ({shown})"
    else:
        message = text
    if first.advice:
        message += "; " + first.advice.replace("{most}", f"{max((o.most or 0.0 for o in group), default=0.0):.0f}")
    return Finding(
        level=first.level,
        code=first.code,
        message=message,
        file=first.file,
        row=first.row,
        column=first.column,
        count=max(len(names), 1),
    )


def _range(values: list[float], style: str) -> str:
    if not values:
        return ""
    low, middle, high = min(values), float(np.median(values)), max(values)
    if style.format(low) == style.format(high):
        return style.format(middle)
    return f"{style.format(middle)} (median, from {style.format(low)} to {style.format(high)})"
