"""Scenes drawn at random: what base models learn from that are to serve any convex target and any striker."""

from __future__ import annotations

import numpy as np

from carom.learn.impact.ranges import Ranges
from carom.scenes.outline import check_convex
from carom.scenes.parameters import Parameter, known, with_bounds
from carom.scenes.shapes import Body, Shape, polygon_properties
from carom.scenes.strike import Striker, StrikeScene, com_unknown
from carom.state import Array

KINDS = ("box", "regular", "convex", "semi-cylinder", "cylinder")
KIND_SHARES = (0.3, 0.15, 0.3, 0.15, 0.1)


RANGES = Ranges()  #: that scenes are drawn from


def random_scene(rng: np.random.Generator, *, flat: bool) -> StrikeScene:
    """A scene with a convex target of any outline and size, and a striker that is round or has a flat face."""
    target = _random_target(rng)
    k, size = target.gyration_radius, float(np.ptp(target.solid.planar_outline, axis=0).max())
    mass = None
    unknown: list[Parameter] = []
    if rng.random() < 0.5:
        mass = float(target.mass or 1.0) * _log(rng, RANGES.mass_ratio)
        if rng.random() < 0.7:
            unknown.append(with_bounds("striker_mass", (mass / 3, mass * 3)))
    if flat:
        striker = Striker(width=size * _log(rng, RANGES.width), mass=mass)
        guessed = rng.random() < 0.5
        if guessed:
            unknown += [
                with_bounds("face_width", (RANGES.width[0] * size, 0.7 * size)),
                with_bounds("face_tilt", (-0.15, 0.15)),
                with_bounds("face_offset", (-0.15 * size, 0.15 * size)),
                known("striker_inertia"),
            ]
    else:
        striker, guessed = Striker(radius=_log(rng, RANGES.radius), mass=mass), False
    unknown += com_unknown(target.solid, 0.2 if guessed else 0.05)
    fastest = min(RANGES.speed[1], RANGES.pace * k)
    low = _log(rng, (RANGES.speed[0], fastest / 2))
    return StrikeScene(
        "any",
        target,
        striker,
        tuple(unknown),
        speed=(low, min(low * _log(rng, (2.0, 10.0)), fastest)),
        deflection=RANGES.deflection if rng.random() < 0.5 else RANGES.deflection / 2,
        face_angle=RANGES.face_angle if rng.random() < 0.5 else RANGES.face_angle / 2,
    )


def _log(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(*np.log(bounds))))


def _random_target(rng: np.random.Generator) -> Body:
    kind, size = str(rng.choice(KINDS, p=KIND_SHARES)), _log(rng, RANGES.size)
    if kind == "cylinder":
        k, half = size / np.sqrt(8), size / 2
        shape = Shape(kind, radius=half, height=k * _log(rng, RANGES.height))
    elif kind == "semi-cylinder":
        outline = Shape(kind, radius=size / 2, height=1.0).planar_outline
        shape = Shape(kind, radius=size / 2, height=_height(rng, outline))
    else:
        outline = size * _unit_outline(kind, rng)
        x, y = np.ptp(outline, axis=0)
        height = _height(rng, outline)
        if kind == "box":
            shape = Shape("box", size=(float(x), float(y), height))
        else:
            shape = Shape("extruded", outline=tuple(map(tuple, outline.tolist())), height=height)
    mass = _log(rng, (0.05, 2.0))
    if rng.random() < 0.7:
        return Body("target", "target", shape, mass)
    # mass that is not spread evenly: more of it in the middle, or at the rim
    k2 = (Body("target", "target", shape, mass).gyration_radius * rng.uniform(0.8, 1.2)) ** 2
    across = k2 / 2 + shape.full_height**2 / 12
    return Body("target", "target", shape, mass, inertia=(mass * across, mass * across, mass * k2))


def _height(rng: np.random.Generator, outline: Array) -> float:
    return float(np.sqrt(polygon_properties(outline)[2]) * _log(rng, RANGES.height))


def _unit_outline(kind: str, rng: np.random.Generator) -> Array:
    """A convex outline [V, 2] whose greatest extent is about one."""
    if kind == "box":
        x, y = 1.0, 1 / _log(rng, (1.0, 4.0))
        return np.array([[-x, -y], [x, -y], [x, y], [-x, y]]) / 2
    while True:
        count = int(rng.integers(3, 9))
        turn = np.linspace(0, 2 * np.pi, count, endpoint=False)
        if kind == "convex":  # corners on an ellipse, at random
            turn = np.sort(turn + rng.uniform(-0.4, 0.4, count) * 2 * np.pi / count)
        outline = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        if kind == "convex":
            outline[:, 1] /= _log(rng, (1.0, 2.5))
        outline = outline - polygon_properties(outline)[1]
        outline /= np.ptp(outline, axis=0).max()
        sides = np.linalg.norm(np.roll(outline, -1, axis=0) - outline, axis=-1)
        if sides.min() > 0.1:
            check_convex(outline, kind)
            return np.asarray(outline)
