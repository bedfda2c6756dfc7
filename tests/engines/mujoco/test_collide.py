"""Strikes in MuJoCo: momentum, symmetry, independence of pose and threads, and what each parameter does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from carom.core.errors import SceneError
from carom.engines.approach import touching
from carom.engines.mujoco.collide import MISSED, PUSHING, SEPARATED, Collider
from carom.scenes.parameters import from_unit, known
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import Array, Strikes, rotate

BOX = Body("box", "target", Shape("box", size=(0.08, 0.08, 0.05)), 0.2)
COM = (known("com_x"), known("com_y"))
ROUND = StrikeScene("round", BOX, Striker(radius=0.02, mass=0.5), COM)
FLAT = StrikeScene("flat", BOX, Striker(width=0.03, mass=0.5))
SMOOTH = 1e-5  #: the least friction MuJoCo knows


def strikes(position: object, velocity: object, yaw: float = 0.0) -> Strikes:
    """Strikes of a target at rest at the origin; position and velocity [2] or [N, 2] of the striker."""
    p, v = np.broadcast_arrays(np.atleast_2d(position), np.atleast_2d(velocity))
    zero = np.zeros((len(p), 3))
    return Strikes(zero, zero, np.c_[p, np.full(len(p), yaw)], np.c_[v, np.zeros(len(p))])


def values(scene: StrikeScene, count: int = 1, **given: object) -> Array:
    columns = [np.broadcast_to(given.get(p.name, p.default), (count,)) for p in scene.parameters()]
    return np.stack(columns, axis=-1).astype(float)


def random_case(scene: StrikeScene, count: int, seed: int) -> tuple[Strikes, Array]:
    rng = np.random.default_rng(seed)
    point, outward = scene.outline.point_at(rng.uniform(0, scene.outline.lengths.sum(), count))
    heading = np.arctan2(-outward[:, 1], -outward[:, 0]) + rng.uniform(-0.25, 0.25, count)
    speed = rng.uniform(0.2, 0.8, count)
    velocity = speed[:, None] * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    return strikes(point, velocity), from_unit(scene.parameters(), rng.random((count, len(scene.parameters()))))


def test_momentum_is_shared_when_the_ground_is_smooth() -> None:
    collider = Collider(ROUND, ROUND.parameters(), threads=1)
    case = strikes([[-0.06, 0.0], [-0.06, 0.01], [0.02, -0.06]], [[0.5, 0.0], [0.6, 0.1], [-0.1, 0.4]])
    out = collider.run(case, values(ROUND, 3, ground_friction=SMOOTH, striker_damping=0.3))
    assert out.status.tolist() == [SEPARATED] * 3
    batch = collider._batch
    assert batch is not None
    striker_after = np.asarray(batch.bind("qvel"))[:, 6:8]
    gained = 0.2 * out.post[:, :2]
    lost = 0.5 * (case.striker_velocity[:, :2] - striker_after)
    # the ground's reaction to the impact still rubs a little; what is left over is below a thousandth
    np.testing.assert_allclose(gained, lost, atol=1e-3 * 0.2)


def test_central_strike_of_a_centred_block_neither_turns_nor_swerves() -> None:
    out = Collider(ROUND, ROUND.parameters(), threads=1).run(strikes([-0.06, 0.0], [0.5, 0.0]), values(ROUND))
    assert out.post[0, 0] > 0.2
    np.testing.assert_allclose(out.post[0, 1:], 0.0, atol=1e-6)


@pytest.mark.parametrize("scene", [replace(builtin("semi-cylinder"), unknown=()), FLAT], ids=["semi-cylinder", "flat"])
def test_mirrored_strikes_have_mirrored_outcomes(scene: StrikeScene) -> None:
    case, p = random_case(scene, 24, 3)
    mirror = np.array([-1.0, 1.0, -1.0])
    pose = case.striker_pose * mirror
    pose[:, 2] += np.pi  # the face keeps looking at the target
    other = replace(case, striker_pose=pose, striker_velocity=case.striker_velocity * mirror)
    collider = Collider(scene, scene.parameters(), threads=1)
    a, b = collider.run(case, p), collider.run(other, p)
    size = np.linalg.norm(a.post * [1, 1, scene.gyration_radius], axis=-1)
    error = np.linalg.norm((a.post - b.post * mirror) * [1, 1, scene.gyration_radius], axis=-1) / size
    # MuJoCo picks the contact points of a mesh on the ground by an order of its own, which no mirror keeps
    assert np.median(error) < 0.02
    assert np.quantile(error, 0.8) < 0.06


@pytest.mark.parametrize("scene", [builtin("triangle"), FLAT], ids=["triangle", "flat"])
def test_outcome_turns_and_moves_with_the_whole_strike(scene: StrikeScene) -> None:
    case, p = random_case(scene, 16, 5)
    case = replace(case, target_velocity=np.tile([0.02, -0.03, 0.4], (16, 1)))
    turn, shift = 2.2, np.array([1.7, -0.4])

    def moved(pose: Array) -> Array:
        return np.c_[rotate(pose[:, :2], turn) + shift, pose[:, 2] + turn]

    def turned(velocity: Array) -> Array:
        return np.c_[rotate(velocity[:, :2], turn), velocity[:, 2]]

    other = Strikes(
        moved(case.target_pose), turned(case.target_velocity), moved(case.striker_pose), turned(case.striker_velocity)
    )
    collider = Collider(scene, scene.parameters(), threads=1)
    a, b = collider.run(case, p), collider.run(other, p)
    np.testing.assert_array_equal(a.status, b.status)
    # equal but for rounding, which an impact at a corner can amplify
    error = np.abs(turned(a.post) - b.post).max(axis=-1)
    assert np.median(error) < 1e-9
    assert np.quantile(error, 0.9) < 1e-3


def test_thread_count_changes_no_bit() -> None:
    scene = builtin("semi-cylinder")
    case, p = random_case(scene, 64, 7)
    one = Collider(scene, scene.parameters(), threads=1).run(case, p)
    two = Collider(scene, scene.parameters(), threads=2).run(case, p)
    assert one.post.tobytes() == two.post.tobytes()
    assert one.status.tobytes() == two.status.tobytes()


def test_outcome_of_a_strike_does_not_depend_on_its_neighbours() -> None:
    collider = Collider(ROUND, ROUND.parameters(), threads=1)
    case, p = random_case(ROUND, 6, 11)
    together = collider.run(case, p).post
    alone = np.concatenate([collider.run(case[i : i + 1], p[i : i + 1]).post for i in range(6)])
    np.testing.assert_array_equal(together, alone)


def test_statuses_tell_impacts_pushes_and_misses() -> None:
    scene = replace(ROUND, striker=Striker(radius=0.02))
    case = strikes([[-0.06, 0.0], [-0.06, 0.0], [-0.06, 0.2]], [0.5, 0.0])
    p = values(scene, 3, striker_damping=[0.15, 3.0, 1.0])
    out = Collider(scene, scene.parameters(), threads=1).run(case, p)
    assert out.status.tolist() == [SEPARATED, PUSHING, MISSED]
    assert out.post[1, 0] == pytest.approx(0.5, rel=0.12)  # a push ends with the striker's own speed
    np.testing.assert_allclose(out.post[2], 0.0, atol=1e-6)
    assert 0 < out.engine_seconds <= out.seconds


def test_less_damping_gives_more_speed() -> None:
    scene = replace(ROUND, striker=Striker(radius=0.02))
    damping = [0.1, 0.3, 0.6, 1.0]
    out = Collider(scene, scene.parameters(), threads=1).run(
        strikes(np.tile([-0.06, 0.0], (4, 1)), [0.5, 0.0]),
        values(scene, 4, striker_damping=damping, ground_friction=0.02),
    )
    assert (np.diff(out.post[:, 0]) < 0).all()
    assert 0.5 < out.post[0, 0] < 1.0  # a held striker gives at most twice its speed


def test_friction_of_the_striker_moves_the_tangential_outcome() -> None:
    case = strikes(np.tile([-0.06, 0.0], (2, 1)), [0.5, 0.12])
    p = values(ROUND, 2, striker_friction=[SMOOTH, 0.8], ground_friction=SMOOTH)
    smooth, rough = Collider(ROUND, ROUND.parameters(), threads=1).run(case, p).post
    assert abs(smooth[1]) < 2e-3
    assert abs(smooth[2]) < 0.4 * abs(rough[2])  # sliding along the side moves the force off centre a little
    assert rough[1] > 0.01
    assert rough[2] < -0.5  # rubbed along +y on its -x side, it turns clockwise


def test_ground_friction_takes_speed() -> None:
    case = strikes(np.tile([-0.06, 0.0], (2, 1)), [0.5, 0.0])
    low, high = (
        Collider(ROUND, ROUND.parameters(), threads=1).run(case, values(ROUND, 2, ground_friction=[0.02, 0.9])).post
    )
    assert high[0] < low[0] - 0.02


def test_centre_of_mass_off_the_line_of_force_makes_spin() -> None:
    case = strikes(np.tile([-0.06, 0.0], (3, 1)), [0.5, 0.0])
    p = values(ROUND, 3, com_y=[-0.008, 0.0, 0.008], ground_friction=SMOOTH, striker_friction=SMOOTH)
    spin = Collider(ROUND, ROUND.parameters(), threads=1).run(case, p).post[:, 2]
    # pushed along +x below its centre of mass it turns counter-clockwise
    assert spin[0] < -0.5
    assert spin[2] > 0.5
    assert spin[0] == pytest.approx(-spin[2], rel=0.02)


def test_recorded_gap_does_not_matter_only_the_line_of_approach() -> None:
    case = strikes([[-0.06, 0.01], [-0.09, 0.004], [-0.03, 0.016]], [0.5, 0.1])
    local, _ = touching(ROUND, case, {})
    np.testing.assert_allclose(local, np.tile(local[0], (3, 1)), atol=1e-6)
    assert ROUND.outline.gap(local) - ROUND.striker.radius == pytest.approx([0.0] * 3, abs=1e-9)


def test_unknown_geometry_moves_the_face() -> None:
    case = strikes([-0.05, 0.0], [0.5, 0.0])
    offset, direction = touching(FLAT, case, {"face_offset": np.array([0.01]), "face_tilt": np.array([0.0])})
    np.testing.assert_allclose(offset, [[-0.04, 0.01]], atol=1e-6)
    tilted, direction = touching(FLAT, case, {"face_tilt": np.array([0.1])})
    assert direction[0] == pytest.approx(0.1)
    # turned counter-clockwise, the end of the face at -y is in front and touches first
    assert tilted[0, 0] == pytest.approx(-0.04 - 0.015 * np.sin(0.1), abs=1e-6)


def test_flat_face_and_corner_touch_where_they_should() -> None:
    wide = replace(FLAT, striker=Striker(width=0.2))
    local, _ = touching(wide, strikes([[-0.1, 0.0], [-5.0, 0.0]], [1.0, 0.0], yaw=0.3), {})
    normal = np.array([np.cos(0.3), np.sin(0.3)])
    # the foremost corner lies in the plane of the face, however far away the striker was recorded
    ahead = (wide.outline.vertices[None] - local[:, None]) @ normal
    np.testing.assert_allclose(ahead.min(axis=1), 0.0, atol=1e-6)
    assert ahead.argmin(axis=1).tolist() == [0, 0]


def test_a_parameter_that_mujoco_does_not_have_is_refused() -> None:
    with pytest.raises(SceneError, match=r"^parameter 'restitution' has no meaning in scene 'round'; it takes: "):
        Collider(ROUND, (known("restitution"),))
    sphere = replace(ROUND, target=Body("ball", "target", Shape("sphere", radius=0.05), 0.1))
    with pytest.raises(
        SceneError, match=r"^scene 'round': a sphere rolls; strike scenes need a target that stands on a face$"
    ):
        Collider(sphere, sphere.parameters())
