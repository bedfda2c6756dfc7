"""Where the time of a training goes, at a tiny size and with engines whose time is known."""

from time import sleep

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

from carom.bench.training_speed import training_seconds
from carom.scenes.strike import builtin

SLEEP = 0.05  #: [s] that a strike of the slow engine takes
VECTOR_STEPS = 4
WHOLE = 200_000


class Engine:
    """Blocks stay where they are."""

    scene = builtin("semi-cylinder")

    def __init__(self, wait):
        self.wait = wait

    def rollout(self, initial, duration):
        sleep(self.wait)
        self.rest, self.status = initial.target_pose, np.zeros(len(initial), dtype=np.int64)
        return self


class Model:
    def simulator(self, name, *, threads):
        return Engine(SLEEP if name == "mujoco" else 0.0)


def test_the_engine_and_the_rest_add_up_and_stand_for_the_whole_training():
    measured = 128 * VECTOR_STEPS
    rows = training_seconds(Model(), measured=measured, whole=WHOLE, seed=0, threads=1, progress=lambda *_: None)
    found = {(row["method"], row["setting"].removeprefix("training, ")): row["value"] for row in rows}
    for name in ("mujoco", "hybrid"):
        parts = [found[name, part] for part in ("engine", "rules", "updates", "rest")]
        assert min(parts) > 0
        assert sum(parts) == pytest.approx(found[name, "all"])
    assert found["mujoco", "engine"] >= SLEEP * WHOLE / 128  # it slept that long, in each of as many vector steps
    assert found["hybrid", "engine"] < found["mujoco", "engine"]
