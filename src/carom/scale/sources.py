"""Built-in scenes that trajectories are drawn from: a toss, cubes like bowling pins, meshes dropped on each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.constants import GRAVITY
from carom.core.errors import SceneError
from carom.core.rotations import about_z, matrices, random_turn
from carom.scale.draws import Draw, Maker, apart, below, turned
from carom.scenes.free import cubes_scene, toss_scene
from carom.scenes.shapes import Body
from carom.scenes.solids import DENSITY, mesh_solid, solid_body
from carom.state import Array

RATE = 100.0  #: [1/s] samples, where recordings do not say
PINS = (1, 10)  #: cubes that stand
PILE = (1, 4)  #: meshes dropped together
MOST_BODIES = 24
MOST_SAMPLES = 20_000  #: of a trajectory: 250 of them are in memory at once
DENSITIES = (1.0, 30_000.0)  #: [kg/m^3] that a mesh may have: from aerogel to beyond osmium
WIDER = 1.05  #: by which pins that overlap move apart
BACK = 0.004  #: [m] by which the pushed cube steps back until it overlaps no other
ENGINE_FRICTION = 1.0  #: of a contact that nobody gave one
LONGEST_RUN_UP = 0.4  #: [m]; "run_up_share" is of the distance that friction lets it slide

#: what starts are drawn from, evenly
TOSS = {"clearance_m": (0.005, 0.3), "speed_m_s": (0.0, 1.5), "vertical_m_s": (-1.5, 0.5), "spin_rad_s": (0.0, 10.0)}
CUBES = {
    "speed_m_s": (0.5, 3.0),
    "run_up_share": (0.02, 0.6),
    "aim_over_pitch": (-0.4, 0.4),
    "heading_rad": (-0.2, 0.2),
    "pitch_over_side": (1.1, 1.8),
    "pin_yaw_rad": (-0.3, 0.3),
    "spin_rad_s": (-2.0, 2.0),
}
DROP = {
    "clearance_m": (0.005, 0.2),
    "gap_over_radius": (0.02, 0.6),
    "aside_over_radius": (0.0, 1.0),
    "speed_m_s": (0.0, 0.8),
    "vertical_m_s": (-1.0, 0.3),
    "spin_rad_s": (0.0, 8.0),
}


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """Where trajectories are drawn from: bodies over some ground, and their states at the start."""

    name: str
    templates: tuple[Body, ...]  #: of box, sphere, cylinder or mesh, with a mass
    period: float  #: [s] between samples
    samples: int  #: in a trajectory, the start included
    gravity: float = GRAVITY
    ground_height: float = 0.0
    planar: bool = False  #: over an air table

    @abstractmethod
    def draw(self, make: Maker, rng: np.random.Generator) -> Draw:
        """Bodies and states of one trajectory, over level ground at height 0."""

    def group(self, rng: np.random.Generator) -> int:
        """Which group of bodies the next `draw` with this generator takes: one that has only one takes the first."""
        return 0

    def groups_of_templates(self) -> tuple[int, ...]:
        """The group that each of the templates belongs to."""
        return (0,) * len(self.templates)

    @abstractmethod
    def ranges(self) -> dict[str, Any]:
        """What starts are drawn from, for the header."""

    def notes(self) -> tuple[str, ...]:
        """What else a user should know."""
        return ()

    def made_from(self) -> dict[str, Any]:
        """Recordings that it comes from, for the header."""
        return {}


@dataclass(frozen=True, eq=False)
class Toss(Source):
    """A body tossed on the ground: height, velocity, spin and orientation at random."""

    def draw(self, make: Maker, rng: np.random.Generator) -> Draw:
        """One body in flight."""
        body = make.make(self.templates[0], rng)
        turn = random_turn(rng)
        height = below(body, matrices(turn)) + rng.uniform(*TOSS["clearance_m"])
        position = np.array([0.0, 0.0, height])
        velocity, spin = _flight(TOSS, rng)
        return Draw((body,), position[None], turn[None], velocity[None], spin[None], self.name)

    def ranges(self) -> dict[str, Any]:
        """The ranges that starts are drawn from."""
        return {name: list(bounds) for name, bounds in TOSS.items()}


@dataclass(frozen=True, eq=False)
class Cubes(Source):
    """A cube pushed along the ground into others that stand like bowling pins; how many varies."""

    bodies: tuple[int, int] = PINS  #: that stand

    def draw(self, make: Maker, rng: np.random.Generator) -> Draw:
        """Pins in rows of one, two, three ... behind each other; the pushed cube comes along x and reaches them."""
        count = int(rng.integers(self.bodies[0], self.bodies[1] + 1))
        names = ["pushed", *(f"cube_{i}" for i in range(1, count + 1))]
        bodies = tuple(make.make(self.templates[0], rng, name=name) for name in names)
        yaw = np.array([rng.uniform(-np.pi / 4, np.pi / 4), *rng.uniform(*CUBES["pin_yaw_rad"], count)])
        upright = about_z(yaw)
        position = np.zeros((1 + count, 3))
        position[:, 2] = [b.solid.extent[2] / 2 for b in bodies]
        pitch = float(np.mean([b.solid.extent[:2] for b in bodies])) * rng.uniform(*CUBES["pitch_over_side"])
        position[1:, :2] = pitch * _pins(count)
        while not apart(bodies[1:], position[1:], upright[1:], planar=True):
            position[1:, :2] *= WIDER
        heading, aim = rng.uniform(*CUBES["heading_rad"]), pitch * rng.uniform(*CUBES["aim_over_pitch"])
        way, speed = np.array([np.cos(heading), np.sin(heading), 0.0]), rng.uniform(*CUBES["speed_m_s"])
        position[0, 1] = aim
        while not apart(bodies, position, upright, planar=True):
            position[0] -= BACK * way
        slide = speed**2 / (2 * max(make.values.get("friction", ENGINE_FRICTION), 0.05) * self.gravity)
        position[0] -= min(rng.uniform(*CUBES["run_up_share"]) * slide, LONGEST_RUN_UP) * way
        velocity, spin = np.zeros((1 + count, 3)), np.zeros((1 + count, 3))
        velocity[0], spin[0, 2] = speed * way, rng.uniform(*CUBES["spin_rad_s"])
        return turned(Draw(bodies, position, upright, velocity, spin, self.name), about_z(rng.uniform(0, 2 * np.pi)))

    def ranges(self) -> dict[str, Any]:
        """The ranges that starts are drawn from."""
        return {"standing": list(self.bodies), "run_up_at_most_m": LONGEST_RUN_UP} | {
            name: list(bounds) for name, bounds in CUBES.items()
        }


@dataclass(frozen=True, eq=False)
class Dropped(Source):
    """Convex meshes, one to a few of them, tossed onto the ground and onto each other."""

    bodies: tuple[int, int] = PILE

    def draw(self, make: Maker, rng: np.random.Generator) -> Draw:
        """Bodies above each other, each beyond the reach of the one below."""
        count = int(rng.integers(self.bodies[0], self.bodies[1] + 1))
        picked = [self.templates[int(rng.integers(len(self.templates)))] for _ in range(count)]
        bodies = tuple(make.make(t, rng, name=f"{t.name}_{i}") for i, t in enumerate(picked, start=1))
        turns = np.array([random_turn(rng) for _ in bodies])
        position, velocity, spin = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3))
        reach = [b.solid.reach for b in bodies]
        for i, body in enumerate(bodies):
            aside, angle = reach[i] * rng.uniform(*DROP["aside_over_radius"]), rng.uniform(0, 2 * np.pi)
            lowest = below(body, matrices(turns[i])) + rng.uniform(*DROP["clearance_m"])
            gap = reach[i] * rng.uniform(*DROP["gap_over_radius"])
            above = lowest if i == 0 else position[i - 1, 2] + reach[i - 1] + reach[i] + gap
            position[i] = [aside * np.cos(angle), aside * np.sin(angle), above]
            velocity[i], spin[i] = _flight(DROP, rng)
        return Draw(bodies, position, turns, velocity, spin, self.name)

    def ranges(self) -> dict[str, Any]:
        """The ranges that starts are drawn from."""
        return {"bodies": list(self.bodies)} | {name: list(bounds) for name, bounds in DROP.items()}


def _flight(ranges: Mapping[str, tuple[float, float]], rng: np.random.Generator) -> tuple[Array, Array]:
    """A velocity and a spin [3] in flight."""
    angle, axis = rng.uniform(0, 2 * np.pi), rng.normal(size=3)
    speed = rng.uniform(*ranges["speed_m_s"])
    velocity = np.array([speed * np.cos(angle), speed * np.sin(angle), rng.uniform(*ranges["vertical_m_s"])])
    return velocity, rng.uniform(*ranges["spin_rad_s"]) * axis / np.linalg.norm(axis)


def _pins(count: int) -> Array:
    """Places [count, 2] of bowling pins, one pitch apart: rows of 1, 2, 3 ... along x."""
    places: list[tuple[float, float]] = []
    row = 0
    while len(places) < count:
        here = min(row + 1, count - len(places))
        places += [(row * np.sqrt(3) / 2, i - (here - 1) / 2) for i in range(here)]
        row += 1
    return np.array(places)


def sampling(
    rate: float | None, duration: float | None, *, seconds: float, period: float = 1 / RATE
) -> tuple[float, int]:
    """Period [s] and number of samples: as asked for, else the scene's own."""
    if rate is not None and not (np.isfinite(rate) and 1 <= rate <= 10_000):
        raise SceneError(f"--rate: expected samples per second from 1 to 10000, got {rate:g}")
    if duration is not None and not (np.isfinite(duration) and 0 < duration <= 60):
        raise SceneError(f"--duration: expected more than 0 and up to 60 s, got {duration:g}")
    period = period if rate is None else 1 / rate
    samples = round((seconds if duration is None else duration) / period) + 1
    if samples > MOST_SAMPLES:
        raise SceneError(
            f"--rate, --duration: expected {MOST_SAMPLES} samples of a trajectory at most, got {samples}: "
            f"{(samples - 1) * period:g} s at {1 / period:g} per second"
        )
    if samples < 3:
        raise SceneError(
            f"--duration: expected two sample periods ({2 * period:g} s) or more, got {duration or seconds:g} s"
        )
    return period, samples


def toss(*, rate: float | None = None, duration: float | None = None) -> Toss:
    """The built-in `toss`: a cube on a board."""
    return Toss("toss", (solid_body(toss_scene().bodies[0]),), *sampling(rate, duration, seconds=1.0))


def cubes(*, bodies: tuple[int, int] | None = None, rate: float | None = None, duration: float | None = None) -> Cubes:
    """The built-in `cubes`: one pushed into one to ten others."""
    template = replace(solid_body(cubes_scene().bodies[0]), name="cube")
    found = checked_bodies(bodies or PINS, PINS[1])
    return Cubes("cubes", (template,), *sampling(rate, duration, seconds=1.5), bodies=found)


def dropped(
    meshes: Sequence[Path],
    *,
    bodies: tuple[int, int] | None = None,
    rate: float | None = None,
    duration: float | None = None,
    density: float = DENSITY,
) -> Dropped:
    """Convex meshes dropped on the ground and on each other."""
    if not DENSITIES[0] <= density <= DENSITIES[1]:
        expected = f"from {DENSITIES[0]:g} to {DENSITIES[1]:g} kg/m^3"
        raise SceneError(f"--density: expected {expected}, got {density:g}")
    names = [path.stem for path in meshes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SceneError(f"two meshes are called '{twice}'; a mesh needs a file name of its own, given once")
    templates = tuple(mesh_solid(path, density=density) for path in meshes)
    found = checked_bodies(bodies or PILE, MOST_BODIES)
    return Dropped("meshes", templates, *sampling(rate, duration, seconds=1.5), bodies=found)


def checked_bodies(bodies: tuple[int, int], most: int) -> tuple[int, int]:
    """The range of the number of bodies, or an error."""
    low, high = bodies
    if not 1 <= low <= high <= most:
        raise SceneError(f"--bodies: expected two numbers from 1 to {most}, lower first, got {low} {high}")
    return low, high
