"""Carom: a simulator you can trust, from a MuJoCo scene and ten recordings of contact."""

from carom.errors import CaromError
from carom.state import Impacts, Strikes

__version__ = "0.1.0"
__all__ = ["CaromError", "Impacts", "Strikes", "__version__"]
