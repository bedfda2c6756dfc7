"""How long an identification takes, against plain CMA-ES over one-thread `mujoco.rollout`, to the same error."""

from __future__ import annotations

import copy
from time import perf_counter

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from carom.identify.motion_problem import MotionProblem
from carom.identify.motion_search import search
from carom.identify.motions import Motions, equation_1
from carom.scenes.free import free_parameters, resolved, timestep, toss_scene
from carom.scenes.free_batch import FreeBatch, FreeMotion, FreeStarts, turned_back
from carom.scenes.parameters import Parameter
from carom.state import Array

NAMES = ("friction", "stiffness", "damping", "inertia_scale")
TRUTH = (0.18, 40_000.0, 250.0, 1.3)
TOSSES, SAMPLES, PERIOD = 8, 90, 1 / 150.0
MOCAP = (0.0001, 0.001)  #: [m], [rad] noise of a sample
NEARLY = 1.02  #: times the error that Carom ended with: plain CMA-ES need not be better
PATIENCE = 12.0  #: times Carom's own time after which plain CMA-ES is stopped
POPULATION = 14


def identification_speed(seed: int, threads: int) -> dict[str, float]:
    """Seconds of both to the same Eq. 1 on simulated tosses, their ratio, and the engine's share of Carom's."""
    motions = _tosses(seed, threads)
    parameters = resolved(free_parameters(NAMES), timestep(PERIOD))
    start = perf_counter()
    found = search(motions, parameters, {}, seed=seed, threads=threads)
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


def _tosses(seed: int, threads: int) -> Motions:
    """Recordings of tosses with known parameters, as a motion capture system would see them."""
    rng = np.random.default_rng([seed, 23])
    scene = toss_scene()
    turn = Rotation.random(TOSSES, rng=rng).as_quat()[:, None, [3, 0, 1, 2]]
    position = np.column_stack([rng.uniform(-0.1, 0.1, (TOSSES, 2)), rng.uniform(0.11, 0.14, TOSSES)])[:, None]
    velocity = np.column_stack([rng.uniform(-1, 1, (TOSSES, 2)), rng.uniform(-1.2, -0.6, TOSSES)])[:, None]
    starts = FreeStarts.known(position, turn, velocity, rng.normal(0, 3, (TOSSES, 1, 3)))
    engine = FreeBatch(scene, free_parameters(NAMES), period=PERIOD, threads=threads)
    motion = engine.run(starts, np.array([TRUTH]), SAMPLES)
    place, lean = MOCAP
    seen = motion.position + rng.normal(0, place, motion.position.shape)
    shape = motion.quaternion.shape
    turned = Rotation.from_rotvec(rng.normal(0, lean, (np.prod(shape[:-1]), 3)))
    turned = turned * Rotation.from_quat(motion.quaternion.reshape(-1, 4)[:, [1, 2, 3, 0]])
    names = tuple(f"toss_{i}" for i in range(TOSSES))
    none = np.zeros((TOSSES, 3))
    return Motions(
        scene, names, PERIOD, starts, seen, turned.as_quat()[:, [3, 0, 1, 2]].reshape(shape), none,
        np.zeros((TOSSES, 3, 3)), np.full(TOSSES, np.inf),
    )  # fmt: skip


def _plain(
    motions: Motions, parameters: tuple[Parameter, ...], target: float, seed: int, patience: float
) -> tuple[float, bool]:
    """Seconds until plain CMA-ES has an Eq. 1 of `target`, or until it is stopped; and whether it got there."""
    from cmaes import CMA
    from mujoco import rollout

    problem = MotionProblem.of(motions, parameters, {}, threads=1)
    model, step, count = problem.engine.model, problem.engine.substeps, len(motions)
    data = mujoco.MjData(model)
    starts = motions.starts
    spin = turned_back(starts.quaternion[:, 0], starts.spin[:, 0])
    first = np.zeros((count, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    first[:, 1:] = np.concatenate([starts.position[:, 0], starts.quaternion[:, 0], starts.velocity[:, 0], spin], axis=1)
    models = [copy.copy(model) for _ in range(POPULATION)]
    width = len(parameters)
    cma = CMA(mean=np.full(width, 0.5), sigma=0.25, bounds=np.array([[0.0, 1.0]] * width), seed=seed,
              population_size=POPULATION)  # fmt: skip
    start, best = perf_counter(), np.inf
    while perf_counter() - start < patience:
        asked = np.array([cma.ask() for _ in range(POPULATION)])
        for one, value in zip(models, problem.values(asked), strict=True):
            _write(one, model, dict(zip(NAMES, value, strict=True)))
        each = [one for one in models for _ in range(count)]
        nsteps = (motions.samples - 1) * step
        state, _ = rollout.rollout(each, data, np.tile(first, (POPULATION, 1)), nstep=nsteps)
        poses = np.concatenate([np.tile(first, (POPULATION, 1))[:, None], state[:, step - 1 :: step]], axis=1)[..., 1:8]
        motion = FreeMotion(poses[:, :, None, :3], poses[:, :, None, 3:], np.zeros(len(each), dtype=bool), 0.0)
        losses = np.nan_to_num(equation_1(motions, motion).mean(axis=-1), nan=50.0, posinf=50.0)
        cma.tell([(z, float(v)) for z, v in zip(asked, losses, strict=True)])
        best = min(best, float(losses.min()))
        if best <= target:
            return perf_counter() - start, True
        if cma.should_stop():
            cma = CMA(mean=np.full(width, 0.5), sigma=0.25, bounds=np.array([[0.0, 1.0]] * width), seed=seed + 1,
                      population_size=POPULATION)  # fmt: skip
    return perf_counter() - start, False


def _write(model: mujoco.MjModel, bare: mujoco.MjModel, values: dict[str, Array]) -> None:
    model.pair_friction[:, :2] = values["friction"]
    model.pair_solref[:] = [[-float(values["stiffness"]), -float(values["damping"])]]
    model.body_inertia[1] = bare.body_inertia[1] * values["inertia_scale"]
    mujoco.mj_setConst(model, mujoco.MjData(model))
