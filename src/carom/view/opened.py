"""What a path holds, and how it is shown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.learn.graph.model import load_graph
from carom.loop.rounds import SETTINGS as LOOP
from carom.recordings import Recordings, kind_of, read, scene_of
from carom.recordings.formats.header import HEADER_NAME
from carom.train.policy import HEADER as POLICY
from carom.train.policy import load_policy
from carom.train.pushing import ENVIRONMENT as PUSHES
from carom.view.beside import Beside, free_engines, hybrid_engines, kind_of_path, model_of, push_takes, strike_engines
from carom.view.bodies import FreeTakes
from carom.view.learned import GraphTakes, ModelTakes
from carom.view.planned import PlanFile, PlanTakes, is_plan
from carom.view.pushed import PushTakes
from carom.view.shown import Show, Take
from carom.view.strikes import StrikeTakes
from carom.view.trials import TABLE, TrialTakes, push_trials

DEPLOYED, TUNED = Path("deploy") / "recordings", Path("tune") / "model"  #: of a loop's round
KNOWN = "recordings, an adapted model, a plan, a policy, a graph simulator, or a loop or one of its rounds"


def opened(path: Path, beside: Sequence[Path] = (), *, progress: Progress = silent) -> Show:
    """The show of a path; raises if there is nothing that can be shown."""
    if not path.exists():
        raise CaromError(f"{path} does not exist; expected {KNOWN}")
    progress(f"open {path.name}", 0, 1)
    given = Beside.of(beside)
    kind = kind_of_path(path)
    if kind == "recordings":
        given.refuse("recordings", why="one folder of recordings is shown at a time; give models or parameters there")
        return shown_recordings(path, given)
    if kind is not None and given.recordings:
        recordings, *more = given.recordings
        if more:
            raise CaromError(f"--with {more[0]}: one folder of recordings is shown at a time")
        given.recordings.clear()
        getattr(given, kind).insert(0, path)
        return shown_recordings(recordings, given)
    if kind == "models":
        hybrid = model_of(path)
        takes = ModelTakes(hybrid.impact.train, hybrid.scene, tuple(hybrid_engines(hybrid, path)))
        return Show(f"{path}: a model of {hybrid.scene.name}", takes.names, takes, words=hybrid.impact.words)
    if kind == "graphs":
        tosses = GraphTakes(load_graph(path), path)
        return Show(f"{path}: a graph simulator", tosses.names, tosses)
    if kind is None and is_plan(path):
        return shown_plan(path, given)
    if kind is None and (path / POLICY).is_file():
        return shown_policy(path, given)
    if kind is None and (rounds := rounds_of(path)):
        return shown_rounds(path, rounds, given)
    if kind == "parameters":
        raise CaromError(f"{path} holds parameters, which move nothing: carom view RECORDINGS --with {path}")
    raise CaromError(f"{path}: expected {KNOWN}; found {_found(path)}")


def shown_recordings(path: Path, beside: Beside) -> Show:
    """A folder of recordings, with engines beside it."""
    recordings = read(path)
    names = tuple(t.name for t in recordings.trajectories)
    if not names:
        raise CaromError(f"{path} holds no recordings: nothing can be shown")
    kind = kind_of(recordings)
    if kind == "strikes":
        engines = strike_engines(recordings, scene_of(recordings), beside)
        return Show(f"{path}: {len(names)} strikes", names, StrikeTakes.of(recordings, engines))
    if kind == "pushes":
        beside.refuse("models", "graphs", why="pushes are shown beside MuJoCo, with parameters from `carom identify`")
        return Show(f"{path}: {len(names)} pushes", names, push_takes(recordings, beside))
    return Show(f"{path}: {len(names)} recordings of {kind}", names, _free(recordings, beside))


def shown_plan(path: Path, beside: Beside) -> Show:
    """A plan, in the model that it was made with."""
    beside.refuse("parameters", "graphs", "recordings", why="a plan is shown in adapted models")
    plan = PlanFile.read(path)
    models = beside.models or ([plan.model] if plan.model is not None and plan.model.is_dir() else [])
    if not models:
        named = "it does not say which" if plan.model is None else f"{plan.model} is not there"
        raise CaromError(f"{path}: a plan is shown in the model it was made with, and {named}; add --with MODEL")
    hybrids = [model_of(model) for model in models]
    engines = [e for h, p in zip(hybrids, models, strict=True) for e in hybrid_engines(h, p, several=len(models) > 1)]
    return Show(f"{path}: a planned strike", (plan.path.name,), PlanTakes(plan, hybrids[0].scene, engines))


def shown_policy(path: Path, beside: Beside) -> Show:
    """Trials of a policy: of strikes along routes, of pushes as a stand-in records them."""
    beside.refuse("parameters", "graphs", "recordings", why="a policy is tried in an adapted model")
    policy = load_policy(path)
    if policy.environment == PUSHES:
        beside.refuse("models", why="a policy of pushes is tried on a stand-in")
        recordings = push_trials(policy)
        names = tuple(f"push {i + 1}" for i in range(len(recordings)))
        return Show(f"{path}: a policy of pushes, on the stand-in {TABLE}", names, PushTakes(recordings))
    takes = TrialTakes.of(policy, beside.models[0] if beside.models else None)
    return Show(f"{path}: a policy", takes.names, takes)


def rounds_of(path: Path) -> list[Path]:
    """The rounds of a loop that have recordings, or the one that a path is."""
    if not path.is_dir():
        return []
    places = sorted(path.glob("round-*")) if (path / LOOP).is_file() else [path]
    return [place for place in places if (place / DEPLOYED / HEADER_NAME).is_file()]


def shown_rounds(path: Path, rounds: Sequence[Path], beside: Beside) -> Show:
    """What was recorded in a loop's rounds, beside the simulators that the recordings were chosen with."""
    parts = []
    for place in rounds:
        own = Beside([*beside.models], [*beside.parameters], [*beside.graphs])
        if (place / TUNED).is_dir():
            own.models.insert(0, place / TUNED)
        parts.append((place.name, shown_recordings(place / DEPLOYED, own)))
    names = [
        (i, j, f"{round_name}/{name}") for i, (round_name, s) in enumerate(parts) for j, name in enumerate(s.names)
    ]

    def make(index: int) -> Take:
        part, row, name = names[index]
        return replace(parts[part][1].take(row), name=name)

    words = ("Each round's recordings, beside the simulator that the round began with.",)
    return Show(
        f"{path}: {len(rounds)} {'round' if len(rounds) == 1 else 'rounds'} of a loop",
        tuple(n for _, _, n in names),
        make,
        words,
    )


def _free(recordings: Recordings, beside: Beside) -> FreeTakes:
    return FreeTakes(recordings, free_engines(recordings, beside))


def _found(path: Path) -> str:
    """What a path holds, in a few words."""
    if path.is_file():
        return "a file that is none of them"
    inside = [p for p in sorted(path.iterdir()) if p.is_dir() and kind_of_path(p) in ("recordings", "models", "graphs")]
    if inside:
        return f"none, but inside it: carom view {shlex.quote(str(inside[0]))}"
    names = sorted(p.name for p in path.iterdir())
    return "an empty folder" if not names else f"{', '.join(names[:4])}{', ...' if len(names) > 4 else ''} there"
