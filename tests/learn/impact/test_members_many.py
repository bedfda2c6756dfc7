"""Hundreds of strikes: what is judged by some of them, and what is taken together."""

from __future__ import annotations

import tracemalloc

import numpy as np
import torch

from carom.engines.contact_frames import contact_frames
from carom.learn.impact.members import ENOUGH, TOGETHER, _some, outcomes, plausible_members
from carom.learn.impact.process import Points, Process, covariance, learn
from carom.learn.impact.rigid import RigidTeacher
from carom.learn.impact.sample import sample_strikes
from carom.scenes.strike import builtin

SQUARE = builtin("square")


def test_members_are_judged_by_some_of_many_strikes_and_as_sharply() -> None:
    teacher = RigidTeacher(SQUARE)
    frames = contact_frames(SQUARE, sample_strikes(SQUARE, 3 * ENOUGH, np.random.default_rng(0)))
    local = np.random.default_rng(1).normal(size=(3 * ENOUGH, 3))
    few, some, share = _some(frames, local)
    assert len(few) == len(some) == ENOUGH
    assert share == 3.0
    np.testing.assert_array_equal(some[[0, -1]], local[[0, -1]])
    np.testing.assert_array_equal(few.lever[-1], frames.lever[-1])
    same, all_of_them, one = _some(frames.first(ENOUGH), local[:ENOUGH])
    assert one == 1.0
    assert len(same) == len(all_of_them) == ENOUGH
    true = {p.name: p.default for p in teacher.parameters}
    values = np.array([list(true.values())])
    said = outcomes(teacher, frames, values)[0]
    members = plausible_members(teacher, frames, said, fixed={}, seed=0)
    error = np.abs(members.weights @ members.values - values[0])
    width = np.array([p.high - p.low for p in teacher.parameters])
    assert (error < 0.25 * width).all()


def test_members_are_asked_some_at_a_time_and_say_the_same() -> None:
    asked: list[int] = []

    class Counted(RigidTeacher):
        def outcome(self, frames, values):  # type: ignore[no-untyped-def]
            asked.append(values[..., 0].numel())
            return super().outcome(frames, values)

    frames = contact_frames(SQUARE, sample_strikes(SQUARE, 300, np.random.default_rng(0)))
    teacher = Counted(SQUARE)
    low, high = (np.array([getattr(p, end) for p in teacher.parameters]) for end in ("low", "high"))
    values = low + (high - low) * np.random.default_rng(1).random((60, len(low)))
    found = outcomes(teacher, frames, values)
    assert sum(asked) == 60 * 300
    assert max(asked) <= TOGETHER
    whole = RigidTeacher(SQUARE).outcome(frames, torch.as_tensor(values)[:, None].expand(-1, 300, -1))
    np.testing.assert_array_equal(found, whole.numpy())


def _points(count: int) -> tuple[Points, np.ndarray]:
    rng = np.random.default_rng(2)
    mean, columns = rng.normal(size=(count, 3)), rng.normal(size=(count, 7))
    points = Points(mean, 0.01 * rng.normal(size=(64, count, 3)), columns, np.zeros((count, 3, 3)))
    return points, mean + 0.02 * rng.normal(size=(count, 3))


def test_gains_offsets_and_members_add_up() -> None:
    points, _ = _points(5)
    gained, moved, shared = Process(0.03, 0.0, gain=0.2), Process(0.03, 0.0, offset=0.3), Process(0.03, 2.0)
    flat, deviation = points.mean.ravel(), points.deviation.reshape(64, -1)
    np.testing.assert_allclose(covariance(gained, points, points), 0.04 * np.outer(flat, flat))
    np.testing.assert_allclose(covariance(moved, points, points), 0.09 * np.kron(np.ones((5, 5)), np.eye(3)))
    np.testing.assert_allclose(covariance(shared, points, points), 2 * deviation.T @ deviation)


def test_learning_from_many_strikes_holds_few_matrices_at_a_time() -> None:
    points, outcome = _points(200)
    process, matrix = Process(0.03, 1.0, gain=0.1, offset=0.1, offset_smooth=0.1), 8 * 600**2
    tracemalloc.start()
    try:
        learn(process, points, outcome, np.full((200, 3), 1e-4))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4 * matrix
