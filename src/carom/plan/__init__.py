"""Strikes that bring a target where it is wanted: the search, its methods, and the commands for a robot."""

from carom.plan.search import Plan, plan_strike
from carom.plan.space import StrikeSpace, approach, strike_space

__all__ = ["Plan", "StrikeSpace", "approach", "plan_strike", "strike_space"]
