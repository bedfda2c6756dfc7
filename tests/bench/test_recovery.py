"""Simulated tosses with known parameters, and the benchmark that looks for them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.bench import recovery, run_benchmark
from carom.bench.recovery import RANGES, UNSEEN, truth_of
from carom.bench.simulated_tosses import NOISE, toss
from carom.identify.tosses.result import identify_motions
from carom.identify.tosses.search import Budget, How

SMALL = Budget(first=1, sides=2, last=1, population=4)


def poses(tossed):
    """Positions [N T, 3] and turns of all samples."""
    trajectories = tossed.recordings.trajectories
    position = np.concatenate([t.position_world["cube"] for t in trajectories])
    quaternion = np.concatenate([t.quaternion_world["cube"] for t in trajectories])
    return position, Rotation.from_quat(quaternion[:, [1, 2, 3, 0]])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of one small trial: its folder, its results, and the progress it told."""
    out, told = tmp_path_factory.mktemp("recovery"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "TOSSES", 3)
        patch.setattr(recovery, "identify_motions", partial(identify_motions, how=How(budget=SMALL)))
        results = run_benchmark("recovery", draws=1, out=out, threads=1, progress=lambda *done: told.append(done))
    return out, results, told


def test_truths_are_within_their_ranges_and_reproducible():
    for trial in range(50):
        truth = truth_of(trial, 0)
        assert truth == truth_of(trial, 0)
        assert list(truth) == list(RANGES)
        for name, (low, high, _) in RANGES.items():
            assert low <= truth[name] <= high, name


def test_every_trial_and_every_seed_has_a_truth_of_its_own():
    for name in RANGES:
        drawn = [truth_of(trial, seed)[name] for seed in range(2) for trial in range(10)]
        assert len(set(drawn)) == 20, name


def test_tosses_are_the_same_for_the_same_seed():
    truth = truth_of(0, 0)
    one, again, other = (toss(3, truth, seed=seed, samples=30) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.sides, again.sides)
    np.testing.assert_array_equal(poses(one)[0], poses(again)[0])
    np.testing.assert_array_equal(poses(one)[1].as_quat(), poses(again)[1].as_quat())
    assert (poses(one)[0] != poses(other)[0]).any()


def test_samples_are_as_noisy_as_stated():
    truth = truth_of(0, 0)
    (position, turn), (exact, exact_turn) = (poses(toss(6, truth, seed=1, noise=n)) for n in (NOISE, (0.0, 0.0)))
    np.testing.assert_allclose(np.std(position - exact, axis=0), NOISE[0], rtol=0.15)
    np.testing.assert_allclose(np.std((turn * exact_turn.inv()).as_rotvec(), axis=0), NOISE[1], rtol=0.15)


def test_nothing_is_written_by_a_toss(tmp_path):
    tossed = toss(2, truth_of(0, 0), seed=1, samples=30, folder=tmp_path / "tosses")
    assert len(tossed.recordings.trajectories) == len(tossed.sides) == 2
    assert not list(tmp_path.iterdir())


def test_every_parameter_gets_its_rows(finished):
    _, results, told = finished
    rows = {(row.setting, row.metric): row for row in results.rows}
    for name in RANGES:
        assert rows[name, "identified"].mean in (0.0, 1.0)
        assert rows[name, "error-percent"].mean >= 0
        assert rows[name, "interval-percent"].mean > 0
        if name in ("gravity", "length_scale"):  # their defaults would do
            assert (name, "within-5-percent") not in rows
        else:
            assert (rows[name, "within-5-percent"].mean == 1) == (rows[name, "error-percent"].mean < 5)
    assert {row.setting for row in results.rows} == {*RANGES, UNSEEN}
    assert {(row.method, row.n) for row in results.rows} == {("carom-cma", 1)}
    assert told == [("pieces", 1, 1)]
    assert results.command == "carom bench recovery --draws 1"


def test_the_mass_is_refused(finished):
    _, results, _ = finished
    assert [(row.metric, row.mean) for row in results.rows if row.setting == UNSEEN] == [("refused", 1.0)]


def test_a_second_run_takes_the_pieces_of_the_first(finished, monkeypatch):
    out, results, _ = finished

    def must_not_run(*_):
        raise AssertionError("a finished trial was run again")

    monkeypatch.setattr(recovery, "TOSSES", 3)
    monkeypatch.setattr(recovery, "_trial", must_not_run)
    again = run_benchmark("recovery", draws=1, out=out, threads=1)
    assert [(r.setting, r.metric, r.mean) for r in again.rows] == [(r.setting, r.metric, r.mean) for r in results.rows]
    assert again.seconds == pytest.approx(results.seconds)
    for changed in ({"seed": 1}, {"draws": 2}):  # other settings, and a trial that is still to do
        with pytest.raises(AssertionError, match="run again"):
            run_benchmark("recovery", **{"draws": 1, **changed}, out=out, threads=1)
