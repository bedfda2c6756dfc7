"""`carom train --scene`: a policy that pushes a block to where it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.engines.pushing import DELAY, push_simulator
from carom.envs.pushing import PushingTask
from carom.envs.pushing.files import load_task
from carom.identify.result import read as read_parameters
from carom.recipes.result import PrintedTable, Result, brief, command, table_of
from carom.recipes.result_page import REPORT, result_page
from carom.report.routes import ends_figure
from carom.scenes.parameters import PARAMETERS
from carom.train.policy import Policy
from carom.train.push_trials import PushTrials, try_in_simulator
from carom.train.pushing import PushingTraining, train_pushing

__all__ = ["PushingTraining", "TrainPushesResult", "train_pushes"]

OWN_TRIALS = 200  #: of a trained policy in its own simulator
GOOD = 0.8  #: success rate below which a policy should not leave its simulator
DRAWS = 64  #: simulators, with `randomise`
#: what is drawn then; the rest of a scene's parameters are as they are
RANDOM = ("ground_friction", "striker_friction", "mass_scale", "joint_friction", "actuator_delay")
APART = 100_003  #: between the seed of a training and that of its trials


@final
@dataclass(frozen=True)
class TrainPushesResult(Result):
    """A trained policy of pushes, the folder that holds it, and how it does where it was trained."""

    out: Path
    scene: str  #: as it was typed
    policy: Policy
    trials: PushTrials

    def to_dict(self) -> dict[str, Any]:
        rate = self.trials.rate()
        own = {
            "success_rate": rate.value,
            "success_rate_interval": [rate.low, rate.high],
            "trials": len(self.trials.success),
            "outside": int(self.trials.outside.sum()),
            "median_distance_m": float(np.median(self.trials.away)),
            **({"median_turn_rad": float(np.median(self.trials.turned))} if self._turns else {}),
        }
        facts = {"environment": self.policy.environment, "algorithm": self.policy.algorithm}
        return {"policy": str(self.out), **facts, **self.policy.made_by, "in_own_simulator": own}

    @property
    def _turns(self) -> bool:
        return bool(self.policy.made_by["pushing"]["turns"])

    def tables(self) -> Sequence[PrintedTable]:
        hidden = ("settings", "learner")  # long
        return (table_of(f"policy in {self.out}", {k: v for k, v in self.to_dict().items() if k not in hidden}),)

    def notes(self) -> Sequence[str]:
        own = self.to_dict()["in_own_simulator"]
        rate, count = own["success_rate"], own["trials"]
        lines = [
            f"success in its own simulator: {rate:.2f} (95 % interval {brief(own['success_rate_interval'])}, {count} "
            f"trials; median {1000 * own['median_distance_m']:.0f} mm from the goal; {own['outside']} left the table's "
            "part in reach)"
        ]
        if rate < GOOD:
            lines.append(
                f"warning: it succeeds in less than {GOOD:g} of the trials even where it was trained: do not use it; "
                "train for more --steps, or with another --seed"
            )
        return lines

    def next_commands(self) -> Sequence[str]:
        own = () if self.policy.made_by["pushing"].get("roles") is None else ("--scene", self.scene)
        return (command("rollout", self.out, *own, "--on", "laminate" if not own else "simulator"),)


def train_pushes(
    scene: str | Path,
    out: str | Path,
    *,
    training: PushingTraining | None = None,
    params: str | Path | None = None,
    randomise: bool = False,
    threads: int = 1,
    progress: Progress = silent,
) -> TrainPushesResult:
    """Train a policy in a built-in scene of pushing or a task file, and save it; after a kill the same call goes on.

    `params` are identified parameters (`parameters.yaml`, or its folder); `randomise` draws friction, mass, joint
    friction and delay from their whole ranges instead, anew for every episode. Then it is tried where it was trained.
    """
    task, training = load_task(scene), training or PushingTraining()
    if params is not None and randomise:
        raise CaromError("--params and --randomise: give one of them")
    draws = random_draws(DRAWS, training.seed) if randomise else []
    if params is not None:
        draws = [identified(task, params)]
    simulator = push_simulator(task.scene, tuple(draws[0]) if draws else (), threads=threads)
    policy = train_pushing(task, Path(out), training, simulator=simulator, draws=draws, progress=progress)
    seed = APART * (training.seed + 1)
    trials = try_in_simulator(policy, task, simulator, trials=OWN_TRIALS, draws=draws, seed=seed)
    result = TrainPushesResult(Path(out), str(scene), policy, trials)
    figure = ends_figure("Ends of trials in its own simulator", trials.away, trials.turned, trials.success)
    rate = trials.rate()
    short = (
        f"A policy ({policy.algorithm}) that pushes. In its own simulator **{100 * rate.value:.0f} %** of "
        f"{len(trials.success)} trials succeed (95 % interval {100 * rate.low:.0f} to {100 * rate.high:.0f} %).",
    )
    result_page(Path(out) / REPORT, result, title="A trained policy of pushes", short=short, figures=[figure])
    return result


def identified(task: PushingTask, params: str | Path) -> dict[str, float]:
    """The identified values of what a scene of pushing takes."""
    found, takes = read_parameters(params), (*task.scene.takes, DELAY)
    values = {e.name: e.value for e in found.estimates if e.name in takes}
    if not values:
        raise CaromError(
            f"{params}: none of its parameters ({', '.join(e.name for e in found.estimates)}) has a meaning in a scene "
            f"of pushing, which takes: {', '.join(takes)}"
        )
    return values


def random_draws(count: int, seed: int) -> list[dict[str, float]]:
    """Simulators from the whole ranges of what is usually unknown."""
    z = np.random.default_rng([seed, 31]).uniform(size=(count, len(RANDOM)))
    return [{name: float(PARAMETERS[name].from_unit(v)) for name, v in zip(RANDOM, row, strict=True)} for row in z]
