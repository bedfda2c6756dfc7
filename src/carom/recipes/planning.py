"""`carom plan`: the strike that brings a target to a wanted pose, the files for a robot, and a page with a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent
from carom.engines.contract import Simulator
from carom.hybrid.draws import draws_of
from carom.hybrid.model import ENGINES, HybridModel, load_hybrid
from carom.plan import Plan, StrikeSpace, approach, plan_strike, strike_space
from carom.plan.export import STEADY, strike_motion, write_motion
from carom.plan.search import HORIZON, mean_and_spread
from carom.recipes.next_steps import after_planning, commands_of
from carom.recipes.plan_page import out_of_reach, plan_figures, plan_rows, plan_summary
from carom.recipes.result import PrintedTable, Result
from carom.report import Next, Step, write_report
from carom.scenes.strike import StrikeScene
from carom.state import Array

DRAWS = 8  #: of the model's uncertainty, for a robust plan
HOLD = 0.01  #: [m] that the striker travels at full speed before contact at least
ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class SearchOptions:
    """How a strike is searched for."""

    simulator: str = "hybrid"  #: or hybrid-mujoco (slides in MuJoCo), mujoco, mjx
    method: str = "cma"  #: or cem, gradient (through network and slider)
    #: whether to plan for the expectation over the model's uncertainty; None: where it is unsure of the plain plan by
    #: more than is tolerated
    robust: bool | None = None
    budget: int | None = None  #: simulated strikes at most
    speed: tuple[float, float] | None = None  #: of the striker, lowest and highest [m/s]
    tolerance: tuple[float, float] = (0.01, 0.1)  #: within reach if off by less [m] [rad]


@dataclass(frozen=True)
class PlanFiles:
    """What is written of a plan."""

    export: Path | None = None  #: folder for the robot's set-points (1 kHz CSV, JSON)
    base: tuple[float, float, float] = ORIGIN  #: pose of the robot's base in the world [m, m, rad]
    report: Path | None = None  #: page with the picture of the plan

    def check(self) -> None:
        """Raise before the search if this cannot be written."""
        if self.export is None and self.base != ORIGIN:
            raise CaromError("--base is for --export: it is the pose of the robot that carries out the strike")
        if self.export is not None and self.export.exists() and not self.export.is_dir():
            raise CaromError(f"--export {self.export}: expected a folder, or a name for a new one; that is a file")


@final
@dataclass(frozen=True)
class PlanResult(Result):
    """A planned strike, the simulator that says so, and the files that were written.

    A pose that is out of reach gives the nearest one (`plan.reachable` is False): report and result are written,
    nothing is exported, and the command ends with exit code 2.
    """

    plan: Plan
    simulator: Simulator
    report: Path | None
    exported: tuple[Path, ...]
    export: Path | None  #: that was asked for
    steps: tuple[Step, ...] = ()  #: what to do next
    model: Path | None = None  #: folder of the model

    def next_commands(self) -> Sequence[str]:
        return commands_of(self.steps)

    def to_dict(self) -> dict[str, Any]:
        named = {} if self.model is None else {"model": str(self.model)}
        return {**self.plan.to_dict(), **named}

    def tables(self) -> Sequence[PrintedTable]:
        title = f"planned strike: {self.simulator.scene.name}"
        return (PrintedTable(title, ("what", "value"), plan_rows(self.plan)),)

    def notes(self) -> Sequence[str]:
        lines = [] if self.report is None else [f"report: {self.report}"]
        return [*lines, *(f"wrote {path}" for path in self.exported)]

    def problem(self) -> str | None:
        if self.plan.reachable:
            return None
        return out_of_reach(self.plan) + ("; nothing was exported" if self.export is not None else "")


def plan(
    model: str | Path,
    target: Sequence[float],
    *,
    start: Sequence[float] = ORIGIN,
    search: SearchOptions | None = None,
    files: PlanFiles | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> PlanResult:
    """Plan the strike that brings the target of a corrected model to a pose (x [m], y [m], yaw [rad]), or to (x, y)."""
    search, files = search or SearchOptions(), files or PlanFiles()
    if search.simulator not in ENGINES:
        raise CaromError(unknown_name("simulator", search.simulator, ENGINES))
    files.check()
    hybrid = load_hybrid(Path(model))
    simulator = hybrid.simulator(search.simulator, threads=threads)
    space = strike_space(hybrid.scene, np.asarray(start, dtype=np.float64), speed=search.speed)
    wanted = np.asarray(target, dtype=np.float64)
    found = search_strike(hybrid, simulator, space, wanted, search, seed=seed, threads=threads, progress=progress)
    report, exported = files.report, tuple[Path, ...]()
    if files.export is not None and found.reachable:
        exported = export_plan(files.export, found, hybrid.scene, base=files.base, model=Path(model))
    steps = after_planning(found, Path(model), exported, _asked(search, start, seed))
    if report is not None:
        pictures = [*plan_summary(found), *plan_figures(found, simulator), Next(steps)]
        report = write_report(report, pictures, title="A planned strike", subtitle=hybrid.scene.name)
    return PlanResult(found, simulator, report, exported, files.export, steps, Path(model))


def _asked(search: SearchOptions, start: Sequence[float], seed: int) -> tuple[object, ...]:
    """The options of `carom plan`, besides model and target, that differ from their defaults."""
    usual = SearchOptions()
    words: list[object] = [] if tuple(start) == ORIGIN else ["--from", *start]
    for name in ("simulator", "method", "budget"):
        if (value := getattr(search, name)) != getattr(usual, name):
            words += [f"--{name}", value]
    for name in ("speed", "tolerance"):
        if (pair := getattr(search, name)) != getattr(usual, name):
            words += [f"--{name}", *pair]
    if search.robust is not None:
        words.append("--robust" if search.robust else "--no-robust")
    return (*words, *(("--seed", seed) if seed else ()))


def search_strike(
    hybrid: HybridModel,
    simulator: Simulator,
    space: StrikeSpace,
    wanted: Array,
    search: SearchOptions,
    *,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> Plan:
    """The best strike in a simulator of this model; in the mean over what the model leaves open, where that matters.

    A plain plan may rely on what ten strikes did not show, such as the spring of a corner that was never hit. The model
    says so: its draws end far apart. Then the strike is searched for that is best in the mean over them.
    """
    plan = partial(
        plan_strike,
        space=space,
        wanted=wanted,
        method=search.method,
        budget=search.budget,
        tolerance=search.tolerance,
        seed=seed,
        progress=partial(progress, f"plan: {search.method}"),
    )
    knows_its_draws = search.simulator in ("hybrid", "hybrid-mujoco")
    if search.robust is False or (search.robust is None and not knows_its_draws):
        return plan(simulator)
    draws = draws_of(hybrid, DRAWS, engine=search.simulator, seed=seed, threads=threads)
    if search.robust:
        return plan(draws)
    plain = plan(simulator)
    spread = _spread(plain, draws)
    if float(np.hypot(*spread[:2])) > search.tolerance[0]:
        return plan(draws)
    return replace(plain, rest_std=spread)


def _spread(plan: Plan, draws: Sequence[Simulator]) -> Array:
    """Standard deviation [3] of where a planned strike ends, over draws of an uncertain simulator."""
    rests = np.array([d.rollout(approach(d.scene, plan.commands), HORIZON).rest[0] for d in draws])
    return np.asarray(np.nan_to_num(mean_and_spread(rests)[1], nan=np.inf))  # a draw that misses: quite unsure


def export_plan(
    folder: Path,
    plan: Plan,
    scene: StrikeScene,
    *,
    base: tuple[float, float, float] = ORIGIN,
    model: Path | None = None,
) -> tuple[Path, ...]:
    """Write a plan as set-points for a robot; `base` is the pose of its base in the world [m, m, rad].

    The file names the `model`, so that `carom view` finds it.
    """
    touching = approach(scene, plan.commands, standoff=0.0)
    velocity = touching.striker_velocity[0, :2]
    way = strike_motion(
        touching.striker_pose[0, :2],
        velocity,
        height=scene.shape.full_height / 2,
        yaw=float(touching.striker_pose[0, 2]),
        settle=max(STEADY, HOLD / float(np.linalg.norm(velocity))),
    )
    striker = "flat" if scene.striker.flat else "round"
    named = {} if model is None else {"model": str(model)}
    return write_motion(folder, way, strike={**plan.to_dict(), "striker": striker, **named}, base=base)
