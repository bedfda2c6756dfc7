"""Tables of results in README.md and in pages of docs, between markers `<!-- bench:NAME:start -->` and `:end`.

`python -m carom.bench.pages` (or `make docs`) writes them from `benchmarks/results/`; `--check` only says which differ.
Figures of results are made anew with them (`FIGURES`).
The block `summary` is the README's one table, `methods` says what each method is; every other block is called like its
results file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from carom.bench.growth_figure import growth_figure
from carom.bench.results import FOLDER, read
from carom.bench.summary import summary
from carom.bench.tables import markdown_table
from carom.compare import ABLATIONS, METHODS
from carom.core.artefacts import write_text
from carom.core.errors import CaromError

PAGES = tuple(map(Path, ("README.md", "docs/benchmarks.md", "docs/importing.md", "docs/scaling.md")))
FIGURES = {Path("docs/images/growth.svg"): ("speed", growth_figure)}  #: files, the results that they show, and how
MISSING = "_not run yet_"
_BLOCK = re.compile(r"<!-- bench:(?P<name>[\w-]+):start -->\n(?P<body>.*?)<!-- bench:(?P=name):end -->", re.DOTALL)


def block(name: str, folder: Path) -> str:
    """What stands between the markers of this name."""
    if name == "summary":
        return summary(folder)
    if name == "methods":
        return _methods()
    path = folder / f"{name}.json"
    if not path.is_file():
        return MISSING + "\n"
    results = read(path)
    if name == "import":
        from carom.bench.importing import matrix

        return f"{matrix(results)}\n`{results.command}`: {_duration(results.seconds)}.\n"
    software = ", ".join(f"{k} {v}" for k, v in results.versions.items())
    machine = f"{results.machine.get('cpu', '?')}, {results.machine.get('cores', '?')} cores"
    lines = [markdown_table(results), *(f"{note}\n" for note in results.notes)]
    lines.append(f"`{results.command}`: {_duration(results.seconds)} on {machine}; {software}.\n")
    return "\n".join(lines)


def _methods() -> str:
    """What each method of `carom evaluate` is."""
    rows = [f"| `{name}` | {method.words} |" for name, method in {**METHODS, **ABLATIONS}.items()]
    return "\n".join(["| method | what it is |", "|---|---|", *rows, ""])


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def refreshed(text: str, folder: Path) -> tuple[str, list[str]]:
    """A page's text with its tables made anew from the results in `folder`, and the names of those that differed."""
    starts, found = re.findall(r"<!-- bench:([\w-]+):start -->", text), [m["name"] for m in _BLOCK.finditer(text)]
    broken = [name for name in starts if name not in found]
    if broken:
        raise CaromError(f"'<!-- bench:{broken[0]}:start -->' has no matching '<!-- bench:{broken[0]}:end -->'")
    stale = []

    def replacement(match: re.Match[str]) -> str:
        body = block(match["name"], folder)
        if match["body"] != body:
            stale.append(match["name"])
        return f"<!-- bench:{match['name']}:start -->\n{body}<!-- bench:{match['name']}:end -->"

    return _BLOCK.sub(replacement, text), stale


def _figure_differs(path: Path, folder: Path, check: bool) -> bool:
    """Whether a figure is not that of its results; unless told to check it is drawn anew."""
    name, draw = FIGURES[path]
    drawn = draw(read(folder / f"{name}.json"))
    if path.is_file() and path.read_text(encoding="utf-8") == drawn:
        return False
    if not check:
        write_text(path, drawn)
    print(f"{path}: {'differs from' if check else 'made anew from'} {folder}: {name}", file=sys.stderr)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the tables of README.md and docs/benchmarks.md from the results files."""
    parser = argparse.ArgumentParser(prog="python -m carom.bench.pages", description=main.__doc__)
    parser.add_argument("pages", type=Path, nargs="*", help="pages with markers")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a table differs")
    options = parser.parse_args(arguments)
    differ = False
    for page in options.pages or PAGES:
        try:
            text, stale = refreshed(page.read_text(encoding="utf-8"), options.results)
        except (CaromError, OSError) as error:
            print(f"error: {page}: {error}", file=sys.stderr)
            return 2
        if stale and not options.check:
            write_text(page, text)
        if stale:
            verb = "differ from" if options.check else "made anew from"
            print(f"{page}: tables {verb} {options.results}: {', '.join(stale)}", file=sys.stderr)
        differ |= bool(stale)
    if not options.pages:
        for path in FIGURES:
            differ |= _figure_differs(path, options.results, options.check)
    return 1 if differ and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
