"""What a policy of pushes is paid besides its task: the paper's term, or what plausible simulators disagree about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from carom.engines.pushing import PushSimulator, flat, push_simulator
from carom.envs.pushing import Goals, PushingTask
from carom.learn.transition.residual import lever_of
from carom.loop.push_data import PushModel, goals_of, transitions_of
from carom.recordings import Recordings
from carom.state import Array, SceneState
from carom.train.infogap import Disagreement, InfoGap, InformationTerm, Transitions, expected_information
from carom.train.policy import Policy

ROWS, PERIODS = 64, 30  #: simulated pushes that the ensemble is asked about
SPREAD = 0.5  #: of the actions about the policy's
BOLD = 0.3  #: share of them whose actions are random altogether


def term_of(
    method: str,
    task: PushingTask,
    model: PushModel,
    folders: Sequence[Recordings],
    *,
    weight: float,
    noise: Array,
    policy: Policy | None,
    seed: int,
) -> InformationTerm | None:
    """The term of a method; None: there is none, or it weighs nothing."""
    if weight <= 0 or method not in ("infogap", "ensemble"):
        return None
    if method == "infogap":
        data = transitions_of(task, model, folders, goals_of(task, folders))
        return InfoGap(data, weight=weight, seed=seed)
    data, information = disagreement(task, model, policy, noise, seed)
    return Disagreement(data, information, weight=weight, seed=seed)


def disagreement(
    task: PushingTask, model: PushModel, policy: Policy | None, noise: Array, seed: int
) -> tuple[Transitions, Array]:
    """Simulated transitions, and what each is expected to tell about the parameters [nats]."""
    rng = np.random.default_rng([seed, 73])
    state, goals = task.sample(ROWS, rng)
    run = model.pushes.open(state, {k: np.full(ROWS, v) for k, v in model.values.items()})
    asked = push_simulator(task.scene, tuple(model.values))  # of its own: the other one is in the middle of its run
    bold = rng.random(ROWS) < BOLD
    wander = rng.uniform(-1, 1, (ROWS, task.acts))
    found: list[Transitions] = []
    told: list[Array] = []
    for _ in range(PERIODS):
        wander = np.clip(wander + 0.4 * rng.normal(size=wander.shape), -1, 1)
        action = wander
        if policy is not None:
            own = policy.act(np.nan_to_num(task.observe(state, goals))) + SPREAD * wander
            action = np.where(bold[:, None], wander, np.clip(own, -1, 1))
        controls, held = task.controls(state, action), run.held.copy()
        after = run.step(controls)
        said = _asked(asked, model, state, controls, held)
        good = np.isfinite(said).all(axis=(0, 2)) & after.finite & ~task.outside(state)
        rows = np.flatnonzero(good)
        if len(rows):
            found.append(_seen(task, state, after, goals, action)[rows])
            told.append(expected_information(said[:, rows], noise))
        state = after
    return Transitions.joined(found), np.concatenate(told)


def _asked(simulator: PushSimulator, model: PushModel, state: SceneState, controls: Array, held: Array) -> Array:
    """Where blocks come to in one period by each plausible simulator [E, N, 3]: x, y, turn times the lever."""
    count, times = len(state), len(model.draws)
    rows = np.tile(np.arange(count), times)
    values = {k: np.repeat([draw[k] for draw in model.draws], count) for k in model.values}
    end = flat(simulator.open(state[rows], values, held=held[rows]).step(controls[rows]))
    return np.asarray(end[:, -6:-3] * [1.0, 1.0, lever_of(simulator.scene)]).reshape(times, count, 3)


def _seen(task: PushingTask, before: SceneState, after: SceneState, goals: Goals, action: Array) -> Transitions:
    first, second = (np.nan_to_num(task.observe(s, goals).astype(np.float64)) for s in (before, after))
    return Transitions(first, np.asarray(action, dtype=np.float64), second)
