"""Parameters of a pushing scene written into a batch, row by row: the block's mass, the robot's joints, the tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from carom.core.errors import SceneError
from carom.core.rotations import axes
from carom.scenes.parameters import Write, write_contacts
from carom.state import Array

if TYPE_CHECKING:
    from carom.scenes.pushing.guided import GuidedScene
    from carom.scenes.pushing.scene import PushScene

CONTACTS = ("ground_friction", "striker_friction", "torsional_friction", "ground_damping", "striker_damping")
OF_BLOCK = ("mass_scale", "inertia_scale", "com_x", "com_y")
OF_ROBOT = ("joint_friction", "joint_damping", "servo_stiffness", "tool_offset_x", "tool_offset_y")
TIME_CONSTANT = 0.02  #: [s] of a contact with a damping ratio of 1: MuJoCo's own
SPREAD = "pressure_spread"
TAKES = (*CONTACTS, "restitution", SPREAD, *OF_BLOCK, *OF_ROBOT)  #: by a scene of pushing
FEET = "foot_"  #: names of the feet on which a block stands where its pressure may spread less than to its corners
FOOT = 0.004  #: [m] radius of each


def damping_of(restitution: Array) -> Array:
    """Damping ratio with which a mass on a spring and a damper keeps this share of its speed.

    >>> damping_of(np.array([0.5])).round(3).tolist()
    [0.215]
    """
    lost = -np.log(np.clip(restitution, 1e-6, 0.99))
    return np.asarray(lost / np.hypot(np.pi, lost))


def write_contact_parameters(name: str, batch: Any, values: Mapping[str, Array]) -> None:
    """Those of contacts, each [N]. A damping ratio leaves the stiffness as it is, which the engine's step resolves."""
    found = dict(values)
    if "restitution" in found:
        if "striker_damping" in found:
            raise SceneError(f"scene '{name}': restitution and striker_damping are the same here: give one of them")
        found["striker_damping"] = damping_of(found.pop("restitution"))
    write_contacts(batch, {key: value for key, value in found.items() if key in CONTACTS})
    for pair in ("ground", "striker"):
        if f"{pair}_damping" in found:
            Write("solref", (0,), pair).into_batch(batch, TIME_CONSTANT / found[f"{pair}_damping"])


def write_spread(scene: PushScene | GuidedScene, batch: Any, spread: Array) -> None:
    """Where the feet are that carry the block: on the way from its middle to its corners."""
    model = batch.model
    feet = [i for i in range(model.ngeom) if model.geom(i).name.startswith(FEET)]
    corners = scene.corners.reshape(-1, 2)
    batch.expand("geom_pos")[:, feet, :2] = spread[:, None, None] * corners


def write_robot(scene: PushScene, batch: Any, values: Mapping[str, Array]) -> None:
    """All but the contacts, each value [N], into a `mujoco.batch.Batch`."""
    write_block(scene, batch, values)
    _write_joints(scene, batch, values)
    if SPREAD in values:
        write_spread(scene, batch, values[SPREAD])
    if {"tool_offset_x", "tool_offset_y"} & values.keys():
        write_tool(scene, batch, values)


def write_block(scene: PushScene | GuidedScene, batch: Any, values: Mapping[str, Array]) -> None:
    """The block's mass, inertia and centre of mass."""
    model, ones = batch.model, np.ones(batch.nsim)
    own = model.body(scene.block_body).id
    mass = values.get("mass_scale", ones)
    if "mass_scale" in values:
        batch.expand("body_mass")[:, own] = model.body_mass[own] * mass
    if {"mass_scale", "inertia_scale"} & values.keys():
        stretch = mass * values.get("inertia_scale", ones)
        batch.expand("body_inertia")[:, own] = model.body_inertia[own] * stretch[:, None]
    for i, name in enumerate(("com_x", "com_y")):
        if name in values:
            batch.expand("body_ipos")[:, own, i] = model.body_ipos[own, i] + values[name]


def _write_joints(scene: PushScene, batch: Any, values: Mapping[str, Array]) -> None:
    """Friction and damping of the joints that servos move, and the servos' stiffness."""
    model, servos = batch.model, np.arange(batch.model.nu)
    dofs = model.jnt_dofadr[model.actuator_trnid[:, 0]]
    if "joint_friction" in values:
        most = np.abs(model.actuator_forcerange).max(axis=1)
        batch.expand("dof_frictionloss")[:, dofs] = values["joint_friction"][:, None] * most
    if "joint_damping" in values:
        own = -model.actuator_biasprm[:, 2]
        batch.expand("dof_damping")[:, dofs] = _column(
            model.dof_damping[dofs] + values["joint_damping"][:, None] * own, batch
        )
    if "servo_stiffness" in values:
        factor = values["servo_stiffness"][:, None]
        batch.expand("actuator_gainprm")[:, servos, 0] = model.actuator_gainprm[servos, 0] * factor
        batch.expand("actuator_biasprm")[:, servos, 1] = model.actuator_biasprm[servos, 1] * factor


def _column(values: Array, batch: Any) -> Array:
    """Damping has further columns (of its polynomial) in some versions of MuJoCo; the first one is the linear one."""
    return values if batch.model.dof_damping.ndim == 1 else values[..., None]


def write_tool(scene: PushScene | GuidedScene, batch: Any, values: Mapping[str, Array]) -> None:
    """Geoms of the tool moved across it: along x and y of its site, or of its body where it has none."""
    model, none = batch.model, np.zeros(batch.nsim)
    body = model.body(scene.tool_body).id
    sites = np.flatnonzero(model.site_bodyid == body)
    across = axes(model.site_quat[sites[0]] if len(sites) else np.array([1.0, 0.0, 0.0, 0.0]))
    moved = (
        values.get("tool_offset_x", none)[:, None] * across[0] + values.get("tool_offset_y", none)[:, None] * across[1]
    )
    own = np.flatnonzero(model.geom_bodyid == body)
    batch.expand("geom_pos")[:, own] = model.geom_pos[own] + moved[:, None]
