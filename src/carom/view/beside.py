"""What a user wants to see beside recordings: a model, identified parameters, a graph simulator; as engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError, ModelError
from carom.engines import MujocoSimulator
from carom.engines.contract import Simulator
from carom.engines.slider import slider_for
from carom.hybrid.draws import draws_of
from carom.hybrid.learned_impact import LearnedImpact
from carom.hybrid.model import FOLDER, HybridModel, load_hybrid
from carom.hybrid.model import HEADER as HYBRID
from carom.hybrid.simulator import HybridSimulator
from carom.identify.parameter_files import parameter_files
from carom.identify.result import FILE, FORMAT, Identification
from carom.identify.result import read as read_parameters
from carom.identify.tosses.recorded import groups
from carom.learn.graph.engine import GraphEngine
from carom.learn.graph.model import HEADER as GRAPH
from carom.learn.graph.model import load_graph
from carom.learn.impact.adapted_model import Prediction
from carom.learn.impact.base_files import HEADER as MODEL
from carom.learn.impact.base_model import BaseModel
from carom.learn.impact.shipped import shipped_bases
from carom.recordings import Recordings, check_scene
from carom.recordings.formats.header import HEADER_NAME
from carom.scenes.strike import StrikeScene
from carom.state import Strikes
from carom.view.bodies import AS_IT_COMES, FreeEngineShown
from carom.view.pushed import PushTakes, friction_of
from carom.view.strikes import StrikeEngineShown, plain_mujoco

DRAWS = 8  #: ghosts of a motion
SEED = 11  #: of the draws; any other shows the same
HALF = 1.6449  #: standard deviations in half of a 90 % interval


@dataclass
class Beside:
    """What `--with` names, sorted by what it is."""

    models: list[Path] = field(default_factory=list)
    parameters: list[Path] = field(default_factory=list)
    graphs: list[Path] = field(default_factory=list)
    recordings: list[Path] = field(default_factory=list)

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Beside:
        """Sorted; raises for what cannot be shown beside anything."""
        found = cls()
        for path in paths:
            kind = kind_of_path(path)
            if kind is None:
                raise CaromError(
                    f"--with {path}: expected a folder of recordings, an adapted model, parameters from `carom "
                    "identify`, or a graph simulator"
                )
            getattr(found, kind).append(path)
        return found

    def refuse(self, *kinds: str, why: str) -> None:
        """Raise if something was given that has no meaning here."""
        for kind in kinds:
            if given := getattr(self, kind):
                raise CaromError(f"--with {given[0]}: {why}")


def kind_of_path(path: Path) -> str | None:
    """What a path holds that motions can be made of: a field of `Beside`; None: nothing of the kind."""
    if not path.exists():
        raise CaromError(f"--with {path}: it does not exist")
    if (path / HEADER_NAME).is_file():
        return "recordings"
    if (path / FOLDER / HYBRID).is_file() or (path / MODEL).is_file():
        return "models"
    if (path / GRAPH).is_file():
        return "graphs"
    named = path.is_file() and path.suffix in (".yaml", ".yml") and FORMAT in path.read_text("utf-8", "replace")[:4096]
    if named or (path.is_dir() and ((path / FILE).is_file() or any(path.glob(f"*/{FILE}")))):
        return "parameters"
    return None


def strike_engines(recordings: Recordings, scene: StrikeScene, beside: Beside) -> tuple[StrikeEngineShown, ...]:
    """Engines for a folder of strikes: what was asked for, and MuJoCo as it comes."""
    beside.refuse("graphs", why="a graph simulator is of free bodies, and these recordings are strikes")
    engines: list[StrikeEngineShown] = []
    for path in beside.models:
        hybrid = load_hybrid(path)
        check_scene(hybrid.scene, recordings)
        engines += hybrid_engines(hybrid, path, several=len(beside.models) > 1)
    for path in beside.parameters:
        engines.append(identified_engine(path, scene))
    return (*engines, plain_mujoco(scene))


def hybrid_engines(hybrid: HybridModel, path: Path, *, several: bool = False) -> list[StrikeEngineShown]:
    """A model's hybrid with draws of what it leaves open, and MuJoCo with the parameters that explain most."""
    of = f" of {path.name}" if several else ""
    draws = tuple(draws_of(hybrid, DRAWS, seed=SEED, threads=1))
    best: Simulator = hybrid.simulator(threads=1, exact=True)
    return [
        StrikeEngineShown(f"hybrid{of}", best, draws),
        StrikeEngineShown(f"MuJoCo, fitted{of}", hybrid.simulator("mujoco", threads=1)),
    ]


def identified_engine(path: Path, scene: StrikeScene) -> StrikeEngineShown:
    """MuJoCo, or the impact that was identified with a slide after it, with values from `carom identify`."""
    (file, *more) = parameter_files(path)
    if more:
        raise CaromError(f"{path} holds parameters of several groups of free bodies; these recordings are strikes")
    found = read_parameters(file)
    drawn = draws_from(found)
    values = {e.name: e.value for e in found.estimates}
    make = partial(_with_values, scene, found.teacher)
    return StrikeEngineShown(f"identified ({found.method})", make(values), tuple(make(d) for d in drawn))


def _with_values(scene: StrikeScene, teacher: str, values: Mapping[str, float]) -> Simulator:
    if teacher == "mujoco":
        known = {p.name for p in scene.parameters("mujoco")}
        return MujocoSimulator(scene, {k: v for k, v in values.items() if k in known}, threads=1)
    base = next((b for b in shipped_bases(scene) if b.teacher == teacher), None)
    if base is None:
        raise CaromError(
            f"parameters of the teacher '{teacher}' are not simulated; identify with --method cma or gradient"
        )
    learned = LearnedImpact(scene, _Valued(base, values), slider_for(scene, values["ground_friction"]))
    return HybridSimulator(learned, threads=1)


@dataclass(frozen=True)
class _Valued:
    """A base model with fixed parameters, as a model of outcomes."""

    base: BaseModel
    values: Mapping[str, float]

    @property
    def scene(self) -> StrikeScene:
        return self.base.scene

    def predict(self, strikes: Strikes) -> Prediction:
        row = np.array([self.values.get(p.name, p.default) for p in self.base.parameters])
        post = self.base.predict(strikes, row)
        return Prediction(post, np.full_like(post, np.nan), np.ones(len(post)))


def draws_from(found: Identification) -> list[dict[str, float]]:
    """Values of all parameters that are as likely as their intervals say, correlations kept where they are known."""
    names = [e.name for e in found.estimates if np.isfinite(e.high - e.low) and e.high > e.low]
    if not names:
        return []
    std = np.array([(found[n].high - found[n].low) / (2 * HALF) for n in names])
    mean = np.array([found[n].value for n in names])
    together = np.eye(len(names))
    stated = found.extra.get("correlations")
    if isinstance(stated, Mapping) and set(stated["names"]) <= set(names):
        rows = [names.index(n) for n in stated["names"]]
        together[np.ix_(rows, rows)] = np.asarray(stated["matrix"], dtype=np.float64)
    level, axes = np.linalg.eigh((together + together.T) / 2)
    normal = np.random.default_rng(SEED).standard_normal((DRAWS, len(names)))
    drawn = mean + (normal * np.sqrt(np.maximum(level, 0.0)) @ axes.T) * std
    low, high = (np.array([_bound(found, n, side) for n in names]) for side in (0, 1))
    drawn = np.clip(drawn, low, high)
    values = {e.name: e.value for e in found.estimates}
    return [values | dict(zip(names, row, strict=True)) for row in drawn.tolist()]


def _bound(found: Identification, name: str, side: int) -> float:
    bound = float(found[name].bounds[side])
    return bound if np.isfinite(bound) else (-np.inf, np.inf)[side]


def free_engines(recordings: Recordings, beside: Beside) -> dict[int, tuple[FreeEngineShown, ...]]:
    """Engines for recordings of free bodies, by recording: parameters belong to one set of bodies."""
    beside.refuse("models", why="an adapted model is of strikes, and these recordings are of free bodies")
    files = [read_parameters(file) for path in beside.parameters for file in parameter_files(path)]
    models = [(path, load_graph(path)) for path in beside.graphs]
    made: dict[int, tuple[FreeEngineShown, ...]] = {}
    for rows in groups(recordings):
        names = {recordings.trajectories[row].name for row in rows}
        own = [f for f in files if names & set(f.extra.get("recordings", ()))] or (files if len(files) == 1 else [])
        engines = [_identified(found) for found in own]
        values = _known_to_graph(engines[0].values) if engines else {}
        for path, model in models:
            told = f"graph simulator{f' {path.name}' if len(models) > 1 else ''}"
            engines.append(FreeEngineShown(told, values, learned=partial(GraphEngine, model)))
        for row in rows:
            made[row] = (*engines, AS_IT_COMES)
    return made


def _identified(found: Identification) -> FreeEngineShown:
    values = {e.name: e.value for e in found.estimates}
    sides = found.extra.get("sides", {})
    return FreeEngineShown(f"MuJoCo, identified ({found.method})", values, tuple(draws_from(found)), sides=dict(sides))


def push_takes(recordings: Recordings, beside: Beside) -> PushTakes:
    """Pushes in MuJoCo, with the friction that was identified, where it was."""
    if not beside.parameters:
        return PushTakes(recordings)
    if len(beside.parameters) > 1:
        raise CaromError(f"--with {beside.parameters[1]}: pushes are shown with one set of parameters")
    (file, *_) = parameter_files(beside.parameters[0])
    found = read_parameters(file)
    draws = tuple(friction_of(drawn) for drawn in draws_from(found))
    named = f"MuJoCo, identified ({found.method})"
    return PushTakes(recordings, friction_of({e.name: e.value for e in found.estimates}), draws, named)


def _known_to_graph(values: Mapping[str, float]) -> dict[str, float]:
    from carom.learn.graph.conditions import TAKES

    return {name: value for name, value in values.items() if name in TAKES}


def model_of(path: Path) -> HybridModel:
    """The hybrid of an adapted model; says what is missing where there is none."""
    try:
        return load_hybrid(path)
    except ModelError as error:
        raise CaromError(f"{error}; the viewer shows motions, and a model without a hybrid has none") from error
