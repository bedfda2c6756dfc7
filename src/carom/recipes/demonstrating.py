"""`carom demo`: the main job end to end on a built-in stand-in reality, small enough for a few minutes on two cores."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np

from carom.core.progress import Progress, silent
from carom.hybrid import make_hybrid
from carom.plan import plan_strike, strike_space
from carom.reality import StandIn, sample_commands, standin
from carom.recipes.bases import BaseOptions
from carom.recipes.evaluating import CompareOptions, EvaluateResult, Exam, Page, exam_of, take
from carom.recipes.plan_page import plan_figures
from carom.recordings import read
from carom.report import Section, Text

SETTING, SHAPE = "nylon-low", "semi-cylinder"
TRAIN, TEST = 10, 60  #: strikes
SAMPLES, STEPS = 12_288, 1500  #: simulated impacts per teacher, training steps: a tenth of the usual
STUDENT_STEPS = 1500
WANTED = (0.35, 0.4, 0.7)  #: a strike (place, deflection, speed, in their ranges) whose end is the pose asked for
EXECUTIONS = 5
SPEED = (0.2, 0.8)  #: [m/s] as the recorded strikes had


def demo(out: str | Path = "out/demo", *, seed: int = 0, progress: Progress = silent) -> EvaluateResult:
    """Strike a stand-in ten times, distil, identify, correct, predict sixty more strikes, plan one and carry it out."""
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
    page = Page(
        "Carom demo",
        f"The reality here is a **stand-in** ({SETTING}, {SHAPE}): rigid impact with friction and speed-dependent "
        "restitution, a mass off centre, a compliant striker, scatter, and a simulated motion capture. It is not "
        "MuJoCo, and it is not a laboratory either.",
        more=partial(_planned, reality, place, seed, progress),
    )
    title = "demo: ten strikes of a stand-in reality to learn from"
    return take(exam, place, title=title, page=page, progress=progress)


def _planned(reality: StandIn, out: Path, seed: int, progress: Progress, exam: Exam) -> list[Section]:
    """A strike planned in the hybrid simulator, carried out five times on the stand-in, and pictured."""
    progress("plan a strike", 0, 3)
    lesson = exam.lesson
    hybrid = make_hybrid(
        lesson.bases,
        lesson.train,
        exam.recordings,
        fixed=lesson.fixed,
        slides=lesson.slides,
        seed=seed,
        steps=STUDENT_STEPS,
    )
    simulator = hybrid.simulator("hybrid")
    space = strike_space(hybrid.scene, np.zeros(3), speed=SPEED)
    progress("plan a strike", 1, 3)
    wanted = reality.truth(space.commands(np.array([WANTED])), seed=seed, scatter=False).rest[0]
    plan = plan_strike(simulator, space, wanted, method="cma", seed=seed)
    progress("plan a strike", 2, 3)
    executed = []
    for number in range(EXECUTIONS):
        folder = out / "executed" / f"{number}"
        shutil.rmtree(folder, ignore_errors=True)
        executed.append(read(reality.execute(plan.commands, folder, seed=seed + 100 + number)))
    progress("plan a strike", 3, 3)
    told = (
        f"The hybrid simulator (learned impact, then sliding with friction {hybrid.sliding.friction:.3f} on a pressure "
        f"patch) was asked for the strike that brings the block to x {wanted[0]:.3f} m, y {wanted[1]:.3f} m, yaw "
        f"{wanted[2]:.2f} rad, a pose that the stand-in can reach. The strike was then carried out {EXECUTIONS} times "
        "on the stand-in, each time with its own scatter."
    )
    return [Text("Planned and carried out", (told,)), *plan_figures(plan, simulator, executed)]
