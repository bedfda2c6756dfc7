"""The graph simulator corrected with a handful of real tosses: a few numbers with priors, not its weights.

Parameters of the contact may be a little other than what was calibrated in another engine, and the four coefficients of
every impulse a little off. How much, the recordings say: frames count as far as they can be predicted, and left-out
recordings decide how wide the prior is, "no correction at all" included. CLASH's way with strikes, a few steps of
gradient descent on the weights, stands beside it (`fine_tuned`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.identify.levenberg_marquardt import Damping, descend_all
from carom.identify.tosses.predict import MotionModel, shaken
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.simulate import Starts
from carom.learn.graph.conditions import CONDITIONS, NUDGES, corrected_world
from carom.learn.graph.dynamics import Moving, World
from carom.learn.graph.engine import GraphEngine
from carom.learn.graph.model import ALIKE, GraphModel
from carom.learn.graph.rollout import moving_of
from carom.learn.graph.turning import matrices_of, turned_by

#: standard deviations of the priors: logarithms of factors, then what is added to the network's four coefficients
PRIOR = {"friction": 0.1, "face_friction": 0.1, "stiffness": 0.3, "damping": 0.2}
PRIOR |= dict(zip(NUDGES, (0.2, 0.03, 0.5, 0.5), strict=True))
WIDTHS = (0.3, 1.0)  #: of the priors, tried beside no correction
FARTHEST = 4.0  #: standard deviations
STEPS = 8  #: of Levenberg-Marquardt
TRIED = 0.02  #: standard deviations of a step for derivatives
SHAKES = 12  #: starts that tell how well each frame can be predicted
FLOOR = 0.01  #: of the width, and radians: nothing is predicted better than this
BLIND = 0.5  #: frames that the scatter of starts moves by more than this say nothing
IN_A_ROW = 8.0  #: frames that say the same
TUNED, RATE = 10, 1e-3  #: steps of CLASH's fine-tuning, and their rate


@dataclass(frozen=True)
class Corrected:
    """A corrected graph simulator, and how it did on left-out recordings."""

    model: GraphModel
    width: float  #: of the priors, over those that stand here; 0: no correction did best
    left_out: Mapping[float, float]  #: mean error of left-out recordings by that width, in standard deviations

    @property
    def words(self) -> str:
        """What was done, for a reader."""
        if self.width == 0.0:
            return "none: left-out recordings are predicted best without"
        words = []
        for name, value in self.model.correction.items():
            words.append(f"{name} times {np.exp(value):.3g}" if name in CONDITIONS else f"{name} {value:+.2g}")
        return "; ".join(words)


def corrected(learned: GraphModel, calibrated: MotionModel, motions: Motions) -> Corrected:
    """Correct a graph simulator with recordings whose heavy sides are known; the calibration's values are its own."""
    refuse_unfit(learned, motions, tuple(calibrated.values))
    learned = replace(learned, correction={})  # a former correction gives way to this one
    seen = _Seen.of(learned, calibrated, motions)
    folds = [] if len(motions) < 2 else [np.arange(len(motions)) != n for n in range(len(motions))]
    kept = np.array([*folds, np.ones(len(motions), dtype=bool)])
    widths = WIDTHS if folds else WIDTHS[:1]
    weight = torch.as_tensor(np.tile(kept, (len(widths), 1)), dtype=torch.float64)
    weight = torch.cat([weight, torch.ones(len(weight), 1, dtype=torch.float64)], dim=1)
    spread = torch.as_tensor(np.repeat(widths, len(kept)))[:, None] * torch.tensor(list(PRIOR.values()))
    spread = spread.to(torch.float64)

    def linearised(unit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return seen.linearised((2 * unit - 1) * FARTHEST * spread, spread, 2 * FARTHEST * spread)

    begin = torch.full((len(weight), len(PRIOR)), 0.5, dtype=torch.float64)
    found = descend_all(linearised, begin, Damping(3.0, 4.0, farthest=0.25), steps=STEPS, weight=weight)
    unknown = (2 * found.unit - 1) * FARTHEST * spread
    best, errors = 0.0, {}
    if folds:
        none = seen.errors(torch.zeros(1, len(PRIOR), dtype=torch.float64))[0]
        errors[0.0] = float(none.mean())
        every = seen.errors(unknown)
        for number, width in enumerate(widths):
            rows = slice(number * len(kept), number * len(kept) + len(folds))
            errors[width] = float(every[rows].diagonal().mean())
        best = min(errors, key=lambda width: errors[width])
    else:
        best = widths[0]
    values = np.zeros(len(PRIOR)) if best == 0.0 else unknown[widths.index(best) * len(kept) + len(kept) - 1].numpy()
    correction = dict(zip(PRIOR, values.tolist(), strict=True))
    return Corrected(replace(learned, correction=correction), best, errors)


def refuse_unfit(learned: GraphModel, motions: Motions, names: Sequence[str]) -> None:
    """Raise unless a graph simulator can be corrected with these recordings, and takes these parameters."""
    if learned.network.preset != "default":
        raise CaromError(f"a graph simulator of the preset `{learned.network.preset}` cannot be corrected")
    if abs(learned.step / motions.period - 1) > ALIKE:
        raise CaromError(
            f"the graph simulator has a step of {1e3 * learned.step:.6g} ms and the recordings one sample in "
            f"{1e3 * motions.period:.6g} ms; train it on data of `carom scale --rate {1 / motions.period:.6g}`"
        )
    GraphEngine(learned, motions.scene, names)


def fine_tuned(learned: GraphModel, calibrated: MotionModel, motions: Motions, *, steps: int = TUNED) -> GraphModel:
    """CLASH's way: a few steps of gradient descent on all weights, here through the recordings' own rollouts."""
    seen = _Seen.of(learned, calibrated, motions)
    network = seen.engine.network.requires_grad_(True)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    for _ in range(steps):
        optimiser.zero_grad()
        residual = seen.residual(seen.world, seen.now)
        loss = (torch.sqrt(1 + residual**2) - 1).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
    return replace(learned, network=network.to(torch.float32).requires_grad_(False))


@dataclass(frozen=True)
class _Seen:
    """Recordings as the network's rollouts are held against them."""

    engine: GraphEngine
    world: World
    now: Moving
    position: torch.Tensor  #: [N, T, B, 3] of the bodies' frames
    rotation: torch.Tensor  #: [N, T, B, 3, 3]
    width: torch.Tensor  #: [B] [m]
    weight: torch.Tensor  #: [N, T - 1, B] of a frame's residuals: 0 where nothing was measured

    @classmethod
    def of(cls, learned: GraphModel, calibrated: MotionModel, motions: Motions) -> _Seen:
        scene, names = motions.scene, tuple(calibrated.values)
        engine = GraphEngine(learned, scene, names)
        world, now = _opened(engine, calibrated.values, motions.starts)
        measured = np.isfinite(motions.quaternion[..., 0])
        whole = np.where(measured[..., None], motions.quaternion, [1.0, 0.0, 0.0, 0.0])
        place = np.where(np.isfinite(motions.position), motions.position, 0.0)
        seen = cls(
            engine,
            world,
            now,
            engine.tensor(place),
            matrices_of(engine.tensor(whole)),
            engine.tensor(scene.widths),
            engine.tensor(measured[:, 1:].astype(float)),
        )
        scatter = seen._scatter(calibrated.values, motions)
        sure = seen.weight * (scatter < BLIND)
        return replace(seen, weight=sure / torch.sqrt(IN_A_ROW * (scatter**2 + FLOOR**2)))

    def _scatter(self, values: Mapping[str, float], motions: Motions) -> torch.Tensor:
        """How far frames [N, T - 1, B] are moved by the uncertainty of starts, over the width and in radians."""
        count = len(motions)
        noise = np.random.default_rng(0).normal(size=(SHAKES * count, len(motions.scene.bodies), 9))
        starts = shaken(motions.starts[np.tile(np.arange(count), SHAKES)], noise)
        world, now = _opened(self.engine, values, starts)
        with torch.no_grad():
            off = self._off(world, now, np.tile(np.arange(count), SHAKES))
        spread = off.reshape(SHAKES, count, *off.shape[1:]).std(dim=0)
        return torch.sqrt((spread**2).mean(dim=-1))

    def _off(self, world: World, now: Moving, rows: NDArray[np.integer]) -> torch.Tensor:
        """Simulated less measured [K, T - 1, B, 6]: places over the width, angles [rad]."""
        place, turned = self.engine.followed(world, now, self.position.shape[1] - 1)
        index = torch.as_tensor(rows)
        away = (place[:, 1:] - self.position[index, 1:]) / self.width[:, None]
        angle = turned_by(turned[:, 1:] @ self.rotation[index, 1:].transpose(-1, -2))
        return torch.cat([away, angle], dim=-1)

    def residual(self, world: World, now: Moving) -> torch.Tensor:
        """Weighed differences [K, R] of rollouts; K is a multiple of the number of recordings."""
        rows = np.tile(np.arange(len(self.position)), len(world.solids) // len(self.position))
        return (self._off(world, now, rows) * self.weight[torch.as_tensor(rows)][..., None]).flatten(1)

    def told(self, unknown: torch.Tensor) -> tuple[World, Moving]:
        """Worlds and starts of all recordings, for each set of unknowns [S, A]."""
        count, sets = len(self.position), len(unknown)
        rows = torch.arange(count).repeat(sets)
        world = self.world[rows]
        wide = unknown.repeat_interleave(count, dim=0).to(world.conditions.dtype)
        world = corrected_world(world, dict(zip(PRIOR, wide.unbind(-1), strict=True)))
        now = Moving(*(getattr(self.now, n)[rows] for n in ("position", "rotation", "velocity", "spin")))
        return world, now

    @torch.no_grad()
    def errors(self, unknown: torch.Tensor) -> torch.Tensor:
        """Errors [S, N] of each recording: pseudo-Huber, in the mean over frames that can be predicted."""
        every = self.residual(*self.told(unknown)).double().reshape(len(unknown), len(self.position), -1)
        # one wild frame is no worse than a few standard deviations
        return (torch.sqrt(1 + every**2) - 1).sum(-1) / (self.weight > 0).flatten(1).sum(-1).clamp_min(1)

    @torch.no_grad()
    def linearised(
        self, unknown: torch.Tensor, spread: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Residuals [S, N + 1, R] of the recordings and of the prior, and derivatives [.., A] in steps of `scale`."""
        sets, many = unknown.shape
        moved = unknown[:, None] + torch.cat([torch.zeros(1, many), TRIED * torch.eye(many)]) * spread[:, None]
        every = self.residual(*self.told(moved.flatten(0, 1))).double()
        every = every.reshape(sets, many + 1, len(self.position), -1)
        every = torch.nn.functional.pad(every, (0, max(many - every.shape[-1], 0)))
        slope = (every[:, 1:] - every[:, :1]) / (TRIED * spread)[:, :, None, None] * scale[:, :, None, None]
        prior = torch.zeros(sets, 1, every.shape[-1], dtype=torch.float64)
        prior[:, 0, :many] = unknown / spread
        own = torch.zeros(sets, 1, every.shape[-1], many, dtype=torch.float64)
        own[:, 0, :many] = torch.diag_embed(scale / spread)
        return torch.cat([every[:, 0], prior], dim=1), torch.cat([slope.movedim(1, -1), own], dim=1)


def _opened(engine: GraphEngine, values: Mapping[str, float], starts: Starts) -> tuple[World, Moving]:
    """World and state of some starts."""
    told = {name: np.full(len(starts), value) for name, value in values.items()}
    if "com_offset" in told:
        told["com_offset"] = starts.offsets(told["com_offset"])
    world = engine.world(told, len(starts))
    return world, moving_of(engine, world, starts.state(engine.scene, told))
