"""Tensors on disk: safetensors files, written whole and checked when they are read. torch is imported when needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from carom.core.artefacts import read_payload, write_payload
from carom.core.errors import ModelError, short

if TYPE_CHECKING:
    import torch


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> str:
    """Write tensors by name into a safetensors file; its SHA-256, for the header."""
    from safetensors.torch import save

    return write_payload(path, save({name: tensor.contiguous() for name, tensor in tensors.items()}))


def load_tensors(
    path: Path, files: Mapping[str, str], *, finite: bool = True, half: bool = False
) -> dict[str, torch.Tensor]:
    """Tensors of a safetensors file; raises if it is missing, damaged or not the one that the header's `files` list.

    `finite`: raises also if a number is not. `half`: numbers of 16 bits are fine too.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load

    content = read_payload(path, files)
    try:
        tensors = dict(load(content))
    except (SafetensorError, ValueError, LookupError, TypeError, RuntimeError, MemoryError) as error:
        raise ModelError(f"{path} is damaged: {' '.join(str(error).split()):.200}") from error
    for name, tensor in tensors.items():
        kinds = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool)
        if tensor.dtype not in (*kinds, *((torch.float16,) if half else ())):
            kind = str(tensor.dtype).removeprefix("torch.")
            raise ModelError(f"{path}: '{short(name)}': expected numbers of 32 or 64 bits, got {kind}")
        if finite and not bool(tensor.double().isfinite().all()):
            raise ModelError(f"{path}: '{short(name)}' holds numbers that are not finite; make the model anew")
    return tensors
