"""Pushes as others record them: poses of block and tool alone, no commands. By the stand-in, not by MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from carom.bench.simulated_pushes import servo_pushes
from carom.reality.push_standin import push_standin
from carom.recordings import Recordings, read, write
from carom.scenes.pushing import push_scene


def servo_folder(
    folder: Path, count: int = 8, *, seed: int = 0, setting: str = "plain", speed: tuple[float, float] = (0.15, 0.45)
) -> Path:
    """A folder with set-points and measured joints."""
    scene = push_scene("planar-cube")
    lab = push_standin(setting, scene, seed=seed)
    return lab.execute(servo_pushes(scene, count, seed, speed=speed), folder, seed=seed)


def poses_folder(folder: Path, count: int = 8, **how: object) -> Path:
    """The same without them."""
    made = read(servo_folder(folder.with_name(folder.name + "-with-commands"), count, **how))  # type: ignore[arg-type]
    bare = tuple(replace(t, controls={}, path=folder / t.name) for t in made.trajectories)
    write(folder, Recordings(folder, made.bodies, bare, gravity=made.gravity, ground=made.ground))
    return folder
