"""One free body in Brax, the engine that the few-shot paper compares with: three pipelines.

A program is compiled once per pipeline, scene, list of parameters and time between frames (5 to 15 s): rows go through
it `ROWS` at a time, `BLOCK` samples in one call, so that neither their number nor their length nor a parameter's value
compiles anything again. The cube is Brax's own box: all three pipelines know a box on a plane.

Brax comes with the extra `bench` and is imported where an engine is made. It is in double precision here.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, final

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from carom.core.errors import CaromError, SceneError, unknown_name
from carom.core.rotations import to_body, to_world
from carom.core.work import threads as threads_of
from carom.engines.contract import Validation, frame_times, held_controls, row_values, same_bodies
from carom.engines.mjx.load import float64
from carom.scenes.free import FreeScene
from carom.scenes.parameters import FREE, PARAMETERS, TABLE_II, Parameter
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body
from carom.state import Array, Contacts, Motion, SceneState, Status

PIPELINES = ("generalized", "positional", "spring")
SHAPES = ("box", "sphere")
ROWS = 32  #: rollouts that share one call
BLOCK = 16  #: samples in one call
ITERATIONS = 20  #: of the generalized pipeline's solver at most; Brax's own environments take 4 to 20
FASTER = {"xla_cpu_use_fusion_emitters": False}  #: halves the time of compilation; as fast to run
LOST = 1e3  #: [m] a body that is further off has been thrown out of the scene
#: Table II gives this one to the positional and the spring pipeline, in place of solref and solimp.
ELASTICITY = Parameter("elasticity", "1", 0.0, 1.0, 0.0, False, "share of the normal speed that a contact gives back")

_RIGID = (
    "solref and solimp: contacts are rigid, with an elasticity",
    "a bounce off an edge or a face: impulses of contacts are averaged, and little of one is left",
)
_IGNORED: Mapping[str, tuple[str, ...]] = {
    "generalized": (
        "elliptic friction cones: pyramids in their place",
        f"a solver that converges: {ITERATIONS} iterations of projected gradients in its place",
        "MuJoCo's safeguard against time constants below two steps",
    ),
    "positional": (
        "friction in full: its limit is taken for a speed, and a body below 1 kg or so slides too far",
        "friction at rest: a contact that hardly moves sticks as with a coefficient of 1",
        *_RIGID,
    ),
    "spring": _RIGID,
}
_TWIST = "torsional and rolling friction"

Program = Callable[[Array, Array, Array], tuple[Any, Any, Any, Any]]
_PROGRAMS: dict[str, Program] = {}  #: compiled ones, kept for the next engine of the same kind
_MOST_PROGRAMS = 6


def load(pipeline: str) -> tuple[Any, Any, Any]:
    """jax, Brax's reader of MuJoCo models, and one pipeline; or what to install. MJX's greeting on stdout is lost."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax, reader = importlib.import_module("jax"), importlib.import_module("brax.io.mjcf")
            return jax, reader, importlib.import_module(f"brax.{pipeline}.pipeline")
    except ImportError as error:
        raise CaromError(f"Brax is not installed ({error}); it comes with: pip install carom[bench]") from error


def brax_parameters(pipeline: str) -> tuple[Parameter, ...]:
    """What Table II identifies of a pipeline.

    >>> [p.name for p in brax_parameters("spring")]
    ['friction', 'elasticity']
    """
    if pipeline not in PIPELINES:
        raise CaromError(unknown_name("Brax pipeline", pipeline, PIPELINES))
    if pipeline == "generalized":
        return tuple(FREE[name] for name in TABLE_II)
    return FREE["friction"], ELASTICITY


@final
class BraxEngine:
    """One body over the ground in one of Brax's pipelines; parameters differ per row."""

    def __init__(
        self, scene: Scene, parameters: Sequence[str] = (), *, pipeline: str, step: float, threads: int = 0
    ) -> None:
        self.pipeline, self.timestep, self.threads = pipeline, step, threads
        known = [p.name for p in brax_parameters(pipeline)]
        for name in parameters:
            if name not in known:
                takes = f"it takes: {', '.join(known)}"
                raise SceneError(f"parameter '{name}' has no meaning for Brax's {pipeline} pipeline; {takes}")
        self.parameters = tuple(parameters)
        cannot = self.validate(scene).cannot
        if cannot or not isinstance(scene, FreeScene):
            raise SceneError(f"Brax cannot simulate scene '{scene.name}': {'; '.join(cannot)}")
        self._scene = scene
        self.compile_seconds = 0.0
        self._jax, self._reader, self._physics = load(pipeline)

    @property
    def scene(self) -> FreeScene:
        return self._scene

    def validate(self, scene: Scene) -> Validation:
        """Name what this pipeline leaves out of a scene, and why it cannot run one at all."""
        if not isinstance(scene, FreeScene):
            return Validation(cannot=(f"scene '{scene.name}': Brax runs one free body over the ground here",))
        cannot = []
        if scene.planar:
            cannot.append("bodies that glide in a plane: Brax has them fall on the ground only")
        if len(scene.bodies) > 1:
            cannot.append(f"{len(scene.bodies)} bodies: one at a time")
        for body in scene.bodies:
            if body.shape is None or body.shape.kind not in SHAPES:
                kind = "none" if body.shape is None else body.shape.kind
                cannot.append(f"body '{body.name}': shapes are {' or '.join(SHAPES)}, not {kind}")
        return Validation((*_IGNORED[self.pipeline], _TWIST), tuple(cannot))

    def open(
        self,
        start: SceneState,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        bodies: Sequence[Sequence[Body]] | None = None,
    ) -> BraxRun:
        """See `Engine`."""
        same_bodies(bodies)
        body = self._scene.bodies[0].name
        if start.bodies != (body,) or start.joints:
            got = ", ".join((*start.bodies, *start.joints)) or "none"
            raise CaromError(f"start: expected the body {body}, and no joints; got {got}")
        default = {p.name: p.default for p in brax_parameters(self.pipeline)}
        own = row_values(values, len(start), self.parameters)
        columns = [own.get(name, np.full(len(start), default[name])) for name in self.parameters]
        return BraxRun(self, start, np.stack(columns, axis=-1) if columns else np.zeros((len(start), 0)))

    def program(self, substeps: int, block: int) -> Program:
        """`block` samples of `ROWS` rows, `substeps` steps each; compiled when it is first asked for."""
        key = repr((self.pipeline, self._scene, self.timestep, substeps, block, self.parameters))
        if key not in _PROGRAMS:
            before = perf_counter()
            spec = self._scene.spec(step=self.timestep)
            spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
            if self.pipeline == "generalized":
                spec.option.iterations = ITERATIONS
            with float64(self._jax), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")  # that Brax is no longer looked after
                host = spec.compile()
                pairs = tuple(host.pair(i).name for i in range(host.npair))
                system = self._reader.load_model(host)
                made = _compile(self._jax, self._physics, system, (self.parameters, pairs), (substeps, block))
            while len(_PROGRAMS) >= _MOST_PROGRAMS:
                _PROGRAMS.pop(next(iter(_PROGRAMS)))
            _PROGRAMS[key] = made
            self.compile_seconds = perf_counter() - before
        return _PROGRAMS[key]

    def roll(self, q: Array, qd: Array, values: Array, *, substeps: int, samples: int) -> tuple[Array, Array, float]:
        """Poses [N, samples, 7] from states [N, 7] and [N, 6] on, velocities [N, 6] at the end, seconds in Brax."""
        block = BLOCK if samples > 2 else 1
        program, count = self.program(substeps, block), len(q)
        pose, last = np.empty((count, samples, 7)), np.empty((count, 6))

        def work(low: int) -> float:
            rows = np.minimum(np.arange(low, low + ROWS), count - 1)  # the last call is filled up with its last row
            own, before = slice(low, low + ROWS), perf_counter()
            now: tuple[Any, Any] = (q[rows], qd[rows])
            pose[own, 0] = q[own]
            with float64(self._jax):
                for done in range(1, samples, block):
                    *now, seen, going = program(*now, values[rows])  # type: ignore[assignment]
                    pose[own, done : done + block] = np.asarray(seen)[: len(pose[own]), : samples - done]
                    last[own] = np.asarray(going)[: len(pose[own]), min(block, samples - done) - 1]
            return perf_counter() - before

        chunks = range(0, count, ROWS)
        workers = min(threads_of(self.threads) or os.cpu_count() or 1, len(chunks))
        if workers == 1:
            return pose, last, sum(work(low) for low in chunks)
        with ThreadPoolExecutor(workers) as pool:
            return pose, last, sum(pool.map(work, chunks))


@final
class BraxRun:
    """N rows of one body on their way."""

    def __init__(self, engine: BraxEngine, start: SceneState, values: Array) -> None:
        self.engine, self.values = engine, values
        self._status = np.where(start.finite, Status.MOVING, Status.FAILED).astype(np.int8)
        turn = start.quaternion[:, 0]
        # MuJoCo and Brax want the angular velocity in the body's frame
        self._q = np.column_stack([start.position[:, 0], turn])
        self._qd = np.column_stack([start.velocity[:, 0], to_body(turn, start.spin[:, 0])])
        self._q[~start.finite], self._qd[~start.finite] = np.eye(7)[3], 0.0

    @property
    def status(self) -> NDArray[np.int8]:
        return self._status.copy()

    @property
    def state(self) -> SceneState:
        turn = self._q[:, 3:]
        position, velocity, spin = self._q[:, None, :3], self._qd[:, None, :3], to_world(turn, self._qd[:, 3:])[:, None]
        return SceneState((self.engine.scene.bodies[0].name,), position, turn[:, None], velocity, spin)

    def step(self, duration: float, controls: ArrayLike | None = None) -> SceneState:
        """See `Run`; a free body has no controls."""
        if not (np.isfinite(duration) and duration > 0):
            raise CaromError(f"duration: expected positive seconds, got {duration}")
        self.rollout(duration, None if controls is None else np.asarray(controls)[:, None], frames=2)
        return self.state

    def rollout(self, duration: ArrayLike, controls: ArrayLike | None = None, *, frames: int = 2) -> Motion:
        """See `Run`; all rows go on for the same time."""
        times = frame_times(duration, len(self._status), frames)
        held_controls(controls, len(self._status), 0, several=True)
        names = (self.engine.scene.bodies[0].name,)
        if not len(times):
            return Motion(names, times, np.zeros((0, frames, 1, 3)), np.zeros((0, frames, 1, 4)), self.status)
        if np.ptp(times[:, -1]) > 0:
            raise CaromError("duration: Brax takes one for all rows")
        substeps = round(float(times[0, 1]) / self.engine.timestep)
        if substeps < 1:
            raise CaromError(f"duration: expected {self.engine.timestep:g} s or more between frames")
        pose, last, seconds = self.engine.roll(self._q, self._qd, self.values, substeps=substeps, samples=frames)
        self._status[_hold(pose)] = Status.FAILED
        self._q, self._qd = pose[:, -1].copy(), np.where(np.isfinite(last), last, 0.0)
        position, quaternion = pose[:, :, None, :3].copy(), pose[:, :, None, 3:].copy()
        return Motion(names, times, position, quaternion, self.status, engine_seconds=seconds)

    def contacts(self) -> Contacts:
        """Brax keeps its contacts to itself."""
        raise CaromError("contacts: not available in Brax; open the scene in MujocoEngine instead")


def _compile(
    jax: Any, physics: Any, system: Any, names: tuple[tuple[str, ...], tuple[str, ...]], sizes: tuple[int, int]
) -> Program:
    """(q, qd, values) of `ROWS` rows to (q, qd) at the end and at each sample; names of parameters and of pairs."""
    jnp = jax.numpy
    (parameters, pairs), (substeps, block) = names, sizes

    def one(q: Any, qd: Any, values: Any) -> Any:
        own = _written(jnp, system, pairs, dict(zip(parameters, values, strict=True)))

        def step(state: Any, _: Any) -> Any:
            return physics.step(own, state, jnp.zeros(0)), None

        def sample(state: Any, _: Any) -> Any:
            state, _ = jax.lax.scan(step, state, None, length=substeps)
            return state, (state.q, state.qd)

        state, seen = jax.lax.scan(sample, physics.init(own, q, qd), None, length=block)
        return state.q, state.qd, *seen

    shapes = [jax.ShapeDtypeStruct((ROWS, width), jnp.float64) for width in (7, 6)]
    shapes.append(jax.ShapeDtypeStruct((ROWS, len(parameters)), jnp.float64))
    lowered = jax.jit(jax.vmap(one, axis_size=ROWS)).lower(*shapes)
    try:
        return lowered.compile(FASTER)  # type: ignore[no-any-return]
    except RuntimeError:  # another version of XLA may not know the option
        return lowered.compile()  # type: ignore[no-any-return]


def _written(jnp: Any, system: Any, pairs: Sequence[str], value: Mapping[str, Any]) -> Any:
    """The system with one row's parameters."""
    for name, v in value.items():
        if name == "elasticity":  # Brax takes the mean of both geoms'
            system = system.replace(elasticity=jnp.zeros_like(system.elasticity) + v)
        elif (write := PARAMETERS[name].write) is not None:
            system = write.into_mjx(system, pairs, v)
    return system


def _hold(pose: Array) -> NDArray[np.bool_]:
    """Keep the last good pose of rollouts that went wrong [N, T, 7], in place; which ones did."""
    good = np.isfinite(pose).all(axis=-1) & (np.abs(np.nan_to_num(pose[..., :3])) < LOST).all(axis=-1)
    good = np.logical_and.accumulate(good, axis=1)
    failed = np.asarray(~good[:, -1])
    for row in np.flatnonzero(failed):
        length = int(good[row].sum())
        pose[row, length:] = pose[row, max(length - 1, 0)]
    return failed
