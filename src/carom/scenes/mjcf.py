"""A strike scene as a MuJoCo model, and the bodies of a user's own MJCF as a strike scene."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.scenes.mesh_files import hull_outline
from carom.scenes.meshes import fill_triangles, refuse_hollow
from carom.scenes.mjcf_files import load_mjcf
from carom.scenes.shapes import FACE_THICKNESS, Body, Shape
from carom.scenes.strike import KINEMATIC_MASS, StrikeScene

TIMESTEP = 0.001  #: [s] resolves a contact at MuJoCo's default time constant (20 ms) with 20 steps and more
FOUND_AND_DISTANCE, NEAREST = 0b1001, 1  #: what the contact sensor tells: how many contacts, distance of the nearest
FACE_HALF_HEIGHT = 0.002  #: [m] the striker touches at the height of the centre of mass, as a tool that is aimed does


def strike_spec(scene: StrikeScene) -> mujoco.MjSpec:
    """MjSpec with a free `target` on a `ground` plane, a `striker` on two slides and a hinge, and their contact pairs.

    The striker touches at mid-height (a sphere, or a thin slab): the impact is then planar up to the ground's
    reaction, and doesn't depend on where along a vertical line the engine happens to put the contact.
    """
    spec = mujoco.MjSpec()
    spec.option.timestep = TIMESTEP
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    world = spec.worldbody
    world.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], contype=0, conaffinity=0)
    half = scene.shape.full_height / 2
    target = world.add_body(name="target", pos=[0, 0, half])
    target.add_freejoint(name="target")
    _add_target_geom(spec, target, scene, half)
    com, k = scene.target.planar_com, scene.gyration_radius
    flat_k2 = k * k / 2 + half * half / 3  # about a horizontal axis: exact for discs and squares
    inertia = scene.target.inertia or tuple(scene.mass * v for v in (flat_k2, flat_k2, k * k))
    if not np.isfinite(inertia).all():
        inertia = (scene.mass * flat_k2, scene.mass * flat_k2, scene.mass * k * k)
    target.simple = False  # its centre of mass may be moved per simulation
    target.explicitinertial = True
    target.mass, target.inertia, target.ipos = scene.mass, inertia, [com[0], com[1], 0.0]

    mass = scene.striker_mass
    striker = world.add_body(name="striker", pos=[0, 0, half], gravcomp=1)
    for name, kind, axis in (("x", "SLIDE", (1, 0, 0)), ("y", "SLIDE", (0, 1, 0)), ("yaw", "HINGE", (0, 0, 1))):
        striker.add_joint(name=f"striker_{name}", type=getattr(mujoco.mjtJoint, f"mjJNT_{kind}"), axis=axis)
    if scene.striker.flat:
        size = [FACE_THICKNESS / 2, float(scene.striker.width or 0) / 2, FACE_HALF_HEIGHT]
        geom, kind = size, mujoco.mjtGeom.mjGEOM_BOX
        offset = -FACE_THICKNESS / 2  # the body's origin is the middle of the face, which looks along +x
    else:
        geom, kind, offset = [float(scene.striker.radius or 0), 0, 0], mujoco.mjtGeom.mjGEOM_SPHERE, 0.0
    striker.add_geom(name="striker", type=kind, size=geom, pos=[offset, 0, 0], contype=0, conaffinity=0)
    striker.explicitinertial = True
    striker.mass, striker.inertia, striker.ipos = mass, [mass * 1e-2] * 3, [0, 0, 0]
    for name in ("striker", "ground"):
        # No torsional friction on the ground: the spread of the contact points resists spin already, and in a cone
        # with little sliding friction MuJoCo's default 5 mm takes more spin from the target than physics allows.
        spec.add_pair(name=name, geomname1=name, geomname2="target", condim=3)
    spec.add_sensor(
        name="touch",
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=mujoco.mjtObj.mjOBJ_GEOM,
        objname="striker",
        reftype=mujoco.mjtObj.mjOBJ_GEOM,
        refname="target",
        intprm=[FOUND_AND_DISTANCE, NEAREST, 1],
    )
    return spec


def _add_target_geom(spec: mujoco.MjSpec, target: mujoco.MjsBody, scene: StrikeScene, half: float) -> None:
    options = {"name": "target", "contype": 0, "conaffinity": 0}
    shape = scene.shape
    if shape.kind == "box":
        target.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[s / 2 for s in shape.size], **options)
    elif shape.kind in ("cylinder", "disc"):
        target.add_geom(type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[float(shape.radius or 0), half, 0], **options)
    elif shape.kind == "sphere":
        raise SceneError(f"scene '{scene.name}': a sphere rolls; strike scenes need a target that stands on a face")
    else:
        outline = scene.outline.vertices
        points = np.concatenate([np.c_[outline, np.full(len(outline), z)] for z in (-half, half)])
        spec.add_mesh(name="target", uservert=points.ravel(), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
        # a mesh's frame is moved to its centre of mass when compiled; MuJoCo puts the geom back by itself
        target.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="target", **options)


def bodies_from_mjcf(path: Path, roles: dict[str, str]) -> dict[str, Body]:
    """Target and striker of a user's own MJCF, by the role named in YAML: shape, mass, inertia and centre of mass."""
    model = load_mjcf(path, mujoco.MjModel.from_xml_path)
    names = [model.body(i).name for i in range(1, model.nbody)]
    bodies: dict[str, Body] = {}
    for role in ("target", "striker"):
        if role not in roles:
            raise SceneError(f"roles: '{role}' is missing; name one of the bodies of {path.name}: {', '.join(names)}")
        if roles[role] not in names:
            raise SceneError(f"roles: {unknown_name('body', roles[role], names)}")
        bodies[role] = body_from_model(model, roles[role], role)
    heavy = effective_mass(model, roles["striker"], towards=roles["target"])
    return bodies | {"striker": replace(bodies["striker"], mass=heavy)}


def effective_mass(model: mujoco.MjModel, body: str, *, towards: str) -> float | None:
    """What a body weighs for what it strikes, with the whole arm that carries it [kg]; None: it is held.

    It holds for the posture of the model's first key frame (its reference posture if it has none), along the horizontal
    line to the body that is struck; where the arm cannot move along that, in the direction in which it moves best.
    Armature counts. Equality constraints, limits and motors do not: they take their time.
    """
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    jacobian, response = np.zeros((3, model.nv)), np.zeros((2, model.nv))
    mujoco.mj_jacBody(model, data, jacobian, None, model.body(body).id)
    mujoco.mj_solveM(model, data, response, jacobian[:2].copy())
    inverse = jacobian[:2] @ response.T
    way = (data.body(towards).xpos - data.body(body).xpos)[:2]
    along = float(way @ inverse @ way) / max(float(way @ way), 1e-12)
    if along * KINEMATIC_MASS < 1:
        along = float(np.linalg.eigvalsh(inverse)[-1])
    return None if along * KINEMATIC_MASS < 1 else 1 / along


def body_from_model(model: mujoco.MjModel, name: str, role: str) -> Body:
    """Shape, mass, inertia and centre of mass of a body of a compiled model."""
    body = model.body(name)
    points, kinds = [], []
    first, count = int(body.geomadr[0]), int(body.geomnum[0])
    geoms = [i for i in range(first, first + count) if model.geom_contype[i] or model.geom_conaffinity[i]]
    for i in geoms or range(first, first + count):  # what is there for the eye only doesn't collide
        kinds.append(mujoco.mjtGeom(model.geom_type[i]))
        points.append(_geom_points(model, i))
    if not points:
        raise SceneError(f"body '{name}' of the MJCF has no geom: it cannot be the {role}")
    free = bool(body.dofnum[0])
    if role == "target" and not free:
        raise SceneError(f"body '{name}' of the MJCF has no joint: a target must be free to move (add <freejoint/>)")
    mass = float(body.mass[0]) if free else None
    inertia = _axis_inertia(body)
    com = (float(body.ipos[0]), float(body.ipos[1]), float(body.ipos[2]))
    if _is_round(model, geoms[0] if geoms else first, kinds, name, role):
        kind = "sphere" if kinds == [mujoco.mjtGeom.mjGEOM_SPHERE] else "cylinder"
        size = model.geom_size[geoms[0] if geoms else first]
        shape = Shape(kind, radius=float(size[0]), height=None if kind == "sphere" else 2 * float(size[1]))
        return Body(name, role, shape, mass, inertia if free else None, com)
    if role == "target":
        seen = np.concatenate([fill_triangles(p[:, :2]) for p in points])
        refuse_hollow(f"body '{name}'", seen, "keep the one convex geom that is struck")
    cloud = np.concatenate(points)
    shape = Shape("extruded", outline=hull_outline(cloud[:, :2]), height=float(np.ptp(cloud[:, 2])))
    return Body(name, role, shape, mass, inertia if free else None, com)


def _is_round(model: mujoco.MjModel, geom: int, kinds: list[mujoco.mjtGeom], name: str, role: str) -> bool:
    """Whether a body is one sphere or one upright cylinder, around its own origin."""
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    upright = kinds == [mujoco.mjtGeom.mjGEOM_CYLINDER] and abs(rotation[8]) > 1 - 1e-6
    if not (kinds == [mujoco.mjtGeom.mjGEOM_SPHERE] or upright):
        return False
    offset = float(np.linalg.norm(model.geom_pos[geom][:2]))
    if role == "striker" and offset > 1e-9:
        raise SceneError(
            f"body '{name}': its round geom stands {offset:g} m off the body's origin; move the body there"
        )
    return offset <= 1e-9


def _axis_inertia(body: Any) -> tuple[float, float, float]:
    """Moments of inertia about the body's own axes [kg m^2]: MuJoCo's principal ones come in an order of its own."""
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, body.iquat)
    axes = rotation.reshape(3, 3)
    x, y, z = np.diag(axes @ np.diag(body.inertia) @ axes.T)
    return float(x), float(y), float(z)


def _geom_points(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Points that span a geom's convex hull, in its body's frame [n, 3]."""
    kind, size = mujoco.mjtGeom(model.geom_type[geom]), model.geom_size[geom]
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        local = model.mesh_vert[start : start + count].astype(float)
    elif kind == mujoco.mjtGeom.mjGEOM_BOX:
        local = np.array(np.meshgrid(*[(-s, s) for s in size])).reshape(3, -1).T
    elif kind in (mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_SPHERE):
        angle = np.linspace(0, 2 * np.pi, 96, endpoint=False)
        half = size[0] if kind == mujoco.mjtGeom.mjGEOM_SPHERE else size[1]
        ring = size[0] * np.stack([np.cos(angle), np.sin(angle)], -1)
        local = np.concatenate([np.c_[ring, np.full(96, z)] for z in (-half, half)])
    else:
        raise SceneError(f"geom type {kind.name} of the MJCF is not supported for a target or striker; use box or mesh")
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    return np.asarray(local @ rotation.reshape(3, 3).T + model.geom_pos[geom])
