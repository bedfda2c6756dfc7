"""What others make of whole tosses: MuJoCo with its defaults, `mujoco.sysid`, Brax's pipelines; and published fits.

Each learns from the same recordings, within the bounds of Table II of the few-shot paper, and then predicts others.
Brax's pipelines are fitted as in that paper, by CMA-ES on Eq. 1; `mujoco.sysid` by its own optimiser and residual.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import mujoco
import numpy as np

from carom.core.cma import Cma
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress
from carom.core.rotations import to_body
from carom.engines.brax import PIPELINES, BraxEngine, brax_parameters
from carom.identify.tosses.recorded import Motions, equation_1
from carom.identify.tosses.result import as_it_comes
from carom.identify.tosses.simulate import Sampled
from carom.scenes.free import timestep
from carom.scenes.parameters import FREE, TABLE_II, Parameter, from_unit
from carom.state import Motion

POPULATION = 12  #: candidates of one generation, simulated in one call
#: of one fit: on eight tosses and one core, a generation takes 0.2 s (spring), 0.7 s (positional), 4 s (generalized)
GENERATIONS: Mapping[str, int] = {"generalized": 25, "positional": 40, "spring": 40}
FAILED = 10.0  #: Eq. 1 of a rollout that the engine gave up
#: solref and solimp as MuJoCo has them when nobody says; friction would be 1, and a search from there ends anywhere.
SYSID_START: Mapping[str, float] = {
    "friction": FREE["friction"].default,
    "time_constant": 0.02,
    "damping_ratio": 1.0,
    "impedance_least": 0.9,
    "impedance_most": 0.95,
    "impedance_width": 0.001,
    "impedance_midpoint": 0.5,
    "impedance_power": 2.0,
}


@dataclass(frozen=True)
class Published:
    """Errors that others report on the public tosses of a cube: means over tosses of the means over time."""

    simulator: str
    position: float  #: % of the cube's side
    rotation: float  #: degrees
    source: str = "Acosta, Yang, Posa: Validating Robotics Simulators on Real-World Impacts, RA-L 7(3), 2022"
    note: str = "parameters fitted on all tosses, these included; their code, their start of each toss"


PUBLISHED = (Published("Drake", 13.5, 16.5), Published("Bullet", 14.9, 16.5), Published("MuJoCo", 25.1, 21.7))


@dataclass(frozen=True)
class Fitted:
    """An engine with the values that a baseline found: call it with other recordings of the same bodies."""

    name: str
    engine: Sampled
    values: Mapping[str, float]  #: by name of the parameter
    loss: float  #: mean of Eq. 1 over the recordings it learned from
    candidates: int  #: simulated on all of these; 0: nothing was fitted
    seconds: float  #: of the fit, compilation included
    failures: int = 0  #: rollouts that the engine gave up during the fit
    losses: tuple[float, ...] = field(default=(), repr=False)  #: best so far after each generation

    def __call__(self, motions: Motions) -> Motion:
        """Predict recordings from their starts."""
        own, other = self.engine.scene, motions.scene
        same = [(b.shape, b.mass, b.inertia, b.com) for b in own.bodies] == [
            (b.shape, b.mass, b.inertia, b.com) for b in other.bodies
        ]
        if not same or (own.gravity, own.ground_height) != (other.gravity, other.ground_height):
            raise CaromError(f"{self.name} was fitted in scene '{own.name}'; '{other.name}' has other bodies or ground")
        if abs(motions.period / self.engine.period - 1) > 1e-3:
            apart = f"{self.engine.period:.6g} s apart; these are {motions.period:.6g} s"
            raise CaromError(f"{self.name} was fitted to samples {apart}")
        return self.engine.simulate(motions.starts, self.values, motions.samples)


def fit_by_cma(
    engine: Sampled,
    parameters: Sequence[Parameter],
    train: Motions,
    *,
    name: str,
    generations: int,
    seed: int,
    progress: Progress | None = None,
) -> Fitted:
    """Plain CMA-ES on the mean of Eq. 1 over the recordings, from the middle of the bounds; the best candidate seen."""
    before, middle = perf_counter(), np.full(len(parameters), 0.5)
    search = Cma(middle, sigma=0.3, seed=seed, population=POPULATION)
    best, found, failures, losses = np.inf, middle, 0, []
    starts = train.starts[np.tile(np.arange(len(train)), POPULATION)]
    for done in range(generations):
        values = from_unit(parameters, search.ask())
        each = np.repeat(values, len(train), axis=0)
        motion = engine.simulate(starts, {p.name: each[:, i] for i, p in enumerate(parameters)}, train.samples)
        gave_up = motion.failed.reshape(POPULATION, -1)
        loss = np.where(gave_up, FAILED, equation_1(train, motion)).mean(axis=1)
        search.tell(loss)
        failures += int(gave_up.sum())
        if loss.min() < best:
            best, found = float(loss.min()), values[int(np.argmin(loss))]
        losses.append(best)
        if progress:
            progress(f"fit {name}", done + 1, generations)
    chosen = dict(zip((p.name for p in parameters), map(float, found), strict=True))
    count = generations * POPULATION
    return Fitted(name, engine, chosen, best, count, perf_counter() - before, failures, tuple(losses))


def sysid_fit(
    motions: Motions, names: Sequence[str] = TABLE_II, *, start: Mapping[str, float] = SYSID_START
) -> dict[str, float]:
    """Contact parameters by `mujoco.sysid` as it comes: its default optimiser and settings, its residual, one start.

    The residual is measured minus predicted readings of a position and a quaternion sensor, number by number, each over
    its norm in the recording. Starts are put within Table II's bounds, and off them as the library itself advises.
    """
    sysid = _sysid()
    unknown = [name for name in names if name not in TABLE_II]
    if unknown:
        raise CaromError(unknown_name("parameter of mujoco.sysid's fit", unknown[0], TABLE_II))
    if len(motions.scene.bodies) != 1 or motions.scene.planar:
        raise CaromError(f"mujoco.sysid is fitted to one body that falls; scene '{motions.scene.name}' has others")
    wanted = sysid.ParameterDict()
    for name in names:
        low, high = FREE[name].low, FREE[name].high
        value = float(np.clip(start[name], low, high))
        wanted.add(sysid.Parameter(name, value, low, high, modifier=_writer(name)))
    residual = sysid.build_residual_fn(models_sequences=[_sequences(sysid, motions)], n_threads=1)
    with contextlib.redirect_stdout(io.StringIO()):  # it reports each iteration there
        found, _ = sysid.optimize(wanted.move_off_bounds(), residual, verbose=False)
    return {name: float(found[name].value[0]) for name in names}


def _sysid() -> Any:
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):  # it hides what it misses
        raise CaromError("mujoco.sysid lacks some packages; they come with: pip install carom[bench]")
    return sysid


def _writer(name: str) -> Callable[[mujoco.MjSpec, Any], None]:
    """What writes one parameter of Table II into every contact pair."""
    write = FREE[name].write

    def into(spec: mujoco.MjSpec, parameter: Any) -> None:
        if write is not None:
            write.into_spec(spec, float(parameter.value[0]))

    return into


def _sequences(sysid: Any, motions: Motions) -> Any:
    """The recordings as `mujoco.sysid` wants them; signs of the measured quaternions go on from the start's."""
    spec = motions.scene.spec_with({}, step=timestep(motions.period))
    body = motions.scene.bodies[0].name
    for name, kind in (("position", "mjSENS_FRAMEPOS"), ("quaternion", "mjSENS_FRAMEQUAT")):
        sort, frame = getattr(mujoco.mjtSensor, kind), mujoco.mjtObj.mjOBJ_XBODY
        spec.add_sensor(name=name, type=sort, objtype=frame, objname=body)
    model = spec.compile()
    states, controls, readings = [], [], []
    start = motions.starts.state(motions.scene, {})
    turn = start.quaternion[:, 0]
    first = np.column_stack([start.position[:, 0], turn])
    # MuJoCo wants the angular velocity in the body's frame
    going = np.column_stack([start.velocity[:, 0], to_body(turn, start.spin[:, 0])])
    for row, (q, qd) in enumerate(zip(first, going, strict=True)):
        pose = np.concatenate([motions.position[row, :, 0], motions.quaternion[row, :, 0]], axis=-1)
        seen = np.flatnonzero(np.isfinite(pose).all(axis=-1))
        if len(seen) < 2:
            raise CaromError(
                f"{motions.names[row]}: mujoco.sysid needs poses with orientation, two or more; got {len(seen)}"
            )
        pose, time = pose[seen], seen * motions.period
        before = np.concatenate([q[None, 3:], pose[:-1, 3:]])
        pose[:, 3:] *= np.cumprod(np.where((pose[:, 3:] * before).sum(axis=-1) < 0, -1.0, 1.0))[:, None]
        states.append(sysid.create_initial_state(model, q, qd))
        controls.append(sysid.TimeSeries(time, np.zeros((len(time), 0))))
        readings.append(sysid.TimeSeries.from_names(time, pose, model))
    return sysid.ModelSequences(motions.scene.name, spec, list(motions.names), states, controls, readings)


def _default(train: Motions, seed: int, progress: Progress | None) -> Fitted:
    engine = Sampled.in_mujoco(train.scene, (), period=train.period, threads=1)
    return Fitted("mujoco-default", engine, {}, float(equation_1(train, as_it_comes(train)).mean()), 0, 0.0)


def _by_sysid(train: Motions, seed: int, progress: Progress | None) -> Fitted:
    before = perf_counter()
    values = sysid_fit(train)
    engine = Sampled.in_mujoco(train.scene, TABLE_II, period=train.period, threads=1)
    loss = float(equation_1(train, engine.simulate(train.starts, values, train.samples)).mean())
    return Fitted("mujoco-sysid", engine, values, loss, 1, perf_counter() - before)


def _in_brax(pipeline: str) -> Callable[[Motions, int, Progress | None], Fitted]:
    def fit(train: Motions, seed: int, progress: Progress | None) -> Fitted:
        parameters = brax_parameters(pipeline)
        names, step = [p.name for p in parameters], timestep(train.period)
        brax = BraxEngine(train.scene, names, pipeline=pipeline, step=step, threads=1)
        engine, count = Sampled(train.scene, brax, train.period), GENERATIONS[pipeline]
        name = f"brax-{pipeline}"
        return fit_by_cma(engine, parameters, train, name=name, generations=count, seed=seed, progress=progress)

    return fit


BASELINES: Mapping[str, Callable[[Motions, int, Progress | None], Fitted]] = {
    "mujoco-default": _default,
    "mujoco-sysid": _by_sysid,
    **{f"brax-{pipeline}": _in_brax(pipeline) for pipeline in PIPELINES},
}


def baseline(name: str, train: Motions, *, seed: int, progress: Progress | None = None) -> Fitted:
    """Fit one of `BASELINES` to recordings; what comes back predicts others. Only CMA-ES draws from the seed."""
    if name not in BASELINES:
        raise CaromError(unknown_name("baseline", name, BASELINES))
    return BASELINES[name](train, seed, progress)
