"""One contract, every engine: the same facts asked of MuJoCo, of the hybrid on its patch and of that in MuJoCo."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from carom.core.constants import GRAVITY
from carom.core.errors import CaromError, SceneError
from carom.engines import MujocoSimulator, Rollout, Simulator, Status, slider_for
from carom.engines.contact_frames import contact_frames
from carom.hybrid import HybridSimulator, LearnedImpact
from carom.learn.impact.adapted_model import Prediction
from carom.learn.impact.ranges import within_learned
from carom.learn.impact.sample import sample_strikes
from carom.scenes.parameters import known
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Array, Strikes, rotate

SQUARE, SEMI = builtin("square"), builtin("semi-cylinder")
SCENES = {"square": SQUARE, "semi-cylinder": SEMI}
HYBRIDS = ("hybrid", "hybrid-mujoco")
ENGINES = ("mujoco", *HYBRIDS)
MU, BOUNCE = 0.3, 1.6
AWAY = 0.05  #: [s] before contact at which strikes start
STEP = 1e-3  #: [s] of MuJoCo here
#: [m] the arc of a semi-cylinder is a polygon
FLAT = {"square": 1e-9, "semi-cylinder": 2.5e-5}
LOOK = 2e-4  #: [m] by which MuJoCo's motions differ with when they are looked at: at every step, or at every fifth


def each(kinds: tuple[str, ...]) -> pytest.MarkDecorator:
    """One test per engine."""
    return pytest.mark.parametrize("kind", kinds)


every_engine, every_hybrid = each(ENGINES), each(HYBRIDS)
every_scene = pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())


class Bounce:
    """Frictionless rigid impact with restitution 0.6 on a striker of the scene's mass; `gain` 1 is physics."""

    def __init__(self, scene: StrikeScene, gain: float = 1.0) -> None:
        self.scene, self.gain = scene, gain

    def predict(self, strikes: Strikes) -> Prediction:
        frames = contact_frames(self.scene, strikes)
        k2, lever, mass = self.scene.gyration_radius**2, frames.lever[:, 0], self.scene.mass / self.scene.striker_mass
        push = self.gain * BOUNCE * frames.velocity[:, 1] / (1 + mass + lever**2 / k2)
        change = np.column_stack([push[:, None] * frames.axes[:, 1], push * lever / k2])
        return Prediction(strikes.target_velocity + change, np.zeros_like(change), within_learned(self.scene, frames))


@cache
def engine(kind: str, scene: str = "square", *, threads: int = 1, gain: float = 1.0, lag: float = 0.0) -> Simulator:
    where = SCENES[scene]
    if kind == "mujoco":
        return MujocoSimulator(where, {"ground_friction": MU}, threads=threads)
    learned = LearnedImpact(where, Bounce(where, gain), slider_for(where, MU), lag)
    return HybridSimulator(learned, sliding="slider" if kind == "hybrid" else "mujoco", threads=threads)


def approaching(scene: StrikeScene, count: int = 6, seed: int = 0) -> Strikes:
    """Strikes all over a scene's ranges, `AWAY` before contact, of resting targets that lie anywhere."""
    rng = np.random.default_rng(seed)
    strikes = sample_strikes(scene, count, rng)
    back = replace(strikes, striker_pose=strikes.striker_pose - AWAY * strikes.striker_velocity)
    return turned(back, rng.uniform(-3, 3, count), rng.uniform(-1, 1, (count, 2)))


def turned(strikes: Strikes, angle: object, shift: object = 0.0) -> Strikes:
    """The same strikes in a world turned about its origin, then shifted."""
    turn = np.broadcast_to(np.asarray(angle, dtype=np.float64), (len(strikes),))
    move = np.broadcast_to(np.asarray(shift, dtype=np.float64), (len(strikes), 2))

    def pose(rows: Array) -> Array:
        return np.c_[rotate(rows[:, :2], turn) + move, rows[:, 2] + turn]

    def velocity(rows: Array) -> Array:
        return np.c_[rotate(rows[:, :2], turn), rows[:, 2]]

    return Strikes(
        pose(strikes.target_pose),
        velocity(strikes.target_velocity),
        pose(strikes.striker_pose),
        velocity(strikes.striker_velocity),
    )


def central(speed: object = 0.5, *, gap: float = 0.02, target: object = (0.0, 0.0, 0.0)) -> Strikes:
    """Strikes along x at the middle of a square's side, `gap` [m] away from it."""
    v = np.atleast_1d(np.asarray(speed, dtype=np.float64))
    zero = np.zeros((len(v), 3))
    moving = np.tile(np.asarray(target, dtype=np.float64), (len(v), 1))
    return Strikes(zero, moving, np.tile([-0.06 - gap, 0.0, 0.0], (len(v), 1)), np.column_stack([v, 0 * v, 0 * v]))


def apart(one: Rollout, other: Rollout, scene: StrikeScene) -> Array:
    """[N] largest distance of the targets' poses, turning times radius of gyration included [m]."""
    difference = (one.target_pose - other.target_pose) * [1, 1, scene.gyration_radius]
    return np.linalg.norm(difference, axis=-1).max(axis=1)


def way(run: Rollout, scene: StrikeScene) -> Array:
    """[N] how far targets went, turning included [m]."""
    return np.linalg.norm((run.rest - run.target_pose[:, 0]) * [1, 1, scene.gyration_radius], axis=-1)


def same(one: Rollout, other: Rollout, *, exact: bool) -> None:
    for field in fields(Rollout):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if exact:
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=field.name)


def alike(kind: str, one: Rollout, other: Rollout, scene: StrikeScene) -> None:
    """The same impacts to the bit, and the same motion but for when it was looked at."""
    if kind == "hybrid":
        return same(one, other, exact=False)
    for name in ("time", "contact_time", "post", "impacts", "from_engine", "guarded"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert apart(one, other, scene).max() < LOOK
    return None


def rows_of(run: Rollout, rows: object) -> Rollout:
    return Rollout(**{field.name: getattr(run, field.name)[rows] for field in fields(Rollout)})


@every_engine
@every_scene
def test_rollout_has_the_shapes_and_statuses_of_the_contract(kind: str, scene: StrikeScene) -> None:
    strikes = approaching(scene)
    run = engine(kind, scene.name).rollout(strikes, 0.8, frames=5)
    assert len(run) == 6
    assert run.time.shape == (6, 5)
    np.testing.assert_allclose(run.time, np.tile(np.linspace(0, 0.8, 5), (6, 1)))
    for column in (run.target_pose, run.target_velocity, run.striker_pose):
        assert column.shape == (6, 5, 3)
        assert np.isfinite(column).all()
    assert run.post.shape == (6, 3)
    assert run.status.tolist() == [Status.AT_REST] * 6
    assert run.impacts.tolist() == [1] * 6
    assert run.from_engine.tolist() == [int(kind == "mujoco")] * 6
    assert run.guarded.tolist() == [0] * 6
    np.testing.assert_allclose(run.target_pose[:, 0], strikes.target_pose, atol=1e-9)
    np.testing.assert_allclose(run.striker_pose[:, 0], strikes.striker_pose, atol=1e-9)
    np.testing.assert_array_equal(run.rest, run.target_pose[:, -1])
    np.testing.assert_allclose(run.target_velocity[:, -1], 0.0, atol=0.1)
    assert (way(run, scene) > 1e-3).all()
    early = engine(kind, scene.name).rollout(strikes, AWAY + 0.02)
    assert early.status.tolist() == [Status.MOVING] * 6
    assert (np.linalg.norm(early.target_velocity[:, -1], axis=1) > 0.05).all()


@every_engine
@every_scene
def test_a_strike_that_passes_by_moves_nothing(kind: str, scene: StrikeScene) -> None:
    strikes = approaching(scene)
    aside = rotate(strikes.striker_velocity[:, :2], np.full(6, np.pi))
    miss = replace(strikes, striker_velocity=np.c_[aside, np.zeros(6)])
    run = engine(kind, scene.name).rollout(miss, 0.3, frames=3)
    assert run.status.tolist() == [Status.MISSED] * 6
    assert np.isnan(run.contact_time).all()
    assert np.isnan(run.post).all()
    assert not run.impacts.any()
    assert not run.from_engine.any()
    np.testing.assert_allclose(run.target_pose, np.repeat(miss.target_pose[:, None], 3, axis=1), atol=1e-5)
    gone = miss.striker_pose + 0.3 * miss.striker_velocity
    np.testing.assert_allclose(run.striker_pose[:, -1], gone, atol=1e-6)


@every_engine
@every_scene
def test_contact_comes_after_distance_over_speed(kind: str, scene: StrikeScene) -> None:
    strikes = approaching(scene, 12, seed=3)
    run = engine(kind, scene.name).rollout(strikes, 0.1)
    speed = np.linalg.norm(strikes.striker_velocity[:, :2], axis=1)
    allowed = (STEP if kind == "mujoco" else 1e-4) + FLAT[scene.name] / speed
    assert (np.abs(run.contact_time - AWAY) <= allowed + 1e-9).all()


@every_engine
def test_a_strike_too_late_for_its_duration_is_a_miss(kind: str) -> None:
    run = engine(kind).rollout(central(gap=0.02), [0.03], frames=3)
    assert run.status.tolist() == [Status.MISSED]
    assert run.impacts.tolist() == [0]
    run = engine(kind).rollout(central(gap=0.02), [0.05], frames=3)
    assert run.impacts.tolist() == [1]
    assert run.status.tolist() == [Status.MOVING]


@every_hybrid
def test_central_strike_goes_as_the_closed_form_says(kind: str) -> None:
    speed = np.array([0.3, 0.5, 0.7])
    run = engine(kind).rollout(central(speed), 0.8, frames=9)
    v = BOUNCE * speed / (1 + SQUARE.mass / SQUARE.striker_mass)
    np.testing.assert_allclose(run.post, np.column_stack([v, 0 * v, 0 * v]), atol=1e-6)
    near = 1e-6 if kind == "hybrid" else 0.02
    np.testing.assert_allclose(run.rest[:, 0], v**2 / (2 * MU * GRAVITY), rtol=near)
    np.testing.assert_allclose(run.rest[:, 1:], 0.0, atol=1e-3)
    since = np.clip(run.time - run.contact_time[:, None], 0.0, v[:, None] / (MU * GRAVITY))
    np.testing.assert_allclose(run.target_pose[..., 0], v[:, None] * since - MU * GRAVITY / 2 * since**2, atol=2e-3)


@every_engine
@every_scene
def test_mirrored_strikes_move_targets_in_a_mirror(kind: str, scene: StrikeScene) -> None:
    flip = np.array([-1.0, 1.0, -1.0])
    strikes = sample_strikes(scene, 8, np.random.default_rng(5))
    strikes = replace(strikes, striker_pose=strikes.striker_pose - AWAY * strikes.striker_velocity)
    image = Strikes(
        *(
            getattr(strikes, name) * flip
            for name in ("target_pose", "target_velocity", "striker_pose", "striker_velocity")
        )
    )
    one, other = (engine(kind, scene.name).rollout(s, 0.8, frames=3) for s in (strikes, image))
    back = replace(other, target_pose=other.target_pose * flip)
    error = apart(one, back, scene) / way(one, scene)
    if kind == "hybrid":
        assert error.max() < 1e-6
    else:  # MuJoCo picks contact points on the ground by an order of its own, which no mirror keeps
        assert np.median(error) < 0.05
        assert error.max() < 0.25
    np.testing.assert_array_equal(one.status, other.status)


@every_engine
@every_scene
def test_turned_world_has_the_turned_motion(kind: str, scene: StrikeScene) -> None:
    strikes, angle, shift = approaching(scene, 8, seed=6), 1.3, np.array([0.4, -2.0])
    one = engine(kind, scene.name).rollout(strikes, 0.8, frames=3)
    other = engine(kind, scene.name).rollout(turned(strikes, angle, shift), 0.8, frames=3)
    pose = np.concatenate([rotate(one.target_pose[..., :2], angle) + shift, one.target_pose[..., 2:] + angle], axis=-1)
    error = apart(replace(one, target_pose=pose), other, scene) / way(one, scene)
    # in MuJoCo equal but for rounding, which contacts can amplify
    assert np.median(error) < (1e-9 if kind == "hybrid" else 0.02)
    assert error.max() < (1e-6 if kind == "hybrid" else 0.1)
    post = np.c_[rotate(one.post[:, :2], angle), one.post[:, 2]]
    off = np.abs(other.post - post).max(axis=1)
    assert np.median(off) < (0.02 if kind == "mujoco" else 1e-6)
    assert off.max() < (0.5 if kind == "mujoco" else 1e-3)


@every_engine
@every_scene
def test_a_row_alone_is_the_row_in_its_batch(kind: str, scene: StrikeScene) -> None:
    strikes = approaching(scene, 4, seed=7)
    together = engine(kind, scene.name).rollout(strikes, 0.4, frames=4)
    for i in range(4):
        alone = engine(kind, scene.name).rollout(strikes[i : i + 1], 0.4, frames=4)
        alike(kind, rows_of(together, slice(i, i + 1)), alone, scene)


@each(ENGINES[::2])
def test_a_row_alone_is_bit_for_bit_the_row_in_its_batch(kind: str) -> None:
    strikes = approaching(SQUARE, 4, seed=7)
    together = engine(kind).rollout(strikes, 0.4, frames=9)
    for i in range(4):
        alone = engine(kind).rollout(strikes[i : i + 1], 0.4, frames=9)
        same(rows_of(together, slice(i, i + 1)), alone, exact=True)


@every_engine
def test_thread_count_changes_no_bit(kind: str) -> None:
    strikes = approaching(SEMI, 8, seed=8)
    one, two = (engine(kind, "semi-cylinder", threads=n).rollout(strikes, 0.3, frames=3) for n in (1, 2))
    same(one, two, exact=True)


@every_engine
def test_motion_does_not_depend_on_how_many_instants_are_kept(kind: str) -> None:
    strikes = approaching(SEMI, 5, seed=9)
    few, many = (engine(kind, "semi-cylinder").rollout(strikes, 0.6, frames=n) for n in (3, 25))
    same(few, rows_of_frames(many, 12), exact=False)


def rows_of_frames(run: Rollout, stride: int) -> Rollout:
    columns = ("time", "target_pose", "target_velocity", "striker_pose")
    return replace(run, **{name: getattr(run, name)[:, ::stride] for name in columns})


@every_engine
def test_each_row_may_last_as_long_as_it_likes(kind: str) -> None:
    strikes, lasting = approaching(SQUARE, 3, seed=10), np.array([0.1, 0.45, 0.3])
    run = engine(kind).rollout(strikes, lasting, frames=4)
    np.testing.assert_allclose(run.time[:, -1], lasting)
    for i, seconds in enumerate(lasting):
        alone = engine(kind).rollout(strikes[i : i + 1], seconds, frames=4)
        alike(kind, rows_of(run, slice(i, i + 1)), alone, SQUARE)


COLUMNS = ("target_pose", "target_velocity", "striker_pose", "striker_velocity")


def with_bad_row(strikes: Strikes, column: str, bad: float) -> Strikes:
    """The second row has a component that is no number."""
    rows = getattr(strikes, column).copy()
    rows[1, 0] = bad
    return replace(strikes, **{column: rows})


@every_engine
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_without_numbers_disturbs_no_other(kind: str, column: str, bad: float) -> None:
    strikes, rest = approaching(SQUARE, 4, seed=11), np.array([0, 2, 3])
    good = engine(kind).rollout(strikes, 0.1, frames=3)
    run = engine(kind).rollout(with_bad_row(strikes, column, bad), 0.1, frames=3)
    np.testing.assert_allclose(run.contact_time[rest], good.contact_time[rest], atol=1e-9)
    np.testing.assert_allclose(run.post[rest], good.post[rest], atol=1e-9)
    assert apart(rows_of(run, rest), rows_of(good, rest), SQUARE).max() < LOOK


@pytest.mark.parametrize(("kind", "column"), [(k, c) for k in ENGINES for c in COLUMNS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_without_numbers_fails(kind: str, column: str) -> None:
    for bad in (np.nan, np.inf):
        run = engine(kind).rollout(with_bad_row(approaching(SQUARE, 3, seed=11), column, bad), 0.06)
        assert run.status[1] == Status.FAILED


@every_engine
def test_nothing_to_do_is_done(kind: str) -> None:
    run = engine(kind).rollout(central()[:0], 0.5, frames=3)
    assert len(run) == 0
    assert run.target_pose.shape == (0, 3, 3)


@every_engine
def test_a_moving_target_that_nothing_touches_slides(kind: str) -> None:
    far = replace(central(target=(0.0, 0.5, 0.0)), striker_pose=np.array([[3.0, 3.0, 0.0]]))
    run = engine(kind).rollout(far, 0.2, frames=3)
    np.testing.assert_allclose(run.rest[0], [0.0, 0.5**2 / (2 * MU * GRAVITY), 0.0], atol=1e-3)
    assert not run.impacts.any()
    assert np.isnan(run.contact_time).all()


@every_engine
def test_a_moving_target_that_nothing_touches_counts_as_missed(kind: str) -> None:
    far = replace(central(target=(0.0, 0.5, 0.0)), striker_pose=np.array([[3.0, 3.0, 0.0]]))
    assert engine(kind).rollout(far, 0.05).status.tolist() == [Status.MISSED]


@every_engine
def test_a_moving_target_is_met_where_it_will_be(kind: str) -> None:
    """It flees at 0.3 m/s and slows: gap + v t - mu g t^2 / 2 = 0.6 t."""
    run = engine(kind).rollout(central(0.6, target=(0.3, 0.0, 0.0)), 0.1, frames=3)
    grip = MU * GRAVITY
    meets = (-(0.6 - 0.3) + np.sqrt((0.6 - 0.3) ** 2 + 2 * grip * 0.02)) / grip
    assert run.contact_time[0] == pytest.approx(meets, abs=2e-3)
    assert run.impacts.tolist() == [1]
    if kind != "mujoco":
        v = 0.3 - grip * meets
        assert run.post[0, 0] == pytest.approx(v + BOUNCE * (0.6 - v) / (1 + 0.25 / 1000), rel=0.01)


def test_one_moving_target_does_not_change_how_the_others_slide() -> None:
    strikes = approaching(SEMI, 5, seed=12)
    moving = strikes.target_velocity.copy()
    moving[0] = [0.05, 0.0, 0.0]
    hybrid = engine("hybrid", "semi-cylinder")
    plain, mixed = hybrid.rollout(strikes, 0.4), hybrid.rollout(replace(strikes, target_velocity=moving), 0.4)
    np.testing.assert_allclose(mixed.contact_time[1:], plain.contact_time[1:], atol=1e-9)
    np.testing.assert_allclose(mixed.post[1:], plain.post[1:], atol=1e-9)
    assert apart(mixed, plain, SEMI)[1:].max() < 3e-4


@every_engine
def test_orders_are_followed_while_nothing_is_near(kind: str) -> None:
    orders = np.array([[[0.2, 0.0, 1.0], [0.0, -0.3, 0.0], [0.0, 0.0, -2.0]]])
    run = engine(kind).rollout(central(0.0, gap=0.5), 0.3, orders, frames=4)
    expected = np.array([[0.0, 0.0, 0.0], [0.02, 0.0, 0.1], [0.02, -0.03, 0.1], [0.02, -0.03, -0.1]])
    np.testing.assert_allclose(run.striker_pose[0] - run.striker_pose[0, 0], expected, atol=1e-6)
    assert run.status.tolist() == [Status.MISSED]


@every_hybrid
def test_a_striker_that_goes_on_strikes_twice(kind: str) -> None:
    """At 0.5 m/s throughout it sends the block off at 0.8 m/s, and meets it again 0.2 s later, slowed to 0.2 m/s."""
    run = engine(kind).rollout(central(0.5), 0.3, [[[0.5, 0.0, 0.0]]], frames=31)
    v, grip = BOUNCE * 0.5 / (1 + 0.25 / 1000), MU * GRAVITY
    again = 2 * (v - 0.5) / grip
    slowed = v - grip * again
    then = slowed + BOUNCE * (0.5 - slowed) / (1 + 0.25 / 1000)
    left = 0.3 - 0.04 - again
    assert run.impacts.tolist() == [2]
    assert run.from_engine.tolist() == [0]
    assert run.contact_time[0] == pytest.approx(0.04, abs=1e-4)
    np.testing.assert_allclose(run.post[0], [v, 0.0, 0.0], atol=1e-6)
    assert run.target_velocity[0, -1, 0] == pytest.approx(then - grip * left, rel=0.03)
    assert run.rest[0, 0] == pytest.approx(0.5 * again + then * left - grip / 2 * left**2, rel=0.02)
    np.testing.assert_allclose(run.striker_pose[0, :, 0], -0.08 + 0.5 * run.time[0], atol=1e-6)


@every_hybrid
def test_contact_slower_than_learned_is_mujocos(kind: str) -> None:
    assert 0.9 * SQUARE.speed[0] > 0.1
    run = engine(kind).rollout(central([0.1, 0.5], gap=0.01), 0.4, frames=3)
    assert run.impacts.tolist() == [1, 1]
    assert run.from_engine.tolist() == [1, 0]
    own = engine("mujoco").rollout(central(0.1, gap=0.01), 0.4)
    assert run.post[0, 0] == pytest.approx(own.post[0, 0], rel=0.25)
    assert run.rest[0, 0] > 5e-4


@every_hybrid
def test_a_slow_striker_that_goes_on_pushes_the_target_before_it(kind: str) -> None:
    order = [[[0.1, 0.0, 0.0]]]
    run = engine(kind).rollout(central(0.1, gap=0.01), 0.4, order, frames=5)
    own = engine("mujoco").rollout(central(0.1, gap=0.01), 0.4, order, frames=5)
    assert run.from_engine[0] >= 1
    assert run.rest[0, 0] == pytest.approx(0.03, abs=5e-3)
    assert apart(run, own, SQUARE)[0] < 1e-3
    assert run.target_velocity[0, -1, 0] == pytest.approx(0.1, rel=0.25)


@every_hybrid
def test_orders_keep_their_times_when_mujoco_takes_over(kind: str) -> None:
    """It pushes at 0.1 m/s from 0.1 s on, and is told to stop at 0.3 s of 0.6 s."""
    orders = [[[0.1, 0.0, 0.0], [0.0, 0.0, 0.0]]]
    run = engine(kind).rollout(central(0.1, gap=0.01), 0.6, orders, frames=13)
    moved = run.striker_pose[0, :, 0] - run.striker_pose[0, 0, 0]
    np.testing.assert_allclose(moved, np.minimum(0.1 * run.time[0], 0.03), atol=1e-3)
    own = engine("mujoco").rollout(central(0.1, gap=0.01), 0.6, orders, frames=13)
    assert apart(run, own, SQUARE)[0] < 1e-3


@every_hybrid
def test_strikes_at_an_angle_that_was_never_learned_are_mujocos(kind: str) -> None:
    angle = np.array([0.0, 0.2, 0.9])  # against the side's normal; learned up to 15 degrees, with a margin
    v = 0.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    start = np.array([-0.06, 0.0]) - 0.03 * v
    zero = np.zeros((3, 3))
    run = engine(kind).rollout(Strikes(zero, zero, np.c_[start, zero[:, 0]], np.c_[v, zero[:, 0]]), 0.5)
    assert run.impacts.tolist() == [1, 1, 1]
    assert run.from_engine.tolist() == [0, 0, 1]
    assert run.post[2, 1] > 0.01  # rubbed along; the frictionless model knows nothing of that
    np.testing.assert_allclose(run.post[:2, 1], 0.0, atol=1e-6)


@every_hybrid
def test_a_model_that_creates_energy_is_held_back_and_counted(kind: str) -> None:
    run = engine(kind, gain=3.0).rollout(central([0.5, 0.7]), 0.2)
    assert run.guarded.tolist() == [1, 1]
    # a held striker gives at most twice its speed
    np.testing.assert_allclose(run.post[:, 0], 2 * np.array([0.5, 0.7]), rtol=1e-3)


def test_hybrids_agree_on_when_and_what() -> None:
    for scene in SCENES.values():
        scale = np.array([1, 1, scene.gyration_radius])
        strikes = approaching(scene, 12, seed=13)
        patch, mujoco = (engine(kind, scene.name).rollout(strikes, 0.8) for kind in HYBRIDS)
        np.testing.assert_allclose(mujoco.contact_time, patch.contact_time, atol=1e-4 + FLAT[scene.name] / 0.2)
        np.testing.assert_allclose(mujoco.post * scale, patch.post * scale, atol=5e-3)
        np.testing.assert_array_equal(mujoco.from_engine, patch.from_engine)
        # they slide differently, but not elsewhere
        apart_by = np.linalg.norm(mujoco.rest[:, :2] - patch.rest[:, :2], axis=1)
        assert np.median(apart_by / np.linalg.norm((patch.rest - strikes.target_pose)[:, :2], axis=1)) < 0.2


@every_hybrid
def test_lag_delays_the_motion_and_changes_no_resting_place(kind: str) -> None:
    prompt, late = (engine(kind, lag=lag).rollout(central(), 0.6, frames=61) for lag in (0.0, 0.01))
    assert late.contact_time[0] == pytest.approx(prompt.contact_time[0], abs=1e-6)
    np.testing.assert_allclose(late.target_pose[0, 1:, 0], prompt.target_pose[0, :-1, 0], atol=1e-3)
    np.testing.assert_allclose(late.rest, prompt.rest, atol=1e-3)


@every_engine
@pytest.mark.parametrize("duration", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0, 1.0], [1.0, 2.0], [[1.0], [2.0], [3.0]]])
def test_wrong_durations_are_refused(kind: str, duration: object) -> None:
    with pytest.raises(CaromError, match=r"^duration: expected positive seconds, one number or 3, got "):
        engine(kind).rollout(central([0.3, 0.4, 0.5]), duration)  # type: ignore[arg-type]


@every_engine
def test_wrong_frames_and_controls_are_refused(kind: str) -> None:
    for frames in (1, 0, -3):
        with pytest.raises(CaromError, match=rf"^frames: expected 2 or more \(start and end\), got {frames}$"):
            engine(kind).rollout(central(), 0.1, frames=frames)
    for shape in ((1, 3), (2, 5, 3), (1, 5, 2), (1, 0, 3), ()):
        with pytest.raises(CaromError, match=r"^controls: expected an array of shape \(1, K, 3\), velocities of the "):
            engine(kind).rollout(central(), 0.1, np.zeros(shape))
    with pytest.raises(CaromError, match=r"^controls: expected finite velocities"):
        engine(kind).rollout(central(), 0.1, np.full((1, 2, 3), np.nan))


@every_hybrid
def test_validation_names_a_foreign_scene(kind: str) -> None:
    assert engine(kind).scene == SQUARE
    assert engine(kind).validate(SQUARE).ok
    verdict = engine(kind).validate(SEMI)
    assert not verdict.ok
    assert verdict.cannot == ("its impact model was made for scene 'square', not 'semi-cylinder'",)


def test_validation_names_what_mujoco_leaves_out() -> None:
    assert engine("mujoco").validate(SQUARE).ignored == ()
    verdict = engine("mujoco").validate(replace(SQUARE, unknown=(*SQUARE.unknown, known("striker_inertia"))))
    assert verdict.ok
    assert verdict.ignored == ("unknown 'striker_inertia': has no meaning here",)


def test_a_way_of_sliding_that_does_not_exist_is_refused() -> None:
    learned = LearnedImpact(SQUARE, Bounce(SQUARE), slider_for(SQUARE, MU))
    with pytest.raises(SceneError, match=r"^unknown sliding 'slyder' \(did you mean 'slider'\?\)"):
        HybridSimulator(learned, sliding="slyder")
