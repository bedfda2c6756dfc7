"""What to do so that a body ends where it is wanted: strikes, their search, commands for a robot; pushes."""

from carom.plan.push_tasks import PushTasks, push_scene, push_tasks
from carom.plan.pushes import PushPlan, plan_pushes
from carom.plan.search import Plan, plan_strike
from carom.plan.space import StrikeSpace, approach, strike_space

__all__ = [
    "Plan",
    "PushPlan",
    "PushTasks",
    "StrikeSpace",
    "approach",
    "plan_pushes",
    "plan_strike",
    "push_scene",
    "push_tasks",
    "strike_space",
]
