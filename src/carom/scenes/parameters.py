"""The physical parameters `P` of a strike: names, SI units, bounds, and what each one acts on.

A parameter is *contact* (written into the engine's contact), *body* (mass properties) or *geometry* (where
the striker's face really is). Geometry that was not measured is declared unknown in the scene, joins `P`,
is sampled when distilling and identified like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import SceneError, unknown_name
from carom.state import Array


@dataclass(frozen=True)
class Parameter:
    """One component of `P`: a physical quantity with its unit, its bounds and its value when nobody says."""

    name: str
    unit: str
    low: float
    high: float
    default: float
    log: bool = False  #: sampled and searched on a logarithmic scale
    about: str = ""

    def from_unit(self, z: ArrayLike) -> Array:
        """Values for numbers in [0, 1]: 0 is the lower bound, 1 the upper."""
        z = np.asarray(z, dtype=np.float64)
        if self.log:
            return np.asarray(np.exp(np.log(self.low) + z * (np.log(self.high) - np.log(self.low))))
        return self.low + z * (self.high - self.low)

    def to_unit(self, value: ArrayLike) -> Array:
        """Numbers in [0, 1] for values within the bounds: the inverse of `from_unit`."""
        value = np.asarray(value, dtype=np.float64)
        if self.log:
            return np.asarray((np.log(value) - np.log(self.low)) / (np.log(self.high) - np.log(self.low)))
        return np.asarray((value - self.low) / (self.high - self.low))


def _p(name: str, unit: str, low: float, high: float, default: float, log: bool, about: str) -> Parameter:
    return Parameter(name, unit, low, high, default, log, about)


#: Every parameter Carom knows. The first four are Table I of CLASH; the rest are optional.
KNOWN: Mapping[str, Parameter] = {
    p.name: p
    for p in (
        _p("striker_friction", "1", 0.05, 1.0, 0.3, True, "mu_1: friction between striker and target"),
        _p("ground_friction", "1", 0.02, 1.0, 0.3, True, "mu_2: friction between ground and target"),
        _p("striker_damping", "1", 0.1, 3.0, 1.0, True, "e_1: damping ratio of the striker-target contact"),
        _p("ground_damping", "1", 0.1, 3.0, 1.0, True, "e_2: damping ratio of the ground-target contact"),
        _p("restitution", "1", 0.02, 0.98, 0.5, False, "speed kept along the normal (analytic teacher)"),
        _p("restitution_slope", "1", 0.0, 0.3, 0.1, False, "p in e = restitution * (speed / 0.5 m/s)^-p (analytic)"),
        _p("contact_time", "s", 0.002, 0.03, 0.006, True, "duration of a central impact (analytic teacher)"),
        _p("tangential_stiffness", "1", 0.2, 2.0, 1.0, True, "tangential over normal stiffness (analytic teacher)"),
        _p("striker_mass", "kg", 1.0, 20.0, 4.0, True, "effective mass of the striker and its arm"),
        _p("striker_inertia", "kg m^2", 0.001, 0.5, 0.05, True, "effective inertia of the striker about z"),
        _p("face_width", "m", 0.005, 0.15, 0.04, True, "width of the striker's flat face"),
        _p("face_tilt", "rad", -0.15, 0.15, 0.0, False, "angle of the face against the striker's frame"),
        _p("face_offset", "m", -0.03, 0.03, 0.0, False, "sideways offset of the face from the striker's frame"),
        _p("com_x", "m", -0.01, 0.01, 0.0, False, "target's centre of mass against the declared one, along x"),
        _p("com_y", "m", -0.01, 0.01, 0.0, False, "target's centre of mass against the declared one, along y"),
    )
}
TABLE_I = ("striker_friction", "ground_friction", "striker_damping", "ground_damping")


def known(name: str) -> Parameter:
    """The parameter of this name, with its usual bounds."""
    if name not in KNOWN:
        raise SceneError(unknown_name("parameter", name, KNOWN))
    return KNOWN[name]


def with_bounds(name: str, bounds: Sequence[float]) -> Parameter:
    """The parameter of this name within other bounds."""
    usual = known(name)
    if len(bounds) != 2 or not np.isfinite(bounds).all() or not bounds[0] < bounds[1]:
        raise SceneError(f"parameter '{name}': bounds must be two numbers, lower first, got {list(bounds)}")
    low, high = float(bounds[0]), float(bounds[1])
    if usual.log and low <= 0:
        raise SceneError(f"parameter '{name}': bounds must be positive [{usual.unit}], got {list(bounds)}")
    return Parameter(name, usual.unit, low, high, float(np.clip(usual.default, low, high)), usual.log, usual.about)


def defaults(parameters: Sequence[Parameter]) -> Array:
    """The default value of each parameter [P]."""
    return np.array([p.default for p in parameters])


def from_unit(parameters: Sequence[Parameter], z: ArrayLike) -> Array:
    """Values [..., P] for numbers in [0, 1] [..., P]."""
    z = np.asarray(z, dtype=np.float64)
    return np.stack([p.from_unit(z[..., i]) for i, p in enumerate(parameters)], axis=-1)


def to_unit(parameters: Sequence[Parameter], values: ArrayLike) -> Array:
    """Numbers in [0, 1] [..., P] for values [..., P]."""
    values = np.asarray(values, dtype=np.float64)
    return np.stack([p.to_unit(values[..., i]) for i, p in enumerate(parameters)], axis=-1)
