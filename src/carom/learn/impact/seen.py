"""Strikes as the hypotheses that may explain them see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carom.engines.contact_frames import Frames, contact_frames, to_local
from carom.learn.impact.hypotheses import ALONE
from carom.learn.impact.members import Members, Teacher
from carom.learn.impact.process import Points, approach_axes, columns_of, points_of, told_by, without_teacher
from carom.learn.impact.rigid import ways_of
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

UNREAD = 1e4  #: variance of an outcome that is not learned from


@dataclass(frozen=True)
class Explanation:
    """A teacher and those of its parameters that remain plausible after the recorded strikes."""

    base: Teacher
    members: Members


class Seen:
    """Strikes as the hypotheses see them."""

    def __init__(self, scene: StrikeScene, strikes: Strikes, centre: Array | None = None) -> None:
        self.flat, self.frames = scene.striker.flat, contact_frames(scene, strikes)
        columns = columns_of(scene, self.frames, strikes)
        self.centre = columns.mean(axis=0) if centre is None else centre
        self.columns, self.axes = columns - self.centre, approach_axes(self.frames)


class Told(Seen):
    """The recorded strikes, with their outcomes in the contact's frame and in that of the approach."""

    def __init__(self, scene: StrikeScene, impacts: Impacts, odd: Sequence[str] = ()) -> None:
        super().__init__(scene, impacts.strikes)
        self.local = to_local(scene, self.frames, impacts.post)
        self.ahead = np.einsum("nij,nj->ni", self.axes, self.local)
        self.measured = measured_variance(scene, self.frames, impacts).reshape(-1, 3)
        self.fits = ~np.isin(impacts.names, odd)
        self.measured[~self.fits] = UNREAD


def points_by_teacher(explanations: Sequence[Explanation], strikes: Seen) -> dict[str, Points]:
    """Strikes as each teacher sees them, and as those see them who have none."""
    found = {ALONE: without_teacher(strikes.columns)}
    for e in explanations:
        chances, ways = ways_of(e.base, strikes.frames, e.members.values)
        if recorded := isinstance(strikes, Told):
            chances = told_by(chances, ways, strikes.local)
        found[e.base.teacher] = points_of(chances, ways, e.members.weights, strikes.columns, recorded=recorded)
    return found


def measured_variance(scene: StrikeScene, frames: Frames, impacts: Impacts) -> Array:
    """Variance of the outcomes from their measurement alone [3N], as shares of the approach speed squared."""
    std = impacts.post_std * np.array([1.0, 1.0, scene.gyration_radius]) / frames.speed[:, None]
    std[:, :2] = np.sqrt((std[:, :2] ** 2).mean(axis=1, keepdims=True))  # the frame's axes are not the world's
    return np.asarray(np.nan_to_num(std, nan=0.0) ** 2).ravel()


def world_std(scene: StrikeScene, frames: Frames, covariance: Array) -> Array:
    """Standard deviations in the world [N, 3] of outcomes with this covariance in the contact frame."""
    linear = np.einsum("nai,nab,nbi->ni", frames.axes, covariance[:, :2, :2], frames.axes)
    variance = np.concatenate([linear, covariance[:, 2:, 2] / scene.gyration_radius**2], axis=-1)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) * frames.speed[:, None])
