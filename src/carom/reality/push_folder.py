"""The folder that a stand-in for pushes gives back: one data file per push, with what a laboratory would declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from carom.core.constants import GRAVITY
from carom.reality.mocap import Sampled
from carom.reality.push_contract import PushTasks
from carom.reality.push_machine import Machine
from carom.recordings import Ground, Recordings, Trajectory, write
from carom.scenes.shapes import Body, Shape
from carom.state import Array

if TYPE_CHECKING:
    from carom.scenes.pushing import PushScene

TOOL_HEIGHT = 0.05  #: [m] declared of a round tool


@dataclass(frozen=True)
class PushTake:
    """One push as recorded."""

    seen: Sampled  #: block ("target") and tool ("striker")
    joints: Array  #: [T, J] from the encoders
    controls: Array  #: [T, U] set-points in force at the robot's computer


def declared_bodies(scene: PushScene, machine: Machine) -> dict[str, Body]:
    """Block and tool as a folder declares them."""
    return {
        "block": Body("block", "target", block_shape(machine), mass=round(machine.block_mass, 6)),
        "tool": Body("tool", "tool", Shape("cylinder", radius=round(machine.radius, 6), height=TOOL_HEIGHT)),
    }


def block_shape(machine: Machine) -> Shape:
    """The declared shape of the block: a box, or boxes side by side."""
    height = round(machine.block_top, 6)
    outlines = tuple(tuple((round(float(x), 6), round(float(y), 6)) for x, y in part) for part in machine.parts)
    if len(outlines) == 1:
        low, high = np.min(outlines[0], axis=0), np.max(outlines[0], axis=0)
        return Shape("box", size=(float(round(high[0] - low[0], 6)), float(round(high[1] - low[1], 6)), height))
    return Shape("compound", outlines=outlines, height=height)


def write_pushes(
    folder: Path,
    scene: PushScene,
    machine: Machine,
    takes: Sequence[PushTake],
    tasks: PushTasks,
    tags: Mapping[str, Any],
) -> Path:
    """Write pushes of a `block` by a `tool` as a recordings folder, and return it."""
    bodies = declared_bodies(scene, machine)
    width = max(3, len(str(len(takes) - 1)))
    joints = scene.joint_names
    trajectories = []
    for index, take in enumerate(takes):
        name, seen, target = f"push_{index:0{width}d}.csv", take.seen, tasks.target[index]
        aim = {f"target_{k}": round(float(v), 6) for k, v in zip(("x", "y", "yaw"), target, strict=True)}
        controls = {joints[j]: take.controls[:, u] for u, j in enumerate(scene.servos)}
        controls |= {f"{joint}_measured": take.joints[:, j] for j, joint in enumerate(joints)}
        trajectories.append(
            Trajectory(
                name=name,
                path=folder / name,
                time=seen.time,
                position_world={"block": seen.target_position, "tool": seen.striker_position},
                quaternion_world={
                    "block": seen.target_quaternion,
                    "tool": seen.striker_quaternion if machine.planar else None,
                },
                bodies=bodies,
                tags={**tags, **(aim if np.isfinite(target).all() else {})},
                controls=controls,
            )
        )
    write(folder, Recordings(folder, bodies, tuple(trajectories), gravity=GRAVITY, ground=Ground()))
    return folder
