"""The residual on transitions: recovers a known correction, is none for noise and for blocks at rest."""

from __future__ import annotations

import numpy as np
import pytest

from carom.core.errors import CaromError, ModelError
from carom.engines.pushing import push_simulator
from carom.learn.transition import (
    CorrectedPushes,
    Moves,
    Residual,
    fit_residual,
    load_residual,
    moves_of,
    save_residual,
)
from carom.scenes.pushing import push_scene

SCENE = push_scene("planar-cube")


def drawn(count=400, seed=0):
    rng = np.random.default_rng(seed)
    return Moves(rng.normal(size=(count, 10)), rng.uniform(0.3, 1.0, count), rng.uniform(-3, 3, count)), rng


def truth(moves):
    x = moves.columns
    wave = np.column_stack([np.sin(x[:, 0]), 0.5 * x[:, 7], np.full(len(x), 0.3)])
    return 1e-3 * moves.share[:, None] * wave


def test_a_known_correction_is_found_again():
    moves, rng = drawn()
    found = fit_residual(moves, truth(moves) + rng.normal(scale=1e-4, size=(400, 3)), np.arange(400) // 20)
    new, _ = drawn(seed=1)
    left = found(new) - truth(new)
    assert found.explained > 0.8
    assert (left**2).sum() < 0.15 * (truth(new) ** 2).sum()


def test_noise_is_not_learned():
    moves, rng = drawn()
    found = fit_residual(moves, rng.normal(scale=1e-3, size=(400, 3)), np.arange(400) // 20)
    assert not len(found.centres)
    assert not found(moves).any()
    with pytest.raises(CaromError, match="one row for each of 400 moves"):
        fit_residual(moves, np.zeros((3, 3)), np.zeros(400, dtype=int))


def test_a_file_gives_the_same_and_a_changed_one_is_refused(tmp_path):
    moves, _ = drawn()
    found = fit_residual(moves, truth(moves), np.arange(400) // 20)
    path = tmp_path / "residual.safetensors"
    digest = save_residual(path, found)
    np.testing.assert_array_equal(load_residual(path, digest)(moves), found(moves))
    path.write_bytes(path.read_bytes()[:-8] + b"\0" * 8)
    with pytest.raises(ModelError):
        load_residual(path, digest)


def test_a_resting_block_stays_and_a_pushed_one_is_corrected():
    constant = Residual(np.zeros((1, 10)), np.array([[0.0, 0.0, 0.0], [1e-3, 0.0, 0.0]]), 1.0, 1.0)
    plain = push_simulator(SCENE)
    start = SCENE.placed(np.array([[0.1, 0.0, 0.4]] * 2), np.array([[0.2, 0.2], [0.052, 0.0]]))
    controls = np.array([[0.2, 0.2], [0.09, 0.0]])  # the first tool stays away, the second pushes
    before = start.position[:, 0, :2]
    for _ in range(3):
        ends = []
        for simulator in (plain, CorrectedPushes(plain, constant)):
            run = simulator.open(start)
            ends.append(run.step(controls))
        moves = moves_of(SCENE, start, ends[0])
        shift = ends[1].position[:, 0, :2] - ends[0].position[:, 0, :2]
        np.testing.assert_allclose(np.linalg.norm(shift, axis=1), 1e-3 * moves.share, atol=1e-9)
        start = ends[1]
    assert np.linalg.norm(start.position[0, 0, :2] - before[0]) < 1e-4
    assert moves.share[1] > 0.9
