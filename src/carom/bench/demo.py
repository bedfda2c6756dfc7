"""`carom demo`: the main job end to end on a built-in stand-in reality, small enough for a few minutes on two cores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from carom.evaluate.folders import Evaluation, evaluate_folders
from carom.loop import sample_commands, standin

SETTING, SHAPE = "nylon-low", "semi-cylinder"
TRAIN, TEST = 10, 60  #: strikes
SAMPLES, STEPS = 12_288, 1500  #: simulated impacts per teacher, training steps: a tenth of the usual


def run_demo(out: Path, *, seed: int, progress: Callable[[str, int, int], None]) -> Evaluation:
    """Strike a stand-in ten times, distil, identify, correct, predict sixty more strikes, and write the report."""
    reality = standin(SETTING, SHAPE, seed=seed)
    rng = np.random.default_rng(seed)
    folders = {}
    for number, (name, count) in enumerate((("train", TRAIN), ("test", TEST))):
        commands = sample_commands(reality.shape, count, rng)
        folders[name] = out / name
        if not (folders[name] / "recordings.yaml").is_file():
            reality.execute(commands, folders[name], seed=seed + number)
        progress("record strikes of the stand-in", number + 1, 2)
    return evaluate_folders(
        folders["train"], folders["test"], model=None, out=out, samples=SAMPLES, count=None, settle=None, seed=seed,
        threads=0, methods=None, progress=progress, steps=STEPS, title="Carom demo",
        note=f"The reality here is a **stand-in** ({SETTING}, {SHAPE}): rigid impact with friction and speed-dependent "
        "restitution, a mass off centre, a compliant striker, scatter, and a simulated motion capture. It is not "
        "MuJoCo, and it is not a laboratory either.",
    )  # fmt: skip
