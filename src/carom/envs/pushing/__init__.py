"""Pushing in a closed loop: the task, a batch of it over any engine, and its environments.

For Stable-Baselines3 there is `carom.envs.pushing.vector`; import it yourself, as it needs that library.
"""

from carom.envs.pushing.batch import Draws, Pushes, PushingBatch, PushOutcome
from carom.envs.pushing.starts import Goals, Places, Zone
from carom.envs.pushing.task import PushingTask, pushing_task

__all__ = ["Draws", "Goals", "Places", "PushOutcome", "Pushes", "PushingBatch", "PushingTask", "Zone", "pushing_task"]
