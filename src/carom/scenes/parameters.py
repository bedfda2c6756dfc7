"""The physical parameters `P`: names, SI units, bounds, and where each one is written in a MuJoCo model.

A parameter of a contact writes itself (`Write`): into a spec, into a batch with a value for each simulation, into an
MJX model. Parameters of bodies (mass, size, centre of mass) change a `Body`; geometry that nobody measured (where the
striker's face really is) is declared unknown in the scene, joins `P`, is sampled when distilling and identified like
any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import SceneError, unknown_name
from carom.state import Array

FACE = "_face_"  #: part of the names of pairs in which a box's face rubs, where faces rub unlike edges


@dataclass(frozen=True)
class Write:
    """Where a parameter of contacts goes: a field of MuJoCo's contact pairs, some columns of it, in some pairs."""

    field: str  #: friction, solref or solimp
    columns: tuple[int, ...]
    pair: str = ""  #: name of the pair, or a part of it; empty: all pairs
    sign: float = 1.0  #: the direct form of solref is written with a minus

    def rows(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Which of these pairs it is written into."""
        part = f"{self.pair}-"  # of a body of several geoms: ground-bar, ground-stem
        own = [
            not self.pair or name == self.pair or name.startswith(part) or (self.pair == FACE and FACE in name)
            for name in names
        ]
        return np.flatnonzero(own)

    def into_spec(self, spec: Any, value: float) -> None:
        """Write one value into an `MjSpec`."""
        for row in self.rows([pair.name for pair in spec.pairs]):
            field = getattr(spec.pairs[row], self.field)
            for column in self.columns:
                field[column] = self.sign * value

    def into_batch(self, batch: Any, values: Array) -> None:
        """Write a value [N] for each simulation of a `mujoco.batch.Batch`."""
        model = batch.model
        rows = self.rows([model.pair(i).name for i in range(model.npair)])
        batch.expand(f"pair_{self.field}")[:, rows[:, None], self.columns] = self.sign * values[:, None, None]

    def into_mjx(self, model: Any, names: Sequence[str], value: Any) -> Any:
        """A model on JAX (MJX's or Brax's) with this value, whose contact pairs have these names."""
        field = f"pair_{self.field}"
        rows, columns = np.ix_(self.rows(names), np.array(self.columns))
        return model.replace(**{field: getattr(model, field).at[rows, columns].set(self.sign * value)})


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
    write: Write | None = None  #: None: it is no parameter of a contact
    vector: bool = False  #: may be given as a vector [3] too, where its direction matters

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


_P = Parameter
#: Of strikes. The first four are Table I of CLASH.
_STRIKES = (
    _P("striker_friction", "1", 0.05, 1.0, 0.3, True, "mu_1: friction between striker and target"),
    _P("ground_friction", "1", 0.02, 1.0, 0.3, True, "mu_2: friction between ground and target"),
    _P("striker_damping", "1", 0.1, 3.0, 1.0, True, "e_1: damping ratio of the striker-target contact"),
    _P("ground_damping", "1", 0.1, 3.0, 1.0, True, "e_2: damping ratio of the ground-target contact"),
    _P("restitution", "1", 0.02, 0.98, 0.5, False, "speed kept along the normal (analytic teacher)"),
    _P("restitution_slope", "1", 0.0, 0.3, 0.1, False, "p in e = restitution * (speed / 0.5 m/s)^-p (analytic)"),
    _P("contact_time", "s", 0.002, 0.03, 0.006, True, "duration of a central impact (analytic teacher)"),
    _P("tangential_stiffness", "1", 0.2, 2.0, 1.0, True, "tangential over normal stiffness (analytic teacher)"),
    _P("striker_mass", "kg", 1.0, 20.0, 4.0, True, "effective mass of the striker and its arm"),
    _P("striker_inertia", "kg m^2", 0.001, 0.5, 0.05, True, "effective inertia of the striker about z"),
    _P("face_width", "m", 0.005, 0.15, 0.04, True, "width of the striker's flat face"),
    _P("face_tilt", "rad", -0.15, 0.15, 0.0, False, "angle of the face against the striker's frame"),
    _P("face_offset", "m", -0.03, 0.03, 0.0, False, "sideways offset of the face from the striker's frame"),
)
#: Of the body that is struck or tossed: where its mass is, seen from above.
_COM = (
    _P("com_x", "m", -0.01, 0.01, 0.0, False, "centre of mass against the declared one, along the body's x"),
    _P("com_y", "m", -0.01, 0.01, 0.0, False, "centre of mass against the declared one, along the body's y"),
)
#: Of free bodies. The first eight, without the faces, are Table II of the few-shot paper, with its bounds.
_FREE = (
    _P("friction", "1", 0.0, 1.0, 0.3, False, "mu: sliding friction of every contact"),
    _P("face_friction", "1", 0.0, 1.0, 0.3, False, "friction of a box that lies on a face; `friction`: of edges"),
    _P("time_constant", "s", 0.001, 0.1, 0.02, True, "solref: time constant of a contact"),
    _P("damping_ratio", "1", 0.1, 10.0, 1.0, True, "solref: damping ratio of a contact"),
    _P("impedance_least", "1", 0.9, 0.95, 0.9, False, "solimp: d_0"),
    _P("impedance_most", "1", 0.95, 0.99, 0.95, False, "solimp: d_width"),
    _P("impedance_width", "m", 0.0001, 0.01, 0.001, True, "solimp: width"),
    _P("impedance_midpoint", "1", 0.001, 0.1, 0.05, True, "solimp: midpoint"),
    _P("impedance_power", "1", 1.0, 5.0, 2.0, False, "solimp: power"),
    _P("stiffness", "1/s^2", 200.0, 300_000.0, 20_000.0, True, "direct solref: stiffness over effective mass"),
    _P("damping", "1/s", 2.0, 3000.0, 200.0, True, "direct solref: damping over effective mass"),
    _P("torsional_friction", "m", 1e-5, 0.05, 0.005, True, "friction against spin about a contact's normal"),
    _P("rolling_friction", "m", 1e-6, 0.01, 0.0001, True, "friction against rolling"),
    _P("mass_scale", "1", 0.5, 2.0, 1.0, True, "mass over the declared one"),
    _P("inertia_scale", "1", 0.5, 2.0, 1.0, True, "inertia over the declared one"),
    *_COM,
    _P("com_z", "m", -0.01, 0.01, 0.0, False, "centre of mass against the declared one, along the body's z"),
    _P("com_offset", "m", 0.0, 0.012, 0.0, False, "centre of mass from the middle, towards one of the faces"),
    _P("length_scale", "1", 0.9, 1.1, 1.0, False, "recorded lengths over real ones"),
    _P("gravity", "m/s^2", 9.2, 10.2, 9.81, False, "free fall as recorded"),
    _P("tilt_x", "rad", -0.03, 0.03, 0.0, False, "lean of the ground's normal towards x"),
    _P("tilt_y", "rad", -0.03, 0.03, 0.0, False, "lean of the ground's normal towards y"),
    _P("edge_radius", "m", 1e-5, 0.012, 1e-5, False, "rounding of the edges of boxes"),
)
#: Of a robot that pushes, beside those of contacts and of the block's mass.
_PUSH = (
    _P("joint_friction", "1", 0.0, 0.2, 0.0, False, "friction of the robot's joints over their greatest force"),
    _P("joint_damping", "1", 0.0, 2.0, 0.0, False, "viscous friction of the joints over their servos' own damping"),
    _P("servo_stiffness", "1", 0.2, 5.0, 1.0, True, "stiffness of the servos over the declared one"),
    _P("pressure_spread", "1", 0.2, 1.0, 1.0, False, "mean lever of the block's weight, over that of its corners"),
    _P("tool_offset_x", "m", -0.02, 0.02, 0.0, False, "tool against where it is declared, across it, ahead"),
    _P("tool_offset_y", "m", -0.02, 0.02, 0.0, False, "tool against where it is declared, across it, aside"),
    _P("actuator_delay", "s", 0.0, 0.1, 0.0, False, "from a set-point to the servos' answer"),
)
#: Where the parameters of contacts are written.
_WRITES: Mapping[str, Write] = {
    "striker_friction": Write("friction", (0, 1), "striker"),
    "ground_friction": Write("friction", (0, 1), "ground"),
    "striker_damping": Write("solref", (1,), "striker"),
    "ground_damping": Write("solref", (1,), "ground"),
    "friction": Write("friction", (0, 1)),
    "face_friction": Write("friction", (0, 1), FACE),
    "torsional_friction": Write("friction", (2,)),
    "rolling_friction": Write("friction", (3, 4)),
    "time_constant": Write("solref", (0,)),
    "damping_ratio": Write("solref", (1,)),
    "stiffness": Write("solref", (0,), sign=-1.0),
    "damping": Write("solref", (1,), sign=-1.0),
    "impedance_least": Write("solimp", (0,)),
    "impedance_most": Write("solimp", (1,)),
    "impedance_width": Write("solimp", (2,)),
    "impedance_midpoint": Write("solimp", (3,)),
    "impedance_power": Write("solimp", (4,)),
}
CONTACT = tuple(_WRITES)  #: names of the parameters of contacts
#: Every parameter that Carom knows.
PARAMETERS: Mapping[str, Parameter] = {
    p.name: replace(p, write=_WRITES.get(p.name), vector=p.name == "com_offset")
    for p in (*_STRIKES, *_COM, *_FREE, *_PUSH)
}
#: Those of strikes, and those of free bodies.
KNOWN: Mapping[str, Parameter] = {p.name: PARAMETERS[p.name] for p in (*_STRIKES, *_COM)}
FREE: Mapping[str, Parameter] = {p.name: PARAMETERS[p.name] for p in _FREE}
TABLE_I = ("striker_friction", "ground_friction", "striker_damping", "ground_damping")
SOLIMP = ("impedance_least", "impedance_most", "impedance_width", "impedance_midpoint", "impedance_power")
TABLE_II = ("friction", "time_constant", "damping_ratio", *SOLIMP)
#: what is part of a body; the rest is written into contacts, ground and gravity
OF_BODIES = ("mass_scale", "inertia_scale", "com_x", "com_y", "com_z", "com_offset", "length_scale")
DIRECT = ("friction", "stiffness", "damping")  #: contact in the direct form of solref
_FORMS = (("stiffness", "damping"), ("time_constant", "damping_ratio"))  #: of solref: both numbers, or none


def known(name: str) -> Parameter:
    """The parameter of strikes of this name, with its usual bounds."""
    if name not in KNOWN:
        raise SceneError(unknown_name("parameter", name, KNOWN))
    return KNOWN[name]


def with_bounds(name: str, bounds: Sequence[float]) -> Parameter:
    """The parameter of strikes of this name within other bounds."""
    usual = known(name)
    if len(bounds) != 2 or not np.isfinite(bounds).all() or not bounds[0] < bounds[1]:
        raise SceneError(f"parameter '{name}': bounds must be two numbers, lower first, got {list(bounds)}")
    low, high = float(bounds[0]), float(bounds[1])
    if usual.log and low <= 0:
        raise SceneError(f"parameter '{name}': bounds must be positive [{usual.unit}], got {list(bounds)}")
    return replace(usual, low=low, high=high, default=float(np.clip(usual.default, low, high)))


def free_parameters(names: Sequence[str]) -> tuple[Parameter, ...]:
    """The parameters of free bodies of these names; refuses an unknown one, and both forms of solref at once."""
    for name in names:
        if name not in FREE:
            raise SceneError(unknown_name("parameter", name, FREE))
    if all(set(form) & set(names) for form in _FORMS):
        raise SceneError("stiffness and damping are one form of solref, time_constant and damping_ratio the other")
    return tuple(FREE[name] for name in names)


def resolved(parameters: Sequence[Parameter], step: float) -> tuple[Parameter, ...]:
    """The parameters with bounds that an engine's step [s] resolves: contacts harder than that gain energy."""
    most = {"damping": 1.0 / step, "stiffness": (0.5 / step) ** 2}
    return tuple(replace(p, high=min(p.high, most.get(p.name, p.high))) for p in parameters)


def contact_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that belong to contacts, in the order of writing; solref's other half gets its default."""
    found = dict(values)
    for form in _FORMS:
        if set(form) & values.keys():
            found |= {name: values.get(name, PARAMETERS[name].default) for name in form}
    return {name: found[name] for name in _WRITES if name in found}


def write_contacts(batch: Any, values: Mapping[str, Array]) -> None:
    """Parameters [N] of contacts into a `mujoco.batch.Batch`."""
    for name, value in contact_values(values).items():
        _WRITES[name].into_batch(batch, np.broadcast_to(value, (batch.nsim,)))


def write_contacts_into(spec: Any, values: Mapping[str, float]) -> None:
    """Parameters of contacts into an `MjSpec`."""
    for name, value in contact_values(values).items():
        _WRITES[name].into_spec(spec, value)


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
