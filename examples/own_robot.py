"""A robot of one's own as a `Reality`: strikes in, a folder of recordings out. Run: python examples/own_robot.py

Everything that touches hardware is behind `Driver`: three methods. The driver here is simulated, so that you can try
the rest without a robot; write your own with the same three methods, and nothing else changes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import mujoco
import numpy as np

from carom.core.errors import CaromError
from carom.plan import approach
from carom.plan.export import StrikeMotion, strike_motion
from carom.reality import sample_commands
from carom.recordings import Recordings, Trajectory, check, read, scene_of, strike_impacts, write
from carom.scenes.shapes import Body, Shape
from carom.state import Array, StrikeCommands

BLOCK = Body("block", "target", Shape("box", size=(0.08, 0.08, 0.05)), mass=0.25)
TOOL = Body("striker", "striker", Shape("cylinder", radius=0.02, height=0.05))


class Capture(NamedTuple):
    """What motion capture saw of one strike: poses (x, y, z, qw, qx, qy, qz) [T, 7], w first, NaN where lost."""

    time: Array  #: [T] s
    block: Array
    tool: Array


class Driver(Protocol):
    """All that is needed of a robot and its cameras."""

    def place(self, pose: Array) -> None:
        """Bring the block to x, y, yaw [m, m, rad] at rest: the arm does it, or a person who is asked to."""

    def go(self, position: Array, yaw: float) -> None:
        """Bring the tool to a place [3] [m] above the table, and to rest, around the block."""

    def run(self, motion: StrikeMotion) -> Capture:
        """Carry out set-points, and record from before the contact until the block rests."""


class Robot:
    """A `Reality`: what it is told to strike, it strikes, measures and writes down."""

    def __init__(self, driver: Driver, bodies: Sequence[Body] = (BLOCK, TOOL)) -> None:
        self.driver, self.bodies = driver, {body.name: body for body in bodies}

    def execute(self, commands: StrikeCommands, folder: str | Path, *, seed: int = 0) -> Path:
        """Strike once for each row of `commands`. After each strike all so far is on disk: a fault costs only one."""
        folder = Path(folder)
        if folder.exists():
            raise CaromError(f"{folder} is there already; give a new folder")
        empty = Recordings(folder, self.bodies, ())
        scene, done = scene_of(empty), []
        touching = approach(scene, commands, standoff=0.0)  # the tool's frame as it touches
        for row in range(len(commands)):
            motion = strike_motion(
                touching.striker_pose[row, :2],
                touching.striker_velocity[row, :2],
                height=scene.shape.full_height / 2,
                yaw=float(touching.striker_pose[row, 2]),
            )
            self.driver.place(commands.target_pose[row])
            self.driver.go(motion.position[0], motion.yaw)
            done.append(self._trajectory(f"hit_{row:03d}.csv", folder, self.driver.run(motion)))
            write(folder, Recordings(folder, self.bodies, tuple(done), gravity=9.81))
        return folder

    def _trajectory(self, name: str, folder: Path, seen: Capture) -> Trajectory:
        position = {"block": seen.block[:, :3], "striker": seen.tool[:, :3]}
        quaternion = {"block": seen.block[:, 3:], "striker": seen.tool[:, 3:]}
        return Trajectory(name, folder / name, seen.time, position, quaternion, self.bodies)


class SimulatedDriver:
    """A robot in MuJoCo with cameras at 240 Hz, 0.1 mm off: to try the code above, not to learn physics from."""

    TABLE = """<mujoco><option timestep="0.0005"/>
      <worldbody>
        <geom type="plane" size="3 3 .1" friction=".3"/>
        <body name="block"><freejoint/><geom type="box" size=".04 .04 .025" mass=".25" solref="0.002 .4"/></body>
        <body name="striker" mocap="true"/>
        <body name="tool"><freejoint/><geom type="cylinder" size=".02 .025" mass="3" friction=".2"/></body>
      </worldbody>
      <equality><weld body1="striker" body2="tool" solref="0.002 1"/></equality></mujoco>"""

    def __init__(self, *, seed: int = 0) -> None:
        self.model = mujoco.MjModel.from_xml_string(self.TABLE)
        self.data, self.noise = mujoco.MjData(self.model), np.random.default_rng(seed)

    def place(self, pose: Array) -> None:
        turned = [np.cos(pose[2] / 2), 0.0, 0.0, np.sin(pose[2] / 2)]
        self.data.qpos[:7], self.data.qvel[:] = [*pose[:2], 0.025, *turned], 0.0

    def go(self, position: Array, yaw: float) -> None:
        turned = [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
        position = position + np.array([0.0, 0.0, 0.001])  # a millimetre above the table
        self.data.mocap_pos[0], self.data.mocap_quat[0] = position, turned
        self.data.qpos[7:], self.data.qvel[6:] = [*position, *turned], 0.0

    def run(self, motion: StrikeMotion) -> Capture:
        frames: list[Array] = []
        times = np.arange(0.0, motion.time[-1] + 1.5, 1 / 240)
        start = self.data.time
        for time in times:
            while self.data.time - start < time:
                now = self.data.time - start
                self.data.mocap_pos[0, :2] = [np.interp(now, motion.time, motion.position[:, i]) for i in (0, 1)]
                if now > motion.time[-1]:  # out of the way, at walking pace
                    self.data.mocap_pos[0, 2] = min(0.2, self.data.mocap_pos[0, 2] + 0.0002)
                mujoco.mj_step(self.model, self.data)
            frames.append(self.data.qpos.copy())
        seen = np.array(frames)
        seen[:, [0, 1, 2, 7, 8, 9]] += self.noise.normal(0, 1e-4, (len(seen), 6))
        return Capture(times, seen[:, :7], seen[:, 7:])


def main(folder: Path) -> int:
    robot = Robot(SimulatedDriver())
    robot.execute(sample_commands(BLOCK.shape, 4, np.random.default_rng(0)), folder / "lab")
    recordings = read(folder / "lab")
    impacts, _ = strike_impacts(recordings)
    print(f"{len(impacts.names)} of {len(recordings.trajectories)} strikes usable")
    for finding in check(folder / "lab").findings:
        print(finding)
    return len(impacts.names)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
