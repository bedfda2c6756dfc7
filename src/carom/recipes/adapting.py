"""`carom adapt`: base models corrected with a handful of recorded strikes, and the hybrid simulator made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.artefacts import SEAL
from carom.core.errors import CaromError, RecordingError, unknown_name
from carom.core.folders import refuse_others, replacing
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.hybrid.model import FOLDER, NETWORKS, SLIDES, HybridModel, make_hybrid, save_hybrid
from carom.hybrid.model import HEADER as HYBRID_HEADER
from carom.identify.strikes.sliding import Sliding
from carom.learn import AdaptedModel, Explanation, TunedModel, fine_tune
from carom.learn import adapt as adapt_bases
from carom.learn.impact.adapted_files import CORRECTION, save_model
from carom.learn.impact.base_files import HEADER, read_header
from carom.learn.impact.training import torch_threads
from carom.recipes.checking import findings_of
from carom.recipes.result import PrintedTable, Result, command, table_of
from carom.recipes.result_page import REPORT, result_page
from carom.recipes.strikes import (
    base_for,
    by_gradient,
    dropped_strikes,
    held_by,
    interval_by,
    slides_of,
    usable_impacts,
)
from carom.recordings import read
from carom.report.identified_strikes import outcome_sections
from carom.scenes.strike import DISTILLED
from carom.state import Impacts

PRESETS = ("default", "paper")
_MODEL = (HEADER, CORRECTION, *(f"{teacher}-*.safetensors" for teacher in DISTILLED))
#: what the printed table calls the facts of a model
MEANING = {
    "ground_friction": "ground friction, from the slides",
    "teachers": "explanations (share)",
    "not_learned_from": "strikes that do not fit the others",
    "student_relative_difference": "fast network, error (relative)",
}
#: what a folder of a corrected model holds
OWN = (*_MODEL, *(f"{FOLDER}/{name}" for name in (*_MODEL, HYBRID_HEADER, NETWORKS, SLIDES)), REPORT)


@final
@dataclass(frozen=True)
class AdaptResult(Result):
    """A corrected model, its hybrid simulator, and the folder that holds both."""

    out: Path
    model: AdaptedModel | TunedModel
    hybrid: HybridModel | None  #: None with the preset `paper`, or if the recordings show no slide
    facts: Mapping[str, Any]  #: strikes, parameters with intervals, teachers, sliding
    findings: tuple[str, ...] = ()  #: what `check` warns of in the recordings
    dropped: tuple[tuple[str, str], ...] = ()  #: recordings that were not learned from, and why
    recordings: Path = Path("RECORDINGS")

    def to_dict(self) -> dict[str, Any]:
        return {**self._shown(), "findings": list(self.findings), "dropped": dict(self.dropped)}

    def _shown(self) -> dict[str, Any]:
        return {"model": str(self.out), **self.facts}

    def tables(self) -> Sequence[PrintedTable]:
        estimates = {k: v for k, v in self.facts.items() if isinstance(v, Mapping) and "low" in v}
        rows = [[name, e["value"], f"{e['low']:.3g} to {e['high']:.3g}", e["unit"]] for name, e in estimates.items()]
        apart = {*estimates, "weights", "sliding"}  # a note says what predictions rest on
        made = [self._summary({k: v for k, v in self._shown().items() if k not in apart})]
        if self.hybrid is not None:
            made.append(PrintedTable("sliding after contact", ("what", "value"), _sliding_rows(self.hybrid.sliding)))
        if rows:
            told = (
                [f"of {self.model.best.base.teacher} contact, the explanation that counts most"]
                if isinstance(self.model, AdaptedModel)
                else []
            )
            made.append(PrintedTable("parameters", ("parameter", "value", "90 % interval", "unit"), rows, told))
        return made

    def _summary(self, facts: Mapping[str, Any]) -> PrintedTable:
        """What was made, in words; JSON has the same under the names in `MEANING`."""
        named = {MEANING.get(name, name): value for name, value in facts.items() if value not in ([], None)}
        return table_of(f"corrected model in {self.out}", named)

    def next_commands(self) -> Sequence[str]:
        return (
            command("predict", self.out, self.recordings),
            *([command("view", self.recordings, "--with", self.out)] if self.hybrid is not None else ()),
            *([command("plan", self.out, "--target", 0.1, 0, 0)] if self.hybrid is not None else ()),
        )

    def notes(self) -> Sequence[str]:
        left_out = [f"{name} was left out: {reason}" for name, reason in self.dropped]
        words = self.model.words if isinstance(self.model, AdaptedModel) else ()
        return [*self.findings, *left_out, *words]


@torch_threads(1)  # pieces are small: on a busy machine two threads wait for each other, and took three times as long
def adapt(
    model: str | Path | None,
    recordings: str | Path,
    out: str | Path,
    *,
    preset: str = "default",
    settle: float | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> AdaptResult:
    """Correct base models with recorded strikes, and save the result.

    `model` is a folder of base models, from `distill`; None: those that come with Carom, for any convex target.
    Ground friction comes from the slides and is held. With the preset `default` the folder also gets a hybrid
    simulator. `settle` is the time after first motion at which outcomes are read [s]; None: the end of contact.
    """
    if preset not in PRESETS:
        raise CaromError(unknown_name("preset", preset, PRESETS))
    with locked(Path(out)):
        return _adapt(
            None if model is None else Path(model), Path(recordings), Path(out), preset, settle, seed, progress
        )


def _adapt(
    model: Path | None, recordings: Path, place: Path, preset: str, settle: float | None, seed: int, progress: Progress
) -> AdaptResult:
    refuse_others(place, OWN)
    progress("read recordings and base models", 0, 3)
    folder = read(recordings)
    bases = base_for(model, folder)
    progress("read recordings and base models", 1, 3)
    impacts = usable_impacts(folder, settle=settle)
    progress("read recordings and base models", 2, 3)
    slides = slides_of(folder)
    progress("read recordings and base models", 3, 3)
    fixed = held_by(slides)
    made_by = {"command": "adapt", "preset": preset, "strikes": len(impacts), "seed": seed, "fixed": fixed}
    facts: dict[str, Any] = {"strikes": len(impacts), **fixed}
    if bases[0].ranges is not None and (outside := bases[0].ranges.outside(bases[0].scene)):
        facts["base models not used"] = "; ".join(outside)
    corrected: AdaptedModel | TunedModel
    hybrid = None
    if preset == "paper":
        found = by_gradient(bases[0], impacts, fixed=fixed, seed=seed, preset="paper")
        corrected = fine_tune(bases[0], impacts, found.values(bases[0].parameters))
        facts |= {"teacher": bases[0].teacher, **{e.name: e.value for e in found.estimates}}
    else:
        told = partial(progress, "correct base models")
        corrected = adapt_bases(bases, impacts, fixed=fixed, seed=seed, progress=told)
        facts |= _correction_facts(corrected, interval_by(slides))
        try:
            hybrid = make_hybrid(bases, impacts, folder, fixed=fixed, slides=slides, seed=seed, progress=progress)
        except RecordingError as reason:
            facts["hybrid"] = f"not made: {reason}"
        else:
            facts |= _hybrid_facts(hybrid)
    parent = {} if model is None else {"model": {"name": model.resolve().name, "sha256": read_header(model)[SEAL]}}
    made_from = {"recordings": folder.made_from(), **parent}
    left_out = dropped_strikes(folder, settle=settle)
    result = AdaptResult(place, corrected, hybrid, facts, findings_of(recordings), left_out, recordings)
    with replacing(place, OWN) as fresh:
        save_model(fresh, corrected, made_by=made_by, made_from=made_from)
        if hybrid is not None:
            save_hybrid(fresh, hybrid, made_by=made_by, made_from=made_from)
        _page(fresh / REPORT, result, impacts)
    return result


def _page(path: Path, result: AdaptResult, impacts: Impacts) -> None:
    """The model's page: what it rests on, and what it says of the strikes that it learned from."""
    said = result.model.predict(impacts.strikes)
    words = "The model has learned from these strikes; unseen ones are off by more, as far as their bars say."
    short = (
        f"A simulator of **{result.model.scene.name}**, corrected with {len(impacts)} recorded strikes. "
        + (
            "It predicts velocities after contact, and where the target comes to rest, with intervals."
            if result.hybrid is not None
            else "It predicts velocities after contact only: the recordings show no slide, or the preset makes none."
        ),
    )
    result_page(
        path,
        result,
        title=f"A corrected model: {result.model.scene.name}",
        subtitle=f"{len(impacts)} strikes",
        short=short,
        figures=outcome_sections(result.model.scene, impacts, said.post, said.post_std, words),
    )


def _correction_facts(adapted: AdaptedModel, held: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    found = {"weights": adapted.reasons, "teachers": adapted.teachers, "not_learned_from": list(adapted.odd)}
    parameters = _member_facts(adapted.best)
    for name in parameters.keys() & held.keys():  # all members have it: it is known as well as the slides tell
        parameters[name] |= dict(zip(("low", "high"), held[name], strict=True))
    return {**found, **parameters}


def _sliding_rows(sliding: Sliding) -> list[list[str]]:
    """How the target slides, in words and with units."""
    off, std = (1e3 * v for v in (np.hypot(sliding.com_x, sliding.com_y), sliding.com_std))
    return [
        ["friction with the ground", f"{sliding.friction:.3g} +- {sliding.friction_std:.2g}"],
        ["growth of friction with speed", f"{sliding.viscosity:.2g} s/m"],
        ["pressure patch (1: even under the outline)", f"{sliding.size:.3g}"],
        ["centre of mass, off the declared one by", f"{off:.2g} mm +- {std:.2g} mm"],
        ["recorded slides, off the fitted ones by", f"{1e3 * sliding.residual:.2g} mm (rms)"],
    ]


def _hybrid_facts(hybrid: HybridModel) -> dict[str, Any]:
    sliding = {k: v for k, v in asdict(hybrid.sliding).items() if np.isfinite(v)}
    return {"sliding": sliding, "student_relative_difference": hybrid.student.fidelity}


def _member_facts(correction: Explanation) -> dict[str, dict[str, Any]]:
    """What the members of an explanation agree on: weighted median and 90 % interval of each parameter."""
    facts: dict[str, dict[str, Any]] = {}
    for i, p in enumerate(correction.base.parameters):
        values, weights = correction.members.values[:, i], correction.members.weights
        order = np.argsort(values)
        share = np.cumsum(weights[order])
        low, middle, high = (values[order][np.searchsorted(share, q)] for q in (0.05, 0.5, 0.95))
        facts[p.name] = {"value": float(middle), "low": float(low), "high": float(high), "unit": p.unit}
    return facts
