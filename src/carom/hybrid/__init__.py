"""The learned impact in an engine's loop: whole batches of strikes, or a step in a user's own loop."""

from carom.hybrid.learned_impact import LearnedImpact
from carom.hybrid.model import HybridModel, load_hybrid, make_hybrid, save_hybrid
from carom.hybrid.simulator import HybridSimulator
from carom.hybrid.step import HybridStep

__all__ = ["HybridModel", "HybridSimulator", "HybridStep", "LearnedImpact", "load_hybrid", "make_hybrid", "save_hybrid"]
