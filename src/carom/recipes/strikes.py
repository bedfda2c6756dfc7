"""Stages applied to folders: identify, adapt and predict, from what a user has on disk."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carom.compare.ends import START
from carom.core.errors import CaromError, RecordingError, unknown_name
from carom.core.progress import Progress
from carom.engines.approach import at_distance
from carom.engines.contact_frames import contact_frames, to_local
from carom.engines.contract import Status
from carom.hybrid.model import FOLDER, HEADER, load_hybrid, make_hybrid, save_hybrid
from carom.identify.result import Identification
from carom.identify.strikes import gradient, search
from carom.identify.strikes.slides import friction_from_slides
from carom.identify.strikes.surrogate import Outcomes
from carom.learn import Correction, adapt, fine_tune
from carom.learn.impact.adapted_files import load_model, save_model
from carom.learn.impact.base_files import load_bases
from carom.learn.impact.base_model import BaseModel
from carom.recordings import Recordings, approaches, check_scene, read, scene_of, strike_impacts
from carom.recordings.formats.header import HEADER_NAME
from carom.scenes.load import load_scene
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes

METHODS = ("gradient", "grid", "cma", "mjx")
LONGEST = 10.0  #: [s] in which a struck target comes to rest
CANDIDATES = 250  #: tried on every strike by a search


def any_scene(what: str) -> StrikeScene:
    """A built-in scene by name, a scene file, or the scene of a recordings folder."""
    path = Path(what)
    return scene_of(read(path)) if (path / HEADER_NAME).is_file() else load_scene(what)


def usable_impacts(recordings: Recordings, *, settle: float | None = None) -> Impacts:
    """The recorded strikes that can be learned from; raises if there is none."""
    impacts, skipped = strike_impacts(recordings, settle=settle)
    good = np.isfinite(impacts.post).all(axis=1)
    if not good.any():
        why = f" ({skipped[0][0]}: {skipped[0][1]})" if skipped else " (the target's orientation was not measured)"
        raise CaromError(f"{recordings.path}: no usable strike{why}; run: carom check {recordings.path}")
    return impacts[np.flatnonzero(good)]


def slide_facts(recordings: Recordings) -> dict[str, Any]:
    """Ground friction and its torsional length from the recorded slides; empty if there is no slide to use."""
    try:
        found = friction_from_slides(recordings)
    except CaromError:
        return {}
    if not np.isfinite(found.friction) or not found.slides:
        return {}
    low, high = found.interval()
    return {
        "friction": found.friction,
        "friction_low": low,
        "friction_high": high,
        "torsion_length_m": found.torsion_length,
        "torsion_std_m": found.torsion_std,
        "even_patch_length_m": found.patch_length,
        "slides": found.slides,
    }


def fixed_by_slides(recordings: Recordings) -> dict[str, float]:
    """Parameters that the slides give, to be held when the impacts are explained."""
    facts = slide_facts(recordings)
    return {"ground_friction": float(facts["friction"])} if facts else {}


def base_for(model: Path, recordings: Recordings) -> tuple[BaseModel, ...]:
    """The base models of a folder, if they were made for the bodies of these recordings."""
    bases = load_bases(model)
    check_scene(bases[0].scene, recordings)
    return bases


def by_gradient(
    base: BaseModel, impacts: Impacts, *, fixed: dict[str, float], seed: int, preset: str
) -> Identification:
    """Parameters by gradient through the frozen base model (Eq. 3)."""
    frames = contact_frames(base.scene, impacts.strikes)
    local = to_local(base.scene, frames, impacts.post)
    speed = frames.speed if preset == "paper" else None
    outcomes = Outcomes(frames, local, speed)
    return gradient.descend(
        base, outcomes, fixed=fixed, preset=preset, scene=base.scene.name, teacher=base.teacher, seed=seed
    )


def identify_strikes(
    folder: Path, method: str, *, model: Path | None, settle: float | None, seed: int, progress: Progress
) -> tuple[Identification, dict[str, Any]]:
    """Identify contact parameters from recorded strikes; ground friction comes from the slides."""
    if method not in METHODS:
        raise CaromError(unknown_name("method", method, METHODS))
    recordings = read(folder)
    impacts = usable_impacts(recordings, settle=settle)
    slides = slide_facts(recordings)
    fixed = {"ground_friction": float(slides["friction"])} if slides else {}

    def step(done: int, total: int) -> None:
        progress(f"identify: {method}", done, total)

    if method == "gradient":
        if model is None:
            raise CaromError("--method gradient needs --model DIR, a base model from: carom distill SCENE --out DIR")
        base = base_for(model, recordings)[0]
        return by_gradient(base, impacts, fixed=fixed, seed=seed, preset="default"), slides
    scene = scene_of(recordings)
    if method == "mjx":
        from carom.identify.strikes import mjx

        return mjx.fit(scene, impacts, fixed=fixed, seed=seed, progress=step), slides
    search_by = {"grid": search.grid, "cma": search.cma}[method]
    budget = max(2500, CANDIDATES * len(impacts))
    return search_by(scene, impacts, fixed=fixed, budget=budget, seed=seed, progress=step), slides


def adapt_to(
    model: Path, folder: Path, out: Path, *, preset: str, settle: float | None, seed: int, progress: Progress
) -> dict[str, Any]:
    """Correct the base models of a folder with the strikes of another, and save the result."""
    if preset not in ("default", "paper"):
        raise CaromError(unknown_name("preset", preset, ("default", "paper")))
    recordings = read(folder)
    bases = base_for(model, recordings)
    impacts = usable_impacts(recordings, settle=settle)
    (out / FOLDER / HEADER).unlink(missing_ok=True)  # a hybrid of other recordings is none for these
    progress("adapt", 1, 2)
    fixed = fixed_by_slides(recordings)
    made_by = {"command": "adapt", "preset": preset, "strikes": len(impacts), "seed": seed, "fixed": fixed}
    facts: dict[str, Any] = {"model": str(out), "strikes": len(impacts), **fixed}
    if preset == "paper":
        found = by_gradient(bases[0], impacts, fixed=fixed, seed=seed, preset="paper")
        save_model(out, fine_tune(bases[0], impacts, found.values(bases[0].parameters)), made_by=made_by)
        facts |= {"teacher": bases[0].teacher, **{e.name: e.value for e in found.estimates}}
    else:
        adapted = adapt(bases, impacts, fixed=fixed, seed=seed)
        save_model(out, adapted, made_by=made_by)
        teachers = {c.base.teacher: float(w) for c, w in zip(adapted.corrections, adapted.weights, strict=True)}
        facts |= {"teachers": teachers, "evidence": adapted.evidence, **member_facts(adapted.best)}
        facts |= _add_hybrid(out, bases, impacts, recordings, fixed=fixed, seed=seed, made_by=made_by)
    progress("adapt", 2, 2)
    return facts


def _add_hybrid(
    out: Path,
    bases: tuple[BaseModel, ...],
    impacts: Impacts,
    recordings: Recordings,
    *,
    fixed: dict[str, float],
    seed: int,
    made_by: dict[str, Any],
) -> dict[str, Any]:
    """Add the hybrid simulator to a corrected model's folder; says why not if the recordings show no slide."""
    try:
        hybrid = make_hybrid(bases, impacts, recordings, fixed=fixed, seed=seed)
    except RecordingError as reason:
        return {"hybrid": f"not made: {reason}"}
    save_hybrid(out, hybrid, made_by=made_by)
    sliding = {k: v for k, v in asdict(hybrid.sliding).items() if np.isfinite(v)}
    return {"sliding": sliding, "student_relative_difference": hybrid.student.fidelity}


def member_facts(correction: Correction) -> dict[str, Any]:
    """What the members of a correction agree on: weighted median and 90 % interval of each parameter."""
    facts: dict[str, Any] = {}
    for i, p in enumerate(correction.base.parameters):
        values, weights = correction.members.values[:, i], correction.members.weights
        order = np.argsort(values)
        share = np.cumsum(weights[order])
        low, middle, high = (values[order][np.searchsorted(share, q)] for q in (0.05, 0.5, 0.95))
        facts[p.name] = {"value": float(middle), "low": float(low), "high": float(high), "unit": p.unit}
    return facts


def predict_strikes(model: Path, folder: Path) -> dict[str, Any]:
    """Predictions by data file, as the recordings format states them; only samples before the contact are used."""
    adapted = load_model(model)
    recordings = read(folder)
    scene = adapted.scene
    check_scene(scene, recordings)
    strikes, names, skipped = approaches(recordings)
    found: dict[str, Any] = {
        name: {"post": None, "post_std": None, "rest": None, "status": f"no strike: {reason}", "from_engine": False}
        for name, reason in skipped
    }
    if len(strikes):
        predicted = adapted.predict(strikes)
        rest, from_engine = _rest(model, strikes)
        for i, name in enumerate(names):
            found[name] = {
                "post": predicted.post[i].tolist(),
                "post_std": predicted.post_std[i].tolist(),
                "rest": None if rest is None or not np.isfinite(rest[i]).all() else rest[i].tolist(),
                "status": "ok" if predicted.known[i] else "outside what the model has learned",
                "from_engine": bool(from_engine[i]),
            }
    return {t.name: found[t.name] for t in recordings.trajectories if t.name in found}


def _rest(model: Path, strikes: Strikes) -> tuple[Array | None, NDArray[np.bool_]]:
    """Where the targets come to rest [N, 3], by the model's hybrid, and whether MuJoCo's own contact was asked [N]."""
    if not (model / FOLDER / HEADER).is_file():
        return None, np.zeros(len(strikes), dtype=bool)
    hybrid = load_hybrid(model)
    initial = at_distance(hybrid.scene, strikes, START, {})
    run = hybrid.simulator(exact=True).rollout(initial, LONGEST)
    lost = (run.status == Status.FAILED) | (run.status == Status.MISSED)
    return np.where(lost[:, None], np.nan, run.rest), run.from_engine > 0
