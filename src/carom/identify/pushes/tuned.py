"""What tuning with pushes found: estimates, errors, plausible draws, and what cannot show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from carom.identify import trust
from carom.identify.pushes.problem import PushProblem
from carom.identify.result import CONFIDENCE, Errors, Estimate, Identification, Verdict
from carom.scenes.parameters import PARAMETERS
from carom.scenes.pushing import GuidedScene
from carom.state import Array

NORM = "distance of the block plus its turn times a lever [m], mean over windows"
GOOD = 0.1  #: error over the block's path of a recording that counts as reproduced
DRAWS = 64  #: plausible simulators


@dataclass(frozen=True)
class Tuned:
    """What tuning found."""

    identification: Identification
    draws: Mapping[str, Array]  #: values [D] of every parameter that was looked for: simulators as plausible as that

    @property
    def values(self) -> dict[str, float]:
        """The value of every parameter."""
        return {e.name: e.value for e in self.identification.estimates}


def tuned(problem: PushProblem, fit: trust.Fit, method: str, seed: int, seconds: float) -> Tuned:
    """The result of a fit."""
    windows, ends = problem.windows, trust.intervals(fit)
    estimates = (*trust.estimates(problem, fit, ends), *_unfelt(problem))
    training = _errors(problem, np.repeat(fit.unit[None], len(windows.names), axis=0))
    notes = [f"{name} was left out: {why}" for name, why in windows.left_out]
    if training.median_relative_error > GOOD:
        notes.append(
            f"played again, the block is off by {100 * training.median_relative_error:.0f} % of its way (median): "
            "these parameters do not explain the pushes, and make up for what none of them expresses"
        )
    found = Identification(
        method=method,
        scene=problem.simulator.scene.name,
        estimates=estimates,
        training=training,
        held_out=_held_out(problem, fit),
        held_out_by="leave-one-out, one Gauss-Newton step",
        evaluations=problem.effort.evaluations,
        failures=problem.effort.failures,
        seconds=seconds,
        seed=seed,
        norm=NORM,
        notes=tuple(notes),
        extra=_extra(problem, fit, seconds),
        derived=tuple(_mass(problem, e) for e in estimates if e.name == "mass_scale"),
    )
    return Tuned(found, _draws(problem, fit, ends, seed))


def _unfelt(problem: PushProblem) -> tuple[Estimate, ...]:
    """The mass, if the tool is led and nobody asked for it: no force of the block's is felt, so it cannot show."""
    if not isinstance(problem.simulator.scene, GuidedScene) or "mass_scale" in (p.name for p in problem.parameters):
        return ()
    p = PARAMETERS["mass_scale"]
    reason = (
        "a block's motion beside a tool whose path is given is the same whatever its mass; record the set-points of a "
        "soft servo (ctrl.*)"
    )
    verdict: Verdict = "not identifiable from these recordings"
    return (Estimate(p.name, p.default, p.unit, p.low, p.high, (p.low, p.high), verdict, reason),)


def _mass(problem: PushProblem, scale: Estimate) -> Estimate:
    """The block's mass [kg], for those who do not think in shares of the declared one."""
    scene = problem.simulator.scene
    declared = float(scene.model.body_mass[scene.model.body(scene.block_body).id])
    low, high = (declared * v for v in (scale.low, scale.high))
    bounds = (declared * scale.bounds[0], declared * scale.bounds[1])
    reason = f"mass_scale times the declared {declared:.3g} kg"
    return Estimate("mass", declared * scale.value, "kg", low, high, bounds, scale.verdict, reason)


def _extra(problem: PushProblem, fit: trust.Fit, seconds: float) -> dict[str, Any]:
    spread = trust.covariance(fit)
    std = np.sqrt(np.diag(spread))
    off = problem.offsets(problem.simulate(fit.unit[None]))[0]
    led = isinstance(problem.simulator.scene, GuidedScene)
    return {
        "windows": len(problem.windows),
        "recordings": list(problem.windows.names),
        "control_period_s": problem.windows.period,
        "block_off_m": float(np.sqrt(np.nanmean(np.square(off[..., :2]).sum(axis=-1)))),
        "turn_off_rad": float(np.sqrt(np.nanmean(np.square(off[..., 2])))) / problem.lever,
        "tool_off_m": None if led else float(np.sqrt(np.nanmean(np.square(off[..., 3:]).sum(axis=-1)))),
        "engine_share": problem.effort.engine_seconds / max(seconds, 1e-9),
        "correlations": {
            "names": [p.name for p in problem.sought],
            "matrix": np.round(spread / np.outer(std, std), 3).tolist(),
        },
    }


def _errors(problem: PushProblem, units: Array) -> Errors:
    """How far replays with a point for each recording [N, A] are off."""
    windows = problem.windows
    off = problem.offsets(problem.simulate_each(units))[0]
    away = np.nanmean(np.linalg.norm(off[..., :2], axis=-1) + np.abs(off[..., 2]), axis=-1)
    path = np.nansum(np.linalg.norm(np.diff(windows.block[..., :2], axis=1), axis=-1), axis=-1)
    count = len(windows.names)
    whose = [windows.recording == n for n in range(count)]
    error = np.array([away[own].mean() for own in whose if own.any()])
    moved = np.array([path[own].mean() for own in whose if own.any()])
    relative = error / np.maximum(moved, 1e-3)
    return Errors(float((error**2).mean()), float(np.median(relative)), float((relative < GOOD).mean()), len(error))


def _held_out(problem: PushProblem, fit: trust.Fit) -> Errors | None:
    count = len(problem.windows.names)
    if count < 3:
        return None
    return _errors(problem, np.array([trust.leave_out(fit, [n]) for n in range(count)]))


def _draws(problem: PushProblem, fit: trust.Fit, ends: tuple[Array, Array], seed: int) -> dict[str, Array]:
    """Points that are as likely as the intervals say, correlated as the loss's curvature has it."""
    freedom = max(len(fit.residual) - len(fit.unit), 1)
    spread = trust.covariance(fit)
    std = np.sqrt(np.diag(spread))
    wide = (ends[1] - ends[0]) / 2 / float(student.ppf(0.5 + CONFIDENCE / 2, freedom))
    points = trust.draws(fit, spread * np.outer(wide / std, wide / std), seed, count=DRAWS, freedom=freedom)
    return {p.name: np.asarray(p.from_unit(points[:, i])) for i, p in enumerate(problem.sought)}
