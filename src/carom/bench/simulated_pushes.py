"""Pushes made by MuJoCo itself, with known parameters and a tracker's noise: does tuning find them again?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.rotations import about_z, yaw
from carom.engines.mujoco.engine import MujocoEngine
from carom.engines.pushing import PERIOD, PushSimulator
from carom.reality.push_contract import PushCommands
from carom.recordings import Ground, Recordings, Trajectory
from carom.scenes.pushing import PushScene, push_scene
from carom.scenes.pushing.robots import ROUND, arm_joints
from carom.scenes.scene import MjcfScene
from carom.scenes.shapes import Body, Shape

FINE = 0.005  #: [s] between samples
POSITION_NOISE, ANGLE_NOISE = 0.15e-3, float(np.radians(0.2))  #: of a tracker [m], [rad]


def servo_pushes(scene: PushScene, count: int, seed: int, *, speed: tuple[float, float] = (0.15, 0.45)) -> PushCommands:
    """Pushes at even bearings: the tool's set-point goes through the block beside its middle, stops, and goes back.

    `speed` [m/s] is that of the set-point; a soft servo hurries after it, and the block slides on where it stops.
    """
    rng = np.random.default_rng([seed, 11])
    centre = np.array([0.0, 0.0]) if scene.robot == "planar" else np.array([0.36, 0.0])
    turned = rng.uniform(-np.pi, np.pi, count)
    bearing = 2 * np.pi * (np.arange(count) + rng.uniform(0, 1, count)) / count
    heading = np.column_stack([np.cos(bearing), np.sin(bearing)])
    aside = np.column_stack([-heading[:, 1], heading[:, 0]])
    reach = float(np.linalg.norm(scene.corners, axis=-1).max())
    offset = rng.uniform(-0.45, 0.45, count)[:, None] * reach
    begin = centre - heading * (reach + 0.025) + aside * offset
    fast = rng.uniform(*speed, count)
    far = rng.uniform(0.10, 0.18, count)
    periods = int(np.ceil((far / fast).max() / PERIOD)) + 12
    since = PERIOD * np.arange(1, periods + 1)
    ahead = np.minimum(fast[:, None] * since, far[:, None])
    back = np.maximum(since - (far / fast)[:, None] - 0.3, 0.0) * 0.3
    path = begin[:, None] + (ahead - back)[..., None] * heading[:, None]
    block = np.column_stack([np.tile(centre, (count, 1)), turned])
    if scene.robot == "arm":
        place = np.concatenate([path, np.full((*path.shape[:2], 1), 0.02)], axis=-1)
        controls = arm_joints(place.reshape(-1, 3)).reshape(count, periods, -1)
        joints = arm_joints(np.column_stack([begin, np.full(count, 0.02)]))
    else:
        controls, joints = path, begin
    return PushCommands(scene.placed(block, joints), controls)


def mujoco_pushes(
    scene: PushScene, truth: Mapping[str, float], commands: PushCommands, seed: int, *, noise: float = 1.0
) -> Recordings:
    """What a tracker would record of these pushes in MuJoCo with these parameters."""
    names = tuple(name for name in truth if name != "actuator_delay")
    simulator = PushSimulator(MujocoEngine(scene, names, threads=1), period=FINE)
    fine = round(PERIOD / FINE)
    controls = np.repeat(commands.controls, fine, axis=1)
    motion = simulator.replay(commands.start, controls, {k: np.full(len(commands), v) for k, v in truth.items()})
    in_force = np.concatenate([controls, controls[:, -1:]], axis=1)
    rng = np.random.default_rng([seed, 12])
    bodies = declared(scene)
    made = []
    for i in range(len(commands)):
        count = motion.position.shape[1]
        tip = scene.tool_position(motion.joint_position[i])
        heading = np.unwrap(yaw(motion.quaternion[i, :, 0])) + noise * ANGLE_NOISE * rng.normal(size=count)
        seen = motion.position[i, :, 0] + noise * POSITION_NOISE * rng.normal(size=(count, 3))
        columns = {scene.joint_names[j]: in_force[i, :, u] for u, j in enumerate(scene.servos)}
        columns |= {f"{name}_measured": motion.joint_position[i, :, j] for j, name in enumerate(scene.joint_names)}
        name = f"push_{i:03d}.csv"
        made.append(
            Trajectory(
                name=name,
                path=Path(name),
                time=np.asarray(FINE * np.arange(count), dtype=np.float64),
                position_world={"block": seen, "tool": tip + noise * POSITION_NOISE * rng.normal(size=(count, 3))},
                quaternion_world={"block": about_z(heading), "tool": None},
                bodies=bodies,
                controls=columns,
            )
        )
    return Recordings(Path("simulated"), bodies, tuple(made), gravity=GRAVITY, ground=Ground())


def declared(scene: PushScene) -> dict[str, Body]:
    """Block and tool as a laboratory would declare them."""
    corners, height = scene.corners, 2 * scene.rest_height
    if len(corners) == 1:
        low, high = corners[0].min(axis=0), corners[0].max(axis=0)
        shape = Shape("box", size=(float(high[0] - low[0]), float(high[1] - low[1]), height))
    else:
        outlines = tuple(tuple((float(x), float(y)) for x, y in part) for part in corners)
        shape = Shape("compound", outlines=outlines, height=height)
    mass = float(scene.model.body_mass[scene.model.body(scene.block_body).id])
    return {
        "block": Body("block", "target", shape, mass=mass),
        "tool": Body("tool", "tool", Shape("cylinder", radius=ROUND, height=0.05)),
    }


def stiff_scene() -> PushScene:
    """The planar cube with a heavy tool and servos that no block bends: nothing shows how heavy the block is.

    A light tool would not do: in MuJoCo's contact, block and tool give way as their inertias ask for, which the block's
    path shows when the tool weighs about as much. Damping makes of set-points in steps a path that is even.
    """
    text = push_scene("planar-cube").spec().to_xml()
    stiffer = (
        ('gainprm="250"', 'gainprm="20000"'),
        ("0 -250 -15", "0 -20000 -2000"),
        ("-20 20", "-400 400"),
        ('mass="0.3"', 'mass="30"'),
    )
    for own, other in (*stiffer, ('contype="0" conaffinity="0" ', "")):
        text = text.replace(own, other)
    return PushScene("stiff", own=MjcfScene("stiff", text, roles={"target": "block", "tool": "tool"}))
