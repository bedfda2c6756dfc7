"""Free bodies identified from recordings: which recordings are fitted, what is written, what a reader sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import atomically
from carom.core.errors import CaromError, UninformativeError, unknown_name
from carom.core.progress import Progress, silent
from carom.identify.result import Identification
from carom.identify.tosses.predict import MotionModel
from carom.identify.tosses.recorded import Motions, groups, motions_of
from carom.identify.tosses.restitution import measured
from carom.identify.tosses.result import as_it_comes, errors_of, identify_motions, percent_errors, with_found_sides
from carom.identify.tosses.search import METHODS, How
from carom.learn.graph import Corrected, GraphModel, corrected, in_graph, load_graph, refuse_unfit
from carom.recordings import Recordings
from carom.report import Step
from carom.scenes.free import timestep
from carom.scenes.free_opened import opened_spec
from carom.scenes.parameters import TABLE_II

MOST = 12  #: recordings that a fit uses unless told; the others test it
TESTED = 100  #: at most
GRAPH = "graph"  #: folder of a corrected graph simulator
NAMED = 5  #: recordings left out that are named, of each group
Skipped = tuple[tuple[str, str], ...]  #: first recording of each group that shows nothing, and why


@dataclass(frozen=True)
class Calibrated:
    """One identification of free bodies, with what it was made from and tested on."""

    identification: Identification
    model: MotionModel
    trained: Motions  #: with the heavy sides that were found
    tested: Motions | None  #: recordings that the fit has not seen
    left_out: Skipped = ()  #: recordings that cannot be simulated, and why
    graph: Corrected | None = None  #: a graph simulator, corrected with the fitted recordings


@dataclass(frozen=True)
class FreeOptions:
    """How free bodies are identified."""

    parameters: Sequence[str] | None = None  #: to look for; `table-ii`: the few-shot paper's eight; None: what shows
    fixed: Mapping[str, float] = field(default_factory=dict)  #: parameters that are held, by name
    fit: int | None = None  #: recordings to fit; the others test it. None: `MOST`
    refine_starts: bool = False  #: whether velocities before the first contact are fitted too
    graph: Path | None = None  #: a graph simulator, to be corrected with the fitted recordings and tried on the others


def parameter_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names without blanks and doubles; `table-ii` stands for the few-shot paper's eight."""
    if names is None:
        return None
    stripped = [name.strip() for name in names if name.strip()]
    return tuple(dict.fromkeys(m for n in stripped for m in (TABLE_II if n == "table-ii" else (n,))))


def identify_free(
    recordings: Recordings,
    *,
    method: str = "cma",
    options: FreeOptions | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> tuple[list[Calibrated], Skipped]:
    """Identify every group of recordings that share their bodies; what the fit does not use tests it.

    A group that shows nothing of what is looked for is named and passed over; raises if no group shows anything.
    """
    if method not in METHODS:
        raise CaromError(f"recordings of free bodies: {unknown_name('method', method, METHODS)}")
    options = options or FreeOptions()
    how = How(method, refine_starts=options.refine_starts)
    found, skipped = [], []
    for rows in groups(recordings):
        try:
            found.append(_calibrated(recordings, rows, how, options, seed, threads, progress))
        except UninformativeError as reason:
            skipped.append((recordings.trajectories[rows[0]].name, str(reason)))
    if not found:
        raise UninformativeError("; ".join(dict.fromkeys(reason for _, reason in skipped)))
    return found, tuple(skipped)


def skipped_lines(skipped: Skipped) -> list[str]:
    """What a reader is told of the groups that were passed over."""
    return [f"{name} and others of its bodies were passed over: {reason}" for name, reason in skipped]


def left_out_lines(found: Sequence[Calibrated]) -> list[str]:
    """What a reader is told of recordings that were neither fitted nor tested."""
    lines = []
    for calibrated in found:
        lines += [f"{name} was left out: {why}" for name, why in calibrated.left_out[:NAMED]]
        if (more := len(calibrated.left_out) - NAMED) > 0:
            lines.append(f"{more} more of its group were left out; --json has them all")
    return lines


def _calibrated(
    recordings: Recordings,
    rows: Sequence[int],
    how: How,
    options: FreeOptions,
    seed: int,
    threads: int,
    progress: Progress,
) -> Calibrated:
    """What one group of recordings tells."""
    learned = None if options.graph is None else load_graph(options.graph)
    every, left_out = motions_of(recordings, rows)
    if learned is not None:  # before any work
        refuse_unfit(learned, every, parameter_names(options.parameters) or ())
    trained, tested = _split(every, MOST if options.fit is None else options.fit, seed)
    identification, model = identify_motions(
        trained,
        names=parameter_names(options.parameters),
        fixed=options.fixed,
        how=how,
        seed=seed,
        threads=threads,
        progress=partial(progress, f"identify: {how.method}, {every.names[0]}"),
    )
    if tested is not None:
        identification = _tested(identification, model, tested, threads)
    trained = with_found_sides(trained, identification)
    graph = None
    if learned is not None:
        graph = corrected(learned, model, trained)
        identification = _graphs_tested(identification, model, tested, {"": learned, "_corrected": graph.model})
    fitted = [recordings.trajectories[row] for row in rows if recordings.trajectories[row].name in trained.names]
    derived = identification.derived
    identification = replace(identification, derived=(*derived, *measured(fitted, derived)))
    if left_out:
        identification = replace(identification, extra={**identification.extra, "left_out": dict(left_out)})
    return Calibrated(identification, model, trained, tested, left_out, graph)


def _tested(identification: Identification, model: MotionModel, tested: Motions, threads: int) -> Identification:
    """The identification with its errors on recordings that the fit has not seen."""
    predicted = model.predict(tested, threads=threads)
    how = "" if model.sides is None else ", the most representative simulation of each"
    words = f"{len(tested)} recordings that the fit has not seen{how}"
    extra = {**identification.extra, "errors_held_out": percent_errors(tested, predicted)}
    if model.sides is not None:
        single = model.simulate(tested, threads=threads)
        extra["errors_held_out_one_simulation"] = percent_errors(tested, single)
    return replace(identification, held_out=errors_of(tested, predicted), held_out_by=words, extra=extra)


def _graphs_tested(
    identification: Identification, model: MotionModel, tested: Motions | None, learned: Mapping[str, GraphModel]
) -> Identification:
    """The identification with errors of graph simulators, by what tells their names apart."""
    extra = dict(identification.extra)
    for name, one in learned.items():
        if tested is not None:
            extra[f"errors_held_out_graph{name}"] = percent_errors(tested, in_graph(model, one).predict(tested))
    return replace(identification, extra=extra)


def _split(every: Motions, fit: int, seed: int) -> tuple[Motions, Motions | None]:
    """Recordings to fit, drawn by the seed, and up to `TESTED` others."""
    if fit < 1:
        raise CaromError(f"--fit must be at least 1, got {fit}")
    order = np.random.default_rng(seed).permutation(len(every))
    rest = order[fit : fit + TESTED]
    return every[np.sort(order[:fit])], every[np.sort(rest)] if len(rest) else None


def write_calibrated(
    out: Path, calibrated: Calibrated, made_from: Mapping[str, Any] | None = None, steps: Sequence[Step] = ()
) -> list[Path]:
    """`parameters.yaml`, `calibrated.xml` (opens in MuJoCo as it is) and `report.html` in a folder.

    `steps` are what the report says to do next.
    """
    from carom.report.identified import identified_page

    out.mkdir(parents=True, exist_ok=True)
    trained, model = calibrated.trained, calibrated.model
    spec = opened_spec(trained.scene, model.values, step=timestep(trained.period))
    spec.compile()
    text = spec.to_xml()
    xml = out / "calibrated.xml"
    atomically(xml, lambda file: file.write(text.encode()))
    shown = trained if calibrated.tested is None else calibrated.tested
    before = as_it_comes(shown)
    # what is shown of unseen recordings is what is printed of them: the most representative simulation of each
    after = replace(model, sides=None).simulate(shown) if calibrated.tested is None else model.predict(shown)
    page = identified_page(out / "report.html", calibrated.identification, shown, after, before, steps)
    files = [calibrated.identification.write(out, made_from=made_from), xml, page]
    if calibrated.graph is not None:
        calibrated.graph.model.save(out / GRAPH, made_from=made_from)
        files.append(out / GRAPH)
    return files


def facts(calibrated: Calibrated) -> dict[str, Any]:
    """What a reader wants beside the parameters: errors before, after and on unseen recordings."""
    extra = calibrated.identification.extra

    def words(errors: Mapping[str, float]) -> str:
        return f"{errors['position_percent']:.1f} % of the width, {errors['rotation_deg']:.1f} deg"

    found = {"before": words(extra["errors_before"]), "after": words(extra["errors_after"])}
    if "errors_held_out" in extra:
        found[f"{len(calibrated.tested or ())} unseen recordings"] = words(extra["errors_held_out"])
        if "errors_held_out_one_simulation" in extra:
            found["the same, one simulation each"] = words(extra["errors_held_out_one_simulation"])
        for key, name in (("", "the graph simulator"), ("_corrected", "the graph simulator, corrected")):
            if f"errors_held_out_graph{key}" in extra:
                found[f"the same, by {name}"] = words(extra[f"errors_held_out_graph{key}"])
    if calibrated.graph is not None:
        found["correction of the graph simulator"] = calibrated.graph.words
    return found
