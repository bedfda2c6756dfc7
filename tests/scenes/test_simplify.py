"""Targets with fewer corners keep their mass properties."""

from __future__ import annotations

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.scenes.shapes import polygon_properties
from carom.scenes.simplify import CORNERS, reduced, simplified
from carom.scenes.strike import builtin


def test_simplified_outline_keeps_mass_properties():
    scene = builtin("semi-cylinder")
    simple = simplified(scene)
    assert len(simple.outline.vertices) == CORNERS
    assert simple.gyration_radius == pytest.approx(scene.gyration_radius)
    np.testing.assert_allclose(simple.target.planar_com, scene.target.planar_com)
    areas = [polygon_properties(s.outline.vertices)[0] for s in (simple, scene)]
    assert 0.93 < areas[0] / areas[1] < 1
    assert simplified(builtin("square")) == builtin("square")
    with pytest.raises(CaromError, match="3 or more, got 2"):
        reduced(scene.outline.vertices, 2)
