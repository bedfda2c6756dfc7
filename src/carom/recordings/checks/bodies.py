"""What is odd about the bodies that a header states: roles, masses, inertias and sizes that no body has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from carom.recordings.checks.findings import Observation
from carom.recordings.trajectory import Recordings, Units
from carom.scenes.shapes import Body, Shape

WIDE = 20.0  #: [m] nothing on a table is wider
HEAVIEST = 100.0  #: [kg] nothing on a table is heavier
DENSITY = (2.0, 25e3)  #: [kg/m^3] an empty carton, and more than any metal
ROUNDED = 1.02  #: by which stated sizes and inertias may be rounded
DIRECTIONS = 200  #: along which a centre of mass is held against its body's reach


def check_bodies(recordings: Recordings) -> Iterator[Observation]:
    """What the header says about bodies, or leaves out, that stops or misleads those who use it."""
    bodies = recordings.bodies
    if not any(body.role == "target" for body in bodies.values()):
        roles = ", ".join(f"{name}: {body.role}" for name, body in bodies.items())
        yield Observation("error", "no-target", f"no body has the role 'target' ({roles}); name the one that is struck")
    for name, body in bodies.items():
        everywhere = [t.bodies[name] for t in recordings.trajectories if name in t.bodies] or [body]
        if body.role == "target" and any(b.mass is None for b in everywhere):
            yield Observation(
                "warning", "no-mass", f"the mass of target '{name}' is not stated; energies and impulses need it"
            )
        if body.role in ("target", "striker") and any(b.shape is None for b in everywhere):
            yield Observation(
                "warning", "no-shape", f"the shape of {body.role} '{name}' is not stated; contact cannot be placed"
            )
        yield from _sizes(name, everywhere, recordings.units)
        for stated in dict.fromkeys((b.shape, b.mass, b.inertia, b.com) for b in everywhere):
            yield from _masses(Body(name, body.role, *stated))


def too_wide(recordings: Recordings) -> bool:
    """Whether a stated body is so large that its sizes must be in another unit."""
    bodies = [*recordings.bodies.values(), *(b for t in recordings.trajectories for b in t.bodies.values())]
    shapes = {body.shape for body in bodies if body.shape is not None}
    return any(_width(shape) > WIDE for shape in shapes)


def _width(shape: Shape) -> float:
    known = shape.kind in ("box", "extruded", "compound") or shape.radius is not None
    return float(np.ptp(shape.planar_outline)) if known else 0.0


def _sizes(name: str, everywhere: Sequence[Body], units: Units) -> Iterator[Observation]:
    sizes = [_width(body.shape) for body in everywhere if body.shape is not None]
    if sizes and max(sizes) > WIDE:
        yield Observation(
            "warning",
            "length-unit",
            f"'{name}' is {max(sizes):g} m wide; are these millimetres? Its sizes follow units.length ({units.length})",
        )


def _masses(body: Body) -> Iterator[Observation]:
    """Masses, inertias and centres of mass that are impossible in a body's shape."""
    name, shape, mass = body.name, body.shape, body.mass
    if mass is not None and mass > HEAVIEST:
        yield Observation("warning", "mass-unit", f"'{name}' has a mass of {mass:g} kg; are these grams?")
    elif mass is not None and shape is not None and body.role == "target":
        volume = _volume(shape)
        if volume is not None and not DENSITY[0] < mass / volume < DENSITY[1]:
            yield Observation(
                "warning",
                "density",
                f"'{name}' weighs {mass:g} kg and has a volume of {1e3 * volume:.3g} litres, {mass / volume:.3g} "
                "kg/m^3: check the units of its mass and its sizes",
            )
    if shape is not None and body.com is not None:
        way = np.random.default_rng(0).standard_normal((DIRECTIONS, 3))
        way /= np.linalg.norm(way, axis=-1, keepdims=True)
        beyond = float((way @ np.asarray(body.com) - ROUNDED * shape.support(way)).max())
        if beyond > 0:
            yield Observation(
                "error",
                "com-outside",
                f"the centre of mass of '{name}', {[float(c) for c in body.com]} m in its frame, is "
                f"{1e3 * beyond:.3g} mm outside of its shape: check com and the units",
            )
    if body.inertia is not None and np.isfinite(body.inertia).all():
        yield from _inertia(body)


def _inertia(body: Body) -> Iterator[Observation]:
    moments = np.linalg.eigvalsh(body.inertia_matrix)
    if moments[0] <= 0 or moments[2] > ROUNDED * (moments[0] + moments[1]):
        yield Observation(
            "error",
            "inertia",
            f"the inertia of '{body.name}' is impossible: its principal moments are "
            f"{', '.join(f'{m:.3g}' for m in moments)} kg m^2, and none may exceed the sum of the other two",
        )
    elif body.shape is not None and body.mass is not None:
        reach = body.shape.reach + float(np.linalg.norm(body.centre))
        most = body.mass * (ROUNDED * reach) ** 2
        if moments[2] > most:
            yield Observation(
                "error",
                "inertia",
                f"the inertia of '{body.name}' is impossible: {body.mass:g} kg within its shape have at most "
                f"{most:.3g} kg m^2, stated are {moments[2]:.3g}: check its unit",
            )


def _volume(shape: Shape) -> float | None:
    """Volume [m^3]; None for a mesh, and for what has no height."""
    if shape.kind == "sphere":
        return 4 / 3 * np.pi * float(shape.radius or 0.0) ** 3
    if shape.kind not in ("box", "cylinder", "extruded", "compound", "semi-cylinder") or not shape.full_height > 0:
        return None
    return shape.planar_moments[0] * shape.full_height
