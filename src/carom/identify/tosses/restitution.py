"""What a contact is like, in words that people use: restitution and contact time, with intervals and verdicts.

Stiffness and damping trade off against each other, and few recordings tell them apart; what they make of a bounce
together is known much better. So intervals come from draws of all parameters at once. Where round bodies meet, how
much of their closing speed is left is also read off the velocities before and after, without any simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from carom.identify.problem import Problem
from carom.identify.result import CONFIDENCE, Estimate, Verdict
from carom.identify.trust import SHARP, VAGUE
from carom.recordings.differentiate import LocalFit, fit_after, fit_before
from carom.recordings.impacts.measured import Impact
from carom.recordings.impacts.segment import find_impacts
from carom.recordings.trajectory import Trajectory
from carom.scenes.free import FreeScene
from carom.scenes.parameters import CONTACT
from carom.scenes.shapes import Body, Shape
from carom.state import Array

SPAN = 0.06  #: [s] of the fits before and after a contact
SLOW = 3.0  #: standard errors: a closing speed of less says nothing
PLAYED = ("restitution", "contact_time")  #: in the order of `contact_character`
_UNITS = {"restitution": "1", "measured_restitution": "1", "contact_time": "s"}
_BOUNDS = {"restitution": (0.0, 1.0), "measured_restitution": (0.0, 1.0), "contact_time": (0.0005, 0.5)}
UNLIKE = ("friction", "face_friction", "torsional_friction", "rolling_friction")  #: no part in a central impact


def contact_character(values: Mapping[str, float], step: float) -> tuple[float, float]:
    """Restitution and contact time [s] of a contact with these parameters: a ball that meets the ground at 1 m/s."""
    ball = FreeScene("ball", (Body("ball", "target", Shape("sphere", radius=0.05), mass=1.0),), gravity=1e-6)
    model = ball.spec_with({name: float(values[name]) for name in _of_contacts(values)}, step=step).compile()
    data = mujoco.MjData(model)
    data.qpos[2], data.qvel[2] = 0.05 + 1e-6, -1.0
    touching = 0
    for _ in range(int(0.5 / step)):
        mujoco.mj_step(model, data)
        touching += int(data.ncon > 0 and data.contact[0].dist < 0)
        if touching and not data.ncon and data.qvel[2] > 0:
            break
    return float(max(data.qvel[2], 0.0)), touching * step


def _of_contacts(names: Mapping[str, float] | Sequence[str]) -> list[str]:
    """Those of the parameters that a central impact depends on."""
    return [name for name in names if name in CONTACT and name not in UNLIKE]


def played(problem: Problem, best: Array, points: Array, step: float, seed: int) -> tuple[Estimate, ...]:
    """Restitution and contact time at the best unit point [A], as MuJoCo plays them, with intervals from draws [D, A].

    A parameter that has no effect on the recordings may be anything: it is drawn from its whole range. Empty if no
    parameter of the contact was asked for.
    """
    names = [p.name for p in problem.parameters]
    if not _of_contacts(names):
        return ()
    value = contact_character(dict(zip(names, problem.values(best)[0], strict=True)), step)
    if all(name in problem.held for name in _of_contacts(names)):
        why = "follows from values that were given"
        both = zip(PLAYED, value, strict=True)
        return tuple(Estimate(n, v, _UNITS[n], v, v, _BOUNDS[n], "given", why) for n, v in both)
    drawn = problem.values(points)
    rng = np.random.default_rng(seed)
    for i, p in enumerate(problem.parameters):
        if p.name in problem.dead:
            drawn[:, i] = p.from_unit(rng.random(len(points)))
    found = np.array([contact_character(dict(zip(names, row, strict=True)), step) for row in drawn])
    ends = np.quantile(found, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2], axis=0)
    how = f"a ball that meets the ground at 1 m/s in MuJoCo, {len(points)} draws of the parameters together"
    return tuple(
        _estimate(name, v, (min(float(low), v), max(min(float(high), _BOUNDS[name][1]), v)), how)
        for name, v, low, high in zip(PLAYED, value, *ends, strict=True)
    )


def measured(trajectories: Sequence[Trajectory], simulated: Sequence[Estimate] = ()) -> tuple[Estimate, ...]:
    """Restitution read off the velocities before and after round bodies met; empty where none did.

    Where the restitution among the `simulated` (of `played`) is not within its interval, its reason says so.
    """
    found = [one for t in trajectories for impact in find_impacts(t) if (one := _read_off(t, impact)) is not None]
    if not found:
        return ()
    values, errors = np.array(found).T
    weight = errors**-2.0 / (errors**-2.0).sum()
    value = float(weight @ values)
    error = float(np.sqrt(1 / (errors**-2.0).sum()))
    reach, scatter = float(norm.ppf(0.5 + CONFIDENCE / 2)), ""
    if len(found) > 1:  # contacts differ by more than noise: in speed, and in where the bodies meet
        apart = float(np.sqrt((weight * (values - value) ** 2).sum() / (len(found) - 1)))
        if apart > error:
            error, reach = apart, float(student.ppf(0.5 + CONFIDENCE / 2, len(found) - 1))
            scatter = ", from their scatter"
    words = "1 contact" if len(found) == 1 else f"{len(found)} contacts"
    how = f"read off the velocities before and after {words} of the bodies; standard error {error:.2g}{scatter}"
    value = min(max(value, 0.0), 1.0)  # bodies that stick may still be closing a little
    ends = (max(value - reach * error, 0.0), min(value + reach * error, 1.0))
    for other in simulated:
        if other.name == PLAYED[0] and not ends[0] <= other.value <= ends[1]:
            pace, by = "faster" if other.value > value else "slower", abs(other.value - value)
            how += (
                f"; the identified parameters play {other.value:.2g}: simulated bodies part {pace}, by {by:.2g} of "
                "their closing speed"
            )
    return (_estimate("measured_restitution", value, ends, how),)


def _read_off(trajectory: Trajectory, impact: Impact) -> tuple[float, float] | None:
    """Parting over closing speed along the line of centres, and its standard error; None where it does not tell."""
    if impact.striker is None or impact.quality == "unusable":
        return None
    pair = (impact.target, impact.striker)
    shapes = [trajectory.bodies[name].shape for name in pair]
    if not all(shape is not None and shape.is_round for shape in shapes):
        return None  # only of round bodies is the contact on the line of centres
    time, paths = trajectory.time, [trajectory.planar_com(name) for name in pair]
    # a sample on the wrong side of the instant, which is known to about a sample, would bend a whole fit
    start, end = impact.time - trajectory.period, impact.time + impact.settle + trajectory.period
    before = [fit_before(time, path, start, span=SPAN) for path in paths]
    after = [fit_after(time, path, end, span=SPAN) for path in paths]
    (closing, closing_std), (parting, parting_std) = (_rate(*fits) for fits in (before, after))
    if not (np.isfinite([parting, parting_std]).all() and closing < -SLOW * closing_std):
        return None
    value = -parting / closing
    return value, float(np.hypot(parting_std, value * closing_std) / -closing)


def _rate(one: LocalFit, other: LocalFit) -> tuple[float, float]:
    """How fast the distance of two bodies changes [m/s], and its standard error."""
    line = one.value - other.value
    line = line / np.linalg.norm(line)
    error = np.sqrt((line**2 * (one.velocity_std**2 + other.velocity_std**2)).sum())
    return float((one.velocity - other.velocity) @ line), float(error)


def _estimate(name: str, value: float, ends: tuple[float, float], how: str) -> Estimate:
    """A verdict like a parameter's, by the share of its range that the interval covers."""
    bounds, low, high = _BOUNDS[name], *ends
    if name == "contact_time":  # a scale of its own, like stiffness
        width = float(np.log(max(high, bounds[0]) / max(low, bounds[0])) / np.log(bounds[1] / bounds[0]))
    else:
        width = high - low
    verdict: Verdict = "identified"
    if width > SHARP:
        verdict = "weakly identified" if width <= VAGUE else "not identifiable from these recordings"
    return Estimate(name, value, _UNITS[name], low, high, bounds, verdict, how)
