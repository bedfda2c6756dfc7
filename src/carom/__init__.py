"""Carom: a simulator you can trust, from a MuJoCo scene and ten recordings of contact.

`from carom import recipes` gives what the commands do; the parts they are made of lie one level below, in packages.
"""

from carom.core.errors import CaromError
from carom.core.version import __version__
from carom.state import Impacts, Motion, SceneState, Strikes

__all__ = ["CaromError", "Impacts", "Motion", "SceneState", "Strikes", "__version__"]
