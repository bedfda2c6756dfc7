"""Tuned values written into the MJCF of a scene of pushing, by way of what is written into a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from carom.engines.mujoco.batch import ModelBatch
from carom.engines.pushing import DELAY
from carom.scenes.pushing import GuidedScene, PushScene
from carom.state import Array

if TYPE_CHECKING:
    import mujoco


def spec_with(scene: PushScene | GuidedScene, values: Mapping[str, float]) -> mujoco.MjSpec:
    """The spec that compiles to the model with these values. An actuator's delay has no place in MJCF."""
    own = {name: np.array([value]) for name, value in values.items() if name != DELAY}
    spec = scene.spec(parameters=tuple(own))
    batch = ModelBatch(spec.compile(), threads=1).prepare(1, own)
    scene.write(batch, own)
    model = batch.get_model(0)
    for pair in spec.pairs:
        i = model.pair(pair.name).id
        pair.friction, pair.solref = model.pair_friction[i].copy(), model.pair_solref[i].copy()
    before = spec.compile().geom_pos
    for geom in spec.geoms:
        _move(geom, model.geom_pos[model.geom(geom.name).id] - before[model.geom(geom.name).id])
    block = spec.body(scene.block_body)
    i = model.body(scene.block_body).id
    block.mass, block.ipos, block.iquat = float(model.body_mass[i]), model.body_ipos[i].copy(), model.body_iquat[i]
    block.inertia, block.explicitinertial = model.body_inertia[i].copy(), True
    for j, joint in enumerate(spec.joints):
        dofs = model.jnt_dofadr[j]
        if int(model.jnt_type[j]) != 0:
            joint.frictionloss = float(model.dof_frictionloss[dofs])
            joint.damping[0] = float(np.ravel(model.dof_damping[dofs])[0])
    for k, actuator in enumerate(spec.actuators):
        actuator.gainprm[0] = model.actuator_gainprm[k, 0]
        actuator.biasprm[1] = model.actuator_biasprm[k, 1]
    spec.compile()
    return spec


def _move(geom: Any, by: Array) -> None:
    """Move a geom within its body [3] [m]; one that is given by its two ends moves them."""
    if np.isfinite(geom.fromto).all():
        geom.fromto = np.asarray(geom.fromto) + np.tile(by, 2)
    else:
        geom.pos = np.asarray(geom.pos) + by
