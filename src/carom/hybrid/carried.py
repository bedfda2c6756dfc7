"""A learned outcome carried over to the arm that strikes: its inertia in this posture, all of its energy.

An impact model has learned with the scene's striker. A robot's arm gives way more, or less, by its own mass matrix. Of
the learned outcome Newton's restitution and the ratio between the parts of the impulse hold for it too; how large the
impulse is follows from the arm. The target's planar velocity changes by c = (vx, vy, wz); the arm gets minus the
impulse of that change, at the contact, and minus its couple about the vertical. So everything below is linear in c, but
for the kinetic energy of all joints, which is quadratic.

The inertia is that of MuJoCo's mass matrix, armature included. What only pushes over time is no part of an instant:
equality constraints (a weld, a closed chain), limits of joints and tendons, friction in joints, motors, and other
contacts of the arm. They act from the next step on. The joints of a target's own parts keep their velocity.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from carom.hybrid.attach import Pair
from carom.hybrid.guard import SLACK
from carom.state import Array

UPRIGHT = np.array([0.0, 0.0, 1.0])
NONE = 1e-9  #: share of the energy of the approach that rounding may create


@dataclass(frozen=True)
class Carried:
    """What a learned impact does to all joints of a model."""

    velocity: Array  #: [nv] to be added to `qvel`
    change: Array  #: [3] of the target's declared centre of mass: vx, vy, wz [m/s, m/s, rad/s]
    impulse: Array  #: [3] on the target, world [N s]
    corrected: bool  #: whether physics forbids what was carried over


@dataclass(frozen=True)
class Touch:
    """Target and arm at an instant of contact: what a change c [3] of the target's planar velocity does to both."""

    joints: Array  #: [nv, 3] to `qvel`
    wrench: Array  #: [3, 3] impulse x, y on the target [N s], and couple about the vertical at the contact [N m s]
    parting: Array  #: [3] to the speed at which the contact points part along the normal
    of_target: Array  #: [3] the target's part of it
    normal: Array  #: [2] horizontal, into the target
    approach: float  #: speed at which the contact points close in along it [m/s]
    speed: float  #: of the one against the other, horizontal [m/s]
    power: Array  #: [3] first derivative of the kinetic energy
    inertia: Array  #: [3, 3] second derivative

    @property
    def push(self) -> Array:
        """[3] the change by an impulse of 1 N s along the normal."""
        return np.asarray(np.linalg.solve(self.wrench, [*self.normal, 0.0]))

    @property
    def stop(self) -> Array:
        """[3] the change by the impulse along the normal that just ends the approach: a plastic impact."""
        return np.asarray(self.push * self.approach / (self.parting @ self.push))

    @property
    def inverse_mass(self) -> float:
        """Of the arm, along the normal [1/kg]; 0: it does not give way."""
        return float((self.parting - self.of_target) @ self.push)

    def separation(self, change: Array) -> float:
        """Speed at which the contact points part after this change [m/s]."""
        return float(self.parting @ change) - self.approach

    def created(self, change: Array) -> float:
        """Kinetic energy of all joints after less that before [J]."""
        return float(self.power @ change + 0.5 * change @ self.inertia @ change)

    @property
    def planar(self) -> bool:
        """Whether a horizontal impulse can part the bodies; not if one falls on, or rocks into, the other."""
        return self.approach > 0.5 * SLACK * self.speed and self.created(self.stop) < 0


def touch_of(model: mujoco.MjModel, data: mujoco.MjData, pair: Pair, point: Array, normal: Array) -> Touch:
    """Target and striker touching at a point [3], the normal [3] into the target."""
    joints, rotation = np.zeros((model.nv, 3)), data.xmat[pair.target].reshape(3, 3)
    com, arm = rotation @ pair.com, point - data.xpos[pair.target]
    linear, angular = slice(pair.dof, pair.dof + 3), slice(pair.dof + 3, pair.dof + 6)
    joints[linear] = np.column_stack([np.eye(3)[:, :2], -np.cross(UPRIGHT, com)])
    joints[angular, 2] = rotation.T @ UPRIGHT  # a free joint turns in its body's frame
    momentum = _momentum(model, data, joints)
    couple = rotation @ momentum[angular] - np.cross(arm, momentum[linear], axisb=0).T
    wrench = np.vstack([momentum[linear][:2], couple[2]])
    mine, striker, turning = (np.zeros((3, model.nv)) for _ in range(3))
    mujoco.mj_jac(model, data, mine, None, point, pair.target)
    mujoco.mj_jac(model, data, striker, turning, point, pair.striker)
    back = np.zeros((3, model.nv))
    pushed = -(wrench[:2].T @ striker[:2] + np.outer(wrench[2], turning[2]))
    mujoco.mj_solveM(model, data, back, np.ascontiguousarray(pushed))
    back[:, pair.dof : pair.dof + 6] = 0.0  # the target has its own change already
    both = joints + back.T
    flat = normal[:2] / np.linalg.norm(normal[:2])
    relative = (mine - striker)[:2]
    before = relative @ data.qvel
    return Touch(
        joints=both,
        wrench=wrench,
        parting=flat @ relative @ both,
        of_target=flat @ mine[:2] @ joints,
        normal=flat,
        approach=-float(flat @ before),
        speed=float(np.linalg.norm(before)),
        power=_momentum(model, data, data.qvel[:, None])[:, 0] @ both,
        inertia=both.T @ _momentum(model, data, both),
    )


def _momentum(model: mujoco.MjModel, data: mujoco.MjData, velocity: Array) -> Array:
    """The mass matrix times generalised velocities [nv, n]."""
    found = np.zeros_like(velocity)
    for column in range(velocity.shape[1]):
        one = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, one, np.ascontiguousarray(velocity[:, column]))
        found[:, column] = one
    return found


def carry(touch: Touch, learned: Array, *, striker_mass: float) -> Carried:
    """The outcome of a touch, from the change [3] learned with a striker of this mass [kg].

    What would keep the bodies moving into each other gets the impulse along the normal that stops it. What would create
    energy, or part them faster than they met, is drawn towards the plastic impact until it does not.
    """
    there = touch.of_target @ learned + touch.normal @ (touch.wrench @ learned)[:2] / striker_mass  # (1 + e) approach
    here = touch.parting @ learned
    plastic = touch.stop
    # an impulse that hardly parts them here tells nothing of how large it would be
    change = learned * (there / here) if min(here, there) > 1e-3 * abs(touch.of_target @ learned) else learned
    corrected = False
    if touch.separation(change) < -SLACK * touch.speed:
        change = change - plastic * touch.separation(change) / touch.approach
        corrected = True
    rest, share = change - plastic, 1.0
    if touch.separation(change) > touch.approach * (1 + NONE):
        share = touch.approach / touch.separation(change)
    if touch.created(plastic + share * rest) > -NONE * touch.created(plastic):
        share = min(share, _free_of_charge(touch, plastic, rest))
    if share < 1.0:
        change, corrected = plastic + share * rest, True
    impulse = np.array([*(touch.wrench @ change)[:2], 0.0])
    return Carried(touch.joints @ change, change, impulse, corrected)


def _free_of_charge(touch: Touch, plastic: Array, rest: Array) -> float:
    """The share of `rest` that, added to the plastic impact, creates no energy and loses none."""
    a = 0.5 * float(rest @ touch.inertia @ rest)
    b = float(touch.power @ rest + plastic @ touch.inertia @ rest)
    c = touch.created(plastic)  # negative: a root on either side of zero
    root = float(np.sqrt(b * b - 4 * a * c))
    return -2 * c / (b + root) if b > 0 else (root - b) / (2 * a)
