"""What a command says to do next: a command that exists, with options that exist and the user's own paths."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from synthetic_recordings import Strike, toss

from carom import cli, recipes
from carom.recipes import planning
from carom.recordings import Recordings, write

LAB = Path("my lab") / "[/x]"
COMMANDS = typer.main.get_command(cli.app).commands
PREDICTED = {"a.csv": {"rest": [0.1234, -0.2, 0.5]}}


def planned(export, **search):
    wanted = np.array([0.1, 0.02]) if search.pop("any_yaw", False) else np.array([0.1, 0.02, 0.4])
    start = (0.0, -0.1, 0.5)
    line = planning._with_export(LAB, wanted, start, recipes.SearchOptions(**search), 3)
    return recipes.PlanResult(None, None, None, (), export, line)


def results():
    made = {
        "adapt": recipes.AdaptResult(LAB, None, object(), {}, recordings=LAB),
        "distill": recipes.DistillResult(LAB, None, "square"),
        "evaluate": recipes.EvaluateResult(None, None, (), LAB, "", LAB),
        "identify strikes": recipes.IdentifyResult("strikes", (), recordings=LAB),
        "identify bodies": recipes.IdentifyResult("free bodies", (), recordings=LAB),
        "identify into files": recipes.IdentifyResult(
            "free bodies", (), (LAB / "calibrated.xml", LAB / "parameters.yaml"), recordings=LAB
        ),
        "plan": planned(None),
        "plan with options": planned(
            None, any_yaw=True, method="cem", robust=True, speed=(0.3, 0.6), tolerance=(0.02, 0.2), budget=50
        ),
        "predict": recipes.PredictResult(PREDICTED, model=LAB),
        "suggest": recipes.SuggestResult(LAB, (), False, 0),
    }
    return [pytest.param(result, id=name) for name, result in made.items()]


def parsed(line):
    """The parameters of a command as the command line reads them; raises if it would refuse them."""
    words = shlex.split(line)
    assert words[0] == "carom"
    return words[1], COMMANDS[words[1]].make_context(words[1], words[2:]).params


@pytest.mark.parametrize("result", results())
def test_the_next_command_can_be_typed(result):
    lines = result.next_commands()
    assert lines
    for line in lines:
        _, values = parsed(line)
        assert str(LAB) in [
            str(v) for value in values.values() for v in (value if isinstance(value, list) else [value])
        ]


def test_the_next_plan_is_the_same_plan():
    (line,) = planned(None, any_yaw=True, method="cem", simulator="mujoco", robust=False, budget=50).next_commands()
    _, values = parsed(line)
    assert values["target"][:2] == (0.1, 0.02)
    assert values["any_yaw"] is True
    assert values["start"] == (0.0, -0.1, 0.5)
    assert (values["method"], values["simulator"], values["robust"]) == ("cem", "mujoco", False)
    assert (values["budget"], values["seed"]) == (50, 3)
    assert values["export"] == Path("out/strike")


def test_policies_are_tried_on_what_they_were_trained_in(tmp_path):
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    model = tmp_path / "square block"
    model.mkdir()
    trained = recipes.TrainResult(LAB, SimpleNamespace(made_by={"folder": str(model)}))
    name, values = parsed(trained.next_commands()[0])
    assert name == "rollout"
    assert values["on"] == str(model)  # a stand-in's block has another shape
    assert parsed(recipes.TrainResult(LAB, SimpleNamespace(made_by={})).next_commands()[0])[1]["on"] == "nylon-low"
    tried = recipes.RolloutResult(LAB, "nylon-low", (), None)
    assert parsed(tried.next_commands()[0])[0] == "rollout"


def test_check_knows_what_comes_next(tmp_path):
    strike, tossed = Strike(duration=1.5).trajectory(0), toss(seed=0)
    for name, trajectory in (("hits", strike), ("tosses", tossed)):
        write(tmp_path / name, Recordings(tmp_path / name, trajectory.bodies, (trajectory,)))
    assert parsed(recipes.check(tmp_path / "hits").next_commands()[0])[0] == "adapt"
    assert parsed(recipes.check(tmp_path / "tosses").next_commands()[0])[0] == "identify"


def test_every_result_says_what_comes_next():
    """All but the data set, which is read in Python."""
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    made = [getattr(recipes, name) for name in recipes.__all__ if name.endswith("Result") and name != "Result"]
    silent = [kind for kind in made if kind.next_commands is recipes.Result.next_commands]
    assert silent == [recipes.ScaleResult]
