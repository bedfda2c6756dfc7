"""`carom bench push-learning`: policies of pushes, how often they succeed and how many minutes they take."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.results import summarise
from carom.bench.routes import widened
from carom.core.artefacts import write_text
from carom.core.work import Rows, fingerprint
from carom.engines.pushing import push_simulator
from carom.envs.pushing import pushing_task
from carom.scenes.pushing import OWN
from carom.train.policy import Policy
from carom.train.push_trials import PushTrials, still_policy, try_in_simulator
from carom.train.pushing import PRESETS, STEPS, PushingTraining, train_pushing

TRIALS = 400
ARM_SEEDS = 3  #: at most, of trainings that take long
#: (setting, method); SAC where its updates are worth their time
TRAINED = (("planar-cube", "ppo"), ("planar-cube", "sac"), ("arm-cube", "ppo"), ("planar-t", "ppo"), ("arm-t", "ppo"))
APART = 100_003  #: between the seed of a training and that of its trials


def _settings(o: Options) -> dict[str, Any]:
    presets = {algorithm: preset.stated() for algorithm, preset in PRESETS.items()}
    return {"seed": o.seed, "trials": TRIALS, "presets": presets, "steps": STEPS}


def jobs(draws: int) -> list[tuple[str, str, int]]:
    """(setting, method, seed), every setting with the first seed before the second."""
    trained = [
        (setting, method, draw)
        for draw in range(draws)
        for setting, method in TRAINED
        if setting.startswith("planar") or draw < ARM_SEEDS
    ]
    return [*((setting, "stands-still", 0) for setting in OWN), *trained]


def _work(o: Options) -> Work:
    return [("/".join(map(str, job)), partial(_piece, *job, o)) for job in jobs(o.draws)]


def _piece(setting: str, method: str, draw: int, o: Options) -> Rows:
    """One policy: trained, or its training resumed; then tried in the simulator that it was trained in."""
    task = pushing_task(setting)
    simulator = push_simulator(task.scene, threads=1)
    rows: Rows = []

    def add(metric: str, value: float) -> None:
        rows.append({"setting": setting, "method": method, "metric": metric, "value": value})

    if method == "stands-still":
        policy = still_policy(task)
    else:
        folder = o.out / "push-learning" / fingerprint(_settings(o))
        name = f"{setting}-{method}-{draw}"
        policy, seconds = _trained(setting, method, o.seed + draw, folder / name, o)
        add("training-minutes", seconds["cpu"] / 60)
        add("transitions", float(policy.made_by["transitions"]))
    found: PushTrials = try_in_simulator(policy, task, simulator, trials=TRIALS, seed=APART * (o.seed + draw + 1))
    rate = found.rate()
    for metric, value in (
        ("success-rate", rate.value),
        ("success-rate-low", rate.low),
        ("success-rate-high", rate.high),
    ):
        add(metric, value)
    add("reached-rate", float(found.reached.mean()))
    return rows


def _trained(setting: str, method: str, seed: int, folder: Path, o: Options) -> tuple[Policy, dict[str, float]]:
    """A policy and the seconds that its training took, which a kill does not lose."""
    times = folder.with_suffix(".json")
    training = PushingTraining(method, seed=seed)
    policy = train_pushing(pushing_task(setting), folder, training, times=times, progress=o.progress)
    if not times.is_file():
        write_text(times, json.dumps({"cpu": float("nan")}))
    return policy, dict(json.loads(times.read_text()))


def _notes(o: Options) -> tuple[str, ...]:
    return (
        "Policies of pushes (appendix VIII-B of the real-sim-real paper) in MuJoCo, tried where they were trained, "
        f"{TRIALS} times each, from starts and to goals that they have not seen. success-rate: at the end of the "
        "episode the block lies within 2 cm of its goal (T: 3 cm and 15 degrees), and nothing has left; reached-rate: "
        "it was there at some time. In brackets: 95 %, the wider of the trials' interval (Wilson) and that of the mean "
        "over seeds (Student). stands-still: a robot that does nothing.",
        "training-minutes: processor time of one core, environment and updates together; n: seeds.",
    )


BENCHMARK = Benchmark(
    "push-learning",
    draws=5,
    settings=_settings,
    work=_work,
    notes=_notes,
    rows=lambda values: summarise(widened(values)),
)
