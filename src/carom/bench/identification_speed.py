"""How long an identification takes, against plain CMA-ES over one-thread `mujoco.rollout`, to the same error."""

from __future__ import annotations

import copy
from time import perf_counter

import mujoco
import numpy as np

from carom.bench.simulated_tosses import toss
from carom.core.cma import Cma
from carom.core.rotations import to_body
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.recorded import Motions, equation_1
from carom.identify.tosses.search import search
from carom.scenes.free import timestep
from carom.scenes.parameters import Parameter, free_parameters, resolved
from carom.state import Array, Motion

TRUTH = {"friction": 0.18, "stiffness": 40_000.0, "damping": 250.0, "inertia_scale": 1.3}
TOSSES = 8
NEARLY = 1.02  #: times the error that Carom ended with: plain CMA-ES need not be better
PATIENCE = 12.0  #: times Carom's own time after which plain CMA-ES is stopped


def identification_speed(seed: int, threads: int) -> dict[str, float]:
    """Seconds of both to the same Eq. 1 on simulated tosses, their ratio, and the engine's share of Carom's."""
    motions = toss(TOSSES, TRUTH, seed=seed).motions
    parameters = resolved(free_parameters(tuple(TRUTH)), timestep(motions.period))
    start = perf_counter()
    found = search(MotionProblem.of(motions, parameters, {}, threads=threads), seed=seed)
    ours = perf_counter() - start
    target = NEARLY * float(equation_1(motions, found.problem.simulate(found.unit[None])).mean())
    plain, reached = _plain(motions, parameters, target, seed, PATIENCE * ours)
    return {
        "carom-s": ours,
        "plain-cma-s": plain,
        "ratio": plain / ours,
        "plain-reached": float(reached),
        "engine-share": found.problem.effort.engine_seconds / ours,
        "equation-1": target / NEARLY,
    }


def _plain(
    motions: Motions, parameters: tuple[Parameter, ...], target: float, seed: int, patience: float
) -> tuple[float, bool]:
    """Seconds until plain CMA-ES has an Eq. 1 of `target`, or until it is stopped; and whether it got there."""
    from mujoco import rollout

    problem = MotionProblem.of(motions, parameters, {}, threads=1)
    model, count = motions.scene.spec(step=timestep(motions.period)).compile(), len(motions)
    step = round(motions.period / model.opt.timestep)
    data = mujoco.MjData(model)
    starts = motions.starts
    spin = to_body(starts.quaternion[:, 0], starts.spin[:, 0])
    first = np.zeros((count, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    first[:, 1:] = np.concatenate([starts.position[:, 0], starts.quaternion[:, 0], starts.velocity[:, 0], spin], axis=1)
    middle, restarts = np.full(len(parameters), 0.5), 0
    cma = Cma(middle, sigma=0.25, seed=seed)  # as the library comes
    population = cma.population
    models = [copy.copy(model) for _ in range(population)]
    start, best = perf_counter(), np.inf
    while perf_counter() - start < patience:
        for one, value in zip(models, problem.values(cma.ask()), strict=True):
            _write(one, model, dict(zip(TRUTH, value, strict=True)))
        each = [one for one in models for _ in range(count)]
        nsteps = (motions.samples - 1) * step
        state, _ = rollout.rollout(each, data, np.tile(first, (population, 1)), nstep=nsteps)
        poses = np.concatenate([np.tile(first, (population, 1))[:, None], state[:, step - 1 :: step]], axis=1)[..., 1:8]
        motion = Motion.of(("cube",), motions.period, poses[:, :, None, :3], poses[:, :, None, 3:])
        losses = np.nan_to_num(equation_1(motions, motion).mean(axis=-1), nan=50.0, posinf=50.0)
        cma.tell(losses)
        best = min(best, float(losses.min()))
        if best <= target:
            return perf_counter() - start, True
        if cma.converged:
            restarts += 1
            cma = Cma(middle, sigma=0.25, seed=seed + restarts)
    return perf_counter() - start, False


def _write(model: mujoco.MjModel, bare: mujoco.MjModel, values: dict[str, Array]) -> None:
    model.pair_friction[:, :2] = values["friction"]
    model.pair_solref[:] = [[-float(values["stiffness"]), -float(values["damping"])]]
    model.body_inertia[1] = bare.body_inertia[1] * values["inertia_scale"]
    mujoco.mj_setConst(model, mujoco.MjData(model))
