"""What the network is told of a contact: MuJoCo's two forms are one, and nothing is lost on the way."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from carom.learn.graph.conditions import CONDITIONS, ENGINE_DEFAULTS, contact_of, encoded

BALL = """
<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="1 1 1" solref="{ref}"/>
<body pos="0 0 0.0495"><freejoint/><geom type="sphere" size="0.05" solref="{ref}"/></body></worldbody></mujoco>
"""


def spring(reference: str) -> np.ndarray:
    model = mujoco.MjModel.from_xml_string(BALL.format(ref=reference))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return np.array(data.efc_KBIP[0, :2])


@pytest.mark.parametrize(("time", "ratio"), [(0.02, 1.0), (0.03, 0.6), (0.008, 1.4)])
def test_both_forms_of_solref_are_the_same_contact(time: float, ratio: float) -> None:
    found = contact_of({"time_constant": time, "damping_ratio": ratio}, ENGINE_DEFAULTS)
    direct = spring(f"{-found['stiffness']:.9g} {-found['damping']:.9g}")
    assert direct == pytest.approx(spring(f"{time} {ratio}"), rel=1e-6)


def test_what_is_not_said_is_as_mujoco_has_it() -> None:
    found = contact_of({}, ENGINE_DEFAULTS)
    assert found == {"friction": 1.0, "face_friction": 1.0, "stiffness": 2500.0, "damping": 100.0}
    assert spring("-2500 -100") == pytest.approx(spring("0.02 1"), rel=1e-6)
    half = contact_of({"stiffness": 9000.0}, ENGINE_DEFAULTS)
    assert half["stiffness"] == 9000.0
    assert half["damping"] > 0


def test_faces_rub_as_edges_do_unless_told() -> None:
    defaults = {**ENGINE_DEFAULTS, "face_friction": 0.4}
    assert contact_of({}, defaults)["face_friction"] == 0.4
    assert contact_of({"friction": 0.2}, defaults)["face_friction"] == 0.2
    assert contact_of({"friction": 0.2, "face_friction": 0.3}, defaults)["face_friction"] == 0.3


def test_derivatives_reach_whatever_follows_from_a_parameter() -> None:
    friction = torch.tensor([0.2, 0.3], dtype=torch.float64, requires_grad=True)
    told = encoded(contact_of({"friction": friction, "stiffness": np.array([1e4, 2e4])}, ENGINE_DEFAULTS), 0.01, 2)
    assert told.shape == (2, len(CONDITIONS))
    (slope,) = torch.autograd.grad(told.sum(), friction)
    assert slope == pytest.approx(torch.tensor([2.0, 2.0])), "of edges, and of the faces that rub alike"
