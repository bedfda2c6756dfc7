"""Parameters of a calibrated engine for scaling: read from `parameters.yaml`, fixed or drawn within their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import made_from
from carom.core.errors import CaromError, short, unknown_name
from carom.identify.result import FILE, Estimate, read
from carom.scenes.parameters import FREE, TABLE_II, Parameter, free_parameters
from carom.state import Array


@dataclass(frozen=True)
class Calibration:
    """Values of the parameters, with the intervals that they are drawn from where `spread` asks for it."""

    parameters: tuple[Parameter, ...]
    value: tuple[float, ...]
    interval: tuple[tuple[float, float], ...]  #: 90 %; equal ends where it stays at its value
    source: str  #: "defaults", or how they were identified
    spread: bool = False
    made_from: Mapping[str, Any] = field(default_factory=dict)  #: the file of parameters and its SHA-256

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of the values."""
        return tuple(p.name for p in self.parameters)

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
            "drawn": "within the 90 % intervals, per trajectory" if self.spread else "fixed at the values",
            "values": {
                p.name: {"value": v, "unit": p.unit, "interval": list(i) if self.spread else [v, v]}
                for p, v, i in zip(self.parameters, self.value, self.interval, strict=True)
            },
        }


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
    return Calibration(parameters, values, interval, source, spread, {"parameters": made_from(file, [file])})


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


def _interval(estimate: Estimate) -> tuple[float, float]:
    """The 90 % interval within what the parameter can be; the value alone where there is none."""
    low, high, usual = estimate.low, estimate.high, FREE[estimate.name]
    if not (np.isfinite([low, high]).all() and low < high):
        return estimate.value, estimate.value
    low, high = max(low, min(usual.low, estimate.value)), min(high, max(usual.high, estimate.value))
    return (low, high) if low < high else (estimate.value, estimate.value)
