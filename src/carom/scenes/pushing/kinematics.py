"""Where a tool's tip is, from the angles of the joints that lead to it: what a robot's controller knows, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from carom.core.rotations import axes
from carom.state import Array

if TYPE_CHECKING:
    import mujoco

HINGE = 3  #: MuJoCo's number of this kind of joint


@final
@dataclass(frozen=True)
class Joint:
    """A hinge or a slide between two links."""

    index: int  #: among the positions
    hinge: bool
    axis: Array  #: [3] in its body
    anchor: Array  #: [3] in its body [m]
    zero: float  #: position at which the body stands as it is drawn [rad], [m]


@final
@dataclass(frozen=True)
class Link:
    """A body on the way from the world to the tool."""

    position: Array  #: [3] in the body that carries it [m]
    turn: Array  #: [3, 3] its axes there as columns
    joints: tuple[Joint, ...]


@final
@dataclass(frozen=True)
class Chain:
    """From the world to a point of the tool."""

    links: tuple[Link, ...]
    point: Array  #: [3] in the tool's body [m]

    def positions(self, joints: Array) -> Array:
        """Of the point [N, 3] [m], for positions of the joints [N, J] [rad], [m]."""
        count = len(joints)
        place, turn = np.zeros((count, 3)), np.tile(np.eye(3), (count, 1, 1))
        for link in self.links:
            place = place + turn @ link.position
            turn = turn @ link.turn
            for joint in link.joints:
                moved = joints[:, joint.index] - joint.zero
                if not joint.hinge:
                    place = place + (turn @ joint.axis) * moved[:, None]
                    continue
                at = place + turn @ joint.anchor
                turn = turn @ _about(joint.axis, moved)
                place = at - turn @ joint.anchor
        return np.asarray(place + turn @ self.point)


def _about(axis: Array, angle: Array) -> Array:
    """Rotation matrices [N, 3, 3] about an axis by angles [N] [rad] (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    sine, versine = np.sin(angle)[:, None, None], (1 - np.cos(angle))[:, None, None]
    return np.asarray(np.eye(3) + sine * cross + versine * (cross @ cross))


def chain_to(model: mujoco.MjModel, body: int, point: Array, names: Sequence[str]) -> Chain:
    """The chain that leads to a point of a body; `names` are those of the joints, in the order of their positions."""
    links = []
    while body:
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        joints = tuple(_joint(model, j, names) for j in range(first, first + count))
        links.append(Link(model.body_pos[body].copy(), axes(model.body_quat[body]).T.copy(), joints))
        body = int(model.body_parentid[body])
    return Chain(tuple(reversed(links)), point)


def _joint(model: mujoco.MjModel, j: int, names: Sequence[str]) -> Joint:
    hinge, name = int(model.jnt_type[j]) == HINGE, model.joint(j).name or f"joint_{j}"
    zero = float(model.qpos0[model.jnt_qposadr[j]])
    return Joint(names.index(name), hinge, model.jnt_axis[j].copy(), model.jnt_pos[j].copy(), zero)
