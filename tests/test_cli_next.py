"""What a command says to do next: a command that exists, with options that exist and the user's own paths.

Those that depend on what was found are tested in tests/recipes/test_next_steps.py.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from synthetic_recordings import Strike, toss

from carom import cli, recipes
from carom.recordings import Recordings, write

LAB = Path("my lab") / "[/x]"
COMMANDS = typer.main.get_command(cli.app).commands
PREDICTED = {"a.csv": {"rest": [0.1234, -0.2, 0.5]}}


def results():
    made = {
        "adapt": recipes.AdaptResult(LAB, None, object(), {}, recordings=LAB),
        "distill": recipes.DistillResult(LAB, None, "square"),
        "identify strikes": recipes.IdentifyResult("strikes", (), recordings=LAB),
        "identify bodies": recipes.IdentifyResult("free bodies", (), recordings=LAB),
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


def test_policies_are_tried_on_a_stand_in():
    """It has a block of the policy's own shape."""
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    trained = recipes.TrainResult(LAB, SimpleNamespace(made_by={}), None, "")
    name, values = parsed(trained.next_commands()[0])
    assert (name, values["on"]) == ("rollout", "nylon-low")
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
