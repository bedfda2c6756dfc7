"""What the loop needs to know of a kind of task: how to tune, to train, to deploy, and what to show.

The loop itself knows neither pushes nor strikes. Each step gets a folder to write into and gives back facts; both
depend on the loop's settings and on earlier steps alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from carom.core.progress import Progress
from carom.loop.config import LoopConfig
from carom.loop.steps import Facts, Round
from carom.recipes.result import command
from carom.report import Section, Step
from carom.train.infogap import fading

RECORDINGS = "recordings"  #: folder inside a deployment
HELD_OUT = "held-out"  #: folder beside the rounds


class LoopTask(ABC):
    """One kind of task."""

    def __init__(self, config: LoopConfig, out: Path) -> None:
        self.config, self.out = config, out

    @property
    @abstractmethod
    def by_person(self) -> bool:
        """Whether a person carries out what is to be recorded."""

    @property
    @abstractmethod
    def stand_in(self) -> bool:
        """Whether reality is one of Carom's stand-ins: tables say so, and trials cost nothing."""

    @abstractmethod
    def hold_out(self, folder: Path, count: int, seed: int) -> Path:
        """Record what is only measured with, before the first round."""

    @abstractmethod
    def tune(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """Step 1: parameters from all recordings so far; in the first round there are none."""

    @abstractmethod
    def train(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """Step 2: what is to be done in reality, and the information term's weight."""

    @abstractmethod
    def deploy(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """Step 3: do it, and record it."""

    @abstractmethod
    def sections(self, rounds: Sequence[Round]) -> list[Section]:
        """The figures of finished rounds, for the report."""

    @abstractmethod
    def next_steps(self, rounds: Sequence[Round]) -> list[Step]:
        """What to do with the result."""

    def weight(self, now: Round) -> float:
        """The information term's weight: `information` times the gap, relative to the first one that was measured."""
        if self.config.method not in ("infogap", "ensemble") or not now.earlier:
            return 0.0
        every = [*now.earlier[1:], now]  # nothing was tuned in the first round
        return self.config.information * fading([r.facts("tune")["gap"][self.config.estimator] for r in every])

    def recordings(self, now: Round) -> list[Path]:
        """What was recorded in the rounds before this one, oldest first."""
        return [r.place("deploy") / RECORDINGS for r in now.earlier]

    @property
    def held_out(self) -> Path | None:
        """The recordings that are only measured with; None: there are none."""
        return self.out / HELD_OUT if self.config.held_out else None

    def checks(self, now: Round) -> str:
        """The command that looks a deployment's recordings over."""
        return command("check", now.place("deploy") / RECORDINGS)
