"""Loading the two public cube-toss formats as they are published: contact-nets and dair_pll tensors."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

from carom.core.rotations import to_world, unit
from carom.recordings.faults import FaultError
from carom.recordings.formats.tables import FARTHEST
from carom.recordings.trajectory import Trajectory
from carom.scenes.shapes import Body, Shape
from carom.state import Array

NATIVE_RATE = 148.0  #: [Hz] of both data sets
MOST_NUMBERS = 20_000_000  #: of a tensor
HALF_SIDE = 0.0524  #: [m] contact-nets divides every length by it
CUBE = Body(
    name="cube",
    role="target",
    shape=Shape(kind="box", size=(0.1048, 0.1048, 0.1048)),
    mass=0.37,
    inertia=(8.1e-4, 8.1e-4, 8.1e-4),
)


def read_native(path: str | Path) -> Trajectory:
    """One toss in the layout of either repository, told apart by its shape; velocities in the world frame.

    contact-nets: (1, T, 19) = position 3, quaternion 4, velocity 3, angular velocity 3 (body frame), control 6,
    lengths in half sides. dair_pll: (T, 13) = quaternion 4, position 3, angular velocity 3 (body frame), velocity 3.
    """
    file = Path(path)
    values = _tensor(file)
    controls: dict[str, Array] = {}
    if values.ndim == 3 and values.shape[0] == 1 and values.shape[2] == 19:
        position, quaternion, velocity, spin, control = np.split(values[0], [3, 7, 10, 13], axis=-1)
        position, velocity = position * HALF_SIDE, velocity * HALF_SIDE
        if np.any(control):
            controls = {f"u{i}": np.ascontiguousarray(control[:, i]) for i in range(6)}
        layout = "contact_nets"
    elif values.ndim == 2 and values.shape[1] == 13:
        quaternion, position, spin, velocity = np.split(values, [4, 7, 10], axis=-1)
        layout = "dair_pll"
    else:
        raise FaultError(
            f"expected a tensor of shape (1, T, 19) (contact-nets) or (T, 13) (dair_pll), got {values.shape}",
            code="bad-shape",
            file=file,
        )
    if not (np.abs(values) <= FARTHEST).all():  # nor is NaN
        sample = int(np.argmax(~(np.abs(values) <= FARTHEST).reshape(-1, values.shape[-1]).all(axis=-1)))
        raise FaultError(
            f"expected finite numbers within {FARTHEST:g}",
            code="not-a-number",
            file=file,
            row=sample + 1,
            row_word="sample",
        )
    norm = np.linalg.norm(quaternion, axis=-1)
    if not (np.abs(norm - 1) < 0.01).all():
        row = int(np.argmax(~(np.abs(norm - 1) < 0.01)))
        raise FaultError(
            f"expected a unit quaternion, got length {norm[row]:.6g}; this is another layout than {layout}",
            code="quaternion-norm",
            file=file,
            row=row + 1,
            row_word="sample",
        )
    return Trajectory(
        name=file.name,
        path=file,
        time=np.arange(len(position)) / NATIVE_RATE,
        position_world={"cube": np.ascontiguousarray(position)},
        quaternion_world={"cube": np.ascontiguousarray(quaternion)},
        bodies={"cube": CUBE},
        tags={"layout": layout},
        controls=controls,
        velocity_world={"cube": np.ascontiguousarray(velocity)},
        angular_velocity_world={"cube": to_world(unit(quaternion), spin)},
    )


def _tensor(file: Path) -> Array:
    if not file.is_file():
        raise FaultError("no such file", code="no-file", file=file)
    import torch

    try:
        # weights_only: a pickle of anything but tensors is refused instead of run
        values = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FaultError(
            "not a plain tensor: loading it would have to run code from the file, which carom does not do; "
            "save the tensor alone with torch.save(tensor, path)",
            code="unsafe-file",
            file=file,
        ) from error
    except Exception as error:  # a damaged pickle may raise anything at all
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise FaultError(f"cannot be read as a torch tensor ({first[:120]})", code="bad-file", file=file) from error
    if not isinstance(values, torch.Tensor):
        raise FaultError(f"expected one tensor, got {type(values).__name__}", code="bad-shape", file=file)
    if values.layout != torch.strided or values.is_complex() or values.is_quantized or values.device.type != "cpu":
        kind = f"{str(values.dtype).removeprefix('torch.')}, {str(values.layout).removeprefix('torch.')}"
        raise FaultError(f"expected a plain tensor of real numbers, got {kind}", code="bad-shape", file=file)
    if values.numel() > MOST_NUMBERS:
        message = f"expected at most {MOST_NUMBERS} numbers, got {values.numel()}"
        raise FaultError(message, code="too-large", file=file)
    return np.asarray(values.detach().double().numpy(), dtype=np.float64)
