"""Tensors on disk: safetensors files, written whole and checked when they are read. torch is imported when needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from carom.core.artefacts import atomically
from carom.core.errors import ModelError

if TYPE_CHECKING:
    import torch


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors by name into a safetensors file."""
    from safetensors.torch import save

    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    atomically(path, lambda file: file.write(content))


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of a safetensors file; raises if it is missing or damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise ModelError(f"{path} is missing: the folder is incomplete")
    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged: {error}") from error
