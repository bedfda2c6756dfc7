"""Pushing in a closed loop: the task, a batch of it over any engine, and its environments."""

from carom.envs.pushing.starts import Goals, Places, Zone
from carom.envs.pushing.task import PushingTask, pushing_task

__all__ = ["Goals", "Places", "PushingTask", "Zone", "pushing_task"]
