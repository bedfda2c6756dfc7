"""What the network is told of a contact's parameters: friction as it is, stiffness and damping over the time step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from carom.learn.graph.dynamics import World
from carom.scenes.parameters import FREE
from carom.state import Array

CONDITIONS = ("friction", "face_friction", "stiffness", "damping")
FORMS = ("time_constant", "damping_ratio")  #: solref's other form, translated
#: parameters of bodies and of the fall: they enter as what they are, masses, sizes and gravity
OF_BODIES = ("mass_scale", "inertia_scale", "com_x", "com_y", "com_z", "com_offset", "length_scale", "gravity")
TAKES = (*CONDITIONS, *FORMS, *OF_BODIES)
#: of a correction: what is added to the share of the approach that is stopped, to what pushes bodies apart, to how much
#: of the slip is stopped, and to which friction counts, that of faces or of edges
NUDGES = ("stopped", "pushed", "rubbed", "faced")
ENGINE_DEFAULTS = {"friction": 1.0, "time_constant": 0.02, "damping_ratio": 1.0}  #: MuJoCo's, where nobody says
IMPEDANCE = 0.95  #: MuJoCo's d_width, by which a time constant becomes a stiffness and a damping


def contact_of(values: Mapping[str, Array], count: int, defaults: Mapping[str, float]) -> dict[str, Array]:
    """The four conditions by name, each [N], from parameters by name [N]; what is not given is as in `defaults`."""
    told = {name: values[name] for name in (*CONDITIONS, *FORMS) if name in values}
    given = {name: np.broadcast_to(np.asarray(v, dtype=np.float64), (count,)) for name, v in told.items()}
    if set(FORMS) & given.keys():
        time = given.get("time_constant", np.full(count, FREE["time_constant"].default))
        ratio = given.get("damping_ratio", np.full(count, FREE["damping_ratio"].default))
        given["stiffness"], given["damping"] = 1 / (IMPEDANCE * time * ratio) ** 2, 2 / (IMPEDANCE * time)
    found = {n: given[n] if n in given else np.full(count, defaults[n]) for n in ("friction", "stiffness", "damping")}
    face = given.get("face_friction")
    if face is None:  # without pads a face rubs as an edge does
        face = (
            found["friction"]
            if "friction" in given or "face_friction" not in defaults
            else np.full(count, defaults["face_friction"])
        )
    return {"friction": found["friction"], "face_friction": face, **{n: found[n] for n in ("stiffness", "damping")}}


def encoded(contact: Mapping[str, Array | torch.Tensor], step: float) -> torch.Tensor:
    """The conditions as the network reads them [N, 4]; can be differentiated where they are tensors."""
    friction, face, stiffness, damping = (_tensor(contact[name]) for name in CONDITIONS)
    return torch.stack([friction, face, torch.log(stiffness * step**2) / 3, torch.log(damping * step) / 3], dim=-1)


def corrected_world(world: World, correction: Mapping[str, torch.Tensor]) -> World:
    """Rows with corrected contact: logarithms of factors [N] of the conditions, and nudges [N] of the coefficients."""
    plain = [correction[name] for name in CONDITIONS]
    friction, face, stiffness, damping = world.conditions.unbind(-1)
    conditions = [
        friction * torch.exp(plain[0]),
        face * torch.exp(plain[1]),
        stiffness + plain[2] / 3,
        damping + plain[3] / 3,
    ]
    nudge = torch.stack([correction[name] for name in NUDGES], dim=-1)
    return replace(world, conditions=torch.stack(conditions, dim=-1), nudge=nudge)


def _tensor(values: Array | torch.Tensor) -> torch.Tensor:
    return values if isinstance(values, torch.Tensor) else torch.tensor(np.array(values))
