"""Errors are for people: one class to catch, and the nearest name that exists."""

from __future__ import annotations

import pytest

from carom.core.errors import CaromError, ModelError, RecordingError, SceneError, unknown_name


@pytest.mark.parametrize("kind", [RecordingError, SceneError, ModelError])
def test_every_error_is_a_carom_error(kind: type[CaromError]) -> None:
    with pytest.raises(CaromError, match=r"^what went wrong$"):
        raise kind("what went wrong")


def test_near_name_is_suggested() -> None:
    message = unknown_name("scene", "semi-cylnder", ["semi-cylinder", "square"])
    assert message == "unknown scene 'semi-cylnder' (did you mean 'semi-cylinder'?); known: semi-cylinder, square"


def test_far_name_gets_no_suggestion() -> None:
    assert unknown_name("scene", "xyz", iter(["square"])) == "unknown scene 'xyz'; known: square"
