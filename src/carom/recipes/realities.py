"""A user's own `Reality`, named on the command line as `module:Class`."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

from carom.core.errors import CaromError, unknown_name
from carom.reality import Reality
from carom.reality.push_contract import PushReality


def own_reality(name: str, *, told: str = "--on") -> Reality:
    """What `module:Class` names, made without arguments; modules of the current directory count.

    Whatever is wrong is said in one line, which begins with what the user `told` us by: no such module or class, one
    that raises, or that is no `Reality`.
    """
    made = _made(name, told)
    if not (isinstance(made, Reality) and callable(made.execute)):
        raise CaromError(
            f"{told} {name}: {type(made).__name__} is no Reality: it needs a method "
            "execute(commands, folder, *, seed) that returns the folder of recordings"
        )
    return made


def own_push_reality(name: str, *, told: str = "--on") -> PushReality:
    """The same for a reality that pushes."""
    made = _made(name, told)
    if not (isinstance(made, PushReality) and callable(made.execute) and callable(made.deploy)):
        raise CaromError(
            f"{told} {name}: {type(made).__name__} is no PushReality: it needs the methods "
            "execute(commands, folder, *, seed) and deploy(controller, tasks, folder, *, seed), which return the "
            "folder of recordings"
        )
    return made


def _made(name: str, told: str) -> object:
    """An instance of the class of this name."""
    place, _, attribute = name.partition(":")
    if not place or not attribute:
        raise CaromError(f"{told} {name}: expected module:Class, like my_robot:Robot")
    module = _imported(place, name, told)
    own = [n for n, value in vars(module).items() if inspect.isclass(value) and not n.startswith("_")]
    if not hasattr(module, attribute):
        raise CaromError(f"{told} {name}: {unknown_name('class', attribute, own)}")
    made_by = getattr(module, attribute)
    if not inspect.isclass(made_by):
        raise CaromError(f"{told} {name}: expected a class, got a {type(made_by).__name__}")
    try:
        made = made_by()
    except Exception as error:
        raise CaromError(
            f"{told} {name}: {attribute}() raised {_line(error)}; it is called without arguments"
        ) from error
    return made


def _imported(place: str, name: str, told: str) -> ModuleType:
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):  # it is there; what it imports is not
            raise CaromError(f"{told} {name}: importing {place} raised {_line(error)}") from error
        close = difflib.get_close_matches(place, [path.stem for path in Path.cwd().glob("*.py")], n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise CaromError(
            f"{told} {name}: no module '{place}'{hint} in the current directory or on PYTHONPATH"
        ) from error
    except Exception as error:
        raise CaromError(f"{told} {name}: importing {place} raised {_line(error)}") from error
    finally:
        if added:
            sys.path.remove(here)


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
