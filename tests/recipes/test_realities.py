"""A user's own `Reality`, named as `module:Class`: taken as it is, or refused in one line that says what is wrong."""

from __future__ import annotations

import sys

import pytest

from carom.core.errors import CaromError
from carom.recipes.realities import own_push_reality, own_reality

MODULE = """
class Robot:
    def execute(self, commands, folder, *, seed):
        return folder

class Pusher(Robot):
    def deploy(self, controller, tasks, folder, *, seed):
        return folder

class Asks(Robot):
    def __init__(self, address):
        pass

class Nothing:
    pass

SPEED = 1.0
"""


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """A folder with a user's modules, as the current one."""
    (tmp_path / "my_own_robot.py").write_text(MODULE)
    (tmp_path / "my_broken_robot.py").write_text("import no_such_driver")
    monkeypatch.chdir(tmp_path)
    yield
    for name in ("my_own_robot", "my_broken_robot"):
        sys.modules.pop(name, None)


def test_a_class_of_the_current_directory_is_a_reality():
    assert type(own_reality("my_own_robot:Robot")).__name__ == "Robot"
    assert type(own_push_reality("my_own_robot:Pusher")).__name__ == "Pusher"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_own_robot:", "expected module:Class, like my_robot:Robot"),
        ("my_own_robt:Robot", r"no module 'my_own_robt' \(did you mean 'my_own_robot'\?\) in the current directory"),
        ("my_own_robot:Robto", r"unknown class 'Robto' \(did you mean 'Robot'\?\)"),
        ("my_own_robot:SPEED", "expected a class, got a float"),
        ("my_own_robot:Asks", r"Asks\(\) raised TypeError: .*; it is called without arguments"),
        ("my_own_robot:Nothing", r"Nothing is no Reality: it needs a method execute\(commands, folder, \*, seed\)"),
        ("my_broken_robot:Robot", "importing my_broken_robot raised ModuleNotFoundError: .*no_such_driver"),
    ],
)
def test_what_is_no_reality_is_refused(name, said):
    with pytest.raises(CaromError, match=rf"^--on {name}: .*{said}") as refused:
        own_reality(name)
    assert "\n" not in str(refused.value)


def test_a_reality_that_cannot_push_is_refused():
    with pytest.raises(CaromError, match="Robot is no PushReality: it needs the methods execute"):
        own_push_reality("my_own_robot:Robot")
