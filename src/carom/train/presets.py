"""How policies are trained: the paper's way and a fast way, all numbers in one place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from carom.core.errors import CaromError, unknown_name

ALGORITHMS = ("sac", "ppo")
LIBRARIES = ("sb3", "sbx")


@dataclass(frozen=True)
class Preset:
    """Numbers of one algorithm; those of the other one are not used."""

    name: str
    algorithm: str
    envs: int  #: environments in lock step
    layers: tuple[int, ...]  #: widths of the hidden layers, actor and critics alike
    learning_rate: float
    batch: int  #: transitions in one update
    gamma: float = 0.99
    warm_up: int = 100  #: SAC: transitions with random actions before the first update
    updates: int = 1  #: SAC: updates after each step of all environments
    buffer: int = 1_000_000  #: SAC: transitions that are kept
    rollout: int = 2048  #: PPO: steps of each environment between updates
    epochs: int = 10  #: PPO: how often each transition is used

    def stated(self) -> dict[str, Any]:
        """All numbers, for headers."""
        return {**asdict(self), "layers": list(self.layers)}


#: `paper`: the defaults of Stable-Baselines3. `fast`: batched, and a short horizon. Table V pays nearly 1 for every
#: strike that stays in the zone: with gamma 0.99 five timid strikes (4.7) are worth almost as much as arriving (6), and
#: SAC settles for them for long; with 0.5 arriving is worth three times as much with one strike, twice with two.
#: PPO's numbers have not been tuned.
PRESETS: tuple[Preset, ...] = (
    Preset("paper", "sac", envs=1, layers=(256, 256), learning_rate=3e-4, batch=256),
    Preset("paper", "ppo", envs=1, layers=(64, 64), learning_rate=3e-4, batch=64),
    Preset(
        "fast", "sac", envs=128, layers=(128, 128), learning_rate=1e-3, batch=256, gamma=0.5, warm_up=5000, updates=16
    ),
    Preset("fast", "ppo", envs=64, layers=(64, 64), learning_rate=1e-3, batch=256, rollout=32),
)


def preset_of(name: str, algorithm: str) -> Preset:
    """The preset of this name for an algorithm.

    >>> preset_of("paper", "sac").batch
    256
    """
    if algorithm not in ALGORITHMS:
        raise CaromError(unknown_name("algorithm", algorithm, ALGORITHMS))
    known = {p.name: p for p in PRESETS if p.algorithm == algorithm}
    if name not in known:
        raise CaromError(unknown_name("preset", name, known))
    return known[name]
