"""Strikes through MJX with derivatives by the parameters of Table I: the compiled rollout and its states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from carom.engines.mjx.load import put
from carom.engines.mujoco.collide import Collider
from carom.engines.over import QUIET_STEPS, READ_STEPS
from carom.engines.strike_states import at_point, put_touching, turned
from carom.scenes.parameters import Parameter
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

STEPS = 80  #: of 1 ms: longer than all but contacts that push


def first_states(scene: StrikeScene, strikes: Strikes, geometry: dict[str, Array]) -> tuple[Array, Array]:
    """qpos [N, 10] and qvel [N, 9] of strikes about to touch, in the target's frame, as `Collider` starts them."""
    qpos, qvel = np.zeros((len(strikes), 10)), np.zeros((len(strikes), 9))
    qpos[:, 2] = scene.shape.full_height / 2
    put_touching(scene, strikes, geometry, scene.target.planar_com, qpos, qvel)
    return qpos, qvel


def pyramidal_collider(scene: StrikeScene, parameters: tuple[Parameter, ...]) -> Collider:
    """MuJoCo with the same mesh and the same friction cones as MJX here."""
    collider = Collider(scene, parameters)
    collider.model.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    return collider


def outcomes_and_slopes(
    jax: Any, mjx: Any, scene: StrikeScene, qpos: Array, qvel: Array
) -> Callable[[Array], tuple[Any, Any]]:
    """Outcomes [N, 3] of strikes from these states, and their derivatives [N, 3, 4], by the values of Table I [4].

    Compiled at its first call. Outcomes are in the frame that each target started in.
    """
    jnp = jax.numpy
    host, model, data = put(mjx, scene)
    order = [host.pair(name).id for name in ("striker", "ground")]
    striker = host.geom("striker").id
    com = jnp.asarray(scene.target.planar_com)
    friction, solref = jnp.asarray(host.pair_friction), jnp.asarray(host.pair_solref)

    def velocity(d: Any) -> Any:
        """(vx, vy, wz) of the centre of mass in the frame the target started in."""
        moving = jnp.concatenate([d.qvel[:2], d.qvel[5:6]])
        return at_point(moving, turned(com, 2 * jnp.arctan2(d.qpos[6], d.qpos[3]), jnp), jnp)

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
            post = jnp.where(met & (quiet <= READ_STEPS), velocity(d), post)
            return (d, post, quiet, met), None

        start = data.replace(qpos=qpos, qvel=qvel)
        carry = (start, velocity(start), jnp.asarray(0), jnp.asarray(False))
        (_, post, _, _), _ = jax.lax.scan(step, carry, None, length=STEPS)
        return post

    def all_strikes(values: Any) -> Any:
        post = jax.vmap(strike, in_axes=(None, 0, 0))(values, jnp.asarray(qpos), jnp.asarray(qvel))
        return post, post

    compiled = jax.jit(jax.jacfwd(all_strikes, has_aux=True))

    def run(values: Array) -> tuple[Any, Any]:
        slope, post = compiled(jnp.asarray(values))
        return np.asarray(post), np.asarray(slope)

    return run
