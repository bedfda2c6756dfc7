"""Planar sliding on a pressure patch: what a struck target does on the ground until it rests.

MuJoCo holds a body up at a few points, and takes spin from it as if all its weight stood there. Here Coulomb friction
acts at every point of the base against that point's own slip, so that glide and spin share one friction: a spinning
body glides further, a gliding one spins longer. Integrated in torch: thousands of bodies at once, and differentiable
in their poses and velocities, in friction and in the size of the patch. Where only the end counts, and a table has been
made of this slider's, it is read off (`slide_table.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from carom.core.constants import GRAVITY
from carom.core.errors import SceneError
from carom.engines.patch import patch_of
from carom.engines.slide_table import Rests, SlideTable
from carom.scenes.strike import StrikeScene
from carom.state import Array, rotate

STEP = 0.5  #: of each Runge-Kutta step, as a share of the time in which the body would stop: off by 0.1 mm at most
TURN = 0.7  #: [rad] largest turn in one step: an outline's friction depends on which way it looks
TAIL = 0.03  #: share of the first speed from where the last stretch, a thousandth of the way, is braked evenly
STILL = 1e-6  #: [m/s] a body slower than this rests
MOST_STEPS = 1000
CHUNK = 2048  #: bodies worked on together: what fits into a cache


class Slide(NamedTuple):
    """Slides of N bodies, on each one's own grid of S instants; poses are of the centre of mass."""

    time: torch.Tensor  #: [N, S] since the start [s]; the last is at rest
    pose: torch.Tensor  #: [N, S, 3] x, y, yaw, not wrapped [m, m, rad]
    velocity: torch.Tensor  #: [N, S, 3] vx, vy, wz, world [m/s, m/s, rad/s]


@dataclass(frozen=True)
class Slider:
    """A body's base on the ground: where its weight rests, and how it rubs."""

    points: Array  #: [Q, 2] that carry equal shares of the weight, from the centre of mass, body frame [m]
    cell: float  #: distance between neighbours [m]: slip is averaged over it
    gyration: float  #: radius of gyration about the vertical [m]
    friction: float  #: Coulomb friction between body and ground, at rest [1]
    viscosity: float = 0.0  #: by which it grows with the slip [s/m]
    gravity: float = GRAVITY  #: [m/s^2]
    offset: tuple[float, float] = (0.0, 0.0)  #: of the actual centre of mass from the declared one, body frame [m]
    table: SlideTable | None = field(
        default=None, repr=False, compare=False
    )  #: of its ends; one that does not fit goes

    def __post_init__(self) -> None:
        if self.table is not None and not self.table.fits(self):
            object.__setattr__(self, "table", None)

    def scaled(self, size: float) -> Slider:
        """The same base with its weight further out (size > 1) or in."""
        return replace(self, points=size * self.points, cell=size * self.cell)

    def acceleration(self, yaw: torch.Tensor, velocity: torch.Tensor, grip: torch.Tensor) -> torch.Tensor:
        """Acceleration [N, 3] by the ground at yaw [N] and velocity [N, 3], with friction times gravity `grip` [N].

        The square of the slip at a point is a quadratic form in (1, x, y), and so are force and torque once the slip
        is known: two small matrix products and one square root per point.
        """
        out, back, rates, _ = self._constants
        c, s = torch.cos(yaw), torch.sin(yaw)
        vx, vy = c * velocity[:, 0] + s * velocity[:, 1], c * velocity[:, 1] - s * velocity[:, 0]
        spin = velocity[:, 2]
        state = torch.stack([vx * vx + vy * vy + 1e-18, 2 * spin * vy, -2 * spin * vx, spin * spin], dim=-1)
        inverse = (state @ out).clamp_min(1e-18).rsqrt()
        one, x, y, square = (inverse @ back).unbind(-1)
        fx, fy = vx * one - spin * y, vy * one + spin * x
        torque = vy * x - vx * y + spin * square
        pull = torch.stack([c * fx - s * fy, s * fx + c * fy, torque / self.gyration**2], dim=-1)
        drag = -grip[:, None] * pull
        return drag - velocity * rates if self.viscosity else drag

    @cached_property
    def _constants(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """What does not change from step to step, made once: small batches spend their time on it.

        From (v^2, 2 w vy, -2 w vx, w^2) to squared slip at the points [4, Q]; from 1/slip to its moments [Q, 4];
        rates [3] [1/s] of friction that grows with the slip; scale [3] of (vx, vy, wz) in a speed.
        """
        x, y = torch.as_tensor(self.points, dtype=torch.float64).T
        square, one = x * x + y * y, torch.ones(len(self.points), dtype=torch.float64)
        out = torch.stack([one, x, y, square + self.cell**2 / 12])
        spread = float((self.points**2).sum(axis=1).mean()) + self.cell**2 / 12
        rates = torch.tensor([1.0, 1.0, spread / self.gyration**2], dtype=torch.float64) * self.gravity * self.viscosity
        scale = torch.tensor([1.0, 1.0, self.gyration], dtype=torch.float64)
        return out, torch.stack([one, x, y, square], dim=-1) / len(x), rates, scale

    def speed(self, velocity: torch.Tensor) -> torch.Tensor:
        """|(vx, vy, k wz)| [N] [m/s]: the root of twice the kinetic energy per mass."""
        return torch.sqrt(((velocity * self._constants[3]) ** 2).sum(-1) + 1e-24)

    def slide(
        self,
        pose: torch.Tensor,
        velocity: torch.Tensor,
        *,
        friction: torch.Tensor | None = None,
        step: float = STEP,
        tail: float = TAIL,
    ) -> Slide:
        """Slide to rest from poses and velocities [N, 3] of the declared centre of mass; `friction` [N] may be given.

        Runge-Kutta of order four, with steps that shrink as the body slows: its way to rest is alike at every speed.
        """
        grip = pose.new_full((len(pose),), self.friction) if friction is None else friction
        grip = grip * self.gravity
        (q, v), t = self._moved(pose, velocity, 1.0), torch.zeros_like(grip)
        slow = torch.clamp_min(tail * self.speed(v).detach(), STILL)
        knots = [(t, q, v)]
        for _ in range(MOST_STEPS):
            now = self.speed(v).detach()
            moving = now > slow
            if not bool(moving.any()):
                break
            stopping = now / (grip.detach() + self.gravity * self.viscosity * now)
            h = torch.minimum(step * stopping, TURN * step / STEP / v[:, 2].detach().abs().clamp_min(1e-9))
            h = torch.where(moving, h, torch.zeros_like(h))
            q, v = self._runge_kutta(q, v, grip, h[:, None])
            t = t + h
            knots.append((t, q, v))
        brake = self.acceleration(q[:, 2], v, grip)
        slowing = -(brake * v * self._constants[3] ** 2).sum(-1) / self.speed(v)
        stop = self.speed(v) / slowing.clamp_min(1e-9)
        knots.append((t + stop, q + v * stop[:, None] / 2, torch.zeros_like(v)))
        time, poses, velocities = (torch.stack(column, dim=1) for column in zip(*knots, strict=True))
        return Slide(time, *self._moved(poses, velocities, -1.0))

    def rests(self, pose: Array, velocity: Array) -> Rests:
        """Where slides from poses and velocities [N, 3] of the declared centre of mass end: read off, or integrated."""
        if self.table is None:
            return self._integrated(pose, velocity)
        arm = rotate(np.array(self.offset), pose[:, 2])
        start, going = pose.copy(), velocity.copy()
        start[:, :2] += arm
        going[:, :2] += velocity[:, 2:] * np.stack([-arm[:, 1], arm[:, 0]], axis=-1)
        found, known = self.table.rests(start, going, self.friction * self.gravity)
        found.pose[:, :2] -= rotate(np.array(self.offset), found.pose[:, 2])
        if not known.all():
            rows = np.flatnonzero(~known)
            found.pose[rows], found.time[rows] = self._integrated(pose[rows], velocity[rows])
        return found

    def _integrated(self, pose: Array, velocity: Array) -> Rests:
        poses, times = np.empty((len(pose), 3)), np.empty(len(pose))
        with torch.no_grad():
            for low in range(0, len(pose), CHUNK):
                rows = slice(low, low + CHUNK)
                slide = self.slide(torch.as_tensor(pose[rows]), torch.as_tensor(velocity[rows]))
                poses[rows], times[rows] = slide.pose[:, -1].numpy(), slide.time[:, -1].numpy()
        return Rests(poses, times)

    def ends(self, pose: torch.Tensor, velocity: torch.Tensor) -> torch.Tensor:
        """The poses of `rests` [N, 3], differentiable in poses and velocities [N, 3]."""
        if self.table is None:
            return self.slide(pose, velocity).pose[:, -1]
        found, known = self.table.ends(*self._moved(pose, velocity, 1.0), self.friction * self.gravity)
        found = self._moved(found, torch.zeros_like(found), -1.0)[0]
        if bool(known.all()):
            return found
        far = torch.nonzero(~known)[:, 0]
        return found.index_put((far,), self.slide(pose[far], velocity[far]).pose[:, -1])

    def _moved(self, pose: torch.Tensor, velocity: torch.Tensor, way: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Motion [..., 3] of the actual centre of mass from that of the declared one (`way` 1), or back (-1)."""
        if self.offset == (0.0, 0.0):
            return pose, velocity
        c, s, spin = torch.cos(pose[..., 2]), torch.sin(pose[..., 2]), velocity[..., 2]
        x, y = way * self.offset[0], way * self.offset[1]
        arm_x, arm_y, none = c * x - s * y, s * x + c * y, torch.zeros_like(c)
        shift = torch.stack([arm_x, arm_y, none], dim=-1)
        return pose + shift, velocity + torch.stack([-spin * arm_y, spin * arm_x, none], dim=-1)

    def advance(
        self, pose: torch.Tensor, velocity: torch.Tensor, time: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Poses and velocities [N, 3] after short times [N] [s]: one step, or the slide to rest of what stops soon."""
        grip = pose.new_full((len(pose),), self.friction * self.gravity)
        speed = self.speed(velocity)
        q, v = self._moved(pose, velocity, 1.0)
        q, v = self._moved(*self._runge_kutta(q, v, grip, time[:, None]), -1.0)
        ending = speed < 4 * time * grip
        if bool(ending.any()):
            q, v = torch.where(ending[:, None], pose, q), torch.where(ending[:, None], torch.zeros_like(v), v)
            slow = ending & (speed > STILL)
            if bool(slow.any()):
                p, u = at_times(self.slide(pose[slow], velocity[slow]), time[slow, None])
                q[slow], v[slow] = p[:, 0], u[:, 0]
        return q, v

    def _runge_kutta(
        self, q: torch.Tensor, v: torch.Tensor, grip: torch.Tensor, h: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        a1 = self.acceleration(q[:, 2], v, grip)
        v2 = v + h / 2 * a1
        a2 = self.acceleration(q[:, 2] + (h / 2 * v)[:, 2], v2, grip)
        v3 = v + h / 2 * a2
        a3 = self.acceleration(q[:, 2] + (h / 2 * v2)[:, 2], v3, grip)
        v4 = v + h * a3
        a4 = self.acceleration(q[:, 2] + (h * v3)[:, 2], v4, grip)
        return q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def slider_for(
    scene: StrikeScene,
    friction: float,
    *,
    viscosity: float = 0.0,
    size: float = 1.0,
    offset: tuple[float, float] = (0.0, 0.0),
) -> Slider:
    """The slider of a scene's target: even pressure under its outline, stretched by `size`, about its centre of mass.

    >>> from carom.scenes.strike import builtin
    >>> slider = slider_for(builtin("square"), friction=0.3)
    >>> still = torch.zeros(1, 3, dtype=torch.float64)
    >>> slide = slider.slide(still, torch.tensor([[0.6, 0.0, 0.0]], dtype=torch.float64))
    >>> round(float(slide.pose[0, -1, 0]), 5), round(0.6**2 / (2 * 0.3 * 9.81), 5)
    (0.06116, 0.06116)
    """
    patch = patch_of(scene.target)
    if patch is None:
        raise SceneError(f"scene '{scene.name}': its target does not stand on a face; a planar slider needs one")
    if not (np.isfinite(friction) and friction > 0):
        raise SceneError(f"friction with the ground: expected a positive number, got {friction}")
    slider = Slider(patch.points, patch.cell, scene.gyration_radius, float(friction), float(viscosity), offset=offset)
    return slider.scaled(size)


def at_times(slide: Slide, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Poses and velocities [N, F, 3] at times [N, F] [s] since the start: cubic between instants, held at the ends."""
    count = slide.time.shape[1]
    t = torch.minimum(times.clamp_min(0.0), slide.time[:, -1:])
    k = (torch.searchsorted(slide.time.contiguous(), t.contiguous(), right=True) - 1).clamp(0, count - 2)

    def knot(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.gather(values, 1, index[..., None].expand(-1, -1, 3))

    t0, t1 = torch.gather(slide.time, 1, k), torch.gather(slide.time, 1, k + 1)
    h = (t1 - t0)[..., None]
    s = ((t - t0)[..., None] / torch.where(h > 0, h, torch.ones_like(h))).clamp(0, 1)
    p0, p1, v0, v1 = knot(slide.pose, k), knot(slide.pose, k + 1), knot(slide.velocity, k), knot(slide.velocity, k + 1)
    rise = s * s * (3 - 2 * s)
    pose = p0 + (p1 - p0) * rise + h * (v0 * s * (1 - s) ** 2 - v1 * s * s * (1 - s))
    velocity = torch.where(times[..., None] >= slide.time[:, -1:, None], torch.zeros_like(v0), v0 + (v1 - v0) * s)
    return pose, velocity
