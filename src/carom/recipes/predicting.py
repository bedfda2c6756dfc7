"""`carom predict`: the outcome of each recorded strike, from what was recorded before its contact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from carom.compare.ends import START
from carom.compare.metrics import accuracy, relative_error
from carom.engines.approach import at_distance
from carom.engines.contact_frames import contact_frames
from carom.engines.contract import Status
from carom.hybrid.draws import draws_of
from carom.hybrid.guard import absurd, guard
from carom.hybrid.model import FOLDER, HEADER, HybridModel, load_hybrid
from carom.learn import AdaptedModel, TunedModel
from carom.learn.impact.adapted_files import load_model
from carom.learn.impact.adapted_model import Prediction
from carom.recipes.result import PrintedTable, Result, command
from carom.recipes.result_page import result_page, steps_of
from carom.recordings import Recordings, approaches, check_scene, read, strike_impacts
from carom.report import Section, Step
from carom.report.figures import ALPHA
from carom.report.identified_strikes import outcome_sections
from carom.scenes.strike import StrikeScene
from carom.state import Array, Strikes

KEYS = ("post", "post_std", "rest", "rest_std")
OK = "ok"  #: status of a prediction that can be used
LONGEST = 10.0  #: [s] in which a struck target comes to rest
DRAWS = 64  #: of outcome and friction, for the spread of the rests
FEWEST = 0.75  #: share of the draws that must come to rest, or their spread is not stated
VELOCITY = ("file", "vx [m/s]", "vy [m/s]", "wz [rad/s]", "status")
REST = ("file", "x [m]", "y [m]", "yaw [rad]", "contact")
SPREAD = "+- is one standard deviation; 1.64 of them hold 90 %"


@final
@dataclass(frozen=True)
class PredictResult(Result):
    """Predicted outcomes by data file: `post`, `rest`, their standard deviations (`post_std`, `rest_std`: one, as the
    table's +-), `status` and `from_engine` of each. Units are m/s, m/s, rad/s after contact, and m, m, rad at rest."""

    predictions: Mapping[str, Mapping[str, Any]]
    words: tuple[str, ...] = ()  #: what they rest on, for people
    model: Path | None = None
    report: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: dict(p) for name, p in self.predictions.items()}

    def tables(self) -> Sequence[PrintedTable]:
        found = self.predictions.items()
        outcomes = [[name, *_with_spread(p["post"], p["post_std"]), p["status"]] for name, p in found]
        made = [PrintedTable("predicted velocity after contact", VELOCITY, outcomes, (SPREAD,))]
        if any(p["rest"] for p in self.predictions.values()):
            who = {True: "MuJoCo", False: "learned"}
            rests = [
                [name, *_with_spread(p["rest"], p["rest_std"]), who[p["from_engine"]] if p["rest"] else ""]
                for name, p in found
            ]
            told = "the spread comes from that of the outcome and of friction, through the slide"
            made.append(PrintedTable("predicted pose at rest", REST, rests, (f"{SPREAD}; {told}",)))
        return made

    def notes(self) -> Sequence[str]:
        return self.words if self.report is None else (f"report: {self.report}", *self.words)

    def next_commands(self) -> Sequence[str]:
        rest = next((p["rest"] for p in self.predictions.values() if p["rest"]), None)
        if self.model is None or rest is None:
            return ()
        return (command("plan", self.model, "--target", *(f"{v:.3g}" for v in rest)),)


def _with_spread(values: Sequence[float] | None, std: Sequence[float] | None) -> list[str]:
    """Three values with their standard deviations, as text; empty where there is none."""
    if values is None:
        return ["", "", ""]
    if std is None or not np.isfinite(std).all():
        return [f"{v:.3f}" for v in values]
    return [f"{v:.3f} +- {s:.3f}" for v, s in zip(values, std, strict=True)]


def predict(model: str | Path, recordings: str | Path, *, report: str | Path | None = None) -> PredictResult:
    """Predict recorded strikes with a corrected model; only samples before the contact are used.

    A `report` is a page with the tables, and with what was measured where the recordings go on after the contact.
    """
    adapted = load_model(Path(model))
    folder = read(Path(recordings))
    check_scene(adapted.scene, folder)
    strikes, names, skipped = approaches(folder)
    found: dict[str, dict[str, Any]] = {
        name: {**dict.fromkeys(KEYS), "status": f"no strike: {reason}", "from_engine": False}
        for name, reason in skipped
    }
    if len(strikes):
        predicted = adapted.predict(strikes)
        rest, rest_std, from_engine = _rest(Path(model), strikes)
        states = statuses(adapted.scene, strikes, predicted)
        for i, name in enumerate(names):
            found[name] = {
                "post": predicted.post[i].tolist(),
                "post_std": predicted.post_std[i].tolist(),
                "rest": None if rest is None or _lost(rest, i) else rest[i].tolist(),
                "rest_std": None if rest is None or _lost(rest, i) or _lost(rest_std, i) else rest_std[i].tolist(),
                "status": "no rest: the simulation failed" if _lost(rest, i) and states[i] == OK else states[i],
                "from_engine": bool(from_engine[i]),
            }
    words = adapted.words if isinstance(adapted, AdaptedModel) else ()
    by_file = {t.name: found[t.name] for t in folder.trajectories if t.name in found}
    result = PredictResult(by_file, words, Path(model), None if report is None else Path(report))
    if report is not None:
        _page(Path(report), replace(result, report=None), folder, adapted)
    return result


def _page(path: Path, result: PredictResult, folder: Recordings, model: AdaptedModel | TunedModel) -> None:
    """What was predicted, beside what was measured after contact."""
    impacts, _ = strike_impacts(folder)
    rows = [
        int(i) for i in np.flatnonzero(np.isfinite(impacts.post).all(axis=1)) if impacts.names[i] in result.predictions
    ]
    rows = [i for i in rows if result.predictions[impacts.names[i]]["post"] is not None]
    figures: list[Section] = []
    short = [f"{len(result.predictions)} recordings, predicted from their samples before contact alone."]
    if rows:
        seen = impacts[rows]
        post, std = (np.array([result.predictions[n][key] for n in seen.names], dtype=float) for key in KEYS[:2])
        error = relative_error(post, seen.post, model.scene.gyration_radius)
        words = "What was measured after contact was not used for the prediction."
        figures += outcome_sections(model.scene, seen, post, std, words)
        short.append(
            f"**{100 * accuracy(error, ALPHA):.0f} %** of the {len(rows)} strikes with a measured outcome are predicted"
            f" within 10 %, half of them within {100 * float(np.median(error)):.1f} %. If the model was made from "
            "these very recordings, this says how well it fits, not how well it predicts."
        )
    steps = [*steps_of(result.next_commands())]
    if result.model is not None:
        view = command("view", folder.path, "--with", result.model)
        steps.append(Step("Look at the motions in 3-D in the browser, recorded beside simulated.", view))
    result_page(
        path,
        result,
        title=f"Predicted strikes: {model.scene.name}",
        subtitle=f"{folder.path.name}, model {'' if result.model is None else result.model.name}",
        short=short,
        figures=figures,
        steps=steps,
    )


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


def _rest(model: Path, strikes: Strikes) -> tuple[Array | None, Array, NDArray[np.bool_]]:
    """Where the targets come to rest [N, 3], by the model's hybrid, how sure that is [N, 3], and whether MuJoCo's own
    contact was asked [N]."""
    if not (model / FOLDER / HEADER).is_file():
        return None, np.full((len(strikes), 3), np.nan), np.zeros(len(strikes), dtype=bool)
    hybrid = load_hybrid(model)
    initial = at_distance(hybrid.scene, strikes, START, {})
    run = hybrid.simulator(exact=True).rollout(initial, LONGEST)
    lost = (run.status == Status.FAILED) | (run.status == Status.MISSED)
    rest, from_engine = np.where(lost[:, None], np.nan, run.rest), run.from_engine > 0
    std = np.where(from_engine[:, None], np.nan, rest_spread(hybrid, initial))  # MuJoCo does not say how sure it is
    return rest, std, from_engine


def rest_spread(hybrid: HybridModel, initial: Strikes) -> Array:
    """Standard deviation [N, 3] of where targets come to rest; NaN where too many draws fail.

    Draws of the outcome and of friction go through the slider; what the recorded slides scatter around the fitted ones
    is added.
    """
    rests = []
    for drawn in draws_of(hybrid, DRAWS):
        run = drawn.rollout(initial, LONGEST)
        lost = (run.status == Status.FAILED) | (run.status == Status.MISSED)
        rests.append(np.where(lost[:, None], np.nan, run.rest))
    poses = np.array(rests)
    came = np.isfinite(poses).all(axis=-1).mean(axis=0)
    enough = came >= FEWEST
    std = np.full((len(initial), 3), np.nan)
    std[enough] = np.nanstd(poses[:, enough], axis=0, ddof=1)
    residual = hybrid.sliding.residual if np.isfinite(hybrid.sliding.residual) else 0.0
    each = residual / np.sqrt(3) * np.array([1.0, 1.0, 1 / hybrid.scene.gyration_radius])  # it counts all three
    return np.asarray(np.hypot(std, each))
