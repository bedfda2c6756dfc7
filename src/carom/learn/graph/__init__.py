"""The graph simulator: rigid contact of several convex bodies, learned from an engine and differentiable throughout."""

from carom.learn.graph.correct import Corrected, corrected, fine_tuned, refuse_unfit
from carom.learn.graph.dynamics import GraphNetwork
from carom.learn.graph.engine import GraphEngine, Track, in_graph
from carom.learn.graph.model import PRESETS, GraphModel, load_graph, new_network
from carom.learn.graph.run import GraphTraining, train_graph
from carom.learn.graph.training import Recipe, Stage

__all__ = [
    "PRESETS",
    "Corrected",
    "GraphEngine",
    "GraphModel",
    "GraphNetwork",
    "GraphTraining",
    "Recipe",
    "Stage",
    "Track",
    "corrected",
    "fine_tuned",
    "in_graph",
    "load_graph",
    "new_network",
    "refuse_unfit",
    "train_graph",
]
