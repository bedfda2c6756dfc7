"""`carom bench import`: the import matrix. Real exports of other labs, by what was read, against facts about them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.import_facts import FACTS, Fact, Known, Takes, longest
from carom.bench.results import Results
from carom.core.errors import CaromError
from carom.core.work import Rows
from carom.recordings.formats.found import read_take
from carom.recordings.formats.take import ReadOptions
from carom.recordings.imports.joining import ImportOptions, parts_of, recordings_of
from carom.recordings.imports.mapping import parse_map

METHOD = "carom import"
NO_RECORDING = ("README.md", "LICENSE")


def files_in(folder: Path) -> list[str]:
    """Files of the kinds' folders, and folders that are one recording."""
    places = [place for kind in sorted(folder.iterdir()) if kind.is_dir() for place in sorted(kind.iterdir())]
    return [place.relative_to(folder).as_posix() for place in places if place.name not in NO_RECORDING]


def tried(folder: Path, name: str) -> tuple[Rows, str]:
    """The rows of one file, and what the reader said: its format, or why it refuses the file."""
    known = FACTS.get(name, Known())
    counts: dict[str, float] = {}
    right = 0
    try:
        takes = read_take(folder / name, known.read)
    except CaromError as error:
        said, right = str(error).replace(f"{folder}/", ""), int(bool(known.refused) and known.refused in str(error))
        setting, counts["refused"] = f"{name}: refused", 1
    else:
        said = f"{takes[0].format} {takes[0].version}".strip()
        setting, counts = f"{name}: {said}", _counts(takes)
        right = sum(map(int, (agrees(fact, takes) for fact in known.facts)))
        counts["imported"] = float(_imported(folder / name, known))
    counts |= {"facts": len(known.facts) + bool(known.refused), "facts right": right}
    return [{"setting": setting, "method": METHOD, "metric": m, "value": float(v)} for m, v in counts.items()], said


def _counts(takes: Takes) -> dict[str, float]:
    return {
        "takes": len(takes),
        "samples": sum(longest(take) for take in takes),
        "Hz": takes[0].rate or float("nan"),
        "bodies": len(takes[0].tracks),
        "markers": sum(len(cloud.names) for cloud in takes[0].markers),
        "signals": len(takes[0].signals),
    }


def agrees(fact: Fact, takes: Takes) -> bool:
    """Whether a file's takes show what is known of it."""
    try:
        found = np.asarray(fact.found(takes), dtype=np.float64)
    except (LookupError, StopIteration, ValueError):
        return False
    return found.shape == (len(fact.expected),) and bool((np.abs(found - fact.expected) <= fact.within).all())


def _imported(path: Path, known: Known) -> bool:
    """Whether a recording comes out, with the names and the vertical that the file needs."""
    options = ImportOptions(tuple(parse_map(text) for text in known.names), known.up, read=ReadOptions())
    try:
        return bool(recordings_of([parts_of(path, options)], options))
    except CaromError:
        return False


def _piece(folder: Path, name: str) -> Rows:
    return tried(folder, name)[0]


def _work(o: Options) -> Work:
    if not o.data.is_dir():
        raise CaromError(f"{o.data}: no such folder; give the one with other makers' files in a folder for each kind")
    return [(name, partial(_piece, o.data, name)) for name in files_in(o.data)]


def _settings(o: Options) -> dict[str, Any]:
    return {"files": files_in(o.data) if o.data.is_dir() else [], "facts": sum(len(k.facts) for k in FACTS.values())}


def _notes(o: Options) -> Sequence[str]:
    refused = [(name, said) for name in files_in(o.data) for rows, said in [tried(o.data, name)] if _is_refused(rows)]
    return (
        "facts: what small separate parsers read of these files; facts right: how many of them the reader reproduces. "
        "A refusal is a fact where a file holds no poses. imported: a recording came out, with --map and --up where "
        "the file needs them.",
        *(f"refused: {said}" for _, said in refused),
    )


def _is_refused(rows: Rows) -> bool:
    return any(row["metric"] == "refused" for row in rows)


def matrix(results: Results) -> str:
    """The import matrix as Markdown: a line for each file, and below it why files were refused."""
    found: dict[str, dict[str, float]] = {}
    for row in results.rows:
        found.setdefault(row.setting, {})[row.metric] = row.mean
    lines = [
        "| file | read as | takes | samples | Hz | bodies | markers | signals | imported | facts right |",
        "|---|---|" + "---:|" * 8,
    ]
    for setting, values in found.items():
        file, _, said = setting.partition(": ")
        cells = [_cell(values.get(name)) for name in ("takes", "samples", "Hz", "bodies", "markers", "signals")]
        cells.append({1.0: "yes", 0.0: "no"}.get(values.get("imported", -1.0), ""))
        lines.append(f"| {file} | {said} | {' | '.join(cells)} | {values['facts right']:g} of {values['facts']:g} |")
    reasons = [f"- {note}" for note in results.notes if note.startswith("refused: ")]
    others = [note for note in results.notes if not note.startswith("refused: ")]
    return "\n".join([*lines, "", *others, "", *reasons, ""])


def _cell(value: float | None) -> str:
    return "" if value is None or not value else f"{value:.6g}"


BENCHMARK = Benchmark(
    "import",
    draws=1,
    settings=_settings,
    work=_work,
    notes=_notes,
    data="other makers' files, in a folder for each kind (motive, vicon, ...)",
)
