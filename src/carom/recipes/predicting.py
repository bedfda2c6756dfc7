"""`carom predict`: the outcome of each recorded strike, from what was recorded before its contact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from carom.compare.ends import START
from carom.engines.approach import at_distance
from carom.engines.contact_frames import contact_frames
from carom.engines.contract import Status
from carom.hybrid.guard import absurd, guard
from carom.hybrid.model import FOLDER, HEADER, load_hybrid
from carom.learn import AdaptedModel
from carom.learn.impact.adapted_files import load_model
from carom.learn.impact.adapted_model import Prediction
from carom.recipes.result import PrintedTable, Result
from carom.recordings import approaches, check_scene, read
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

OK = "ok"  #: status of a prediction that can be used
LONGEST = 10.0  #: [s] in which a struck target comes to rest
COLUMNS = ("file", "vx [m/s]", "vy [m/s]", "wz [rad/s]", "rest x [m]", "rest y [m]", "rest yaw [rad]", "status")


@final
@dataclass(frozen=True)
class PredictResult(Result):
    """Predicted outcomes by data file: `post`, `post_std`, `rest`, `status` and `from_engine` of each."""

    predictions: Mapping[str, Mapping[str, Any]]
    words: tuple[str, ...] = ()  #: what they rest on, for people

    def to_dict(self) -> dict[str, Any]:
        return {name: dict(p) for name, p in self.predictions.items()}

    def tables(self) -> Sequence[PrintedTable]:
        nothing = ["", "", ""]
        rows = [
            [name, *(p["post"] or nothing), *(p["rest"] or nothing), p["status"]]
            for name, p in self.predictions.items()
        ]
        return (PrintedTable("predicted outcomes", COLUMNS, rows),)

    def notes(self) -> Sequence[str]:
        return self.words


def predict(model: str | Path, recordings: str | Path) -> PredictResult:
    """Predict recorded strikes with a corrected model; only samples before the contact are used."""
    adapted = load_model(Path(model))
    folder = read(Path(recordings))
    check_scene(adapted.scene, folder)
    strikes, names, skipped = approaches(folder)
    found: dict[str, dict[str, Any]] = {
        name: {"post": None, "post_std": None, "rest": None, "status": f"no strike: {reason}", "from_engine": False}
        for name, reason in skipped
    }
    if len(strikes):
        predicted = adapted.predict(strikes)
        rest, from_engine = _rest(Path(model), strikes)
        states = statuses(adapted.scene, strikes, predicted)
        for i, name in enumerate(names):
            found[name] = {
                "post": predicted.post[i].tolist(),
                "post_std": predicted.post_std[i].tolist(),
                "rest": None if rest is None or _lost(rest, i) else rest[i].tolist(),
                "status": "no rest: the simulation failed" if _lost(rest, i) and states[i] == OK else states[i],
                "from_engine": bool(from_engine[i]),
            }
    words = adapted.words if isinstance(adapted, AdaptedModel) else ()
    return PredictResult({t.name: found[t.name] for t in folder.trajectories if t.name in found}, words)


def statuses(scene: StrikeScene, strikes: Strikes, predicted: Prediction) -> list[str]:
    """What to think of each prediction: `ok`, or why not."""
    frames = contact_frames(scene, strikes)
    broken = absurd(scene, strikes, frames, predicted.post)
    post = np.where(broken[:, None], strikes.target_velocity, predicted.post)
    created = guard(scene, strikes, frames, post).created
    finite = np.asarray(np.isfinite(predicted.post).all(axis=1))
    found = []
    for i in range(len(strikes)):
        if not finite[i]:
            found.append("not finite: the model gives no outcome")
        elif broken[i] or created[i]:
            found.append("faster than the energy of the strike allows")
        else:
            found.append(OK if predicted.known[i] else "outside what the model has learned")
    return found


def _lost(rest: Array | None, row: int) -> bool:
    """Whether a hybrid was asked for this rest and gave none."""
    return rest is not None and not np.isfinite(rest[row]).all()


def _rest(model: Path, strikes: Strikes) -> tuple[Array | None, NDArray[np.bool_]]:
    """Where the targets come to rest [N, 3], by the model's hybrid, and whether MuJoCo's own contact was asked [N]."""
    if not (model / FOLDER / HEADER).is_file():
        return None, np.zeros(len(strikes), dtype=bool)
    hybrid = load_hybrid(model)
    initial = at_distance(hybrid.scene, strikes, START, {})
    run = hybrid.simulator(exact=True).rollout(initial, LONGEST)
    lost = (run.status == Status.FAILED) | (run.status == Status.MISSED)
    return np.where(lost[:, None], np.nan, run.rest), run.from_engine > 0
