"""The loop on strikes: each round corrects the hybrid simulator with all strikes so far, and chooses the next ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np

from carom.compare import relative_error
from carom.compare.methods import InMujoco
from carom.core.artefacts import plain, write_text
from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.core.spread import even_spread
from carom.engines.contract import Simulator
from carom.engines.mujoco.strikes import MujocoSimulator
from carom.hybrid.model import load_hybrid
from carom.learn.impact.adapted_files import load_model
from carom.learn.impact.adapted_model import AdaptedModel, ImpactModel
from carom.learn.impact.sample import sample_parameters
from carom.loop.config import PERSON, LoopConfig
from carom.loop.person import recorded_by_person
from carom.loop.steps import Facts, Round
from carom.loop.strike_choice import Candidates, Telling, chosen, telling_of
from carom.loop.strike_page import strike_sections
from carom.loop.task import RECORDINGS, LoopTask
from carom.plan import approach, plan_strike, strike_space
from carom.plan.search import HORIZON
from carom.reality import ALL_SETTINGS, SHAPES, Reality, StandIn, sample_commands, standin
from carom.recipes.adapting import adapt
from carom.recipes.realities import own_reality
from carom.recipes.result import command
from carom.recipes.strikes import usable_impacts
from carom.recordings import Recordings, read, scene_of, write
from carom.report import Section, Step
from carom.scenes.load import load_scene, scene_from_bodies
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, StrikeCommands, wrap_angle
from carom.train.infogap import conditional_kl, gap

MODEL, CHOSEN = "model", "strikes.json"
BUDGET = 400  #: simulated strikes of one plan
TOLERANCE = (0.01, 0.1)  #: within which a planned strike has done what it was to do [m] [rad]
GOALS = 3  #: most planned strikes that are tried on a stand-in in each round
LEAST = 3  #: strikes that can be learned from
COLUMNS = ("x [m]", "y [m]", "vx [m/s]", "vy [m/s]")  #: of a strike that is asked for, in the block's frame
NOISE = 1e-3  #: least standard error of a measured velocity that is counted with [m/s], and spin times the radius
SPAN = 0.8  #: share of the furthest rests within which goals lie


@final
class StrikeLoop(LoopTask):
    """Strikes at a resting block."""

    def __init__(self, config: LoopConfig, out: Path) -> None:
        super().__init__(config, out)
        if config.recordings < LEAST:
            raise CaromError(
                f"recordings: a loop on strikes needs {LEAST} in each round or more, got {config.recordings}"
            )
        if config.visual:
            raise CaromError("visual: pictures are compared in loops on pushes only; leave the key out")
        self.reality = self._reality()
        if not isinstance(self.reality, StandIn):
            load_scene(config.scene)  # a name that does not exist is refused before anything is written

    def _reality(self) -> Reality | None:
        name = self.config.reality
        if name == PERSON:
            return None
        if ":" in name:
            return own_reality(name, told="reality:")
        if name not in ALL_SETTINGS:
            known = ", ".join((*ALL_SETTINGS, "module:Class", PERSON))
            raise CaromError(f"reality: expected one of {known}, got '{name}'")
        if self.config.scene not in SHAPES:
            raise CaromError(f"scene: a stand-in for strikes has one of {', '.join(SHAPES)}, got '{self.config.scene}'")
        return standin(name, self.config.scene, seed=self.config.seed)

    @property
    def by_person(self) -> bool:
        return self.reality is None

    @property
    def stand_in(self) -> bool:
        return isinstance(self.reality, StandIn)

    @cached_property
    def scene(self) -> StrikeScene:
        """What is struck, by what, before anything was recorded."""
        if isinstance(self.reality, StandIn):
            return scene_from_bodies(self.reality.bodies)
        return load_scene(self.config.scene)

    def hold_out(self, folder: Path, count: int, seed: int) -> Path:
        rng = np.random.default_rng([seed, 900])
        return self._recorded(sample_commands(self.scene.shape, count, rng), folder, seed)

    def tune(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """The correction of the base models with all strikes; the gap that the former one left to the newest."""
        facts: Facts = {"recordings": 0}
        past = self.recordings(now)
        if not past:
            return facts | self._held_out_facts(now)
        joined = _joined(past)
        write(folder / RECORDINGS, joined)
        facts["recordings"] = len(joined.trajectories)
        newest = usable_impacts(read(past[-1]))
        facts["gap"] = self._gaps(now.earlier[-1], newest)
        if self.config.method != "domain-randomisation":
            made = adapt(None, folder / RECORDINGS, folder / MODEL, seed=self.config.seed, progress=progress)
            named = {k: v for k, v in made.facts.items() if isinstance(v, Mapping) and "low" in v}
            facts["parameters"] = [{"name": k, **v, "verdict": "identified"} for k, v in named.items()]
            facts["explanations"] = made.facts["weights"]
        return facts | self._held_out_facts(now, folder)

    def train(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """The strikes of this round, chosen for what they tell and where they bring the block."""
        goals = self._goals(self.config.recordings)
        weight = self.weight(now)
        rng = np.random.default_rng([self.config.seed, now.number, 901])
        if self.config.method == "random":
            commands, kinds = sample_commands(self.scene.shape, self.config.recordings, rng), None
        else:
            commands, kinds = self._chosen(now, goals, weight, progress)
        content = {
            "contact_point_m": commands.contact_point.tolist(),
            "velocity_m_s": commands.velocity.tolist(),
            "target_pose_m_rad": commands.target_pose.tolist(),
            "goals_m_rad": goals.tolist(),
        }
        write_text(folder / CHOSEN, json.dumps(plain(content), indent=1) + "\n")
        return {"weight": weight, "strikes": len(commands), **({} if kinds is None else kinds)}

    def _chosen(self, now: Round, goals: Array, weight: float, progress: Progress) -> tuple[StrikeCommands, Facts]:
        """Strikes for the goals and for what they tell: candidates are spread evenly, and one is planned for each."""
        space = strike_space(self.scene, np.zeros(3))
        engines = self._engines(now, now.place("tune"))
        seed = self.config.seed + 1000 * now.number
        if self.config.method == "ensemble" and not now.earlier:
            return space.commands(even_spread(len(goals), 3, seed)), {"words": "spread evenly: nothing is known yet"}
        plans = [
            plan_strike(engines, space, goal, budget=BUDGET, tolerance=TOLERANCE, seed=seed + i).commands
            for i, goal in enumerate(goals)
        ]
        progress("choose strikes", 1, 2)
        commands = _together([*plans, space.commands(even_spread(Candidates.COUNT, 3, seed))])
        initial = approach(self.scene, commands)
        rests = np.mean([e.rollout(initial, HORIZON).rest for e in engines], axis=0)
        tried = Candidates(commands, initial, rests, goals)
        rows, facts = chosen(tried, weight, self._telling(now, tried) if weight > 0 else None)
        progress("choose strikes", 2, 2)
        return commands[list(rows)], facts

    def _telling(self, now: Round, tried: Candidates) -> Telling:
        """What the candidates tell beside what is known."""
        folder = now.place("tune")
        model, recorded = load_model(folder / MODEL), usable_impacts(read(folder / RECORDINGS)).strikes
        if not isinstance(model, AdaptedModel):
            raise CaromError(f"{folder / MODEL}: expected a model of the default correction")
        return telling_of(self.config.method, model, recorded, tried)

    def deploy(self, now: Round, folder: Path, progress: Progress) -> Facts:
        commands, goals = _read_chosen(now.place("train") / CHOSEN)
        recorded = read(self._recorded(commands, folder / RECORDINGS, self.config.seed + 7919 * now.number))
        impacts = usable_impacts(recorded)
        said = self._model(now.place("tune")).predict(impacts.strikes).post
        error = relative_error(said, impacts.post, scene_of(recorded).gyration_radius)
        facts: Facts = {
            "recordings": len(recorded.trajectories),
            "usable": len(impacts),
            "median_relative_error": float(np.median(error)),
            "strikes": [
                {"name": name, "measured": m.tolist(), "predicted": p.tolist()}
                for name, m, p in zip(impacts.names, impacts.post, said, strict=True)
            ],
        }
        if isinstance(self.reality, StandIn):
            facts["trials"] = self._trials(now, goals, self.reality)
        return facts

    def _trials(self, now: Round, goals: Array, lab: StandIn) -> list[dict[str, float]]:
        """Planned strikes on the stand-in, for the figure of success only: no one learns from them."""
        space = strike_space(self.scene, np.zeros(3))
        engines = self._engines(now, now.place("tune"))
        found = []
        for i, goal in enumerate(goals[:GOALS]):
            plan = plan_strike(engines, space, goal, budget=BUDGET, tolerance=TOLERANCE, seed=self.config.seed + i)
            rest = lab.truth(plan.commands, seed=self.config.seed + 31 * now.number + i).rest[0]
            away, turn = float(np.hypot(*(rest - goal)[:2])), float(abs(wrap_angle(rest[2] - goal[2])))
            reached = float(away <= TOLERANCE[0] and turn <= TOLERANCE[1])
            found.append({"position_error_m": away, "yaw_error_rad": turn, "success": reached})
        return found

    def sections(self, rounds: Sequence[Round]) -> list[Section]:
        return strike_sections(rounds, held_out=self.config.held_out)

    def next_steps(self, rounds: Sequence[Round]) -> list[Step]:
        last = next((r for r in reversed(rounds) if (r.place("tune") / MODEL).is_dir()), None)
        if last is None:
            return [
                Step("No simulator was corrected yet: run more rounds (`rounds:` in the file), then the same command.")
            ]
        folder = last.place("tune") / MODEL
        return [
            Step("Plan a strike with the corrected simulator.", command("plan", folder, "--target", 0.1, 0, 0)),
            Step(
                "Train a policy that strikes as often as it takes.",
                command("train", "--model", folder, "--out", "policies/loop"),
            ),
        ]

    def _goals(self, count: int) -> Array:
        """Poses [G, 3] to bring the block to, the same in every round: where MuJoCo's defaults bring it."""
        space = strike_space(self.scene, np.zeros(3))
        points = even_spread(4 * count, 3, self.config.seed + 5)
        rests = MujocoSimulator(self.scene, threads=1).rollout(space.initial(points), HORIZON).rest
        rests = rests[np.isfinite(rests).all(axis=1)]
        far = np.linalg.norm(rests[:, :2], axis=1)
        return np.asarray(rests[far <= np.quantile(far, SPAN)][:count])

    def _engines(self, now: Round, folder: Path) -> list[Simulator]:
        """What strikes are planned in: the corrected hybrid, draws of the whole ranges, or MuJoCo's defaults."""
        if self.config.method == "domain-randomisation":
            parameters = self.scene.parameters("mujoco")
            rng = np.random.default_rng([self.config.seed, 902])
            drawn = sample_parameters(parameters, self.config.draws, rng)
            names = [p.name for p in parameters]
            return [
                MujocoSimulator(self.scene, dict(zip(names, row, strict=True)), threads=1) for row in drawn.tolist()
            ]
        if now.earlier:
            return [load_hybrid(folder / MODEL).simulator(threads=1)]
        return [MujocoSimulator(self.scene, threads=1)]

    def _model(self, tuned: Path) -> ImpactModel:
        """What predicts outcomes after a tuning step; MuJoCo's defaults where nothing was learned."""
        if (tuned / MODEL).is_dir():
            return load_model(tuned / MODEL)
        return InMujoco(self.scene, np.array([p.default for p in self.scene.parameters("mujoco")]))

    def _gaps(self, before: Round, newest: Impacts) -> dict[str, float]:
        """KL of real against simulated transitions, of the simulator that those strikes were chosen with [nats]."""
        return _gaps(self._model(before.place("tune")), newest, self.scene)

    def _held_out_facts(self, now: Round, folder: Path | None = None) -> Facts:
        """How well strikes are predicted that no one learns from."""
        if self.held_out is None:
            return {}
        impacts = usable_impacts(read(self.held_out))
        model = self._model(folder or now.place("tune"))
        error = relative_error(model.predict(impacts.strikes).post, impacts.post, self.scene.gyration_radius)
        found = {
            "median_relative_error": float(np.median(error)),
            "accuracy_10_percent": float((error < 0.1).mean()),
            "gap": max(_gaps(model, impacts, self.scene)["conditional"], 0.0),
        }
        return {"held_out": found}

    def _recorded(self, commands: StrikeCommands, folder: Path, seed: int) -> Path:
        """Strikes carried out by whatever reality is."""
        if self.reality is not None:
            return Path(self.reality.execute(commands, folder, seed=seed))
        rows = np.column_stack([commands.contact_point, commands.velocity])
        words = (
            "Strike the block where it rests: the striker touches its outline at (x, y), moving with (vx, vy), all in "
            "the block's own frame."
        )
        return recorded_by_person(folder, what="strikes", columns=COLUMNS, rows=rows, words=words)


def _gaps(model: ImpactModel, impacts: Impacts, scene: StrikeScene) -> dict[str, float]:
    """The gap by every estimator that so few strikes allow, over the outcomes (vx, vy, k wz) [nats]."""
    lever = np.array([1.0, 1.0, scene.gyration_radius])
    real, said = impacts.post * lever, model.predict(impacts.strikes).post * lever
    fine = np.isfinite(said).all(axis=1)
    if fine.sum() < 2:
        raise CaromError("the simulator predicts none of the recorded strikes; look at the recordings with carom check")
    noise = np.maximum(np.sqrt(np.nanmean((impacts.post_std[fine] * lever) ** 2, axis=0)), NOISE)
    found = {"conditional": max(conditional_kl(real[fine], said[fine], noise), 0.0)}
    for name in ("gaussian", "kde", "knn"):
        try:
            found[name] = gap(name, real[fine], said[fine], noise)
        except CaromError:  # too few strikes for it
            found[name] = float("nan")
    return found


def _joined(folders: Sequence[Path]) -> Recordings:
    """Recordings of several rounds as one folder, their files named after the round."""
    parts = [read(folder) for folder in folders]
    every = [
        replace(t, name=f"round-{number:02d}-{Path(t.name).name}")
        for number, part in enumerate(parts, start=1)
        for t in part.trajectories
    ]
    return replace(parts[0], trajectories=tuple(every))


def _together(parts: Sequence[StrikeCommands]) -> StrikeCommands:
    columns = ("contact_point", "velocity", "target_pose")
    return StrikeCommands(*(np.concatenate([getattr(p, name) for p in parts]) for name in columns))


def _read_chosen(path: Path) -> tuple[StrikeCommands, Array]:
    """The strikes of a round and the goals they were chosen for."""
    content = json.loads(path.read_text(encoding="utf-8"))
    names = ("contact_point_m", "velocity_m_s", "target_pose_m_rad", "goals_m_rad")
    point, velocity, pose, goals = (np.asarray(content[name], dtype=np.float64) for name in names)
    return StrikeCommands(point, velocity, pose), goals
