"""A hybrid simulator as it is made from recordings, and kept on disk beside the corrected impact model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.artefacts import Header, read_header, read_payload, versions, write_header
from carom.core.errors import ModelError, unknown_name
from carom.core.progress import Progress, Steps, silent
from carom.core.tensors import load_tensors, write_tensors
from carom.engines.approach import speed_of
from carom.engines.contact_frames import contact_frames, to_local
from carom.engines.contract import Simulator
from carom.engines.mjx.strikes import MjxSimulator
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.engines.slide_table import SlideTable
from carom.engines.slide_table_making import make_table
from carom.hybrid.learned_impact import LearnedImpact
from carom.hybrid.simulator import HybridSimulator
from carom.hybrid.slides_file import read_slides, write_slides
from carom.identify.strikes.slides import SlideFriction
from carom.identify.strikes.sliding import Sliding, sliding_from
from carom.learn import AdaptedModel, adapt
from carom.learn.impact.adapted_files import load_model, save_model
from carom.learn.impact.base_files import HEADER as MODEL
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.members import Known, plausible_members
from carom.learn.impact.network import with_weights
from carom.learn.impact.sample import sample_strikes
from carom.learn.impact.student import SMALL, Student, new_student_network, teach
from carom.recordings import Recordings
from carom.scenes.strike import StrikeScene
from carom.state import Impacts

FOLDER = "hybrid"  #: inside the folder of the corrected model
HEADER, NETWORKS, SLIDES = "hybrid.json", "student.safetensors", "slides.safetensors"
FORMAT = "carom-hybrid/2"
FASTER = 1.2  #: than what strikes within the scene's ranges set going: planning may go beyond them by a tenth
ENGINES = ("hybrid", "hybrid-mujoco", "mujoco", "mjx")


class HybridHeader(Header):
    """The header of a hybrid, beside that of its impact model."""

    sliding: Sliding
    engine_values: dict[str, float]
    student_relative_difference: dict[str, float]
    units: dict[str, str]


@final
@dataclass(frozen=True)
class HybridModel:
    """Everything a hybrid simulator needs, made from one set of recorded strikes."""

    impact: AdaptedModel  #: corrected with velocities at contact that fit the recorded slides
    student: Student  #: the same as one small network, for whole batches
    sliding: Sliding
    values: Mapping[str, float]  #: MuJoCo's parameters for what is handed back to it
    slides: SlideTable | None = None  #: where slides end; None: they are integrated

    @property
    def scene(self) -> StrikeScene:
        return self.impact.scene

    def simulator(self, engine: str = "hybrid", *, threads: int = 0, exact: bool = False) -> Simulator:
        """An engine: `hybrid` slides on its patch, `hybrid-mujoco` in MuJoCo, `mujoco` is MuJoCo all through.

        `mjx` is MuJoCo on JAX (extra `mjx`): it compiles for half a minute first.

        `exact` asks the corrected model itself, posture included, in place of its student: slower by a hundred times.
        """
        if engine not in ENGINES:
            raise ModelError(unknown_name("engine", engine, ENGINES))
        if engine == "mujoco":
            return MujocoSimulator(self.scene, self.values, threads=threads)
        if engine == "mjx":
            return MjxSimulator(self.scene, self.values)
        slider = replace(self.sliding.slider(self.scene), table=self.slides)
        learned = LearnedImpact(self.scene, self.impact if exact else self.student, slider, self.sliding.lag)
        sliding = "slider" if engine == "hybrid" else "mujoco"
        return HybridSimulator(learned, self.values, sliding=sliding, threads=threads)


def make_hybrid(
    bases: Sequence[BaseModel],
    impacts: Impacts,
    recordings: Recordings,
    *,
    fixed: Mapping[str, float],
    slides: SlideFriction | None = None,
    seed: int = 0,
    steps: int | None = None,
    progress: Progress = silent,
) -> HybridModel:
    """A hybrid simulator from recorded strikes: sliding first, then the impact that set the targets going."""
    impact, sliding = learn_motion(bases, impacts, recordings, fixed=fixed, slides=slides, seed=seed, progress=progress)
    told = partial(progress, "hybrid: teach a fast network the impact")
    told(0, SMALL.steps if steps is None else steps)  # asking its teacher takes a while
    posture = impacts.strikes.posture.mean(axis=0)
    student = teach(impact, posture=posture, seed=seed, steps=steps, progress=told)
    with ThreadPoolExecutor(1) as worker:  # beside the table: neither needs the other
        values = worker.submit(engine_values, bases, impact.train, fixed=fixed, seed=seed)
        table = table_of(student, sliding, seed=seed, progress=partial(progress, "hybrid: make a table of slides"))
        return HybridModel(impact, student, sliding, values.result(), table)


def table_of(student: Student, sliding: Sliding, *, seed: int = 0, progress: Steps | None = None) -> SlideTable:
    """Where targets end that strikes of a scene set going, up to a little beyond the fastest of a thousand."""
    scene = student.scene
    post = student.predict(sample_strikes(scene, 1024, np.random.default_rng([seed, 6]))).post
    return make_table(sliding.slider(scene), FASTER * float(speed_of(scene, post).max()), progress=progress)


def learn_motion(
    bases: Sequence[BaseModel],
    impacts: Impacts,
    recordings: Recordings,
    *,
    fixed: Mapping[str, float],
    slides: SlideFriction | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[AdaptedModel, Sliding]:
    """The sliding that recorded slides show, and the impact corrected with the velocities and mass centre they show.

    `slides` are those of `friction_from_slides`, where they have been fitted already.
    """
    progress("hybrid: fit the slides", 0, 1)
    sliding, departures = sliding_from(recordings, bases[0].scene, slides=slides)
    progress("hybrid: fit the slides", 1, 1)
    known: dict[str, Known] = {**fixed, **sliding.mass_centre()}
    told = partial(progress, "hybrid: correct base models")
    return adapt(bases, departures.applied_to(impacts), fixed=known, seed=seed, progress=told), sliding


def engine_values(
    bases: Sequence[BaseModel], impacts: Impacts, *, fixed: Mapping[str, float], seed: int
) -> dict[str, float]:
    """MuJoCo's parameters that explain the impacts best, by its base model; its defaults if there is none."""
    base = next((b for b in bases if b.teacher == "mujoco"), None)
    if base is None:
        return {p.name: p.default for p in bases[0].scene.parameters("mujoco")} | dict(fixed)
    frames = contact_frames(base.scene, impacts.strikes)
    members = plausible_members(base, frames, to_local(base.scene, frames, impacts.post), fixed=fixed, seed=seed)
    values = members.weights @ members.values
    return {p.name: float(v) for p, v in zip(base.parameters, values, strict=True)}


def save_hybrid(
    folder: Path, hybrid: HybridModel, *, made_by: Mapping[str, Any], made_from: Mapping[str, Any] | None = None
) -> None:
    """Write a hybrid into the folder of a corrected model; its header is written last."""
    place = folder / FOLDER
    save_model(place, hybrid.impact, made_by=made_by, made_from=made_from)
    tensors = {f"network.{k}": v for k, v in hybrid.student.network.state_dict().items()}
    if hybrid.student.spread is not None:
        tensors |= {f"spread.{k}": v for k, v in hybrid.student.spread.state_dict().items()}
    digest = write_tensors(place / NETWORKS, tensors)
    files = {NETWORKS: digest, MODEL: sha256((place / MODEL).read_bytes()).hexdigest()}
    if hybrid.slides is not None:
        files[SLIDES] = write_slides(place / SLIDES, hybrid.slides)
    header = {
        "format": FORMAT,
        "sliding": asdict(hybrid.sliding),
        "engine_values": dict(hybrid.values),
        "student_relative_difference": hybrid.student.fidelity,
        "units": {"viscosity": "s/m", "lag": "s", "com_x": "m", "com_y": "m", "com_std": "m", "residual": "m"},
        "made_from": dict(made_from or {}),
        "made_with": versions(("mujoco", "torch", "numpy", "safetensors")),
        "files": files,
    }
    write_header(place / HEADER, header)


def load_hybrid(folder: str | Path) -> HybridModel:
    """The hybrid of a corrected model's folder, checked."""
    folder = Path(folder)
    path = folder / FOLDER / HEADER
    missing = (
        f"{folder} holds no hybrid simulator ({FOLDER}/{HEADER} is missing): make it with "
        f"carom adapt BASE RECORDINGS --out {folder}, from recordings in which the target slides to rest"
    )
    header = read_header(path, HybridHeader, FORMAT, missing=missing, again="carom adapt")
    read_payload(folder / FOLDER / MODEL, header["files"])  # the impact model that it was made with, and no other
    try:
        sliding = Sliding(**{k: float(v) for k, v in header["sliding"].items()})
        values = {str(k): float(v) for k, v in header["engine_values"].items()}
        fidelity = {str(k): float(v) for k, v in header["student_relative_difference"].items()}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"{path} is damaged: {type(error).__name__} {error}") from error
    numbers = [sliding.friction, sliding.viscosity, sliding.size, sliding.lag, *values.values()]
    if not np.isfinite(numbers).all() or sliding.friction <= 0 or sliding.size <= 0:
        raise ModelError(f"{path}: friction, patch and MuJoCo's parameters must be finite, the first two positive")
    impact = load_model(folder / FOLDER)
    if not isinstance(impact, AdaptedModel):
        raise ModelError(f"{folder / FOLDER} holds no model of Carom's default correction")
    files = header["files"]
    student = _load_student(path.parent / NETWORKS, files, impact.scene, fidelity)
    slides = read_slides(path.parent / SLIDES, files) if SLIDES in files else None  # none in folders made before
    return HybridModel(impact, student, sliding, values, slides)


def _load_student(path: Path, files: Mapping[str, str], scene: StrikeScene, fidelity: dict[str, float]) -> Student:
    tensors = load_tensors(path, files)
    network, spread = (
        {k.removeprefix(f"{part}."): v for k, v in tensors.items() if k.startswith(f"{part}.")}
        for part in ("network", "spread")
    )
    return Student(
        scene,
        with_weights(new_student_network(scene), network, path),
        with_weights(new_student_network(scene), spread, path) if spread else None,
        fidelity,
    )
