"""Where slides end, read off a table: a hundredth of an integration's cost, and smooth.

Coulomb friction does not ask how fast a body is, only in which proportion it glides and spins: way and turn grow with
the square of the speed, time with the speed. What is left depends on three numbers: the direction of the glide in the
body's frame, the angle between glide and spin (turning times k), and the speed, because a body that turns shows its
friction other sides, and because friction may grow with slip. Cubic splines through integrated slides answer for the
rest. A table says up to which speed it holds; what is faster is integrated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from carom.state import Array

if TYPE_CHECKING:
    from carom.engines.slider import Slider

BEND = 1.5  #: nodes lie closer at high speeds, where little more speed means another part of a turn
CLOSE = (
    0.4  #: [rad] between glide and spin within which nodes lie closest: there a little spin decides how far it turns
)
MOST = float(np.arcsinh(np.pi / 2 / CLOSE))
FOUR = np.arange(4)
#: four weights of a uniform cubic B-spline, as polynomials of the place between two nodes [power, weight]
BASIS = np.array([[1.0, 4.0, 1.0, 0.0], [-3.0, 0.0, 3.0, 0.0], [3.0, -6.0, 3.0, 0.0], [-1.0, 3.0, -3.0, 1.0]]) / 6
SLOPE = np.array([1.0, 2.0, 3.0])[:, None] * BASIS[1:]  #: their derivatives


class Rests(NamedTuple):
    """Where slides of N bodies end."""

    pose: Array  #: [N, 3] x, y, yaw, not wrapped [m, m, rad]
    time: Array  #: [N] until they rest [s]


@dataclass(frozen=True, eq=False)
class SlideTable:
    """Ends of the slides of one base, over the glide's direction, the angle between glide and spin, and speed."""

    coefficients: NDArray[np.float32]  #: [A, B + 2, C + 2, 4] of splines: way along and across, turn, time; scaled
    points: Array  #: [Q, 2] of the base that it was made for [m]
    folds: int  #: turns by 1/folds of a circle leave the base as it is
    grip: float  #: friction times gravity that it was made with [m/s^2]
    growth: float  #: gravity times the growth of friction with slip [1/s]
    gyration: float  #: [m]
    top: float  #: highest speed |(vx, vy, k wz)| of a node [m/s]
    reach: float  #: highest speed that it answers for [m/s]

    def fits(self, slider: Slider) -> bool:
        """Whether it answers for this slider: friction may be another one if it does not grow with the slip."""
        growth, grip = slider.gravity * slider.viscosity, slider.gravity * slider.friction
        same = growth == self.growth and (growth == 0.0 or grip == self.grip)
        return bool(same and slider.gyration == self.gyration and np.array_equal(slider.points, self.points))

    def rests(self, pose: Array, velocity: Array, grip: float) -> tuple[Rests, NDArray[np.bool_]]:
        """Ends of slides from poses and velocities [N, 3] of the actual centre of mass, and which are known [N]."""
        vx, vy, spin = velocity[:, 0], velocity[:, 1], velocity[:, 2]
        glide = np.sqrt(vx * vx + vy * vy)
        turning = self.gyration * spin
        speed = np.sqrt(glide * glide + turning * turning)
        pace = speed * np.sqrt(self.grip / grip)
        place = self._place(np.arctan2(vy, vx) - pose[:, 2], np.arctan2(turning, glide), pace)
        along, across, turn, lasting = self._read(place)[0].T
        way = speed * speed / (2 * grip)
        share = way / np.maximum(glide, 1e-300)
        end = np.empty_like(velocity)
        end[:, 0] = pose[:, 0] + share * (along * vx - across * vy)
        end[:, 1] = pose[:, 1] + share * (along * vy + across * vx)
        end[:, 2] = pose[:, 2] + way / self.gyration * turn
        return Rests(end, lasting * speed / grip), pace <= self.reach

    def ends(self, pose: torch.Tensor, velocity: torch.Tensor, grip: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Poses [N, 3] at rest as `rests` has them, differentiable in poses and velocities, and which are known [N]."""
        vx, vy, spin = velocity.unbind(-1)
        glide, turning = torch.sqrt(vx * vx + vy * vy + 1e-24), self.gyration * spin
        speed = torch.sqrt(glide * glide + turning * turning)
        pace = speed * float(np.sqrt(self.grip / grip))
        start = torch.stack([torch.atan2(vy, vx) - pose[:, 2], torch.atan2(turning, glide), pace], dim=-1)
        apply: Callable[[torch.Tensor, SlideTable], torch.Tensor] = _Splines.apply
        along, across, turn, _ = apply(start, self).unbind(-1)
        way = speed * speed / (2 * grip)
        share = way / glide
        gone = [share * (along * vx - across * vy), share * (along * vy + across * vx), way / self.gyration * turn]
        return pose + torch.stack(gone, dim=-1), (pace <= self.reach).detach()

    def _place(self, direction: Array, angle: Array, pace: Array) -> Array:
        """Places [N, 3] between the nodes, counted from the first."""
        a, b, c, _ = self.coefficients.shape
        place = np.empty((len(pace), 3))
        place[:, 0] = self.folds * a / (2 * np.pi) * direction
        place[:, 1] = (b - 3) / 2 * (1 + np.arcsinh(angle / CLOSE) / MOST)
        share = np.minimum(pace / self.top, 1.0)
        place[:, 2] = (c - 3) / (1 + BEND) * share * (1 + BEND * share)
        return place

    def slopes(self, direction: Array, angle: Array, pace: Array) -> tuple[Array, Array]:
        """The splines' values [N, 4], and their derivatives [N, 4, 3] by direction, angle and speed."""
        a, b, c, _ = self.coefficients.shape
        found, *by = self._read(self._place(direction, angle, pace), slopes=True)
        rates = np.empty((len(pace), 3))
        rates[:, 0] = self.folds * a / (2 * np.pi)
        rates[:, 1] = (b - 3) / 2 / (MOST * np.sqrt(CLOSE**2 + angle**2))
        rates[:, 2] = (c - 3) / (1 + BEND) * (1 + 2 * BEND * pace / self.top) / self.top * (pace <= self.top)
        return found, np.stack(by, axis=-1) * rates[:, None]

    def _read(self, place: Array, *, slopes: bool = False) -> list[Array]:
        """Values of the splines [N, 4] at these places [N, 3], and if wanted their derivatives by each of the three."""
        a, b, c, _ = self.coefficients.shape
        node = np.floor(place)
        np.clip(node[:, 1:], 0.0, [b - 4, c - 4], out=node[:, 1:])
        between = place - node
        powers = np.stack([np.ones_like(between), between, between * between, between**3], axis=-1)
        weight, first = powers @ BASIS, node.astype(np.int64)
        row = ((first[:, :1] + (FOUR - 1)) % a)[:, :, None] * b + (first[:, 1, None] + FOUR)[:, None]
        found = self._runs[row.reshape(-1, 16) * c + first[:, 2:]]

        def summed(*weights: Array) -> Array:
            both = (weights[0][:, :, None] * weights[1][:, None, :]).reshape(-1, 1, 16).astype(np.float32)
            return np.asarray((weights[2][:, None, :] @ (both @ found).reshape(-1, 4, 4))[:, 0])

        own = [weight[:, axis] for axis in range(3)]
        if not slopes:
            return [summed(*own)]
        steep = powers[..., :3] @ SLOPE
        by = [summed(*(steep[:, i] if i == axis else own[i] for i in range(3))) for axis in range(3)]
        return [summed(*own), *by]

    @property
    def _runs(self) -> NDArray[np.float32]:
        """Four neighbours along the speed with their four values [.., 16], from every node on: a view."""
        flat, size = self.coefficients.reshape(-1), self.coefficients.itemsize
        return np.lib.stride_tricks.as_strided(flat, (flat.size // 4 - 3, 16), (4 * size, size), writeable=False)


class _Splines(torch.autograd.Function):
    """The splines of a table, differentiated in closed form."""

    @staticmethod
    def forward(ctx: Any, start: torch.Tensor, table: SlideTable) -> torch.Tensor:
        found, by = table.slopes(*start.detach().numpy().T)
        ctx.save_for_backward(torch.as_tensor(by))
        return torch.as_tensor(found)

    @staticmethod
    def backward(ctx: Any, *after: torch.Tensor) -> tuple[torch.Tensor, None]:
        (by,) = ctx.saved_tensors
        return (after[0][:, None] @ by)[:, 0], None
