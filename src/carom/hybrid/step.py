"""The hybrid in a user's own MuJoCo loop: `hybrid.step(model, data)` in place of `mujoco.mj_step(model, data)`.

    learned = load_hybrid(folder)
    hybrid = HybridStep(learned.student, learned.scene)  # or anything else with `predict(strikes)`
    model = hybrid.attach(mujoco.MjSpec.from_file("lab.xml"), target="block", striker="tool")
    data = mujoco.MjData(model)
    while data.time < 2:
        hybrid.step(model, data)

MuJoCo finds the contact between striker and target, the learned model gives its outcome, and MuJoCo does everything
else. In MuJoCo 4.0 a contact is detected at `margin + gap` and pushes only below `margin`: the pairs of the two bodies
get margin -1, so they are seen and make no force. The step in which they would touch is split where they touch. There
the target gets its planar velocity from the model; its vertical speed, roll and pitch go on. The striker's joints get
the reaction by the inertia that MuJoCo sees at the contact, also where the scene says "held stiffly": an arm does give
way, and by how much also decides how hard it strikes (`carried.py`). All joints together never gain energy. A strike
outside what the model has learned, or a slow push, is left to MuJoCo's own contact until they part.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from math import dist, hypot
from typing import Literal

import mujoco
import numpy as np
from mujoco import mj_step

from carom.core.errors import CaromError
from carom.core.rotations import pitch_and_roll
from carom.engines.contact_frames import contact_frames
from carom.hybrid.attach import Pair, attached
from carom.hybrid.carried import Touch, carry, touch_of
from carom.hybrid.guard import Guarded, absurd, guard
from carom.learn.impact.adapted_model import ImpactModel
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

UNSEEN = -1.0  #: [m] margin of a pair that is seen and doesn't push: nothing is ever that deep
TOUCH = 1e-6  #: [m] gap that counts as closed: what MuJoCo's collision detection resolves
RESTING = 1e-3  #: [m/s] touching bodies that part more slowly than this stay in touch
NINE_TENTHS = 0.9  #: of the way to a contact, before looking again: what accelerates is then seen from near
SLOW = 0.9  #: share of the scene's lowest speed, below which a touch is a push: the margin of `within_learned`
CHATTER = 5e-3  #: [s] two learned impacts within this, and the third touch is a push
MOST_FAR = 100  #: steps without a look at how far the bodies are apart
PARTED = 5e-3  #: [s] out of reach, after which the engine's contact is over
STEEP = 0.3  #: sine of a contact normal's slope, or of the target's tilt, beyond which nothing planar describes it
SAME_INERTIA = 0.2  #: share of the impulse by which a striker's other mass may change it, before a warning


@dataclass(frozen=True, eq=False)
class ImpactEvent:
    """Striker and target met."""

    time: float  #: of the contact [s]
    point: Array  #: [3] where, in the world [m]
    kind: Literal["learned", "engine"]  #: who answered
    guarded: bool  #: whether a learned outcome was corrected, because physics forbids it
    pre: Array  #: [3] vx, vy, wz of the target's declared centre of mass before [m/s, m/s, rad/s]
    post: Array  #: [3] the same after; NaN if the engine answered, whose contact takes its time
    reason: str = ""  #: why the engine answered
    impulse: Array = field(default_factory=lambda: np.full(3, np.nan))  #: [3] on the target, world; if learned [N s]
    striker_mass: float = np.nan  #: of the arm in this posture, along the contact's normal; if learned [kg]


@dataclass(frozen=True)
class _Contact:
    """The contact that closes first."""

    wait: float  #: until it closes [s]; 0: it touches
    point: Array  #: [3] world [m]
    normal: Array  #: [3] into the target, world
    closing: float  #: speed [m/s]


class HybridStep:
    """A learned impact between two bodies of a user's model; use one for each `MjData`.

    `impact_model` is anything with `predict(strikes)`. It is asked with the striker's height in the model's world, so
    z = 0 has to be where it was in the recordings, if they varied in height. A mocap striker has no velocity in MuJoCo:
    its own contact answers; weld a body to it instead. While a step is split, callbacks act on each part of it.
    """

    def __init__(self, impact_model: ImpactModel, scene: StrikeScene) -> None:
        self.impact_model = impact_model
        self.scene = scene
        self.log: list[ImpactEvent] = []  #: every meeting, oldest first; yours to clear
        self._pair: Pair | None = None
        self._engine = False  # whether MuJoCo's own contact is on
        self._apart = 0.0  # [s] out of reach since it is on
        self._recent: list[float] = []  # [s] times of learned impacts
        self._time = -np.inf
        self._until, self._contacts = -np.inf, 0  # [s] before which nothing can meet, and contacts meanwhile
        self._far_in: mujoco.MjModel | None = None
        self._room = np.zeros(6)  # for a body's twist
        self._warned = False

    @property
    def from_engine(self) -> int:
        """How often MuJoCo's own contact answered."""
        return sum(event.kind == "engine" for event in self.log)

    @property
    def guarded(self) -> int:
        """How many learned outcomes were corrected because physics forbids them."""
        return sum(event.guarded for event in self.log)

    def attach(self, spec: mujoco.MjSpec, *, target: str, striker: str) -> mujoco.MjModel:
        """Compile a copy of `spec` in which striker and target, two of its bodies, meet by the learned model.

        Whatever pushes when MuJoCo's contact answers (friction, solref, margin) is as it was in `spec`, be it of the
        geoms or of a pair. Bodies that are not those of the scene are refused.
        """
        model, self._pair = attached(spec, self.scene, target, striker)
        self._reset(model, self._pair)
        return model

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Advance by one time step, as `mujoco.mj_step` does; set `data.ctrl` and the like before."""
        if model is self._far_in and self._time <= data.time < self._until:
            mj_step(model, data)
            # another contact than before may be one of the two: a body that was put elsewhere is seen so
            if data.ncon != self._contacts:
                self._far_in = None
        elif model is self._far_in and data.time >= self._time and self._far_apart(model, data):
            self.step(model, data)
        else:
            self._watched(model, data)

    def _watched(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """A step in which the two bodies may meet: it is split where they do."""
        pair = self._pair
        if pair is None or (model.npair, model.ngeom) != pair.shape:
            raise CaromError(
                "step: expected the model that attach returned; call attach(spec, target=, striker=) first"
            )
        self._far_in = None
        start, step = float(data.time), float(model.opt.timestep)
        if start < self._time:  # the user has reset the data
            self._reset(model, pair)
        left = step
        try:
            while left > 0:
                mujoco.mj_step1(model, data)  # contacts as they are now
                contact = self._next_contact(model, data, pair)
                if contact is None or contact.wait >= left:
                    _advance(model, data, left)
                    break
                if contact.wait > 0:
                    part = contact.wait * (NINE_TENTHS if contact.wait > step / 10 else 1.0)
                    _advance(model, data, part)
                    left -= part
                else:
                    self._meet(model, data, pair, contact)
        finally:
            model.opt.timestep = step
        if left < step:
            data.time = start + step  # the parts' sum may differ in the last digit
        self._time = float(data.time)
        if left == step and not self._engine:
            self._until, self._far_in, self._contacts = -np.inf, model, data.ncon

    def _far_apart(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Whether the two cannot meet for some steps, even at twice the speed that they have, or that was learned."""
        pair, step = self._pair, model.opt.timestep
        if pair is None or not pair.round:
            return False
        away, size, place, twist = np.inf, 0.0, data.geom_xpos, self._room
        for one, other, both in pair.round:  # in plain numbers: arrays of three take several times as long
            away, size = min(away, dist(place[one].tolist(), place[other].tolist()) - both), max(size, both)
        speed = float(self.scene.speed[1])
        for body in (pair.target, pair.striker):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, twist, 0)
            wx, wy, wz, x, y, z = twist.tolist()
            speed += hypot(x, y, z) + hypot(wx, wy, wz) * size
        steps = min(int((away - pair.reach) / (2.2 * speed * step)), MOST_FAR)
        self._until = data.time + (steps - 0.5) * step
        return steps > 0

    def _reset(self, model: mujoco.MjModel, pair: Pair) -> None:
        """See contacts, and leave them to the learned model."""
        self._engine, self._apart, self._recent, self._time, self._far_in = False, 0.0, [], -np.inf, None
        model.pair_margin[pair.pairs], model.pair_gap[pair.pairs] = UNSEEN, pair.reach - UNSEEN

    def _next_contact(self, model: mujoco.MjModel, data: mujoco.MjData, pair: Pair) -> _Contact | None:
        """The contact that closes first, if the learned model is in charge and one closes at all."""
        contact = data.contact
        near = np.flatnonzero(pair.side[contact.geom].sum(axis=-1) == 3)
        near = near[contact.dist[near] <= pair.reach] if len(near) else near
        if self._engine:
            self._apart = 0.0 if len(near) else self._apart + model.opt.timestep
            if self._apart > PARTED:
                self._reset(model, pair)
            return None
        if not len(near):
            return None
        point, gap = contact.pos[near], contact.dist[near]
        sign = np.where(pair.side[contact.geom[near, 0]] == 2, 1.0, -1.0)  # normals point from the first geom
        normal = contact.frame[near, :3] * sign[:, None]
        relative = _velocity(model, data, pair.striker, point) - _velocity(model, data, pair.target, point)
        closing = (relative * normal).sum(axis=-1)
        touching = np.where(closing > -RESTING, 0.0, np.inf)
        wait = np.where(gap <= TOUCH, touching, np.where(closing > 0, gap / np.maximum(closing, 1e-12), np.inf))
        first = int(np.argmin(wait))
        if not np.isfinite(wait[first]):
            return None
        patch = gap <= gap[first] + 10 * TOUCH  # a flat face has several points
        return _Contact(float(wait[first]), point[patch].mean(axis=0), normal[first], float(closing[first]))

    def _meet(self, model: mujoco.MjModel, data: mujoco.MjData, pair: Pair, contact: _Contact) -> None:
        """Give touching bodies their learned outcome, or to MuJoCo's contact."""
        time, strikes = float(data.time), _strikes(model, data, pair)
        pre, reason = strikes.target_velocity[0], self._refusal(data, pair, contact, time)
        if not reason:
            touch = touch_of(model, data, pair, contact.point, contact.normal)
            said, reason = self._asked(strikes, touch)
        if reason:
            self._engine, self._apart = True, 0.0
            model.pair_margin[pair.pairs], model.pair_gap[pair.pairs] = pair.margin, pair.gap
            self.log.append(ImpactEvent(time, contact.point, "engine", False, pre, np.full(3, np.nan), reason))
            return
        made = carry(touch, said.post[0] - pre, striker_mass=self.scene.striker_mass)
        data.qvel += made.velocity
        self._check_inertia(touch.inverse_mass)
        self._recent = [*self._recent[-1:], time]
        corrected, mass = bool(said.corrected[0]) or made.corrected, 1 / max(touch.inverse_mass, 1e-9)
        event = ImpactEvent(time, contact.point, "learned", corrected, pre, pre + made.change, "", made.impulse, mass)
        self.log.append(event)

    def _asked(self, strikes: Strikes, touch: Touch) -> tuple[Guarded, str]:
        """What the model says of this strike with the scene's striker, and why that is of no use; empty if it is."""
        nothing = np.zeros(1, dtype=bool)
        if not touch.planar:
            return Guarded(strikes.target_velocity, nothing, nothing), "hit from above or below"
        said, frames = self.impact_model.predict(strikes), contact_frames(self.scene, strikes)
        if not said.known[0]:
            return Guarded(said.post, nothing, nothing), "outside what the model has learned"
        if absurd(self.scene, strikes, frames, said.post)[0]:
            return Guarded(said.post, nothing, nothing), "the model's answer is no velocity that an impact gives"
        return guard(self.scene, strikes, frames, said.post), ""

    def _refusal(self, data: mujoco.MjData, pair: Pair, contact: _Contact, time: float) -> str:
        """Why this is no impact that a planar model can know of; empty if it may be."""
        if abs(contact.normal[2]) > STEEP:
            return "hit from above or below"
        if data.xmat[pair.target, 8] < np.sqrt(1 - STEEP**2):
            return "the target has tipped over"
        if contact.closing < SLOW * self.scene.speed[0]:
            return "slow: a push"
        if len(self._recent) == 2 and time - self._recent[0] < CHATTER:
            return "third touch in a row: a push"
        return ""

    def _check_inertia(self, inverse_mass: float) -> None:
        """Say, once, that the striker is not as heavy as the one that the model has learned with."""
        learned = self.scene.striker_mass
        if not self._warned and self.scene.mass * abs(inverse_mass - 1 / learned) > SAME_INERTIA:
            self._warned = True
            mass = f"{1 / max(inverse_mass, 1e-9):.3g} kg at the contact, the scene's {learned:.3g} kg"
            words = "restitution and the direction of the impulse are as learned, its size follows the former"
            warnings.warn(f"the striker weighs {mass}: {words}", stacklevel=4)


def _advance(model: mujoco.MjModel, data: mujoco.MjData, time: float) -> None:
    """Advance by `time` [s] from where `mj_step1` has been called."""
    model.opt.timestep = time
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        mujoco.mj_step(model, data)  # the one integrator that cannot go on from mj_step1
    else:
        mujoco.mj_step2(model, data)


def _twist(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> tuple[Array, Array]:
    """Angular and linear velocity of a body's frame in the world [3], [3] [rad/s, m/s]."""
    both = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, both, 0)
    return both[:3], both[3:]


def _velocity(model: mujoco.MjModel, data: mujoco.MjData, body: int, point: Array) -> Array:
    """Velocity of points [..., 3] of a body in the world [m/s]."""
    angular, linear = _twist(model, data, body)
    return np.asarray(linear + np.cross(angular, point - data.xpos[body]))


def _strikes(model: mujoco.MjModel, data: mujoco.MjData, pair: Pair) -> Strikes:
    """Both bodies as they touch, as one strike."""

    def pose(body: int) -> list[float]:
        return [*data.xpos[body, :2], np.arctan2(data.xmat[body, 3], data.xmat[body, 0])]

    rotation = data.xmat[pair.target].reshape(3, 3)
    centre = _velocity(model, data, pair.target, data.xpos[pair.target] + rotation @ pair.com)
    spin = _twist(model, data, pair.target)[0][2]
    angular, linear = _twist(model, data, pair.striker)
    lean = pitch_and_roll(data.xquat[pair.striker])
    posture = [data.xpos[pair.striker, 2], *lean, linear[2]]
    rows = (pose(pair.target), [*centre[:2], spin], pose(pair.striker), [*linear[:2], angular[2]], posture)
    return Strikes(*(np.array([row]) for row in rows))
