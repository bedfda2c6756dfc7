"""A planned motion played on the arm in MuJoCo, with heavier links than its controller believes and joints that rub.

The controller is the usual one: torques from inverse dynamics of the arm as its MJCF states it, and a correction of
position and velocity, together within the torque that the MJCF allows. There is nothing to strike: what counts is how
the tip arrives.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from carom.plan.joint_motion import JointMotion
from carom.state import Array

if TYPE_CHECKING:
    import mujoco

STIFF = 80.0  #: [rad/s] of the correction, critically damped
HEAVIER = 1.1  #: masses and inertias of what is played on, over those that the controller believes
FRICTION = 0.05  #: share of a joint's greatest torque that friction takes; of 1 N m where none is stated
FINE = 4  #: steps of the engine for each set-point


@dataclass(frozen=True)
class Played:
    """How a motion came out."""

    position_error: float  #: [m] of the tip at the time of contact
    speed_error: float  #: of the tip's velocity then, over the commanded speed
    tracking_error: float  #: [m] of the tip, the largest on the way to the contact
    range_kept: bool  #: whether every joint stayed within its range
    torque_share: float  #: of the torque allowed, the largest; 0 where none is stated
    position: Array  #: [T, J] of the joints [rad]


def play(motion: JointMotion, *, heavier: float = HEAVIER, friction: float = FRICTION) -> Played:
    """Play a motion; what it is played on is never the model that it was planned with."""
    import mujoco

    arm, step = motion.arm, 1 / motion.tip.rate
    model = _other(arm.model, heavier)
    model.opt.timestep = step / FINE
    limit = np.where(np.isfinite(arm.torque), arm.torque, 1.0)
    model.dof_frictionloss[arm.degree] += friction * limit
    data = mujoco.MjData(model)
    data.qpos[:] = arm.home
    data.qpos[arm.place] = motion.position[0]
    mass = np.zeros((model.nv, model.nv))
    joints, tip = np.empty_like(motion.position), np.empty((len(motion.tip), 3))
    going, most = np.zeros(3), 0.0
    for i in range(len(motion.tip)):
        mujoco.mj_forward(model, data)
        joints[i], tip[i] = data.qpos[arm.place], data.site(arm.site).xpos
        if i == motion.tip.contact_index:
            jacobian = np.zeros((3, model.nv))
            mujoco.mj_jacSite(model, data, jacobian, None, data.site(arm.site).id)
            going = jacobian @ data.qvel
        for _ in range(FINE):
            mujoco.mj_fullM(model, data, mass)
            inertia = mass[np.ix_(arm.degree, arm.degree)]
            off = motion.position[i] - data.qpos[arm.place]
            slow = motion.velocity[i] - data.qvel[arm.degree]
            correction = inertia @ (STIFF**2 * off + 2 * STIFF * slow)
            torque = np.clip(motion.torque[i] + correction, -arm.torque, arm.torque)
            most = max(most, float(np.max(np.abs(torque) / arm.torque)))
            data.qfrc_applied[arm.degree] = torque
            mujoco.mj_step(model, data)
    return _judged(motion, joints, tip, going, most)


def _judged(motion: JointMotion, joints: Array, tip: Array, going: Array, most: float) -> Played:
    k = motion.tip.contact_index
    wanted = motion.base.place(motion.tip.position)
    velocity = motion.base.direction(motion.tip.velocity[k : k + 1])[0]
    off = np.linalg.norm(tip - wanted, axis=1)
    low, high = motion.arm.range.T
    return Played(
        float(off[k]),
        float(np.linalg.norm(going - velocity) / np.linalg.norm(velocity)),
        float(off[: k + 1].max()),
        bool(((joints >= low) & (joints <= high)).all()),
        most,
        joints,
    )


def _other(model: mujoco.MjModel, heavier: float) -> mujoco.MjModel:
    """The arm with heavier links, without motors and contacts."""
    import mujoco

    other = copy.copy(model)
    other.body_mass[:] *= heavier
    other.body_inertia[:] *= heavier
    other.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    mujoco.mj_setConst(other, mujoco.MjData(other))
    return other
