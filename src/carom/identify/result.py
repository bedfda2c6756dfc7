"""What every identification returns: values, units, intervals and verdicts, and `parameters.yaml` to keep them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import Field

from carom.core.artefacts import SEAL, Keys, check_keys, plain, seal, versions, write_text
from carom.core.errors import CaromError, short, unknown_name
from carom.core.yaml_files import YamlError, read_yaml, refuse_duplicates, yaml_text
from carom.scenes.parameters import Parameter
from carom.state import Array

FORMAT = "carom-parameters/1"
FILE = "parameters.yaml"
EDITED = "edited"  #: in place of the checksum, by a person who has changed the file
CONFIDENCE = 0.9  #: of every interval
PACKAGES = ("mujoco", "numpy", "torch", "cmaes")  #: whose versions are written down

Verdict = Literal["identified", "on a bound", "weakly identified", "not identifiable from these recordings", "given"]


class EstimateKeys(Keys):
    """What the file says of a parameter."""

    value: float
    unit: str
    interval_90: tuple[float | None, float | None]
    bounds: tuple[float | None, float | None]
    verdict: str
    reason: str


class ErrorsKeys(Keys):
    """What the file says of errors on some recordings."""

    loss: float | None
    median_relative_error: float | None
    accuracy: float | None = Field(alias="accuracy@0.1")
    strikes: int


class AllErrorsKeys(Keys):
    """What the file says of errors."""

    norm: str
    training: ErrorsKeys
    held_out: ErrorsKeys | None
    held_out_by: str


class EffortKeys(Keys):
    """What finding the parameters took."""

    evaluations: int
    failures: int
    seconds: float


class ParametersFile(Keys):
    """What may stand in `parameters.yaml`."""

    format: str
    scene: str
    teacher: str
    method: str
    seed: int
    parameters: dict[str, EstimateKeys]
    derived: dict[str, EstimateKeys] = Field(default_factory=dict)
    errors: AllErrorsKeys
    effort: EffortKeys
    notes: list[str]
    extra: dict[str, Any]
    made_with: dict[str, str]
    made_from: dict[str, Any]
    header_sha256: str


@dataclass(frozen=True)
class Estimate:
    """One parameter: its value, how sure it is, and in words what to make of it."""

    name: str
    value: float  #: [unit]
    unit: str
    low: float  #: [unit] lower end of the 90 % interval
    high: float  #: [unit] upper end
    bounds: tuple[float, float]  #: [unit] within which it was looked for
    verdict: Verdict  #: "given": it was not looked for, the caller or its default set it
    reason: str  #: why, in one sentence


@dataclass(frozen=True)
class Errors:
    """How far predictions are from measured outcomes, in the kinetic-energy norm of (vx, vy, k * wz)."""

    loss: float  #: Eq. 3: mean squared error [m^2/s^2] (of a base model: as a share of the approach speed, squared)
    median_relative_error: float  #: error over outcome
    accuracy: float  #: share of strikes with a relative error under 0.1 (Eq. 4, alpha = 0.1)
    strikes: int


@dataclass(frozen=True)
class Identification:
    """The outcome of one identification, whatever the method."""

    method: str
    scene: str
    estimates: tuple[Estimate, ...]
    training: Errors  #: on the strikes it was fitted to
    held_out: Errors | None  #: on strikes left out in turn; None with fewer than three
    held_out_by: str  #: how they were left out
    evaluations: int  #: strikes simulated, or rows given to the base model
    failures: int  #: of those, strikes that missed or did not finish: a large cost each
    seconds: float  #: wall time
    seed: int
    teacher: str = "mujoco"  #: whose parameters these are
    norm: str = "kinetic energy: vx, vy, k*wz"  #: what the errors are measured in
    notes: tuple[str, ...] = ()  #: anything else a reader should know
    extra: Mapping[str, Any] = field(default_factory=dict)  #: method's own facts, JSON-able
    derived: tuple[Estimate, ...] = ()  #: what is no parameter of a simulator: restitution, contact time
    made_from: Mapping[str, Any] = field(default_factory=dict)  #: as the file says that it was read from

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        raise CaromError(unknown_name("parameter", name, [e.name for e in self.estimates]))

    def values(self, parameters: Sequence[Parameter]) -> Array:
        """The value of each of these parameters [P], in their order."""
        return np.array([self[p.name].value for p in parameters])

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON and YAML know; a number that is not finite becomes None."""
        return {
            "format": FORMAT,
            "scene": self.scene,
            "teacher": self.teacher,
            "method": self.method,
            "seed": self.seed,
            "parameters": {e.name: _estimate_dict(e) for e in self.estimates},
            "derived": {e.name: _estimate_dict(e) for e in self.derived},
            "errors": {
                "norm": self.norm,
                "training": _errors_dict(self.training),
                "held_out": None if self.held_out is None else _errors_dict(self.held_out),
                "held_out_by": self.held_out_by,
            },
            "effort": {"evaluations": self.evaluations, "failures": self.failures, "seconds": round(self.seconds, 3)},
            "notes": list(self.notes),
            "extra": dict(self.extra),
            "made_with": versions(PACKAGES),
        }

    def write(self, path: str | Path, *, made_from: Mapping[str, Any] | None = None) -> Path:
        """Write as YAML to this file, or to `parameters.yaml` in this folder; a kill leaves the old file or the new.

        `made_from` names the recordings and has their checksum. A file that holds something else is refused.
        """
        path = file_to_write(path)
        text = "# Parameters in SI units, identified from recordings; intervals hold 90 %.\n"
        text += yaml_text(seal({**plain(self.to_dict()), "made_from": dict(made_from or {})}))
        write_text(path, text)
        return path


def file_to_write(path: str | Path) -> Path:
    """The file that `Identification.write` writes; raises if it would take the place of something else."""
    path = Path(path)
    path = path / FILE if path.is_dir() or not path.suffix else path
    if path.suffix not in (".yaml", ".yml"):
        raise CaromError(f"{path}: parameters are written to a folder, or to a file that ends in .yaml")
    if path.is_file() and f"format: {FORMAT}" not in path.read_bytes().decode(errors="replace"):
        raise CaromError(f"{path} is no file of parameters, and would be overwritten; choose another name")
    return path


def read(path: str | Path) -> Identification:
    """Read what `Identification.write` wrote."""
    path = Path(path)
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise CaromError(f"{path} does not exist; `carom identify` writes one")
    try:
        data, node = read_yaml(path)
        refuse_duplicates(node)
    except YamlError as fault:
        raise CaromError(f"{path}{'' if fault.line is None else f', line {fault.line}'}: {fault.message}") from fault
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = short(data.get("format")) if isinstance(data, dict) else type(data).__name__
        raise CaromError(f"{path}: expected format: {FORMAT}, got {found}")
    if SEAL not in data:
        raise CaromError(
            f"{path} was made by an earlier version of Carom, or by hand (it has no checksum); run carom identify "
            f"again, or add '{SEAL}: edited' if these are the numbers that you want"
        )
    if data[SEAL] not in (EDITED, seal(data)[SEAL]):
        raise CaromError(
            f"{path} is damaged or was edited: its content does not fit its {SEAL}; run carom identify again, or write "
            f"'{SEAL}: {EDITED}' if these are the numbers that you want"
        )
    check_keys(path, ParametersFile, data, again="carom identify")
    try:
        return _from_dict(data)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = (
            f"key {error} is missing" if isinstance(error, KeyError) else f"not as `carom identify` writes it: {error}"
        )
        raise CaromError(f"{path}: {what:.300}") from error


def _from_dict(data: Mapping[str, Any]) -> Identification:
    errors, effort = data["errors"], data["effort"]
    return Identification(
        method=str(data["method"]),
        scene=str(data["scene"]),
        estimates=tuple(_estimate(name, values) for name, values in data["parameters"].items()),
        training=_errors(errors["training"]),
        held_out=None if errors["held_out"] is None else _errors(errors["held_out"]),
        held_out_by=str(errors["held_out_by"]),
        evaluations=int(effort["evaluations"]),
        failures=int(effort["failures"]),
        seconds=float(effort["seconds"]),
        seed=int(data["seed"]),
        teacher=str(data["teacher"]),
        norm=str(errors.get("norm", "")),
        notes=tuple(data.get("notes", ())),
        extra=dict(data.get("extra", {})),
        derived=tuple(_estimate(name, values) for name, values in data.get("derived", {}).items()),
        made_from=dict(data["made_from"]),
    )


def _estimate_dict(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": _number(estimate.value),
        "unit": estimate.unit,
        "interval_90": [_number(estimate.low), _number(estimate.high)],
        "bounds": [_number(v) for v in estimate.bounds],
        "verdict": estimate.verdict,
        "reason": estimate.reason,
    }


def _estimate(name: str, values: Mapping[str, Any]) -> Estimate:
    value, low, high = (_back(v) for v in (values["value"], *values["interval_90"]))
    bounds = (_back(values["bounds"][0]), _back(values["bounds"][1]))
    verdict = values["verdict"]
    if not np.isfinite(value):
        raise ValueError(f"parameter '{name}': value must be a finite number [{values['unit']}], got {values['value']}")
    if verdict not in get_args(Verdict):
        raise ValueError(f"parameter '{name}': {unknown_name('verdict', str(verdict), get_args(Verdict))}")
    return Estimate(str(name), value, str(values["unit"]), low, high, bounds, verdict, str(values["reason"]))


def _errors_dict(errors: Errors) -> dict[str, Any]:
    return {
        "loss": _number(errors.loss),
        "median_relative_error": _number(errors.median_relative_error),
        "accuracy@0.1": _number(errors.accuracy),
        "strikes": errors.strikes,
    }


def _errors(values: Mapping[str, Any]) -> Errors:
    return Errors(
        loss=_back(values["loss"]),
        median_relative_error=_back(values["median_relative_error"]),
        accuracy=_back(values["accuracy@0.1"]),
        strikes=int(values["strikes"]),
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _back(value: float | None) -> float:
    return float("nan") if value is None else float(value)
