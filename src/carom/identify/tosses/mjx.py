"""Sensitivities of short motions through MJX: derivatives of the engine itself, for `--method mjx`.

MJX (extra `mjx`) differentiates forwards through its own contacts, here with pyramidal friction cones: with elliptic
ones, which everything else uses, its derivatives are not numbers. Residuals and losses are those of MuJoCo itself: a
step that MJX's derivatives suggest is taken only where it helps there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from carom.core.errors import CaromError
from carom.core.rotations import to_body
from carom.engines.mjx.load import differentiable, float64, load
from carom.engines.mujoco.bodies import FreeMotion
from carom.identify import trust
from carom.identify.tosses.problem import MotionProblem
from carom.scenes.parameters import SOLIMP
from carom.state import Array

CONTACT = ("friction", "stiffness", "damping", "time_constant", "damping_ratio", *SOLIMP)
WRITTEN = (*CONTACT, "inertia_scale", "com_offset")  #: parameters by which MJX is differentiated here
ALONG = 1e-6  #: share of a derivative by which poses are moved to see how residuals change


def mjx_fit(problem: MotionProblem) -> Callable[[MotionProblem, Array, float, int], trust.Fit]:
    """What `gauss_newton.fit_around` does, through MJX; compiled once for all points and sides."""
    odd = [p.name for p in problem.parameters if p.name not in WRITTEN]
    if problem.scene.planar or odd:
        what = "bodies on an air table" if problem.scene.planar else ", ".join(odd)
        raise CaromError(f"--method mjx: no derivatives for {what}; it takes {', '.join(WRITTEN)}. Use --method cma")
    jax, mjx = load()
    poses = _compiled(jax, mjx, problem)

    def fit(here: MotionProblem, unit: Array, reach: float, seed: int) -> trust.Fit:
        with float64(jax):
            slope, seen = (np.asarray(x) for x in poses(unit, *_starts(here)))
        if not np.isfinite(slope).all():
            share = float((~np.isfinite(slope)).mean())
            raise CaromError(f"MJX gives no derivatives here: {share:.0%} are not finite; use --method cma")
        tried = np.concatenate([seen[None], seen + ALONG * np.moveaxis(slope, -1, 0)])
        flat = tried.reshape(-1, *tried.shape[2:])  # [(1 + A) N, T, 7 B]
        bodies = flat.reshape(*flat.shape[:2], -1, 7)
        none = np.zeros(len(flat), dtype=bool)
        residual = here.residuals_of(FreeMotion(bodies[..., :3], bodies[..., 3:], none, 0.0))
        jacobian = np.moveaxis((residual[1:] - residual[0]) / ALONG, 0, -1)
        count = len(unit)
        measured = here.residuals(unit, short=True)[0]
        return trust.Fit(unit, measured, jacobian, np.zeros((count, count)), np.zeros((0, count)), np.zeros(0))

    return fit


def _starts(problem: MotionProblem) -> tuple[Array, ...]:
    """Sides [N, 3], and positions, quaternions, velocities and spins in the bodies' frames [N, B, .], for a mass centre
    as declared; then the change of position and velocity per metre that it is off [N, B, 3, 3]."""
    starts, engine = problem.motions.starts, problem.engine
    count = len(starts)
    side = np.tile([1.0, 0.0, 0.0], (count, 1)) if starts.side is None else starts.side
    held = {k: np.full(count, v) for k, v in problem.held.items()}
    position, velocity = engine.estimated(starts, held, engine.centres(starts, held))
    spin = to_body(starts.quaternion.reshape(-1, 4), starts.spin.reshape(-1, 3)).reshape(starts.spin.shape)
    return side, position, starts.quaternion, velocity, spin, starts.position_by_com, starts.velocity_by_com


def _compiled(jax: Any, mjx: Any, problem: MotionProblem) -> Callable[..., tuple[Any, Any]]:
    """A function of a unit point [A] and `_starts`: derivatives [N, T, 7 B, A] of poses, and these [N, T, 7 B]."""
    jnp = jax.numpy
    engine = problem.engine
    contact = {p.name: p.default for p in problem.parameters if p.name in CONTACT}
    host = engine.spec_with({**problem.held, **contact}).compile()  # with the other half of a form, where one is sought
    with float64(jax):
        model, data = differentiable(mjx, host, f"scene '{problem.scene.name}'")
    names = [p.name for p in problem.parameters]
    edges = np.flatnonzero(["_face_" not in host.pair(i).name for i in range(host.npair)])
    bodies = len(problem.scene.bodies)

    def value(unit: Any) -> dict[str, Any]:
        found = {}
        for i, p in enumerate(problem.parameters):
            low, high = (jnp.log(p.low), jnp.log(p.high)) if p.log else (p.low, p.high)
            at = low + (high - low) * unit[i]
            found[p.name] = jnp.exp(at) if p.log else at
        return found

    def written(unit: Any) -> Any:
        v = value(unit)
        friction, solref, solimp = model.pair_friction, model.pair_solref, model.pair_solimp
        if "friction" in v:
            rows = edges if "face_friction" in problem.held else np.arange(host.npair)
            friction = friction.at[rows, :2].set(v["friction"])
        for i, pair in enumerate((("stiffness", "time_constant"), ("damping", "damping_ratio"))):
            for name, sign in zip(pair, (-1.0, 1.0), strict=True):
                solref = solref.at[:, i].set(sign * v[name]) if name in v else solref
        for i, name in enumerate(SOLIMP):
            solimp = solimp.at[:, i].set(v[name]) if name in v else solimp
        inertia = model.body_inertia * v.get("inertia_scale", 1.0)
        return model.replace(pair_friction=friction, pair_solref=solref, pair_solimp=solimp, body_inertia=inertia)

    def one(unit: Any, side: Any, at: Any, turn: Any, speed: Any, spun: Any, by: Any, speed_by: Any) -> Any:
        m = written(unit)
        if "com_offset" in names:
            shift = jnp.zeros((bodies, 3)).at[0].set(value(unit)["com_offset"] * side)
            m = m.replace(body_ipos=m.body_ipos.at[1:].add(shift))
            at, speed = at + jnp.einsum("bij,bj->bi", by, shift), speed + jnp.einsum("bij,bj->bi", speed_by, shift)
        first = jnp.concatenate([at, turn], axis=-1).reshape(-1)
        start = data.replace(qpos=first, qvel=jnp.concatenate([speed, spun], axis=-1).reshape(-1))

        def sample(d: Any, _: Any) -> Any:
            d = jax.lax.fori_loop(0, engine.substeps, lambda _, x: mjx.step(m, x), d)
            return d, d.qpos

        _, path = jax.lax.scan(sample, start, None, length=problem.short - 1)
        return jnp.concatenate([first[None], path])

    def every(unit: Any, *starts: Any) -> Any:
        path = jax.vmap(one, in_axes=(None, *[0] * len(starts)))(unit, *starts)
        return path, path

    return jax.jit(jax.jacfwd(every, has_aux=True))  # type: ignore[no-any-return]
