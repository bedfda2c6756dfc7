"""What a loop is told: one YAML file. Every key has a default but task, scene and reality.

format: carom-loop/1
task: pushes               # or strikes
scene: planar-cube         # what is pushed or struck, by what
reality: laminate          # a stand-in, module:Class, or person
rounds: 4
recordings: 15             # real pushes or strikes in each round
method: infogap
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from carom.core.errors import CaromError
from carom.core.yaml_files import Where, YamlError, explain, read_yaml, refuse_duplicates
from carom.scenes.stated import StatedModel

FORMAT = "carom-loop/1"
PERSON = "person"  #: the reality that is a person with a robot: the loop stops and says what to record
METHODS: Mapping[str, str] = {
    "infogap": "the paper's: the policy is also paid for transitions far from the simulated ones, times the gap",
    "ensemble": "the policy is also paid for transitions that plausible simulators disagree about",
    "random": "recordings are of random actions; the policy learns the task alone",
    "task-only": "recordings are those of the policy; it learns the task alone",
    "domain-randomisation": "nothing is tuned: the policy learns the task in simulators drawn from the whole ranges",
}


class TrainingKeys(StatedModel):
    """How the policy is trained; for pushes only."""

    algorithm: Literal["ppo", "sac"] = "ppo"
    #: transitions in the first round; None: as many as `carom train` takes for the scene
    steps: int | None = Field(default=None, ge=64, le=1_000_000_000)
    later_steps: int | None = Field(default=None, ge=64, le=1_000_000_000)  #: in each later one; None: as the first
    warm: bool = True  #: whether a round goes on from the policy of the one before


class TuningKeys(StatedModel):
    """How the simulator is tuned; for pushes only."""

    method: Literal["cma", "gauss-newton", "random"] = "cma"
    parameters: list[str] | None = None  #: names; None: the usual ones
    budget: int | None = Field(
        default=None, ge=10
    )  #: replays of all pushes at most; None: 60, and 25 from the third round on


class LoopConfig(StatedModel):
    """The whole of a loop's file."""

    format: str
    task: Literal["pushes", "strikes"]
    scene: str
    reality: str
    rounds: int = Field(default=4, ge=1, le=100)
    recordings: int = Field(default=15, ge=1, le=10_000)  #: real pushes or strikes in each round
    held_out: int = Field(default=0, ge=0, le=10_000)  #: real ones at the beginning, only to measure with
    method: Literal["infogap", "ensemble", "random", "task-only", "domain-randomisation"] = "infogap"
    residual: bool = False  #: pushes: a learned correction on top of the tuned engine (strikes always have one)
    estimator: Literal["conditional", "gaussian", "kde", "knn"] = "conditional"  #: of the gap in the term's weight
    information: float = Field(default=0.5, ge=0, le=100)  #: the term's weight in round 2, times the task's reward
    draws: int = Field(default=6, ge=2, le=64)  #: plausible simulators in the ensemble
    trials: int = Field(default=50, ge=1, le=10_000)  #: of the policy in simulation, and on a stand-in (not counted)
    training: TrainingKeys = Field(default_factory=TrainingKeys)
    tuning: TuningKeys = Field(default_factory=TuningKeys)
    #: of a stand-in for pushes; expressible: only what a parameter of the simulator expresses
    effects: Literal["all", "expressible", "none"] = "all"
    visual: bool = False  #: section V: structural similarity of pictures as a multiplier of the gap
    seed: int = Field(default=0, ge=0, le=2**31 - 1)

    def settings(self) -> dict[str, Any]:
        """Everything that must not change between a stop and its continuation, for a header."""
        return self.model_dump(mode="json")


_INSIDE: Mapping[str, type[StatedModel]] = {"training": TrainingKeys, "tuning": TuningKeys}
#: keys that mean something for one task only
ONLY: Mapping[str, str] = {"training": "pushes", "tuning": "pushes", "residual": "pushes", "effects": "pushes"}


def read_config(path: str | Path) -> LoopConfig:
    """The content of a loop's file; an error says where it goes wrong and what exists."""
    place = Path(path)
    try:
        data, node = read_yaml(place)
        refuse_duplicates(node)
    except YamlError as fault:
        raise _refused(place, fault) from fault
    if not isinstance(data, Mapping):
        raise CaromError(f"{place}: expected a mapping that starts with 'format: {FORMAT}', got no mapping")
    if data.get("format") != FORMAT:
        raise CaromError(f"{place}: expected format: {FORMAT}, got {data.get('format')!r:.60}")
    try:
        config = LoopConfig.model_validate(data)
    except ValidationError as error:
        raise _refused(place, explain(error, node, _keys)) from error
    for key, task in ONLY.items():
        if key in data and config.task != task:
            raise CaromError(f"{place}: '{key}' is for {task}; leave it out of a loop on {config.task}")
    return config


def _keys(where: Where) -> Iterable[str]:
    return _INSIDE.get(".".join(map(str, where[:-1])), LoopConfig).model_fields


def _refused(place: Path, fault: YamlError) -> CaromError:
    return CaromError(f"{place if fault.line is None else f'{place}, line {fault.line}'}: {fault.message}")
