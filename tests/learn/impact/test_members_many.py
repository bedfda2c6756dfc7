"""Hundreds of strikes: what is judged by some of them, and what is taken together."""

from __future__ import annotations

import numpy as np

from carom.engines.contact_frames import contact_frames
from carom.learn.impact.members import ENOUGH, _some, outcomes, plausible_members
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
