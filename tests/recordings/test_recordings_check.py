"""`check` says what is wrong, where, and keeps quiet about what is not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from synthetic_recordings import BOX, CUBE, TOOL, Strike, quaternion_of, toss, two_discs

from carom.core.rotations import multiply
from carom.reality import sample_commands, standin
from carom.recordings import Ground, Recordings, check, read, write
from carom.recordings.checks.upward import falls

STRIKE = Strike(duration=1.5)


def with_path(trajectory, body, path):
    return replace(trajectory, position_world={**trajectory.position_world, body: path})


def with_turn(trajectory, body, quaternion):
    return replace(trajectory, quaternion_world={**trajectory.quaternion_world, body: quaternion})


def report_on(folder, *trajectories, **keywords):
    bodies = keywords.pop("bodies", trajectories[0].bodies)
    named = [replace(t, name=f"hit_{i:03d}.csv", bodies=bodies) for i, t in enumerate(trajectories)]
    write(folder, Recordings(folder, bodies, tuple(named), **keywords))
    return check(folder)


def first_rows(t, count):
    paths = {n: p[:count] for n, p in t.position_world.items()}
    turns = {n: None if q is None else q[:count] for n, q in t.quaternion_world.items()}
    return replace(t, time=t.time[:count], position_world=paths, quaternion_world=turns)


def codes(report, *levels):
    return {f.code for f in report.findings if f.level in (levels or ("error", "warning", "note"))}


def test_clean_recordings_raise_no_alarm(tmp_path):
    varied = [replace(STRIKE, striker_velocity=(0.05, 0.7 + 0.05 * seed)).trajectory(seed) for seed in range(4)]
    report = report_on(tmp_path / "hits", *varied, gravity=9.81)
    assert report.ok
    assert codes(report, "error", "warning") == set()
    assert report.rate == pytest.approx(200)
    assert report.impacts == {"strike good": 4}
    assert report.timing_jitter < 0.1
    assert report.bodies["box"].position_noise == pytest.approx(1e-4, rel=0.25)
    tosses = report_on(tmp_path / "tosses", *(toss(seed=seed) for seed in range(4)))
    assert codes(tosses, "error", "warning") == set()
    assert tosses.gravity == pytest.approx(9.81, abs=4 * tosses.gravity_std)
    pairs = report_on(tmp_path / "pairs", *(two_discs(seed=seed)[0] for seed in range(3)))
    assert codes(pairs, "error", "warning") == set()
    assert "no-orientation" in codes(pairs, "note")


def lose(t):
    path = t.position_world["box"].copy()
    path[20:30] = np.nan
    turn = t.quaternion_world["box"].copy()
    turn[20:30] = np.nan
    return with_turn(with_path(t, "box", path), "box", turn)


def spike(t):
    path = t.position_world["tool"].copy()
    path[30] += [0.0, 0.02, 0.0]
    return with_path(t, "tool", path)


def teleport(t):
    path = t.position_world["box"].copy()
    path[250:] += [0.3, 0.0, 0.0]
    return with_path(t, "box", path)


def freeze(t):
    path = t.position_world["box"].copy()
    turn = t.quaternion_world["box"].copy()
    path[81:84], turn[81:84] = path[80], turn[80]
    return with_turn(with_path(t, "box", path), "box", turn)


def flip(t):
    turn = t.quaternion_world["box"].copy()
    turn[40:] *= -1
    return with_turn(t, "box", turn)


def stretch(t):
    return with_turn(t, "box", t.quaternion_world["box"] * 1.004)


def twist(t):
    turn = t.quaternion_world["box"].copy()
    turn[40] = quaternion_of(np.array([np.pi / 2]))[0]
    return with_turn(t, "box", turn)


def cut_out(t):
    keep = np.r_[0:20, 32 : len(t)]
    return replace(
        t,
        time=t.time[keep],
        position_world={n: p[keep] for n, p in t.position_world.items()},
        quaternion_world={n: q[keep] for n, q in t.quaternion_world.items()},
    )


def shake(t):
    return replace(t, time=t.time + np.where(np.arange(len(t)) % 2, 0.3, -0.3) * t.period)


def stop_target(t):
    return with_path(t, "box", np.tile(t.position_world["box"][:1], (len(t), 1)))


def pick_up(t):
    path = t.position_world["box"].copy()
    path[t.time > 1.3] += np.outer(t.time[t.time > 1.3] - 1.3, [0.5, 0.5, 0.0])
    return with_path(t, "box", path)


DEFECTS = {
    "lost-samples": (lose, "hit_000.csv, row 22, column 'box.x': 3.3 % of the samples are lost; up to 10 in a row"),
    "spike": (spike, "hit_000.csv, row 32, column 'tool.x': a sample jumps 19.8 mm away and back"),
    "teleport": (teleport, "hit_000.csv, row 252, column 'box.x': the body leaps by 300 mm between two samples"),
    "frozen": (freeze, "hit_000.csv, row 83, column 'box.x': the same place is repeated while the body moves, in 3"),
    "quaternion-sign": (flip, "hit_000.csv, row 42, column 'box.qw': quaternions change sign (1 times)"),
    "quaternion-norm": (stretch, "column 'box.qw': quaternions are not of unit length (off by 0.004)"),
    "orientation-spike": (twist, "hit_000.csv, row 42, column 'box.qw': orientation jumps by 90 deg and back"),
    "time-gap": (cut_out, "hit_000.csv, row 22, column 'time': a gap in time of 0.065 s"),
    "irregular-rate": (shake, "hit_000.csv, column 'time': intervals between samples scatter by 0."),
    "target-still": (stop_target, "hit_000.csv: 'box' never moves; nothing can be learned from it"),
    "moves-again": (pick_up, "hit_000.csv: 'box' is moved again after it has come to rest"),
    "ends-moving": (lambda t: t.until(0.6), "hit_000.csv: the record ends while 'box' still moves"),
    "no-striker": (
        lambda t: with_path(t, "tool", t.position_world["tool"] + [0.5, 0, 0]),
        "hit_000.csv: 'box' is set in motion with no body near it",
    ),
    "striker-far": (
        lambda t: with_path(t, "tool", t.position_world["tool"] + [0.5, 0, 0]),
        "hit_000.csv: 'tool' never comes nearer to 'box' than 0.3",
    ),
    "overlap": (lambda t: with_path(t, "tool", np.zeros((len(t), 3))), "hit_000.csv: 'box' and 'tool' overlap by 11"),
    "length-unit": (
        lambda t: with_path(t, "box", t.position_world["box"] * 1000 + 300),
        "hit_000.csv, column 'box.x': 'box' is",
    ),
    "time-unit": (lambda t: replace(t, time=t.time * 1000), "hit_000.csv, column 'time': samples are 5 s apart"),
    "velocity-unit": (
        lambda t: replace(t, angular_velocity_world={"box": np.outer((t.time > 0.3), [0.0, 0.0, np.rad2deg(2.0)])}),
        "hit_000.csv, column 'box.wx': recorded velocities are 57",
    ),
    "part-tracked": (
        lambda t: with_path(t, "tool", np.where(t.time[:, None] > 0.5, np.nan, t.position_world["tool"])),
        "hit_000.csv, column 'tool.x': 'tool' is not tracked for 1.00 s at the record's ends",
    ),
}


@pytest.mark.parametrize("code", DEFECTS)
def test_defect_is_found_where_it_is(tmp_path, code):
    change, expected = DEFECTS[code]
    report = report_on(tmp_path, change(STRIKE.trajectory()))
    found = [f for f in report.findings if f.code == code]
    assert found, report.findings
    message = found[0].message
    assert message.startswith(expected) or expected in message
    assert found[0].file == "hit_000.csv"
    assert code not in codes(report_on(tmp_path / "clean", STRIKE.trajectory()))


def test_a_pose_frozen_from_before_contact(tmp_path):
    def freeze_at(t, first, last):
        path, turn = t.position_world["box"].copy(), t.quaternion_world["box"].copy()
        path[first:last], turn[first:last] = path[first - 1], turn[first - 1]
        return with_turn(with_path(t, "box", path), "box", turn)

    report = report_on(tmp_path / "a", freeze_at(STRIKE.trajectory(), 50, 75))
    (finding,) = [f for f in report.findings if f.code == "frozen"]
    assert finding.message.startswith("hit_000.csv, row 52, column 'box.x': the same place is repeated while the body")
    assert "in 25 of its rows; up to 25 in a row" in finding.message
    held = report_on(tmp_path / "b", freeze_at(STRIKE.trajectory(), 20, 45))  # thawed before contact
    (finding,) = [f for f in held.findings if f.code == "frozen"]
    assert "while others move, in 25 of its rows, though they scatter otherwise" in finding.message
    quiet = [replace(STRIKE, noise=0.0, yaw_noise=0.0).trajectory(s) for s in range(2)]
    assert "frozen" not in codes(report_on(tmp_path / "c", *quiet))  # without noise, rest is exact


def test_losses_are_counted_over_all_files_and_at_the_ends(tmp_path):
    def without(t, rows, *, place=True):
        path, turn = t.position_world["box"].copy(), t.quaternion_world["box"].copy()
        path[rows], turn[rows] = np.nan if place else path[rows], np.nan
        return with_turn(with_path(t, "box", path), "box", turn)

    lost = [without(STRIKE.trajectory(s), slice(200, 200 + n)) for s, n in enumerate((12, 62, 95))]
    (finding,) = [f for f in report_on(tmp_path / "a", *lost).findings if f.code == "lost-samples"]
    assert finding.message.endswith("; up to 95 in a row")
    ends = report_on(tmp_path / "b", without(STRIKE.trajectory(), np.r_[0:7, 230:300]))
    (finding,) = [f for f in ends.findings if f.code == "part-tracked"]
    assert finding.message.endswith("is not tracked for 0.39 s at the record's ends; up to 70 samples in a row")
    turns = report_on(tmp_path / "c", without(STRIKE.trajectory(), slice(200, 230), place=False))
    (finding,) = [f for f in turns.findings if f.code == "lost-samples"]
    assert finding.message == (
        "hit_000.csv, row 202, column 'box.qw': 10.0 % of the orientations are lost; up to 30 in a row"
    )


def hits(count=4):
    return [replace(STRIKE, striker_velocity=(0.05, 0.7 + 0.05 * s)).trajectory(s) for s in range(count)]


def turned(t):
    """y-up data: what was z is y, what was y is -z."""
    half = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
    return replace(
        t,
        position_world={n: p[:, [0, 2, 1]] * [1, 1, -1] for n, p in t.position_world.items()},
        quaternion_world={n: multiply(half, q) for n, q in t.quaternion_world.items()},
    )


def test_y_up_data_under_a_z_up_header(tmp_path):
    for name, folder in (("hits", hits()), ("tosses", [toss(seed=s) for s in range(3)])):
        report = report_on(tmp_path / name, *(turned(t) for t in folder))
        assert "frame" in codes(report, "error"), report.findings
        (finding,) = [f for f in report.findings if f.code == "frame"]
        assert finding.message.startswith("the header says frame: z-up, but bodies fall along, slide across or turn")
        assert finding.message.endswith("state frame: y-up")
        assert "frame" not in codes(report_on(tmp_path / f"{name}-right", *folder))


def test_noise_is_no_fall_in_another_unit():
    """In a long record some piece of noise bends as a fall would, in lengths a hundredth as large."""
    short = STRIKE.trajectory()
    time = np.arange(200_000) / 200
    path = 1e-4 * np.random.default_rng(0).standard_normal((len(time), 3))
    still = replace(short, time=time, position_world={"box": path}, quaternion_world={"box": None})
    assert all(falls(still, "box", factor) is None for factor in (1.0, 1e-2, 1e-3))


def shifted(t, body, way):
    return with_path(t, body, t.position_world[body] + way)


def test_bodies_deep_inside_each_other_cannot_be_used(tmp_path):
    inside = [shifted(t, "tool", [0, 0.022, 0]) for t in hits()]
    report = report_on(tmp_path / "all", *inside)
    assert not report.ok
    (error,) = [f for f in report.findings if f.code == "no-usable-impact"]
    assert error.message.startswith("none of the 4 recorded impacts can be used (the outlines are 2")
    some = report_on(tmp_path / "some", *hits(5), inside[0])
    assert some.ok
    (named,) = [f for f in some.findings if f.code == "unusable-impact"]
    assert named.message.startswith("hit_005.csv: its strike cannot be used: the outlines are 2")
    assert "mm inside each other at contact" in named.message


def test_every_unusable_recording_is_named(tmp_path):
    far = [shifted(t, "tool", [0.5, 0, 0]) for t in hits(6)]
    report = report_on(tmp_path, *hits(1), *far)
    (named,) = [f for f in report.findings if f.code == "unusable-impact"]
    assert named.message.endswith("(" + ", ".join(f"hit_{i:03d}.csv" for i in range(1, 7)) + ")")
    assert "no body was near the target when it began to move" in named.message


def test_a_target_on_the_move_and_a_second_strike(tmp_path):
    assert "moving-before" in codes(report_on(tmp_path / "pair", two_discs()[0]), "note")
    t = replace(STRIKE, duration=2.5).trajectory()
    box, tool = t.position_world["box"].copy(), t.position_world["tool"].copy()
    again = t.time > 1.6
    box[again] += np.outer(np.minimum(t.time[again] - 1.6, 0.3), [0.0, 0.8, 0.0])
    place = box[np.argmax(again) - 1]
    tool[t.time > 1.0] = place + np.array([0.0, -0.15, 0.0])
    tool[again] = box[again] + [0.0, -0.116, 0.0]
    report = report_on(tmp_path / "two", with_path(with_path(t, "box", box), "tool", tool))
    (finding,) = [f for f in report.findings if f.code == "second-strike"]
    assert finding.message.startswith("hit_000.csv, row 32")
    assert "'box' is struck more than once; only the first strike is used" in finding.message
    assert not {"moving-before", "second-strike"} & codes(report_on(tmp_path / "one", *hits()))


def test_copies_and_strikes_that_are_all_alike(tmp_path):
    report = report_on(tmp_path / "copies", *hits(3), hits(1)[0])
    assert "hit_003.csv: the same samples as in hit_000.csv; a copy adds nothing" in [
        f.message for f in report.findings
    ]
    same = report_on(tmp_path / "same", *(STRIKE.trajectory(s) for s in range(10)))
    (finding,) = [f for f in same.findings if f.code == "strikes-alike"]
    assert finding.message.startswith("the 10 strikes are nearly the same: speed within 0.")
    assert not {"copy", "strikes-alike"} & codes(report_on(tmp_path / "varied", *hits(10)))


def test_lengths_off_in_one_file_are_named(tmp_path):
    large = hits(6)
    large[4] = replace(large[4], position_world={n: 1.1 * p for n, p in large[4].position_world.items()})
    report = report_on(tmp_path, *large)
    found = [f.message for f in report.findings if f.code == "other-size"]
    assert len(found) == 2
    assert all(message.startswith("hit_004.csv: ") for message in found)
    assert "mm apart at contact, in most other files" in found[0]
    assert "'box' lies 55.0 mm high, in most other files 50.0 mm" in found[1]
    assert "other-size" not in codes(report_on(tmp_path / "right", *hits(6)))


@pytest.mark.parametrize("scale", [0.9, 1.1])
def test_lengths_off_in_one_file_of_small_bodies_are_named(tmp_path, scale):
    """Ten per cent of an 8 cm block are 6 mm at contact, and 2.5 mm of its height: less than of larger ones."""
    reality = standin("resin-low", "square", seed=5)
    commands = sample_commands(reality.shape, 4, np.random.default_rng(0))
    made = read(reality.execute(commands, tmp_path / "lab", seed=1)).trajectories
    odd = replace(made[2], position_world={n: scale * p for n, p in made[2].position_world.items()})
    found = [f.message for f in report_on(tmp_path / "odd", *made[:2], odd, made[3]).findings if f.code == "other-size"]
    assert len(found) == 1
    assert found[0].startswith("hit_002.csv: the outlines are ")
    assert "other-size" not in codes(check(tmp_path / "lab"))


@pytest.mark.parametrize("scale", [0.9, 1.1])
def test_lengths_off_in_one_file_of_tosses_are_named(tmp_path, scale):
    made = [toss(seed=s, scale=scale if s == 3 else 1.0) for s in range(5)]
    found = [f.message for f in report_on(tmp_path / "lie", *made).findings if f.code == "other-size"]
    assert found == [
        f"hit_003.csv: 'cube' comes to rest {50 * scale:.1f} mm high, where the other files make it 50.0 mm; are its "
        "lengths in another unit or scale, or its bodies of another size?"
    ]
    cut = [first_rows(t, 60) for t in made]  # before they have come to rest: only the fall tells
    found = [f.message for f in report_on(tmp_path / "fall", *cut).findings if f.code == "other-size"]
    assert len(found) == 1
    assert found[0].startswith(f"hit_003.csv: 'cube' falls with {scale * 9.81:.3g}"[:-1])
    higher = [*made[:3], replace(made[4], position_world={"cube": made[4].position_world["cube"] + [0, 0, 0.0029]})]
    assert "other-size" not in codes(report_on(tmp_path / "table", *higher))  # a table is not level to 2 mm


def test_masses_that_differ_by_file_are_stated(tmp_path):
    pair = two_discs()[0]
    heavy = {**pair.bodies, "b": replace(pair.bodies["b"], mass=0.04)}
    write(tmp_path, Recordings(tmp_path, pair.bodies, (pair, replace(pair, name="pair_01.csv", bodies=heavy))))
    report = check(tmp_path)
    assert report.bodies["b"].mass_range == (0.02, 0.04)
    assert "0.02 to 0.04 kg" in dict(report.summary())["body b"]


def test_a_file_at_another_rate(tmp_path):
    report = report_on(tmp_path, STRIKE.trajectory(), STRIKE.trajectory(1), replace(STRIKE, rate=100.0).trajectory())
    (finding,) = [f for f in report.findings if f.code == "other-rate"]
    assert finding.message == "hit_002.csv, column 'time': sampled at 100 Hz, most files at 200 Hz"


def test_beating_clocks_are_named(tmp_path):
    report = report_on(tmp_path, *(replace(STRIKE, clock=0.35).trajectory(seed) for seed in range(3)))
    (finding,) = [f for f in report.findings if f.code == "sample-times"]
    assert "two clocks beat" in finding.message
    assert report.settle == 0.030
    assert 0.015 < report.beat_period < 0.03


def test_the_same_finding_is_said_once(tmp_path):
    report = report_on(tmp_path, *(flip(STRIKE.trajectory(seed)) for seed in range(5)))
    (finding,) = [f for f in report.findings if f.code == "quaternion-sign"]
    assert finding.count == 5
    assert finding.message.endswith("in 5 of 5 files (hit_000.csv, hit_001.csv, hit_002.csv, ...)")


@pytest.mark.parametrize(("scale", "word"), [(0.98, "2.0 % too short"), (1.03, "3.0 % too long")])
def test_lengths_off_by_a_little_show_in_free_fall(tmp_path, scale, word):
    report = report_on(tmp_path, *(toss(scale=scale, seed=seed) for seed in range(6)))
    (finding,) = [f for f in report.findings if f.code == "gravity"]
    assert report.gravity == pytest.approx(9.81 * scale, abs=0.02)
    assert f"lengths {word} would explain it (multiply them by {1 / scale:.2f}" in finding.message
    assert "or times too" in finding.message
    (height,) = [f for f in report.findings if f.code == "ground-height"]
    assert f"the centre lies at {0.05 * scale:.4f} m where the shape gives 0.0500 m" in height.message


def test_gravity_is_held_against_the_stated_one(tmp_path):
    tosses = [toss(gravity=1.62, seed=seed) for seed in range(3)]
    assert "gravity" not in codes(report_on(tmp_path / "moon", *tosses, gravity=1.62))
    assert "gravity" in codes(report_on(tmp_path / "earth", *tosses))
    wrong = report_on(tmp_path / "mm", *tosses, gravity=9810.0)
    assert "gravity: 9810 is stated; it is read in m/s^2 always" in [f.message for f in wrong.findings]


def test_stated_ground_and_tilt(tmp_path):
    lean = Rotation.from_euler("x", 1.0, degrees=True).as_quat()[[3, 0, 1, 2]]
    tosses = [with_turn(toss(seed=s), "cube", np.tile(lean, (len(toss(seed=s)), 1))) for s in range(4)]
    report = report_on(tmp_path, *tosses, ground=Ground(height=0.002))
    messages = {f.code: f.message for f in report.findings}
    assert "bodies rest 2.0 mm below the stated ground" in messages["ground-height"]
    assert "bodies at rest lean by 1.00 degrees" in messages["ground-tilt"]
    assert "the ground falls towards" in messages["ground-tilt"]
    assert report.ground_tilt == pytest.approx(np.deg2rad(1.0), rel=1e-3)


def test_what_the_header_lacks(tmp_path):
    light = {"box": replace(BOX, mass=None), "tool": TOOL}
    report = report_on(tmp_path / "a", STRIKE.trajectory(), bodies=light)
    assert "the mass of target 'box' is not stated; energies and impulses need it" in [
        f.message for f in report.findings
    ]
    grams = report_on(tmp_path / "b", STRIKE.trajectory(), bodies={"box": replace(BOX, mass=500.0), "tool": TOOL})
    assert "'box' has a mass of 500 kg; are these grams?" in [f.message for f in grams.findings]
    bare = report_on(tmp_path / "c", STRIKE.trajectory(), bodies={"box": replace(BOX, shape=None), "tool": TOOL})
    assert "no-shape" in codes(bare, "warning")
    nobody = report_on(tmp_path / "d", STRIKE.trajectory(), bodies={"box": replace(BOX, role="other"), "tool": TOOL})
    assert "no-target" in codes(nobody, "error")


def test_report_as_plain_values(tmp_path):
    report = report_on(tmp_path, toss(seed=1), bodies={"cube": CUBE})
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["readable"] == 1
    assert plain["timing_jitter"] is None
    assert plain["bodies"]["cube"]["role"] == "target"
    assert {"level", "code", "message", "file", "row", "column", "count"} == set(
        (plain["findings"] or [dict.fromkeys(("level", "code", "message", "file", "row", "column", "count"))])[0]
    )
