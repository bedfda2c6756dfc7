"""Gymnasium's description of what goes in and out of every environment here."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box

from carom.envs.task import FAR


def observation_space(sides: int = 1) -> Box:
    """Place in the segment, sub-goal seen from the block, cosine and sine of the missing turn; all about 1.

    Of a block that is struck on several sides also cosine and sine of the heading of the one to strike, in its frame.
    """
    bound = np.array([FAR] * 4 + [1.0] * (2 if sides == 1 else 4), dtype=np.float32)
    return Box(-bound, bound, dtype=np.float32)


def action_space() -> Box:
    """Place on the side, deflection from the normal, speed; each from -1 to 1 over its range in the scene."""
    return Box(-1.0, 1.0, (3,), dtype=np.float32)
