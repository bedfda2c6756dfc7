"""The graph simulator: rigid contact of several convex bodies, learned from an engine and differentiable throughout."""

from carom.learn.graph.dynamics import GraphNetwork
from carom.learn.graph.engine import GraphEngine, Track
from carom.learn.graph.model import GraphModel, load_graph, new_network
from carom.learn.graph.run import GraphTraining, train_graph
from carom.learn.graph.training import Recipe, Stage

__all__ = [
    "GraphEngine",
    "GraphModel",
    "GraphNetwork",
    "GraphTraining",
    "Recipe",
    "Stage",
    "Track",
    "load_graph",
    "new_network",
    "train_graph",
]
