"""`carom demo`: the main job end to end on a built-in stand-in reality, small enough for a few minutes on two cores."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.hybrid.model import HybridModel
from carom.plan import StrikeSpace, plan_strike, strike_space
from carom.reality import StandIn, sample_commands, standin
from carom.recipes.adapting import adapt
from carom.recipes.bases import BASE, BaseOptions
from carom.recipes.evaluating import CompareOptions, EvaluateResult, Exam, Page, exam_of, take
from carom.recipes.next_steps import after_demo
from carom.recipes.plan_page import plan_figures
from carom.recordings import read
from carom.report import Section, Text
from carom.state import Array

SETTING, SHAPE = "nylon-low", "semi-cylinder"
TRAIN, TEST = 10, 60  #: strikes
SAMPLES, STEPS = 12_288, 1500  #: simulated impacts per teacher, training steps: a tenth of the usual
WANTED = (0.35, 0.4, 0.7)  #: a strike (place, deflection, speed, in their ranges) whose end is the pose asked for
EXECUTIONS = 5
MODEL = "model"  #: folder of the corrected model that the demo leaves
METHODS: Sequence[str] | None = None  #: that are compared; None: all
SPEED = (0.2, 0.8)  #: [m/s] as the recorded strikes had


def demo(out: str | Path = "out/demo", *, seed: int = 0, progress: Progress = silent) -> EvaluateResult:
    """Strike a stand-in ten times, distil, identify, correct, predict sixty more strikes, plan one and carry it out.

    The corrected model stays in `out/model`, for `plan`, `predict` and `train`.
    """
    place = Path(out)
    reality = standin(SETTING, SHAPE, seed=seed)
    rng = np.random.default_rng(seed)
    folders = {}
    for number, (name, count) in enumerate((("train", TRAIN), ("test", TEST))):
        commands = sample_commands(reality.shape, count, rng)
        folders[name] = place / name
        if not (folders[name] / "recordings.yaml").is_file():
            reality.execute(commands, folders[name], seed=seed + number)
        progress("record strikes of the stand-in", number + 1, 2)
    exam = exam_of(
        folders["train"],
        folders["test"],
        place,
        bases=BaseOptions(samples=SAMPLES, steps=STEPS),
        comparison=CompareOptions(),
        seed=seed,
        threads=0,
        progress=progress,
    )
    made = adapt(place / BASE, folders["train"], place / MODEL, seed=seed, progress=progress)
    if made.hybrid is None:
        raise CaromError(f"{folders['train']}: no strike of the stand-in slides; delete {place} and start anew")
    space = strike_space(made.hybrid.scene, np.zeros(3), speed=SPEED)
    wanted = reality.truth(space.commands(np.array([WANTED])), seed=seed, scatter=False).rest[0]
    steps = after_demo(place, place / MODEL, wanted)
    page = Page(
        "Carom demo",
        f"The reality here is a **stand-in** ({SETTING}, {SHAPE}): rigid impact with friction and speed-dependent "
        "restitution, a mass off centre, a compliant striker, scatter, and a simulated motion capture. It is not "
        "MuJoCo, and it is not a laboratory either.",
        more=partial(_planned, made.hybrid, space, wanted, reality, place, seed, progress),
        steps=steps,
    )
    title = "demo: ten strikes of a stand-in reality to learn from"
    result = take(exam, place, title=title, page=page, methods=METHODS, progress=progress)
    return replace(result, model=place / MODEL)


def _planned(
    hybrid: HybridModel,
    space: StrikeSpace,
    wanted: Array,
    reality: StandIn,
    out: Path,
    seed: int,
    progress: Progress,
    exam: Exam,
) -> list[Section]:
    """A strike planned in the hybrid simulator, carried out five times on the stand-in, and pictured."""
    simulator = hybrid.simulator("hybrid")
    progress("plan a strike", 0, 2)
    plan = plan_strike(simulator, space, wanted, method="cma", seed=seed)
    progress("plan a strike", 1, 2)
    executed = []
    for number in range(EXECUTIONS):
        folder = out / "executed" / f"{number}"
        shutil.rmtree(folder, ignore_errors=True)
        executed.append(read(reality.execute(plan.commands, folder, seed=seed + 100 + number)))
    progress("plan a strike", 2, 2)
    told = (
        f"The hybrid simulator (learned impact, then sliding with friction {hybrid.sliding.friction:.3f} on a pressure "
        f"patch) was asked for the strike that brings the block to x {wanted[0]:.3f} m, y {wanted[1]:.3f} m, yaw "
        f"{wanted[2]:.2f} rad, a pose that the stand-in can reach. The strike was then carried out {EXECUTIONS} times "
        "on the stand-in, each time with its own scatter."
    )
    return [Text("Planned and carried out", (told,)), *plan_figures(plan, simulator, executed)]
