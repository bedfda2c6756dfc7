"""Policies that push one cube so that another reaches its goal: by backpropagation through a simulator, and by SAC."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from carom.bench.benchmark import Options
from carom.bench.graph_models import SCENES, SCENES_SECONDS, Calibrated, calibrated, of_scenes
from carom.bench.graph_plans import in_mujoco, tasks_of, two_cubes
from carom.core.work import Rows
from carom.envs.push import REACHED, observation, push_of
from carom.learn.graph import GraphEngine
from carom.plan.push_tasks import PushTasks
from carom.state import Array

LEARNED, TESTED = 2000, 200  #: tasks
STEPS = "simulated steps"
LEARNERS = ("backpropagation", "sac")
WANTED = 0.9  #: success rate
UPDATES, BATCH, ASKED = 100, 64, 10  #: of backpropagation: at most, tasks in each, and after how many it is tried
EPISODES = 20_000  #: of SAC: at most; as many in each step, and tried as often


def policies(o: Options, draw: int, method: str) -> Rows:
    """Simulated steps, all in frames of the recordings' rate, until nine of ten goals are reached in MuJoCo."""
    found = calibrated(o, draw)
    tasks = tasks_of(found, LEARNED + TESTED, o.seed + draw)
    trained, tested = tasks[np.arange(LEARNED)], tasks[np.arange(LEARNED, LEARNED + TESTED)]
    frames, seed = round(tasks.duration / found.period), o.seed + draw
    if method == "sac":
        start = perf_counter()
        return _rows(method, _sac(found, trained, tested, frames, seed), perf_counter() - start)
    engine = GraphEngine(of_scenes(o, draw), two_cubes(found), tuple(found.contact))
    start = perf_counter()
    rows = _rows(method, _backpropagated(found, engine, trained, tested, frames, seed), perf_counter() - start)
    steps = next(r["value"] for r in rows if r["metric"] == STEPS)
    learnt = sum(SCENES.values()) * _frames_of_scenes(found)
    return [*rows, _row(method, f"{STEPS}, and those that the simulator learned from", steps + learnt)]


def _success(found: Calibrated, tested: PushTasks, push: Array) -> float:
    return float((tested.misses(in_mujoco(found), push, found.contact) < REACHED).mean())


def _backpropagated(
    found: Calibrated, engine: GraphEngine, trained: PushTasks, tested: PushTasks, frames: int, seed: int
) -> list[tuple[float, float]]:
    from carom.train.pushes import PushPolicy, train_pushes

    curve: list[tuple[float, float]] = []

    def enough(steps: int, policy: PushPolicy) -> bool:
        if round(steps / (BATCH * frames)) % ASKED:
            return False
        curve.append((steps, _success(found, tested, policy.push(tested))))
        return curve[-1][1] >= WANTED

    train_pushes(engine, trained, values=found.contact, updates=UPDATES, batch=BATCH, seed=seed, enough=enough)
    return curve


def _sac(found: Calibrated, trained: PushTasks, tested: PushTasks, frames: int, seed: int) -> list[tuple[float, float]]:
    """SAC of Stable-Baselines3 in the calibrated MuJoCo itself, which is what it is tried in."""
    from stable_baselines3 import SAC

    from carom.envs.sb3 import PushVecEnv

    env = PushVecEnv(in_mujoco(found, 1), trained, BATCH, values=found.contact)
    settings: dict[str, Any] = {"learning_starts": 1000, "batch_size": 256, "gradient_steps": 64, "gamma": 0.0}
    model = SAC("MlpPolicy", env, policy_kwargs={"net_arch": [64, 64]}, seed=seed, device="cpu", **settings)
    curve: list[tuple[float, float]] = []
    for episodes in range(BATCH * ASKED, EPISODES + 1, BATCH * ASKED):
        model.learn(BATCH * ASKED, reset_num_timesteps=False)
        action, _ = model.predict(observation(tested), deterministic=True)
        curve.append((episodes * frames, _success(found, tested, push_of(action))))
        if curve[-1][1] >= WANTED:
            break
    return curve


def _rows(method: str, curve: list[tuple[float, float]], seconds: float) -> Rows:
    reached = [steps for steps, success in curve if success >= WANTED]
    figures = {
        "success in MuJoCo, best": max(success for _, success in curve),
        STEPS: reached[0] if reached else curve[-1][0],
        "seconds": seconds,
        f"got to {WANTED:g}": float(bool(reached)),
    }
    return [_row(method, name, float(value)) for name, value in figures.items()]


def _row(method: str, metric: str, value: float) -> dict[str, Any]:
    return {"setting": "policy", "method": method, "metric": metric, "value": value}


def _frames_of_scenes(found: Calibrated) -> int:
    return round(SCENES_SECONDS / found.period)
