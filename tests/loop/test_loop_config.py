"""The loop's file: what it may say, and the one line that each mistake gets."""

from __future__ import annotations

import pytest

from carom.core.errors import CaromError
from carom.loop import loop, read_config

GOOD = "format: carom-loop/1\ntask: strikes\nscene: square\nreality: resin-low\n"


def written(tmp_path, text):
    path = tmp_path / "loop.yaml"
    path.write_text(text)
    return path


def test_defaults_are_those_of_the_docs(tmp_path):
    config = read_config(written(tmp_path, GOOD))
    assert (config.rounds, config.recordings, config.method, config.estimator) == (4, 15, "infogap", "conditional")
    assert not config.visual
    assert not config.residual


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "rounds: 0\n", "line 5: rounds: input should be greater than or equal to 1, got 0"),
        (GOOD + "roundz: 2\n", "line 5: unknown key 'roundz' (did you mean 'rounds'?)"),
        (GOOD + "method: infogab\n", "line 5: method: expected 'infogap', 'ensemble', 'random'"),
        (GOOD + "tuning: {method: cma}\n", "'tuning' is for pushes; leave it out of a loop on strikes"),
        (GOOD + "training: {steps: 3}\n", "line 5: training.steps: input should be greater than or equal to 64"),
        (GOOD + "rounds: .nan\n", "line 5: rounds: input should be a finite number"),
        (GOOD + "rounds: 2\nrounds: 3\n", "rounds"),
        ("format: carom-loop/2\n", "expected format: carom-loop/1, got 'carom-loop/2'"),
        ("[]\n", "expected a mapping that starts with 'format: carom-loop/1'"),
        ("format: carom-loop/1\ntask: strikes\nreality: person\n", "key 'scene' is missing; add it"),
    ],
)
def test_a_mistake_in_the_file(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(CaromError) as error:
        read_config(path)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "recordings: 2\n", "recordings: a loop on strikes needs 3 in each round or more, got 2"),
        (GOOD + "visual: true\n", "visual: pictures are compared in loops on pushes only"),
        (GOOD.replace("resin-low", "resin"), "reality: expected one of resin-high"),
        (GOOD.replace("square", "squar"), "scene: a stand-in for strikes has one of semi-cylinder, square, triangle"),
        (
            GOOD.replace("square", "squar").replace("resin-low", "person"),
            "unknown scene 'squar' (did you mean 'square'",
        ),
        (GOOD.replace("resin-low", "no_module:Robot"), "reality: no_module:Robot: no module 'no_module'"),
        (GOOD.replace("resin-low", "json:JSONDecoder"), "reality: json:JSONDecoder: JSONDecoder is no Reality"),
    ],
)
def test_a_mistake_that_only_the_task_knows_leaves_nothing_behind(tmp_path, text, said):
    with pytest.raises(CaromError) as error:
        loop(written(tmp_path, text), tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()
