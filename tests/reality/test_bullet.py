"""The stand-ins in Bullet: that their physics is what the settings say, and that their folders are a lab's."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import carom.reality.bullet as module
from carom.bench.impact_accuracy import BENCHMARK, Case, cases, strikes_of
from carom.core.errors import CaromError, SceneError
from carom.reality import BULLET_SETTINGS, SETTINGS, Mocap, bullet_standin, sample_commands
from carom.reality.bullet_world import centre_of_mass, inertia
from carom.recipes.strikes import usable_impacts
from carom.recordings import read, scene_of
from carom.scenes.shapes import polygon_properties
from carom.state import StrikeCommands, rotate

GRAVITY = 9.81
PLAIN = {"scatter": 0.0, "facing_error": 0.0, "drive": 0.0}  #: nothing that draws or pushes
needs_bullet = pytest.mark.skipif(find_spec("pybullet") is None, reason="PyBullet is not installed (extra bench)")
everywhere = pytest.mark.parametrize("name", BULLET_SETTINGS)


def reality_of(name, *, step=None, slide_step=None, **changes):
    steps = {k: v for k, v in {"step": step, "slide_step": slide_step}.items() if v is not None}
    return bullet_standin(replace(BULLET_SETTINGS[name], **PLAIN | changes), seed=4, **steps)


def commands_for(reality, count, seed=0, **options):
    return sample_commands(reality.shape, count, np.random.default_rng(seed), **options)


def outcome(reality, track):
    """Velocity of the block's centre of mass at separation, spin times the radius of gyration [3] [m/s]."""
    return track.velocity[track.separation][[0, 1, 5]] * [1, 1, np.sqrt(inertia(reality.setting)[2] / reality.mass)]


def energies(reality, track):
    """Energy of the block, its height included, and of the striker over time [S] each [J]."""
    quaternion = track.quaternion * [1, -1, -1, -1]
    w, axis = quaternion[:, :1], quaternion[:, 1:]
    turning = 2 * np.cross(axis, track.velocity[:, 3:])
    own = track.velocity[:, 3:] + w * turning + np.cross(axis, turning)  # the spin in the block's frame
    block = reality.mass * (track.velocity[:, :3] ** 2).sum(axis=1) + (inertia(reality.setting) * own**2).sum(axis=1)
    along = rotate(track.striker_velocity, -reality.arm)
    block = block / 2 + reality.mass * GRAVITY * (track.position[:, 2] - track.position[0, 2])
    return block, (np.array(reality.setting.striker_mass) * along**2).sum(axis=1) / 2


def head_on(reality, speed):
    """One strike through the centre of mass, along the normal of a box's side."""
    half = reality.shape.size[0] / 2
    return StrikeCommands([[-half, 0.0]], [[speed, 0.0]], [[0.01, -0.02, 0.7]])


@needs_bullet
@everywhere
def test_energy_is_only_lost_in_the_blow_and_on_the_ground(name):
    reality = reality_of(name)
    for track in reality.tracks(commands_for(reality, 6), seed=0):
        block, striker = energies(reality, track)
        total, after = (block + striker)[: track.separation + 1], block[track.separation :]
        assert total[-1] < total[0]
        if reality.setting.spring is None:  # a spring gives back what it took
            assert (np.diff(total) < 1e-6 * total[0]).all()
        if reality.setting.striker.is_round:  # a flat face may land again, long after its first end did
            assert (np.diff(after) < 1e-5 * after[0]).all()
        assert block[-1] < 1e-6 * block[track.separation]


@needs_bullet
@everywhere
def test_outcomes_converge_with_the_step(name):
    speeds = {}
    for step in (1 / 16000, 1 / 64000, 1 / 128000):
        reality = reality_of(name, step=step)
        commands = commands_for(reality, 3, speed=(0.4, 0.8))
        speeds[step] = np.array([outcome(reality, track) for track in reality.tracks(commands, seed=0)])
    size = np.linalg.norm(speeds[1 / 128000], axis=1)
    error = {s: (np.linalg.norm(v - speeds[1 / 128000], axis=1) / size).max() for s, v in speeds.items()}
    assert error[1 / 64000] < 0.01
    assert error[1 / 64000] < 0.6 * error[1 / 16000]


@needs_bullet
@pytest.mark.parametrize("name", ["bullet-hard", "bullet-dull", "bullet-uneven", "bullet-light"])
def test_slides_converge_with_the_step(name):
    ends = []
    for step in (1 / 2000, 1 / 8000):
        reality = reality_of(name, slide_step=step)
        tracks = reality.tracks(commands_for(reality, 4), seed=0)
        ends.append(np.array([track.position[-1] - track.position[0] for track in tracks]))
    way = np.linalg.norm(ends[1], axis=1)
    assert (np.linalg.norm(ends[0] - ends[1], axis=1) < 0.01 * way + 0.5e-3).all()


@needs_bullet
@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("speed", [0.1, 0.8])
def test_a_central_hit_has_the_restitution_that_was_asked_for(restitution, speed):
    reality = reality_of("bullet-hard", restitution=restitution, ground_friction=1e-6)
    (track,) = reality.tracks(head_on(reality, speed), seed=0)
    after = track.separation
    way = rotate([1.0, 0.0], 0.7)
    parting = track.velocity[after, :2] @ way - track.striker_velocity[after] @ way
    assert parting / speed == pytest.approx(restitution, abs=1e-3)
    assert abs(track.velocity[after, 5]) < 1e-3


@needs_bullet
def test_restitution_falls_with_the_speed_as_its_law_says():
    reality = reality_of("bullet-falling", ground_friction=1e-6)
    for speed in (0.2, 0.5, 0.8):
        (track,) = reality.tracks(head_on(reality, speed), seed=0)
        velocity = np.linalg.norm(track.velocity[track.separation, :2])
        parting = velocity - np.linalg.norm(track.striker_velocity[track.separation])
        assert parting / speed == pytest.approx(0.85 * np.exp(-speed / 0.9), abs=2e-3)


@needs_bullet
def test_a_soft_contact_lasts_and_returns_as_a_spring_and_a_damper_do():
    stiffness, damping, mass = 3e4, 35.0, 0.24
    free = {"spring": (stiffness, damping), "mass": mass, "striker_mass": (1e4, 1e4), "ground_friction": 1e-6}
    reality = reality_of("bullet-falling", restitution=0.0, **free, step=1 / 256000)
    (track,) = reality.tracks(head_on(reality, 0.5), seed=0)
    # m x'' + c x' + k x = 0 from x = 0; they part where the force, not the depth, comes to nothing
    decay = damping / (2 * mass)
    wave = np.sqrt(stiffness / mass - decay**2)
    time = np.linspace(0, np.pi / wave, 100_001)[1:]
    depth = 0.5 / wave * np.exp(-decay * time) * np.sin(wave * time)
    rate = 0.5 * np.exp(-decay * time) * (np.cos(wave * time) - decay / wave * np.sin(wave * time))
    end = np.argmax(stiffness * depth + damping * rate < 0)
    assert track.time[track.separation] == pytest.approx(time[end], rel=0.01)
    parting = np.linalg.norm(track.velocity[track.separation, :2]) - 0.5
    assert parting == pytest.approx(-rate[end], rel=0.01)


@needs_bullet
def test_a_striker_that_coasts_and_the_block_keep_their_momentum():
    reality = reality_of("bullet-light", ground_friction=1e-6)
    for track in reality.tracks(commands_for(reality, 5), seed=0):
        own = 0.6 * track.striker_velocity + reality.mass * track.velocity[:, :2]
        np.testing.assert_allclose(own[track.separation], own[0], rtol=0, atol=5e-4 * np.linalg.norm(own[0]))


@needs_bullet
@pytest.mark.parametrize("name", ["bullet-hard", "bullet-light", "bullet-uneven", "bullet-falling"])
def test_the_impulse_is_within_the_friction_cone_and_acts_at_the_touch(name):
    reality = reality_of(name)
    commands = commands_for(reality, 12, deflection=0.8)
    com = centre_of_mass(reality.setting)[:2]
    at_limit = 0
    for i, track in enumerate(reality.tracks(commands, seed=0)):
        pose, now = commands.target_pose[i], track.velocity[track.separation]
        impulse = reality.mass * rotate(now[:2], -pose[2])
        point, normal = module.check_on_outline(reality.shape, *(a[i : i + 1] for a in two(commands)))
        along, across = impulse @ normal[0], abs(impulse @ [normal[0, 1], -normal[0, 0]])
        assert along > 0
        assert across <= reality.setting.friction * along * 1.01 + 1e-5
        at_limit += across > 0.98 * reality.setting.friction * along
        lever = point[0] - com
        moment = lever[0] * impulse[1] - lever[1] * impulse[0]
        size = np.linalg.norm(impulse)
        assert inertia(reality.setting)[2] * now[5] == pytest.approx(moment, abs=0.3e-3 * size)
    assert at_limit > 0, "no strike slid: the limit was not tested"


def two(commands):
    return commands.contact_point, commands.velocity


@needs_bullet
def test_a_block_slides_as_far_as_friction_lets_it_in_every_direction():
    for yaw in (0.0, 0.3, 2.0):
        reality = reality_of("bullet-hard")
        commands = replace(head_on(reality, 0.8), target_pose=np.array([[0.0, 0.0, yaw]]))
        (track,) = reality.tracks(commands, seed=0)
        start = track.velocity[track.separation, :2]
        way = track.position[-1, :2] - track.position[track.separation, :2]
        assert np.linalg.norm(way) == pytest.approx(start @ start / (2 * 0.30 * GRAVITY), rel=0.01)
        assert np.arctan2(way[1], way[0]) == pytest.approx(np.arctan2(start[1], start[0]), abs=2e-3)
        assert np.ptp(track.position[:, 2]) < 0.1e-3


@needs_bullet
def test_pads_resist_spin_with_the_torque_that_was_asked_for():
    loss = []
    for pads in (0.0, 0.002):
        reality = reality_of("bullet-pads", pads=pads, com=(0.0, 0.0), ground_friction=1e-6)
        hit = StrikeCommands([[0.04, -0.03]], [[0.0, 0.5]], [[0.0, 0.0, 0.0]])
        (track,) = reality.tracks(hit, seed=0)
        spin = track.velocity[track.separation :, 5]
        later = np.searchsorted(track.time, track.time[track.separation] + 0.05) - track.separation
        loss.append((spin[0] - spin[later]) / (track.time[track.separation + later] - track.time[track.separation]))
    torque = 0.002 * reality.mass * GRAVITY
    assert abs(loss[0]) < 1e-2
    assert abs(loss[1]) == pytest.approx(torque / inertia(reality.setting)[2], rel=0.01)


@needs_bullet
@everywhere
def test_folder_is_readable_usable_and_the_same_for_a_seed(name, tmp_path):
    reality = bullet_standin(name, seed=1)
    commands = commands_for(reality, 12)
    folder = reality.execute(commands, tmp_path / "once", seed=5)
    recordings = read(folder)
    assert len(usable_impacts(recordings)) >= 11
    assert recordings.trajectories[0].tags["reality"] == f"stand-in {name}"
    striker = recordings.bodies["striker"]
    assert striker.mass == (0.6 if name == "bullet-light" else None)
    assert recordings.bodies["block"].com is None
    assert scene_of(recordings).striker.flat == (name == "bullet-flat")
    # those struck before or after change nothing
    again = bullet_standin(name, seed=1).execute(commands[:3], tmp_path / "again", seed=5)
    for i in range(3):
        assert (again / f"hit_{i:03d}.csv").read_bytes() == (folder / f"hit_{i:03d}.csv").read_bytes()
    other = reality.execute(commands[:1], tmp_path / "other", seed=6)
    assert (other / "hit_000.csv").read_bytes() != (folder / "hit_000.csv").read_bytes()
    with pytest.raises(CaromError, match="already holds recordings"):
        reality.execute(commands, folder, seed=5)


@needs_bullet
def test_recorded_outcomes_are_those_that_happened(tmp_path):
    quiet = Mocap(position_noise=2e-5, angle_noise=2e-4, lost=0.0, jitter=0.0)
    reality = bullet_standin("bullet-falling", seed=1, mocap=quiet)
    commands = commands_for(reality, 8, speed=(0.5, 0.8))
    impacts = usable_impacts(read(reality.execute(commands, tmp_path / "quiet", seed=5)))
    true = np.array([outcome(reality, track) for track in reality.tracks(commands, seed=5)])
    k = np.sqrt(inertia(reality.setting)[2] / reality.mass)
    error = np.linalg.norm(impacts.post * [1, 1, k] - true, axis=1) / np.linalg.norm(true, axis=1)
    assert error.max() < 0.04


@everywhere
def test_blocks_stand_on_their_feet_and_their_inertia_is_that_of_a_prism(name):
    setting = BULLET_SETTINGS[name]
    _, centroid, second = polygon_properties(setting.shape.planar_outline)
    assert inertia(setting)[2] == pytest.approx(setting.mass * (second - np.sum(np.square(setting.com))), rel=1e-9)
    feet, com = np.array(setting.feet), centroid + setting.com
    edge = np.roll(feet, -1, axis=0) - feet
    inside = edge[:, 0] * (com - feet)[:, 1] - edge[:, 1] * (com - feet)[:, 0]
    # friction pulls at the base, the mass is in the middle: the load stays between the feet while it slides
    lean = setting.ground_friction * setting.shape.full_height / 2
    assert (inside / np.linalg.norm(edge, axis=1)).min() > lean
    assert setting.striker_mass[0] >= setting.striker_mass[1]


def test_wrong_names_are_answered_with_the_right_ones():
    with pytest.raises(SceneError, match=r"unknown setting 'bullet-hrad'.*did you mean 'bullet-hard'"):
        bullet_standin("bullet-hrad", seed=0)


def test_without_the_extra_one_line_says_so_and_the_benchmark_leaves_the_settings_out(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(CaromError, match=r"^PyBullet is not installed; it comes with: pip install carom\[bench\]$"):
        bullet_standin("bullet-hard", seed=0)
    assert not any(case.setting in BULLET_SETTINGS for case in cases())
    options = BENCHMARK.options(data=None, draws=1, samples=None, out=tmp_path, seed=0, threads=1)
    assert len(BENCHMARK.work(options)) == len(SETTINGS) + 2
    line = "Left out: the 8 settings in Bullet (PyBullet is not installed; it comes with: pip install carom[bench])."
    assert line in BENCHMARK.notes(options)


@needs_bullet
def test_the_benchmark_strikes_each_setting_anew_in_each_draw(tmp_path, monkeypatch):
    for name, value in (("TRAIN", 2), ("TEST", 2), ("SPARE", 1)):
        monkeypatch.setattr(f"carom.bench.impact_accuracy.{name}", value)
    options = BENCHMARK.options(data=None, draws=2, samples=None, out=tmp_path, seed=0, threads=1)
    keys = [key for key, _ in BENCHMARK.work(options)]
    each = [f"{name}/{draw}" for name in BULLET_SETTINGS for draw in (0, 1)]
    assert [key for key in keys if "bullet" in key] == [*each, *(f"{key}/again" for key in each)]
    first, second = (strikes_of(Case("bullet-flat"), draw, options) for draw in (0, 1))
    assert first == tmp_path / "strikes" / "bullet-flat-0"
    assert len(read(first)) == 5
    assert (first / "hit_000.csv").read_bytes() != (second / "hit_000.csv").read_bytes()


@needs_bullet
@pytest.mark.parametrize(("name", "most"), [("bullet-falling", 0.04), ("bullet-flat", 0.1)])
def test_a_recorded_strike_that_is_carried_out_again_ends_alike(name, most, tmp_path):
    """Without scatter and with little noise; of a flat face too, whose other end would send the block elsewhere."""
    quiet = Mocap(position_noise=2e-5, angle_noise=2e-4, lost=0.0, jitter=0.0)
    changes = {"scatter": 0.0, "facing_error": 0.02 if name == "bullet-flat" else 0.0}
    reality = bullet_standin(replace(BULLET_SETTINGS[name], **changes), seed=1, mocap=quiet)
    commands = commands_for(reality, 5, speed=(0.5, 0.8))
    first = usable_impacts(read(reality.execute(commands, tmp_path / "first", seed=5)))
    second = usable_impacts(read(reality.again(first.strikes, tmp_path / "second", seed=6)))
    assert first.names == second.names
    lengths = [1, 1, np.sqrt(inertia(reality.setting)[2] / reality.mass)]
    error = np.linalg.norm((first.post - second.post) * lengths, axis=1)
    assert (error < most * np.linalg.norm(first.post * lengths, axis=1)).all()


def test_means_are_over_the_settings_that_were_run():
    values = [
        {"setting": name, "method": "carom", "metric": "accuracy@0.1", "value": float(i), "draw": 0}
        for i, name in enumerate(BULLET_SETTINGS)
    ]
    rows = {(row.setting, row.metric): row.mean for row in BENCHMARK.rows(values)}
    assert rows["mean of bullet", "accuracy@0.1"] == pytest.approx(3.5)
    assert ("mean of six", "accuracy@0.1") not in rows
