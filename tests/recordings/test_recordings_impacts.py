"""Impacts found in recordings whose answer is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from synthetic_recordings import Strike, quaternion_of, toss, two_discs

from carom.recordings import Recordings, approaches, end_pose, find_impacts, resting_pose, segment, strike_impacts
from carom.recordings.geometry import lowest_point, planar_gap
from carom.recordings.impacts import segment as segmenting
from carom.recordings.sampled import moves_again
from carom.scenes.shapes import Body, Shape

SEEDS = range(12)


def folder_of(*trajectories):
    return Recordings(trajectories[0].path.parent, trajectories[0].bodies, tuple(trajectories))


@pytest.mark.parametrize("rate", [120.0, 200.0, 500.0])
@pytest.mark.parametrize("lost", [0.0, 0.08])
def test_clean_strike_is_recovered_within_its_own_errors(rate, lost):
    strike = Strike(rate=rate, lost=lost)
    pulls, times, approach = [], [], []
    for seed in SEEDS:
        (impact,) = find_impacts(strike.trajectory(seed))
        assert impact.quality == "good", impact.reason
        assert (impact.target, impact.striker, impact.kind) == ("box", "tool", "strike")
        truth = [*strike.true_velocity(impact.post.time - strike.contact), strike.spin]
        pulls.append((impact.post.planar_velocity - truth) / impact.post.planar_velocity_std)
        times.append(impact.time - strike.contact)
        assert impact.settle < 3 / rate + 0.005, "contact is instantaneous here: nothing to wait for"
        error = impact.striker_pre.velocity_world[:2] - strike.striker_velocity
        approach.append(error / impact.striker_pre.velocity_std[:2])
    assert np.abs(times).max() < 1 / rate
    assert np.sqrt(np.mean(np.square(pulls))) < 1.6
    assert np.abs(np.mean(pulls)) < 1.0
    assert np.sqrt(np.mean(np.square(approach))) < 1.6


def test_beating_clocks_choose_thirty_milliseconds():
    strike = Strike(clock=0.35, noise=1e-4)
    for seed in SEEDS:
        (impact,) = find_impacts(strike.trajectory(seed))
        assert impact.timing_jitter > 0.1
        assert impact.settle == 0.030
        assert impact.span == 0.12
        truth = strike.true_velocity(impact.post.time - strike.contact)
        assert impact.post.planar_velocity[:2] == pytest.approx(truth, abs=4 * impact.post.velocity_std[:2].max())


def test_explicit_settle_is_kept():
    strike = Strike()
    (impact,) = find_impacts(strike.trajectory(), settle=0.05, span=0.1)
    assert (impact.settle, impact.span) == (0.05, 0.1)
    assert impact.post.time == pytest.approx(impact.time + 0.05)
    late = strike.true_velocity(impact.post.time - strike.contact)
    assert impact.post.planar_velocity[:2] == pytest.approx(late, abs=0.02)


def test_velocity_is_that_of_the_centre_of_mass():
    strike = Strike(com=(0.03, -0.02, 0.0), spin=4.0, noise=2e-5, yaw_noise=2e-5)
    (impact,) = find_impacts(strike.trajectory())
    truth = strike.true_velocity(impact.post.time - strike.contact)
    assert impact.post.planar_velocity[:2] == pytest.approx(truth, abs=0.01)
    frame = truth - 4.0 * np.array([0.02, 0.03])  # what the frame's own velocity would be, near enough
    assert np.linalg.norm(impact.post.planar_velocity[:2] - frame) > 0.1


def test_unreadable_strikes_say_why():
    strike = Strike()
    whole = strike.trajectory()
    assert find_impacts(whole.until(strike.contact - 0.01)) == ()
    (short,) = find_impacts(whole.until(strike.contact + 0.045))
    assert short.quality in ("doubtful", "good")
    far = replace(whole, position_world={**whole.position_world, "tool": whole.position_world["tool"] + [0.4, 0, 0]})
    (alone,) = find_impacts(far)
    assert (alone.quality, alone.striker) == ("unusable", None)
    assert "no body was near" in alone.reason
    impacts, skipped = strike_impacts(folder_of(whole, replace(far, name="far.csv")))
    assert impacts.names == ("hit_000.csv",)
    assert skipped[0][0] == "far.csv"
    assert "no body was near" in skipped[0][1]


@pytest.mark.parametrize("orientation", [True, False])
def test_two_moving_discs(orientation):
    for seed in range(5):
        trajectory, true = two_discs(seed=seed, orientation=orientation)
        (impact,) = find_impacts(trajectory)
        assert impact.quality == "good", impact.reason
        assert impact.time == pytest.approx(0.5013, abs=0.003)
        for measured, truth in (
            (impact.pre, true["b pre"]),
            (impact.post, true["b post"]),
            (impact.striker_pre, true["a pre"]),
        ):
            assert measured.planar_velocity[:2] == pytest.approx(truth, abs=0.006)
            assert np.isfinite(measured.planar_velocity[2]) == orientation
    impacts, skipped = strike_impacts(folder_of(trajectory))
    assert (len(impacts), skipped) == (1, ())


def test_approach_is_the_same_with_the_contact_cut_away():
    for seed in range(4):
        strike = Strike(noise=5e-5)
        whole = strike.trajectory(seed)
        seen, names, none_left_out = approaches(folder_of(whole))
        cut, cut_names, cut_left_out = approaches(folder_of(whole.until(strike.contact - 0.004)))
        assert names == cut_names == ("hit_000.csv",)
        assert none_left_out == cut_left_out == ()
        assert cut.striker_pose[0, :2] == pytest.approx(seen.striker_pose[0, :2], abs=0.003)
        assert cut.striker_velocity[0, :2] == pytest.approx(seen.striker_velocity[0, :2], abs=0.03)
        assert cut.target_pose[0] == pytest.approx(seen.target_pose[0], abs=1e-3)
        assert cut.target_velocity[0] == pytest.approx(np.zeros(3))
        gap = planar_gap(whole.bodies["box"], cut.target_pose, whole.bodies["tool"], cut.striker_pose)
        assert gap == pytest.approx([0.0], abs=1e-4)


def test_approach_does_not_see_what_follows_the_contact():
    strike = Strike(noise=5e-5)
    whole = strike.trajectory()
    later = whole.time > strike.contact + 0.05
    tool = whole.position_world["tool"].copy()
    tool[later] += 1.0
    changed = replace(whole, position_world={**whole.position_world, "tool": tool})
    first, second = approaches(folder_of(whole))[0], approaches(folder_of(changed))[0]
    assert np.array_equal(first.striker_pose, second.striker_pose)
    assert np.array_equal(first.striker_velocity, second.striker_velocity)


def test_approach_of_two_moving_discs_cut_before_contact():
    trajectory, true = two_discs(seed=3)
    cut, names, _ = approaches(folder_of(trajectory.until(0.495)))
    assert names == ("pair_00.csv",)
    assert cut.striker_velocity[0, :2] == pytest.approx(true["a pre"], abs=0.006)
    assert cut.target_velocity[0, :2] == pytest.approx(true["b pre"], abs=0.006)


def test_no_approach_without_a_meeting():
    whole = Strike().trajectory()
    away = replace(whole, position_world={**whole.position_world, "tool": whole.position_world["tool"] + [1.0, 0, 0]})
    strikes, names, skipped = approaches(folder_of(away.until(0.29)))
    assert len(strikes) == 0
    assert names == ()
    assert "no body comes to touch 'box'" in skipped[0][1]


def test_toss_bounces_where_it_should():
    trajectory = toss(seed=1)
    impacts = [i for i in find_impacts(trajectory) if i.kind == "ground"]
    fall = np.sqrt(2 * (trajectory.position_world["cube"][0, 2] - 0.05) / 9.81)
    first = impacts[0]
    assert first.time == pytest.approx(fall, abs=0.003)
    assert first.pre.velocity_world[2] == pytest.approx(-9.81 * fall, abs=0.03)
    assert first.post.velocity_world[2] == pytest.approx(0.4 * 9.81 * fall, abs=0.05)
    assert impacts[1].time == pytest.approx(fall * 1.8, abs=0.004)
    assert np.isfinite(first.pre.angular_velocity_world).all()


def test_a_toss_from_a_tracked_hand_is_still_a_toss():
    trajectory = toss(seed=1)
    hand = Body("hand", "arm")
    path = np.tile([0.0, 0.0, 0.4], (len(trajectory), 1))
    held = replace(
        trajectory,
        position_world={**trajectory.position_world, "hand": path},
        quaternion_world={**trajectory.quaternion_world, "hand": None},
        bodies={**trajectory.bodies, "hand": hand},
    )
    assert [i.time for i in find_impacts(held)] == [i.time for i in find_impacts(trajectory)]
    assert {i.kind for i in find_impacts(held)} == {"ground"}


def test_find_impacts_survives_what_trackers_do():
    rng = np.random.default_rng(5)
    for seed in range(40):
        trajectory = Strike(lost=float(rng.choice([0.0, 0.3, 0.95])), rate=float(rng.choice([30, 200]))).trajectory(
            seed
        )
        paths = {name: path.copy() for name, path in trajectory.position_world.items()}
        for path in paths.values():
            defect = rng.integers(5)
            if defect == 0:
                path[:] = np.nan
            elif defect == 1:
                path[:] = path[0]
            elif defect == 2:
                path[rng.integers(len(path)) :] = np.nan
            elif defect == 3:
                path[rng.integers(len(path))] += 1.0
        broken = replace(trajectory, position_world=paths)
        for impact in find_impacts(broken):
            assert impact.quality in ("good", "doubtful", "unusable")
            assert impact.quality == "good" or impact.reason
        strikes, left_out = strike_impacts(folder_of(broken))
        assert len(strikes) + len(left_out) == 1
        assert np.isfinite(strikes.post[:, :2]).all()


def test_phases_follow_each_other_without_gaps():
    trajectory = Strike().trajectory()
    phases = segment(trajectory, "box")
    assert [p.kind for p in phases][-4:] == ["approach", "impact", "slide", "rest"]
    for phase, following in pairwise(phases):
        assert following.start == pytest.approx(phase.end)
    assert phases[0].start == trajectory.time[0]
    assert phases[-1].end == trajectory.time[-1]
    kinds = [p.kind for p in segment(toss(), "cube")]
    assert kinds[:3] == ["flight", "impact", "flight"]
    assert kinds[-1] == "rest"


def test_resting_place_is_the_first_rest_not_the_end():
    strike = Strike(duration=2.0)
    trajectory = strike.trajectory()
    expected = 0.5 * np.linalg.norm(strike.velocity) * np.array(strike.velocity) / strike.deceleration
    picked_up = trajectory.position_world["box"].copy()
    later = trajectory.time > 1.25
    picked_up[later] += np.outer(trajectory.time[later] - 1.25, [0.5, 0.5, 0.0])
    moved = replace(trajectory, position_world={**trajectory.position_world, "box": picked_up})
    (impact,) = find_impacts(moved)
    assert resting_pose(moved, impact)[:2] == pytest.approx(expected, abs=0.002)
    assert resting_pose(trajectory.until(0.7), impact) is None


def creeping(*, pace: float, decay: float, duration: float = 2.5):
    """A strike after which the box creeps on and turns, ever more slowly; where it ends [3]."""
    strike = Strike(duration=duration, spin=0.0)
    trajectory = strike.trajectory()
    stop = strike.contact + float(np.linalg.norm(strike.velocity)) / strike.deceleration
    late = np.clip(trajectory.time - stop, 0.0, None)
    way = decay * (1 - np.exp(-late / decay))
    path = trajectory.position_world["box"] + np.outer(pace * way, [0.0, 1.0, 0.0])
    turn = quaternion_of(10 * pace * way)
    moved = replace(
        trajectory,
        position_world={**trajectory.position_world, "box": path},
        quaternion_world={**trajectory.quaternion_world, "box": turn},
    )
    end = 0.5 * np.linalg.norm(strike.velocity) * np.array(strike.velocity) / strike.deceleration
    return moved, np.array([end[0], end[1] + pace * way[-1], 10 * pace * way[-1]])


def test_a_block_that_creeps_is_not_at_rest():
    moved, expected = creeping(pace=0.02, decay=0.2)  # 4 mm and 2.3 degrees further than where it seems to stop
    (impact,) = find_impacts(moved)
    rest = resting_pose(moved, impact)
    assert rest[:2] == pytest.approx(expected[:2], abs=5e-4)
    assert rest[2] == pytest.approx(expected[2], abs=0.005)
    assert end_pose(moved, impact) == pytest.approx(rest)
    endless, expected = creeping(pace=0.02, decay=50.0)
    (impact,) = find_impacts(endless)
    assert resting_pose(endless, impact) is None
    assert end_pose(endless, impact)[:2] == pytest.approx(expected[:2], abs=5e-4)


def test_rest_where_samples_are_lost():
    strike = Strike(duration=2.0)
    trajectory = strike.trajectory()
    expected = 0.5 * np.linalg.norm(strike.velocity) * np.array(strike.velocity) / strike.deceleration
    for first, last in ((225, 320), (250, 345), (230, 395)):  # it lies from row 208 on
        path, turn = trajectory.position_world["box"].copy(), trajectory.quaternion_world["box"].copy()
        path[first:last], turn[first:last] = np.nan, np.nan
        lost = replace(
            trajectory,
            position_world={**trajectory.position_world, "box": path},
            quaternion_world={**trajectory.quaternion_world, "box": turn},
        )
        (impact,) = find_impacts(lost)
        assert resting_pose(lost, impact)[:2] == pytest.approx(expected, abs=2e-4), (first, last)


def test_a_short_rest_after_a_long_creep():
    """Nothing but 0.12 s of rest are recorded, after 0.4 s of creeping."""
    strike = Strike(duration=1.57, spin=0.0)
    trajectory = strike.trajectory()
    late = np.clip(trajectory.time - 1.04, 0.0, 0.4)
    path = trajectory.position_world["box"] + np.outer(0.01 * late, [0.0, 1.0, 0.0])
    moved = replace(trajectory, position_world={**trajectory.position_world, "box": path})
    (impact,) = find_impacts(moved)
    expected = 0.5 * np.linalg.norm(strike.velocity) * np.array(strike.velocity) / strike.deceleration
    assert resting_pose(moved, impact)[:2] == pytest.approx([expected[0], expected[1] + 0.004], abs=2e-4)


def test_noise_does_not_move_a_block_again():
    """A block that is hardly struck: a tenth of its top speed is less than what noise makes."""
    for seed in range(20):
        weak = Strike(striker_velocity=(0.0, 0.1), velocity=(0.0, 0.12), spin=0.0, noise=1.5e-4, duration=0.9)
        trajectory = weak.trajectory(seed)
        com = trajectory.planar_com("box")
        assert moves_again(trajectory.time, com, trajectory.period, 0.4) == trajectory.time[-1], seed


def test_gap_between_outlines():
    box = Body("box", "target", Shape("box", size=(0.2, 0.2, 0.1)))
    disc = Body("disc", "striker", Shape("disc", radius=0.05))
    pose = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, np.pi / 4], [0.0, 0.0, 0.0]])
    other = np.array([[0.0, 0.2, 0.0], [0.0, 0.2, 0.0], [0.0, 0.14, 0.0]])
    assert planar_gap(box, pose, disc, other) == pytest.approx([0.05, 0.2 - 0.1 * np.sqrt(2) - 0.05, -0.01], abs=1e-9)
    assert planar_gap(disc, other, box, pose) == pytest.approx(planar_gap(box, pose, disc, other))
    second = np.array([[0.25, 0.0, 0.0], [0.0, 0.3, 0.0], [0.15, 0.0, 0.0]])
    between = planar_gap(box, pose, box, second)
    assert between[0] == pytest.approx(0.05)
    assert between[1] == pytest.approx(0.3 - 0.1 - 0.1 * np.sqrt(2))
    assert between[2] < 0


def test_lowest_point_of_a_turned_box():
    shape = Shape("box", size=(0.2, 0.2, 0.2))
    half = np.pi / 8
    quaternion = np.array([[1.0, 0, 0, 0], [np.cos(half), np.sin(half), 0, 0]])
    low = lowest_point(shape, np.array([[0, 0, 0.5], [0, 0, 0.5]]), quaternion)
    assert low == pytest.approx([0.4, 0.5 - 0.1 * np.sqrt(2)])


def test_a_recording_is_searched_once_for_each_setting(monkeypatch):
    searched = []

    def count(trajectory, *settings):
        searched.append((trajectory, settings))
        return search(trajectory, *settings)

    search = segmenting._search
    monkeypatch.setattr(segmenting, "_search", count)
    trajectory = Strike().trajectory()
    found = find_impacts(trajectory)
    assert find_impacts(trajectory) is found
    segment(trajectory, "box")
    strike_impacts(folder_of(trajectory))
    approaches(folder_of(trajectory))
    assert len(searched) == 1
    find_impacts(trajectory, settle=0.03)
    find_impacts(trajectory, settle=0.03, span=0.06)
    assert [settings for _, settings in searched] == [(None, 0.12), (0.03, 0.12), (0.03, 0.06)]
    other = replace(trajectory, name="other.csv")
    assert find_impacts(other)[0].trajectory == "other.csv", "a copy does not inherit what was found"
    assert find_impacts(trajectory) is found
    assert len(searched) == 4


@pytest.mark.parametrize("count", [6, 12, 24])
@pytest.mark.parametrize("body", ["box", "tool"])
def test_a_pose_that_is_frozen_at_contact_gives_no_outcome(body, count):
    """A box that is written at its place for a tenth of a second, then sent on from where it is, had a good outcome."""
    whole = Strike().trajectory()
    first = int(np.searchsorted(whole.time, Strike().contact)) - 4
    path, turn = whole.position_world[body].copy(), whole.quaternion_world[body]
    path[first : first + count] = path[first]
    turns = {**whole.quaternion_world}
    if turn is not None:
        turns[body] = turn.copy()
        turns[body][first : first + count] = turn[first]
    frozen = replace(whole, position_world={**whole.position_world, body: path}, quaternion_world=turns)
    (impact,) = find_impacts(frozen)
    assert (impact.quality, impact.reason) == ("unusable", f"the pose of '{body}' is frozen when they meet")
    assert find_impacts(whole)[0].quality == "good"
