"""Carom: a simulator you can trust, from a MuJoCo scene and ten recordings of contact.

What the commands do is in `carom.recipes`; the parts they are made of lie one level below, each in its package.
"""

from carom import recipes
from carom.core.errors import CaromError
from carom.core.version import __version__
from carom.state import Impacts, Strikes

__all__ = ["CaromError", "Impacts", "Strikes", "__version__", "recipes"]
