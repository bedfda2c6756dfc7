"""The stand-ins as a lab: what their folders hold, what is true of them, and what switching effects off gives."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from carom.core.errors import CaromError, SceneError
from carom.reality import SETTINGS, SHAPES, Effects, Mocap, sample_commands, standin
from carom.reality.pressure_slide import RISE_SPEED
from carom.reality.settings import HARDER
from carom.recordings import read
from carom.state import StrikeCommands, rotate, wrap_angle

#: where one strike of seed 2 leaves the block of seed 1 [m, m, rad]
RESTS = {
    "resin-high": (0.00587691, 0.01496716, 0.39508834),
    "resin-low": (0.02392611, 0.01536992, 0.60444264),
    "nylon-high": (0.00830522, 0.01444252, 0.53290753),
    "nylon-low": (0.02908265, 0.01586415, 0.86501239),
    "petg-cf-high": (0.00186073, 0.01460482, 0.41195638),
    "petg-cf-low": (0.01648816, 0.01495820, 0.61024403),
    "nylon-oiled": (0.04881757, 0.01873985, 1.17114495),
}


def commands_for(reality, count, seed=0, **options):
    return sample_commands(reality.shape, count, np.random.default_rng(seed), **options)


def mirrored(commands):
    flip = np.array([-1.0, 1.0])
    return StrikeCommands(
        commands.contact_point * flip, commands.velocity * flip, commands.target_pose * [-1.0, 1.0, -1.0]
    )


def size(velocity, gyration):
    """Kinetic-energy norm of planar velocities [N, 3], as a speed."""
    return np.linalg.norm(velocity * [1, 1, gyration], axis=1)


def measured_post(trajectory, duration):
    """Velocity at separation from the recorded path of the declared centre of mass: a plain quadratic fit.

    Fitted over the first part of the motion, and taken where the path, drawn back, leaves the resting place: that is
    half the contact before separation, for a velocity that rises evenly.
    """
    path = np.column_stack([trajectory.planar_com("block"), trajectory.yaw("block")])
    time, good = trajectory.time, np.isfinite(path[:, 0])
    rest = np.median(path[good & (time < time[0] + 0.28)], axis=0)
    away = path - rest
    final = np.median(away[good][-20:], axis=0)
    lever = np.array([1.0, 1.0, 0.03])
    gone = np.linalg.norm(away * lever, axis=1)
    start = time[np.argmax(gone > max(1.5e-3, 0.1 * np.linalg.norm(final * lever)))]
    # Evenly braked, a block is at 0.9 of its way after two thirds of its time; beyond that lies the hook of its end.
    end = time[np.argmax(gone > 0.9 * np.linalg.norm(final * lever))]
    use = good & (time >= start - 1e-9) & (time <= min(end, start + 0.12))
    middle = time[use].mean()
    fit = np.polyfit(time[use] - middle, away[use], 2)
    back = time[use][0] - middle - np.linspace(-0.01, 0.03, 400)
    paths = np.stack([np.polyval(fit[:, k], back) * lever[k] for k in range(3)], axis=-1)
    at = back[np.argmin(np.linalg.norm(paths, axis=-1))] + duration / 2
    return 2 * fit[0] * at + fit[1]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    reality = standin("petg-cf-low", seed=5)
    commands = commands_for(reality, 60)
    folder = reality.execute(commands, tmp_path_factory.mktemp("lab") / "round_1", seed=3)
    return reality, commands, folder


def test_folder_obeys_the_format_and_hides_what_a_lab_does_not_know(executed):
    reality, commands, folder = executed
    header = yaml.safe_load((folder / "recordings.yaml").read_text())
    assert header["format"] == "carom-recordings/1"
    semi = {"role": "target", "shape": "semi-cylinder", "radius": 0.05, "height": 0.05, "mass": reality.mass}
    assert header["bodies"] == {
        "block": semi,
        "striker": {"role": "striker", "shape": "cylinder", "radius": 0.02, "height": 0.04},
    }
    assert header["trajectories"][0]["tags"]["reality"] == "stand-in petg-cf-low"
    recordings = read(folder)
    assert len(recordings) == len(commands)
    assert recordings.trajectories[7].name == "hit_007.csv"
    first = (folder / "hit_000.csv").read_text().splitlines()[0].split(",")
    parts = ("x", "y", "z", "qw", "qx", "qy", "qz")
    assert first == ["time", *(f"{body}.{part}" for body in ("block", "striker") for part in parts)]


def test_same_seed_same_bytes_and_another_seed_other_bytes(executed, tmp_path):
    reality, commands, folder = executed
    again = standin("petg-cf-low", seed=5).execute(commands[:9], tmp_path / "again", seed=3)
    for i in range(9):  # the others struck after them change nothing
        assert (again / f"hit_{i:03d}.csv").read_bytes() == (folder / f"hit_{i:03d}.csv").read_bytes()
    other = reality.execute(commands[:1], tmp_path / "other", seed=4)
    assert (other / "hit_000.csv").read_bytes() != (folder / "hit_000.csv").read_bytes()
    with pytest.raises(CaromError, match="already holds recordings"):
        reality.execute(commands, folder, seed=3)


def test_recorded_striker_lands_on_the_commanded_point(executed):
    _, commands, folder = executed
    for i, trajectory in enumerate(read(folder).trajectories):
        before = (trajectory.time < 0.29) & np.isfinite(trajectory.position_world["striker"][:, 0])
        path = trajectory.position_world["striker"][before, :2]
        line = np.polyfit(trajectory.time[before], path, 1)
        velocity = rotate(line[0], -commands.target_pose[i, 2])
        np.testing.assert_allclose(velocity, commands.velocity[i], atol=2e-3)
        # draw the path on to where the round striker's surface meets the commanded point
        x, y, yaw = commands.target_pose[i]
        wanted = rotate(commands.contact_point[i] * (1 + 0.02 / 0.05), yaw) + np.array([x, y])
        miss = wanted - line[1]
        across = abs(line[0][0] * miss[1] - line[0][1] * miss[0]) / np.linalg.norm(line[0])
        assert across < 0.5e-3


def test_recorded_first_motion_agrees_with_truth(executed):
    reality, commands, folder = executed
    truth = reality.truth(commands, seed=3)
    k = reality.bodies["block"].gyration_radius
    post = np.array([measured_post(t, reality.effects.contact_duration) for t in read(folder).trajectories])
    error = size(post - truth.post, k) / size(truth.post, k)
    assert np.median(error) < 0.02
    assert np.quantile(error, 0.95) < 0.06
    rest = np.array([[*t.position_world["block"][-1, :2], t.yaw("block")[-1]] for t in read(folder).trajectories])
    seen = np.isfinite(rest[:, 0])
    np.testing.assert_allclose(rest[seen, :2], truth.rest[seen, :2], atol=1e-3)
    assert np.abs(wrap_angle(rest - truth.rest)[seen, 2]).max() < np.radians(1.2)


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("striker", ["round", "flat"])
def test_without_effects_mirrored_strikes_have_mirrored_outcomes(shape, striker):
    reality = standin("resin-high", shape, effects=Effects.none(), striker=striker, seed=0)
    commands = commands_for(reality, 80)
    one, other = reality.truth(commands, seed=1), reality.truth(mirrored(commands), seed=2)
    np.testing.assert_allclose(other.post, one.post * [-1, 1, -1], atol=1e-9)
    np.testing.assert_allclose(wrap_angle(other.rest[:, 2] + one.rest[:, 2]), 0, atol=1e-6)
    np.testing.assert_allclose(other.rest[:, :2], one.rest[:, :2] * [-1, 1], atol=1e-6)


def test_without_effects_the_world_has_no_preferred_direction():
    reality = standin("nylon-low", effects=Effects.none(), seed=0)
    commands = commands_for(reality, 40)
    turned = replace(commands, target_pose=commands.target_pose + np.array([0.0, 0.0, 1.1]))
    one, other = reality.truth(commands, seed=1), reality.truth(turned, seed=1)
    np.testing.assert_allclose(other.post[:, :2], rotate(one.post[:, :2], np.full(40, 1.1)), atol=1e-12)


@pytest.mark.parametrize(
    "off",
    [
        {"com_offset": 0.0},
        {"restitution_variation": 0.0},
        {"impulse_scatter": 0.0},
        {"friction_scatter": 0.0},
        {"striker_mass": None},
        {"contact_duration": 0.0},
        {"pressure_tilt": 0.0},
    ],
    ids=lambda off: next(iter(off)),
)
def test_each_effect_can_be_switched_off_alone_and_matters(off):
    full = standin("resin-high", seed=2)
    commands = commands_for(full, 60)
    lesser = standin("resin-high", effects=replace(full.effects, **off), seed=2)
    one, other = full.truth(commands, seed=1), lesser.truth(commands, seed=1)
    # A longer contact leaves the rest alone: what the ground drags, the way made during the contact makes up for.
    changed = size(one.post - other.post, 0.03) if "contact_duration" in off else (one.rest - other.rest)[:, :2]
    assert 2e-4 < np.abs(changed).max() < 0.06


def test_strikes_lose_energy_and_push_forward():
    for striker in ("round", "flat"):
        for shape in SHAPES:
            reality = standin("nylon-high", shape, striker=striker, seed=1)
            commands = commands_for(reality, 100)
            truth = reality.truth(commands, seed=0)
            k = reality.bodies["block"].gyration_radius
            speed = np.linalg.norm(commands.velocity, axis=1)
            light, _ = reality.effects.striker_mass
            assert (reality.mass * size(truth.post, k) ** 2 < light * 2 * speed**2).all()
            along = (truth.post[:, :2] * truth.strikes.striker_velocity[:, :2]).sum(1)
            assert (along > 0).all()
            assert np.median(size(truth.post, k) / speed) > 1  # a heavy striker and restitution


def test_truth_at_the_mass_centre_differs_by_the_offset_only(executed):
    reality, commands, _ = executed
    truth = reality.truth(commands, seed=3)
    gap = np.linalg.norm((truth.post - truth.post_mass_centre)[:, :2], axis=1)
    np.testing.assert_allclose(gap, np.abs(truth.post[:, 2]) * reality.effects.com_offset, atol=1e-12)
    np.testing.assert_allclose(truth.contact_point, commands.contact_point, atol=1e-12)
    np.testing.assert_array_equal(truth.strikes.target_pose, commands.target_pose)


def test_scatter_is_one_to_three_percent():
    reality = standin("petg-cf-high", seed=0)
    commands = commands_for(reality, 400)
    k = reality.bodies["block"].gyration_radius
    real, mean = reality.truth(commands, seed=1).post, reality.truth(commands, seed=1, scatter=False).post
    error = size(real - mean, k) / size(mean, k)
    assert 0.01 < np.sqrt((error**2).mean()) < 0.03
    np.testing.assert_array_equal(mean, reality.truth(commands, seed=2, scatter=False).post)


@pytest.mark.parametrize("setting", ["resin-high", "nylon-low"])
def test_a_perfect_predictor_scores_near_one_through_the_mocap(setting, tmp_path):
    reality = standin(setting, seed=0)
    commands = commands_for(reality, 100)
    folder = reality.execute(commands, tmp_path / "lab", seed=1)
    k = reality.bodies["block"].gyration_radius
    post = np.array([measured_post(t, reality.effects.contact_duration) for t in read(folder).trajectories])
    error = size(reality.truth(commands, seed=1, scatter=False).post - post, k) / size(post, k)
    assert (error < 0.1).mean() >= 0.95


def test_a_stand_in_is_its_seed():
    commands = commands_for(standin("resin-low", seed=0), 20)
    one, same, other = (standin("resin-low", seed=s).truth(commands, seed=0, scatter=False) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.post, same.post)
    assert np.abs(one.post - other.post).max() > 1e-3


def test_any_convex_outline_will_do(tmp_path):
    reality = standin("resin-low", [[0, 0], [0.1, 0], [0.08, 0.05], [0.02, 0.06]], seed=0, mocap=Mocap(lost=0.0))
    folder = reality.execute(commands_for(reality, 3), tmp_path / "odd", seed=0)
    header = yaml.safe_load(Path(folder / "recordings.yaml").read_text())
    assert header["bodies"]["block"]["shape"] == "extruded"
    assert not any(np.isnan(t.position_world["block"]).any() for t in read(folder).trajectories)


def test_unknown_names_are_told_with_those_there_are():
    with pytest.raises(SceneError, match=r"unknown setting 'resin-hgih' .did you mean 'resin-high'.*nylon-low"):
        standin("resin-hgih", seed=0)
    with pytest.raises(SceneError, match=r"unknown shape 'squre' .did you mean 'square'"):
        standin("resin-high", "squre", seed=0)
    with pytest.raises(SceneError, match=r"unknown striker 'rond' .did you mean 'round'"):
        standin("resin-high", seed=0, striker="rond")
    with pytest.raises(SceneError, match="clockwise"):
        standin("resin-high", [[0, 0], [0, 1], [1, 0]], seed=0)
    with pytest.raises(CaromError, match="at least one strike"):
        standin("resin-high", seed=0).truth(
            StrikeCommands(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 3))), seed=0
        )


def test_the_six_settings_span_what_they_should():
    assert len(SETTINGS) == 6
    for setting in SETTINGS.values():
        assert 0.45 <= setting.restitution <= 0.75
        assert 0.15 <= setting.friction <= 0.5
        assert setting.ground_friction == pytest.approx(0.45 if setting.ground == "high" else 0.22, rel=0.1)


def test_on_an_oiled_table_friction_grows_with_the_slip():
    """Stopping distances are those of the law, integrated; spinning and gliding blocks feel it at every point."""
    from carom.reality.pressure_slide import GRAVITY, RISE_SPEED, footprint, slide

    outline = SHAPES["square"].planar_outline
    base = footprint(outline, (0.0, 0.0), 0.03, rise=1.0)
    speeds = np.array([0.2, 0.6, 1.5])
    start = np.column_stack([speeds, np.zeros((3, 2))])
    far = slide(base, np.zeros((3, 3)), start, 0.1).pose[:, -1, 0]
    for speed, distance in zip(speeds, far, strict=True):
        v = np.linspace(0, speed, 20_001)
        whole = np.trapezoid(v / (0.1 * GRAVITY * (2 - np.exp(-v / RISE_SPEED))), v)
        assert distance == pytest.approx(whole, rel=1e-4)
    plain = slide(footprint(outline, (0.0, 0.0), 0.03), np.zeros((3, 3)), start, 0.1).pose[:, -1, 0]
    np.testing.assert_allclose(plain, speeds**2 / (0.2 * GRAVITY), rtol=1e-6)


def test_pads_at_both_ends_take_their_share_of_the_restitution_and_the_middle_none():
    setting = HARDER["nylon-padded"]
    reality = standin("nylon-padded", "square", effects=replace(Effects.none(), pads=setting.effects.pads), seed=0)
    places = np.array([[0.04, 0.0], [-0.04, 0.0], [0.0, 0.04], [0.0, -0.04]])
    speed = 0.5  # at which the setting states its restitution; blows through the centre by a striker nothing stops
    blows = StrikeCommands(places, -speed * places / 0.04, np.zeros((4, 3)))
    post = np.linalg.norm(reality.truth(blows, seed=0).post[:, :2], axis=1)
    bare, padded = setting.restitution, setting.restitution * (1 - setting.effects.pads)
    np.testing.assert_allclose(post / speed - 1, [padded, padded, bare, bare], atol=1e-9)
    # along a semi-cylinder's arc it changes smoothly: no step that ten strikes could miss
    around = np.linspace(0, np.pi, 181)
    e = reality._restitution(np.stack([np.cos(around), np.sin(around)], axis=-1), np.full(181, speed))
    assert np.abs(np.diff(e)).max() < 0.02 * bare
    assert e.min() == pytest.approx(padded)


def test_the_padded_block_differs_from_its_nylon_in_pads_and_ground_only():
    padded, plain = HARDER["nylon-padded"], SETTINGS["nylon-low"]
    same = {name: getattr(plain, name) for name in ("name", "ground", "ground_friction", "ground_rise", "effects")}
    assert replace(padded, **same) == plain
    assert replace(padded.effects, pads=0.0) == plain.effects
    at_one = padded.ground_friction * (1 + padded.ground_rise * (1 - np.exp(-1.0 / RISE_SPEED)))
    assert (padded.ground_friction, round(at_one, 2)) == (0.015, 0.09)


def test_the_papers_settings_have_no_pads_and_stay_as_they_were():
    """Committed figures rest on them."""
    where = {}
    for name, setting in {**SETTINGS, "nylon-oiled": HARDER["nylon-oiled"]}.items():
        assert setting.effects.pads == 0
        reality = standin(name, seed=1)
        where[name] = reality.truth(commands_for(reality, 3), seed=2).rest[2]
    assert set(where) == set(RESTS)
    for name, rest in where.items():
        np.testing.assert_allclose(rest, RESTS[name], atol=1e-7, err_msg=name)


@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_striker_is_out_of_the_way_after_the_blow(shape):
    reality = standin(
        "nylon-low", shape, seed=0, mocap=Mocap(rate=400.0, jitter=0.0, position_noise=0.0, angle_noise=0.0, lost=0.0)
    )
    commands = commands_for(reality, 100)
    outline = reality.shape.planar_outline
    edge = np.roll(outline, -1, axis=0) - outline
    for sampled in reality._sample(commands, 0):
        late = np.flatnonzero(sampled.time > 0.32)
        q = sampled.target_quaternion[late]
        offset = (sampled.striker_position - sampled.target_position)[late, :2]
        seen = rotate(offset, -2 * np.arctan2(q[:, 3], q[:, 0]))
        along = np.clip(np.einsum("tei,ei->te", seen[:, None] - outline, edge) / (edge**2).sum(1), 0, 1)
        away = np.linalg.norm(seen[:, None] - outline - along[..., None] * edge, axis=-1).min(1)
        assert away.min() > 0.0205


def test_a_flush_face_ends_up_parting_all_along():
    reality = standin("nylon-low", "square", striker="flat", seed=0)
    commands = commands_for(reality, 200)
    scatter = reality._scatter(0, 0, 200, False)
    touch, _ = reality._motion(commands, scatter)
    target, striker = reality._blow(touch, commands.velocity, commands.target_pose[:, 2], scatter)
    assert touch.flush.mean() > 0.9
    lever = touch.points - reality._com
    moving = target[:, None, :2] + target[:, None, 2:] * np.stack([-lever[..., 1], lever[..., 0]], axis=-1)
    parting = np.einsum("nki,ni->nk", moving - striker[:, None], touch.normal)
    assert parting[touch.flush].min() > -2e-3
