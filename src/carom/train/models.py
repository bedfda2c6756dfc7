"""The learners of Stable-Baselines3 and sbx, made from a preset, and the policy that one of them holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from carom.core.errors import CaromError, unknown_name
from carom.envs.batch import StrikeBatch
from carom.envs.task import strikes_of
from carom.scenes.load import scene_to_dict
from carom.train.policy import Floats, Policy
from carom.train.presets import LIBRARIES, Preset


def new_model(env: VecEnv, preset: Preset, *, library: str, seed: int) -> BaseAlgorithm:
    """A learner with fresh weights, on the CPU: the networks are too small to gain from more."""
    if library not in LIBRARIES:
        raise CaromError(unknown_name("library", library, LIBRARIES))
    options: dict[str, Any] = {
        "learning_rate": _fading(preset.learning_rate) if preset.fading else preset.learning_rate,
        "batch_size": preset.batch,
        "gamma": preset.gamma,
        "policy_kwargs": {"net_arch": list(preset.layers)},
        "seed": seed,
        "device": "cpu",
    }
    if preset.algorithm == "sac":
        options |= {
            "learning_starts": preset.warm_up,
            "buffer_size": preset.buffer,
            "train_freq": 1,
            "gradient_steps": preset.updates,
            "tau": preset.target_rate,
        }
    else:
        options |= {"n_steps": preset.rollout, "n_epochs": preset.epochs}
    made: BaseAlgorithm = _kind(preset.algorithm, library)("MlpPolicy", env, **options)
    return made


def _fading(rate: float) -> Callable[[float], float]:
    """A learning rate for each share of the training that is left; the last step of all environments may go beyond."""
    return lambda left: rate * min(max(2 * left, 0.0), 1.0)


def _kind(algorithm: str, library: str) -> Any:
    if library == "sb3":
        return {"sac": SAC, "ppo": PPO}[algorithm]
    try:
        return getattr(import_module("sbx"), algorithm.upper())
    except ImportError as error:
        raise CaromError(
            f"library sbx is not installed ({error}); install it with: pip install sbx-rl, or use library sb3"
        ) from error


def is_jax(model: BaseAlgorithm) -> bool:
    """Whether the learner is one of sbx: its weights are flax's, not torch's."""
    return hasattr(model.policy, "actor_state")


def policy_of(model: BaseAlgorithm, *, environment: str = "", made_by: Mapping[str, Any] | None = None) -> Policy:
    """The deterministic actor of a SAC or PPO model of Stable-Baselines3 or sbx.

    What its actions mean (`strikes_mean`), the block (`scene`) and the length of segments are added to `made_by`, if
    the model still has an environment of Carom's.
    """
    kind = type(model).__name__
    if kind not in ("SAC", "PPO"):
        raise CaromError(f"a policy can be taken from SAC or PPO, got {kind}")
    if model.get_vec_normalize_env() is not None:
        raise CaromError("the model was trained under VecNormalize, which a policy does not keep: train without it")
    extractor = getattr(model.policy, "features_extractor", None)
    if extractor is not None and type(extractor).__name__ != "FlattenExtractor":
        raise CaromError(f"a policy is a plain network, without a features extractor; got {type(extractor).__name__}")
    squashed = bool(model.policy.squash_output)
    weights, biases, activation = _flax_layers(model) if is_jax(model) else _torch_layers(model)
    seen, acted = model.observation_space, model.action_space
    return Policy(
        algorithm=kind.lower(),
        environment=environment,
        activation=activation,
        squashed=squashed,
        weights=weights,
        biases=biases,
        observation_low=np.asarray(seen.low, dtype=np.float32),  # type: ignore[attr-defined]
        observation_high=np.asarray(seen.high, dtype=np.float32),  # type: ignore[attr-defined]
        action_low=np.asarray(acted.low, dtype=np.float32),  # type: ignore[attr-defined]
        action_high=np.asarray(acted.high, dtype=np.float32),  # type: ignore[attr-defined]
        made_by={**_struck_in(model), **(made_by or {})},
    )


def _struck_in(model: BaseAlgorithm) -> dict[str, Any]:
    env = model.get_env()
    try:
        batch = None if env is None else env.get_attr("batch", 0)[0]
    except AttributeError:
        return {}
    if not isinstance(batch, StrikeBatch):
        return {}
    return {"strikes_mean": strikes_of(batch.scene), "scene": scene_to_dict(batch.scene), "length_m": batch.length}


Layers = tuple[tuple[Floats, ...], tuple[Floats, ...], str]


def _torch_layers(model: Any) -> Layers:
    if isinstance(model, SAC):
        hidden, last = model.actor.latent_pi, model.actor.mu
    else:
        hidden, last = model.policy.mlp_extractor.policy_net, model.policy.action_net
    linear = [m for m in [*hidden, last] if isinstance(m, nn.Linear)]
    kinds = {type(m) for m in hidden} - {nn.Linear}
    names = {nn.ReLU: "relu", nn.Tanh: "tanh"}
    if len(kinds) != 1 or not kinds <= set(names):
        raise CaromError(f"a policy has one activation, relu or tanh, got {sorted(k.__name__ for k in kinds)}")
    weights = tuple(m.weight.detach().numpy().copy() for m in linear)
    return weights, tuple(m.bias.detach().numpy().copy() for m in linear), names[kinds.pop()]


def _flax_layers(model: Any) -> Layers:
    params = model.policy.actor_state.params["params"]
    layers = [params[f"Dense_{i}"] for i in range(len(model.policy.net_arch_pi) + 1)]
    weights = tuple(np.array(p["kernel"], dtype=np.float32).T.copy() for p in layers)
    activation = getattr(model.policy.activation_fn, "__name__", "")
    return weights, tuple(np.array(p["bias"], dtype=np.float32) for p in layers), activation
