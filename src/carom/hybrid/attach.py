"""A user's own MuJoCo model made ready for a learned impact: pairs declared, bodies compared with the scene's."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import mujoco
import numpy as np
from numpy.typing import NDArray

from carom.core.errors import SceneError, unknown_name
from carom.scenes.mjcf import body_from_model
from carom.scenes.shapes import Body
from carom.scenes.strike import StrikeScene
from carom.state import Array

AGREE = 0.02  #: share by which a user's bodies may differ from the scene's: a measured size, not another body


MANY = 16  #: pairs of geoms, from which on looking how far each is apart takes longer than it saves


@dataclass(frozen=True)
class Pair:
    """Where target and striker are in a compiled model."""

    target: int
    striker: int
    dof: int  #: first of the target's six
    pairs: NDArray[np.int64]  #: contact pairs between the two
    side: NDArray[np.int64]  #: [ngeom + 1] 1 for the target's geoms, 2 for the striker's; last: "no geom", which is -1
    margin: Array  #: of each pair when it pushes [m]
    gap: Array  #: [m]
    reach: float  #: [m] distance from which on contacts are seen
    com: Array  #: [3] the target's declared centre of mass in its frame, at the height that the model gives it [m]
    #: two geoms of each pair, and their spheres' radii together [m]; empty if there are many, or one has no end
    round: tuple[tuple[int, int, float], ...]
    shape: tuple[int, int]  #: npair and ngeom, to refuse other models


def attached(spec: mujoco.MjSpec, scene: StrikeScene, target: str, striker: str) -> tuple[mujoco.MjModel, Pair]:
    """A copy of the spec with all contacts between the two bodies declared, compiled; and where they are in it."""
    spec = spec.copy()
    check_bodies(compiled(spec), scene, target, striker)
    declare_pairs(spec, target, striker)
    model = compiled(spec)
    ids = (int(model.body(target).id), int(model.body(striker).id))
    geoms = np.column_stack([model.pair_geom1, model.pair_geom2])
    pairs = np.flatnonzero((np.sort(model.geom_bodyid[geoms]) == sorted(ids)).all(axis=-1))
    if not len(pairs):
        raise SceneError(
            f"nothing of body '{striker}' collides with body '{target}': give their geoms matching "
            "contype and conaffinity, or add a <pair>"
        )
    side = np.zeros(model.ngeom + 1, dtype=np.int64)
    for role, body in enumerate(ids, start=1):
        side[:-1][model.geom_bodyid == body] = role
    # two steps ahead at the fastest strike that the scene knows: one to see it, one to spare
    reach = 2 * 1.1 * scene.speed[1] * model.opt.timestep + 1e-3
    margin, gap = model.pair_margin[pairs].copy(), model.pair_gap[pairs].copy()
    dof, shape = int(model.body_dofadr[ids[0]]), (model.npair, model.ngeom)
    com = np.array([*scene.target.planar_com, model.body_ipos[ids[0], 2]])
    size = model.geom_rbound[geoms[pairs]]
    spheres = tuple((int(a), int(b), float(r)) for (a, b), r in zip(geoms[pairs], size.sum(axis=1), strict=True))
    if len(spheres) > MANY or not size.all():
        spheres = ()
    return model, Pair(*ids, dof, pairs, side, margin, np.maximum(gap, reach), reach, com, spheres, shape)


def compiled(spec: mujoco.MjSpec) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise SceneError(f"the model does not compile: {' '.join(str(error).split())}") from error


def declare_pairs(spec: mujoco.MjSpec, target: str, striker: str) -> None:
    """Make every contact that the two bodies can have an explicit pair, which pushes as it did without."""
    geoms = [spec.body(name).geoms for name in (target, striker)]
    for name, own in zip((target, striker), geoms, strict=True):
        for i, geom in enumerate(own):
            geom.name = geom.name or f"carom/{name}/{i}"  # pairs go by name
    declared = [{pair.geomname1, pair.geomname2} for pair in spec.pairs]
    if any({e.bodyname1, e.bodyname2} == {target, striker} for e in spec.excludes):
        return  # the pairs that the user declared are all there are
    for a, b in product(*geoms):
        collide = (a.contype & b.conaffinity) | (b.contype & a.conaffinity)
        if not collide or {a.name, b.name} in declared:
            continue
        pair = spec.add_pair(geomname1=a.name, geomname2=b.name)
        winner = a if a.priority > b.priority else b
        pair.condim = max(a.condim, b.condim) if a.priority == b.priority else winner.condim
        # what is not a number is mixed from the geoms by the compiler, as for any contact
        pair.friction, pair.solref, pair.solimp = np.full(5, np.nan), np.full(2, np.nan), np.full(5, np.nan)
        pair.margin, pair.gap, pair.adhesion = a.margin + b.margin, a.gap + b.gap, a.adhesion + b.adhesion
    # pairs outlive it; nothing else of the two may ever push
    spec.add_exclude(bodyname1=target, bodyname2=striker)


def check_bodies(model: mujoco.MjModel, scene: StrikeScene, target: str, striker: str) -> None:
    """Raise unless these are bodies of the model, and those that the scene describes."""
    names = [model.body(i).name for i in range(1, model.nbody)]
    for role, name in (("target", target), ("striker", striker)):
        if name not in names:
            raise SceneError(f"{role}: {unknown_name('body', name, [n for n in names if n])}")
    if target == striker:
        raise SceneError(f"target and striker are both '{target}'; name two bodies")
    body = model.body(target)
    if body.jntnum[0] != 1 or model.jnt_type[body.jntadr[0]] != mujoco.mjtJoint.mjJNT_FREE:
        raise SceneError(f"target '{target}' has no free joint: it must be free to move (add <freejoint/>)")
    if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE:
        raise SceneError("the model overrides all contact margins (<flag override>): contacts cannot be handed over")
    differs = _differences(scene, body_from_model(model, target, "target"), body_from_model(model, striker, "striker"))
    if differs:
        raise SceneError(f"'{target}' and '{striker}' are not those of scene '{scene.name}': {'; '.join(differs)}")


def _differences(scene: StrikeScene, target: Body, striker: Body) -> list[str]:
    """What differs between a model's bodies and the scene's, in words."""
    if target.shape is None or striker.shape is None:  # never: they come from geoms
        return []
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    axes = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    size = float(np.ptp(scene.outline.vertices, axis=0).min())
    reach = [(axes @ outline.T).max(axis=1) for outline in (target.shape.planar_outline, scene.outline.vertices)]
    apart = float(np.abs(reach[0] - reach[1]).max())
    found = [f"the outline by {1e3 * apart:.2g} mm"] if apart > AGREE * size else []
    shift = float(np.linalg.norm(target.planar_com - scene.target.planar_com))
    found += [f"the centre of mass by {1e3 * shift:.2g} mm"] if shift > 0.05 * size else []
    numbers = [("the target's mass", float(target.mass or 0), scene.mass, "kg")]
    if not scene.striker.flat:
        across = float(np.ptp(striker.shape.planar_outline, axis=0).max()) / 2
        numbers.append(("the striker's radius", across, float(scene.striker.radius or 0), "m"))
    for what, mine, expected, unit in numbers:
        if abs(mine - expected) > AGREE * expected:
            found.append(f"{what} is {mine:.4g} {unit}, not {expected:.4g} {unit}")
    return found
