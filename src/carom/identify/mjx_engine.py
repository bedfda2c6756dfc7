"""Strikes through MJX with derivatives by the parameters of Table I: the model, the compiled rollout, its states."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import mujoco
import numpy as np

from carom.errors import CaromError
from carom.identify import trust
from carom.scenes.collide import CLEARANCE, QUIET_STEPS, Collider, touching
from carom.scenes.mjcf import strike_spec
from carom.scenes.parameters import TABLE_I, Parameter, defaults
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes, rotate

STEPS = 80  #: of 1 ms: longer than all but contacts that push
SOLVER = (20, 10)  #: most iterations of the solver and of its line search


def load() -> tuple[Any, Any]:
    """jax and mjx, or what to install. MJX greets on stdout when its GPU half is absent; nobody asked."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import jax
            from mujoco import mjx
    except ImportError as error:
        raise CaromError(f"MJX is not installed ({error}); it comes with: pip install carom[mjx]") from error
    return jax, mjx


def float64(jax: Any) -> Any:
    """Double precision for as long as this lasts: a process that uses JAX otherwise keeps its own setting."""
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


class Problem:
    """What is fitted: the strikes as MuJoCo states, and the parameters looked for among those of Table I."""

    def __init__(self, scene: StrikeScene, impacts: Impacts, fixed: Mapping[str, float] | None) -> None:
        self.scene, self.impacts = scene, impacts
        self.parameters = tuple(scene.parameters("mujoco"))
        self.table: list[Parameter] = [p for p in self.parameters if p.name in TABLE_I]
        self.held = trust.held_values(self.parameters, [p.name for p in self.table], fixed)
        self.active = [i for i, p in enumerate(self.table) if p.name not in self.held]
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
class Engine:
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
        if not np.isfinite(slope).all():
            share = float((~np.isfinite(slope)).mean())
            raise CaromError(f"MJX gives no derivatives for scene '{self.scene.name}': {share:.0%} are not finite")
        return residual, slope * np.array([1.0, 1.0, k])[:, None]


def _turned(slope: Array, yaw: Array) -> Array:
    """The linear part of derivatives [S, N, 3, 4] turned into the world [S, N, 2, 4]."""
    columns = np.moveaxis(slope[..., :2, :], -1, 0)  # [4, S, N, 2]
    return np.moveaxis(rotate(columns, np.broadcast_to(yaw, columns.shape[:-1])), 0, -1)


def put(mjx: Any, scene: StrikeScene) -> tuple[Any, Any, Any]:
    """The scene as a MuJoCo model, an MJX model and MJX data."""
    spec = strike_spec(scene)
    for sensor in list(spec.sensors):
        spec.delete(sensor)  # MJX knows no contact sensor; contacts are read from its data instead
    host = spec.compile()
    return host, *differentiable(mjx, host, f"scene '{scene.name}' (target: {scene.shape.kind})")


def differentiable(mjx: Any, host: mujoco.MjModel, what: str) -> tuple[Any, Any]:
    """A MuJoCo model as MJX model and data, with cones (changed in `host` too) that have derivatives."""
    host.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    host.opt.iterations, host.opt.ls_iterations = SOLVER
    try:
        model = mjx.put_model(host)
        return model, mjx.make_data(model)
    except (NotImplementedError, ValueError, TypeError) as error:
        raise CaromError(f"MJX cannot simulate {what}: {error}") from error


def pyramidal_collider(scene: StrikeScene, parameters: tuple[Parameter, ...]) -> Collider:
    """MuJoCo with the same mesh and the same friction cones as MJX here."""
    collider = Collider(scene, parameters)
    collider.model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    return collider


def build(jax: Any, mjx: Any, problem: Problem) -> Engine:
    """Build and (at its first call) compile the strikes of a problem."""
    jnp = jax.numpy
    host, model, data = put(mjx, problem.scene)
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

    return Engine(run, problem.scene, problem.impacts)
