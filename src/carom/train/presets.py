"""How policies are trained: the paper's way, a fast way and a quick one, all numbers in one place."""

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
    target_rate: float = 0.005  #: SAC: how far the critics' targets follow them with each update
    fading: bool = False  #: the learning rate falls to zero over the second half of the training
    steps: int = 200_000  #: transitions of a training, unless told

    def stated(self) -> dict[str, Any]:
        """All numbers, for headers."""
        return {**asdict(self), "layers": list(self.layers)}


#: `paper`: the defaults of Stable-Baselines3. `fast`: batched, and a short horizon. Table V pays nearly 1 for every
#: strike that stays in the zone: with gamma 0.99 five timid strikes (4.7) are worth almost as much as arriving (6), and
#: SAC settles for them for long; with 0.5 arriving is worth three times as much with one strike, twice with two.
#: `quick`: the learner is what a training costs, so its networks are half as wide, its updates twice as large and half
#: as many for each transition; targets that follow four times as fast, as the horizon is short; and a learning rate
#: that falls to zero over the second half, so that the last policy is not a chance one (falling from the start was too
#: soon for a square; twice the rate never left timid strikes in one of the hybrids). Chosen in the policies' own
#: simulators.
#: PPO's numbers have not been tuned. It has no `quick`: with 1,024 environments it is as fast on a semi-cylinder, but
#: on a square it learns to hardly strike at all (`carom bench training-time`).
PRESETS: tuple[Preset, ...] = (
    Preset("paper", "sac", envs=1, layers=(256, 256), learning_rate=3e-4, batch=256),
    Preset("paper", "ppo", envs=1, layers=(64, 64), learning_rate=3e-4, batch=64),
    Preset(
        "fast", "sac", envs=128, layers=(128, 128), learning_rate=1e-3, batch=256, gamma=0.5, warm_up=5000, updates=16
    ),
    Preset(
        "quick",
        "sac",
        envs=512,
        layers=(64, 64),
        learning_rate=1e-3,
        batch=512,
        gamma=0.5,
        warm_up=5000,
        updates=32,
        target_rate=0.02,
        fading=True,
        steps=120_000,
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
        raise CaromError(unknown_name(f"preset for {algorithm}", name, known))
    return known[name]
