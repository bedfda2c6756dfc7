"""The MJCF of free bodies that a user opens: it begins at rest, and bodies that are added to it meet the others."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from carom.scenes.free import FreeScene, calibrated
from carom.scenes.parameters import FACE
from carom.state import Array

REST = "rest"  #: name of the keyframe
GAP = 0.02  #: [m] between two bodies that begin side by side
SETTLES = 8.0  #: [s] in which bodies come to rest, or never do
CALMED = 25.0  #: [1/s] at which velocities are taken away meanwhile: an upright mesh still tips over
LOOKED = 2.0  #: [s] for which they are looked at without it
ROUNDED = 2e-5  #: of an inertia that the digits in a file may take away
STAYS = 0.0005  #: [m], [rad] that a body at rest moves at most in this time


def opened_spec(scene: FreeScene, values: Mapping[str, float], *, step: float | None = None) -> mujoco.MjSpec:
    """The scene with these parameters, side by side and at rest, with a keyframe `rest` if there is one.

    Contacts between its own bodies are the calibrated pairs, and no others. What a user adds meets them with MuJoCo's
    default contact, which depends on nothing that was identified.
    """
    spec = scene.spec_with(values, step=step)
    radius = float(values.get("edge_radius", 0.0))
    for geom in spec.geoms:
        if FACE not in geom.name:  # faces of a box lie in it already, and meet the ground alone
            geom.contype = geom.conaffinity = 1
    for body in scene.bodies:
        if radius and body.solid.kind == "box":
            spec.geom(body.name).margin = radius  # it is smaller by as much
        spec.body(body.name).inertia = _possible(np.array(spec.body(body.name).inertia))
    place = _side_by_side(scene, values)
    _put(spec, scene, place)
    if scene.planar:
        spec.add_key(name=REST)
        return spec
    settled, still = _settled(spec.compile(), len(scene.bodies))
    _put(spec, scene, settled)
    if still:
        spec.add_key(name=REST)  # a keyframe without numbers is the initial pose, with the bodies that are added too
    return spec


def _side_by_side(scene: FreeScene, values: Mapping[str, float]) -> Array:
    """Poses [B, 7] in a row along x, upright, just over the ground or over the air table."""
    poses, x, before = [], 0.0, 0.0
    lean = float(np.hypot(np.tan(values.get("tilt_x", 0.0)), np.tan(values.get("tilt_y", 0.0))))
    for i, body in enumerate(calibrated(scene, values).bodies):
        reach = body.solid.reach
        x += before + reach + GAP if i else 0.0
        under = float(body.solid.support(np.array([[0.0, 0.0, -1.0]]))[0])
        height = 0.0 if scene.planar else scene.ground_height + under + lean * (x + reach)
        poses.append([x, 0.0, height, 1.0, 0.0, 0.0, 0.0])
        before = reach
    return np.array(poses)


def _possible(inertia: Array) -> Array:
    """An inertia [3] of which MuJoCo does not say that no body has it, after its digits were rounded.

    A flat disc is on the edge: its inertia about its axis is the sum of the other two. These are raised by a hair.
    """
    short = 1 + ROUNDED - (inertia.sum() - inertia.max()) / max(float(inertia.max()), 1e-300)
    if not 0 < short < 2 * ROUNDED:
        return inertia
    return np.where(inertia == inertia.max(), inertia, inertia * (1 + short))


def _put(spec: mujoco.MjSpec, scene: FreeScene, poses: Array) -> None:
    """Let the bodies begin at these poses [B, 7]; a coordinate of a joint stays the world's."""
    for body, pose in zip(scene.bodies, poses, strict=True):
        made = spec.body(body.name)
        made.pos, made.quat = pose[:3], pose[3:]
        if scene.planar:
            for joint, at in zip(("x", "y"), pose, strict=False):
                spec.joint(f"{body.name}_{joint}").ref = at


def _settled(model: mujoco.MjModel, count: int) -> tuple[Array, bool]:
    """Where bodies come to rest [B, 7], and whether they stay there."""
    data = mujoco.MjData(model)
    step = float(model.opt.timestep)
    for _ in range(round(SETTLES / step)):
        mujoco.mj_step(model, data)
        data.qvel *= np.exp(-CALMED * step)
    settled = np.array(data.qpos)
    data.qvel[:], data.qacc_warmstart[:] = 0.0, 0.0
    mujoco.mj_step(model, data, nstep=round(LOOKED / step))
    moved = np.abs(data.qpos - settled).max()  # half an angle shows in a quaternion
    return settled.reshape(count, 7), bool(moved < STAYS / 2)
