"""Methods side by side on a stand-in reality, small: every method runs, and knowing physics pays."""

import numpy as np
import pytest
from report_pages import downloads, good_page, next_commands, sections

from carom import recipes
from carom.compare import METHODS, Lesson, compare, method_words
from carom.compare.baselines import Rigid
from carom.core.errors import CaromError
from carom.learn import distill
from carom.learn.impact.distill import DistillOptions
from carom.reality import Effects, sample_commands, standin
from carom.recipes.bases import paper_base
from carom.recipes.strikes import usable_impacts
from carom.recordings import read, scene_of

QUICK = [m for m in METHODS if m not in ("mjx", "mujoco-cma")]


def quiet(*_):
    return None


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders of strikes and base models, made once."""
    out = tmp_path_factory.mktemp("evaluate")
    reality = standin("nylon-low", "square", seed=2)
    for name, count in (("train", 10), ("test", 30)):
        reality.execute(sample_commands(reality.shape, count, np.random.default_rng(len(name))), out / name, seed=count)
    scene = scene_of(read(out / "train"))
    distill(scene, out / "base", samples=4096, training=DistillOptions(steps=400))
    paper_base(scene, out, 4096, 0, 0, quiet)
    return out


def test_every_method_runs_and_carom_beats_what_knows_nothing(place):
    result = recipes.evaluate(
        place / "train",
        place / "test",
        out=place,
        bases=recipes.BaseOptions(samples=4096),
        comparison=recipes.CompareOptions(methods=QUICK),
    )
    scores = {s.method: s for s in result.scores}
    assert set(scores) == set(QUICK)
    assert all(s.prediction is not None for s in result.scores), [s.note for s in result.scores]
    error = {name: s.metrics["median-relative-error"] for name, s in scores.items()}
    assert error["carom"] < 0.5 * error["mujoco-default"]
    assert error["carom"] < error["scratch"]
    assert 0.7 < scores["carom"].coverage["coverage@0.9"] <= 1.0
    page = good_page(result.report)
    assert sections(page) == [
        "What this is",
        "Methods side by side",
        "Accuracy",
        "Predicted and measured outcomes",
        "Where and how it was struck",
        "Parameters",
        "Training of the base models",
        "What to do next",
    ]
    assert all(method_words(name).replace("'", "&#39;") in page for name in QUICK)
    held = downloads(page)["accuracy.csv"]
    assert {row[0]: float(row[1]) for row in held[1:]} == pytest.approx(
        {name: s.metrics["accuracy@0.1"] for name, s in scores.items()}, abs=1e-5
    )
    folders = [str(place / name) for name in ("base", "train")]
    assert ["carom", "adapt", *folders, "--out", "models/train"] in next_commands(page)


def test_a_method_that_cannot_run_gets_a_note(place):
    impacts = usable_impacts(read(place / "train"))
    lesson = Lesson(scene_of(read(place / "train")), impacts, bases=(), paper=None)
    (score,) = compare(lesson, impacts, methods=["clash-paper"])
    assert score.prediction is None
    assert "preset 'paper'" in score.note
    with pytest.raises(CaromError, match=r"unknown method 'caron' .did you mean 'carom'"):
        compare(lesson, impacts, methods=["caron"])


def test_rigid_impact_recovers_a_reality_without_effects(tmp_path):
    """The rigid baseline is exact where the reality is: it must find restitution and friction again."""
    reality = standin("resin-low", "square", seed=0, effects=Effects.none())
    reality.execute(sample_commands(reality.shape, 25, np.random.default_rng(1)), tmp_path / "r", seed=3)
    recordings = read(tmp_path / "r")
    impacts = usable_impacts(recordings)
    fit = Rigid(scene_of(recordings), impacts)
    assert abs(fit.restitution - 0.62) < 0.08
    assert abs(fit.friction - 0.289) < 0.1


def test_learning_and_testing_on_the_same_strikes_is_refused(place):
    with pytest.raises(CaromError, match="give --count so that some strikes are left to predict"):
        recipes.evaluate(place / "train", place / "train", out=place, bases=recipes.BaseOptions(samples=4096))
