"""The robot of a stand-in for pushes: position servos with lag, joint friction and delay; its contact is not here.

Geometry, inertias and servos are those that the scene declares. MuJoCo gives them, and where the tip is; what happens
when the tip meets the block does not come from MuJoCo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from carom.reality.pushed_block import Drive
from carom.state import Array

if TYPE_CHECKING:
    from carom.scenes.pushing import PushScene

SLOW = 1e-3  #: [rad/s], [m/s] up to which the friction of a joint grows in proportion
SLACK = 0.002  #: [m] by which a tip may be above the block's top and still push it


@dataclass(frozen=True)
class Machine:
    """What a scene declares of its robot and block."""

    parts: tuple[Array, ...]  #: convex outlines of the block in its frame [V, 2] [m]
    block_mass: float  #: declared [kg]
    block_top: float  #: height of the block's upper side [m]
    radius: float  #: of the tool [m]
    inertia: Array  #: [J] of the joints at home [kg], [kg m^2]
    stiffness: Array  #: [J] of the servos
    damping: Array  #: [J]
    most: Array  #: [J] greatest force of each
    tip: Callable[[Array], Array]  #: joints [N, J] -> tip [N, 3] [m]
    planar: bool  #: the joints are the tip's x and y


def machine_of(scene: PushScene) -> Machine:
    """The robot and the block of a scene of pushing."""
    import mujoco

    model = scene.model
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    dofs = [int(model.jnt_dofadr[model.joint(name).id]) for name in scene.joint_names]
    order = np.argsort(scene.servos)  # by joint, whatever the order of the actuators
    tools = np.flatnonzero(model.geom_bodyid == model.body(scene.tool_body).id)
    return Machine(
        parts=tuple(np.asarray(part) for part in scene.corners),
        block_mass=float(model.body_mass[model.body(scene.block_body).id]),
        block_top=2 * scene.rest_height,
        radius=float(model.geom_size[tools[-1], 0]),
        inertia=np.diag(full)[dofs].copy(),
        stiffness=np.asarray(model.actuator_gainprm[order, 0]),
        damping=-np.asarray(model.actuator_biasprm[order, 2])
        + np.asarray(model.dof_damping[dofs]).reshape(len(dofs), -1)[:, 0],
        most=np.abs(model.actuator_forcerange[order]).max(axis=1),
        tip=scene.tool_position,
        planar=scene.robot == "planar" and scene.own is None,
    )


@dataclass
class Joints:
    """N robots on their way; changed in place."""

    machine: Machine
    position: Array  #: [N, J]
    velocity: Array  #: [N, J]
    friction: float = 0.0  #: as a share of the greatest force

    def drive(self, target: Array, h: float) -> tuple[Array, Array]:
        """Weight [N, J] and push [N, J] of every joint in a step towards these set-points [N, J], solved implicitly.

        What comes of a joint that meets nothing is push / weight, its velocity at the end of the step.
        """
        m = self.machine
        gap = target - self.position
        far = m.stiffness * np.abs(gap) > m.most  # the servo gives all it has
        stiffness = np.where(far, 0.0, m.stiffness)
        force = np.where(far, m.most * np.sign(gap), 0.0) + stiffness * gap
        holding = self.friction * m.most / np.sqrt(self.velocity**2 + SLOW**2)
        weight = m.inertia + h * (m.damping + holding) + h * h * stiffness
        return weight, m.inertia * self.velocity + h * force

    def planar_drive(self, target: Array, h: float) -> Drive:
        """The same for a tool on two slides, which the block can hold up."""
        weight, push = self.drive(target, h)
        mean = weight.mean(axis=1)  # both slides are alike but for their friction
        return Drive(mean, push * (mean[:, None] / weight))

    def advance(self, target: Array, h: float) -> Drive:
        """Move the joints of an arm, which no block holds up, and say how its tip moves."""
        before = self.machine.tip(self.position)[:, :2]
        weight, push = self.drive(target, h)
        self.velocity = push / weight
        self.position = self.position + h * self.velocity
        return Drive.along((self.machine.tip(self.position)[:, :2] - before) / h)

    def reaches(self) -> Array:
        """Whether each tip is low enough to meet the block [N]."""
        if self.machine.planar:
            return np.ones(len(self.position), dtype=bool)
        height = self.machine.tip(self.position)[:, 2]
        return np.asarray(height < self.machine.block_top + SLACK)
