"""The command that says what to record next: suggest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from carom.cli.console import Json, Out, RecordingsArg, Seed, Threads, bar, errors
from carom.core.errors import CaromError

if TYPE_CHECKING:
    from carom.core.progress import Progress
    from carom.identify.next.choose import Suggestion
    from carom.identify.result import Identification
    from carom.recordings import Recordings

    Found = list[tuple[str, tuple[Suggestion, ...]]]  # title and suggestions of each group of bodies
STRIKES = 192  #: strikes drawn; those far from any place that was struck are left out


def suggest(
    recordings: RecordingsArg,
    params: Annotated[
        Path | None, typer.Option(help="parameters.yaml, from `carom identify`; without it, identified first")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="recordings to suggest")] = 3,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Suggest the next recordings: those expected to narrow the parameters most, and by how much."""
    from carom.identify.result import read as read_parameters
    from carom.recipes.tosses import is_free
    from carom.recordings import read

    folder = read(recordings)
    given = None if params is None else read_parameters(params)
    if given is None:
        errors.print("no --params: identifying first, by cma")
    find = _free if is_free(folder) else _strikes
    with bar() as progress:
        found = find(folder, given, count=count, seed=seed, threads=threads, progress=progress)
    printer = Out(json_file)
    printer.write(
        {
            "recordings": str(recordings),
            "identified_now": given is None,
            "seed": seed,
            "groups": [
                {"of": title, "suggestions": [s.to_dict() for s in made], "not_shown": list(made[0].unseen)}
                for title, made in found
            ],
        }
    )
    for title, made in found:
        _show(printer, title, made)


def _show(printer: Out, title: str, made: tuple[Suggestion, ...]) -> None:
    rows: list[list[Any]] = [[f"{i}", s.words, s.gain, s.typical, s.most, s.alike] for i, s in enumerate(made, start=1)]
    columns = ["", "record next", "gain [nat]", "a usual one [nat]", "gains most", "alike"]
    printer.table(f"{title}: each given those above it", columns, rows)
    spreads: list[list[Any]] = []
    for i, first in enumerate(made[0].spreads):
        steps = [f"{first.before:.3g}", *(f"{s.spreads[i].after:.3g}" for s in made)]
        unit = "factor" if first.log else first.unit
        spreads.append([first.name, unit, *steps, "" if first.shown else "no candidate shows it: measure it apart"])
    after = [f"after {i}" for i in range(1, len(made) + 1)]
    printer.table("expected half of the 90 % interval, by curvature", ["parameter", "unit", "now", *after, ""], spreads)


def _free(
    folder: Recordings, given: Identification | None, *, count: int, seed: int, threads: int, progress: Progress
) -> Found:
    """Suggestions for every group of free bodies that the parameters are about."""
    from carom.identify.next.suggest import described, looked_for, suggest_tosses
    from carom.identify.tosses.recorded import groups, motions_of
    from carom.recipes.tosses import identify_free

    if given is None:
        fits = identify_free(folder, seed=seed, threads=threads, progress=progress)
        pairs = [(c.trained, c.identification) for c in fits]
    else:
        used = set(given.extra.get("recordings", ()))
        pairs = []
        for rows in groups(folder):
            rows = [r for r in rows if not used or folder.trajectories[r].name in used]
            if rows:
                pairs.append((motions_of(folder, rows)[0], given))
        if not pairs:
            raise CaromError(f"{folder.path}: holds none of the recordings that the parameters were identified from")
    found = []
    for recorded, identification in pairs:
        motions, model = described(recorded, identification)
        title = f"{motions.names[0]} and {len(motions) - 1} more" if len(motions) > 1 else motions.names[0]
        made = suggest_tosses(
            motions,
            model,
            names=looked_for(motions, identification),
            count=count,
            seed=seed,
            threads=threads,
            progress=lambda done, total: progress("suggest", done, total),
        )
        found.append((title, made))
    return found


def _strikes(
    folder: Recordings, given: Identification | None, *, count: int, seed: int, threads: int, progress: Progress
) -> Found:
    """Suggestions for strikes on a target at rest."""
    from carom.identify.next.candidates import practical, reachable
    from carom.identify.next.suggest import suggest_strikes
    from carom.learn.impact.sample import sample_strikes
    from carom.recipes.strikes import identify_strikes, usable_impacts
    from carom.recordings import scene_of

    scene, impacts = scene_of(folder), usable_impacts(folder)
    if given is None:
        given, _ = identify_strikes(folder.path, "cma", model=None, settle=None, seed=seed, progress=progress)
    drawn = sample_strikes(practical(scene, impacts), STRIKES, np.random.default_rng(seed))
    made = suggest_strikes(
        scene,
        impacts,
        given,
        candidates=reachable(scene, drawn, impacts),
        count=count,
        seed=seed,
        threads=threads,
        progress=lambda done, total: progress("suggest", done, total),
    )
    return [(scene.name, made)]
