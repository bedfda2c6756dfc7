"""`carom rollout`: a policy tried along routes on a stand-in reality or in a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, final

from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.envs.batch import Strike, StrikeBatch
from carom.envs.render import animation as write_animation
from carom.envs.render import frame
from carom.envs.routes import Route, route_from
from carom.envs.starts import RouteStarts
from carom.envs.task import HALF_WIDTH, LENGTH
from carom.reality import ALL_SETTINGS
from carom.recipes.policies import APART, is_own, reality_from
from carom.recipes.result import PrintedTable, Result, brief, command
from carom.recipes.result_page import WHY, result_page, steps_of
from carom.report import Step
from carom.report.routes import trials_figure
from carom.scenes.strike import StrikeScene
from carom.train import Policy, Trials, load_policy, run_trials

MOST_TRIALS = 100_000
COLUMNS = ("route", "success", "95 % interval", "sub-goals", "95 % interval", "left the zone", "strikes")
FIGURES = (
    "success: share of trials that reach the end of the route (SR of CLASH). sub-goals: share of all sub-goals that "
    "were reached (SGCR). strikes: mean of a trial",
)


@final
@dataclass(frozen=True)
class RolloutResult(Result):
    """Trials of a policy along routes, and an animation of one along each."""

    policy: Path
    on: str
    trials: tuple[Trials, ...]  #: by route
    animation: Path | None  #: None: not made, on a user's own reality, unless asked for
    report: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"policy": str(self.policy), "on": self.on, "routes": [_row(trials) for trials in self.trials]}

    def tables(self) -> Sequence[PrintedTable]:
        rows = [
            [
                r["route"],
                r["success_rate"],
                brief(r["success_rate_interval"]),
                r["subgoal_rate"],
                brief(r["subgoal_rate_interval"]),
                f"{r['left_zone']} of {r['trials']}",
                r["mean_strikes"],
            ]
            for r in map(_row, self.trials)
        ]
        title = f"{self.policy} on {self.on}, {len(self.trials[0].success)} trials each"
        return (PrintedTable(title, COLUMNS, rows, FIGURES),)

    def notes(self) -> Sequence[str]:
        made = {"animation": self.animation, "report": self.report}
        return tuple(f"{what}: {path}" for what, path in made.items() if path is not None)

    def next_commands(self) -> Sequence[str]:
        """The same on a robot, a `Reality` of one's own (docs/policies.md)."""
        return () if is_own(self.on) else (command("rollout", self.policy, "--on", "my_robot:Robot", "--trials", 10),)


def rollout(
    policy: str | Path,
    *,
    on: str = "nylon-low",
    routes: Sequence[str] = ("1",),
    trials: int = 100,
    animation: str | Path | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> RolloutResult:
    """Try a saved policy along routes (1, 2, 3 or files): success and sub-goal rates with 95 % intervals.

    `on` names a stand-in reality (its block has the shape that the policy was trained for), the folder of a corrected
    model, or a `Reality` of one's own (`module:Class`), whose recordings go into `POLICY/trials-001` and so on. The
    animation goes to `POLICY/trials.gif` unless another name is
    given; it is one more trial along each route, so one's own `Reality` does it only if a name is given.
    """
    picture = Path(policy) / "trials.gif" if animation is None else Path(animation)
    if picture.suffix.lower() != ".gif":
        raise CaromError(f"--animation {picture}: expected a name that ends in .gif")
    if not 1 <= trials <= MOST_TRIALS:
        raise CaromError(f"trials: expected 1 to {MOST_TRIALS}, got {trials}")
    saved = load_policy(Path(policy))
    chosen = [route_from(r, length=LENGTH if saved.length is None else saved.length) for r in routes]
    made, found = _Realities(on, Path(policy), saved.scene, seed, threads), []
    for number, route in enumerate(chosen):
        strike, scene = made.next()  # anew: no route depends on the others
        found.append(run_trials(saved, strike, scene, route, trials=trials, seed=APART * seed))
        progress("trials", number + 1, len(chosen))
    pictured = animation is not None or not is_own(on)
    if pictured:
        _animate(saved, made, chosen, picture, seed=seed)
    result = RolloutResult(Path(policy), on, tuple(found), picture if pictured else None)
    return replace(result, report=_page(picture.with_suffix(".html"), result))


def _page(path: Path, result: RolloutResult) -> Path:
    """The trials' page, beside their animation."""
    figures = [
        trials_figure(f"Trials along route {t.route.name}", t.route.points, HALF_WIDTH, t.path, t.success)
        for t in result.trials
    ]
    count, subtitle = len(result.trials[0].success), f"{result.policy} on {result.on}"
    best = ", ".join(f"{100 * t.rates().success.value:.0f} % along route {t.route.name}" for t in result.trials)
    stood = " This is a stand-in, not a robot." if result.on in ALL_SETTINGS else ""
    short = (f"Of {count} trials each, **{best}** reached the end.{stood}",)
    steps = [*steps_of(result.next_commands()), Step(WHY["view"], command("view", result.policy))]
    title = "Trials of a policy"
    return result_page(path, result, title=title, subtitle=subtitle, short=short, figures=figures, steps=steps)


@dataclass(frozen=True)
class _Realities:
    """What `--on` names, made anew for each route; recordings of one's own reality never replace earlier ones."""

    on: str
    policy: Path
    scene: StrikeScene | None  #: what the policy was trained to strike
    seed: int
    threads: int

    def next(self) -> tuple[Strike, StrikeScene]:
        free = next(n for n in count(1) if not (self.policy / f"trials-{n:03d}").exists())
        folder = self.policy / f"trials-{free:03d}"
        return reality_from(self.on, folder=folder, scene=self.scene, seed=self.seed, threads=self.threads)


def _row(trials: Trials) -> dict[str, Any]:
    """What the trials along a route came to: rates with 95 % intervals."""
    rates = trials.rates()
    return {
        "route": trials.route.name,
        "segments": trials.route.segments,
        "trials": len(trials.success),
        "success_rate": rates.success.value,
        "success_rate_interval": [rates.success.low, rates.success.high],
        "subgoal_rate": rates.subgoals.value,
        "subgoal_rate_interval": [rates.subgoals.low, rates.subgoals.high],
        "left_zone": int(trials.left_zone.sum()),
        "mean_strikes": float(trials.strikes.mean()),
    }


def _animate(policy: Policy, made: _Realities, routes: Sequence[Route], path: Path, *, seed: int) -> None:
    """An animation (GIF) of one trial along each route."""
    frames = []
    for route in routes:
        strike, scene = made.next()
        batch = StrikeBatch(strike, scene, starts=RouteStarts(route), count=1, seed=APART * seed)
        frames.append(frame(batch))
        while not batch.ended[0]:
            batch.step(policy.act(batch.observe()))
            frames.append(frame(batch))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_animation(frames, path)
