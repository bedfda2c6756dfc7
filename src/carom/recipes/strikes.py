"""What recipes for strikes share: the scene, the impacts, what the slides say, and the base models of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from carom.compare.methods import InMjx, InMujoco
from carom.core.errors import CaromError, RecordingError
from carom.engines.contact_frames import contact_frames, to_local
from carom.engines.mujoco.collide import Collider
from carom.identify import trust
from carom.identify.result import Identification
from carom.identify.strikes import gradient
from carom.identify.strikes.slides import SlideFriction, friction_from_slides
from carom.identify.strikes.surrogate import Outcomes
from carom.learn.impact.base_files import load_bases
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.shipped import shipped_bases
from carom.recordings import Recordings, check_scene, read, scene_of, strike_impacts
from carom.recordings.formats.header import HEADER_NAME
from carom.scenes.load import load_scene
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts


def any_scene(what: str | Path) -> StrikeScene:
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


def dropped_strikes(recordings: Recordings, *, settle: float | None = None) -> tuple[tuple[str, str], ...]:
    """(file, reason) of the recordings that `usable_impacts` leaves out."""
    impacts, skipped = strike_impacts(recordings, settle=settle)
    lost = np.flatnonzero(~np.isfinite(impacts.post).all(axis=1))
    return (*skipped, *((impacts.names[i], "the target's spin after contact was not measured") for i in lost))


def slides_of(recordings: Recordings) -> SlideFriction | None:
    """Ground friction and its torsional length from the recorded slides; None if there is no slide to use."""
    try:
        found = friction_from_slides(recordings)
    except RecordingError:
        return None
    return found if np.isfinite(found.friction) and found.slides else None


def held_by(slides: SlideFriction | None) -> dict[str, float]:
    """Parameters that slides give, to be held when the impacts are explained."""
    return {} if slides is None else {"ground_friction": float(slides.friction)}


def interval_by(slides: SlideFriction | None) -> dict[str, tuple[float, float]]:
    """The 90 % interval of each parameter that is `held_by` the slides."""
    return {} if slides is None else dict.fromkeys(held_by(slides), slides.interval())


def with_slides(found: Identification, slides: SlideFriction | None) -> Identification:
    """The same with what was held because slides give it (`held_by`) told as read off them, with their interval."""
    held = held_by(slides)
    if slides is None or not held:
        return found
    low, high = slides.interval()
    reason = f"read off {slides.slides} slides, without a search"
    estimates = tuple(
        replace(e, low=low, high=high, verdict="identified", reason=reason) if e.name in held else e
        for e in found.estimates
    )
    return replace(found, estimates=estimates, extra={**found.extra, "read_off": list(held)})


def fixed_by_slides(recordings: Recordings) -> dict[str, float]:
    """`held_by` the slides of these recordings."""
    return held_by(slides_of(recordings))


def slide_facts(slides: SlideFriction | None) -> dict[str, Any]:
    """What slides say, with intervals, for JSON and tables; empty without slides."""
    if slides is None:
        return {}
    low, high = slides.interval()
    return {
        "friction": slides.friction,
        "friction_low": low,
        "friction_high": high,
        "torsion_length_m": slides.torsion_length,
        "torsion_std_m": slides.torsion_std,
        "even_patch_length_m": slides.patch_length,
        "slides": slides.slides,
    }


def base_for(model: Path | None, recordings: Recordings) -> tuple[BaseModel, ...]:
    """The base models of a folder, if they were made for the bodies of these recordings; None: those of the package."""
    if model is None:
        return shipped_bases(scene_of(recordings))
    bases = load_bases(model)
    check_scene(bases[0].scene, recordings)
    return bases


def outcomes_with(found: Identification, recordings: Recordings, impacts: Impacts, model: Path | None = None) -> Array:
    """Outcomes of recorded strikes [N, 3] with identified parameters, by that which they were identified with."""
    if found.method.startswith("gradient"):
        base = next(b for b in base_for(model, recordings) if b.teacher == found.teacher)
        return base.predict(impacts.strikes, found.values(base.parameters))
    scene = scene_of(recordings)
    if found.method == "mjx":
        return InMjx(scene, found).predict(impacts.strikes).post
    return InMujoco(scene, found.values(scene.parameters("mujoco"))).predict(impacts.strikes).post


def by_gradient(
    base: BaseModel, impacts: Impacts, *, fixed: Mapping[str, float], seed: int, preset: str = "default"
) -> Identification:
    """Parameters by gradient through the frozen base model (Eq. 3)."""
    scene = base.scene
    frames = contact_frames(scene, impacts.strikes)
    local = to_local(scene, frames, impacts.post)
    speed = frames.speed if preset == "paper" else None

    def drifts(values: Array) -> list[Array]:
        """What is not read of contacts, and how far the base model is from MuJoCo itself on just these strikes."""
        out = Collider(scene, base.parameters, threads=1).run(impacts.strikes, np.tile(values, (len(impacts), 1)))
        friction = float(values[[p.name for p in base.parameters].index("ground_friction")])
        change = trust.unread(scene, impacts, out.lasting, friction)
        off = to_local(scene, frames, base.predict(impacts.strikes, values) - out.post + impacts.post) - local
        return [to_local(scene, frames, impacts.post + change) - local, off]

    outcomes = Outcomes(frames, local, speed, drifts if base.teacher == "mujoco" else None)
    return gradient.descend(
        base, outcomes, fixed=fixed, preset=preset, scene=base.scene.name, teacher=base.teacher, seed=seed
    )
