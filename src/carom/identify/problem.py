"""What every fit has: parameters that are looked for, others that are held, points in the unit cube, and a count.

How residuals are simulated is each fit's own: `strikes.trials` and `tosses.problem` in MuJoCo, `strikes.surrogate`
through a base model, `strikes.mjx_problem` through MJX.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from carom.core.errors import CaromError, UninformativeError, unknown_name
from carom.scenes.parameters import Parameter, defaults, from_unit
from carom.state import Array

GIVEN = "held at the value that was given"  #: why a parameter is not looked for
DEAD = 0.005  #: effect over the whole range, as a share of the outcomes, that no recording can resolve

Held = Mapping[str, tuple[float, str]]  #: name -> value and why it is not looked for


@dataclass
class Effort:
    """What a fit has cost so far."""

    evaluations: int = 0  #: strikes or recordings simulated, or rows given to a base model
    failures: int = 0  #: of those, that missed or did not finish
    engine_seconds: float = 0.0  #: where it is measured

    def add(self, other: Effort) -> None:
        """Count what another part of the fit has cost."""
        self.evaluations += other.evaluations
        self.failures += other.failures
        self.engine_seconds += other.engine_seconds


@dataclass(frozen=True, kw_only=True)
class Problem:
    """P parameters of a simulator, A of them looked for. Points are in the unit cube of the latter."""

    parameters: tuple[Parameter, ...]  #: all, in the simulator's order
    held: Held  #: those that are not looked for
    dead: Mapping[str, float] = field(default_factory=dict)  #: without effect -> how little; left at their defaults
    effort: Effort = field(default_factory=Effort)

    @property
    def active(self) -> list[int]:
        """Indices [A] of the parameters looked for."""
        return [i for i, p in enumerate(self.parameters) if p.name not in self.held and p.name not in self.dead]

    @property
    def sought(self) -> tuple[Parameter, ...]:
        """The parameters looked for [A]."""
        return tuple(self.parameters[i] for i in self.active)

    def values(self, unit: Array) -> Array:
        """Values of all parameters [C, P] for unit points [C, A]."""
        unit = np.atleast_2d(unit)
        values = np.tile(defaults(self.parameters), (len(unit), 1))
        for i, p in enumerate(self.parameters):
            if p.name in self.held:
                values[:, i] = self.held[p.name][0]
        active = self.active
        if active:
            values[:, active] = from_unit(self.sought, unit)
        return values

    def giving_up(self, dead: Mapping[str, float]) -> Self:
        """The same problem with these parameters, which have no effect, left at their defaults."""
        return replace(self, dead={**self.dead, **dead})


def held_values(
    known: Sequence[Parameter], wanted: Sequence[Parameter | str] | None, fixed: Mapping[str, float] | None
) -> Held:
    """Every parameter that is not to be looked for; `wanted` None means all."""
    names = [p.name for p in known]
    asked = names if wanted is None else [w if isinstance(w, str) else w.name for w in wanted]
    check_names(asked, names)
    check_fixed(fixed or {}, {p.name: p for p in known})
    held: dict[str, tuple[float, str]] = {}
    for p in known:
        if fixed and p.name in fixed:
            held[p.name] = (float(fixed[p.name]), GIVEN)
        elif p.name not in asked:
            held[p.name] = (p.default, "held at its default: it was not asked for")
    if len(held) == len(names):
        raise CaromError("every parameter is fixed: nothing is left to identify")
    return held


def check_names(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not known."""
    known = list(known)
    for name in names:
        if name not in known:
            raise CaromError(unknown_name("parameter", name, known))


def check_fixed(fixed: Mapping[str, float], known: Mapping[str, Parameter]) -> None:
    """Refuse unknown names, and values that are not numbers."""
    check_names(fixed, known)
    for name, value in fixed.items():
        if not np.isfinite(value):
            raise CaromError(f"fixed parameter '{name}' must be a finite number [{known[name].unit}], got {value}")


def without_effect(names: Sequence[str], effect: Sequence[float] | Array, *, chance: float = DEAD) -> dict[str, float]:
    """Name and effect (share of the outcomes) of each parameter that moves nothing; raises if none moves anything."""
    dead = {name: float(e) for name, e in zip(names, effect, strict=True) if e < max(DEAD, chance)}
    if len(dead) == len(names):
        raise UninformativeError(
            f"nothing to identify: none of these changes the outcome of these strikes: {', '.join(names)}"
        )
    return dead
