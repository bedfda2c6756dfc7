"""How recorded strikes are split: at random, and in time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from carom.bench.robot_hits import EARLY, LATE, TRAIN, _Split
from carom.core.errors import CaromError
from carom.state import Impacts, Strikes


def impacts(count: int) -> Impacts:
    """Strikes whose files are not in order."""
    zero = np.zeros((count, 3))
    names = tuple(f"hit_{i:03d}.csv" for i in np.random.default_rng(1).permutation(count))
    return Impacts(Strikes(zero, zero, zero, zero), zero, zero, names)


def test_late_strikes_are_predicted_from_early_ones() -> None:
    train, test = _Split(late=True)(impacts(110), 0, 3)
    assert len(train) == TRAIN
    assert len(test) == LATE
    assert max(train.names) < f"hit_{EARLY:03d}.csv" <= min(test.names)
    assert _Split(late=True)(impacts(110), 0, 4)[0].names != train.names


def test_nothing_that_is_learned_from_is_predicted_and_curves_share_their_test() -> None:
    found = {n: _Split(n)(impacts(110), 0, 0) for n in (3, 5, TRAIN, 30)}
    for n, (train, test) in found.items():
        assert len(train) == n
        assert not set(train.names) & set(test.names)
    assert found[3][1].names == found[TRAIN][1].names


def test_settings_have_names_and_too_few_strikes_are_refused() -> None:
    assert [_Split(*s).setting(Path("lab/D1")) for s in ((10,), (10, True), (3,))] == ["D1", "D1-late", "D1, n = 3"]
    with pytest.raises(CaromError, match="45 usable strikes are too few"):
        _Split(late=True)(impacts(45), 0, 0)
