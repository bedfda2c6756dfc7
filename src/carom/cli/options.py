"""Options that commands share, and the door: values that make no sense are refused before any work begins."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, final, get_type_hints

import typer
from typer.core import TyperCommand

from carom.cli.help import GIVEN, write_options
from carom.core.errors import CaromError, unknown_name
from carom.core.ray_address import check_place

LARGEST_SEED = 2**31 - 1  #: NumPy, torch and CMA-ES all take it, and what is added to it
MOST_THREADS = 256
LARGEST = 1e6  #: any number with a point: metres, radians, seconds, hertz, kilograms per cubic metre, factors
MOST = 10**9  #: any whole number
FEWEST_IMPACTS = 1000
FARTHEST = 100.0  #: [m], [rad] of a pose

ALONE = "any"
#: options that may stand without a value, which is then the last of these
LONE = {"--cut": ("strike", "strikes", "toss", "tosses", "push", "pushes", ALONE)}


@final
class Command(TyperCommand):
    """A command that refuses values which no option can have: empty ones, and numbers that are not finite or absurd.

    Its help has options in groups.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """See `TyperCommand`."""
        write_options(ctx, formatter, self.get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then look at every value; an option that is added later needs nothing of its own for this."""
        for before, word in zip(["", *args], args, strict=False):
            name, _, value = word.partition("=") if word.startswith("--") and "=" in word else (before, "", word)
            if not value.strip():  # as a path it would be the current folder
                raise typer.BadParameter(
                    "expected a value, got an empty one", param_hint=name if name[:1] == "-" else None
                )
        ctx.meta[GIVEN] = tuple(args)
        rest = super().parse_args(ctx, _spelt_out(args) if ctx.command.name == "import" else args)
        parameter: Any
        for parameter in self.params:
            for single in _single(ctx.params.get(parameter.name or "")):
                if (reason := _absurd(single)) is not None:
                    raise typer.BadParameter(reason, ctx=ctx, param=parameter)
        return rest


def _spelt_out(args: list[str]) -> list[str]:
    """The same words, with a value behind options that stand alone."""
    found: list[str] = []
    for word, following in zip(args, [*args[1:], ""], strict=True):
        found.append(word)
        if (
            word in LONE
            and (not following or following[0] == "-" or Path(following).exists())
            and following not in LONE[word]
        ):
            found.append(LONE[word][-1])
    return found


def _single(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _absurd(value: Any) -> str | None:
    """Why no option can have this value; None if one can."""
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            return f"expected a name in UTF-8, got {text!a}; rename it"
    elif isinstance(value, float) and not (math.isfinite(value) and abs(value) <= LARGEST):
        return f"expected a number from {-LARGEST:g} to {LARGEST:g}, got {value:g}"
    elif isinstance(value, int) and abs(value) > MOST and not 0 <= value <= LARGEST_SEED:
        return f"expected at most {MOST:,}, got {_brief(value)}"
    return None


def _brief(value: int) -> str:
    return str(value) if abs(value) < 10**20 else f"a number of {len(str(abs(value)))} digits"


def positive(value: Any) -> Any:
    """For an option of one or several numbers that must be greater than zero."""
    for number in _single(value):
        if number is not None and not number > 0:
            raise typer.BadParameter(f"expected more than 0, got {number:g}")
    return value


def near(value: Any) -> Any:
    """For an option that is a pose: x [m], y [m], yaw [rad]."""
    if value is not None and max(map(abs, value)) > FARTHEST:
        raise typer.BadParameter(
            f"expected numbers from {-FARTHEST:g} to {FARTHEST:g} [m, m, rad], got {max(value, key=abs):g}"
        )
    return value


def rising(value: Any) -> Any:
    """For an option of a lowest and a highest number, both greater than zero."""
    positive(value)
    if value is not None and value[0] > value[1]:
        raise typer.BadParameter(f"expected the lower number first, got {value[0]:g} {value[1]:g}")
    return value


def enough(value: int | None) -> int | None:
    """For an option that says from how many simulated impacts a base model is made."""
    if value is not None and value < FEWEST_IMPACTS:
        raise typer.BadParameter(f"a base model needs {FEWEST_IMPACTS} impacts or more, got {value}")
    return value


def one_of(what: str, known: Callable[[], Iterable[str]]) -> Callable[[str | None], str | None]:
    """For an option that names something that exists; `known` is asked when there is a name to look for."""

    def check(value: str | None) -> str | None:
        if value and value not in (names := list(known())):
            raise typer.BadParameter(unknown_name(what, value, names))
        return value

    return check


def some_of(what: str, known: Callable[[], Iterable[str]]) -> Callable[[str | None], str | None]:
    """The same for several names with commas between them."""
    check = one_of(what, known)

    def check_all(value: str | None) -> str | None:
        names = [name.strip() for name in (value or "").split(",") if name.strip()]
        if value and not names:
            raise typer.BadParameter(f"expected names with commas between them, got '{value}'")
        for name in names:
            check(name)
        return value

    return check_all


def new_folder(value: Path | None) -> Path | None:
    """For an option that names the folder a command writes into."""
    if value is not None and value.exists() and not value.is_dir():
        raise typer.BadParameter(f"{value}: expected a folder, or a name for a new one; that is a file")
    _refuse_unwritable(value)
    return value


def own_folder(value: Path | None) -> Path | None:
    """The same for what does not belong among recordings."""
    if value is not None and (value / "recordings.yaml").is_file():
        raise typer.BadParameter(f"{value} holds recordings; choose another folder")
    return new_folder(value)


def new_file(value: Path | None) -> Path | None:
    """For an option that names a page or a picture to write."""
    return _new_file(value, (b"<", b"GIF"))


def _new_file(value: Path | None, begins: tuple[bytes, ...]) -> Path | None:
    """A file to write, which begins so; one that is there and begins otherwise is kept."""
    if value is not None and value.is_dir():
        raise typer.BadParameter(f"{value}: expected a file, or a name for a new one; that is a folder")
    _refuse_unwritable(None if value is None else value.parent)
    if value is not None and value.is_file() and os.access(value, os.R_OK):
        with value.open("rb") as file:
            start = file.read(64).lstrip()
        if start and not start.startswith(begins):
            raise typer.BadParameter(f"{value} holds something else, which would be lost; choose another name")
    return value


def new_place(value: Path | None) -> Path | None:
    """For an option that may name either."""
    _refuse_unwritable(value if value is None or value.is_dir() else value.parent)
    return value


def _refuse_unwritable(folder: Path | None) -> None:
    """Raise if nothing can be written into a folder, or if it cannot be made."""
    if folder is None:
        return
    there = next((place for place in (folder, *folder.parents) if place.exists()), Path("."))
    if not there.is_dir():
        raise typer.BadParameter(f"{folder} cannot be made: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise typer.BadParameter(
            f"{folder}: {there} cannot be written into; choose another place, or change its rights"
        )


def _json_file(value: str | None) -> str | None:
    if value == "-" and getattr(sys.stdout, "name", "") == os.devnull:  # `main` puts it in the place of a closed one
        raise typer.BadParameter("stdout is closed; give the name of a file")
    if value and value != "-":
        _new_file(Path(value), (b"{", b"["))
    return value


def _place(value: str | None) -> str | None:
    if value is not None:
        try:
            check_place(value)
        except CaromError as reason:
            raise typer.BadParameter(str(reason)) from reason
    return value


Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", callback=_json_file, help="also write the result as JSON ('-': stdout)"),
]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="random seed; the same seed gives the same result")]
Threads = Annotated[
    int,
    typer.Option(min=0, max=MOST_THREADS, help="threads of the engine; 0: all cores. The result does not depend on it"),
]


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress and no advice: results, warnings, errors")]


def may_be_quiet(function: Callable[..., None]) -> Callable[..., None]:
    """A command with `--quiet` beside its own options."""

    @wraps(function)
    def command(*, quiet: bool = False, **options: Any) -> None:
        from carom.cli.console import hush

        hush(quiet)
        function(**options)

    hints = get_type_hints(function, include_extras=True)
    own = [each.replace(annotation=hints[name]) for name, each in signature(function).parameters.items()]
    quiet = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    command.__signature__ = Signature([*own, quiet])  # type: ignore[attr-defined]
    command.__annotations__ = {**hints, "quiet": Quiet}
    return command


On = Annotated[
    str | None,
    typer.Option(
        metavar="RAY",
        callback=_place,
        help="where pieces of the work are made: ray (this machine's cores, or $RAY_ADDRESS), ray://HOST:PORT or "
        "ray://auto (a cluster that is there); else in this process. The result does not depend on it",
    ),
]
RecordingsArg = Annotated[Path, typer.Argument(help="folder in the recordings format")]
Settle = Annotated[
    float | None, typer.Option(max=10.0, callback=positive, help="seconds after first motion where outcomes are read")
]
