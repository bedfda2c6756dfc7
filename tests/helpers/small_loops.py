"""Loops in small: what takes seconds in each step is cut, the steps are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import yaml

from carom.loop import LoopConfig

STRIKES = """format: carom-loop/1
task: strikes
scene: square
reality: resin-low
rounds: {rounds}
recordings: 3
held_out: 8
method: {method}
trials: 2
seed: 1
"""

PUSHES = """format: carom-loop/1
task: pushes
scene: planar-cube
reality: laminate
rounds: {rounds}
recordings: 4
held_out: 3
method: {method}
trials: 3
draws: 2
training: {{steps: 64, later_steps: 64}}
tuning: {{budget: 16, parameters: [ground_friction, mass_scale, actuator_delay]}}
seed: 1
"""


def strikes(rounds: int = 1, method: str = "infogap") -> LoopConfig:
    """A small loop on strikes."""
    return LoopConfig.model_validate(yaml.safe_load(STRIKES.format(rounds=rounds, method=method)))


def pushes(rounds: int = 1, method: str = "random") -> LoopConfig:
    """A small loop on pushes. At random: a policy of one update moves no block."""
    return LoopConfig.model_validate(yaml.safe_load(PUSHES.format(rounds=rounds, method=method)) | {"residual": True})


@contextmanager
def quick_strikes() -> Iterator[None]:
    """Students that learn little, and plans from few tries: no test asks how good they are."""
    from carom.learn.impact import student

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(student, "SMALL", replace(student.SMALL, steps=20)))
        stack.enter_context(mock.patch.object(student, "SPREAD_STEPS", 20))
        stack.enter_context(mock.patch.object(student, "SAMPLES", 600))
        stack.enter_context(mock.patch("carom.loop.strikes.BUDGET", 60))
        yield
