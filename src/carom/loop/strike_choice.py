"""Which strikes to carry out: those that bring the block to its goals, and those that tell, weighed by the gap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from carom.core.errors import CaromError
from carom.learn.impact.adapted_model import AdaptedModel
from carom.learn.impact.telling import beliefs_of
from carom.state import Array, StrikeCommands, Strikes, rotate, wrap_angle
from carom.train.infogap import InfoGap, Transitions

TINY = 1e-12
YAW = 0.1  #: [m/rad] by which a missing turn counts beside a missing distance


@dataclass(frozen=True)
class Candidates:
    """Strikes to choose from: one planned for each goal, then many spread evenly."""

    COUNT: ClassVar[int] = 96

    commands: StrikeCommands
    initial: Strikes  #: the states from which they are simulated
    rests: Array  #: [C, 3] where the simulator says that the block comes to rest [m, m, rad]
    goals: Array  #: [G, 3]

    def misses(self) -> Array:
        """How far each candidate would end from each goal [G, C], in units of the mean over the candidates."""
        away = self.rests[None] - self.goals[:, None]
        apart = np.hypot(np.hypot(away[..., 0], away[..., 1]), YAW * wrap_angle(away[..., 2]))
        apart = np.where(np.isfinite(apart), apart, np.nanmax(apart, initial=1.0) * 10)
        return np.asarray(apart / np.median(apart, axis=1, keepdims=True))


class Telling(Protocol):
    """What candidates tell, given those chosen already."""

    def gains(self) -> Array: ...

    def after(self, row: int) -> Telling: ...


@dataclass(frozen=True)
class Far:
    """W1 that each candidate's simulated transition makes to those simulated so far (Eq. 3)."""

    data: Transitions
    own: Transitions  #: of the candidates

    def gains(self) -> Array:
        """What each candidate tells [C], in units of a typical transition of the data."""
        return InfoGap(self.data, weight=1.0)(self.own.observation, self.own.action, self.own.following)

    def after(self, row: int) -> Far:
        """The same with this candidate among the data."""
        return replace(self, data=Transitions.joined([self.data, self.own[np.array([row])]]))


def telling_of(method: str, model: AdaptedModel, recorded: Strikes, tried: Candidates) -> Telling:
    """What counts as telling: distance (`infogap`), or by how much predictions narrow (`ensemble`)."""
    if method == "ensemble":
        return beliefs_of(model, tried.initial, tried.initial)
    if method == "infogap":
        return Far(_simulated(model, recorded), _simulated(model, tried.initial))
    raise CaromError(f"method {method}: nothing is paid for what a strike tells")


def chosen(tried: Candidates, weight: float, telling: Telling | None) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Rows of the candidates, one for each goal: least miss minus `weight` times what it tells; and what they told.

    Each choice counts those before it. What the median candidate tells is 1, before any was chosen.
    """
    misses = tried.misses()
    left = np.ones(misses.shape[1], dtype=bool)
    rows: list[int] = []
    told: list[float] = []
    typical = 1.0 if telling is None else max(float(np.median(telling.gains())), TINY)
    for miss in misses:
        information = np.zeros(len(left)) if telling is None else telling.gains() / typical
        best = int(np.argmin(np.where(left, miss - weight * information, np.inf)))
        rows.append(best)
        told.append(float(information[best]))
        left[best] = False
        telling = None if telling is None else telling.after(best)
    return tuple(rows), {"information": told}


def _simulated(model: AdaptedModel, strikes: Strikes) -> Transitions:
    """Strikes as transitions: the striker's place seen from the block, its velocity, and the outcome predicted."""
    place = strikes.striker_pose[:, :2] - strikes.target_pose[:, :2]
    seen = np.column_stack([rotate(place, -strikes.target_pose[:, 2]), np.zeros(len(place))])
    action = rotate(strikes.striker_velocity[:, :2], -strikes.target_pose[:, 2])
    post = model.predict(strikes).post
    return Transitions(seen, action, np.column_stack([rotate(post[:, :2], -strikes.target_pose[:, 2]), post[:, 2]]))
