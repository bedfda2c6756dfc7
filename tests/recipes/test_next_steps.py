"""What reports say to do next: it fits what was found, and every command is one that Carom takes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from carom.cli import app
from carom.compare import METHODS, Score
from carom.identify.result import Errors, Estimate, Identification, Verdict
from carom.learn.impact.adapted_model import Prediction
from carom.plan import Plan
from carom.recipes import next_steps
from carom.recipes.planning import SearchOptions, _asked
from carom.report import Step
from carom.state import StrikeCommands

LAB, OUT = Path("my lab/train"), Path("out dir")


def commands(steps: Sequence[Step]) -> list[list[str]]:
    """The words of all commands; those of Carom are parsed as the command line would."""
    found = [shlex.split(line) for step in steps for line in step.command.splitlines()]
    group: Any = typer.main.get_command(app)
    for words in found:
        if words[0] == "carom":
            group.commands[words[1]].make_context(words[1], words[2:])  # raises if it is not understood
    return found


def identification(*verdicts: Verdict) -> Identification:
    made = tuple(Estimate(f"p{i}", 1.0, "1", 0.5, 1.5, (0.0, 2.0), v, "") for i, v in enumerate(verdicts))
    errors = Errors(0.1, 0.05, 0.8, 10)
    return Identification("cma", "toss", made, errors, None, "", 10, 0, 1.0, 0)


def score(method: str = "carom", accuracy: float = 0.9, covers: float = 0.9) -> Score:
    metrics = {"accuracy@0.1": accuracy, "accuracy@0.05": 0.1, "median-relative-error": 0.1}
    nothing = np.zeros((1, 3))
    return Score(method, metrics, {"coverage@0.9": covers}, 1.0, np.zeros(1), Prediction(nothing, nothing, np.ones(1)))


def plan(rest: Sequence[float], wanted: Sequence[float], std: float = 0.001) -> Plan:
    strike = StrikeCommands(np.array([[0.0, 0.04]]), np.array([[0.0, -0.5]]), np.array([[0.1, 0.0, 0.0]]))
    ends = (np.array(wanted, dtype=float), np.array(rest, dtype=float), np.full(3, std))
    return Plan(strike, *ends, 0.0, 100, 1.0, (), (0.01, 0.1), "cma")


def test_what_is_not_identified_asks_for_recordings_that_tell_it() -> None:
    steps = next_steps.after_identifying_bodies(
        identification("identified", "not identifiable from these recordings"), LAB, OUT, tested=True
    )
    assert "p1" in steps[0].words
    assert "p0" not in steps[0].words
    assert commands(steps)[0] == ["carom", "suggest", "my lab/train", "--params", "out dir/parameters.yaml"]
    assert ["python", "-m", "mujoco.viewer", "--mjcf", "out dir/calibrated.xml"] in commands(steps)
    settled = next_steps.after_identifying_bodies(identification("identified", "given"), LAB, OUT, tested=False)
    assert not any("suggest" in words for words in commands(settled))
    assert commands(settled)[0] == ["carom", "identify", "my lab/train", "--fit", "5", "--out", "out dir"]


def test_groups_of_bodies_go_on_with_the_folder_of_all() -> None:
    one = identification("identified", "on a bound")
    one = replace(one, training=replace(one.training, strikes=1))
    steps = next_steps.after_identifying_bodies(one, LAB, OUT, own=OUT / "pair_00", tested=False)
    suggest, look, scale = commands(steps)  # a single recording can not be split
    assert suggest[-2:] == scale[3:5] == ["--params", "out dir"]
    assert look[-1] == "out dir/pair_00/calibrated.xml"


def test_identified_strikes_go_on_to_a_model() -> None:
    found = next_steps.after_identifying_strikes(identification("on a bound"), LAB, OUT / "parameters.yaml", 10)
    assert [words[1] for words in commands(found)] == ["suggest", "adapt", "evaluate"]
    assert commands(found)[1] == ["carom", "adapt", "my lab/train", "--out", "models/train"]
    few = next_steps.after_identifying_strikes(identification("identified"), LAB, OUT / "parameters.yaml", 2)
    assert [words[1] for words in commands(few)] == ["adapt"]


def test_a_comparison_goes_on_to_a_model_and_a_plan() -> None:
    reached = np.array([0.12, -0.03, 0.4])
    good = next_steps.after_evaluation([score("mean", 0.1), score()], LAB, Path("lab/test"), None, reached)
    assert commands(good) == [
        ["carom", "adapt", "my lab/train", "--out", "models/train"],
        ["carom", "predict", "models/train", "lab/test"],
        ["carom", "plan", "models/train", *["--target", "0.1200", "-0.0300", "0.400", "--report", "plan.html"]],
    ]
    own = next_steps.after_evaluation([score()], LAB, Path("lab/test"), Path("base"), None)
    assert commands(own)[0] == ["carom", "adapt", "base", "my lab/train", "--out", "models/train"]


def test_a_poor_model_is_not_planned_with_before_its_recordings_are_checked() -> None:
    poor = next_steps.after_evaluation([score("mean", 0.5), score(accuracy=0.2, covers=0.5)], LAB, LAB, None, None)
    assert [words[1] for words in commands(poor)] == ["check", "suggest", "adapt", "predict"]
    said = " ".join(step.words for step in poor)
    assert "`mean` does better than Carom" in said
    assert "intervals hold less" in said
    without = [replace(score(), prediction=None), score("mean")]
    assert [words[1] for words in commands(next_steps.after_evaluation(without, LAB, LAB, None, None))] == [
        "adapt",
        "predict",
    ]


def test_a_plan_goes_on_to_the_robot() -> None:
    found = plan([0.5, 0.3, 0.2], [0.5, 0.3, 0.2])
    model, asked = Path("models/lab"), _asked(SearchOptions(method="gradient", robust=True), (0.1, 0.0, 0.0), 7)
    first, *_ = commands(next_steps.after_planning(found, model, (), asked))
    assert first == [
        *("carom", "plan", "models/lab", "--from", "0.1", "0.0", "0.0", "--method", "gradient", "--robust"),
        *("--seed", "7"),
        *("--target", "0.5000", "0.3000", "0.200", "--export", "out/strike"),
    ]
    done = next_steps.after_planning(found, model, (Path("robot/strike.csv"),), ())
    assert "`robot`" in done[0].words
    assert not any("--export" in words for words in commands(done))
    assert "unsure" not in done[0].words
    unsure = next_steps.after_planning(plan([0.5, 0.3, 0.2], [0.5, 0.3, 0.2], std=0.05), model, (), ())
    assert "unsure" in unsure[0].words


def test_out_of_reach_asks_for_a_nearer_pose_or_more_strikes() -> None:
    far = plan([0.5, 0.3, 0.2 + 8 * np.pi], [1.5, 0.3, 0.2])
    steps = next_steps.after_planning(far, Path("models/lab"), (), ())
    nearest, onwards, policy = commands(steps)
    assert nearest[3:] == ["--target", "0.5000", "0.3000", "0.200"]  # the yaw within half a turn
    assert onwards[3:] == ["--from", "0.5000", "0.3000", "0.200", "--target", "1.5000", "0.3000", "0.200"]
    assert policy == ["carom", "train", "--model", "models/lab", "--out", "policies/lab"]
    turned = next_steps.after_planning(plan([1.5, 0.3, 1.2], [1.5, 0.3, 0.2]), Path("m"), (), ())
    assert commands(turned)[1][-1] == "--any-yaw"
    anyhow = next_steps.after_planning(plan([0.5, 0.3, 1.2], [1.5, 0.3, np.nan]), Path("m"), (), ())
    assert commands(anyhow)[1][-4:] == ["1.5000", "0.3000", "0.000", "--any-yaw"]


def test_the_demo_goes_on_with_its_model() -> None:
    steps = next_steps.after_demo(Path("out/demo"), Path("out/demo/model"), np.array([0.1, -0.2, 0.8]))
    assert commands(steps)[0][:3] == ["carom", "plan", "out/demo/model"]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is_in_a_line(name: str) -> None:
    assert 20 < len(METHODS[name].words) < 90
