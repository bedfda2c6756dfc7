"""What to do next, by what was found: the last section of every report, with the user's own paths."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from carom.compare import Score
from carom.compare.ends import recorded_ends
from carom.identify.result import Identification
from carom.plan import Plan
from carom.recipes.result import command
from carom.recordings import Recordings
from carom.report import Step
from carom.state import Array, Impacts, rotate, wrap_angle

POOR = 0.5  #: share of strikes within 10 % below which a model is not yet one to plan with
SURE = 0.8  #: share of outcomes inside of 90 % intervals below which these are too narrow
GOOD = ("identified", "given")  #: verdicts that ask for nothing


def commands_of(steps: Sequence[Step]) -> tuple[str, ...]:
    """What to type for these steps, a line each."""
    return tuple(line for step in steps for line in step.command.splitlines() if line)


def model_for(recordings: Path) -> Path:
    """Where the model of a folder of recordings goes, unless the user says it."""
    return Path("models") / (recordings.resolve().name or "lab")


def after_identifying_bodies(
    identification: Identification, recordings: Path, out: Path, *, own: Path | None = None, tested: bool
) -> tuple[Step, ...]:
    """After free bodies were identified into `out`; `own` is the folder of these bodies, where there are several."""
    parameters = out / "parameters.yaml" if own is None else out
    steps = [*_doubtful(identification, recordings, parameters)]
    if not tested and identification.training.strikes > 1:
        again = command("identify", recordings, "--fit", identification.training.strikes // 2, "--out", out)
        steps.append(Step("No recording was left to test the result. Fit fewer, and the others test it.", again))
    look = shlex.join(["python", "-m", "mujoco.viewer", "--mjcf", str((own or out) / "calibrated.xml")])
    data = command("scale", recordings, "--params", parameters, "--count", 3000, "--out", out / "data")
    return (
        *steps,
        Step("Look at the calibrated scene in MuJoCo, or use the file in a simulation of your own.", look),
        Step("Simulate thousands of trajectories like the recorded ones, to learn from.", data),
    )


def after_identifying_strikes(
    identification: Identification, recordings: Path, parameters: Path, strikes: int
) -> tuple[Step, ...]:
    """After the contact of strikes was identified."""
    model = model_for(recordings)
    steps = [*_doubtful(identification, recordings, parameters)]
    steps.append(
        Step(
            "Make a simulator that is corrected where these parameters do not suffice, and predicts with intervals.",
            command("adapt", recordings, "--out", model),
        )
    )
    if strikes >= 4:
        words = "See how well other methods do with these strikes: half of them to learn from, the others to predict."
        halves = command("evaluate", "--train", recordings, "--test", recordings, "--count", strikes // 2)
        steps.append(Step(words, halves))
    return tuple(steps)


def _doubtful(identification: Identification, recordings: Path, parameters: Path) -> list[Step]:
    """What to record where parameters are in doubt."""
    open_ones = [e.name.replace("_", " ") for e in identification.estimates if e.verdict not in GOOD]
    if not open_ones:
        return [Step("All parameters were identified: use them.")]
    words = f"Not settled: {', '.join(open_ones)}. Ask which recordings would tell most about them, and add those."
    return [Step(words, command("suggest", recordings, "--params", parameters))]


def after_evaluation(
    scores: Sequence[Score], train: Path, test: Path, base: Path | None, reached: Array | None
) -> tuple[Step, ...]:
    """After methods were compared; `reached` is a pose [3] that a recorded strike brought the target to."""
    steps: list[Step] = []
    own = next((s for s in scores if s.method == "carom" and s.prediction is not None), None)
    if own is not None and own.metrics["accuracy@0.1"] < POOR:
        words = "Fewer than half of the strikes are predicted within 10 %. See first what is wrong with the recordings."
        steps += [
            Step(words, command("check", train)),
            Step("Then add those that tell most.", command("suggest", train)),
        ]
    if own is not None and own.coverage.get("coverage@0.9", 1.0) < SURE:
        steps.append(
            Step("Carom's 90 % intervals hold less than that here: the test strikes are unlike those it learned from.")
        )
    if own is not None and (better := _better(scores, own)):
        steps.append(Step(f"On these strikes `{better}` does better than Carom; more strikes may change that."))
    model = model_for(train)
    given = () if base is None else (base,)
    steps.append(Step("Make the simulator that this page tried.", command("adapt", *given, train, "--out", model)))
    steps.append(Step("Predict strikes with it.", command("predict", model, test)))
    return (*steps, *_plan(model, reached))


def _better(scores: Sequence[Score], own: Score) -> str:
    """The method that is clearly better than Carom, if there is one."""
    best = max(scores, key=lambda s: np.nan_to_num(s.metrics["accuracy@0.1"], nan=-1.0))
    return best.method if best.metrics["accuracy@0.1"] > own.metrics["accuracy@0.1"] + 0.02 else ""


def _plan(model: Path, reached: Array | None) -> tuple[Step, ...]:
    if reached is None:
        return ()
    words = (
        "Plan a strike; this pose is one that a recorded strike has reached. With `--export` it is written for a robot."
    )
    return (Step(words, command("plan", model, "--target", *numbers(reached), "--report", "plan.html")),)


def after_demo(out: Path, model: Path, wanted: Array) -> tuple[Step, ...]:
    """After the demo, which leaves recordings in `out` and a corrected model."""
    return (
        Step(
            "Go on with the demo's model: plan another strike.",
            command("plan", model, "--target", *numbers(wanted * [0.8, 0.8, 0.5]), "--report", out / "plan.html"),
        ),
        Step("Predict strikes with it.", command("predict", model, out / "test")),
        Step(
            "Look at the contact that the ten strikes show.",
            command("identify", out / "train", "--out", out / "identified"),
        ),
        Step(
            "Then with your own strikes: put a `recordings.yaml` and one CSV per strike into a folder "
            "(docs/recordings.md has every key), see whether it is understood, and make a model of your laboratory.",
            f"{command('check', 'lab/train')}\n{command('adapt', 'lab/train', '--out', 'models/lab')}",
        ),
    )


def after_planning(plan: Plan, model: Path, exported: Sequence[Path], asked: Sequence[object]) -> tuple[Step, ...]:
    """After a plan; `asked` are the options of the command besides the target."""
    again = ("plan", model, *asked)
    if not plan.reachable:
        return _out_of_reach(plan, model, again)
    steps = []
    unsure = np.isfinite(plan.rest_std).all() and float(np.hypot(*plan.rest_std[:2])) > plan.tolerance[0]
    if unsure or np.isinf(plan.rest_std).any():
        words = (
            "The model is unsure where this strike ends. Carry it out, add the recording to those the model was made "
            "from, and run `carom adapt` again."
        )
        steps.append(Step(words))
    if exported:
        place = exported[0].parent
        words = (
            f"Carry it out: the set-points for a robot are in `{place}`; for the joints of an arm, "
            f"`carom export {place} --arm ROBOT.xml` makes them. Record the strike."
        )
        steps.append(Step(words))
    else:
        words = "Write set-points for a robot, then carry the strike out and record it."
        steps.append(Step(words, command(*again, *target(plan.wanted), "--export", "out/strike")))
    words = "See whether the recording is good, and how well it was predicted. NEW is the folder you recorded into."
    steps.append(Step(words, f"{command('check', 'NEW')}\n{command('predict', model, 'NEW')}"))
    return tuple(steps)


def _out_of_reach(plan: Plan, model: Path, again: tuple[object, ...]) -> tuple[Step, ...]:
    words = "No single strike was found that gets there. Ask for the nearest pose that one strike reaches."
    steps = [Step(words, command(*again, *target(plan.rest)))]
    if np.isfinite(plan.wanted[2]) and plan.position_error <= plan.tolerance[0]:
        words = "The place can be reached, but not with this yaw. If any yaw will do:"
        steps.append(Step(words, command(*again, *target(plan.wanted), "--any-yaw")))
    onwards = command("plan", model, "--from", *numbers(plan.rest), *target(plan.wanted))
    steps.append(Step("Or get there with several strikes: from where the first one ends, plan the next.", onwards))
    words = "Or train a policy that strikes as often as it takes."
    steps.append(Step(words, command("train", "--model", model, "--out", Path("policies") / (model.name or "model"))))
    return tuple(steps)


def target(pose: Array) -> tuple[object, ...]:
    """The options that ask for a pose; a yaw that is not finite stands for any."""
    free = () if np.isfinite(pose[2]) else ("--any-yaw",)
    return ("--target", *numbers(np.nan_to_num(pose)), *free)


def numbers(pose: Array) -> tuple[str, ...]:
    """A pose as one types it: a tenth of a millimetre, a milliradian."""
    x, y, yaw = float(pose[0]), float(pose[1]), float(wrap_angle(pose[2]))
    return f"{x:.4f}", f"{y:.4f}", f"{yaw:.3f}"


def reached_pose(recordings: Recordings, impacts: Impacts) -> Array | None:
    """Where a middling recorded strike brought the target, seen from where it lay [3]; None without a strike."""
    if not len(impacts):
        return None
    ends, starts = recorded_ends(recordings, impacts).pose, impacts.strikes.target_pose
    way = rotate(ends[:, :2] - starts[:, :2], -starts[:, 2])
    moved = np.column_stack([way, wrap_angle(ends[:, 2] - starts[:, 2])])
    good = moved[np.isfinite(moved).all(axis=1)]
    if not len(good):
        return None
    far = np.linalg.norm(good[:, :2], axis=1)
    return np.asarray(good[np.argsort(far)[len(far) // 2]])
