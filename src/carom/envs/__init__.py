"""Environments to train policies in: strike a block along a route (CLASH, section IV-C), push one body at another.

Importing this registers `carom/StrikeSegment-v0`, `carom/StrikeRoute-v0` and `carom/Push-v0` with Gymnasium. For
Stable-Baselines3 there is `carom.envs.sb3`; import it yourself, as it needs that library.
"""

import gymnasium

from carom.envs.batch import Outcome, Strike, StrikeBatch, engine_strike, make_batch
from carom.envs.push import PushEnv
from carom.envs.routes import ROUTES, Route, route_from, route_through
from carom.envs.single import StrikeRouteEnv, StrikeSegmentEnv
from carom.envs.starts import RouteStarts, SegmentStarts, Starts
from carom.envs.vector import StrikeVectorEnv

__all__ = [
    "ENVIRONMENTS",
    "ROUTES",
    "Outcome",
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

ENVIRONMENTS = ("carom/StrikeSegment-v0", "carom/StrikeRoute-v0", "carom/Push-v0")
for _id, _kind in zip(
    ENVIRONMENTS[:2], ("Segment", "Route"), strict=True
):  # by name, so that a spec can be written down
    gymnasium.register(
        _id, entry_point=f"carom.envs.single:Strike{_kind}Env", vector_entry_point=f"carom.envs.vector:{_kind.lower()}s"
    )
gymnasium.register(ENVIRONMENTS[2], entry_point="carom.envs.push:PushEnv")
