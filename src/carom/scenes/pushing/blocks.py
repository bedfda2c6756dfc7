"""The blocks that are pushed: a cube, and a T of two boxes that are one body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import mujoco
import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.state import Array

SIDE = 0.06  #: [m] of the cube
HEIGHT = 0.04  #: [m] of the T
BAR, STEM = (0.12, 0.03), (0.03, 0.09)  #: [m] widths along x and y of the T's two boxes
MASS = 0.2  #: [kg]


@final
@dataclass(frozen=True)
class Box:
    """One box of a block, in the block's frame."""

    name: str
    centre: tuple[float, float, float]  #: [m]
    size: tuple[float, float, float]  #: full lengths [m]

    @property
    def volume(self) -> float:
        """[m^3]"""
        return float(np.prod(self.size))


def _t_boxes() -> tuple[Box, ...]:
    """Bar and stem, about their common centre of mass: the frame of the T."""
    areas = np.array([BAR[0] * BAR[1], STEM[0] * STEM[1]])
    middles = np.array([BAR[1] / 2, -STEM[1] / 2])
    bar, stem = (middles - areas @ middles / areas.sum()).tolist()
    return Box("bar", (0.0, bar, 0.0), (*BAR, HEIGHT)), Box("stem", (0.0, stem, 0.0), (*STEM, HEIGHT))


#: Of each block, by its name.
BLOCKS: dict[str, tuple[Box, ...]] = {"cube": (Box("cube", (0.0, 0.0, 0.0), (SIDE, SIDE, SIDE)),), "t": _t_boxes()}


def boxes_of(kind: str) -> tuple[Box, ...]:
    """The boxes of a block of this name."""
    if kind not in BLOCKS:
        raise SceneError(unknown_name("block", kind, BLOCKS))
    return BLOCKS[kind]


def corners_of(kind: str) -> Array:
    """Corners of a block's boxes, seen from above, in its frame [B, 4, 2] [m]."""
    signs = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) / 2
    return np.array([np.asarray(box.centre)[:2] + signs * np.asarray(box.size)[:2] for box in boxes_of(kind)])


def add_block(spec: mujoco.MjSpec, kind: str, mass: float, place: tuple[float, float]) -> None:
    """A free body `block` of even density on the ground, with its centre here [m]."""
    boxes = boxes_of(kind)
    made = spec.worldbody.add_body(name="block", pos=[*place, boxes[0].size[2] / 2])
    made.add_freejoint(name="block")
    whole = sum(box.volume for box in boxes)
    for box in boxes:
        made.add_geom(
            name=box.name,
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=box.centre,
            size=[s / 2 for s in box.size],
            mass=mass * box.volume / whole,
            rgba=[0.85, 0.55, 0.25, 1.0],
        )
