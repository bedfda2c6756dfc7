"""Data scaling: thousands of trajectories of free bodies from a calibrated engine, or rotated from recordings.

`scale` simulates, `augment` rotates, `load` reads either back as arrays.
"""

from carom.scale.around import recorded
from carom.scale.calibration import Calibration, calibration, varied
from carom.scale.reader import ScaledTrajectory, Trajectories, load
from carom.scale.rotated import augment
from carom.scale.run import Scaled, scale
from carom.scale.shapes import shapes
from carom.scale.sources import cubes, dropped, toss
from carom.scenes.solids import Variation

__all__ = [
    "Calibration",
    "Scaled",
    "ScaledTrajectory",
    "Trajectories",
    "Variation",
    "augment",
    "calibration",
    "cubes",
    "dropped",
    "load",
    "recorded",
    "scale",
    "shapes",
    "toss",
    "varied",
]
