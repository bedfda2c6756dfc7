"""What `evaluate` makes and refuses before it compares, and what its table says."""

from __future__ import annotations

import pytest
from synthetic_recordings import Strike

from carom import recipes
from carom.compare import ABLATIONS, METHODS, method_words
from carom.core.errors import CaromError
from carom.recipes import evaluating
from carom.recipes.bases import BaseOptions
from carom.recordings import Recordings, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("lab") / "hits"
    hits = [Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), duration=1.5).trajectory(s) for s in range(6)]
    from dataclasses import replace

    named = tuple(replace(t, name=f"file_{i:02d}.csv") for i, t in enumerate(hits))
    write(place, Recordings(place, named[0].bodies, named))
    return place


def asked(folder, out, methods):
    comparison = recipes.CompareOptions(methods, count=4)
    options = {"bases": BaseOptions(), "comparison": comparison, "seed": 0, "threads": 1}
    return evaluating.exam_of(folder, folder, out, **options, progress=lambda *_: None)


def test_the_papers_model_is_made_only_where_it_is_asked_for(folder, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(evaluating, "paper_base", lambda *_: made.append("paper"))
    asked(folder, tmp_path, ["mean", "carom"])
    assert made == []
    asked(folder, tmp_path, ["mean", "clash-paper"])
    assert made == ["paper"]
    asked(folder, tmp_path, None)  # all methods
    assert made == ["paper", "paper"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["mean", "carm"]}, "unknown method 'carm' .did you mean 'carom'"),
        ({"count": 0}, "--count: expected 3 strikes or more to learn from, got 0"),
        ({"count": -1}, "got -1"),
    ],
)
def test_what_cannot_be_compared_is_refused_at_once(options, message):
    with pytest.raises(CaromError, match=message):
        recipes.CompareOptions(**options)


def test_every_method_is_explained():
    assert all(method_words(name) for name in (*METHODS, *ABLATIONS))
    scores = tuple(
        evaluating.Score(m, {"accuracy@0.1": 0.5, "accuracy@0.05": 0.2, "e": 0.1}, {}, 1.0, None, None) for m in METHODS
    )
    (table,) = recipes.EvaluateResult(None, None, scores, None, "title").tables()
    for method in METHODS:
        assert f"{method}: {method_words(method)}" in table.notes
    assert "note" not in table.columns  # nothing to say
    assert len({*map(len, table.rows), len(table.columns)}) == 1
