"""One strike in Bullet: a block on its feet, a striker on an arm of two slides, from just before the blow to rest.

The block and the ground are rigid bodies of Bullet: their friction acts against the slip (that of its multibodies acts
along the axes of the world). Velocities are never changed to bring bodies apart, and contacts act from touch on, not
before: so a hard contact has the restitution that was asked for, at any step.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.errors import CaromError
from carom.core.rotations import about_z, to_world, unit
from carom.reality.bullet_settings import BulletSetting
from carom.reality.mocap import BRAKE, RETRACT, Poses
from carom.scenes.shapes import Shape, polygon_properties
from carom.state import Array, rotate

ITERATIONS = 100  #: of the solver in each step
LEAD = 0.0002  #: [m] that the striker has to go when the simulation begins
APART = 0.004  #: [s] without contact after which the blow is over and the arm brakes
PUSH = 0.05  #: [s] after which the arm brakes in any case, should the two stay together
AT_REST = 1e-4  #: [m/s], spin times `LEVER` included
LEVER = 0.03  #: [m]
FOOT, CLEARANCE = 0.004, 0.0015  #: [m] radius of a foot, and how high it holds the block
MARGIN = 0.001  #: [m] that Bullet adds around a hull: the hull is drawn smaller, and its corners are rounded by as much
ARC_SEGMENTS = 360  #: sides of the polygon that stands for a half circle
TIP = 1  #: the arm's link that strikes


@dataclass(frozen=True)
class Blow:
    """What one strike begins with, in the world."""

    target: Array  #: [3] x, y, yaw of the block's frame [m, m, rad]
    striker: Array  #: [3] x, y, yaw of the striker's frame as it touches [m, m, rad]
    velocity: Array  #: [2] of the striker [m/s]
    restitution: float
    friction: float  #: between striker and block
    ground: float  #: friction between block and ground
    arm: float  #: direction of the arm's first axis [rad]


@dataclass(frozen=True)
class Track:
    """True motion of one strike at S instants; time runs from first touch. Only a stand-in can tell it."""

    time: Array  #: [S] s
    position: Array  #: [S, 3] of the block's centre of mass, world [m]
    quaternion: Array  #: [S, 4] of the block
    velocity: Array  #: [S, 6] of the block's centre of mass: linear, angular, world
    striker: Array  #: [S, 3] of the striker's frame, world [m]
    striker_velocity: Array  #: [S, 2] world [m/s]
    striker_yaw: float  #: rad
    separation: int  #: row at which the two have just parted
    rest: int  #: row from which on the block rests

    def poses(self, times: Array, com: Array) -> tuple[Poses, Poses]:
        """Poses of block and striker at times [T] [s]; `com` [3] is the centre of mass in the block's frame [m].

        Before the first row the block rests and the striker comes on evenly.
        """
        turned = unit(_between(times, self.time, self.quaternion))
        block = _between(times, self.time, self.position) - to_world(turned, com)
        striker = _between(times, self.time, self.striker)
        striker[:, :2] += np.minimum(times - self.time[0], 0.0)[:, None] * self.striker_velocity[0]
        return (block, turned), (striker, np.repeat(about_z(np.array([self.striker_yaw])), len(times), axis=0))


def centre_of_mass(setting: BulletSetting) -> Array:
    """The block's true centre of mass in its frame [3] [m]."""
    return np.array([*(polygon_properties(setting.shape.planar_outline)[1] + setting.com), 0.0])


def inertia(setting: BulletSetting) -> Array:
    """Of the block about its centre of mass, along its axes [3] [kg m^2].

    A density that changes evenly across the block moves the centre and takes the offset's square off.
    """
    corners = setting.shape.planar_outline - polygon_properties(setting.shape.planar_outline)[1]
    following = np.roll(corners, -1, axis=0)
    weight = corners[:, :1] * following[:, 1:] - corners[:, 1:] * following[:, :1]  # triangles about the centroid
    square = (weight * (corners**2 + corners * following + following**2)).sum(axis=0) / (6 * weight.sum())
    xx, yy = square - np.square(setting.com)
    zz = setting.shape.full_height**2 / 12
    return np.asarray(setting.mass * np.array([yy + zz, xx + zz, xx + yy]))


def hull_text(shape: Shape) -> str:
    """The solid above its feet as the text of an OBJ file, smaller by the margin that Bullet adds."""
    outline = shape.planar_outline
    if shape.kind == "semi-cylinder":
        angle = np.linspace(0.0, np.pi, ARC_SEGMENTS + 1)
        outline = float(shape.radius or 0.0) * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    edge = np.roll(outline, -1, axis=0) - outline
    inward = np.stack([-edge[:, 1], edge[:, 0]], axis=-1) / np.linalg.norm(edge, axis=1, keepdims=True)
    before = np.roll(inward, 1, axis=0)
    inner = outline + MARGIN * (before + inward) / (1 + (before * inward).sum(axis=1, keepdims=True))
    half = (shape.full_height - CLEARANCE) / 2 - MARGIN
    count = len(inner)
    points = [f"v {x:.9f} {y:.9f} {z:.9f}" for z in (-half, half) for x, y in inner]
    faces = [f"f {k + 1} {(k + 1) % count + 1} {k + 1 + count}" for k in range(count)]  # its reader asks for some
    return "\n".join([*points, *faces, ""])


@final
class World:
    """What a strike needs of Bullet: one client, and a file with the hull where the block is no simple solid."""

    def __init__(self, client: Any, setting: BulletSetting, hull: Path) -> None:
        self._client, self._setting, self._hull = client, setting, hull
        self._com, self._inertia = centre_of_mass(setting), inertia(setting)
        self._block = self._arm = -1

    def carry_out(self, blow: Blow, *, step: float, slide_step: float, longest: float, after: float) -> Track:
        """One strike in a world of its own, so that it doesn't depend on those before it.

        Steps of `step` [s] during the blow, of `slide_step` from then until the block has been at rest for `after`,
        or until `longest` after the beginning.
        """
        client = self._client
        client.resetSimulation()
        client.setGravity(0, 0, -GRAVITY)
        client.setTimeStep(step)
        client.setPhysicsEngineParameter(
            numSolverIterations=ITERATIONS,
            solverResidualThreshold=0,
            restitutionVelocityThreshold=0,
            contactERP=0,
            erp=0,
            frictionERP=0,
            contactSlop=0,
            deterministicOverlappingPairs=1,
        )
        ground = client.createMultiBody(0, client.createCollisionShape(client.GEOM_PLANE), useMaximalCoordinates=1)
        # Bullet heeds friction against spin only where there is some against rolling as well.
        twist = {"spinningFriction": self._setting.pads, "rollingFriction": 1e-9} if self._setting.pads else {}
        surface = {"lateralFriction": blow.ground, "restitution": 0, **twist}
        client.changeDynamics(ground, -1, contactProcessingThreshold=0, **surface)
        self._block = self._put_block(blow)
        self._arm = self._put_arm(blow)
        client.setCollisionFilterPair(self._arm, ground, TIP, -1, 0)
        rows, touch, separation = self._blow(blow, step)
        client.setTimeStep(slide_step)
        self._brake(blow)
        still = 0.0
        while rows[-1][0] < longest and still < after:
            client.stepSimulation()
            rows.append(self._row(rows[-1][0] + slide_step, blow))
            moves = np.linalg.norm(rows[-1][8:11]) + LEVER * np.linalg.norm(rows[-1][11:14]) > AT_REST
            still = 0.0 if moves else still + slide_step
        table = np.array(rows)
        rest = int(np.searchsorted(table[:, 0], table[-1, 0] - still)) if still else len(table) - 1
        return Track(
            time=table[:, 0] - touch,
            position=table[:, 1:4],
            quaternion=_unbroken(table[:, 4:8]),
            velocity=table[:, 8:14],
            striker=np.column_stack([table[:, 14:16], np.full(len(table), self._setting.shape.full_height / 2)]),
            striker_velocity=table[:, 16:18],
            striker_yaw=float(blow.striker[2]),
            separation=separation,
            rest=rest,
        )

    def _blow(self, blow: Blow, step: float) -> tuple[list[Array], float, int]:
        """Rows of the state until the two have been apart for a while, time of first touch [s], row at separation."""
        client = self._client
        rows, touch, last = [self._row(0.0, blow)], np.inf, 0
        give_up = 100 * LEAD / float(np.linalg.norm(blow.velocity))
        while not np.isfinite(touch) or rows[-1][0] < min(rows[last][0] + APART, touch + PUSH):
            now = rows[-1][0]
            if now > give_up and not np.isfinite(touch):
                raise CaromError(f"the striker misses the block: it starts at {blow.striker.tolist()}")
            client.stepSimulation()
            rows.append(self._row(now + step, blow))
            if any(c[9] > 0 for c in client.getContactPoints(self._block, self._arm, -1, TIP)):
                touch, last = min(touch, now), len(rows) - 1
        return rows, touch, last

    def _row(self, time: float, blow: Blow) -> Array:
        """Time, the block's pose and velocity, the striker's: columns of `Track` in one row [18]."""
        position, (x, y, z, w) = self._client.getBasePositionAndOrientation(self._block)
        linear, angular = self._client.getBaseVelocity(self._block)
        slides = np.array([self._client.getJointState(self._arm, axis)[:2] for axis in (0, TIP)])
        way, velocity = rotate(slides.T, blow.arm)
        return np.array([time, *position, w, x, y, z, *linear, *angular, *(_start(blow) + way), *velocity])

    def _put_block(self, blow: Blow) -> int:
        """A rigid body whose frame is its centre of mass. Bullet's own inertia would be that of the box around it."""
        client, shape, com = self._client, self._setting.shape, self._com
        tall, feet = shape.full_height, len(self._setting.feet)
        kind = {"box": client.GEOM_BOX, "cylinder": client.GEOM_CYLINDER}.get(shape.kind, client.GEOM_MESH)
        solid = client.createCollisionShapeArray(
            shapeTypes=[kind] + [client.GEOM_SPHERE] * feet,
            halfExtents=[[*shape.extent[:2] / 2, (tall - CLEARANCE) / 2]] + [[1, 1, 1]] * feet,
            radii=[float(shape.radius or 0.0)] + [FOOT] * feet,
            lengths=[tall - CLEARANCE] + [0.0] * feet,
            fileNames=[str(self._hull)] + [""] * feet,
            meshScales=[[1, 1, 1]] * (1 + feet),
            collisionFramePositions=[
                [-com[0], -com[1], CLEARANCE / 2],
                *([x - com[0], y - com[1], FOOT - tall / 2] for x, y in self._setting.feet),
            ],
        )
        at = [*(blow.target[:2] + rotate(com[:2], blow.target[2])), tall / 2]
        turned = _xyzw(blow.target[2])
        block = client.createMultiBody(self._setting.mass, solid, -1, at, turned, useMaximalCoordinates=1)
        client.changeDynamics(  # frictions and restitutions of a pair are multiplied: the other body's counts
            block,
            -1,
            mass=self._setting.mass,
            localInertiaDiagonal=self._inertia.tolist(),
            lateralFriction=1,
            restitution=1,
            linearDamping=0,
            angularDamping=0,
            contactProcessingThreshold=0,
            activationState=client.ACTIVATION_STATE_DISABLE_SLEEPING,
        )
        return int(block)

    def _put_arm(self, blow: Blow) -> int:
        """Two slides at right angles, the second one carried by the first: an effective mass along each axis."""
        client, striker = self._client, self._setting.striker
        turned = {"collisionFrameOrientation": _xyzw(blow.striker[2] - blow.arm)}
        if striker.is_round:
            tip = client.createCollisionShape(client.GEOM_SPHERE, radius=float(striker.radius or 0.0))
        else:
            tip = client.createCollisionShape(client.GEOM_BOX, halfExtents=[v / 2 for v in striker.size], **turned)
        first, second = self._setting.striker_mass
        arm = client.createMultiBody(
            basePosition=[*_start(blow), self._setting.shape.full_height / 2],
            baseOrientation=_xyzw(blow.arm),
            linkMasses=[max(first - second, 1e-4 * second), second],
            linkCollisionShapeIndices=[-1, tip],
            linkVisualShapeIndices=[-1, -1],
            linkPositions=[[0, 0, 0]] * 2,
            linkOrientations=[[0, 0, 0, 1]] * 2,
            linkInertialFramePositions=[[0, 0, 0]] * 2,
            linkInertialFrameOrientations=[[0, 0, 0, 1]] * 2,
            linkParentIndices=[0, 1],
            linkJointTypes=[client.JOINT_PRISMATIC] * 2,
            linkJointAxis=[[1, 0, 0], [0, 1, 0]],
        )
        spring = self._setting.spring
        soft = {} if spring is None else {"contactStiffness": spring[0], "contactDamping": spring[1]}
        surface = {"lateralFriction": blow.friction, "restitution": blow.restitution, "contactProcessingThreshold": 0}
        client.changeDynamics(arm, TIP, **surface, **soft)
        for axis, speed in enumerate(rotate(blow.velocity, -blow.arm)):
            client.changeDynamics(arm, axis, linearDamping=0, angularDamping=0, jointDamping=0)
            client.resetJointState(arm, axis, 0.0, speed)
            self._drive(arm, axis, speed, self._setting.drive)
        return int(arm)

    def _drive(self, arm: int, axis: int, speed: float, force: float) -> None:
        # Bullet keeps an impulse per step: a force holds for the step that was set before it.
        mode = self._client.VELOCITY_CONTROL
        self._client.setJointMotorControl2(arm, axis, mode, targetVelocity=speed, force=force)

    def _brake(self, blow: Blow) -> None:
        """From now on the arm brakes the striker and then backs off the way it came."""
        way = rotate(blow.velocity / np.linalg.norm(blow.velocity), -blow.arm)
        for axis, mass in enumerate(self._setting.striker_mass):
            self._drive(self._arm, axis, -RETRACT * way[axis], BRAKE * mass * abs(way[axis]))


def _start(blow: Blow) -> Array:
    """Where the striker begins [2] [m]: some way before it touches."""
    return np.asarray(blow.striker[:2] - LEAD * blow.velocity / np.linalg.norm(blow.velocity))


def _xyzw(yaw: float) -> list[float]:
    """Bullet's quaternions have w last."""
    return [0.0, 0.0, float(np.sin(yaw / 2)), float(np.cos(yaw / 2))]


def _unbroken(quaternions: Array) -> Array:
    """The same rotations [S, 4] without changes of sign, so that values between them mean something."""
    turns = np.sign(np.einsum("si,si->s", quaternions[1:], quaternions[:-1]))
    return np.asarray(quaternions * np.cumprod(np.concatenate([[1.0], turns]))[:, None])


def _between(times: Array, knots: Array, values: Array) -> Array:
    """Values [S, D] at knots [S], straight between them at times [T]; held before and after."""
    return np.stack([np.interp(times, knots, column) for column in values.T], axis=-1)
