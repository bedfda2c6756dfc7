"""Impacts sampled from a simulator in batches, and the network that learns them: `f(S_pre, P) -> S_post`."""

from carom.distill.files import load_bases
from carom.distill.model import PRESETS, BaseModel
from carom.distill.run import Distilled, distill

__all__ = ["PRESETS", "BaseModel", "Distilled", "distill", "load_bases"]
