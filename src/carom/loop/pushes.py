"""The loop on pushes: each round tunes the simulator to all recordings, trains a policy in it, and lets it push."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, final

import numpy as np

from carom.core.artefacts import plain, write_text
from carom.core.errors import CaromError
from carom.core.progress import Progress
from carom.engines.pushing import push_simulator
from carom.envs.pushing import Goals, PushingTask, pushing_task
from carom.identify.pushes import Tuning, tune
from carom.identify.pushes.problem import USUAL, parameters_of
from carom.learn.transition import fit_residual, load_residual, save_residual
from carom.loop.config import PERSON, LoopConfig
from carom.loop.person import recorded_by_person
from carom.loop.push_data import PushModel, gaps_of, learned_residual, noise_of, poses_of
from carom.loop.push_page import push_sections
from carom.loop.push_plans import random_pushes
from carom.loop.push_terms import term_of
from carom.loop.push_trials import MOTIONS, Trials, controller, pose_of, success_of
from carom.loop.steps import Facts, Round
from carom.loop.task import RECORDINGS, LoopTask
from carom.reality.push_contract import PushCommands, PushReality, PushTasks
from carom.reality.push_settings import PUSH_SETTINGS, PushEffects
from carom.reality.push_standin import PushStandIn, push_standin
from carom.recipes.realities import own_push_reality
from carom.recipes.result import command
from carom.recordings import Recordings, read
from carom.report import Section, Step
from carom.scenes.pushing import OWN, PushScene, push_scene
from carom.train.policy import Policy, load_policy
from carom.train.pushing import PushingTraining, train_pushing, unit_of

POLICY, TUNED, RESIDUAL = "policy", "tuned.json", "residual.safetensors"
LOOKED_FOR = tuple(dict.fromkeys((*USUAL, "pressure_spread")))  #: where nobody says: a box presses on its whole base
WINDOW = 0.25  #: [s] that is played again at once: over whole pushes small differences grow, and hide what is wrong
BUDGET, REFINED = 60, 25  #: replays of all pushes, and those of a later round, which begins where the one before ended
LEAST = 3  #: pushes that a simulator can be tuned with
RANDOMISED = 64  #: simulators that domain randomisation draws from the whole ranges
COLUMNS = (
    "block x [m]",
    "block y [m]",
    "block yaw [rad]",
    "tool x [m]",
    "tool y [m]",
    "to x [m]",
    "to y [m]",
    "to yaw [rad]",
)


@final
class PushLoop(LoopTask):
    """Pushes of a block by a robot."""

    def __init__(self, config: LoopConfig, out: Path) -> None:
        super().__init__(config, out)
        if config.recordings < LEAST:
            raise CaromError(
                f"recordings: a loop on pushes needs {LEAST} in each round or more, got {config.recordings}"
            )
        if config.visual:
            raise CaromError("visual: pictures are not compared yet; leave the key out")
        if config.scene not in OWN:
            raise CaromError(f"scene: expected one of {', '.join(OWN)} for pushes, got '{config.scene}'")
        self.scene: PushScene = push_scene(config.scene)
        self.task: PushingTask = pushing_task(self.scene)
        parameters_of(
            self.scene, config.tuning.parameters or LOOKED_FOR
        )  # a name that does not exist is refused at once
        self.reality = self._reality()

    def _reality(self) -> PushReality | None:
        name = self.config.reality
        if name == PERSON:
            return None
        if ":" in name:
            return own_push_reality(name, told="reality:")
        if name not in PUSH_SETTINGS:
            raise CaromError(
                f"reality: expected one of {', '.join((*PUSH_SETTINGS, 'module:Class', PERSON))}, got '{name}'"
            )
        effects = PUSH_SETTINGS[name].effects
        if self.config.effects == "none":
            effects = PushEffects.none()
        elif self.config.effects == "expressible":
            effects = effects.expressible()
        return push_standin(name, self.scene, seed=self.config.seed, effects=effects)

    @property
    def by_person(self) -> bool:
        return self.reality is None

    @property
    def stand_in(self) -> bool:
        return isinstance(self.reality, PushStandIn)

    def hold_out(self, folder: Path, count: int, seed: int) -> Path:
        return self._carried_out(random_pushes(self.task, count, np.random.default_rng([seed, 900])), folder, seed)

    def tune(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """Parameters from all pushes so far; before, the gap that the former simulator leaves to the newest ones."""
        folders = self._read(now)
        facts: Facts = {"recordings": sum(len(f.trajectories) for f in folders)}
        if folders:
            former = self.model(now.earlier[-1])
            facts["gap"] = gaps_of(former, folders[-1:])
            if self.config.method != "domain-randomisation":
                facts |= self._tuned(now, folders, folder, progress)
        if self.held_out is not None:
            found = gaps_of(self.model(now, folder if folders else None), [read(self.held_out)])
            facts["held_out"] = {"gap": found["conditional"], "error_mm": 1e3 * found["error_m"]}
        return facts

    def _tuned(self, now: Round, folders: Sequence[Recordings], folder: Path, progress: Progress) -> Facts:
        keys = self.config.tuning
        before = now.earlier[-1].place("tune") / TUNED
        known = json.loads(before.read_text(encoding="utf-8"))["values"] if before.is_file() else None
        found = tune(
            self.scene,
            folders,
            Tuning(
                keys.parameters or LOOKED_FOR,
                method="gauss-newton" if known and keys.method == "cma" else keys.method,
                budget=keys.budget or (BUDGET if known is None else REFINED),
                start=known,
                window=WINDOW,
            ),
            seed=now.seed,
            threads=1,
            progress=partial(progress, "find parameters"),
        )
        draws = [{**found.values, **{k: float(v[i]) for k, v in found.draws.items()}} for i in range(self.config.draws)]
        content: dict[str, Any] = {"values": found.values, "draws": draws}
        facts: Facts = {
            "parameters": [
                {"name": e.name, "value": e.value, "low": e.low, "high": e.high, "unit": e.unit, "verdict": e.verdict}
                for e in found.identification.estimates
            ]
        }
        if isinstance(self.reality, PushStandIn):
            facts["truth"] = self.reality.truth
        if self.config.residual:
            model = PushModel(push_simulator(self.scene, tuple(found.values)), found.values)
            residual = fit_residual(*learned_residual(model, folders))
            content["residual"] = save_residual(folder / RESIDUAL, residual)
            facts["residual_explains"] = residual.explained
        write_text(folder / TUNED, json.dumps(plain(content), indent=1) + "\n")
        return facts

    def train(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """A policy for the task, paid for what its pushes tell as well; it begins with that of the round before."""
        keys, weight = self.config.training, self.weight(now)
        before = None if now.before is None else now.before.place("train") / POLICY
        model = self.model(now)
        policy = load_policy(before) if before is not None else None
        term = None
        if weight > 0:
            folders = self._read(now)
            noise = noise_of(self.scene, folders)
            unit = unit_of(self.task)
            term = term_of(
                self.config.method,
                self.task,
                model,
                folders,
                weight=weight * unit,
                noise=noise,
                policy=policy,
                seed=now.seed,
            )
        steps = keys.steps if before is None or keys.later_steps is None else keys.later_steps
        training = PushingTraining(keys.algorithm, steps, now.seed, start=before if keys.warm else None)
        draws = model.draws if self.config.method == "domain-randomisation" else [model.values] if model.values else ()
        train_pushing(
            self.task, folder / POLICY, training, simulator=model.pushes, draws=draws, term=term, progress=progress
        )
        return {"weight": weight, "steps": training.whole(self.task).steps}

    def deploy(self, now: Round, folder: Path, progress: Progress) -> Facts:
        """Let the policy push to new goals, or push at random; on a stand-in also trials that nobody learns from."""
        policy = load_policy(now.place("train") / POLICY)
        rng = np.random.default_rng([self.config.seed, now.number, 901])
        seed = self.config.seed + 7919 * now.number
        if self.config.method == "random":
            self._carried_out(random_pushes(self.task, self.config.recordings, rng), folder / RECORDINGS, seed)
            goals = None
        else:
            start, goals = self.task.sample(self.config.recordings, rng)
            self._deployed(policy, PushTasks(start, pose_of(goals), self.task.steps), folder, goals, seed, now)
        recorded = read(folder / RECORDINGS)
        facts: Facts = {"recordings": len(recorded.trajectories)}
        if isinstance(self.reality, PushStandIn):
            trials = Trials(self.task, self.reality, policy, self.config.seed)
            facts["trials"] = trials.many(self.config.trials, now.number)
            motions, told = trials.repeated(self.model(now))
            write_text(folder / MOTIONS, json.dumps(plain(motions)) + "\n")
            facts["repeated"] = told
        elif goals is not None:
            facts["trials"] = success_of(self.task, recorded, goals)
        return facts

    def _deployed(self, policy: Policy, tasks: PushTasks, folder: Path, goals: Goals, seed: int, now: Round) -> Path:
        """A policy's pushes by whatever reality is."""
        place = folder / RECORDINGS
        if self.reality is not None:
            return Path(self.reality.deploy(controller(self.task, policy, goals), tasks, place, seed=seed))
        words = (
            f"Let the policy in {now.place('train') / POLICY} push: each from its start, for {tasks.steps} control "
            f"periods of 0.05 s (in Python: carom.train.load_policy, and carom.envs.pushing.pushing_task for what it "
            "sees and what its actions mean). Record the poses of block and tool, and as ctrl.JOINT what each joint "
            "was told, ctrl.JOINT_measured where it was."
        )
        tip = self.scene.tool_position(tasks.start.joint_position)[:, :2]
        rows = np.column_stack([poses_of(tasks.start), tip, tasks.target])
        return recorded_by_person(place, what="pushes", columns=COLUMNS, rows=rows, words=words)

    def _carried_out(self, commands: PushCommands, folder: Path, seed: int) -> Path:
        """Pushes whose set-points are known, by whatever reality is."""
        if self.reality is not None:
            return Path(self.reality.execute(commands, folder, seed=seed))
        tip = self.scene.tool_position(commands.start.joint_position)[:, :2]
        end = np.full((len(commands), 3), np.nan)
        last = commands.controls[:, -1]
        if last.shape[1] == len(self.scene.joint_names):
            end[:, :2] = self.scene.tool_position(last)[:, :2]
        words = (
            "Push the block straight: the tool goes from its start to the point given (the last columns; its yaw does "
            "not matter), each push at another speed between 0.05 and 0.3 m/s. Record the poses of block and tool, "
            "and as ctrl.JOINT what each joint was told, ctrl.JOINT_measured where it was."
        )
        rows = np.column_stack([poses_of(commands.start), tip, end[:, :2], np.zeros(len(commands))])
        return recorded_by_person(folder, what="pushes", columns=COLUMNS, rows=rows, words=words)

    def sections(self, rounds: Sequence[Round]) -> list[Section]:
        return push_sections(self.task, rounds)

    def next_steps(self, rounds: Sequence[Round]) -> list[Step]:
        trained = [r for r in rounds if r.has("train")]
        if not trained:
            return [Step("No policy was trained yet: run the same command again.")]
        folder = trained[-1].place("train") / POLICY
        steps = [Step("Look the newest recordings over.", command("check", trained[-1].place("deploy") / RECORDINGS))]
        found = trained[-1].facts("deploy").get("trials", []) if trained[-1].has("deploy") else []
        if found and np.mean([t["success"] for t in found]) < 0.9:
            steps.append(
                Step(
                    "The policy fails in more than a tenth of its trials: add rounds (rounds: "
                    f"{self.config.rounds + 2} in the file), or training.steps in a new folder; then the same command."
                )
            )
        steps.append(
            Step(f"Use the policy: policy = carom.train.load_policy({str(folder)!r}); policy.act(observations).")
        )
        return steps

    def model(self, now: Round, folder: Path | None = None) -> PushModel:
        """The simulator after a round's tuning step (in `folder`, while it is being made)."""
        place = now.place("tune") if folder is None else folder
        if self.config.method == "domain-randomisation":
            return self._randomised
        if not (place / TUNED).is_file():
            return PushModel(push_simulator(self.scene), {})
        content = json.loads((place / TUNED).read_text(encoding="utf-8"))
        values: Mapping[str, float] = content["values"]
        digest = content.get("residual")
        residual = None if digest is None else load_residual(place / RESIDUAL, digest)
        return PushModel(push_simulator(self.scene, tuple(values)), values, tuple(content["draws"]), residual)

    @cached_property
    def _randomised(self) -> PushModel:
        """Simulators from the whole ranges; the one that predicts is that of all defaults."""
        parameters = parameters_of(self.scene, self.config.tuning.parameters or LOOKED_FOR)
        unit = np.random.default_rng([self.config.seed, 902]).uniform(size=(RANDOMISED, len(parameters)))
        draws = tuple({p.name: float(p.from_unit(u)) for p, u in zip(parameters, row, strict=True)} for row in unit)
        simulator = push_simulator(self.scene, tuple(p.name for p in parameters))
        return PushModel(simulator, {p.name: p.default for p in parameters}, draws)

    def _read(self, now: Round) -> list[Recordings]:
        return [read(folder) for folder in self.recordings(now)]
