"""Constants of nature, and units that files may be written in."""

import math

GRAVITY = 9.81  #: [m/s^2] where nobody states it
LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}  #: [m] in one of each unit
ANGLES = {"rad": 1.0, "deg": math.pi / 180}  #: [rad]
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}  #: [s]
