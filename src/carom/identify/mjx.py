"""Identification by gradient through MJX itself, on a simplified mesh: the paper's second baseline (section IV-A).

MJX differentiates through its own contacts, but only for meshes of few corners. The target's outline is reduced to
`CORNERS` corners, its mass, centre and inertia kept; the four parameters of Table I are found by Levenberg-Marquardt
from a few starts. Forward mode, float64, one compilation: MJX's solver has no reverse mode.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import qmc

from carom.errors import CaromError
from carom.identify import trust
from carom.identify.result import Errors, Identification
from carom.identify.search import held_values
from carom.scenes.collide import CLEARANCE, FAILED, MISSED, QUIET_STEPS, Collider, touching
from carom.scenes.mjcf import strike_spec
from carom.scenes.parameters import TABLE_I, Parameter, defaults
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes, rotate

CORNERS = 10  #: of the outline; the mesh has twice as many, and 20 is where the paper saw gradients fail
STEPS = 80  #: of 1 ms: longer than all but contacts that push
STARTS = 3
ITERATIONS = 8
PROBE = 0.45  #: step in unit space from the middle that shows whether a parameter does anything


def simplified(scene: StrikeScene, *, corners: int = CORNERS) -> StrikeScene:
    """The same scene with a target of at most so many corners, its mass properties as they were.

    >>> from carom.scenes.strike import builtin
    >>> len(simplified(builtin("semi-cylinder")).outline.vertices)
    10
    """
    shape = scene.shape
    outline = reduced(scene.outline.vertices, corners)
    if shape.kind == "box" or (shape.kind == "extruded" and len(outline) == len(scene.outline.vertices)):
        return scene
    half, k, mass = shape.full_height / 2, scene.gyration_radius, scene.mass
    flat = k * k / 2 + half * half / 3
    com = scene.target.planar_com
    body = Body(
        name=scene.target.name,
        role="target",
        shape=Shape("extruded", outline=tuple((float(x), float(y)) for x, y in outline), height=2 * half),
        mass=mass,
        inertia=scene.target.inertia or (mass * flat, mass * flat, mass * k * k),
        com=(float(com[0]), float(com[1]), 0.0),
    )
    return replace(scene, target=body)


def reduced(outline: Array, corners: int) -> Array:
    """A convex outline [V, 2] with at most so many corners: those whose loss costs least area are dropped, one by one."""
    if corners < 3:
        raise CaromError(f"corners: an outline needs 3 or more, got {corners}")
    kept = np.asarray(outline, dtype=np.float64)
    while len(kept) > corners:
        before, after = np.roll(kept, 1, axis=0) - kept, np.roll(kept, -1, axis=0) - kept
        area = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
        kept = np.delete(kept, int(np.argmin(area)), axis=0)
    return kept


def fit(
    scene: StrikeScene,
    impacts: Impacts,
    *,
    seed: int,
    fixed: Mapping[str, float] | None = None,
    starts: int = STARTS,
    iterations: int = ITERATIONS,
    progress: Callable[[int, int], None] | None = None,
) -> Identification:
    """The parameters of Table I for which MJX explains the impacts best (Eq. 3); all others stay at their defaults."""
    begun = perf_counter()
    jax, mjx = _load()
    simple = simplified(scene)
    problem = _Problem(simple, trust.measured(impacts), fixed)
    with _float64(jax):
        engine = _engine(jax, mjx, problem)
        dead = _probe(problem, engine)
        problem.give_up(dead)
        unit = qmc.Sobol(len(TABLE_I), seed=seed).random(max(starts, 1)) * 0.7 + 0.15
        unit = unit[:, problem.active]
        unit, residual, jacobian, tried, losses = _levenberg(problem, engine, unit, iterations, progress)
    loss = (residual**2).sum(axis=(1, 2))
    best = int(np.argmin(loss))
    none = np.zeros((len(problem.active),) * 2)
    found = trust.Fit(unit[best], residual[best], jacobian[best], none, tried, losses)
    k = scene.gyration_radius
    relative = trust.relative_errors(residual[best], impacts.post, k)
    lost = len(scene.outline.vertices) - len(simple.outline.vertices)
    note = f"the target's outline was reduced from {len(scene.outline.vertices)} to {len(simple.outline.vertices)} corners"
    return Identification(
        method="mjx",
        scene=scene.name,
        estimates=trust.estimates(problem.parameters, found, problem.where, held=problem.held, dead=dead),
        training=trust.errors(residual[best], relative),
        held_out=_held_out(problem, found, k),
        held_out_by="leave-one-out, in MuJoCo with the same mesh",
        evaluations=engine.evaluations,
        failures=0,
        seconds=perf_counter() - begun,
        seed=seed,
        notes=(note,) if lost else (),
        extra={"corners": len(simple.outline.vertices), "compile_seconds": round(engine.compile_seconds, 2)},
    )


def predict(scene: StrikeScene, identification: Identification, strikes: Strikes) -> Array:
    """Outcomes [N, 3] of strikes with identified parameters, on the simplified mesh.

    Through MuJoCo, with which MJX agrees to the last digits on the same mesh, and which needs no compilation.
    A strike that misses or fails leaves the target as it was.
    """
    simple = simplified(scene)
    parameters = scene.parameters("mujoco")
    values = np.tile(identification.values(parameters), (len(strikes), 1))
    out = Collider(simple, parameters).run(strikes, values)
    lost = (out.status == MISSED) | (out.status == FAILED)
    return np.where(lost[:, None], strikes.target_velocity, out.post)


def _load() -> tuple[Any, Any]:
    """jax and mjx, or what to install. MJX greets on stdout when its GPU half is absent; nobody asked."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import jax
            from mujoco import mjx
    except ImportError as error:
        raise CaromError(f"MJX is not installed ({error}); it comes with: pip install carom[mjx]") from error
    return jax, mjx


def _float64(jax: Any) -> Any:
    """Double precision for as long as this lasts: a process that uses JAX otherwise keeps its own setting."""
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


class _Problem:
    """What is fitted: the strikes as MuJoCo states, and the parameters looked for among those of Table I."""

    def __init__(self, scene: StrikeScene, impacts: Impacts, fixed: Mapping[str, float] | None) -> None:
        self.scene, self.impacts = scene, impacts
        self.parameters = tuple(scene.parameters("mujoco"))
        self.table: list[Parameter] = [p for p in self.parameters if p.name in TABLE_I]
        self.held = held_values(self.parameters, [p.name for p in self.table], fixed)
        self.active = [i for i, p in enumerate(self.table) if p.name not in self.held]
        if not self.active:
            raise CaromError("every parameter is fixed: nothing is left to identify")
        geometry = {name: np.full(len(impacts), value) for name, (value, _) in self.held.items()}
        self.qpos, self.qvel = _states(scene, impacts.strikes, geometry)

    @property
    def where(self) -> list[int]:
        """Indices of the parameters looked for, among all of the scene's."""
        return [self.parameters.index(self.table[i]) for i in self.active]

    def give_up(self, dead: Mapping[str, float]) -> None:
        self.held |= {p.name: (p.default, "") for p in self.table if p.name in dead}
        self.active = [i for i in self.active if self.table[i].name not in dead]

    def values(self, unit: Array) -> Array:
        """Table I parameters [S, 4] for unit candidates [S, A]."""
        values = np.tile(defaults(self.table), (len(unit), 1))
        for i, p in enumerate(self.table):
            if p.name in self.held:
                values[:, i] = self.held[p.name][0]
        for column, i in enumerate(self.active):
            values[:, i] = self.table[i].from_unit(np.clip(unit[:, column], 0.0, 1.0))
        return values

    def slopes(self, values: Array) -> Array:
        """Change of each looked-for parameter's value with its unit one [S, A]."""
        columns = []
        for i in self.active:
            p = self.table[i]
            columns.append(values[:, i] * np.log(p.high / p.low) if p.log else np.full(len(values), p.high - p.low))
        return np.stack(columns, axis=-1)


def _states(scene: StrikeScene, strikes: Strikes, geometry: dict[str, Array]) -> tuple[Array, Array]:
    """qpos [N, 10] and qvel [N, 9] of strikes about to touch, in the target's frame, as `Collider` starts them."""
    face, direction = touching(scene, strikes, geometry)
    yaw, count = strikes.target_pose[:, 2], len(strikes)
    velocity = rotate(strikes.striker_velocity[:, :2], -yaw)
    speed = np.maximum(np.linalg.norm(velocity, axis=-1, keepdims=True), 1e-9)
    qpos, qvel = np.zeros((count, 10)), np.zeros((count, 9))
    qpos[:, 2], qpos[:, 3] = scene.shape.full_height / 2, 1.0
    qpos[:, 7:9], qpos[:, 9] = face - velocity / speed * CLEARANCE, direction
    spin, com = strikes.target_velocity[:, 2], scene.target.planar_com
    arm = np.stack([-spin * com[1], spin * com[0]], axis=-1)
    qvel[:, :2], qvel[:, 5] = rotate(strikes.target_velocity[:, :2], -yaw) - arm, spin
    qvel[:, 6:8], qvel[:, 8] = velocity, strikes.striker_velocity[:, 2]
    return qpos, qvel


@dataclass
class _Engine:
    """Outcomes and their derivatives through MJX; counts what it simulates."""

    run: Callable[[Array], tuple[Any, Any]]
    scene: StrikeScene
    impacts: Impacts
    evaluations: int = 0
    compile_seconds: float = 0.0

    def __call__(self, values: Array) -> tuple[Array, Array]:
        """Residuals [S, N, 3] and their derivatives [S, N, 3, 4] by the values of Table I [S, 4]."""
        start = perf_counter()
        rows = [self.run(value) for value in values]
        if not self.evaluations:
            self.compile_seconds = perf_counter() - start
        self.evaluations += len(values) * len(self.impacts)
        post, slope = (np.array([row[i] for row in rows]) for i in (0, 1))
        yaw = self.impacts.strikes.target_pose[:, 2]
        post[..., :2] = rotate(post[..., :2], yaw)
        slope[..., :2, :] = _turned(slope, yaw)
        k = self.scene.gyration_radius
        residual = trust.residuals(post, self.impacts.post, k)
        return residual, np.nan_to_num(slope * np.array([1.0, 1.0, k])[:, None])


def _turned(slope: Array, yaw: Array) -> Array:
    """The linear part of derivatives [S, N, 3, 4] turned into the world [S, N, 2, 4]."""
    columns = np.moveaxis(slope[..., :2, :], -1, 0)  # [4, S, N, 2]
    return np.moveaxis(rotate(columns, np.broadcast_to(yaw, columns.shape[:-1])), 0, -1)


def _engine(jax: Any, mjx: Any, problem: _Problem) -> _Engine:
    """Build and (at its first call) compile the strikes of a problem."""
    jnp = jax.numpy
    spec = strike_spec(problem.scene)
    for sensor in list(spec.sensors):
        spec.delete(sensor)  # MJX knows no contact sensor; contacts are read from its data instead
    host = spec.compile()
    try:
        model = mjx.put_model(host)
        data = mjx.make_data(model)
    except (NotImplementedError, ValueError, TypeError) as error:
        kind = problem.scene.shape.kind
        raise CaromError(f"MJX cannot simulate scene '{problem.scene.name}' (target: {kind}): {error}") from error
    order = [host.pair(name).id for name in ("striker", "ground")]
    striker = host.geom("striker").id
    com = jnp.asarray(problem.scene.target.planar_com)
    friction, solref = jnp.asarray(host.pair_friction), jnp.asarray(host.pair_solref)

    def velocity(d: Any) -> Any:
        """(vx, vy, wz) of the centre of mass in the frame the target started in."""
        turned = 2 * jnp.arctan2(d.qpos[6], d.qpos[3])
        c, s, spin = jnp.cos(turned), jnp.sin(turned), d.qvel[5]
        arm = jnp.stack([c * com[0] - s * com[1], s * com[0] + c * com[1]])
        return jnp.stack([d.qvel[0] - spin * arm[1], d.qvel[1] + spin * arm[0], spin])

    def strike(values: Any, qpos: Any, qvel: Any) -> Any:
        m = model.replace(
            pair_friction=friction.at[order[0], :2].set(values[0]).at[order[1], :2].set(values[1]),
            pair_solref=solref.at[order[0], 1].set(values[2]).at[order[1], 1].set(values[3]),
        )

        def step(carry: Any, _: Any) -> Any:
            d, post, quiet, met = carry
            d = mjx.step(m, d)
            contact = d._impl.contact
            near = (contact.geom == striker).any(axis=-1) & (contact.dist < 0)
            touch = near.any() & (quiet < QUIET_STEPS)
            quiet = jnp.where(touch, 0, jnp.where(met, quiet + 1, quiet))
            met = met | touch
            # read while touching and once after, so that it is the one at separation
            post = jnp.where(met & (quiet <= 1), velocity(d), post)
            return (d, post, quiet, met), None

        start = data.replace(qpos=qpos, qvel=qvel)
        carry = (start, velocity(start), jnp.asarray(0), jnp.asarray(False))
        (_, post, _, _), _ = jax.lax.scan(step, carry, None, length=STEPS)
        return post

    def all_strikes(values: Any) -> Any:
        post = jax.vmap(strike, in_axes=(None, 0, 0))(values, jnp.asarray(problem.qpos), jnp.asarray(problem.qvel))
        return post, post

    compiled = jax.jit(jax.jacfwd(all_strikes, has_aux=True))

    def run(values: Array) -> tuple[Any, Any]:
        slope, post = compiled(jnp.asarray(values))
        return np.asarray(post), np.asarray(slope)

    return _Engine(run, problem.scene, problem.impacts)


def _probe(problem: _Problem, engine: _Engine) -> dict[str, float]:
    """Relative effect of each parameter that moves no outcome over its range; raises if none does."""
    count = len(problem.active)
    middle = np.full((2 * count, count), 0.5)
    middle[np.arange(count), np.arange(count)] -= PROBE
    middle[np.arange(count) + count, np.arange(count)] += PROBE
    residual, _ = engine(problem.values(middle))
    post = problem.impacts.post
    size = np.sqrt((trust.residuals(np.zeros_like(post), post, engine.scene.gyration_radius) ** 2).mean())
    effect = np.sqrt(((residual[count:] - residual[:count]) ** 2).mean(axis=(1, 2))) / max(float(size), 1e-9)
    names = [problem.table[i].name for i in problem.active]
    dead = {name: float(e) for name, e in zip(names, effect, strict=True) if e < trust.DEAD}
    if len(dead) == count:
        raise CaromError(f"none of these parameters changes the outcome of these strikes: {', '.join(dead)}; nothing to identify")
    return dead


def _levenberg(
    problem: _Problem,
    engine: _Engine,
    unit: Array,
    iterations: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Where starts [S, A] end, the residuals and derivatives there, and all points tried with their losses."""

    def evaluate(at: Array) -> tuple[Array, Array, Array]:
        values = problem.values(at)
        residual, slope = engine(values)
        jacobian = slope[..., problem.active] * problem.slopes(values)[:, None, None, :]
        return residual, jacobian, (residual**2).sum(axis=-1).mean(axis=-1)

    damping = np.full(len(unit), 1e-2)
    residual, jacobian, loss = evaluate(unit)
    tried, losses = [unit], [loss]
    for step in range(iterations):
        flat = jacobian.reshape(len(unit), -1, unit.shape[1])
        gram, pull = flat.transpose(0, 2, 1) @ flat, np.einsum("sra,sr->sa", flat, residual.reshape(len(unit), -1))
        size = np.maximum(np.trace(gram, axis1=1, axis2=2) / unit.shape[1], 1e-12)
        system = gram + (damping * size)[:, None, None] * np.eye(unit.shape[1])
        move = np.clip(np.linalg.solve(system, pull[..., None])[..., 0], -0.3, 0.3)
        new = np.clip(unit - move, 0.0, 1.0)
        new_residual, new_jacobian, new_loss = evaluate(new)
        tried.append(new)
        losses.append(new_loss)
        better = np.isfinite(new_loss) & (new_loss < loss)
        unit, loss = np.where(better[:, None], new, unit), np.where(better, new_loss, loss)
        residual = np.where(better[:, None, None], new_residual, residual)
        jacobian = np.where(better[:, None, None, None], new_jacobian, jacobian)
        damping = np.where(better, damping / 4, damping * 5)
        if progress:
            progress(step + 1, iterations)
    return unit, residual, jacobian, np.concatenate(tried), np.concatenate(losses)


def _held_out(problem: _Problem, found: trust.Fit, k: float) -> Errors | None:
    """Error on each strike with the parameters that the others alone would give."""
    impacts = problem.impacts
    if len(impacts) < 3:
        return None
    unit = np.array([trust.leave_out(found, [i]) for i in range(len(impacts))])
    values = np.tile(defaults(problem.parameters), (len(impacts), 1))
    table = problem.values(unit)
    for i, p in enumerate(problem.parameters):
        if p.name in TABLE_I:
            values[:, i] = table[:, problem.table.index(p)]
        elif p.name in problem.held:
            values[:, i] = problem.held[p.name][0]
    out = Collider(problem.scene, problem.parameters).run(impacts.strikes, values)
    residual = trust.residuals(out.post, impacts.post, k)
    return trust.errors(residual, trust.relative_errors(residual, impacts.post, k))
