"""Draws of an uncertain simulator: simulators that agree as well with the few strikes it was learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.core.errors import CaromError
from carom.engines.contract import Simulator
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.hybrid.model import HybridModel
from carom.hybrid.simulator import HybridSimulator
from carom.learn.impact.student import Perturbed, Student


def draws_of(
    model: HybridModel, count: int, *, engine: str = "hybrid", seed: int = 0, threads: int = 0
) -> list[Simulator]:
    """`count` simulators, with outcomes and friction drawn from the model's uncertainty.

    MuJoCo's are drawn from the parameters that remain plausible after the strikes.
    """
    members = [(c.base, c.members) for c in model.impact.explanations if c.base.teacher == "mujoco"]
    if engine == "mjx" or (engine == "mujoco" and not members):
        raise CaromError(
            f"engine '{engine}': this model does not say how uncertain it is there; use --simulator hybrid"
        )
    simulator = model.simulator(engine, threads=threads)
    if isinstance(simulator, HybridSimulator):
        spread = model.sliding.friction_std / model.sliding.friction
        return list(hybrid_draws(simulator, count, friction_spread=spread, seed=seed))
    rng = _generator(count, seed)
    (_, plausible), names = members[0], [p.name for p in members[0][0].parameters]
    rows = rng.choice(len(plausible.weights), size=count, p=plausible.weights)
    friction = np.exp(rng.standard_normal(count) * model.sliding.friction_std / model.sliding.friction)
    drawn = [dict(zip(names, plausible.values[row].tolist(), strict=True)) for row in rows]
    return [
        MujocoSimulator(model.scene, values | {"ground_friction": values["ground_friction"] * factor}, threads=threads)
        for values, factor in zip(drawn, friction.tolist(), strict=True)
    ]


def hybrid_draws(
    hybrid: HybridSimulator, count: int, *, friction_spread: float, seed: int = 0
) -> list[HybridSimulator]:
    """Hybrids whose mean is the given one; `friction_spread` is the friction's relative standard error."""
    rng, student = _generator(count, seed), hybrid.impact.model
    if not isinstance(student, Student) or student.spread is None:
        raise CaromError("this needs a model that states its uncertainty: one made by carom adapt")
    normal = rng.standard_normal((count, 4))
    made = []
    for row in normal - normal.mean(axis=0):
        factor = float(np.exp(friction_spread * row[3]))
        slider = replace(hybrid.impact.slider, friction=hybrid.impact.slider.friction * factor)
        impact = replace(hybrid.impact, model=Perturbed(student, row[:3]), slider=slider)
        values = {**hybrid.engine.values, "ground_friction": slider.friction}
        made.append(HybridSimulator(impact, values, sliding=hybrid.sliding, threads=hybrid.threads))
    return made


def _generator(count: int, seed: int) -> np.random.Generator:
    if count < 2:
        raise CaromError(f"draws: expected 2 or more, got {count}")
    return np.random.default_rng([seed, 31])
