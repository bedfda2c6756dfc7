"""The real-sim-real loop: tune the simulator, train with the information term, deploy, record, and again.

    recordings -> tune -> train -> deploy -> recordings ...

`rounds.py` is Algorithm 1; `steps.py` makes each step once; `task.py` says what a kind of task has to offer, and
`strikes.py` and `pushes.py` do.
"""

from carom.loop.config import METHODS, LoopConfig, read_config
from carom.loop.result import LoopResult
from carom.loop.rounds import loop

__all__ = ["METHODS", "LoopConfig", "LoopResult", "loop", "read_config"]
