"""Takes of pushes: the recorded tool led through MuJoCo, and what the block does there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import mujoco
import numpy as np
from scipy.ndimage import gaussian_filter1d

from carom.core.rotations import unit
from carom.recordings import Recordings, Trajectory
from carom.recordings.pushes import Push, push_of
from carom.scenes.shapes import Body, Shape
from carom.state import Array
from carom.view.shown import COLOURS, Arrow, Ghost, Take, Track
from carom.view.solids import triangles
from carom.view.strikes import ground_under, recorded_track, shapes_of

STEP = 0.001  #: [s] of MuJoCo
SMOOTH = 0.03  #: [s] of the Gaussian that takes noise off the tool's path
WINDOW = 0.05  #: [s] over which a push's force is taken
FRICTION = {"ground": 0.3, "tool": 0.2}  #: where nobody said: with MuJoCo's own 1, a pushed block sticks and hops
HEAVY = 1e3  #: [kg] of the tool, which is led and never gives way
USUAL_DENSITY = 500.0  #: [kg/m^3] of a block whose mass nobody stated: how it slides hardly depends on it
LONGEST = 60.0  #: [s] of a push that is simulated
LEAST = 0.05  #: of the greatest force, below which there is no arrow
NAME = "MuJoCo, assumed friction"


@dataclass(frozen=True)
class PushTakes:
    """The pushes of a folder, beside MuJoCo that is led by the recorded tool."""

    recordings: Recordings
    friction: Mapping[str, float] = field(default_factory=lambda: dict(FRICTION))
    draws: tuple[Mapping[str, float], ...] = ()  #: as likely, where friction was identified
    name: str = NAME

    def __call__(self, index: int) -> Take:
        """One push; what cannot be simulated is shown as it was recorded."""
        trajectory = self.recordings.trajectories[index]
        shapes, zero = shapes_of(trajectory), float(trajectory.time[0])
        ground, recorded = ground_under(trajectory), recorded_track(trajectory, zero)
        push = push_of(trajectory)
        reason = _unfit(trajectory, push)
        if push is None or reason:
            words = (f"Nothing is simulated beside this recording: {reason}.",)
            return Take(trajectory.name, shapes, (recorded,), ground=ground, words=words)
        led = Led.of(trajectory, push, ground, self.friction)
        track, arrows = led.run()
        others = [Led.of(trajectory, push, ground, friction).run()[0] for friction in self.draws]
        ghosts = tuple(Ghost(other.position, other.quaternion) for other in others)
        track = replace(track, name=self.name, ghosts=ghosts)
        arrows = [replace(a, track=self.name, words=a.words.replace(NAME, self.name)) for a in arrows]
        source = "assumed" if self.name == NAME else "as identified"
        words = (
            f"The recorded {push.tool} is led through MuJoCo; {push.target} starts where it lay. Friction is {source}: "
            f"{self.friction['ground']:g} with the ground, {self.friction['tool']:g} with the tool.",
        )
        own = (recorded, track), tuple(arrows)
        return Take(trajectory.name, shapes, *own, ground=ground, words=words, judged=(push.target,))


def friction_of(values: Mapping[str, float]) -> dict[str, float]:
    """Friction with ground and tool from identified parameters; what was not identified is assumed."""
    names = {"ground": "ground_friction", "tool": "striker_friction"}
    return {what: values.get(name, FRICTION[what]) for what, name in names.items()}


def _unfit(trajectory: Trajectory, push: Push | None) -> str:
    """Why a push is not simulated; empty if it is."""
    if push is None:
        return "no tool pushes a block in it"
    for name in (push.target, push.tool):
        if trajectory.bodies[name].shape is None:
            return f"the shape of '{name}' is not stated"
        if trajectory.quaternion_world[name] is None and not _round(trajectory.bodies[name]):
            return f"the orientation of '{name}' was not measured"
    if float(trajectory.time[-1] - trajectory.time[0]) > LONGEST:
        return f"it lasts longer than {LONGEST:g} s"
    return ""


def _round(body: Body) -> bool:
    return body.shape is not None and body.shape.is_round


@dataclass(frozen=True)
class Led:
    """A block, and a tool whose poses are given."""

    model: mujoco.MjModel
    trajectory: Trajectory
    push: Push
    time: Array  #: [K] of MuJoCo's steps since the first sample [s]
    tool: tuple[Array, Array]  #: poses of the tool at these [K, 3] and [K, 4]
    start: tuple[Array, Array]  #: pose of the block [3] and [4]

    @classmethod
    def of(cls, trajectory: Trajectory, push: Push, ground: float, friction: Mapping[str, float]) -> Led:
        """Both as they were recorded; lost samples are bridged."""
        lasts = float(trajectory.time[-1] - trajectory.time[0])
        time: Array = np.arange(round(lasts / STEP) + 1, dtype=np.float64) * STEP
        block, tool = (_between(trajectory, name, time) for name in (push.target, push.tool))
        tool = _smooth(tool[0]), unit(_smooth(tool[1]))
        model = _model(trajectory.bodies[push.target], trajectory.bodies[push.tool], ground, friction)
        return cls(model, trajectory, push, time, tool, (block[0][0], block[1][0]))

    def run(self) -> tuple[Track, list[Arrow]]:
        """The motion at the recorded samples, and what the tool pushes with."""
        data = mujoco.MjData(self.model)
        data.qpos[:3], data.qpos[3:7] = self.start
        place, turn = self.tool
        speed = np.gradient(place, STEP, axis=0)
        when = self.trajectory.time - self.trajectory.time[0]
        frames = np.clip(np.rint(when / STEP).astype(int), 0, len(self.time) - 1)
        kept = np.zeros((len(self.time), 7))
        pushes = np.zeros((len(self.time), 6))
        for k in range(len(self.time)):
            data.qpos[7:10], data.qpos[10:14] = place[k], turn[k]
            data.qvel[6:9], data.qvel[9:12] = speed[k], 0.0
            kept[k] = data.qpos[:7]
            mujoco.mj_step(self.model, data)
            pushes[k] = self._pushed(data)
        position = np.stack([kept[frames, :3], place[frames]], axis=1)
        turns = np.stack([kept[frames, 3:], turn[frames]], axis=1)
        track = Track(NAME, (self.push.target, self.push.tool), when, position, turns, COLOURS[0])
        return track, self._arrows(pushes)

    def _pushed(self, data: mujoco.MjData) -> Array:
        """Force of the tool on the block [3] [N], and where it acts times its size [3]."""
        total, centre, force = np.zeros(3), np.zeros(3), np.zeros(6)
        for i in range(data.ncon):
            contact = data.contact[i]
            bodies = [int(self.model.geom_bodyid[g]) for g in contact.geom]
            if set(bodies) != {1, 2}:
                continue
            mujoco.mj_contactForce(self.model, data, i, force)
            own = force[:3] @ np.asarray(contact.frame).reshape(3, 3)
            own = own if bodies[1] == 1 else -own
            total += own
            centre += float(np.linalg.norm(own)) * np.array(contact.pos)
        return np.concatenate([total, centre])

    def _arrows(self, pushes: Array) -> list[Arrow]:
        """Mean forces over windows."""
        each = max(1, round(WINDOW / STEP))
        arrows = []
        for low in range(0, len(pushes), each):
            rows = pushes[low : low + each]
            force, size = rows[:, :3].mean(axis=0), np.linalg.norm(rows[:, :3], axis=1).sum()
            if size <= 0:
                continue
            strength = float(np.linalg.norm(force))
            words = f"{NAME}: {strength:.3g} N on {self.push.target} by {self.push.tool}"
            now, point = low * STEP, rows[:, 3:].sum(axis=0) / size
            arrows.append(Arrow(NAME, now, now + WINDOW, point, force, words, unit="N", ends=True))
        most = max((float(np.linalg.norm(a.vector)) for a in arrows), default=0.0)
        return [a for a in arrows if float(np.linalg.norm(a.vector)) > LEAST * most]


def _between(trajectory: Trajectory, name: str, time: Array) -> tuple[Array, Array]:
    """Positions [K, 3] and unit quaternions [K, 4] at these times since the first sample."""
    when, position = trajectory.time - trajectory.time[0], trajectory.position_world[name]
    good = np.isfinite(position).all(axis=1)
    place = np.stack([np.interp(time, when[good], position[good, axis]) for axis in range(3)], axis=1)
    measured = trajectory.quaternion_world[name]
    if measured is None:
        return place, np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
    known = np.isfinite(measured).all(axis=1)
    turn = unit(measured[known])
    flips = np.cumprod(np.concatenate([[1.0], np.where((turn[1:] * turn[:-1]).sum(axis=1) < 0, -1.0, 1.0)]))
    turn = turn * flips[:, None]  # the short way from sample to sample
    return place, unit(np.stack([np.interp(time, when[known], turn[:, axis]) for axis in range(4)], axis=1))


def _smooth(path: Array) -> Array:
    """A path [K, .] without the noise of single samples, which would shake the block: pushes are slow."""
    return np.asarray(gaussian_filter1d(path, SMOOTH / STEP, axis=0, mode="nearest"))


def _model(block: Body, tool: Body, ground: float, friction: Mapping[str, float]) -> mujoco.MjModel:
    """Level ground, the block on it, and the tool, which touches the block alone."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.cone = STEP, mujoco.mjtCone.mjCONE_ELLIPTIC
    plane = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": [5, 5, 0.1], "pos": [0, 0, ground]}
    spec.worldbody.add_geom(name="ground", contype=0, conaffinity=0, **plane)
    named: dict[str, list[str]] = {}
    for role, body in (("block", block), ("tool", tool)):
        made = spec.worldbody.add_body(name=role)
        made.add_freejoint()
        made.gravcomp = 1.0 if role == "tool" else 0.0
        named[role] = _geoms(spec, made, role, body.solid)
        mass = HEAVY if role == "tool" else body.mass
        for geom in named[role]:
            if mass is None:
                spec.geom(geom).density = USUAL_DENSITY
            else:
                spec.geom(geom).mass = mass / len(named[role])
    for geom in named["block"]:
        pairs = [("ground", friction["ground"])] + [(other, friction["tool"]) for other in named["tool"]]
        for other, mu in pairs:
            pair = spec.add_pair(name=f"{geom}-{other}", geomname1=other, geomname2=geom, condim=4)
            pair.friction = [mu, mu, 0.005, 1e-4, 1e-4]
    return spec.compile()


def _geoms(spec: mujoco.MjSpec, body: mujoco.MjsBody, role: str, shape: Shape) -> list[str]:
    """Convex solids of a shape, as meshes."""
    parts = [Shape("extruded", outline=tuple(map(tuple, p)), height=shape.full_height) for p in shape.planar_parts]
    solids = parts if shape.kind == "compound" else [shape]
    names = []
    for number, solid in enumerate(solids):
        name = f"{role}{number}"
        spec.add_mesh(name=name, uservert=np.asarray(triangles(solid)[0], dtype=np.float32).ravel())
        kind = mujoco.mjtGeom.mjGEOM_MESH
        body.add_geom(name=name, type=kind, meshname=name, contype=0, conaffinity=0)
        names.append(name)
    return names
