"""What the network is told of a contact's parameters: friction as it is, stiffness and damping over the time step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from carom.learn.graph.dynamics import World
from carom.scenes.parameters import contact_values
from carom.state import Array

CONDITIONS = ("friction", "face_friction", "stiffness", "damping")
FORMS = ("time_constant", "damping_ratio")  #: solref's other form, translated
#: parameters of bodies and of the fall: they enter as what they are, masses, sizes and gravity
OF_BODIES = ("mass_scale", "inertia_scale", "com_x", "com_y", "com_z", "com_offset", "length_scale", "gravity")
TAKES = (*CONDITIONS, *FORMS, *OF_BODIES)
#: of a correction: what is added to the share of the approach that is stopped, to what pushes bodies apart, to how much
#: of the slip is stopped, and to which friction counts, that of faces or of edges
NUDGES = ("stopped", "pushed", "rubbed", "faced")
ENGINE_DEFAULTS = {"friction": 1.0, "stiffness": 2500.0, "damping": 100.0}  #: MuJoCo's, where nobody says
Number = float | Array | torch.Tensor


def contact_of(values: Mapping[str, Number], defaults: Mapping[str, float]) -> dict[str, Number]:
    """The four conditions by name, from parameters by name: numbers, or an array or tensor of one for each row.

    What is not given is as in `defaults`; of the two numbers of a form of solref, the other has its own default.
    """
    given = contact_values(values)
    if "time_constant" in given:  # MuJoCo divides both forms by the impedance in the same way
        time, ratio = given["time_constant"], given["damping_ratio"]
        given |= {"stiffness": 1 / (time * ratio) ** 2, "damping": 2 / time}
    found: dict[str, Number] = {n: given.get(n, defaults[n]) for n in ("friction", "stiffness", "damping")}
    unlike = defaults.get("face_friction", found["friction"])
    # without pads a face rubs as an edge does
    found["face_friction"] = given.get("face_friction", found["friction"] if "friction" in given else unlike)
    return found


def encoded(contact: Mapping[str, Number], step: float, count: int) -> torch.Tensor:
    """The conditions as the network reads them [N, 4]; can be differentiated where they are tensors."""
    friction, face, stiffness, damping = (_tensor(contact[name]).expand(count) for name in CONDITIONS)
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


def _tensor(values: Number) -> torch.Tensor:
    return values.double() if isinstance(values, torch.Tensor) else torch.tensor(np.array(values, dtype=np.float64))
