"""Policies: trained with Stable-Baselines3 or sbx, kept without pickle, tried along routes.

Training and trials need the extra `rl`, so they are imported when first used; a saved policy runs without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from carom.core.errors import CaromError
from carom.train.policy import Policy, load_policy, save_policy
from carom.train.presets import ALGORITHMS, LIBRARIES, PRESETS, Preset, preset_of

if TYPE_CHECKING:
    from carom.train.models import policy_of
    from carom.train.run import Training, train
    from carom.train.trials import Rate, Rates, Trials, rate_of, run_trials, trials_of

__all__ = [
    "ALGORITHMS",
    "LIBRARIES",
    "PRESETS",
    "Policy",
    "Preset",
    "Rate",
    "Rates",
    "Training",
    "Trials",
    "load_policy",
    "policy_of",
    "preset_of",
    "rate_of",
    "run_trials",
    "save_policy",
    "train",
    "trials_of",
]


_LATER = {
    "policy_of": "models",
    **dict.fromkeys(("Training", "train"), "run"),
    **dict.fromkeys(("Rate", "Rates", "Trials", "rate_of", "run_trials", "trials_of"), "trials"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'carom.train' has no attribute '{name}'")
    try:
        return getattr(import_module(f"carom.train.{_LATER[name]}"), name)
    except ImportError as error:
        raise CaromError(f"policies are trained with other libraries ({error}): pip install 'carom[rl]'") from error
