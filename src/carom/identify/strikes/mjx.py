"""Identification by gradient through MJX itself, on a simplified mesh: the paper's second baseline (section IV-A).

MJX differentiates through its own contacts, but only for meshes of few corners. The target's outline is reduced to
`CORNERS` corners, its mass, centre and inertia kept; the four parameters of Table I are found by Levenberg-Marquardt
from a few starts. Forward mode, float64, one compilation: MJX's solver has no reverse mode. Friction cones are
pyramids here: with elliptic ones, which all other scenes use, every derivative comes out as NaN (mujoco-mjx 3.17).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import perf_counter

import numpy as np
import torch

from carom.core.progress import Steps
from carom.core.spread import even_spread
from carom.engines.mjx.collide import pyramidal_collider
from carom.engines.mjx.load import float64, load
from carom.engines.mujoco.collide import FAILED, MISSED
from carom.identify import trust
from carom.identify.levenberg_marquardt import Damping, descend_all
from carom.identify.problem import without_effect
from carom.identify.result import Errors, Identification
from carom.identify.strikes.mjx_problem import MjxProblem
from carom.scenes.parameters import TABLE_I
from carom.scenes.simplify import simplified
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

STARTS = 4
ITERATIONS = 8
DAMPING = Damping(down=4.0, up=5.0, farthest=0.3, along_bounds=False)
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
    with float64(jax):
        problem = MjxProblem.of(jax, mjx, simple, trust.measured(impacts), fixed)
        problem = problem.giving_up(_probe(problem))
        compiling = problem.effort.engine_seconds  # the first call compiles
        unit = (even_spread(max(starts, 1), len(TABLE_I), seed) * 0.7 + 0.15)[:, _columns(problem)]
        ends = descend_all(
            partial(_tensors, problem), torch.as_tensor(unit), DAMPING, steps=iterations, progress=progress
        )
    best = int(torch.argmin(ends.residual.pow(2).sum(dim=(1, 2))))
    point, residual, jacobian = (x[best].numpy() for x in (ends.unit, ends.residual, ends.jacobian))
    none = np.zeros((len(point),) * 2)
    found = trust.Fit(point, residual, jacobian, none, ends.tried.numpy(), ends.losses.numpy() / len(impacts))
    k = scene.gyration_radius
    before, after = len(scene.outline.vertices), len(simple.outline.vertices)
    note = f"the target's outline was reduced from {before} to {after} corners"
    return Identification(
        method="mjx",
        scene=scene.name,
        estimates=trust.estimates(problem, found),
        training=trust.errors(residual, trust.sizes(impacts.post, k)),
        held_out=_held_out(problem, found, k),
        held_out_by="leave-one-out, in MuJoCo with the same mesh",
        evaluations=problem.effort.evaluations,
        failures=0,
        seconds=perf_counter() - begun,
        seed=seed,
        notes=(note,) if after < before else (),
        extra={"corners": after, "compile_seconds": round(compiling, 2)},
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


def _tensors(problem: MjxProblem, unit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    residual, jacobian = problem.linearised(unit.numpy())
    return torch.as_tensor(residual), torch.as_tensor(jacobian)


def _columns(problem: MjxProblem) -> list[int]:
    """Columns of Table I that are looked for: each parameter has its own, so a start is the same whatever is held."""
    return [problem.table.index(i) for i in problem.active]


def _probe(problem: MjxProblem) -> dict[str, float]:
    """Relative effect of each parameter that moves no outcome over its range; raises if none does."""
    count = len(problem.active)
    middle = np.full((2 * count, count), 0.5)
    middle[np.arange(count), np.arange(count)] -= PROBE
    middle[np.arange(count) + count, np.arange(count)] += PROBE
    residual, _ = problem.linearised(middle)
    post = problem.impacts.post
    size = np.sqrt((trust.residuals(np.zeros_like(post), post, problem.scene.gyration_radius) ** 2).mean())
    effect = np.sqrt(((residual[count:] - residual[:count]) ** 2).mean(axis=(1, 2))) / max(float(size), 1e-9)
    return without_effect([p.name for p in problem.sought], effect)


def _held_out(problem: MjxProblem, found: trust.Fit, k: float) -> Errors | None:
    """Error on each strike with the parameters that the others alone would give."""
    impacts = problem.impacts
    if len(impacts) < 3:
        return None
    unit = np.array([trust.leave_out(found, [i]) for i in range(len(impacts))])
    out = pyramidal_collider(problem.scene, problem.parameters).run(impacts.strikes, problem.values(unit))
    return trust.errors(trust.residuals(out.post, impacts.post, k), trust.sizes(impacts.post, k))
