"""The compiled program behind strikes in MJX: states on their way, one step, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mujoco
import numpy as np

from carom.engines.contract import REST_SPEED
from carom.engines.mujoco.long_steps import OFF
from carom.engines.over import QUIET_STEPS, READ_STEPS, STEADY_STEPS, contact_over
from carom.engines.strike_states import at_point, seen_states, turned
from carom.scenes.strike import StrikeScene


class Fixed(NamedTuple):
    """What of a strike does not change; a field is [N, ...], inside the program one row of it."""

    arm: Any  #: [2] middle of the striker's face from its frame, in the face's own frame [m]
    speed: Any  #: of approach [m/s]
    facing: Any  #: direction of the face in the striker's frame [rad]
    end: Any  #: step after which it is over
    led: Any  #: whether the striker follows orders


class Row(NamedTuple):
    """A strike on its way; a field is [N, ...], inside the program one row of it."""

    qpos: Any
    qvel: Any
    warm: Any  #: acceleration that MJX's solver starts from
    yaw: Any  #: of the target, not wrapped [rad]
    done: Any  #: steps
    touch: Any  #: whether they touched in the last step
    gone: Any  #: whether the striker was taken away
    first: Any  #: step of the first contact
    last: Any  #: step of the last one
    impacts: Any
    post: Any  #: [3] velocity of the target after the first contact
    past: Any  #: [STEADY_STEPS, 3] its latest velocities, while touched
    rested: Any  #: step at which it came to rest
    state: Any  #: [9] where it rested, or was when its time was over
    slow: Any  #: whether it hardly moved then


def program(jax: Any, mjx: Any, host: mujoco.MjModel, scene: StrikeScene) -> Callable[..., tuple[Row, Any]]:
    """`BLOCK` steps of N strikes: (fixed, rows, orders [N, BLOCK, 3]) to rows and states [N, BLOCK, 9]."""
    jnp = jax.numpy
    model = mjx.put_model(host)
    data = mjx.make_data(model)
    striker, pair = host.geom("striker").id, host.pair("striker").id
    margin = jnp.asarray(host.pair_margin)

    def step(fixed: Fixed, row: Row, order: Any) -> tuple[Row, Any]:
        free = fixed.led & ~row.touch
        ordered = at_point(order, turned(fixed.arm, row.qpos[9], jnp), jnp)
        qvel = row.qvel.at[6:9].set(jnp.where(free, ordered, row.qvel[6:9]))
        own = model.replace(pair_margin=margin.at[pair].set(jnp.where(row.gone, OFF, 0.0)))
        d = mjx.step(own, data.replace(qpos=row.qpos, qvel=qvel, qacc_warmstart=row.warm))
        contact = d._impl.contact
        touch = ((contact.geom == striker).any(axis=-1) & (contact.dist < 0)).any()
        moved = row._replace(qpos=d.qpos, qvel=d.qvel, warm=d.qacc_warmstart, done=row.done + 1, touch=touch)
        seen = seen_of(fixed, moved, scene, jnp)
        after = _judged(jnp, scene, fixed, moved._replace(yaw=seen[2]), seen, float(host.opt.timestep))
        live = (row.rested < 0) & (row.done < fixed.end)  # others are only carried along
        after = jax.tree.map(lambda new, old: jnp.where(live, new, old), after, row._replace(done=row.done + 1))
        return after, jnp.where(live, seen, row.state)

    def steps(fixed: Fixed, row: Row, orders: Any) -> Any:
        return jax.lax.scan(lambda carry, order: step(fixed, carry, order), row, orders)

    return jax.jit(jax.vmap(steps))  # type: ignore[no-any-return]


def _judged(jnp: Any, scene: StrikeScene, fixed: Fixed, row: Row, seen: Any, step: float) -> Row:
    """What a step means, as `MujocoSimulator` has it: contacts, the outcome, whether the striker goes, rest."""
    done, scale = row.done, jnp.asarray([1.0, 1.0, scene.gyration_radius])
    met = row.touch & ~row.gone
    impacts = row.impacts + (met & (row.last < done - QUIET_STEPS))
    first = jnp.where(met & (row.first < 0), done, row.first)
    last = jnp.where(met, done, row.last)
    own = (last >= 0) & ~row.gone
    velocity = seen[3:6]
    post = jnp.where(own & (done - last <= READ_STEPS) & (impacts == 1), velocity, row.post)
    change = jnp.linalg.norm((velocity - row.past[done % STEADY_STEPS]) * scale)
    past = row.past.at[done % STEADY_STEPS].set(jnp.where(own, velocity, row.past[done % STEADY_STEPS]))
    _, ended = contact_over(done - first, done - last, met, change, fixed.speed, timestep=step)
    over = own & ended & ~fixed.led
    qvel = row.qvel.at[6:9].set(jnp.where(over, 0.0, row.qvel[6:9]))
    slow = jnp.linalg.norm(velocity * scale) < REST_SPEED
    gone = row.gone | over
    rested = jnp.where(slow & gone & (row.rested < 0), done, row.rested)
    return row._replace(
        qvel=qvel,
        gone=gone,
        first=first,
        last=last,
        impacts=impacts,
        post=post,
        past=past,
        rested=rested,
        state=seen,
        slow=slow,
    )


def seen_of(fixed: Fixed, row: Row, scene: StrikeScene, xp: Any = np) -> Any:
    """What is seen of strikes on their way [..., 9]; see `strike_states`."""
    com = xp.asarray(scene.target.planar_com)
    return seen_states(row.qpos, row.qvel, row.yaw, com, (fixed.arm, fixed.facing), xp)
