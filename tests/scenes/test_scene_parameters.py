"""Parameters: unit cube and physical values are each other's inverse, bounds are checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carom.core.errors import SceneError
from carom.scenes.parameters import KNOWN, TABLE_I, defaults, from_unit, known, to_unit, with_bounds
from carom.scenes.strike import builtin

ALL = tuple(KNOWN.values())


@given(st.lists(st.floats(0, 1), min_size=len(ALL), max_size=len(ALL)))
def test_unit_cube_round_trip(z: list[float]) -> None:
    values = from_unit(ALL, z)
    assert all(p.low * (1 - 1e-12) - 1e-12 <= v <= p.high * (1 + 1e-12) for p, v in zip(ALL, values, strict=True))
    np.testing.assert_allclose(to_unit(ALL, values), z, atol=1e-12)


@given(st.sampled_from(ALL), st.floats(0, 1), st.floats(0, 1))
def test_map_is_increasing_and_reaches_both_bounds(p: object, a: float, b: float) -> None:
    parameter = known(p.name)  # type: ignore[attr-defined]
    assert (parameter.from_unit(a) <= parameter.from_unit(b)) == (a <= b) or a == pytest.approx(b)
    np.testing.assert_allclose(parameter.from_unit([0.0, 1.0]), [parameter.low, parameter.high])


def test_logarithmic_parameters_have_their_geometric_mean_in_the_middle() -> None:
    p = with_bounds("striker_friction", (0.1, 0.9))
    assert p.from_unit(0.5) == pytest.approx(0.3)
    assert with_bounds("com_x", (-0.02, 0.04)).from_unit(0.5) == pytest.approx(0.01)


def test_every_default_lies_within_its_bounds() -> None:
    assert all(p.low <= p.default <= p.high for p in ALL)
    assert with_bounds("striker_friction", (0.5, 0.8)).default == 0.5
    assert defaults(builtin("square").parameters()).shape == (6,)


def test_a_scene_lists_contact_parameters_first_and_honours_its_bounds() -> None:
    scene = builtin("semi-cylinder")
    assert [p.name for p in scene.parameters()] == [*TABLE_I, "com_x", "com_y"]
    assert "restitution" in [p.name for p in scene.parameters("compliant")]
    with pytest.raises(SceneError, match=r"^unknown teacher 'mujco' \(did you mean 'mujoco'\?\)"):
        scene.parameters("mujco")


@pytest.mark.parametrize(
    ("name", "bounds", "message"),
    [
        ("face_widht", (0, 1), "unknown parameter 'face_widht' (did you mean 'face_width'?)"),
        ("com_x", (1, 0), "parameter 'com_x': bounds must be two numbers, lower first, got [1, 0]"),
        ("com_x", (0, np.nan), "parameter 'com_x': bounds must be two numbers, lower first, got [0, nan]"),
        ("striker_mass", (0, 1), "parameter 'striker_mass': bounds must be positive [kg], got [0, 1]"),
    ],
)
def test_wrong_bounds_are_refused(name: str, bounds: tuple[float, float], message: str) -> None:
    with pytest.raises(SceneError) as error:
        with_bounds(name, bounds)
    assert str(error.value).startswith(message)
