"""Stand-in realities for pushes: commands or a policy in, a folder of recordings out; physics that is not MuJoCo's.

A pressure patch with friction, a tool that meets it by complementarity, servos with lag, friction and delay, a tool
that is not where it is thought to be, and motion capture with noise and lost samples. It is still a simulation, and a
table of such results has to say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.reality.folder import check_new
from carom.reality.mocap import Mocap, measured
from carom.reality.push_contract import PERIOD, Controller, PushCommands, PushTasks, follow
from carom.reality.push_folder import PushTake, write_pushes
from carom.reality.push_machine import Joints, Machine, machine_of
from carom.reality.push_settings import PushEffects, PushSetting, find_push_setting
from carom.reality.pushed_block import Base, Pushed, Rubbing, Tip, base_of, step
from carom.state import Array, SceneState, rotate

if TYPE_CHECKING:
    from carom.scenes.pushing import PushScene

RATE = 200.0  #: [Hz] at which pushes are recorded
STEPS = 2  #: of the simulation in a sample
WAVE = 0.15  #: [m] length of the waves of an uneven table
PUSH_MOCAP = Mocap(rate=RATE, jitter=0.0)


@final
class PushStandIn:
    """A simulated laboratory: one block on one table, a robot that pushes it, and motion capture.

    Build it with `push_standin`. It fulfils `PushReality`.
    """

    def __init__(
        self, setting: PushSetting, scene: PushScene, effects: PushEffects, *, seed: int, mocap: Mocap
    ) -> None:
        self.setting, self.scene, self.effects, self.seed, self.mocap = setting, scene, effects, seed, mocap
        self.machine: Machine = machine_of(scene)
        turns = np.random.default_rng([seed, 7]).uniform(0, 2 * np.pi, 6)
        heading = np.stack([np.cos(turns), np.sin(turns)], axis=-1)
        reach = float(np.linalg.norm(np.concatenate(self.machine.parts), axis=1).max())
        self._misalignment = effects.misalignment * heading[0]
        self._grain, self._phases = float(turns[1]), turns[2:4]
        self._base: Base = base_of(
            self.machine.parts,
            mass=self.machine.block_mass * setting.mass_scale,
            offset=effects.com_offset * heading[4],
            tilt=effects.pressure_tilt / reach * heading[5],
        )
        self._even_com = base_of(self.machine.parts, mass=1.0).com

    @property
    def truth(self) -> dict[str, float]:
        """True values of those parameters that a scene of pushing can express. Only a stand-in can tell."""
        effects, offset = self.effects, self._base.com - self._even_com
        corners = float(np.linalg.norm(self.scene.corners, axis=-1).mean())
        lever = float(self._base.share @ np.linalg.norm(self._base.points, axis=1))
        return {
            "ground_friction": self.setting.ground_friction,
            "striker_friction": self.setting.tool_friction,
            "pressure_spread": (lever + effects.torsion) / corners,
            "mass_scale": self.setting.mass_scale,
            "com_x": float(offset[0]),
            "com_y": float(offset[1]),
            "joint_friction": effects.joint_friction,
            "tool_offset_x": float(self._misalignment[0]),
            "tool_offset_y": float(self._misalignment[1]),
            "actuator_delay": effects.delay,
        }

    def execute(self, commands: PushCommands, folder: str | Path, *, seed: int) -> Path:
        """See `PushReality`."""
        tasks = PushTasks(commands.start, np.full((len(commands), 3), np.nan), commands.controls.shape[1])
        return self.deploy(follow(commands.controls), tasks, folder, seed=seed)

    def deploy(self, controller: Controller, tasks: PushTasks, folder: str | Path, *, seed: int) -> Path:
        """See `PushReality`; the same seed and controller give the same bytes."""
        folder = Path(folder)
        check_new(folder)
        if not len(tasks):
            raise CaromError("tasks: expected at least one push, got none")
        takes = self._takes(controller, tasks, seed)
        tags = {"kind": "push", "reality": f"stand-in {self.setting.name}"}
        return write_pushes(folder, self.scene, self.machine, takes, tasks, tags)

    def push(self, start: SceneState, controller: Controller, steps: int, folder: str | Path, *, seed: int) -> Path:
        """Push without targets of its own: the controller knows where to."""
        return self.deploy(controller, PushTasks(start, np.full((len(start), 3), np.nan), steps), folder, seed=seed)

    def watch(self, controller: Controller, tasks: PushTasks, *, seed: int) -> Array:
        """True poses [N, K + 1, 3] of the blocks at each period's beginning and the end; only a stand-in can tell."""
        lab = _Run(self, tasks.start, [_stream(self.seed, seed, i) for i in range(len(tasks))])
        poses = [lab.block()]
        for number in range(tasks.steps):
            lab.period(controller, number)
            poses.append(lab.block())
        return np.stack(poses, axis=1)

    def _takes(self, controller: Controller, tasks: PushTasks, seed: int) -> list[PushTake]:
        streams = [_stream(self.seed, seed, i) for i in range(len(tasks))]
        lab = _Run(self, tasks.start, streams)
        for number in range(tasks.steps):
            lab.period(controller, number)
        return lab.takes(streams)


@dataclass
class _Frames:
    """What is seen of all rows, sample by sample."""

    block: list[Array]  #: [N, 3]
    tip: list[Array]  #: [N, 3]
    joints: list[Array]  #: [N, J]
    controls: list[Array]  #: [N, U]


class _Run:
    """N pushes on their way."""

    def __init__(self, lab: PushStandIn, start: SceneState, streams: list[np.random.Generator]) -> None:
        effects, machine = lab.effects, lab.machine
        self.lab, self.streams, self.count = lab, streams, len(start)
        draw = np.clip(np.array([stream.standard_normal(2) for stream in streams]), -3, 3)
        scatter = 1 + effects.friction_scatter * draw
        self.ground = lab.setting.ground_friction * scatter[:, 0]
        self.tool = lab.setting.tool_friction * scatter[:, 1]
        joints = np.asarray(start.joint_position, dtype=np.float64).copy()
        self.joints = Joints(machine, joints, np.zeros_like(joints), effects.joint_friction)
        q = start.quaternion[:, 0]
        yaw = 2 * np.arctan2(q[:, 3], q[:, 0])
        centre = start.position[:, 0, :2] + rotate(np.broadcast_to(lab._base.com, (self.count, 2)), yaw)
        tip = machine.tip(joints)[:, :2]
        self.state = Pushed(centre, yaw, np.zeros((self.count, 3)), tip, np.zeros((self.count, 2)))
        self.height = start.position[:, 0, 2]
        self.history: list[Array] = []
        self.seen = _Frames([], [], [], [])
        self.h = 1.0 / (lab.mocap.rate * STEPS)
        self.per_period = round(PERIOD / self.h)
        if abs(self.per_period * self.h - PERIOD) > 1e-9 or self.per_period % STEPS:
            raise CaromError(f"mocap: {lab.mocap.rate:g} Hz does not divide the control period of {PERIOD:g} s")
        self._before: tuple[Array, Array] | None = None
        self._held = joints.copy()

    def period(self, controller: Controller, number: int) -> None:
        """One control period: measure, ask, and go on for its length."""
        wanted = np.asarray(controller(self._measured()), dtype=np.float64)
        shape = (self.count, len(self.lab.scene.servos))
        if wanted.shape != shape or not np.isfinite(wanted).all():
            raise CaromError(f"controller: expected finite set-points of shape {shape}, got shape {wanted.shape}")
        limits = self.lab.scene.limits
        self.history.append(np.clip(wanted, limits[:, 0], limits[:, 1]))
        for k in range(self.per_period):
            if k % STEPS == 0:
                self._see()
            late = number * PERIOD + k * self.h - self.lab.effects.delay
            index = int(np.floor(late / PERIOD + 1e-9))
            self._advance(self._in_force(index))

    def _in_force(self, index: int) -> Array:
        """Set-points of all joints [N, J] that were asked for in that period; before the first, where they stood."""
        out = self._held.copy()
        if index >= 0:
            out[:, list(self.lab.scene.servos)] = self.history[index]
        return out

    def _advance(self, target: Array) -> None:
        lab, state = self.lab, self.state
        planar = lab.machine.planar
        drive = self.joints.planar_drive(target, self.h) if planar else self.joints.advance(target, self.h)
        effects = lab.effects
        wave = np.sin(2 * np.pi * state.centre / WAVE + lab._phases).prod(axis=1)
        rubbing = Rubbing(
            self.ground * (1 + effects.unevenness * wave),
            self.tool,
            across=1 + effects.anisotropy,
            grain=lab._grain if effects.anisotropy else 0.0,
            spin=effects.torsion,
            rise=effects.rise,
        )
        step(
            lab._base,
            rubbing,
            state,
            drive,
            self.h,
            tip=Tip(lab.machine.radius, lab._misalignment),
            reaches=self.joints.reaches(),
            inertia=effects.inertia,
        )
        if planar:
            self.joints.position, self.joints.velocity = state.tool.copy(), state.tool_velocity.copy()

    def block(self) -> Array:
        """Poses [N, 3] of the blocks' frames now."""
        return self.state.frame(self.lab._base.com)

    def _see(self) -> None:
        self.seen.block.append(self.block())
        self.seen.tip.append(self.lab.machine.tip(self.joints.position))
        self.seen.joints.append(self.joints.position.copy())
        self.seen.controls.append(self.history[-1])

    def _measured(self) -> SceneState:
        """What the robot's computer knows now: tracked pose of the block with its noise, joints from encoders."""
        mocap, pose = self.lab.mocap, self.block()
        noise = np.array([stream.standard_normal(3) for stream in self.streams])
        pose = pose + noise * [mocap.position_noise, mocap.position_noise, mocap.angle_noise]
        before = pose if self._before is None else self._before[0]
        going = (pose - before) / PERIOD
        joints = self.joints.position.copy()
        turning = np.zeros_like(joints) if self._before is None else (joints - self._before[1]) / PERIOD
        self._before = (pose, joints)
        position = np.column_stack([pose[:, :2], self.height])
        flat, none = np.column_stack([going[:, :2], np.zeros(self.count)]), np.zeros((self.count, 2))
        return SceneState(
            (self.lab.scene.block_body,),
            position[:, None],
            about_z(pose[:, 2])[:, None],
            flat[:, None],
            np.column_stack([none, going[:, 2]])[:, None],
            self.lab.scene.joint_names,
            joints,
            turning,
        )

    def takes(self, streams: list[np.random.Generator]) -> list[PushTake]:
        """What motion capture makes of it, each push with the randomness of its own stream."""
        self._see()
        block, tip, joints, controls = (
            np.stack(frames, axis=1)
            for frames in (self.seen.block, self.seen.tip, self.seen.joints, self.seen.controls)
        )
        made = []
        for i, stream in enumerate(streams):
            position = np.column_stack([block[i, :, :2], np.full(block.shape[1], self.height[i])])
            turn = about_z(block[i, :, 2])
            still = about_z(np.zeros(len(tip[i])))
            seen = measured((position, turn), (tip[i], still), stream, self.lab.mocap)
            made.append(PushTake(seen, np.round(joints[i], 7), np.round(controls[i], 7)))
        return made


def _stream(own: int, seed: int, index: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([own, seed], spawn_key=(index, 3))))


def push_standin(
    setting: str, scene: PushScene, *, seed: int, effects: PushEffects | None = None, mocap: Mocap | None = None
) -> PushStandIn:
    """The stand-in for a setting (a name of `PUSH_SETTINGS`) and a scene of pushing, which says what is known.

    `effects` replaces the setting's own; `seed` draws what the setting leaves open: to which side the mass is off, how
    the table's grain lies, to where the tool is misaligned.
    """
    chosen = find_push_setting(setting)
    return PushStandIn(
        chosen,
        scene,
        chosen.effects if effects is None else effects,
        seed=seed,
        mocap=PUSH_MOCAP if mocap is None else mocap,
    )
