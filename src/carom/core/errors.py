"""The few ways in which Carom says no.

Every error a user can cause is a `CaromError`; the command line prints its message as one line and exits
with code 2. A message says what was expected, what came, and what to do.
"""

import difflib
from collections.abc import Iterable

MOST_NAMES, LONGEST_NAME = 40, 60  #: of a list of names in a message, and characters of each


class CaromError(Exception):
    """Wrong input or a request that cannot be met. The message is for the user, in one line."""


class RecordingError(CaromError):
    """A recordings folder, or a file in it, cannot be read as what it claims to be."""


class SceneError(CaromError):
    """A scene description is wrong, or asks for something that cannot be simulated."""


class UninformativeError(CaromError):
    """Recordings show nothing of what is looked for; others beside them may."""


class ModelError(CaromError):
    """A saved model is damaged, or is used with a scene or units that it was not made for."""


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that does not exist, with the nearest one that does.

    >>> unknown_name("shape", "squre", ["square", "triangle"])
    "unknown shape 'squre' (did you mean 'square'?); known: square, triangle"
    """
    known, name = [short(each) for each in known], short(name)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f"unknown {what} '{name}'{hint}; known: {', '.join(known[:MOST_NAMES])}{more}"


def short(text: object) -> str:
    """A text of a user's file in one line, cut where it would fill the screen."""
    words = " ".join(str(text).split())
    return words if len(words) <= LONGEST_NAME else f"{words[:LONGEST_NAME]}..."
