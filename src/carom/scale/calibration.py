"""Parameters of a calibrated engine for scaling: read from `parameters.yaml`, fixed or drawn within their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import made_from
from carom.core.errors import CaromError, short, unknown_name
from carom.identify.parameter_files import refuse_of_others
from carom.identify.result import FILE, Estimate, read
from carom.scenes.parameters import FREE, TABLE_II, Parameter, free_parameters, resolved
from carom.state import Array

VARIED = ("friction", "face_friction", "time_constant", "damping_ratio", "stiffness", "damping")  #: by `varied`
MOST_VARIED = 10.0  #: factor
BEYOND = 1000.0  #: times a parameter's bounds: a person may write more than what is searched, but not anything


@dataclass(frozen=True)
class Calibration:
    """Values of the parameters, with the intervals that they are drawn from where `spread` asks for it."""

    parameters: tuple[Parameter, ...]
    value: tuple[float, ...]
    interval: tuple[tuple[float, float], ...]  #: 90 %; equal ends where it stays at its value
    source: str  #: "defaults", or how they were identified
    spread: bool = False
    drawn: str = "within the 90 % intervals"  #: what `interval` is
    made_from: Mapping[str, Any] = field(default_factory=dict)  #: the file of parameters and its SHA-256
    recordings: tuple[str, ...] = ()  #: names of those that they were identified from; empty: not known

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the values."""
        return tuple(p.name for p in self.parameters)

    def without(self, *names: str) -> Calibration:
        """The same without some parameters."""
        kept = [i for i, name in enumerate(self.names) if name not in names]
        return replace(
            self,
            parameters=tuple(self.parameters[i] for i in kept),
            value=tuple(self.value[i] for i in kept),
            interval=tuple(self.interval[i] for i in kept),
        )

    def draw(self, rng: np.random.Generator) -> Array:
        """Values [P] of one trajectory."""
        unit = rng.random(len(self.parameters))
        if not self.spread:
            return np.array(self.value)
        found = []
        for p, (low, high), z in zip(self.parameters, self.interval, unit, strict=True):
            log = p.log and low > 0
            found.append(float(np.exp(np.log(low) + z * np.log(high / low))) if log else low + z * (high - low))
        return np.array(found)

    def to_dict(self) -> dict[str, Any]:
        """The parameters as the header states them."""
        return {
            "source": self.source,
            "drawn": f"{self.drawn}, per trajectory" if self.spread else "fixed at the values",
            "values": {
                p.name: {"value": v, "unit": p.unit, "interval": list(self.range_of(p.name, v))}
                for p, v in zip(self.parameters, self.value, strict=True)
            },
        }

    def range_of(self, name: str, default: float) -> tuple[float, float]:
        """Between which values a parameter is in the trajectories; twice the default if it is not among these."""
        if name not in self.names:
            return default, default
        at = self.names.index(name)
        return self.interval[at] if self.spread else (self.value[at], self.value[at])


@dataclass(frozen=True)
class Calibrations:
    """Parameters of all that a source draws: one for everything, or one for each of its groups of bodies."""

    each: tuple[Calibration, ...]
    groups: tuple[tuple[str, ...], ...] = ((),)  #: recordings of each group, where each has its own

    def of(self, group: int) -> Calibration:
        """The parameters of a group."""
        return self.each[group if len(self.each) > 1 else 0]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters that any of them has."""
        return tuple(dict.fromkeys(name for one in self.each for name in one.names))

    @property
    def made_from(self) -> Mapping[str, Any]:
        """For the header."""
        return self.each[0].made_from

    def range_of(self, name: str, default: float) -> tuple[float, float]:
        """Between which values a parameter is in all trajectories."""
        return _span([one.range_of(name, default) for one in self.each])

    def to_dict(self) -> dict[str, Any]:
        """The parameters as the header states them: those of groups one by one, and the ranges of all."""
        if len(self.each) == 1:
            return self.each[0].to_dict()
        units = {p.name: p.unit for one in self.each for p in one.parameters}
        ranges = {n: _span([one.range_of(n, 0.0) for one in self.each if n in one.names]) for n in self.names}
        return {
            "source": f"{self.each[0].source}, {len(self.each)} groups with their own",
            "drawn": f"by the group of the row's source, {self.each[0].to_dict()['drawn']}",
            "values": {n: {"value": None, "unit": units[n], "interval": list(ranges[n])} for n in self.names},
            "groups": [
                {"recordings": list(names), "values": one.to_dict()["values"]}
                for names, one in zip(self.groups, self.each, strict=True)
            ],
        }


def _span(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def calibration(path: Path | None, *, spread: bool = False) -> Calibration:
    """The parameters in a `parameters.yaml`, or the engine's defaults without one; an unknown name is an error."""
    if path is None:
        if spread:
            raise CaromError(
                "--spread draws within identified intervals; give the parameters.yaml that has them: --params"
            )
        value = tuple(FREE[name].default for name in TABLE_II)
        return Calibration(free_parameters(TABLE_II), value, tuple((v, v) for v in value), "defaults")
    found = read(path)
    for estimate in found.estimates:
        _refuse(path, estimate)
    parameters = free_parameters([e.name for e in found.estimates])
    interval = tuple(_interval(e) for e in found.estimates)
    if spread and all(low == high for low, high in interval):
        raise CaromError(f"{path}: none of its parameters has an interval to draw from; leave out --spread")
    source = f"{found.method}: {found.scene}"
    values = tuple(e.value for e in found.estimates)
    file = path / FILE if path.is_dir() else path
    used = tuple(map(str, found.extra.get("recordings", ())))
    made = {"parameters": made_from(file, [file])}
    return Calibration(parameters, values, interval, source, spread, made_from=made, recordings=used)


def varied(found: Calibration, factor: float, step: float) -> Calibration:
    """Parameters of contacts drawn up to a factor above and below their values, as far as a step [s] resolves them.

    A learner that is told the parameters then answers for others too, not for the calibrated ones alone.
    """
    if not 1.0 <= factor <= MOST_VARIED:
        raise CaromError(f"--vary: expected a factor from 1 to {MOST_VARIED:g}, got {factor:g}")
    if found.spread:
        raise CaromError("--spread draws within identified intervals and --vary within a factor; give one of them")
    bounds = []
    for p, value in zip(resolved(found.parameters, step), found.value, strict=True):
        low, high = max(value / factor, p.low), min(value * factor, p.high)
        bounds.append((low, high) if p.name in VARIED and low < value < high else (value, value))
    return replace(found, interval=tuple(bounds), spread=True, drawn=f"up to {factor:g} times above and below")


def group_calibrations(
    folder: Path, files: Sequence[Path], recordings: Mapping[str, str], *, spread: bool = False
) -> tuple[Calibration, ...]:
    """The parameters of every group that `carom identify` wrote into a folder, from these recordings."""
    every = {"parameters": made_from(folder, files)}
    found = []
    for file in files:
        refuse_of_others(file, read(file), recordings)
        found.append(replace(calibration(file, spread=spread), made_from=every))
    return tuple(found)


def _refuse(path: Path, estimate: Estimate) -> None:
    name = estimate.name
    if name not in FREE:
        raise CaromError(f"{path}: {unknown_name('parameter of free bodies', name, FREE)}")
    usual = FREE[name]
    if estimate.unit != usual.unit:
        raise CaromError(f"{path}: expected '{name}' in [{usual.unit}], got [{short(estimate.unit)}]")
    if estimate.value < 0 <= usual.low or (usual.low > 0 and estimate.value == 0):
        raise CaromError(
            f"{path}: expected a {'positive' if usual.low > 0 else 'non-negative'} '{name}', got {estimate.value:g}"
        )
    if abs(estimate.value) > (most := BEYOND * max(abs(usual.low), abs(usual.high))):
        raise CaromError(f"{path}: expected '{name}' up to {most:g} [{usual.unit}], got {estimate.value:g}")


def _interval(estimate: Estimate) -> tuple[float, float]:
    """The 90 % interval within what the parameter can be; the value alone where there is none."""
    low, high, usual = estimate.low, estimate.high, FREE[estimate.name]
    if not (np.isfinite([low, high]).all() and low < high):
        return estimate.value, estimate.value
    low, high = max(low, min(usual.low, estimate.value)), min(high, max(usual.high, estimate.value))
    return (low, high) if low < high else (estimate.value, estimate.value)
