"""Free bodies in Brax, the engine that the few-shot paper compares with: three pipelines, used as `FreeBatch` is.

A program is compiled once per pipeline, scene and list of parameters (5 to 15 s): rollouts go through it `ROWS` at a
time, `BLOCK` samples in one call, so that neither their number nor their length nor a parameter's value compiles
anything again. The cube is Brax's own box: all three pipelines know a box on a plane.

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
from numpy.typing import NDArray

from carom.core.errors import CaromError, SceneError, unknown_name
from carom.core.rotations import to_body
from carom.engines.contract import Validation
from carom.engines.mjx.load import float64
from carom.engines.mujoco.bodies import FreeMotion, FreeStarts
from carom.scenes.free import FREE, TABLE_II, FreeScene, free_spec, timestep
from carom.scenes.parameters import Parameter
from carom.state import Array

PIPELINES = ("generalized", "positional", "spring")
SHAPES = ("box", "sphere")
ROWS = 32  #: rollouts that share one call
BLOCK = 16  #: samples in one call
ITERATIONS = 20  #: of the generalized pipeline's solver at most; Brax's own environments take 4 to 20
FASTER = {"xla_cpu_use_fusion_emitters": False}  #: halves the time of compilation; as fast to run
LOST = 1e3  #: [m] a body that is further off has been thrown out of the scene
#: Table II gives this one to the positional and the spring pipeline, in place of solref and solimp.
ELASTICITY = Parameter("elasticity", "1", 0.0, 1.0, 0.0, False, "share of the normal speed that a contact gives back")

_SOLREF = ("time_constant", "damping_ratio")
_SOLIMP = TABLE_II[3:]
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

Program = Callable[[Array, Array, Array], tuple[Any, Any, Any]]
_PROGRAMS: dict[str, Program] = {}  #: compiled ones, kept for the next engine of the same kind
_MOST_PROGRAMS = 6


def load(pipeline: str) -> tuple[Any, Any, Any]:
    """jax, Brax's reader of MuJoCo models, and one pipeline; or what to install. MJX's greeting on stdout is lost."""
    if pipeline not in PIPELINES:
        raise CaromError(unknown_name("Brax pipeline", pipeline, PIPELINES))
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
class BraxFree:
    """Rolls out one body over the ground in one of Brax's pipelines; parameters differ per rollout."""

    def __init__(
        self,
        scene: FreeScene,
        parameters: Sequence[Parameter],
        *,
        pipeline: str,
        period: float,
        step: float | None = None,
        threads: int = 0,
    ) -> None:
        self.scene, self.parameters, self.period, self.threads = scene, tuple(parameters), period, threads
        known = [p.name for p in brax_parameters(pipeline)]
        self.pipeline = pipeline
        for p in self.parameters:
            if p.name not in known:
                raise SceneError(
                    f"parameter '{p.name}' has no meaning for Brax's {pipeline} pipeline; it takes: {', '.join(known)}"
                )
        cannot = self.validate(scene).cannot
        if cannot:
            raise SceneError(f"Brax cannot simulate scene '{scene.name}': {'; '.join(cannot)}")
        self.step = timestep(period) if step is None else period / max(round(period / step), 1)
        self.substeps = round(period / self.step)
        self.compile_seconds = 0.0
        self._jax, self._reader, self._physics = load(pipeline)

    def validate(self, scene: FreeScene) -> Validation:
        """Name what this pipeline leaves out of a scene, and why it cannot run one at all."""
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

    def run(self, starts: FreeStarts, values: Array, samples: int) -> FreeMotion:
        """Roll out each start with its row of `values` [N, P] for `samples` sample periods, the start included."""
        count = len(starts)
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (count, len(self.parameters)))
        if not count or samples < 1:
            raise CaromError(f"expected one rollout or more of one sample or more, got {count} of {samples}")
        program = self._program()
        q, qd = first_states(self.scene, starts)
        pose = np.empty((count, samples, 7))

        def work(low: int) -> float:
            rows = np.minimum(np.arange(low, low + ROWS), count - 1)  # the last call is filled up with its last row
            return _roll(self._jax, program, q[rows], qd[rows], values[rows], pose[low : low + ROWS])

        chunks = range(0, count, ROWS)
        workers = min(self.threads or os.cpu_count() or 1, len(chunks))
        if workers == 1:
            engine = sum(work(low) for low in chunks)
        else:
            with ThreadPoolExecutor(workers) as pool:
                engine = sum(pool.map(work, chunks))
        failed = _hold(pose)
        return FreeMotion(pose[:, :, None, :3].copy(), pose[:, :, None, 3:].copy(), failed, engine)

    def _program(self) -> Program:
        """The compiled program, made at the first call."""
        names = tuple(p.name for p in self.parameters)
        key = repr((self.pipeline, self.scene, self.step, self.substeps, names))
        if key not in _PROGRAMS:
            before = perf_counter()
            spec = free_spec(self.scene, step=self.step)
            spec.option.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
            if self.pipeline == "generalized":
                spec.option.iterations = ITERATIONS
            with float64(self._jax), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")  # that Brax is no longer looked after
                system = self._reader.load_model(spec.compile())
                made = _compile(self._jax, self._physics, system, names, self.substeps)
            while len(_PROGRAMS) >= _MOST_PROGRAMS:
                _PROGRAMS.pop(next(iter(_PROGRAMS)))
            _PROGRAMS[key] = made
            self.compile_seconds = perf_counter() - before
        return _PROGRAMS[key]


def first_states(scene: FreeScene, starts: FreeStarts) -> tuple[Array, Array]:
    """qpos [N, 7] and qvel [N, 6] of a scene's only body, as estimated for its centre of mass and this gravity."""
    com = np.array(scene.bodies[0].com or (0.0, 0.0, 0.0))
    fall = scene.gravity - starts.gravity
    at = starts.position[:, 0] + starts.position_by_com[:, 0] @ com + fall * starts.position_by_gravity[:, 0]
    going = starts.velocity[:, 0] + starts.velocity_by_com[:, 0] @ com + fall * starts.velocity_by_gravity[:, 0]
    turn = starts.quaternion[:, 0]
    # MuJoCo and Brax want the angular velocity in the body's frame
    return np.column_stack([at, turn]), np.column_stack([going, to_body(turn, starts.spin[:, 0])])


def _compile(jax: Any, physics: Any, system: Any, names: tuple[str, ...], substeps: int) -> Program:
    """`BLOCK` samples of `ROWS` rollouts: (q, qd, values) to (q, qd) at the end and q at each sample."""
    jnp = jax.numpy

    def one(q: Any, qd: Any, values: Any) -> Any:
        own = _written(jnp, system, dict(zip(names, values, strict=True)))

        def step(state: Any, _: Any) -> Any:
            return physics.step(own, state, jnp.zeros(0)), None

        def sample(state: Any, _: Any) -> Any:
            state, _ = jax.lax.scan(step, state, None, length=substeps)
            return state, state.q

        state, poses = jax.lax.scan(sample, physics.init(own, q, qd), None, length=BLOCK)
        return state.q, state.qd, poses

    shapes = [jax.ShapeDtypeStruct((ROWS, width), jnp.float64) for width in (7, 6)]
    shapes.append(jax.ShapeDtypeStruct((ROWS, len(names)), jnp.float64))
    lowered = jax.jit(jax.vmap(one, axis_size=ROWS)).lower(*shapes)
    try:
        return lowered.compile(FASTER)  # type: ignore[no-any-return]
    except RuntimeError:  # another version of XLA may not know the option
        return lowered.compile()  # type: ignore[no-any-return]


def _written(jnp: Any, system: Any, value: Mapping[str, Any]) -> Any:
    """The system with one rollout's parameters."""
    new: dict[str, Any] = {}
    if "friction" in value:
        new["pair_friction"] = system.pair_friction.at[:, :2].set(value["friction"])
    if "elasticity" in value:  # Brax takes the mean of both geoms'
        new["elasticity"] = jnp.zeros_like(system.elasticity) + value["elasticity"]
    for field, columns in (("pair_solref", _SOLREF), ("pair_solimp", _SOLIMP)):
        array = getattr(system, field)
        for i, name in enumerate(columns):
            if name in value:
                array = new[field] = array.at[:, i].set(value[name])
    return system.replace(**new) if new else system


def _roll(jax: Any, program: Program, q: Array, qd: Array, values: Array, pose: Array) -> float:
    """Fill `pose` [n, T, 7] for the first n rows, block by block; the seconds that took."""
    before = perf_counter()
    own, samples = len(pose), pose.shape[1]
    pose[:, 0] = q[:own]
    now: tuple[Any, Any] = (q, qd)
    with float64(jax):
        for done in range(1, samples, BLOCK):
            *now, seen = program(*now, values)  # type: ignore[assignment]
            pose[:, done : done + BLOCK] = np.asarray(seen)[:own, : samples - done]
    return perf_counter() - before


def _hold(pose: Array) -> NDArray[np.bool_]:
    """Keep the last good pose of rollouts that went wrong [N, T, 7], in place; which ones did."""
    good = np.isfinite(pose).all(axis=-1) & (np.abs(np.nan_to_num(pose[..., :3])) < LOST).all(axis=-1)
    good = np.logical_and.accumulate(good, axis=1)
    failed = np.asarray(~good[:, -1])
    for row in np.flatnonzero(failed):
        length = int(good[row].sum())
        pose[row, length:] = pose[row, max(length - 1, 0)]
    return failed
