"""Training of the graph simulator: single steps first, then through many frames, judged by rollouts it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from carom.learn.graph.dynamics import GraphNetwork, Moving, huber, twist_loss
from carom.learn.graph.examples import Frames
from carom.learn.graph.turning import turned_by

PLACE_SCALE = 0.002  #: [m] beyond which errors count in proportion, not squared
PLACE_WEIGHT = 0.3  #: of errors in poses beside those in twists
SHOWN = 512  #: frames of a group that normalisers are fitted to
WILD = 100.0  #: reaches that a body counts as being off by at most: early in a training some are thrown out
FRAMES_JUDGED = 60  #: of a held-out rollout


@dataclass(frozen=True)
class Stage:
    """So many updates through so many frames."""

    frames: int
    rows: int  #: windows in one update, for scenes of one body
    updates: int


@dataclass(frozen=True)
class Recipe:
    """How the network is trained."""

    stages: tuple[Stage, ...] = (Stage(1, 512, 1000), Stage(8, 96, 600), Stage(20, 48, 500))
    single: int = 256  #: windows of one step that are kept in the later stages
    learning_rate: float = 3e-3
    noise: float = 0.003  #: [m/s] on the twists that a window begins with
    judged_every: int = 125  #: updates
    judged: int = 100  #: held-out rollouts of a kind, at most

    @classmethod
    def of(cls, updates: int | None = None, preset: str = "default") -> Recipe:
        """The usual one of a preset, its stages with so many updates in all."""
        usual = cls() if preset == "default" else PAPER
        if updates is None:
            return usual
        stages = tuple(replace(s, updates=max(round(s.updates * updates / usual.updates), 1)) for s in usual.stages)
        return replace(usual, stages=stages)

    @property
    def updates(self) -> int:
        return sum(stage.updates for stage in self.stages)

    def stage(self, update: int) -> Stage:
        """The stage that an update belongs to."""
        for stage in self.stages:
            if update < stage.updates:
                return stage
            update -= stage.updates
        return self.stages[-1]

    def rate(self, update: int) -> float:
        """Learning rate of an update."""
        return self.learning_rate * (0.5 * (1 + float(np.cos(np.pi * update / self.updates))) + 0.01)


#: of the paper's network, in single steps: it has a hundred times the arithmetic, so what some 15 minutes allow
PAPER = Recipe(stages=(Stage(1, 32, 2500),), learning_rate=5e-4, judged_every=500, judged=20)


def window_loss(
    network: GraphNetwork, frames: Frames, picked: torch.Tensor, length: int, noise: float, rng: torch.Generator
) -> torch.Tensor:
    """What a network misses of windows [K, 2] of so many frames, in the mean."""
    row, frame = picked.unbind(-1)
    world, now = frames.world[row], frames.at(row, frame)
    lever = world.solids.gyration[..., None]
    velocity = now.velocity + noise * torch.randn(now.velocity.shape, generator=rng)
    spin = now.spin + noise / lever * torch.randn(now.spin.shape, generator=rng)
    now = replace(now, velocity=velocity, spin=spin)
    if length == 1:
        return network.step_loss(world, now, frames.at(row, frame + 1))
    loss = now.position.new_zeros(())
    for ahead in range(1, length + 1):
        now, then = network.advance(world, now).moving, frames.at(row, frame + ahead)
        loss = loss + twist_loss(world, now, then) + PLACE_WEIGHT * _place_loss(now, then, lever)
    return loss / length


def _place_loss(found: Moving, wanted: Moving, lever: torch.Tensor) -> torch.Tensor:
    apart = turned_by(found.rotation @ wanted.rotation.transpose(-1, -2)) * lever
    return huber(found.position - wanted.position, apart, PLACE_SCALE)


@dataclass
class Learner:
    """A training on its way: what a checkpoint has to hold."""

    network: GraphNetwork
    recipe: Recipe
    optimiser: torch.optim.AdamW
    rng: torch.Generator
    update: int = 0
    best: float = float("inf")
    best_weights: dict[str, torch.Tensor] | None = None

    @classmethod
    def new(cls, network: GraphNetwork, recipe: Recipe, seed: int) -> Learner:
        optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=1e-5)
        return cls(network, recipe, optimiser, torch.Generator().manual_seed(seed))

    def learn(self, groups: Sequence[Frames]) -> float:
        """One update."""
        stage = self.recipe.stage(self.update)
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.rate(self.update)
        loss = self._loss(groups, stage.frames, stage.rows)
        if stage.frames > 1:
            loss = loss + self._loss(groups, 1, self.recipe.single)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        length = torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        if bool(torch.isfinite(length)):
            self.optimiser.step()
        self.update += 1
        return float(loss.detach())

    def _loss(self, groups: Sequence[Frames], length: int, rows: int) -> torch.Tensor:
        weights = torch.tensor([float(len(g)) for g in groups])
        frames = groups[int(torch.multinomial(weights, 1, generator=self.rng))]
        windows = frames.windows(length, flight=not self.network.flies)
        count = max(rows // frames.bodies, 4)
        picked = windows[torch.randint(len(windows), (count,), generator=self.rng)]
        return window_loss(self.network, frames, picked, length, self.recipe.noise, self.rng)

    def prepare(self, groups: Sequence[Frames]) -> None:
        """Show the network some frames of each group before the first update."""
        examples = []
        for frames in groups:
            windows = frames.windows(1, flight=not self.network.flies)
            picked = windows[torch.randint(len(windows), (max(SHOWN // frames.bodies, 4),), generator=self.rng)]
            row, frame = picked.unbind(-1)
            examples.append((frames.world[row], frames.at(row, frame), frames.at(row, frame + 1)))
        self.network.prepare(examples)

    def judge(self, groups: Sequence[Frames]) -> dict[str, float]:
        """Errors of held-out rollouts; the best weights so far are kept once frames are trained through."""
        found = rollout_errors(self.network, [group[: self.recipe.judged] for group in groups])
        late = self.update > self.recipe.stages[0].updates or len(self.recipe.stages) == 1
        if late and found["error"] < self.best:
            self.best = found["error"]
            self.best_weights = {name: value.clone() for name, value in self.network.state_dict().items()}
        return found


@torch.no_grad()
def rollout_errors(network: GraphNetwork, groups: Sequence[Frames]) -> dict[str, float]:
    """Mean distance over the bodies' reach and mean angle [rad] over rollouts, and Eq. 1's sum of the two."""
    places, angles = [], []
    for frames in groups:
        every = torch.arange(len(frames))
        now = frames.at(every, torch.ones_like(every))
        for at in range(2, min(frames.position.shape[1], FRAMES_JUDGED)):
            now = network.advance(frames.world, now).moving
            off = (now.position - frames.position[:, at]).norm(dim=-1) / frames.world.solids.reach
            apart = turned_by(now.rotation @ frames.rotation[:, at].transpose(-1, -2)).norm(dim=-1)
            places.append(off.nan_to_num(WILD).clamp_max(WILD).flatten())
            angles.append(apart.nan_to_num(torch.pi).flatten())
    place, angle = float(torch.cat(places).mean()), float(torch.cat(angles).mean())
    return {"place": place, "angle": angle, "error": place + angle}
