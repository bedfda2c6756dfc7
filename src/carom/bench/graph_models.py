"""What `carom bench graph` compares: MuJoCo calibrated with three tosses, and graph simulators that learn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from carom.bench.benchmark import Options
from carom.core.errors import CaromError
from carom.identify.tosses.predict import MotionModel
from carom.identify.tosses.recorded import Motions, motions_of
from carom.identify.tosses.result import identify_motions, with_found_sides
from carom.learn.graph import GraphModel, Recipe, Stage, corrected, fine_tuned, load_graph, train_graph
from carom.recordings import Recordings, read, write
from carom.scale import Calibration, augment, cubes, scale, shapes, toss, varied
from carom.scale.around import recorded
from carom.scenes.free import timestep
from carom.scenes.parameters import free_parameters

FITTED = 3  #: tosses
TESTED = 100
TRAJECTORIES = 3000
VARIED = 2.5  #: factor by which parameters of contacts differ where one model is to serve them all
OF_CONTACT = ("friction", "stiffness", "damping", "gravity")  #: what scenes of several bodies are told
SCENES_SECONDS = 0.8  #: of their trajectories
SCENES = {"toss": 1000, "cubes": 1000, "shapes": 2000}  #: trajectories
#: how the network that serves all scenes is trained: an update through many frames costs little more with more windows
WIDE = Recipe(stages=(Stage(1, 512, 1000), Stage(8, 256, 600), Stage(20, 144, 500)), judged_every=350)


@dataclass(frozen=True)
class Calibrated:
    """MuJoCo with the parameters that three tosses tell."""

    model: MotionModel
    trained: Motions
    sided: Motions  #: the same, with the heavy sides that were found
    tested: Motions
    folder: Path  #: recordings that were fitted
    period: float  #: [s]

    def calibration(self, *names: str) -> Calibration:
        """Its parameters, or some of them, for data."""
        values = {n: v for n, v in self.model.values.items() if not names or n in names}
        bounds = tuple((v, v) for v in values.values())
        return Calibration(free_parameters(list(values)), tuple(values.values()), bounds, f"{FITTED} tosses")

    @property
    def contact(self) -> dict[str, float]:
        """What scenes of several bodies are told."""
        return {name: self.model.values[name] for name in OF_CONTACT if name in self.model.values}


def place(o: Options, draw: int) -> Path:
    """Where data and models of a draw are kept."""
    return o.out / "graph" / f"draw-{o.seed}-{draw}"


@lru_cache(maxsize=2)
def _every(data: Path) -> tuple[Recordings, Motions]:
    recordings = read(data)
    return recordings, motions_of(recordings)[0]


@lru_cache(maxsize=4)
def _calibrated(data: Path, folder: Path, seed: int, draw: int, threads: int) -> Calibrated:
    recordings, every = _every(data)
    order = np.random.default_rng([seed, draw]).permutation(len(every))
    if len(order) < FITTED + 10:
        raise CaromError(f"graph: {len(order)} tosses are too few to fit {FITTED} and test on others")
    trained, tested = every[order[:FITTED]], every[order[FITTED : FITTED + TESTED]]
    found, model = identify_motions(trained, seed=seed + draw, threads=threads)
    kept = folder / "fitted"
    if not kept.exists():
        names = set(trained.names)
        few = tuple(t for t in recordings.trajectories if t.name in names)
        write(kept, replace(recordings, path=kept, trajectories=few))
    return Calibrated(model, trained, with_found_sides(trained, found), tested, kept, trained.period)


def calibrated(o: Options, draw: int) -> Calibrated:
    """The draw's own calibration."""
    return _calibrated(o.data, place(o, draw), o.seed, draw, o.threads)


def _made(folder: Path, train: Mapping[str, object], data: list[Path], o: Options) -> GraphModel:
    """A trained model: the one that is there, or a new one."""
    if not (folder / "graph.json").is_file():
        train_graph(data, folder, progress=o.progress, **train)  # type: ignore[arg-type]
    return load_graph(folder)


def of_tosses(o: Options, draw: int, method: str) -> GraphModel:
    """A graph simulator of tosses: the default's or the paper's network, one that saw rotated recordings alone, or the
    default corrected with the fitted recordings."""
    found, folder = calibrated(o, draw), place(o, draw)
    if method == "graph-corrected":
        return corrected(of_tosses(o, draw, "graph"), found.model, found.sided).model
    if method == "graph-fine-tuned":
        return fine_tuned(of_tosses(o, draw, "graph"), found.model, found.sided)
    if method == "graph-augmented":
        augment(found.folder, folder / "rotated", count=TRAJECTORIES, seed=o.seed, progress=o.progress)
        known = {n: v for n, v in found.model.values.items() if n not in ("com_offset", "length_scale")}
        return _made(folder / method, {"seed": o.seed, "known": known}, [folder / "rotated"], o)
    half = TRAJECTORIES // 2
    sources = {"around": recorded(found.folder), "thrown": toss(rate=1 / found.period)}
    for name, source in sources.items():
        scale(source, found.calibration(), folder / name, count=half, seed=o.seed, threads=o.threads)
    how = {"preset": "paper", "recipe": Recipe.of(preset="paper")} if method == "graph-paper" else {}
    return _made(folder / method, {"seed": o.seed, **how}, [folder / name for name in sources], o)


def of_scenes(o: Options, draw: int) -> GraphModel:
    """One graph simulator for several bodies of many shapes, and for parameters other than the calibrated ones."""
    found, folder = calibrated(o, draw), place(o, draw)
    rate, seconds = 1 / found.period, SCENES_SECONDS
    sources = {
        "toss": toss(rate=rate, duration=seconds),
        "cubes": cubes(rate=rate, duration=seconds),
        "shapes": shapes(rate=rate, duration=seconds, bodies=(1, 3)),
    }
    told = varied(found.calibration(*OF_CONTACT), VARIED, timestep(found.period))
    for name, source in sources.items():
        made = folder / f"scenes-{name}"
        scale(source, told, made, count=SCENES[name], seed=o.seed, threads=o.threads, progress=o.progress)
    data = [folder / f"scenes-{name}" for name in sources]
    return _made(folder / "scenes", {"seed": o.seed, "recipe": WIDE}, data, o)
