"""`carom evaluate` on pushes: both splits, every predictor, a report; wrong options refused."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from recorded_pushes import poses_folder

from carom.core.errors import CaromError
from carom.identify.pushes import Tuning, tune
from carom.recipes import evaluate_pushes, evaluating_pushes, refuse_for_pushes, shows_pushes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return poses_folder(tmp_path_factory.mktemp("pushes") / "poses", 4)


def test_half_is_learned_from_at_random_and_in_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating_pushes, "tune", partial(tune, tuning=Tuning(budget=60)))
    found = evaluate_pushes(folder, folder, out=tmp_path / "out", threads=1)
    assert found.counts == (("at random", 2, 2), ("in time", 2, 2))
    by_name = {(s.split, s.method): s for s in found.scores}
    assert len(by_name) == 10
    for split in ("at random", "in time"):
        assert by_name[split, "carom"].share < 0.5 * by_name[split, "stays-put"].share
    page = (tmp_path / "out" / "report.html").read_text()
    assert "quasi-static" in page
    assert "identify" in page


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    assert shows_pushes(folder)
    assert not shows_pushes(tmp_path / "nothing")
    with pytest.raises(CaromError, match="--settle: for strikes; these are recordings of pushes"):
        refuse_for_pushes(["--settle"])
    with pytest.raises(CaromError, match=r"expected 2 pushes or more to learn from and one to predict; it has 4"):
        evaluate_pushes(folder, folder, count=4, out=tmp_path / "out")
