"""Loops in small: what takes seconds in each step is cut, the steps are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

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
