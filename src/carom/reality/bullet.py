"""Stand-in realities whose physics is Bullet's (extra `bench`): a striker hits a resting block, which then slides.

An engine that neither teaches Carom's models nor shares a line with them: restitution after Newton at each contact
point, or springs and dampers in the contact; Coulomb friction under each foot; bodies in space, which may lean. The
blow is stepped finely, the slide less so. Motion capture looks at it as at the other stand-ins.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError
from carom.reality.bullet_settings import BulletSetting, find_bullet_setting
from carom.reality.bullet_world import Blow, Track, World, centre_of_mass, hull_text
from carom.reality.folder import check_new, write_strikes
from carom.reality.mocap import Mocap, Sampled, exposures, measured
from carom.reality.touch import Touch, check_on_outline, flat_touch, round_touch, surface
from carom.scenes.shapes import Body
from carom.state import Array, StrikeCommands, Strikes, rotate

BACK = 0.003  #: [m] from where a strike is carried out again: a recorded touch may be that late
STEP, SLIDE_STEP = 1 / 64000, 1 / 2000  #: [s] during the blow, and afterwards


def bullet_missing() -> str:
    """Why these stand-ins cannot be used here, with what to install; empty if they can."""
    return "" if find_spec("pybullet") else "PyBullet is not installed; it comes with: pip install carom[bench]"


def load_bullet() -> Any:
    """PyBullet, or what to install. Its greeting, which goes past Python's stderr, is lost."""
    if why := bullet_missing():
        raise CaromError(why)
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        return importlib.import_module("pybullet")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@final
class _Client:
    """A simulation of its own in PyBullet, whose functions take its number."""

    def __init__(self, bullet: Any) -> None:
        self._bullet, self._number = bullet, bullet.connect(bullet.DIRECT)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._bullet, name)
        bound = partial(found, physicsClientId=self._number) if callable(found) else found
        setattr(self, name, bound)  # the next time it is found without coming here
        return bound

    def close(self) -> None:
        self._bullet.disconnect(self._number)


@final
class BulletReality:
    """A simulated lab in Bullet. Build it with `bullet_standin`. It fulfils `Reality`."""

    def __init__(self, setting: BulletSetting, *, seed: int, mocap: Mocap, step: float, slide_step: float) -> None:
        self.setting, self.shape, self.mass = setting, setting.shape, setting.mass
        self.seed, self.mocap, self.step, self.slide_step = seed, mocap, step, slide_step
        self.arm = float(np.random.default_rng([seed, 1]).uniform(0, 2 * np.pi))
        self._bullet = load_bullet()

    @property
    def bodies(self) -> dict[str, Body]:
        """The bodies as the folders declare them."""
        own = self.setting.striker_mass[0] if self.setting.mass_known else None
        return {
            "block": Body("block", "target", self.shape, mass=self.mass),
            "striker": Body("striker", "striker", self.setting.striker, mass=own),
        }

    def execute(self, commands: StrikeCommands, folder: str | Path, *, seed: int) -> Path:
        """Carry out the strikes and write the recordings; the same seed gives the same bytes."""
        check_new(Path(folder))
        return self._record(self.tracks(commands, seed=seed), Path(folder), seed)

    def again(self, strikes: Strikes, folder: str | Path, *, seed: int) -> Path:
        """Carry out strikes as they were recorded, without scatter, and record them: what can be known of them."""
        check_new(Path(folder))
        tracks = self._carry_out([self._as_recorded(strikes, row) for row in range(len(strikes))])
        return self._record(tracks, Path(folder), seed)

    def _record(self, tracks: Sequence[Track], folder: Path, seed: int) -> Path:
        com = centre_of_mass(self.setting)
        sampled: list[Sampled] = []
        for index, track in enumerate(tracks):
            stream = self._stream(seed, index, 1)
            times = exposures(float(track.time[track.rest]), stream, self.mocap)
            sampled.append(measured(*track.poses(times, com), stream, self.mocap))
        return write_strikes(folder, self.bodies, sampled, {"reality": f"stand-in {self.setting.name}"})

    def tracks(self, commands: StrikeCommands, *, seed: int) -> list[Track]:
        """What really comes of the strikes that `execute` carries out with that seed."""
        if not len(commands):
            raise CaromError("commands: expected at least one strike, got none")
        return self._carry_out(self._blows(commands, seed))

    def _carry_out(self, blows: Sequence[Blow]) -> list[Track]:
        with tempfile.TemporaryDirectory() as place, closing(_Client(self._bullet)) as client:
            hull = Path(place) / "hull.obj"
            hull.write_text(hull_text(self.shape))
            world = World(client, self.setting, hull)
            steps = {"step": self.step, "slide_step": self.slide_step}
            ends = {"longest": self.mocap.longest, "after": self.mocap.after}
            return [world.carry_out(blow, **steps, **ends) for blow in blows]

    def _stream(self, seed: int, index: int, purpose: int) -> np.random.Generator:
        sequence = np.random.SeedSequence([self.seed, seed], spawn_key=(index, purpose))
        return np.random.Generator(np.random.PCG64(sequence))

    def _blows(self, commands: StrikeCommands, seed: int) -> list[Blow]:
        """What each strike begins with; restitution is that of its approach speed."""
        setting = self.setting
        points, normal = check_on_outline(self.shape, commands.contact_point, commands.velocity)
        draw = np.array([self._stream(seed, i, 0).standard_normal(4) for i in range(len(commands))]).clip(-3, 3)
        touch = self._touch(points, normal, commands.velocity, draw[:, 3])
        speed = np.einsum("ni,ni->n", commands.velocity, touch.normal)
        blows = []
        for pose, at, velocity, v_n, row in zip(
            commands.target_pose, touch.striker, commands.velocity, speed, 1 + setting.scatter * draw, strict=True
        ):
            striker = np.array([*(pose[:2] + rotate(at[:2], pose[2])), at[2] + pose[2]])
            e = min(setting.restitution_at(float(v_n)) * row[0], 1.0)
            grip, ground = setting.friction * row[1], setting.ground_friction * row[2]
            blows.append(Blow(pose, striker, rotate(velocity, pose[2]), e, grip, ground, self.arm))
        return blows

    def _as_recorded(self, strikes: Strikes, row: int) -> Blow:
        """A strike with the poses and the velocity that were recorded as the two touched; from `BACK` before that."""
        setting, striker = self.setting, strikes.striker_pose[row].copy()
        pose, velocity = strikes.target_pose[row], strikes.striker_velocity[row, :2]
        if setting.striker.is_round:
            _, inward = surface(self.shape, rotate(striker[:2] - pose[:2], -pose[2])[None])
            normal = rotate(inward[0], pose[2])
        else:  # recordings of strikes have the middle of its face
            normal = rotate(np.array([1.0, 0.0]), striker[2])
            striker[:2] -= setting.striker.size[0] / 2 * normal
        striker[:2] -= BACK * velocity / np.linalg.norm(velocity)
        e = min(setting.restitution_at(float(velocity @ normal)), 1.0)
        return Blow(pose, striker, velocity, e, setting.friction, setting.ground_friction, self.arm)

    def _touch(self, points: Array, normal: Array, velocity: Array, draw: Array) -> Touch:
        striker = self.setting.striker
        if striker.is_round:
            return round_touch(points, normal, radius=float(striker.radius or 0.0))
        yaw = np.arctan2(normal[:, 1], normal[:, 0]) + self.setting.facing_error * draw
        return flat_touch(self.shape, points, yaw, velocity, width=striker.size[1], depth=striker.size[0])


def bullet_standin(
    setting: str | BulletSetting,
    *,
    seed: int,
    mocap: Mocap | None = None,
    step: float = STEP,
    slide_step: float = SLIDE_STEP,
) -> BulletReality:
    """The stand-in for a setting (a name of `BULLET_SETTINGS`, or one of your own).

    `seed` draws how the arm stands; `step` and `slide_step` [s] are those of the blow and of the slide.
    """
    chosen = find_bullet_setting(setting) if isinstance(setting, str) else setting
    watched = Mocap() if mocap is None else mocap
    return BulletReality(chosen, seed=seed, mocap=watched, step=step, slide_step=slide_step)
