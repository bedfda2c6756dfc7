"""Models of impacts: distilled from engines, and corrected with a handful of recorded strikes."""

from carom.learn.impact.adapted_model import AdaptedModel, adapt
from carom.learn.impact.base_files import load_bases
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.distill import distill
from carom.learn.impact.paper import TunedModel, fine_tune
from carom.learn.impact.seen import Explanation
from carom.learn.impact.shipped import shipped_bases
from carom.learn.impact.student import Student, teach

__all__ = [
    "AdaptedModel",
    "BaseModel",
    "Explanation",
    "Student",
    "TunedModel",
    "adapt",
    "distill",
    "fine_tune",
    "load_bases",
    "shipped_bases",
    "teach",
]
