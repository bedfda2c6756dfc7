"""What `--help` shows: options grouped by what they are for, without those for other kinds of recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from carom.core.errors import CaromError

KINDS = ("strikes", "free bodies", "pushes")
WRITTEN, RUN, OTHERS = "What is written", "How it is run", "Options"
#: options by what they are for; those that begin with a kind of recordings in their help are for that kind
PURPOSE: Mapping[str, str] = {
    **dict.fromkeys(("--out", "--json", "--report", "--export", "--results", "--animation"), WRITTEN),
    **dict.fromkeys(("--seed", "--seeds", "--threads", "--on", "--quiet", "--help"), RUN),
}
#: commands by what they are for
STAGES: Mapping[str, Sequence[str]] = {
    "Recordings": ("import", "check", "identify", "suggest", "view"),
    "Data and models": ("scale", "train-graph", "distill", "adapt", "predict"),
    "Putting them to use": ("plan", "export", "train", "rollout", "loop"),
    "Measuring": ("evaluate", "demo", "bench", "doctor"),
}
ORDER = ("Arguments", OTHERS, *(f"For {kind}" for kind in KINDS), WRITTEN, RUN)
GIVEN = "carom.arguments"  #: where a command keeps its words, for its help

Record = tuple[str, str]


def write_options(ctx: Any, formatter: Any, parameters: Sequence[Any]) -> None:
    """The options of a command in their groups; with a folder of recordings, without those for other kinds."""
    sections: dict[str, list[Record]] = {}
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if record is not None:
            section, words = _section(parameter, record[1])
            sections.setdefault(section, []).append((record[0], words))
    kinds = [kind for kind in KINDS if f"For {kind}" in sections]
    folder, shown = _given_kind(ctx.meta.get(GIVEN, ())) if kinds else (None, None)
    for section in sorted(sections, key=lambda name: ORDER.index(name) if name in ORDER else 1):
        if shown is None or section == f"For {shown}" or section not in {f"For {kind}" for kind in kinds}:
            with formatter.section(section):
                formatter.write_dl(sections[section])
    if shown is not None:
        formatter.write_paragraph()
        formatter.write_text(f"{folder} holds {shown}; options for other recordings: carom {ctx.command.name} --help")


def _section(parameter: Any, words: str) -> Record:
    """Where a parameter stands in the help, and with which words."""
    if parameter.param_type_name == "argument":
        return "Arguments", words
    kind, _, rest = words.partition(": ")
    if kind in KINDS and not any(f"; {other}: " in rest for other in KINDS):
        return f"For {kind}", rest
    panel = getattr(parameter, "rich_help_panel", None)
    return panel or next((PURPOSE[name] for name in parameter.opts if name in PURPOSE), OTHERS), words


def _given_kind(words: Sequence[str]) -> tuple[str | None, str | None]:
    """The recordings folder among the words of a command, and what it shows; None where there is none to be read."""
    for word in words:
        if not word.startswith("-") and (Path(word) / "recordings.yaml").is_file():
            from carom.recordings import read
            from carom.recordings.kind import kind_of

            try:
                return word, kind_of(read(Path(word)))
            except CaromError:
                return None, None
    return None, None


class Commands(TyperGroup):
    """All commands, by the stages that they belong to."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See `TyperGroup`; a command that no stage names stands by itself."""
        names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        limit = formatter.width - 6 - max(map(len, names))
        staged = {name for stage in STAGES.values() for name in stage}
        for stage, of_it in {**STAGES, "Further": [name for name in names if name not in staged]}.items():
            rows = [(name, self.commands[name].get_short_help_str(limit)) for name in of_it if name in names]
            if rows:
                with formatter.section(stage):
                    formatter.write_dl(rows)
