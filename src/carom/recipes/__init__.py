"""From folders to results: each command of the command line is one function here, and Python users call the same.

    from carom import recipes

    recipes.distill("square", "models/square")
    recipes.adapt("models/square", "recordings", "models/lab")
    print(recipes.plan("models/lab", (0.3, 0.1, 0.0)).plan.to_dict())

A recipe returns a `Result`: typed, with `to_dict()` for JSON and `tables()` for people. What a recipe needs is imported
when it is first asked for, so that this package imports fast. (Modules here are named differently from their functions,
because importing a module would put it in the function's place.)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from carom.core.errors import CaromError

if TYPE_CHECKING:
    from carom.recipes.adapting import AdaptResult, adapt
    from carom.recipes.bases import BaseOptions
    from carom.recipes.checking import CheckResult, check
    from carom.recipes.demonstrating import demo
    from carom.recipes.distilling import DistillOptions, DistillResult, distill
    from carom.recipes.doctoring import DoctorResult, doctor
    from carom.recipes.evaluating import CompareOptions, EvaluateResult, evaluate
    from carom.recipes.evaluating_pushes import PushEvaluation, evaluate_pushes, refuse_for_pushes, shows_pushes
    from carom.recipes.exporting import ExportResult, RobotOptions, export
    from carom.recipes.identifying import IdentifyResult, StrikeOptions, identify
    from carom.recipes.importing import ImportResult, import_files
    from carom.recipes.planning import PlanFiles, PlanResult, SearchOptions, plan
    from carom.recipes.policies import reality_strike
    from carom.recipes.predicting import PredictResult, predict
    from carom.recipes.result import PrintedTable, Result
    from carom.recipes.scaling import ScaleOptions, ScaleResult, scale
    from carom.recipes.seeding import TrainSeedsResult, train_seeds
    from carom.recipes.suggesting import SuggestResult, suggest
    from carom.recipes.tosses import FreeOptions
    from carom.recipes.training import EngineOptions, TaskOptions, Training, TrainResult, train
    from carom.recipes.training_graphs import TrainGraphResult, train_graph
    from carom.recipes.training_pushes import PushingTraining, TrainPushesResult, train_pushes
    from carom.recipes.trying import RolloutResult, rollout
    from carom.recipes.trying_pushes import RolloutPushesResult, is_policy_of_pushes, rollout_pushes

__all__ = [
    "AdaptResult",
    "BaseOptions",
    "CheckResult",
    "CompareOptions",
    "DistillOptions",
    "DistillResult",
    "DoctorResult",
    "EngineOptions",
    "EvaluateResult",
    "ExportResult",
    "FreeOptions",
    "IdentifyResult",
    "ImportResult",
    "PlanFiles",
    "PlanResult",
    "PredictResult",
    "PrintedTable",
    "PushEvaluation",
    "PushingTraining",
    "Result",
    "RobotOptions",
    "RolloutPushesResult",
    "RolloutResult",
    "ScaleOptions",
    "ScaleResult",
    "SearchOptions",
    "StrikeOptions",
    "SuggestResult",
    "TaskOptions",
    "TrainGraphResult",
    "TrainPushesResult",
    "TrainResult",
    "TrainSeedsResult",
    "Training",
    "adapt",
    "check",
    "demo",
    "distill",
    "doctor",
    "evaluate",
    "evaluate_pushes",
    "export",
    "identify",
    "import_files",
    "is_policy_of_pushes",
    "plan",
    "predict",
    "reality_strike",
    "refuse_for_pushes",
    "rollout",
    "rollout_pushes",
    "scale",
    "shows_pushes",
    "suggest",
    "train",
    "train_graph",
    "train_pushes",
    "train_seeds",
]

_MODULES = {
    "adapting": ("AdaptResult", "adapt"),
    "bases": ("BaseOptions",),
    "checking": ("CheckResult", "check"),
    "demonstrating": ("demo",),
    "distilling": ("DistillOptions", "DistillResult", "distill"),
    "doctoring": ("DoctorResult", "doctor"),
    "evaluating": ("CompareOptions", "EvaluateResult", "evaluate"),
    "evaluating_pushes": ("PushEvaluation", "evaluate_pushes", "refuse_for_pushes", "shows_pushes"),
    "exporting": ("ExportResult", "RobotOptions", "export"),
    "identifying": ("IdentifyResult", "StrikeOptions", "identify"),
    "importing": ("ImportResult", "import_files"),
    "planning": ("PlanFiles", "PlanResult", "SearchOptions", "plan"),
    "policies": ("reality_strike",),
    "predicting": ("PredictResult", "predict"),
    "result": ("PrintedTable", "Result"),
    "scaling": ("ScaleOptions", "ScaleResult", "scale"),
    "seeding": ("TrainSeedsResult", "train_seeds"),
    "suggesting": ("SuggestResult", "suggest"),
    "tosses": ("FreeOptions",),
    "training": ("EngineOptions", "TaskOptions", "TrainResult", "Training", "train"),
    "training_graphs": ("TrainGraphResult", "train_graph"),
    "training_pushes": ("PushingTraining", "TrainPushesResult", "train_pushes"),
    "trying": ("RolloutResult", "rollout"),
    "trying_pushes": ("RolloutPushesResult", "is_policy_of_pushes", "rollout_pushes"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
_NEEDS_RL = ("policies", "seeding", "training", "training_pushes", "trying", "trying_pushes")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'carom.recipes' has no attribute '{name}'")
    try:
        return getattr(import_module(f"carom.recipes.{_HOME[name]}"), name)
    except ImportError as error:
        if _HOME[name] not in _NEEDS_RL:
            raise
        raise CaromError(f"policies need further libraries ({error}): pip install 'carom[rl]'") from error


def __dir__() -> list[str]:
    return __all__
