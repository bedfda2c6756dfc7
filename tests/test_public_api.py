"""What a user imports: every name that a package promises is there, and importing Carom costs nothing."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from typing import get_type_hints

import pytest

import carom
from carom import recipes
from carom.core.errors import CaromError

PACKAGES = sorted(m.name for m in pkgutil.iter_modules(carom.__path__) if m.ispkg)
EXTRA = {"envs": "gymnasium", "train": "stable_baselines3", "recipes": "stable_baselines3"}
HEAVY = ("torch", "mujoco", "jax", "pyarrow", "sklearn", "scipy", "gymnasium", "stable_baselines3")
COMMANDS = ["adapt", "check", "demo", "distill", "evaluate", "identify", "plan", "predict", "rollout", "scale"]
COMMANDS += ["doctor", "export", "import_files", "suggest", "train", "train_graph"]


@pytest.mark.parametrize("name", ["", *PACKAGES])
def test_every_promised_name_is_there(name):
    if name in EXTRA:
        pytest.importorskip(EXTRA[name], reason="not installed: pip install carom[rl]")
    module = importlib.import_module(f"carom.{name}" if name else "carom")
    promised = getattr(module, "__all__", [])
    assert len(set(promised)) == len(promised)
    for item in promised:
        assert hasattr(module, item), f"{module.__name__}.{item}"


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("recordings", "read"),
        ("recordings", "kind_of"),
        ("scenes", "load_scene"),
        ("engines", "MujocoSimulator"),
        ("identify", "friction_from_slides"),
        ("scale", "load"),
        ("learn", "adapt"),
        ("hybrid", "load_hybrid"),
        ("plan", "plan_strike"),
        ("reality", "standin"),
        ("compare", "relative_error"),
        ("report", "write_report"),
    ],
)
def test_what_a_user_needs_lies_one_level_below(package, name):
    module = importlib.import_module(f"carom.{package}")
    assert name in module.__all__
    assert callable(getattr(module, name))


@pytest.mark.parametrize("statement", ["import carom", "import carom.recipes", "import carom.cli"])
def test_importing_is_light(statement):
    check = f"{statement}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_a_recipe_with_a_typed_result(name):
    if name in ("rollout", "train"):
        pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")
    recipe = getattr(recipes, name)
    assert callable(recipe)  # and not a module that took the function's place
    assert issubclass(get_type_hints(recipe)["return"], recipes.Result)


def test_the_command_line_has_no_other_commands():
    from carom.cli import app

    assert sorted(c.callback.__name__ for c in app.registered_commands) == sorted([*COMMANDS, "loop", "view", "bench"])


def test_a_recipe_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'fly'"):
        recipes.fly  # noqa: B018


def test_adapting_imports_nothing_that_only_others_need():
    code = "import sys, carom.recipes.adapting; print([m for m in ('sklearn', 'pyarrow.parquet') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("package", "name"), [("hybrid", "load_hybrid"), ("learn", "load_bases"), ("train", "load_policy")]
)
def test_paths_may_be_text(package, name, tmp_path):
    load = getattr(importlib.import_module(f"carom.{package}"), name)
    for place in (tmp_path, str(tmp_path)):
        with pytest.raises(CaromError, match=f"{tmp_path} holds no"):
            load(place)
