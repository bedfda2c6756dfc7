"""A strike as a robot's set-points: within the limits as libfranka checks them, through the contact as commanded."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import carom
from carom.core.errors import CaromError
from carom.plan.export import (
    FR3,
    FRANKA,
    HOLD,
    PANDA,
    STEADY,
    CartesianLimits,
    StrikeMotion,
    strike_motion,
    write_motion,
)
from carom.state import rotate

DT = 1e-3
CONTACT = np.array([0.42, -0.13])
SPEEDS = (0.1, 0.25, 0.4, 0.7, 1.0, 1.3, 1.5)
DIRECTIONS = (0.0, 0.7, math.pi / 2, 2.5, math.pi, -1.1)


def heading(speed: float, angle: float) -> np.ndarray:
    return speed * np.array([math.cos(angle), math.sin(angle)])


def motion_of(speed: float, angle: float = 0.3, **options: Any) -> StrikeMotion:
    return strike_motion(CONTACT, heading(speed, angle), height=0.03, yaw=0.2, **options)


def differences(velocity: np.ndarray, dt: float = DT) -> tuple[np.ndarray, np.ndarray]:
    """Acceleration and jerk as a controller sees them, which rests before and after: a jump at either end counts."""
    rest = np.zeros((3, velocity.shape[1]))
    acceleration = np.diff(np.concatenate([rest, velocity, rest]), axis=0) / dt
    return np.linalg.norm(acceleration, axis=1), np.linalg.norm(np.diff(acceleration, axis=0), axis=1) / dt


def assert_within(motion: StrikeMotion, limits: CartesianLimits) -> None:
    acceleration, jerk = differences(motion.velocity, 1 / motion.rate)
    assert np.linalg.norm(motion.velocity, axis=1).max() <= limits.velocity * (1 + 1e-9)
    assert acceleration.max() <= limits.acceleration * (1 + 1e-9)
    assert jerk.max() <= limits.jerk * (1 + 1e-9)


@pytest.mark.parametrize("angle", DIRECTIONS)
@pytest.mark.parametrize("speed", SPEEDS)
def test_set_points_respect_the_limits_at_every_sample(speed: float, angle: float) -> None:
    motion = motion_of(speed, angle)
    assert_within(motion, FRANKA)
    acceleration, jerk = differences(motion.velocity)
    assert acceleration.max() > 0.5 * FRANKA.acceleration  # and they are used: the run-up is no longer than it must be
    assert jerk.max() > 0.4 * FRANKA.jerk


@settings(deadline=None, max_examples=60)
@given(
    speed=st.floats(0.001, 1.53),
    angle=st.floats(-math.pi, math.pi),
    acceleration=st.floats(0.5, 30.0),
    jerk=st.floats(20.0, 10_000.0),
    rate=st.sampled_from([250.0, 500.0, 1000.0, 1234.5]),
    settle=st.floats(0.0, 0.05),
)
def test_any_limits_and_rates(
    speed: float, angle: float, acceleration: float, jerk: float, rate: float, settle: float
) -> None:
    limits = CartesianLimits(1.6, acceleration, jerk)
    motion = motion_of(speed, angle, limits=limits, rate=rate, settle=settle)
    assert_within(motion, limits)
    held = np.abs(motion.time - motion.contact_time + settle / 2) < settle / 2 - 1e-9
    np.testing.assert_allclose(motion.velocity[held, :2] - heading(speed, angle), 0, atol=1e-12)
    np.testing.assert_allclose(motion.position[motion.contact_index, :2], CONTACT, atol=1e-9)
    np.testing.assert_array_equal(motion.time, np.arange(len(motion)) / rate)


@pytest.mark.parametrize("arm", [PANDA, FR3])
@pytest.mark.parametrize("speed", [*SPEEDS, FRANKA.velocity])
def test_libfranka_would_leave_every_set_point_as_it_is(speed: float, arm: CartesianLimits) -> None:
    """Its rate limiter also bounds the acceleration by the distance to the greatest velocity, times jerk over it."""
    motion = motion_of(speed)
    greatest = arm.velocity - 1e-3 - 3 * DT * arm.acceleration  # the header's margins, three lost packets included
    acceleration, jerk = differences(motion.velocity)
    before = np.concatenate([np.zeros(3), np.linalg.norm(motion.velocity, axis=1), np.zeros(2)])
    allowed = np.minimum(arm.jerk / arm.acceleration * (greatest - before), arm.acceleration - 1e-3)
    assert (acceleration < allowed).all()
    assert jerk.max() < arm.jerk - 1e-3


@pytest.mark.parametrize("angle", DIRECTIONS)
@pytest.mark.parametrize("speed", SPEEDS)
def test_contact_is_passed_at_the_commanded_velocity(speed: float, angle: float) -> None:
    motion, wanted = motion_of(speed, angle), heading(speed, angle)
    touch = motion.contact_index
    assert motion.contact_time == motion.time[touch] == touch / 1000
    np.testing.assert_allclose(motion.position[touch], [*CONTACT, 0.03], rtol=0, atol=1e-9)
    held = motion.velocity[touch - 20 : touch + 6]  # from 20 ms before the contact until 5 ms after it
    np.testing.assert_allclose(held, np.tile([*wanted, 0.0], (26, 1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("speed", SPEEDS)
def test_starts_and_ends_at_rest(speed: float) -> None:
    motion = motion_of(speed)
    np.testing.assert_array_equal(motion.velocity[0], 0)
    np.testing.assert_array_equal(motion.velocity[-2:], 0)  # two, so the difference is zero as well
    assert (np.linalg.norm(motion.velocity[1:-4], axis=1) > 0).all()  # no idle samples but those


@pytest.mark.parametrize("angle", DIRECTIONS)
@pytest.mark.parametrize("speed", SPEEDS)
def test_velocities_integrate_to_the_positions(speed: float, angle: float) -> None:
    motion = motion_of(speed, angle)
    steps = (motion.velocity[1:] + motion.velocity[:-1]) / 2 * DT
    integral = motion.position[0] + np.cumsum(steps, axis=0)
    error = np.linalg.norm(integral - motion.position[1:], axis=1)
    assert error.max() < 1.01 * FRANKA.acceleration * DT**2 / 12  # the trapezoid's own while accelerating: 0.7 um,
    assert error[motion.contact_index - 1] < 1e-8  # and gone where the acceleration is
    assert error[-1] < 1e-8


@pytest.mark.parametrize("angle", DIRECTIONS)
def test_path_is_straight_and_goes_one_way(angle: float) -> None:
    motion, along = motion_of(0.9, angle), heading(1.0, angle)
    offset = motion.position[:, :2] - CONTACT
    across = offset @ [-along[1], along[0]]
    np.testing.assert_allclose(across, 0, atol=1e-12)
    assert (np.diff(offset @ along) >= -1e-15).all()
    np.testing.assert_array_equal(motion.position[:, 2], 0.03)
    np.testing.assert_array_equal(motion.velocity[:, 2], 0)
    assert motion.run_up == pytest.approx(np.linalg.norm(offset[0]), abs=1e-12)
    assert motion.stopping_distance == pytest.approx(np.linalg.norm(offset[-1]), abs=1e-12)


def test_run_up_is_what_the_profile_says() -> None:
    """A ramp with bounded jerk is symmetric: its mean speed is half the final one, its duration v/a + a/j."""
    speed = 1.0
    motion = motion_of(speed)
    ramp = speed / FRANKA.acceleration + FRANKA.acceleration / FRANKA.jerk
    settle = motion.contact_time - ramp
    assert STEADY <= settle < STEADY + DT
    assert motion.run_up == pytest.approx(speed * (ramp / 2 + settle), rel=1e-9)
    assert motion.stopping_distance == pytest.approx(speed * (HOLD + ramp / 2), rel=1e-9)


@pytest.mark.parametrize("speed", SPEEDS)
def test_an_arm_that_lags_still_arrives_at_the_commanded_velocity(speed: float) -> None:
    """libfranka holds each set-point for a cycle and filters it at 100 Hz; where that touches, and how fast."""
    motion = motion_of(speed, 0.0)
    gain = DT / (DT + 1 / (2 * math.pi * 100.0))
    velocity, position, cycle = 0.0, 0.0, 0
    while position < motion.run_up:
        velocity += gain * (motion.velocity[cycle, 0] - velocity)
        position += velocity * DT
        cycle += 1
    assert 0 <= cycle * DT - motion.contact_time < HOLD
    assert velocity == pytest.approx(speed, rel=1e-4)


def test_too_fast_is_refused_with_the_limit_and_a_way_out() -> None:
    with pytest.raises(
        CaromError, match=r"speed of 1\.8 m/s .* limit of 1\.53 m/s; plan a slower strike, or .* faster"
    ):
        motion_of(1.8)
    assert motion_of(1.8, limits=FR3).limits == FR3
    assert motion_of(FRANKA.velocity, 0.0).velocity.max() == FRANKA.velocity


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"velocity_world": [0.0, 0.0]}, "speed is zero"),
        ({"velocity_world": [math.nan, 0.1]}, "velocity_world: expected two finite numbers.*nan"),
        ({"velocity_world": [0.1, 0.0, 0.0]}, "velocity_world: expected two finite numbers"),
        ({"contact_world": [0.1, math.inf]}, "contact_world: expected two finite numbers.*inf"),
        ({"height": math.nan}, "height: expected a finite number, got nan"),
        ({"yaw": math.inf}, "yaw: expected a finite number, got inf"),
        ({"settle": -0.01}, "settle: .*got -0.01"),
        ({"rate": 0.0}, "rate: .*got 0.0"),
    ],
)
def test_wrong_input_is_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"contact_world": CONTACT, "velocity_world": [0.5, 0.0], "height": 0.03, "yaw": 0.0}
    with pytest.raises(CaromError, match=message):
        strike_motion(**(arguments | change))


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_limits_are_positive(value: float) -> None:
    with pytest.raises(CaromError, match="limits: jerk: expected a positive number"):
        CartesianLimits(1.0, 1.0, value)


def read(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open(newline="") as stream:
        names, *rows = csv.reader(stream)
    return names, np.array(rows, dtype=np.float64)


def refuse(constant: str) -> None:
    raise AssertionError(f"JSON with {constant}")


def test_files_hold_the_motion_to_the_last_bit(tmp_path: Path) -> None:
    motion = motion_of(0.77, 2.2)
    strike = {
        "contact_point": np.array([0.05, 0.0]),
        "model": Path("m"),
        "expected": {"speed": np.float64(0.6)},
        "n": 3,
    }
    paths = write_motion(tmp_path / "deep" / "out", motion, strike=strike)
    assert {p.name for p in paths} == {"strike.csv", "strike.json", "franka_cartesian_velocities.csv"}
    assert sorted(paths) == sorted((tmp_path / "deep" / "out").iterdir())  # and nothing is left over

    names, rows = read(tmp_path / "deep/out/strike.csv")
    assert names == ["time_s", "x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s", "wx_rad_s", "wy_rad_s", "wz_rad_s"]
    still = np.zeros_like(motion.velocity)
    np.testing.assert_array_equal(rows, np.column_stack([motion.time, motion.position, motion.velocity, still]))

    data = json.loads((tmp_path / "deep/out/strike.json").read_text(), parse_constant=refuse)
    assert list(data["set_points"]) == names
    np.testing.assert_array_equal(np.column_stack(list(data["set_points"].values())), rows)
    assert data["format"] == "carom-strike/1"
    assert data["carom"] == carom.__version__
    assert data["rate_hz"] == 1000
    assert data["limits"].items() >= {"velocity": 1.53, "acceleration": 8.1, "jerk": 4050.0}.items()
    assert data["contact"] == {
        "time_s": motion.contact_time,
        "index": motion.contact_index,
        "position_world_m": motion.position[motion.contact_index].tolist(),
        "yaw_world_rad": 0.2,
        "velocity_world_m_s": motion.velocity[motion.contact_index].tolist(),
    }
    assert data["strike"] == {"contact_point": [0.05, 0.0], "model": "m", "expected": {"speed": 0.6}, "n": 3}


def test_franka_rows_are_in_the_frame_of_the_base(tmp_path: Path) -> None:
    motion, base = motion_of(0.6, 0.4), (-0.3, 0.2, 1.1)
    write_motion(tmp_path, motion, strike={}, base=base)
    names, rows = read(tmp_path / "franka_cartesian_velocities.csv")
    assert names == ["time_s", "vx_m_s", "vy_m_s", "vz_m_s", "wx_rad_s", "wy_rad_s", "wz_rad_s"]
    np.testing.assert_array_equal(rows[:, 0], np.arange(len(rows)) / 1000)
    np.testing.assert_array_equal(rows[:, 3:], 0)
    np.testing.assert_allclose(rows[motion.contact_index, 1:3], heading(0.6, 0.4 - 1.1), atol=1e-12)
    acceleration, jerk = differences(rows[:, 1:4])  # as they are in the file
    assert acceleration.max() < FRANKA.acceleration * (1 + 1e-9)
    assert jerk.max() < FRANKA.jerk * (1 + 1e-9)

    # An arm that starts where the file says, and follows the rows in its own frame, meets the contact in the world.
    start = json.loads((tmp_path / "strike.json").read_text())["start"]
    steps = (rows[1:, 1:3] + rows[:-1, 1:3]) / 2 * DT
    reached = np.array(start["position_base_m"][:2]) + steps[: motion.contact_index].sum(axis=0)
    np.testing.assert_allclose(rotate(reached, base[2]) + base[:2], CONTACT, atol=1e-8)
    assert start["yaw_base_rad"] == pytest.approx(0.2 - 1.1)


def test_without_a_base_the_frames_are_the_same(tmp_path: Path) -> None:
    write_motion(tmp_path, motion_of(0.6), strike={})
    _, world = read(tmp_path / "strike.csv")
    _, franka = read(tmp_path / "franka_cartesian_velocities.csv")
    np.testing.assert_array_equal(world[:, [0, 4, 5, 6, 7, 8, 9]], franka)
    assert "-0.0," not in (tmp_path / "strike.csv").read_text()


def test_what_json_cannot_say_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for strike, message in (
        ({"std": np.array([0.1, math.nan])}, "strike: std: JSON has no NaN.*leave it out"),
        ({"f": {"g": -math.inf}}, "strike: f: JSON has no NaN and no infinity"),
        ({"f": object()}, "JSON cannot express the object"),
    ):
        with pytest.raises(CaromError, match=message):
            write_motion(tmp_path / "out", motion_of(0.5), strike=strike)
    with pytest.raises(CaromError, match="every millisecond, the motion has 500 per second; make it with rate=1000"):
        write_motion(tmp_path / "out", motion_of(0.5, rate=500.0), strike={})
    with pytest.raises(CaromError, match="base: expected x, y, yaw"):
        write_motion(tmp_path / "out", motion_of(0.5), strike={}, base=(0.0, math.nan, 0.0))
    assert not (tmp_path / "out").exists()


def test_a_second_export_replaces_the_first(tmp_path: Path) -> None:
    write_motion(tmp_path, motion_of(1.2), strike={"n": 1})
    write_motion(tmp_path, motion_of(0.3), strike={"n": 2})
    data = json.loads((tmp_path / "strike.json").read_text())
    assert data["strike"] == {"n": 2}
    for name in data["tables"]:
        assert len(read(tmp_path / name)[1]) == len(data["set_points"]["time_s"]) == len(motion_of(0.3))
