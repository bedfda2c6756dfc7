"""The whole training of the graph simulator: read trajectories, train with checkpoints, keep the best network."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from pydantic import Field, FiniteFloat

from carom.core.artefacts import SEAL, Header, plain, read_header, versions, write_header
from carom.core.errors import CaromError, short
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.core.tensors import load_tensors, write_tensors
from carom.learn.graph.examples import Frames, contacts_of, frames_of
from carom.learn.graph.face_pairs import refuse_without_coal
from carom.learn.graph.model import ALIKE, GraphModel, new_network
from carom.learn.graph.training import Learner, Recipe, rollout_errors
from carom.learn.impact.training import torch_threads
from carom.scale import ScaledTrajectory, Trajectories, load

HELD_OUT = 0.05  #: share of the trajectories that judge, at most `MOST_HELD_OUT`
MOST_HELD_OUT = 100
LEAST = 20  #: trajectories
FORMAT = "carom-graph-checkpoint/1"
CHECKPOINT = "checkpoint"


class CheckpointHeader(Header):
    """The header of a checkpoint."""

    settings: dict[str, Any]
    update: int = Field(ge=0, le=10**9)
    best: FiniteFloat | None
    curve: list[tuple[int, FiniteFloat, FiniteFloat, FiniteFloat]]


@dataclass(frozen=True)
class GraphTraining:
    """A trained graph simulator, and how the training went."""

    model: GraphModel
    curve: tuple[tuple[int, float, float, float], ...]  #: update, loss, held-out place over reach, held-out angle [rad]
    seconds: float
    trajectories: int


def train_graph(
    data: Sequence[str | Path],
    out: str | Path,
    *,
    recipe: Recipe | None = None,
    preset: str = "default",
    sizes: Mapping[str, int] | None = None,
    known: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> GraphTraining:
    """Train the graph simulator on folders that `carom scale` wrote; after a kill the same call goes on.

    `known` are contact parameters by name for trajectories that state none: rotated recordings.
    """
    recipe, place = recipe or Recipe(), Path(out)
    new_network(preset, sizes)  # refused before any work
    if preset == "paper":
        refuse_without_coal()
    sets = [load(folder) for folder in data]
    _same_period(sets)
    with locked(place), torch_threads(1):
        return _train(sets, place, (recipe, (preset, sizes), dict(known or {})), seed, progress)


def _same_period(sets: Sequence[Trajectories]) -> None:
    if not sets:
        raise CaromError("expected one folder of trajectories or more, from: carom scale")
    periods = [found.period for found in sets]
    if max(periods) > (1 + ALIKE) * min(periods):
        listed = ", ".join(f"{found.folder} {1e3 * found.period:.4g} ms" for found in sets)
        raise CaromError(f"trajectories have different sample periods ({listed}); scale them with the same --rate")
    count = sum(len(found.ok) for found in sets)
    if count < LEAST:
        raise CaromError(f"{count} trajectories are too few to train on; scale {LEAST} or more")


def _split(
    sets: Sequence[Trajectories], known: Mapping[str, float]
) -> tuple[list[Frames], list[Frames], list[ScaledTrajectory]]:
    """Frames by number of bodies, to train on and to judge by; and all trajectories."""
    every: list[ScaledTrajectory] = []
    learned, judged = [], []
    for found in sets:
        for _, same in sorted(found.ok.by_bodies().items()):
            rows = list(same)
            every += rows
            frames = frames_of(rows, known)
            held = max(min(int(HELD_OUT * len(rows)), MOST_HELD_OUT), 1)
            judged.append(frames[:held])
            learned.append(frames[held:])
    return [f for f in learned if len(f)], judged, every


def _refuse_short(groups: Sequence[Frames], recipe: Recipe) -> None:
    """Raise if a stage of the training finds no frames to go through."""
    most = max(stage.frames for stage in recipe.stages)
    for frames in groups:
        samples = frames.position.shape[1]
        if samples < most + 3 or not len(frames.windows(most)):
            raise CaromError(
                f"trajectories of {frames.bodies} bodies have {samples} samples at least, in which nothing is followed "
                f"for {most} frames near contact; scale longer ones (--duration)"
            )


def _train(
    sets: Sequence[Trajectories],
    out: Path,
    how: tuple[Recipe, tuple[str, Mapping[str, int] | None], Mapping[str, float]],
    seed: int,
    progress: Progress,
) -> GraphTraining:
    start = perf_counter()
    recipe, (preset, sizes), known = how
    learned, judged, every = _split(sets, known)
    made_from = {f"{n}: {found.folder.resolve().name}": str(found.header[SEAL]) for n, found in enumerate(sets)}
    _refuse_short(learned, recipe)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = new_network(preset, sizes)
    settings = {
        "recipe": asdict(recipe),
        "network": {"preset": preset, **network.settings()},
        "seed": seed,
        "data": made_from,
        "known": dict(known),
    }
    learner = Learner.new(network, recipe, seed)
    learner.prepare(learned)
    curve = _resumed(out / CHECKPOINT, learner, settings)
    loss = 0.0
    while learner.update < recipe.updates:
        loss = learner.learn(learned)
        if learner.update % recipe.judged_every == 0 or learner.update == recipe.updates:
            found = learner.judge(judged)
            curve.append((learner.update, loss, found["place"], found["angle"]))
            _keep(out / CHECKPOINT, learner, settings, curve)
        progress("train the graph simulator", learner.update, recipe.updates)
    if learner.best_weights is not None:
        network.load_state_dict(learner.best_weights)
    contact = contacts_of(every, known)
    model = GraphModel(
        network.requires_grad_(False),
        sets[0].period,
        {name: float(np.exp(np.log(v).mean())) for name, v in contact.items()},
        _ranges(every, contact),
        rollout_errors(network, judged),
        {"command": "carom train-graph", "seed": seed, "recipe": asdict(recipe), "trajectories": len(every)},
    )
    model.save(out, made_from=made_from)
    shutil.rmtree(out / CHECKPOINT, ignore_errors=True)
    return GraphTraining(model, tuple(curve), perf_counter() - start, len(every))


def _ranges(every: Sequence[ScaledTrajectory], contact: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Lowest and highest of what was trained with."""
    size = np.concatenate([[b.solid.width for b in t.bodies] for t in every])
    columns = {**contact, "width": size, "bodies": np.array([float(len(t.bodies)) for t in every])}
    return {name: (float(np.min(v)), float(np.max(v))) for name, v in columns.items()}


def _keep(folder: Path, learner: Learner, settings: Mapping[str, Any], curve: Sequence[Sequence[float]]) -> None:
    """Write a checkpoint: tensors under a name of their own, then the header that points to them."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {f"network.{n}": v for n, v in learner.network.state_dict().items()}
    tensors |= {f"best.{n}": v for n, v in (learner.best_weights or {}).items()}
    for index, kept in learner.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{n}": torch.as_tensor(v) for n, v in kept.items()}
    tensors["rng"] = learner.rng.get_state()
    name = f"state-{learner.update:08d}.safetensors"
    digest = write_tensors(folder / name, tensors)
    best = None if learner.best_weights is None else learner.best
    header = {"format": FORMAT, "settings": dict(settings), "update": learner.update, "best": best}
    header |= {"curve": [list(row) for row in curve], "made_with": versions(("torch",)), "files": {name: digest}}
    write_header(folder / "checkpoint.json", header)
    for old in folder.glob("state-*.safetensors"):
        if old.name != name:
            old.unlink()


def _resumed(folder: Path, learner: Learner, settings: Mapping[str, Any]) -> list[tuple[int, float, float, float]]:
    """Bring a learner to where its checkpoint is; the curve so far."""
    path = folder / "checkpoint.json"
    if not path.is_file():
        return []
    header = read_header(path, CheckpointHeader, FORMAT, missing="", again="carom train-graph, in a new folder,")
    if header["settings"] != plain(dict(settings)):
        raise CaromError(
            f"{folder.parent} holds a training with other settings or other data ({path.name}); repeat them or choose "
            "another folder"
        )
    if len(header["files"]) != 1:
        raise CaromError(f"{path}: expected one file of tensors, got {len(header['files'])}")
    (name,) = header["files"]
    tensors = load_tensors(folder / Path(name).name, header["files"])
    try:
        _restore(learner, tensors)
        curve = [(int(a), float(b), float(c), float(d)) for a, b, c, d in header["curve"]]
    except (LookupError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        words = " ".join(str(error).split())
        raise CaromError(f"{folder / name} is damaged ({words:.200}); remove {folder} and train anew") from error
    learner.best = float("inf") if header["best"] is None else header["best"]
    learner.update = header["update"]
    return curve


def _restore(learner: Learner, tensors: Mapping[str, torch.Tensor]) -> None:
    """Give a learner the weights, the optimiser and the random numbers of a checkpoint."""
    learner.network.load_state_dict(_part(tensors, "network."))
    best = _part(tensors, "best.") or None
    if best is not None:
        _checked(best, learner.network.state_dict())
    learner.best_weights = best
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in _part(tensors, "optimiser.").items():
        index, _, what = key.partition(".")
        state.setdefault(int(index), {})[what] = value
    for number, weights in enumerate(learner.network.parameters()):
        kept = state.get(number)
        if kept is not None:
            _checked(kept, {"step": torch.zeros(()), "exp_avg": weights, "exp_avg_sq": weights})
    if state and set(state) != set(range(len(list(learner.network.parameters())))):
        raise ValueError("the optimiser's state is of another network")
    learner.optimiser.load_state_dict({**learner.optimiser.state_dict(), "state": state})
    learner.rng.set_state(tensors["rng"])


def _checked(found: Mapping[str, torch.Tensor], like: Mapping[str, torch.Tensor]) -> None:
    """Raise unless tensors have the names and shapes of others."""
    shapes = [{name: tuple(t.shape) for name, t in tensors.items()} for tensors in (found, like)]
    if shapes[0] != shapes[1]:
        differ = sorted(shapes[0].items() ^ shapes[1].items())
        raise ValueError(f"'{short(differ[0][0])}' is missing or of another shape")


def _part(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
