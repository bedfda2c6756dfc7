"""`carom identify`: contact parameters from recordings of strikes, of pushes, or of bodies that move freely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

from carom.core.errors import CaromError, short, unknown_name
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.core.work import workers
from carom.identify.result import Identification, file_to_write
from carom.identify.strikes import search
from carom.identify.strikes.slides import SlideFriction
from carom.identify.tosses.search import METHODS as FREE_METHODS
from carom.recipes.checking import findings_of
from carom.recipes.next_steps import after_identifying_bodies, after_identifying_strikes, commands_of
from carom.recipes.pushes import after_identifying_pushes, facts_of_pushes, identify_pushes, write_pushes
from carom.recipes.result import PrintedTable, Result, command
from carom.recipes.strikes import (
    base_for,
    by_gradient,
    held_by,
    outcomes_with,
    slide_facts,
    slides_of,
    usable_impacts,
    with_slides,
)
from carom.recipes.tosses import (
    Calibrated,
    FreeOptions,
    Skipped,
    facts,
    identify_free,
    left_out_lines,
    skipped_lines,
    write_calibrated,
)
from carom.recordings import Recordings, read, scene_of
from carom.recordings.kind import Kind, kind_of
from carom.report import Step
from carom.report.identified_strikes import strikes_page

METHODS = ("gradient", "cma", "grid", "mjx")  #: of strikes; the first is the default
AGAIN = 2  #: times that a search may go on from a better place that its intervals come upon
Written = tuple[tuple[Path, ...], tuple[Step, ...]]  #: files, and what to do next
CANDIDATES = 250  #: tried on every strike by a search

#: what the printed table calls the facts of slides
MEANING = {
    "friction": "friction with the ground",
    "friction_low": "its 90 % interval from",
    "friction_high": "to",
    "torsion_length_m": "length that resists turning [m]",
    "torsion_std_m": "its standard deviation [m]",
    "even_patch_length_m": "the same of an even pressure [m]",
    "slides": "slides that were used",
}


@dataclass(frozen=True)
class StrikeOptions:
    """How strikes are identified."""

    model: Path | None = None  #: folder of base models, for the method `gradient`; None: those of the package
    settle: float | None = None  #: [s] after first motion at which outcomes are read; None: the end of contact


@dataclass(frozen=True)
class Group:
    """What was identified from recordings that share their bodies."""

    title: str
    identification: Identification
    facts: Mapping[str, Any]  #: strikes: what the slides say; free bodies: errors and the contact
    calibrated: Calibrated | None = None  #: of free bodies


@final
@dataclass(frozen=True)
class IdentifyResult(Result):
    """Parameters with intervals and verdicts, one group for each set of bodies (one group in all for strikes)."""

    kind: Kind
    groups: tuple[Group, ...]
    files: tuple[Path, ...] = ()  #: that were written
    skipped: Skipped = ()  #: groups of free bodies whose recordings show nothing of what is looked for
    findings: tuple[str, ...] = ()  #: what `check` warns of in the recordings
    recordings: Path | None = None
    steps: tuple[Step, ...] = ()  #: what to do next with the files that were written

    def next_commands(self) -> Sequence[str]:
        if self.steps or self.recordings is None:
            return commands_of(self.steps)
        return (command("identify", self.recordings, "--out", f"calibrated/{self.recordings.resolve().name}"),)

    def to_dict(self) -> dict[str, Any] | list[dict[str, Any]]:
        found = [group.identification.to_dict() for group in self.groups]
        if self.kind == "strikes":
            return found[0] | {"slides": dict(self.groups[0].facts)}
        found += [{"recordings": name, "nothing_found": reason} for name, reason in self.skipped]
        return found if len(found) > 1 else found[0]

    def tables(self) -> Sequence[PrintedTable]:
        about = "friction from slides" if self.kind == "strikes" else "errors"
        made = []
        for group in self.groups:
            found = group.identification
            rows = [
                [e.name, f"{e.value:.4g}", f"{e.low:.3g} to {e.high:.3g}", e.unit, e.verdict]
                for e in (*found.estimates, *found.derived)
            ]
            columns = ("parameter", "value", "90 % interval", "unit", "verdict")
            why = [f"{e.name}: {e.reason}" for e in (*found.estimates, *found.derived) if e.reason]
            made.append(PrintedTable(f"{found.method}: {group.title}", columns, rows, why))
            facts = [[MEANING.get(k, k), v] for k, v in group.facts.items()]
            made.append(PrintedTable(about, ("what", "value"), facts))
        return made

    def notes(self) -> Sequence[str]:
        left_out = left_out_lines([group.calibrated for group in self.groups if group.calibrated is not None])
        own = [note for group in self.groups for note in group.identification.notes] if self.kind == "pushes" else []
        return [
            *self.findings,
            *own,
            *(f"wrote {path}" for path in self.files),
            *left_out,
            *skipped_lines(self.skipped),
        ]


def identify(
    recordings: str | Path,
    *,
    method: str | None = None,
    strikes: StrikeOptions | None = None,
    bodies: FreeOptions | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> IdentifyResult:
    """Identify contact parameters, with intervals and a verdict for each.

    Strikes of a tool are identified from their impacts, tossed and colliding bodies from whole trajectories, pushes
    from what comes of their set-points, or of the tool's path. Without a `method`, strikes by gradient through the base
    models of the package, the others by CMA-ES. `strikes` and `bodies` are options of strikes and of the others; those
    of the wrong kind are refused. With `out`, `parameters.yaml` and a report are written there; but for strikes also a
    calibrated MJCF. A name that ends like a file's (`x.yaml`) is that of the parameters' file, and there is no report
    then.
    """
    with locked(Path(out)) if out is not None and not Path(out).suffix else nullcontext():  # a file is written at once
        found = _identify(read(Path(recordings)), method, strikes, bodies, out, seed, threads, progress)
        return replace(found, recordings=Path(recordings))


def _identify(
    folder: Recordings,
    method: str | None,
    strikes: StrikeOptions | None,
    bodies: FreeOptions | None,
    out: str | Path | None,
    seed: int,
    threads: int,
    progress: Progress,
) -> IdentifyResult:
    kind = kind_of(folder)
    if out is not None:
        _refuse_place(kind, Path(out))
    if kind == "free bodies":
        if strikes is not None:
            raise CaromError("--model and --settle are for strikes; these are recordings of free bodies")
        found, skipped = identify_free(
            folder,
            method=FREE_METHODS[0] if method is None else method,
            options=bodies,
            seed=seed,
            threads=threads,
            progress=progress,
        )
        files, steps = _written(found, out, folder, apart=len(found) + len(skipped) > 1)
        groups, findings = tuple(_group(c) for c in found), findings_of(folder.path)
        return IdentifyResult(kind, groups, files, skipped, findings, steps=steps)
    if kind == "pushes":
        return _of_pushes(folder, method, strikes, bodies, out, seed, threads, progress)
    if bodies is not None:
        raise CaromError(
            "--parameters, --fix, --fit, --refine-starts are for free bodies; these are recordings of strikes"
        )
    if not workers().here and method not in (None, METHODS[0]):
        raise CaromError(f"--on: --method {short(method)} is one search, which a cluster cannot share; leave it out")
    identification, slides = identify_strikes(
        folder, METHODS[0] if method is None else method, options=strikes, seed=seed, threads=threads, progress=progress
    )
    files, steps = _written_strikes(identification, slides, strikes, folder, out)
    group = Group(identification.scene, identification, slide_facts(slides))
    return IdentifyResult(kind, (group,), files, findings=findings_of(folder.path), steps=steps)


def _refuse_place(kind: Kind, out: Path) -> None:
    """Raise before any work if what is written would take the place of something else."""
    if kind != "free bodies":
        file_to_write(out)
    elif out.is_file():
        raise CaromError(f"{out} is a file; what is found of free bodies is written to a folder")


def _of_pushes(
    folder: Recordings,
    method: str | None,
    strikes: StrikeOptions | None,
    bodies: FreeOptions | None,
    out: str | Path | None,
    seed: int,
    threads: int,
    progress: Progress,
) -> IdentifyResult:
    if strikes is not None:
        raise CaromError("--model and --settle are for strikes; these are recordings of pushes")
    options = bodies or FreeOptions()
    if options.fit is not None or options.refine_starts or options.graph is not None:
        raise CaromError("--fit, --refine-starts and --graph are for free bodies; these are recordings of pushes")
    if not workers().here:
        raise CaromError("--on: pushes are identified in one piece, which a cluster cannot share; leave it out")
    found = identify_pushes(
        folder,
        method=method,
        parameters=options.parameters,
        fixed=options.fixed,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    steps = after_identifying_pushes(found, folder.path) if out is not None else ()
    files = write_pushes(Path(out), found, folder, steps) if out is not None else ()
    names = found.identification.extra["recordings"]
    title = ", ".join(names[:2]) + (" ..." if len(names) > 2 else "")
    group = Group(title, found.identification, facts_of_pushes(found))
    return IdentifyResult("pushes", (group,), files, findings=findings_of(folder.path), steps=steps)


def identify_strikes(
    recordings: Recordings,
    method: str = METHODS[0],
    *,
    options: StrikeOptions | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> tuple[Identification, SlideFriction | None]:
    """Contact parameters from recorded strikes, and the slides that ground friction comes from."""
    if method not in METHODS:
        raise CaromError(f"recordings of strikes: {unknown_name('method', method, METHODS)}")
    options = options or StrikeOptions()
    if options.model is not None and method != "gradient":
        raise CaromError(f"--model is for --method gradient, asked for {method}")
    if threads and method in ("gradient", "mjx"):
        raise CaromError(f"--threads is for engines that search; --method {method} has no use for it")
    impacts = usable_impacts(recordings, settle=options.settle)
    slides = slides_of(recordings)
    fixed = held_by(slides)
    scene, told = scene_of(recordings), partial(progress, f"identify: {method}")
    if method == "gradient":
        found = by_gradient(base_for(options.model, recordings)[0], impacts, fixed=fixed, seed=seed)
    elif method == "mjx":
        from carom.identify.strikes import mjx

        found = mjx.fit(scene, impacts, fixed=fixed, seed=seed, progress=told)
    else:
        search_by = search.grid if method == "grid" else search.cma
        budget = max(2500, CANDIDATES * len(impacts))
        found = search_by(
            scene, impacts, fixed=fixed, budget=budget, again=AGAIN, seed=seed, threads=threads, progress=told
        )
    return with_slides(found, slides), slides


def _written_strikes(
    found: Identification,
    slides: SlideFriction | None,
    options: StrikeOptions | None,
    folder: Recordings,
    out: str | Path | None,
) -> Written:
    """`parameters.yaml`, and in a folder also `report.html`."""
    if out is None:
        return (), ()
    options, out = options or StrikeOptions(), Path(out)
    parameters = found.write(out, made_from={"recordings": folder.made_from()})
    impacts = usable_impacts(folder, settle=options.settle)
    steps = after_identifying_strikes(found, folder.path, parameters, len(impacts))
    if parameters == out:  # a file was asked for, not a folder
        return (parameters,), steps
    predicted = outcomes_with(found, folder, impacts, options.model)
    page = strikes_page(out / "report.html", scene_of(folder), found, impacts, predicted, slides, steps)
    return (parameters, page), steps


def _group(calibrated: Calibrated) -> Group:
    names = calibrated.trained.names
    title = ", ".join(names[:2]) + (" ..." if len(names) > 2 else "")
    return Group(title, calibrated.identification, facts(calibrated), calibrated)


def _written(found: Sequence[Calibrated], out: str | Path | None, recordings: Recordings, *, apart: bool) -> Written:
    """Files of every group, in a folder of its own if they are to be `apart`; what to do next with the first."""
    if out is None:
        return (), ()
    files: list[Path] = []
    first: tuple[Step, ...] = ()
    made_from = {"recordings": recordings.made_from()}
    for calibrated in found:
        own = Path(out) / Path(calibrated.trained.names[0]).stem if apart else Path(out)
        steps = after_identifying_bodies(
            calibrated.identification,
            recordings.path,
            Path(out),
            own=own if apart else None,
            tested=calibrated.tested is not None,
        )
        files += write_calibrated(own, calibrated, made_from, steps)
        first = first or steps
    return tuple(files), first
