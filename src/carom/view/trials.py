"""Takes of a policy: one trial along each route, in the simulator it was trained in and on a stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from carom.core.errors import CaromError
from carom.core.rotations import about_z
from carom.engines import MujocoSimulator
from carom.engines.contract import Simulator, Status
from carom.envs.batch import StrikeBatch, engine_strike
from carom.envs.outcome import Mask
from carom.envs.routes import Route, route_from
from carom.envs.starts import RouteStarts
from carom.envs.task import LENGTH, REACH
from carom.hybrid.model import load_hybrid
from carom.plan import approach
from carom.plan.search import HORIZON
from carom.reality import push_standin, standin
from carom.recipes.policies import BLOCK
from carom.recipes.trying_pushes import task_of, try_in_reality
from carom.recordings import Recordings, read
from carom.report import Section, Table
from carom.report.style import BLUE, GREEN
from carom.scenes.shapes import Shape
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Array, StrikeCommands
from carom.train import Policy
from carom.view.learned import scene_shapes
from carom.view.shown import Mark, Take, Track
from carom.view.strikes import STRIKER, TARGET, StrikePlace

ROUTES = ("1", "2", "3")
LAB = "nylon-low"  #: the stand-in that policies are tried on where nothing else is said
TABLE, PUSHED = "laminate", 4  #: the stand-in that policies of pushes are shown on, and how many pushes
PAUSE = 0.15  #: [s] between two strikes
FRAMES = 121  #: of one strike


@dataclass(frozen=True)
class Stroke:
    """One strike of a trial: its motion, and where the point that has to reach the goal came to lie."""

    time: Array  #: [T] [s] from 0
    position: Array  #: [T, 2, 3] of target and striker
    quaternion: Array  #: [T, 2, 4]
    away: float  #: from the sub-goal after it [m]


@dataclass(frozen=True)
class TrialTakes:
    """Trials of one policy."""

    policy: Policy
    simulator: Simulator
    trained_in: str  #: what the simulator is, in words

    @classmethod
    def of(cls, policy: Policy, model: Path | None) -> TrialTakes:
        """In a model, else in what the policy was trained in, if it is still there; else in MuJoCo."""
        named = policy.made_by.get("folder")
        if model is None and isinstance(named, str) and Path(named).is_dir():
            model = Path(named)
        if model is not None:
            simulator = load_hybrid(model).simulator("hybrid", threads=1)
            return cls(policy, simulator, f"hybrid of {model.name}")
        scene = policy.scene or builtin("semi-cylinder")
        return cls(policy, MujocoSimulator(scene, threads=1), "MuJoCo, default contact")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"route {name}" for name in ROUTES)

    def __call__(self, index: int) -> Take:
        """One trial along a route, strike by strike."""
        length = LENGTH if self.policy.length is None else self.policy.length
        route, scene = route_from(ROUTES[index], length=length), self.simulator.scene
        trials = {self.trained_in: self._in_engine(route), f"stand-in {LAB}": self._in_lab(route, scene)}
        tracks = joined(trials)
        goals = np.column_stack([route.points, np.full(len(route.points), 0.002)])
        marks = tuple(
            Mark(f"goal {i}", "goal", np.array([x, y, 0.002]), about_z(0.0), GREEN)
            for i, (x, y, _) in enumerate(goals[1:], start=1)
        )
        shapes = {**scene_shapes(scene), "goal": Shape("disc", radius=0.012, height=0.002)}
        words = (
            f"One trial of the policy along {self.names[index]} in each. Strikes scatter: `carom rollout` gives rates "
            "over many trials.",
        )
        extra: tuple[Section, ...] = (_strokes(trials),)
        return Take(self.names[index], shapes, tracks, marks=marks, words=words, paths={"route": goals}, extra=extra)

    def _in_engine(self, route: Route) -> list[Stroke]:
        """Strikes in the simulator."""
        strike = engine_strike(self.simulator)
        scene, strokes = self.simulator.scene, list[Stroke]()

        def kept(commands: StrikeCommands) -> tuple[Array, Mask]:
            run = self.simulator.rollout(approach(scene, commands), HORIZON, frames=4 * FRAMES)
            if run.status[0] not in (Status.FAILED, Status.MISSED):
                place = StrikePlace.flat(scene, (0.0, 0.0))
                both = [place.set_in(poses, i) for i, poses in enumerate((run.target_pose[0], run.striker_pose[0]))]
                moving = np.abs(np.diff(run.target_pose[0], axis=0)).max(axis=1) > 1e-6
                last = int(np.flatnonzero(moving)[-1]) + 2 if moving.any() else 2
                position, turn = (np.stack([b[k] for b in both], axis=1)[:last] for k in (0, 1))
                strokes.append(Stroke(run.time[0, :last], position, turn, np.nan))
            return strike(commands)

        return self._trial(kept, scene, route, strokes)

    def _in_lab(self, route: Route, scene: StrikeScene) -> list[Stroke]:
        """Strikes on a stand-in, as it records them."""
        lab = standin(LAB, scene.shape, striker="flat" if scene.striker.flat else "round", seed=BLOCK)
        strokes: list[Stroke] = []
        with TemporaryDirectory() as place:

            def kept(commands: StrikeCommands) -> tuple[Array, Mask]:
                number = len(strokes) + 1
                rest = lab.truth(commands, seed=number).rest
                folder = read(lab.execute(commands, Path(place) / f"{number}", seed=number))
                trajectory = folder.trajectories[0]
                names = ("block", "striker")
                position = np.stack([trajectory.position_world[n] for n in names], axis=1)
                turn = np.stack([_turns(trajectory.quaternion_world[n], len(trajectory)) for n in names], axis=1)
                strokes.append(Stroke(trajectory.time - trajectory.time[0], position, turn, np.nan))
                return rest, np.asarray(np.isfinite(rest).all(axis=1))

            return self._trial(kept, scene, route, strokes)

    def _trial(self, strike: object, scene: StrikeScene, route: Route, strokes: list[Stroke]) -> list[Stroke]:
        batch = StrikeBatch(strike, scene, starts=RouteStarts(route), count=1, seed=0)  # type: ignore[arg-type]
        away = []
        while not batch.ended[0]:
            outcome = batch.step(self.policy.act(batch.observe()))
            away.append(float(outcome.position_error[0]))
        return [Stroke(s.time, s.position, s.quaternion, a) for s, a in zip(strokes, away, strict=False)]


def push_trials(policy: Policy) -> Recordings:
    """A few pushes of a policy on a stand-in, as it records them."""
    task = task_of(policy)
    with TemporaryDirectory() as place:
        folder = Path(place) / "pushes"
        try_in_reality(policy, task, push_standin(TABLE, task.scene, seed=BLOCK), folder, trials=PUSHED)
        return read(folder)


def _turns(measured: Array | None, count: int) -> Array:
    return np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)) if measured is None else measured


def joined(trials: Mapping[str, list[Stroke]]) -> tuple[Track, ...]:
    """Trials side by side: the same strike begins at the same time in all of them."""
    most = max((len(strokes) for strokes in trials.values()), default=0)
    if not most:
        raise CaromError("the policy strikes nothing: its first strike fails everywhere")
    lasting = [max(float(s[k].time[-1]) for s in trials.values() if k < len(s)) + PAUSE for k in range(most)]
    begins = np.concatenate([[0.0], np.cumsum(lasting)])
    tracks = []
    for (name, strokes), colour in zip(trials.items(), (BLUE, GREEN), strict=False):
        if strokes:
            time = np.concatenate([begins[k] + s.time for k, s in enumerate(strokes)])
            position = np.concatenate([s.position for s in strokes])
            turn = np.concatenate([s.quaternion for s in strokes])
            tracks.append(Track(name, (TARGET, STRIKER), time, position, turn, colour))
    return tuple(tracks)


def _strokes(trials: Mapping[str, list[Stroke]]) -> Table:
    rows = tuple(
        (name, k, 1e3 * stroke.away) for name, strokes in trials.items() for k, stroke in enumerate(strokes, start=1)
    )
    note = f"How far the block was from its sub-goal after each strike; within {1e3 * REACH:g} mm the next one counts."
    return Table("Strikes of the trial", ("where", "strike", "distance to the sub-goal [mm]"), rows, note)
