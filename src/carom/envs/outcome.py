"""What one strike at each of N tasks brought, as arrays and as what environments tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.envs.task import TERMS
from carom.state import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """What one strike at each of N tasks brought. Rows that were not struck are as they were, without reward."""

    observation: NDArray[np.float32]  #: [N, 6 or 8] of what comes next (dimensionless)
    terms: Array  #: [N, 4] of the reward, R1 to R4
    terminated: Mask  #: [N]
    reached: Mask  #: [N] the sub-goal was reached with this strike
    success: Mask  #: [N] and it was the last one
    left_zone: Mask  #: [N]
    strike_failed: Mask  #: [N] nothing was struck, or the engine gave up: the block stayed where it was
    strikes: NDArray[np.int64]  #: [N] used so far for the sub-goal that was struck at
    subgoals: NDArray[np.int64]  #: [N] reached so far
    position_error: Array  #: [N] distance to the sub-goal that was struck at [m]
    orientation_error: Array  #: [N] turn missing there, in (-pi, pi] [rad]

    @property
    def reward(self) -> Array:
        """R of Table V [N]."""
        return np.asarray(self.terms.sum(axis=1))

    def info(self) -> dict[str, Any]:
        """What environments tell beside the reward: arrays [N] by name, the reward's terms in a dict of their own."""
        return {
            "reward_terms": dict(zip(TERMS, self.terms.T, strict=True)),
            "strikes": self.strikes,
            "subgoals": self.subgoals,
            "is_success": self.success,
            "left_zone": self.left_zone,
            "position_error": self.position_error,
            "orientation_error": self.orientation_error,
            "strike_failed": self.strike_failed,
        }

    def infos(self) -> list[dict[str, Any]]:
        """The same for each task, one dict of its own: wrappers write into them.

        One literal makes each: from pairs of names and values they would take four times as long.
        """
        columns = (
            self.strikes,
            self.subgoals,
            self.success,
            self.left_zone,
            self.position_error,
            self.orientation_error,
            self.strike_failed,
            *self.terms.T,
        )
        return [
            {
                "strikes": strikes,
                "subgoals": subgoals,
                "is_success": success,
                "left_zone": left,
                "position_error": away,
                "orientation_error": turn,
                "strike_failed": failed,
                "reward_terms": {"R1": first, "R2": second, "R3": third, "R4": fourth},
            }
            for strikes, subgoals, success, left, away, turn, failed, first, second, third, fourth in zip(
                *(values.tolist() for values in columns), strict=True
            )
        ]
