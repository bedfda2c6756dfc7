"""`carom suggest`: the recordings to make next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.identify.next.candidates import off_corners, practical, reachable
from carom.identify.next.choose import Suggestion
from carom.identify.next.suggest import describe, looked_for, suggest_strikes, suggest_tosses
from carom.identify.parameter_files import choose_one, parameter_files, refuse_of_others
from carom.identify.result import Identification
from carom.identify.result import read as read_parameters
from carom.identify.tosses.recorded import Motions, groups, motions_of
from carom.learn.impact.sample import sample_strikes
from carom.recipes.identifying import identify_strikes
from carom.recipes.result import PrintedTable, Result, command
from carom.recipes.result_page import result_page
from carom.recipes.strikes import usable_impacts
from carom.recipes.tosses import Skipped, identify_free, skipped_lines
from carom.recordings import Recordings, read, scene_of
from carom.recordings.kind import kind_of
from carom.report.suggested import suggestion_figures

STRIKES = 192  #: strikes drawn; those far from any place that was struck are left out

FIGURES = (
    "gain: how much the recording is expected to tell; 0.7 nat halve the uncertainty of one parameter. usual: that of "
    "the median candidate. alike: other candidates that would tell nearly the same",
)


@dataclass(frozen=True)
class SuggestedGroup:
    """Suggestions for recordings that share their bodies, best first, each given those before it."""

    title: str
    suggestions: tuple[Suggestion, ...]


@final
@dataclass(frozen=True)
class SuggestResult(Result):
    """What to record next, and by how much it is expected to narrow the parameters."""

    recordings: Path
    groups: tuple[SuggestedGroup, ...]
    identified_now: bool  #: whether no parameters were given
    seed: int
    skipped: Skipped = ()  #: groups of free bodies whose recordings show nothing yet
    report: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "recordings": str(self.recordings),
            "identified_now": self.identified_now,
            "seed": self.seed,
            "groups": [
                {
                    "of": group.title,
                    "suggestions": [s.to_dict() for s in group.suggestions],
                    "not_shown": list(group.suggestions[0].unseen),
                }
                for group in self.groups
            ],
        }

    def tables(self) -> Sequence[PrintedTable]:
        return [table for group in self.groups for table in _tables(group)]

    def notes(self) -> Sequence[str]:
        page = () if self.report is None else (f"report: {self.report}",)
        return (*page, *skipped_lines(self.skipped))

    def next_commands(self) -> Sequence[str]:
        """With the new recordings in the same folder."""
        return (command("identify", self.recordings, "--out", f"calibrated/{self.recordings.resolve().name}"),)


def suggest(
    recordings: str | Path,
    *,
    params: str | Path | None = None,
    count: int = 3,
    report: str | Path | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> SuggestResult:
    """Suggest the next recordings: those expected to narrow the parameters most.

    `params` is a `parameters.yaml` made by `identify`, or its folder, with several groups too; without it, parameters
    are identified first, as `identify` does. A `report` is a page with the suggestions and the expected intervals.
    """
    folder = read(Path(recordings))
    files = () if params is None else parameter_files(params)
    given = [read_parameters(file) for file in files]
    if kind_of(folder) == "free bodies":
        for file, one in zip(files, given, strict=True):
            refuse_of_others(file, one, folder.made_from())
        made, skipped = _for_bodies(folder, given, count=count, seed=seed, threads=threads, progress=progress)
    elif params is not None and len(given) > 1:
        raise choose_one(params, files)
    else:
        first = given[0] if given else None
        made, skipped = _for_strikes(folder, first, count=count, seed=seed, threads=threads, progress=progress)
    result = SuggestResult(Path(recordings), tuple(made), not given, seed, skipped)
    if report is None:
        return result
    short = tuple(
        f"**{group.title}**: record next {group.suggestions[0].words}. It is expected to tell "
        f"{group.suggestions[0].gain:.2g} nat; the usual recording tells {group.suggestions[0].typical:.2g}."
        for group in made
    )
    figures = [section for group in made for section in suggestion_figures(group.title, group.suggestions)]
    title = "What to record next"
    page = result_page(Path(report), result, title=title, subtitle=folder.path.name, short=short, figures=figures)
    return replace(result, report=page)


def _tables(group: SuggestedGroup) -> list[PrintedTable]:
    made = group.suggestions
    rows = [[f"{i}", s.words, s.gain, s.typical, s.most, s.alike] for i, s in enumerate(made, start=1)]
    columns = ("", "record next", "gain [nat]", "usual [nat]", "gains most", "alike")
    spreads = []
    for i, first in enumerate(made[0].spreads):
        steps = [f"{low:.3g} to {high:.3g}" for low, high in (first.before, *(s.spreads[i].after for s in made))]
        spreads.append([first.name, first.unit, *steps])
    after = ["parameter", "unit", "now", *(f"after {i}" for i in range(1, len(made) + 1))]
    hidden = [f"{s.name}: no candidate shows it, measure it apart" for s in made[0].spreads if not s.shown]
    return [
        PrintedTable(f"{group.title}: each given those above it", columns, rows, FIGURES),
        PrintedTable("90 % intervals: as identified, and expected", after, spreads, hidden),
    ]


def _for_bodies(
    folder: Recordings, given: Sequence[Identification], *, count: int, seed: int, threads: int, progress: Progress
) -> tuple[list[SuggestedGroup], Skipped]:
    """Suggestions for every group of free bodies that the parameters are about."""
    skipped: Skipped = ()
    if not given:
        fits, skipped = identify_free(folder, seed=seed, threads=threads, progress=progress)
        pairs = [(c.trained, c.identification) for c in fits]
    else:
        pairs = [pair for one in given for pair in _described_by(folder, one)]
    found = []
    for recorded, identification in pairs:
        known = describe(recorded, identification)
        motions = known.motions
        title = f"{motions.names[0]} and {len(motions) - 1} more" if len(motions) > 1 else motions.names[0]
        made = suggest_tosses(
            known,
            names=looked_for(motions, identification),
            count=count,
            seed=seed,
            threads=threads,
            progress=partial(progress, "suggest"),
        )
        found.append(SuggestedGroup(title, made))
    return found, skipped


def _described_by(folder: Recordings, given: Identification) -> list[tuple[Motions, Identification]]:
    """The groups of recordings that parameters were identified from; all groups if they don't say from which."""
    used = set(given.extra.get("recordings", ()))
    pairs = []
    for group in groups(folder):
        rows = [r for r in group if not used or folder.trajectories[r].name in used]
        if rows:
            pairs.append((motions_of(folder, rows)[0], given))
    if not pairs:
        raise CaromError(f"{folder.path}: holds none of the recordings that the parameters were identified from")
    return pairs


def _for_strikes(
    folder: Recordings, given: Identification | None, *, count: int, seed: int, threads: int, progress: Progress
) -> tuple[list[SuggestedGroup], Skipped]:
    """Suggestions for strikes on a target at rest."""
    scene, impacts = scene_of(folder), usable_impacts(folder)
    if given is None:
        given, _ = identify_strikes(folder, seed=seed, progress=progress)
    drawn = sample_strikes(practical(scene, impacts), STRIKES, np.random.default_rng(seed))
    drawn = off_corners(scene, drawn)
    made = suggest_strikes(
        scene,
        impacts,
        given,
        candidates=reachable(scene, drawn, impacts),
        count=count,
        seed=seed,
        threads=threads,
        progress=partial(progress, "suggest"),
    )
    return [SuggestedGroup(scene.name, made)], ()
