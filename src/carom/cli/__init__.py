"""The `carom` command: one sub-command per stage, in the order in which data flows. No logic of its own."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

import carom
from carom.cli import bringing, health, learn, looping, measure, policies, robots, scale, use, viewing
from carom.cli.drawing import harmless
from carom.cli.help import Commands
from carom.cli.options import Command, may_be_quiet
from carom.core.errors import CaromError

app = typer.Typer(
    cls=Commands,
    help="From a MuJoCo scene and ten recordings of contact to a simulator you can trust.\n\n"
    "Stages, in the order in which data flows: import -> check -> identify (suggest) -> scale (train-graph) | distill "
    "-> adapt -> predict -> plan | train -> rollout; loop; evaluate.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
STOPPED = 130  #: exit code after Ctrl-C
UNREAD = 141  #: exit code when whoever read the output has gone, as that of any program in a shell's pipe
GOES_ON = "what was finished is kept, the same command goes on from there"
#: what is left after Ctrl-C, by command; all others write their result at the end
KEPT = {
    **dict.fromkeys(("scale", "train-graph", "distill", "train", "loop", "bench"), GOES_ON),
    **dict.fromkeys(
        ("evaluate", "demo"), "recordings and base models that it made are kept, the same command does the rest anew"
    ),
    "adapt": "the model is not finished, the same command starts anew",
}
UsageMistake: Any = typer.BadParameter.__mro__[2]  #: click's ClickException, whichever copy of click typer brings along


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="print the version and stop")] = False) -> None:
    if version:
        print(carom.__version__)
        raise typer.Exit()


for command in (
    bringing.import_files,
    learn.check,
    learn.identify,
    learn.suggest,
    scale.scale,
    scale.train_graph,
    learn.distill,
    learn.adapt,
    learn.predict,
    use.plan,
    robots.export,
    policies.train,
    policies.rollout,
    looping.loop,
    viewing.view,
    measure.evaluate,
    measure.demo,
    measure.bench,
    health.doctor,
):
    app.command("import" if command is bringing.import_files else None, cls=Command)(may_be_quiet(command))


def main() -> None:
    """Entry point: every mistake of a user ends in one line and exit code 2."""
    _open_what_is_closed()
    try:
        code = app(standalone_mode=False)  # typer gives the code of an Exit back, and turns Ctrl-C into one
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be said
    except UsageMistake as error:
        _fail(error.format_message())
    except SystemExit as end:  # click's own way with a reader who has gone
        code = UNREAD if isinstance(end.__context__, BrokenPipeError) else end.code
    except BrokenPipeError:
        code = UNREAD
    except (CaromError, OSError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    if code == UNREAD:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes once more when it ends
    if code == STOPPED:
        print(f"carom: stopped; {_kept(sys.argv[1:])}", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _open_what_is_closed() -> None:
    """Streams to write to, even if they were closed (`>&-`) or cannot show every letter."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (it stays open as long as the program runs)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _kept(arguments: list[str]) -> str:
    """What is left of a command that was stopped."""
    name = next((word for word in arguments if not word.startswith("-")), "")
    return KEPT.get(name, "nothing was kept, the same command starts anew")


def _fail(message: str) -> None:
    print(f"carom: {harmless(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(2)
