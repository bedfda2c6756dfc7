"""Which recordings to make next: those that are expected to narrow the parameters most.

How well the parameters are known now is what their identification states. How their errors hang together is that of
Gauss and Newton: from how the recordings' errors change with each parameter at the identified values, and from what
these leave over. A candidate experiment is simulated with parameters around
those values; how much its outcome moves says what recording it would tell, with the same noise. The score of a
candidate is the expected drop of the summed logarithms of the parameters' standard deviations (not the determinant's:
what counts is each parameter by itself, with all others unknown too). Candidates are chosen one after the other, each
given those before it, and none that is nearly the same as one chosen already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from carom.core.errors import CaromError
from carom.core.progress import Steps
from carom.engines.mujoco.collide import FAILED, MISSED, Collider
from carom.identify import trust
from carom.identify.next.candidates import free_candidates, strike_words
from carom.identify.next.choose import Known, Suggestion, around, choose, told_by
from carom.identify.problem import check_names
from carom.identify.result import Identification
from carom.identify.tosses.predict import MotionModel, shaken
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.read_off import read_off
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.result import SIDE_NAMES
from carom.identify.tosses.search import held_and_looked_for
from carom.identify.tosses.sides import SIDES, is_cube, learn_sides
from carom.scenes.free import timestep
from carom.scenes.parameters import FREE, Parameter, resolved
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

REACH = 0.05  #: in unit space, to either side, over which outcomes are compared
STRIKE_REACH = 0.12  #: the same of strikes, whose outcomes scatter with where a contact falls between two steps
MISSED_BY = 0.12  #: distance of features by which a person misses a toss that was asked for
JOLTS = 5  #: starts tried with such errors


class Described(NamedTuple):
    """Recordings of free bodies, and what is known of them before another one is suggested."""

    motions: Motions
    model: MotionModel  #: the calibrated engine
    identification: Identification  #: how well its parameters are known


def suggest_tosses(
    described: Described,
    *,
    names: Sequence[str] | None = None,
    count: int = 3,
    candidates: int = 64,
    seed: int = 0,
    threads: int = 0,
    progress: Steps | None = None,
) -> tuple[Suggestion, ...]:
    """The next recordings of free bodies (tosses, pushes, glides), best first.

    `names` are the parameters that are to be known better; by default all of the model's that need a search.
    Sensitivities are those of the first moments after contact: later frames are chaos.
    """
    told = progress or (lambda done, total: None)
    _at_least_one(count, candidates)
    motions, model, identification = described
    parameters = _free_parameters(motions, model, names)
    held = {k: v for k, v in model.values.items() if k not in {p.name for p in parameters}}
    known = motions
    if model.sides is not None and motions.starts.side is None:
        known = motions.with_sides(model.sides.likeliest(motions))
    problem = MotionProblem.of(known, parameters, held, threads=threads)
    unit = _to_unit(parameters, model.values, REACH)
    points = around(unit, REACH)
    now = told_by(problem.residuals(points, short=True), REACH)
    told(1, 2)
    tried = free_candidates(motions, model.values, model.sides, candidates, seed + 1)
    blank = np.zeros((candidates, problem.short, len(motions.scene.bodies), 3))
    turned = np.zeros((*blank.shape[:3], 4))
    words, none = tried.experiments.words, np.zeros((candidates, 3))
    empty = Motions(
        motions.scene,
        words,
        motions.period,
        tried.starts,
        blank,
        turned,
        none,
        np.zeros((candidates, 3, 3)),
        np.full(candidates, np.inf),
    )
    trial = replace(problem, motions=empty)
    motion = trial.simulate(unit[None])
    # a body whose orientation nobody measures tells nothing by it
    seen = np.asarray(np.isfinite(motions.quaternion).any(axis=(0, 1, 3)))
    quaternion = np.where(seen[:, None], motion.quaternion, np.nan)
    trial = replace(trial, motions=replace(empty, position=motion.position, quaternion=quaternion))
    new = told_by(trial.residuals(points, short=True), REACH)
    # the recordings' own residuals hold errors of their starts already: only what a candidate adds counts
    blur = np.maximum(_blurred(trial, unit, seed) - _blurred(problem, unit, seed).mean(), 0.0)
    told(2, 2)
    fine = ~motion.failed
    known_now = Known.of(parameters, identification.estimates)
    return choose(known_now, now, new, tried.experiments, fine, count=count, blur=blur, missed=MISSED_BY)


def _blurred(problem: MotionProblem, unit: Array, seed: int) -> Array:
    """Variance [N] of a residual of each experiment that errors of its start cause: some landings amplify them."""
    rng = np.random.default_rng(seed + 2)
    starts, outcomes = problem.motions.starts, []
    for noise in rng.normal(size=(JOLTS, len(starts), len(problem.scene.bodies), 9)):
        jolted = replace(problem, motions=replace(problem.motions, starts=shaken(starts, noise)))
        outcomes.append(jolted.residuals(unit[None], short=True)[0])
    return np.asarray(np.var(outcomes, axis=0, ddof=1).mean(axis=-1))


def _free_parameters(motions: Motions, model: MotionModel, names: Sequence[str] | None) -> tuple[Parameter, ...]:
    check_names(names or (), model.values)
    if names is not None:
        return resolved([FREE[name] for name in names], timestep(motions.period))
    found, _ = held_and_looked_for(motions, tuple(model.values), None)
    if not found:
        raise CaromError(
            f"every parameter was read off directly ({', '.join(model.values)}): nothing is left to narrow"
        )
    return found


def looked_for(motions: Motions, identification: Identification) -> tuple[str, ...]:
    """Names of what a search found: neither given nor read off directly."""
    open_ones = [e.name for e in identification.estimates if e.verdict != "given"]
    read = read_off(motions, open_ones)
    return tuple(name for name in open_ones if name not in read)


def describe(motions: Motions, identification: Identification) -> Described:
    """The recordings with their sides as they were identified, and the calibrated engine, from `parameters.yaml`."""
    values = {e.name: e.value for e in identification.estimates}
    for name in values:
        if name not in FREE:
            raise CaromError(f"the parameters are of strikes ('{name}'), these recordings are of free bodies")
    seen = identification.extra.get("sides") or {}
    rows = [i for i, name in enumerate(motions.names) if seen.get(name) in SIDE_NAMES]
    if not rows or "com_offset" not in values or not is_cube(motions.scene.bodies[0]):
        return Described(motions, MotionModel(motions.scene, values, None), identification)
    labels = np.array([SIDE_NAMES.index(seen[motions.names[i]]) for i in rows])
    gravity = values.get("gravity", motions.starts.gravity)
    sides = learn_sides(motions[rows], labels, values["com_offset"], gravity)
    directions = sides.likeliest(motions)
    directions[rows] = SIDES[labels]
    return Described(motions.with_sides(directions), MotionModel(motions.scene, values, sides), identification)


def suggest_strikes(
    scene: StrikeScene,
    impacts: Impacts,
    identification: Identification,
    *,
    candidates: Strikes,
    count: int = 3,
    seed: int = 0,
    threads: int = 0,
    progress: Steps | None = None,
) -> tuple[Suggestion, ...]:
    """The next strikes to record, best first, out of `candidates` on a target at rest.

    Errors count as shares of the approach speed: what a simulator leaves over grows with it.
    """
    told = progress or (lambda done, total: None)
    _at_least_one(count, len(candidates))
    trust.measured(impacts)
    parameters, unit, active = _strike_parameters(scene, identification)
    wanted = [parameters[i] for i in active]
    points = around(unit, STRIKE_REACH)
    values = np.tile(np.array([identification[p.name].value for p in parameters]), (len(points), 1))
    values[:, active] = np.stack([p.from_unit(points[:, i]) for i, p in enumerate(wanted)], axis=-1)
    engine = Collider(scene, parameters, threads=threads)
    post, good = _outcomes(engine, impacts.strikes, values)
    speed = np.linalg.norm(impacts.strikes.striker_velocity[:, :2], axis=-1)
    left = trust.residuals(post, impacts.post, scene.gyration_radius) / np.maximum(speed, 1e-3)[:, None]
    if not good.any():
        raise CaromError(
            f"scene '{scene.name}': none of the {len(impacts)} recorded strikes hits with these parameters"
        )
    now = told_by(left[:, good], STRIKE_REACH)
    told(1, 2)
    post, fine = _outcomes(engine, candidates, values)
    speed = np.maximum(np.linalg.norm(candidates.striker_velocity[:, :2], axis=-1), 1e-3)
    new = told_by(trust.residuals(post, post[0], scene.gyration_radius) / speed[:, None], STRIKE_REACH)
    told(2, 2)
    known = Known.of(wanted, identification.estimates)
    return choose(known, now, new, strike_words(scene, candidates), fine, count=count)


def _strike_parameters(
    scene: StrikeScene, identification: Identification
) -> tuple[tuple[Parameter, ...], Array, list[int]]:
    """The engine's parameters, the unit point [A] of those looked for, and which they are."""
    if identification.teacher != "mujoco":
        what = f"expected MuJoCo's parameters, got those of the teacher '{identification.teacher}'"
        raise CaromError(f"{what}; run: carom identify RECORDINGS --out parameters.yaml")
    parameters = scene.parameters("mujoco")
    there = {e.name for e in identification.estimates}
    if missing := [p.name for p in parameters if p.name not in there]:
        what = f"strikes of scene '{scene.name}' need {', '.join(missing)}; the parameters given are of"
        raise CaromError(f"{what} '{identification.scene}': {', '.join(sorted(there))}")
    values = {p.name: identification[p.name].value for p in parameters}
    read = identification.extra.get("read_off") or ()
    known = [p.name in read or identification[p.name].verdict == "given" for p in parameters]
    active = [i for i, one in enumerate(known) if not one]
    if not active:
        raise CaromError("every parameter was given or read off directly: nothing is left to narrow")
    return parameters, _to_unit([parameters[i] for i in active], values, STRIKE_REACH), active


def _outcomes(engine: Collider, strikes: Strikes, values: Array) -> tuple[Array, np.ndarray]:
    """Velocities after each strike with each row of values [C, N, 3], and which strikes hit with all of them [N]."""
    many, count = len(values), len(strikes)
    out = engine.run(strikes[np.tile(np.arange(count), many)], np.repeat(values, count, axis=0))
    lost = (out.status == MISSED) | (out.status == FAILED) | ~np.isfinite(out.post).all(axis=-1)
    return out.post.reshape(many, count, 3), ~lost.reshape(many, count).any(axis=0)


def _at_least_one(count: int, candidates: int) -> None:
    if count < 1 or candidates < 1:
        raise CaromError(
            f"expected at least one suggestion out of at least one candidate, got {count} and {candidates}"
        )


def _to_unit(parameters: Sequence[Parameter], values: Mapping[str, float], reach: float) -> Array:
    """The unit point [A] of these values, so far off the bounds that both sides can be tried."""
    inside = [float(p.to_unit(np.clip(values[p.name], p.low, p.high))) for p in parameters]
    return np.clip(inside, reach, 1 - reach)
