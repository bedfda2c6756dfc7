"""A strike as the motion of an arm's joints: inverse kinematics along the line, and what each limit says to it.

The tool's site follows the set-points of `strike_motion` (jerk-limited by ruckig), its z axis down; its x axis is the
striker's, or, for a round striker, whatever suits the arm. Inverse kinematics is mink's. If a joint would have to do
more than it can on the way, run-up and braking are made gentler, and so longer; the velocity at contact never changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from carom.core.errors import CaromError
from carom.plan.arm import Arm
from carom.plan.export import CartesianLimits, StrikeMotion, strike_motion
from carom.state import Array, rotate

SOLVER = "daqp"
ITERATIONS, FOLLOWING = 60, 8  #: of inverse kinematics, from afar and from one sample to the next
EXACT = 1e-7  #: [m], [rad] of what is left of the pose's error
STARTS = 16  #: random postures from which a posture at contact is looked for, besides the arm's home
TURNS = 12  #: directions of a round striker that are tried
TRIED = 5  #: postures at contact that are followed along the line
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)  #: of the tip's acceleration (of its jerk less), the shortest motion first
COARSE = 250.0  #: [Hz] at which motions are tried
DOWN = np.array([0.0, 0.0, -1.0])


@dataclass(frozen=True)
class Base:
    """Where the robot stands in the world of the recordings."""

    x: float = 0.0  #: [m]
    y: float = 0.0  #: [m]
    height: float = 0.0  #: [m]
    yaw: float = 0.0  #: [rad]

    def place(self, world: Array) -> Array:
        """Points [N, 3] of the world in the robot's frame."""
        moved = world - [self.x, self.y, self.height]
        return np.column_stack([rotate(moved[:, :2], -self.yaw), moved[:, 2]])

    def direction(self, world: Array) -> Array:
        """Vectors [N, 3] of the world in the robot's frame."""
        return np.column_stack([rotate(world[:, :2], -self.yaw), world[:, 2]])


@dataclass(frozen=True)
class Stop:
    """The limit that stops a strike, or what comes nearest to it."""

    limit: str  #: range, velocity, acceleration, jerk, torque, reach or touch
    ratio: float  #: of what is asked to what is allowed; above 1 it stops the strike
    time: float  #: [s] from the contact
    said: str  #: in words

    def words(self) -> str:
        """In a line."""
        return f"{self.said}, {1e3 * self.time:+.0f} ms from the contact"


UNITS = {"range": "rad", "velocity": "rad/s", "acceleration": "rad/s^2", "jerk": "rad/s^3", "torque": "N m"}


@dataclass(frozen=True)
class JointMotion:
    """The set-points of a strike for an arm, from rest to rest."""

    arm: Arm
    tip: StrikeMotion  #: of the tool, in the world
    base: Base
    turn: float  #: [rad] of the tool's x axis from the striker's
    position: Array  #: [T, J] [rad]
    velocity: Array  #: [T, J] [rad/s]
    acceleration: Array  #: [T, J] [rad/s^2]
    torque: Array  #: [T, J] that it takes [N m]
    nearest: tuple[Stop, ...]  #: of each limit, what comes nearest to it


class StrikelessError(CaromError):
    """No motion of the arm does this strike; the message names the limit."""


@dataclass(frozen=True)
class Blow:
    """What the tool has to do in the world of the recordings."""

    place: Array  #: [2] where it touches [m]
    velocity: Array  #: [2] m/s
    height: float  #: of the tool's site [m]
    yaw: float  #: of the striker [rad]


def joint_motion(
    arm: Arm,
    blow: Blow,
    *,
    base: Base,
    limits: CartesianLimits,
    free_turn: bool,
    settle: float = 0.02,
    rate: float = 1000.0,
    seed: int = 0,
) -> JointMotion:
    """The shortest motion of an arm that strikes so, within all limits; `settle` [s] before contact it is that fast.

    Raises with the limit that stops it, and with the fastest strike along this line that none of them does.
    """
    line = _Line(arm, base, blow, free_turn, np.random.default_rng(seed))
    found = _search(line, blow, limits, rate, settle)
    if isinstance(found, JointMotion):
        return found
    slowest, fastest = 0.0, 1.0
    for _ in range(5 if found.limit != "reach" else 0):
        share = 0.5 * (slowest + fastest)
        tried = _search(line, replace(blow, velocity=share * blow.velocity), limits, COARSE, settle)
        slowest, fastest = (share, fastest) if isinstance(tried, JointMotion) else (slowest, share)
    speed = float(np.linalg.norm(blow.velocity))
    slower = (
        f"; along this line it strikes with up to {slowest * speed:.2g} m/s, asked for were {speed:.3g} m/s"
        if slowest
        else ""
    )
    raise StrikelessError(f"robot {arm.name} cannot do this strike: {found.words()}{slower}")


def _search(line: _Line, blow: Blow, limits: CartesianLimits, rate: float, settle: float) -> JointMotion | Stop:
    """The first motion within all limits, or what stops the one that comes nearest to it."""
    postures = line.postures(blow.velocity)
    options = {"height": blow.height, "yaw": blow.yaw, "settle": settle}
    nearest = Stop("reach", np.inf, 0.0, f"the arm does not reach {_place(line.contact)}")
    for share in SHARES:
        gentle = replace(limits, acceleration=share * limits.acceleration, jerk=share**1.5 * limits.jerk)
        tips = [strike_motion(blow.place, blow.velocity, limits=gentle, rate=r, **options) for r in (COARSE, rate)]
        for turn, posture in postures[:TRIED]:
            for tip in tips if rate != COARSE else tips[:1]:
                found = line.follow(tip, turn, posture)
                worst = found if isinstance(found, Stop) else max(found.nearest, key=lambda stop: stop.ratio)
                if worst.ratio > 1:
                    nearest = min(nearest, worst, key=lambda stop: stop.ratio)
                    break
            else:
                assert isinstance(found, JointMotion)
                return found
    return nearest


class _Line:
    """An arm and a place where it strikes."""

    def __init__(self, arm: Arm, base: Base, blow: Blow, free: bool, rng: np.random.Generator) -> None:
        try:
            import mink
        except ImportError as error:
            raise CaromError("joint trajectories need mink: pip install 'carom[robot]'") from error
        self.mink: Any = mink
        self.arm, self.base, self.yaw = arm, base, blow.yaw
        self.contact = np.append(blow.place, blow.height)
        self.turns = np.linspace(0, 2 * np.pi, TURNS, endpoint=False) if free else np.zeros(1)
        low, high = np.clip(arm.range, -np.pi, np.pi).T
        self.starts = [arm.home]
        for values in (0.5 * (low + high), *rng.uniform(low, high, (STARTS, len(low)))):
            start = arm.home.copy()
            start[arm.place] = values
            self.starts.append(start)
        self.configuration = mink.Configuration(arm.model)
        self.within = [mink.ConfigurationLimit(arm.model)]
        self.task = mink.FrameTask(arm.site, "site", position_cost=1.0, orientation_cost=1.0)
        self.at_home = self._touching(arm.home)

    def postures(self, velocity: Array) -> list[tuple[float, Array]]:
        """Turns of the tool and postures [Q] at contact, those that need the slowest joints first."""
        at, along = self.base.place(self.contact[None])[0], self.base.direction(np.append(velocity, 0.0)[None])[0]
        found: list[tuple[float, float, Array]] = []
        for turn in self.turns:
            for start in self.starts:
                if (q := self._solve(start, at, turn, ITERATIONS)) is None:
                    continue
                rates = np.abs(self._rates(q, along)) / self.arm.velocity
                if not any(np.allclose(q, other, atol=1e-3) for _, _, other in found):
                    found.append((float(rates.max()), float(turn), q))
        return [(turn, q) for _, turn, q in sorted(found, key=lambda each: each[0])]

    def follow(self, tip: StrikeMotion, turn: float, posture: Array) -> JointMotion | Stop:
        """The joints along a motion of the tip, from a posture at its contact; or where it ends."""
        places, k = self.base.place(tip.position), tip.contact_index
        q = np.empty((len(tip), len(posture)))
        q[k] = posture
        for indices in (range(k - 1, -1, -1), range(k + 1, len(tip))):
            before = posture
            for i in indices:
                solved = self._solve(before, places[i], turn, FOLLOWING)
                if solved is None:
                    return self._ended(before, tip, i)
                q[i] = before = solved
        joints = q[:, self.arm.place]
        step = 1 / tip.rate
        velocity = np.gradient(joints, step, axis=0)
        velocity[[0, -1]] = 0.0
        acceleration = _differences(joints, 2) / step**2
        jerk = _differences(joints, 3) / step**3
        torque = inverse_dynamics(self.arm, q, velocity, acceleration)
        time = tip.time - tip.contact_time
        nearest = [*self._nearest(time, joints, velocity, acceleration, jerk, torque), *self._touches(q, time)]
        return JointMotion(self.arm, tip, self.base, turn, joints, velocity, acceleration, torque, tuple(nearest))

    def _pose(self, at: Array, turn: float) -> Any:
        angle = self.yaw - self.base.yaw + turn
        x = np.array([np.cos(angle), np.sin(angle), 0.0])
        axes = np.column_stack([x, np.cross(DOWN, x), DOWN])
        return self.mink.SE3.from_rotation_and_translation(self.mink.SO3.from_matrix(axes), at)

    def _solve(self, start: Array, at: Array, turn: float, most: int) -> Array | None:
        """A posture in which the tool is there, from another one; None if none is found."""
        self.configuration.update(start)
        self.task.set_target(self._pose(at, turn))
        for _ in range(most):
            if np.abs(self.task.compute_error(self.configuration)).max() < 1e-2 * EXACT:
                break
            try:
                way = self.mink.solve_ik(
                    self.configuration, [self.task], 1.0, SOLVER, damping=1e-10, limits=self.within
                )
            except self.mink.MinkError:
                return None
            self.configuration.integrate_inplace(np.clip(way, -0.5, 0.5), 1.0)
        if np.abs(self.task.compute_error(self.configuration)).max() > EXACT:
            return None
        return np.array(self.configuration.q)

    def _rates(self, q: Array, along: Array) -> Array:
        """Velocities of the joints [J] that move the tool along a vector, without a turn."""
        self.configuration.update(q)
        jacobian = self.configuration.get_frame_jacobian(self.arm.site, "site")[:, self.arm.degree]
        axes = self.configuration.get_transform_frame_to_world(self.arm.site, "site").rotation().as_matrix()
        twist = np.concatenate([axes.T @ along, np.zeros(3)])
        return np.asarray(np.linalg.lstsq(jacobian, twist, rcond=None)[0])

    def _ended(self, q: Array, tip: StrikeMotion, i: int) -> Stop:
        """Why inverse kinematics went no further: a joint at its range, or nothing but distance."""
        time = float(tip.time[i] - tip.contact_time)
        room = np.min(np.abs(self.arm.range - q[self.arm.place][:, None]), axis=1)
        j = int(np.argmin(room))
        left = float(np.linalg.norm(tip.position[i] - tip.position[0 if i < tip.contact_index else -1]))
        if room[j] < 0.02:
            low, high = self.arm.range[j]
            said = f"range of {self.arm.joints[j]}: it ends ({low:.3g} to {high:.3g} rad) {left:.3f} m too early"
            return Stop("range", 1.0 + left, time, said)
        return Stop("reach", 10.0 + left, time, f"the arm does not reach {_place(tip.position[i])}")

    def _nearest(
        self, time: Array, joints: Array, velocity: Array, acceleration: Array, jerk: Array, torque: Array
    ) -> Iterator[Stop]:
        middle, half = self.arm.range.mean(axis=1), 0.5 * np.ptp(self.arm.range, axis=1)
        free = ~np.isfinite(half)
        kinds = {
            "range": (np.where(free, 0.0, joints - np.where(free, 0.0, middle)), np.where(free, np.inf, half)),
            "velocity": (velocity, self.arm.velocity),
            "acceleration": (acceleration, self.arm.acceleration),
            "jerk": (jerk, self.arm.jerk),
            "torque": (torque, self.arm.torque),
        }
        for limit, (values, allowed) in kinds.items():
            share = np.abs(values) / allowed
            i, j = np.unravel_index(int(np.argmax(share)), share.shape)
            allows = f"{allowed[j]:.3g} allowed"
            if limit == "range":
                allows = f"{self.arm.range[j, 0]:.3g} to {self.arm.range[j, 1]:.3g} allowed"
            value = joints[i, j] if limit == "range" else abs(values[i, j])
            said = f"{limit} of {self.arm.joints[j]}: {value:.3g} {UNITS[limit]}, {allows}"
            yield Stop(limit, float(share[i, j]), float(time[i]), said)

    def _touching(self, q: Array) -> set[tuple[int, int]]:
        """Pairs of geoms that meet in a posture."""
        self.configuration.update(q)
        data = self.configuration.data
        import mujoco

        mujoco.mj_collision(self.arm.model, data)
        return {(int(a), int(b)) for a, b in data.contact.geom[: data.ncon]} if data.ncon else set()

    def _touches(self, q: Array, time: Array) -> Iterator[Stop]:
        """Links that meet and do not at home; looked for at every few samples."""
        for i in range(0, len(q), max(1, len(q) // 60)):
            for a, b in sorted(self._touching(q[i]) - self.at_home):
                names = " and ".join(self._geom(g) for g in (a, b))
                yield Stop("touch", np.inf, float(time[i]), f"{names} touch")
                return

    def _geom(self, g: int) -> str:
        model = self.arm.model
        return str(model.geom(g).name or model.body(int(model.geom_bodyid[g])).name or f"geom {g}")


def inverse_dynamics(arm: Arm, q: Array, velocity: Array, acceleration: Array) -> Array:
    """Torques of the joints [T, J] for postures [T, Q], velocities and accelerations [T, J]; no contacts, no ranges."""
    import mujoco

    data, model = mujoco.MjData(arm.model), arm.model
    before = int(model.opt.disableflags)
    model.opt.disableflags = before | int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    found = np.empty_like(velocity)
    try:
        for i in range(len(q)):
            data.qpos[:] = q[i]
            data.qvel[arm.degree], data.qacc[arm.degree] = velocity[i], acceleration[i]
            mujoco.mj_inverse(model, data)
            found[i] = data.qfrc_inverse[arm.degree]
    finally:
        model.opt.disableflags = before
    return found


def _place(at: Array) -> str:
    return f"({', '.join(f'{v:.3f}' for v in at)} m) in the world"


def _differences(values: Array, order: int) -> Array:
    """Differences in the middle of samples [T, J], of something that rests before and after."""
    ends: Sequence[Array] = [np.repeat(values[:1], order, axis=0), values, np.repeat(values[-1:], order, axis=0)]
    found = np.diff(np.concatenate(ends), order, axis=0)
    first = order - order // 2
    return np.asarray(found[first : first + len(values)])
