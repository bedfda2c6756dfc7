"""Parameters of free bodies written into a batch: masses, sizes, centres of mass, gravity and the ground's lean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from carom.core.errors import SceneError
from carom.core.rotations import of_tilt
from carom.scenes.parameters import FACE
from carom.state import Array

if TYPE_CHECKING:
    from carom.scenes.free import FreeScene

PAD_HEIGHT, PAD_INSET = 0.0025, 0.08  #: of a face that rubs unlike its edges: how far it stands out, and ends, per side
OF_MASS = ("com_x", "com_y", "com_z", "com_offset")  #: parameters that move the centre of mass


def write_bodies(scene: FreeScene, batch: Any, values: Mapping[str, Array], com: Array) -> None:
    """Masses, inertias, centres of mass [N, B, 3], gravity and the ground's lean into a batch."""
    own, model, ones = slice(1, 1 + len(scene.bodies)), batch.model, np.ones(batch.nsim)  # body 0 is the world
    scale, mass = values.get("length_scale", ones), values.get("mass_scale", ones)
    if "mass_scale" in values:
        batch.expand("body_mass")[:, own] = model.body_mass[own] * mass[:, None]
    if {"mass_scale", "inertia_scale", "length_scale"} & values.keys():
        stretch = mass * values.get("inertia_scale", ones) * scale**2
        batch.expand("body_inertia")[:, own] = model.body_inertia[own] * stretch[:, None, None]
    if com.any() or set(OF_MASS) & values.keys():
        batch.expand("body_ipos")[:, own] = com
    if "gravity" in values and not scene.planar:
        fall = batch.expand("opt.gravity")[..., 2]
        fall[:] = -values["gravity"].reshape(fall.shape)
    if {"tilt_x", "tilt_y"} & values.keys():
        batch.expand("geom_quat")[:, 0] = of_tilt(values.get("tilt_x", 0 * ones), values.get("tilt_y", 0 * ones))


def write_sizes(scene: FreeScene, batch: Any, scale: Array, radius: Array) -> None:
    """Lengths, and rounded edges: a box that is smaller by the radius, kept off by a margin of as much."""
    sizes, bounds, model = batch.expand("geom_size"), batch.expand("geom_rbound"), batch.model
    rounding = np.zeros((batch.nsim, model.ngeom))
    for body in scene.bodies:
        geom = model.geom(body.name).id
        if body.solid.kind == "mesh":
            raise SceneError(f"body '{body.name}': lengths of a mesh cannot be identified; fix length_scale")
        kept = model.geom_size[geom] * scale[:, None]
        if body.solid.kind == "box":
            write_pads(batch, body.name, kept)
            rounding[:, geom] = radius
        sizes[:, geom], bounds[:, geom] = kept - rounding[:, [geom]], model.geom_rbound[geom] * scale
    write_margins(batch, rounding)


def write_pads(batch: Any, body: str, half: Array) -> None:
    """Sizes of the slabs that are a box's faces, if it has any, from half lengths [N, 3] of the box."""
    model = batch.model
    if not any(FACE in model.pair(i).name for i in range(model.npair)):
        return
    sizes, bounds = batch.expand("geom_size"), batch.expand("geom_rbound")
    boxes = None if batch.expanded("geom_aabb") is None else batch.expand("geom_aabb")
    for axis, name in enumerate("xyz"):
        pad, size = model.geom(f"{body}{FACE}{name}").id, pad_size(half, axis)
        sizes[:, pad], bounds[:, pad] = size, np.linalg.norm(size, axis=-1)
        if boxes is not None:
            boxes[:, pad, :3], boxes[:, pad, 3:] = 0.0, size


def write_margins(batch: Any, rounding: Array) -> None:
    """Keep geoms off each other by the radii of their edges [N, G] [m], by which they are smaller."""
    if rounding.any() or batch.expanded("pair_margin") is not None:
        model = batch.model
        batch.expand("pair_margin")[:] = rounding[:, model.pair_geom1] + rounding[:, model.pair_geom2]


def centres(declared: Array, values: Mapping[str, Array], count: int) -> Array:
    """Centres of mass in the bodies' frames [N, B, 3] [m], from the declared ones [B, 3].

    `com_offset` is of the first body, along x, or in a direction of its own where it is a vector [N, 3].
    """
    scale = values.get("length_scale", np.ones(count))
    com = declared * scale[:, None, None]
    for i, axis in enumerate("xyz"):
        if f"com_{axis}" in values:
            com[..., i] += values[f"com_{axis}"][:, None]
    if "com_offset" in values:
        offset = values["com_offset"]
        com[:, 0] += offset if offset.ndim == 2 else offset[:, None] * np.array([1.0, 0.0, 0.0])
    return np.asarray(com)


def pad_size(half: Array, axis: int) -> Array:
    """Half lengths [..., 3] of the slab that ends in a box's two faces across an axis, from its own half lengths."""
    size = np.asarray(half) * (1 - 2 * PAD_INSET)
    size[..., axis] = np.asarray(half)[..., axis] * (1 + 2 * PAD_HEIGHT)
    return np.asarray(size)
