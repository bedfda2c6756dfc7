"""Checkpoints of a training that hold everything it depends on, without pickle.

Stable-Baselines3's own `model.save` and `save_replay_buffer` write cloudpickle, which runs whatever a file says when
it is read, and leaves out the random numbers and the environments. Here weights and optimisers are in
safetensors, the filled part of the replay buffer and all other arrays in one npz (`allow_pickle=False`), counters and
generators in JSON. With all of them restored a stopped training goes on bit for bit.

Every checkpoint is a new folder; then `checkpoint.json`, which names it, is replaced. A kill in between leaves the
former checkpoint in its place.
"""

from __future__ import annotations

import io
import random
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from stable_baselines3.common.base_class import BaseAlgorithm

from carom.core.arrays import ArraysError, read_npz
from carom.core.artefacts import Header, Keys, read_header, read_payload, versions, write_header, write_payload
from carom.core.errors import CaromError
from carom.core.tensors import load_tensors, write_tensors
from carom.train.models import is_jax

POINTER = "checkpoint.json"
_TENSORS, _ARRAYS, _STATE = "tensors.safetensors", "arrays.npz", "state.json"
_BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
_COUNTERS = ("num_timesteps", "_episode_num", "_n_updates")
_JAX_STATES = ("actor_state", "qf_state", "vf_state")
FORMAT, POINTER_FORMAT = "carom-checkpoint/2", "carom-checkpoint-pointer/2"
LIBRARIES = ("stable-baselines3", "sbx-rl", "torch", "jax", "numpy", "safetensors")
MOST_NUMBERS = 500_000_000  #: of all arrays of a checkpoint: a replay buffer of millions of transitions has fewer
#: what restoring raises if a checkpoint is not what this version writes
_DAMAGE = (
    CaromError,
    ArraysError,
    LookupError,
    ValueError,
    TypeError,
    OSError,
    RuntimeError,
    AttributeError,
    ArithmeticError,
)
_ANEW = "carom train, in a new folder,"

Arrays = dict[str, NDArray[Any]]


class MapKeys(Keys):
    """A mapping as `pack` writes it."""

    map: dict[str, Any]


class StateHeader(Header):
    """The header of a checkpoint: all of its state that is not an array."""

    state: MapKeys


class PointerHeader(Header):
    """What names the last checkpoint."""

    folder: str = Field(pattern=r"^checkpoint-\d{9}$")


def save_checkpoint(out: Path, model: BaseAlgorithm, env: Any, extra: Mapping[str, Any]) -> None:
    """Keep a training between two rollouts; `extra` is JSON that comes back with it. Former checkpoints go."""
    folder = out / f"checkpoint-{model.num_timesteps:09d}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arrays: Arrays = dict(_buffer_arrays(model))
    files: dict[str, str] = {}
    state = {
        "counters": {name: int(getattr(model, name)) for name in _COUNTERS if hasattr(model, name)},
        "last_obs": model._last_obs,
        "last_episode_starts": model._last_episode_starts,
        "random": _random_states(model),
        "env": env.state() if hasattr(env, "state") else None,
        "extra": dict(extra),
    }
    if is_jax(model):
        arrays |= {f"jax/{i}": np.asarray(leaf) for i, leaf in enumerate(_jax_leaves(model)[0])}
    else:
        files[_TENSORS] = write_tensors(folder / _TENSORS, _torch_tensors(model))
    packed, content = pack(state, arrays), io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    files[_ARRAYS] = write_payload(folder / _ARRAYS, content.getvalue())
    made_with = versions(LIBRARIES)
    write_header(folder / _STATE, {"format": FORMAT, "state": packed, "made_with": made_with, "files": files})
    named = {"format": POINTER_FORMAT, "folder": folder.name, "made_with": made_with}
    whole = {_STATE: sha256((folder / _STATE).read_bytes()).hexdigest()}
    write_header(out / POINTER, {**named, "files": whole})
    drop_checkpoints(out, but=folder.name)


def drop_checkpoints(out: Path, *, but: str = "") -> None:
    """Remove the checkpoints of a training, except one."""
    if not but:
        (out / POINTER).unlink(missing_ok=True)
    for old in out.glob("checkpoint-" + 9 * "[0-9]"):  # no other folder that a user may keep there
        if old.name != but:
            shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(out: Path, model: BaseAlgorithm, env: Any) -> dict[str, Any] | None:
    """Put a fresh model and environment where the last checkpoint was; its `extra`, or None if there is none.

    The model has to be of the same settings, which the caller checks. An environment without `restore` starts
    new episodes instead.
    """
    if not (out / POINTER).is_file():
        return None
    pointer = read_header(out / POINTER, PointerHeader, POINTER_FORMAT, missing="", again=_ANEW)
    folder = out / Path(pointer["folder"]).name
    try:
        read_payload(folder / _STATE, pointer["files"])
        header = read_header(folder / _STATE, StateHeader, FORMAT, missing="", again=_ANEW)
        arrays = read_npz(io.BytesIO(read_payload(folder / _ARRAYS, header["files"])), most=MOST_NUMBERS)
        state = unpack(header["state"], arrays)
        tensors = {} if is_jax(model) else load_tensors(folder / _TENSORS, header["files"])
        _restore(model, tensors, state, arrays)
        if state["env"] is not None:
            env.restore(state["env"])
        return dict(state["extra"])
    except _DAMAGE as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise CaromError(f"checkpoint {folder} is damaged ({words:.300}); remove {out} and train anew") from error


def _restore(model: Any, tensors: dict[str, torch.Tensor], state: dict[str, Any], arrays: Arrays) -> None:
    for name, value in state["counters"].items():
        setattr(model, name, value)
    if state["env"] is not None:  # otherwise learn() resets the environment
        model._last_obs, model._last_episode_starts = state["last_obs"], state["last_episode_starts"]
    if is_jax(model):
        _restore_jax(model, arrays)
    else:
        _restore_torch(model, tensors)
    buffer = getattr(model, "replay_buffer", None)
    if buffer is not None:
        filled = len(arrays["buffer/rewards"])
        for name in _BUFFER:
            getattr(buffer, name)[:filled] = arrays[f"buffer/{name}"]
        buffer.pos, buffer.full = int(arrays["buffer/pos"]), bool(arrays["buffer/full"])
    _restore_random(model, state["random"])


def _buffer_arrays(model: Any) -> Arrays:
    buffer = getattr(model, "replay_buffer", None)
    if buffer is None:
        return {}  # PPO: its buffer is empty between rollouts
    filled = buffer.buffer_size if buffer.full else buffer.pos
    kept: Arrays = {f"buffer/{name}": getattr(buffer, name)[:filled] for name in _BUFFER}
    return kept | {"buffer/pos": np.array(buffer.pos), "buffer/full": np.array(buffer.full)}


def _torch_tensors(model: Any) -> dict[str, torch.Tensor]:
    """Weights, optimisers' moments and free variables by name; optimisers' settings follow from the preset."""
    tensors: dict[str, torch.Tensor] = {}
    modules, variables = model._get_torch_save_params()
    for module in modules:
        part = _attribute(model, module)
        if isinstance(part, torch.optim.Optimizer):
            for index, moments in part.state_dict()["state"].items():
                tensors |= {f"{module}/{index}/{name}": t for name, t in moments.items()}
        else:
            tensors |= {f"{module}/{name}": t for name, t in part.state_dict().items()}
    tensors |= {f"variable/{name}": _attribute(model, name).detach() for name in variables}
    return {name: t.clone() for name, t in tensors.items()}


def _restore_torch(model: Any, tensors: dict[str, torch.Tensor]) -> None:
    modules, variables = model._get_torch_save_params()
    for module in modules:
        part = _attribute(model, module)
        own = {name.removeprefix(f"{module}/"): t for name, t in tensors.items() if name.startswith(f"{module}/")}
        if isinstance(part, torch.optim.Optimizer):
            moments: dict[int, dict[str, torch.Tensor]] = {}
            for name, tensor in own.items():
                index, kind = name.split("/")
                moments.setdefault(int(index), {})[kind] = tensor
            part.load_state_dict({**part.state_dict(), "state": moments})
        else:
            part.load_state_dict(own)
    for name in variables:
        _attribute(model, name).data.copy_(tensors[f"variable/{name}"])


def _attribute(model: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        model = getattr(model, name)
    return model


def _jax_leaves(model: Any) -> tuple[list[Any], Any]:
    """All arrays of an sbx model: train states (weights, optimisers) and random keys."""
    import jax

    states = {name: getattr(model.policy, name) for name in _JAX_STATES if hasattr(model.policy, name)}
    keys = (model.key, model.policy.key, model.policy.noise_key)
    leaves, tree = jax.tree_util.tree_flatten((states, getattr(model, "ent_coef_state", None), keys))
    return list(leaves), tree


def _restore_jax(model: Any, arrays: Arrays) -> None:
    import jax

    leaves, tree = _jax_leaves(model)
    new = [jax.numpy.asarray(arrays[f"jax/{i}"]) for i in range(len(leaves))]
    for i, (old, value) in enumerate(zip(leaves, new, strict=True)):
        if np.shape(old) != value.shape:
            raise ValueError(f"array {i}: expected shape {np.shape(old)}, got {value.shape}")
    states, entropy, keys = jax.tree_util.tree_unflatten(tree, new)
    for name, value in states.items():
        setattr(model.policy, name, value)
    if entropy is not None:
        model.ent_coef_state = entropy
    model.key, model.policy.key, model.policy.noise_key = keys


def _random_states(model: BaseAlgorithm) -> dict[str, Any]:
    """Generators that the libraries draw from: Python's, NumPy's global one, torch's, the action space's."""
    kind, numbers, gauss = random.getstate()
    return {
        "python": [kind, list(numbers), gauss],
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002
        "torch": torch.get_rng_state().numpy(),
        "actions": model.action_space.np_random.bit_generator.state,
    }


def _restore_random(model: BaseAlgorithm, states: dict[str, Any]) -> None:
    kind, numbers, gauss = states["python"]
    random.setstate((kind, tuple(numbers), gauss))
    np.random.set_state(states["numpy"])  # noqa: NPY002
    torch.set_rng_state(torch.from_numpy(states["torch"].copy()))
    model.action_space.np_random.bit_generator.state = states["actions"]


def pack(value: Any, arrays: Arrays) -> Any:
    """JSON of nested dicts and lists; arrays in them are put into `arrays` and named."""
    if isinstance(value, np.ndarray):
        name = f"state/{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {"map": {str(k): pack(v, arrays) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        return {"list": [pack(v, arrays) for v in value]}
    return value


def unpack(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """What `pack` was given, tuples as lists."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "list" in value:
        return [unpack(v, arrays) for v in value["list"]]
    return {k: unpack(v, arrays) for k, v in value["map"].items()}
