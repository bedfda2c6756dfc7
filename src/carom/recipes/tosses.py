"""Identification from folders of free bodies: which recordings, what is written, what a reader sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import atomically
from carom.core.errors import CaromError, RecordingError, SceneError, unknown_name
from carom.core.progress import Progress
from carom.engines.mujoco.bodies import FreeBatch, FreeMotion
from carom.identify.result import Identification
from carom.identify.tosses.predict import MotionModel
from carom.identify.tosses.recorded import Motions, groups, motions_of
from carom.identify.tosses.result import SIDE_NAMES, errors_of, identify_motions, percent_errors
from carom.identify.tosses.search import METHODS, How
from carom.identify.tosses.sides import SIDES
from carom.recordings import Recordings, scene_of
from carom.recordings.impacts.ground import is_tossed
from carom.scenes.parameters import FREE, TABLE_II

MOST = 12  #: recordings that a fit uses unless told; the others test it
TESTED = 100  #: at most


@dataclass(frozen=True)
class Calibrated:
    """One identification of free bodies, with what it was made from and tested on."""

    identification: Identification
    model: MotionModel
    trained: Motions  #: with the heavy sides that were found
    tested: Motions | None  #: recordings that the fit has not seen


def is_free(recordings: Recordings) -> bool:
    """Whether these are recordings of bodies that move freely, not of a striker and its target."""
    first = recordings.trajectories[0]
    if any(is_tossed(first, name) for name in first.targets):
        return True
    try:
        scene_of(recordings)
    except (SceneError, RecordingError, CaromError):
        return True
    return False


def parameter_names(text: str | None) -> tuple[str, ...] | None:
    """Names from a comma-separated list; `table-ii` stands for the few-shot paper's eight."""
    if text is None:
        return None
    names = tuple(n.strip() for n in text.split(",") if n.strip())
    return tuple(dict.fromkeys(m for n in names for m in (TABLE_II if n == "table-ii" else (n,))))


def identify_free(
    recordings: Recordings,
    *,
    method: str = "cma",
    names: Sequence[str] | None = None,
    fixed: Mapping[str, float] | None = None,
    fit: int | None = None,
    refine_starts: bool = False,
    seed: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
) -> list[Calibrated]:
    """Identify every group of recordings that share their bodies; what the fit does not use tests it."""
    if method not in METHODS:
        raise CaromError(f"recordings of free bodies: {unknown_name('method', method, METHODS)}")
    told = progress or (lambda what, done, total: None)
    found = []
    for rows in groups(recordings):
        every, _ = motions_of(recordings, rows)
        trained, tested = _split(every, MOST if fit is None else fit, seed)
        identification, model = identify_motions(
            trained,
            names=names,
            fixed=fixed,
            how=How(method, refine_starts=refine_starts),
            seed=seed,
            threads=threads,
            progress=partial(told, f"identify: {method}, {every.names[0]}"),
        )
        if tested is not None:
            predicted = model.predict(tested, threads=threads)
            errors = errors_of(tested, predicted)
            how = "" if model.sides is None else ", the most representative simulation of each"
            words = f"{len(tested)} recordings that the fit has not seen{how}"
            extra = {**identification.extra, "errors_held_out": percent_errors(tested, predicted)}
            if model.sides is not None:
                single = model.simulate(tested, threads=threads)
                extra["errors_held_out_one_simulation"] = percent_errors(tested, single)
            identification = replace(identification, held_out=errors, held_out_by=words, extra=extra)
        if "sides" in identification.extra:
            trained = trained.with_sides(
                SIDES[[SIDE_NAMES.index(side) for side in identification.extra["sides"].values()]]
            )
        found.append(Calibrated(identification, model, trained, tested))
    return found


def _split(every: Motions, fit: int, seed: int) -> tuple[Motions, Motions | None]:
    """Recordings to fit, drawn by the seed, and up to `TESTED` others."""
    if fit < 1:
        raise CaromError(f"--fit must be at least 1, got {fit}")
    order = np.random.default_rng(seed).permutation(len(every))
    rest = order[fit : fit + TESTED]
    return every[np.sort(order[:fit])], every[np.sort(rest)] if len(rest) else None


def write_calibrated(out: Path, calibrated: Calibrated) -> list[Path]:
    """`parameters.yaml`, `calibrated.xml` (opens in MuJoCo as it is) and `report.html` in a folder."""
    from carom.report.identified import identified_page

    out.mkdir(parents=True, exist_ok=True)
    trained, model = calibrated.trained, calibrated.model
    engine = FreeBatch(trained.scene, tuple(FREE[name] for name in model.values), period=trained.period)
    spec = engine.spec_with(dict(model.values))
    spec.compile()
    text = spec.to_xml()
    xml = out / "calibrated.xml"
    atomically(xml, lambda file: file.write(text.encode()))
    shown = trained if calibrated.tested is None else calibrated.tested
    before = _before(shown)
    after = (replace(model, sides=None) if calibrated.tested is None else model).simulate(shown)
    page = identified_page(out / "report.html", calibrated.identification, shown, after, before)
    return [calibrated.identification.write(out), xml, page]


def _before(motions: Motions) -> FreeMotion:
    """The recordings in MuJoCo as it comes."""
    return FreeBatch(motions.scene, (), period=motions.period).run(motions.starts, np.zeros((1, 0)), motions.samples)


def facts(calibrated: Calibrated) -> dict[str, Any]:
    """What a reader wants beside the parameters: errors before, after and on unseen recordings; the contact."""
    extra = calibrated.identification.extra

    def words(errors: Mapping[str, float]) -> str:
        return f"{errors['position_percent']:.1f} % of the width, {errors['rotation_deg']:.1f} deg"

    found = {"before": words(extra["errors_before"]), "after": words(extra["errors_after"])}
    if "errors_held_out" in extra:
        found[f"{len(calibrated.tested or ())} unseen recordings"] = words(extra["errors_held_out"])
        if "errors_held_out_one_simulation" in extra:
            found["the same, one simulation each"] = words(extra["errors_held_out_one_simulation"])
    found["restitution"] = f"{extra['restitution']:.2f}"
    found["contact time"] = f"{1000 * extra['contact_time_s']:.1f} ms"
    return found
