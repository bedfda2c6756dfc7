"""Identification by gradient through MJX itself, on a simplified mesh: the paper's second baseline (section IV-A).

MJX differentiates through its own contacts, but only for meshes of few corners. The target's outline is reduced to
`CORNERS` corners, its mass, centre and inertia kept; the four parameters of Table I are found by Levenberg-Marquardt
from a few starts. Forward mode, float64, one compilation: MJX's solver has no reverse mode. Friction cones are
pyramids here: with elliptic ones, which all other scenes use, every derivative comes out as NaN (mujoco-mjx 3.17).
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np
from scipy.stats import qmc

from carom.core.progress import Steps
from carom.engines.mjx.collide import pyramidal_collider
from carom.engines.mjx.load import float64, load
from carom.engines.mujoco.collide import FAILED, MISSED
from carom.identify import trust
from carom.identify.result import Errors, Identification
from carom.identify.strikes.mjx_problem import Engine, Problem, build
from carom.scenes.parameters import TABLE_I, defaults
from carom.scenes.simplify import simplified
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

STARTS = 4
ITERATIONS = 8
PROBE = 0.45  #: step in unit space from the middle that shows whether a parameter does anything


def fit(
    scene: StrikeScene,
    impacts: Impacts,
    *,
    seed: int,
    fixed: Mapping[str, float] | None = None,
    starts: int = STARTS,
    iterations: int = ITERATIONS,
    progress: Steps | None = None,
) -> Identification:
    """The parameters of Table I for which MJX explains the impacts best (Eq. 3); all others stay at their defaults."""
    begun = perf_counter()
    jax, mjx = load()
    simple = simplified(scene)
    problem = Problem(simple, trust.measured(impacts), fixed)
    with float64(jax):
        engine = build(jax, mjx, problem)
        dead = _probe(problem, engine)
        problem.give_up(dead)
        unit = _starts(starts, seed) * 0.7 + 0.15
        unit = unit[:, problem.active]
        unit, residual, jacobian, tried, losses = _levenberg(problem, engine, unit, iterations, progress)
    loss = (residual**2).sum(axis=(1, 2))
    best = int(np.argmin(loss))
    none = np.zeros((len(problem.active),) * 2)
    found = trust.Fit(unit[best], residual[best], jacobian[best], none, tried, losses)
    k = scene.gyration_radius
    relative = trust.relative_errors(residual[best], impacts.post, k)
    before, after = len(scene.outline.vertices), len(simple.outline.vertices)
    note = f"the target's outline was reduced from {before} to {after} corners"
    return Identification(
        method="mjx",
        scene=scene.name,
        estimates=trust.estimates(problem.parameters, found, problem.where, held=problem.held, dead=dead),
        training=trust.errors(residual[best], relative),
        held_out=_held_out(problem, found, k),
        held_out_by="leave-one-out, in MuJoCo with the same mesh",
        evaluations=engine.evaluations,
        failures=0,
        seconds=perf_counter() - begun,
        seed=seed,
        notes=(note,) if after < before else (),
        extra={"corners": after, "compile_seconds": round(engine.compile_seconds, 2)},
    )


def predict(scene: StrikeScene, identification: Identification, strikes: Strikes) -> Array:
    """Outcomes [N, 3] of strikes with identified parameters, on the simplified mesh.

    Through MuJoCo with the same mesh and friction cones, which needs no compilation. MJX agrees with it to the last
    digits for boxes; for meshes it chooses contact points in its own way. A strike that misses or fails leaves the
    target as it was.
    """
    simple = simplified(scene)
    parameters = scene.parameters("mujoco")
    values = np.tile(identification.values(parameters), (len(strikes), 1))
    out = pyramidal_collider(simple, parameters).run(strikes, values)
    lost = (out.status == MISSED) | (out.status == FAILED)
    return np.where(lost[:, None], strikes.target_velocity, out.post)


def _starts(count: int, seed: int) -> Array:
    power = int(np.ceil(np.log2(max(count, 2))))
    return np.asarray(qmc.Sobol(len(TABLE_I), seed=seed).random_base2(power)[: max(count, 1)])


def _probe(problem: Problem, engine: Engine) -> dict[str, float]:
    """Relative effect of each parameter that moves no outcome over its range; raises if none does."""
    count = len(problem.active)
    middle = np.full((2 * count, count), 0.5)
    middle[np.arange(count), np.arange(count)] -= PROBE
    middle[np.arange(count) + count, np.arange(count)] += PROBE
    residual, _ = engine(problem.values(middle))
    post = problem.impacts.post
    size = np.sqrt((trust.residuals(np.zeros_like(post), post, engine.scene.gyration_radius) ** 2).mean())
    effect = np.sqrt(((residual[count:] - residual[:count]) ** 2).mean(axis=(1, 2))) / max(float(size), 1e-9)
    names = [problem.table[i].name for i in problem.active]
    return trust.without_effect(names, effect)


def _levenberg(
    problem: Problem,
    engine: Engine,
    unit: Array,
    iterations: int,
    progress: Steps | None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Where starts [S, A] end, the residuals and derivatives there, and all points tried with their losses."""

    def evaluate(at: Array) -> tuple[Array, Array, Array]:
        values = problem.values(at)
        residual, slope = engine(values)
        jacobian = slope[..., problem.active] * problem.slopes(values)[:, None, None, :]
        return residual, jacobian, (residual**2).sum(axis=-1).mean(axis=-1)

    damping = np.full(len(unit), 1e-2)
    residual, jacobian, loss = evaluate(unit)
    tried, losses = [unit], [loss]
    for step in range(iterations):
        flat = jacobian.reshape(len(unit), -1, unit.shape[1])
        gram, pull = flat.transpose(0, 2, 1) @ flat, np.einsum("sra,sr->sa", flat, residual.reshape(len(unit), -1))
        size = np.maximum(np.trace(gram, axis1=1, axis2=2) / unit.shape[1], 1e-12)
        system = gram + (damping * size)[:, None, None] * np.eye(unit.shape[1])
        move = np.clip(np.linalg.solve(system, pull[..., None])[..., 0], -0.3, 0.3)
        new = np.clip(unit - move, 0.0, 1.0)
        new_residual, new_jacobian, new_loss = evaluate(new)
        tried.append(new)
        losses.append(new_loss)
        better = np.isfinite(new_loss) & (new_loss < loss)
        unit, loss = np.where(better[:, None], new, unit), np.where(better, new_loss, loss)
        residual = np.where(better[:, None, None], new_residual, residual)
        jacobian = np.where(better[:, None, None, None], new_jacobian, jacobian)
        damping = np.where(better, damping / 4, damping * 5)
        if progress:
            progress(step + 1, iterations)
    return unit, residual, jacobian, np.concatenate(tried), np.concatenate(losses)


def _held_out(problem: Problem, found: trust.Fit, k: float) -> Errors | None:
    """Error on each strike with the parameters that the others alone would give."""
    impacts = problem.impacts
    if len(impacts) < 3:
        return None
    unit = np.array([trust.leave_out(found, [i]) for i in range(len(impacts))])
    values = np.tile(defaults(problem.parameters), (len(impacts), 1))
    table = problem.values(unit)
    for i, p in enumerate(problem.parameters):
        if p.name in TABLE_I:
            values[:, i] = table[:, problem.table.index(p)]
        elif p.name in problem.held:
            values[:, i] = problem.held[p.name][0]
    out = pyramidal_collider(problem.scene, problem.parameters).run(impacts.strikes, values)
    residual = trust.residuals(out.post, impacts.post, k)
    return trust.errors(residual, trust.relative_errors(residual, impacts.post, k))
