"""Environments to train policies in: strike a block along a route (CLASH, section IV-C), push one body at another,
push a block to where it should be.

Importing this registers `carom/StrikeSegment-v0`, `carom/StrikeRoute-v0`, `carom/Push-v0` and `carom/PushBlock-v0` with
Gymnasium. For Stable-Baselines3 there are `carom.envs.sb3` and `carom.envs.pushing.vector`; import them yourself, as
they need that library.
"""

import gymnasium

from carom.envs.batch import Strike, StrikeBatch, engine_strike, make_batch
from carom.envs.outcome import Outcome
from carom.envs.push import PushEnv
from carom.envs.pushing.single import PushBlockEnv
from carom.envs.routes import ROUTES, Route, route_from, route_through
from carom.envs.single import StrikeRouteEnv, StrikeSegmentEnv
from carom.envs.starts import RouteStarts, SegmentStarts, Starts
from carom.envs.vector import StrikeVectorEnv

__all__ = [
    "ENVIRONMENTS",
    "ROUTES",
    "STRIKE_ENVIRONMENTS",
    "Outcome",
    "PushBlockEnv",
    "PushEnv",
    "Route",
    "RouteStarts",
    "SegmentStarts",
    "Starts",
    "Strike",
    "StrikeBatch",
    "StrikeRouteEnv",
    "StrikeSegmentEnv",
    "StrikeVectorEnv",
    "engine_strike",
    "make_batch",
    "route_from",
    "route_through",
]

ENVIRONMENTS = ("carom/StrikeSegment-v0", "carom/StrikeRoute-v0", "carom/Push-v0", "carom/PushBlock-v0")
STRIKE_ENVIRONMENTS = ENVIRONMENTS[:2]  #: along routes
for _id, _kind in zip(
    STRIKE_ENVIRONMENTS, ("Segment", "Route"), strict=True
):  # by name, so that a spec can be written down
    gymnasium.register(
        _id, entry_point=f"carom.envs.single:Strike{_kind}Env", vector_entry_point=f"carom.envs.vector:{_kind.lower()}s"
    )
gymnasium.register(ENVIRONMENTS[2], entry_point="carom.envs.push:PushEnv")
gymnasium.register(ENVIRONMENTS[3], entry_point="carom.envs.pushing.single:PushBlockEnv")
