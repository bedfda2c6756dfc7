"""The graph simulator: rigid contact of several convex bodies, learned from an engine and differentiable throughout."""

from carom.learn.graph.engine import GraphEngine
from carom.learn.graph.model import GraphModel, load_graph
from carom.learn.graph.network import ImpulseNetwork, Sizes
from carom.learn.graph.run import GraphTraining, train_graph
from carom.learn.graph.training import Recipe, Stage

__all__ = [
    "GraphEngine",
    "GraphModel",
    "GraphTraining",
    "ImpulseNetwork",
    "Recipe",
    "Sizes",
    "Stage",
    "load_graph",
    "train_graph",
]
