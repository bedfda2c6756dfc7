"""What every fit shares: which parameters are looked for, their values, and Levenberg-Marquardt steps."""

from __future__ import annotations

import numpy as np
import torch

from carom.identify.levenberg_marquardt import Damping, descend_all
from carom.identify.problem import Problem, held_values
from carom.identify.strikes.surrogate import ModelProblem, Outcomes
from carom.scenes.parameters import known

KNOWN = tuple(known(n) for n in ("striker_friction", "ground_friction", "striker_damping", "com_x"))


def problem():
    return Problem(parameters=KNOWN, held=held_values(KNOWN, None, {"ground_friction": 0.35}))


def test_points_become_values_of_what_is_looked_for_and_the_rest_stays():
    found = problem()
    assert [p.name for p in found.sought] == ["striker_friction", "striker_damping", "com_x"]
    low, high = found.values(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(low, [0.05, 0.35, 0.1, -0.01])
    np.testing.assert_allclose(high, [1.0, 0.35, 3.0, 0.01])


def test_what_is_given_up_is_left_at_its_default_and_effort_is_counted_on():
    first = problem()
    first.effort.evaluations = 7
    left = first.giving_up({"striker_damping": 0.001})
    assert left.active == [0, 3]
    np.testing.assert_allclose(left.values(np.array([0.0, 0.5])), [[0.05, 0.35, 1.0, 0.0]])
    assert left.effort.evaluations == 7


def test_tensors_get_the_same_values():
    class Model:
        parameters = KNOWN

        def outcome(self, frames, values):
            return values[..., :3]

    held = held_values(KNOWN, None, {"ground_friction": 0.35})
    differentiable = ModelProblem.of(Model(), Outcomes(None, np.zeros((2, 3))), held).giving_up({"com_x": 0.0})
    unit = np.random.default_rng(0).random((5, 2))
    made = differentiable.tensor_values(torch.as_tensor(unit)).numpy()
    np.testing.assert_allclose(made, differentiable.values(unit), rtol=1e-15)


def test_steps_end_at_the_minimum_inside_the_cube():
    """Of a linear problem whose minimum lies beyond a bound of its first parameter."""
    slope = torch.tensor([[1.0, 0.5], [0.0, 1.0], [0.3, -0.2]], dtype=torch.float64)
    centre = torch.tensor([1.4, 0.3], dtype=torch.float64)

    def linearised(unit):
        return ((unit - centre) @ slope.T)[:, None], slope.expand(len(unit), 1, 3, 2)

    starts = torch.tensor([[0.1, 0.9], [0.8, 0.2]], dtype=torch.float64)
    ends = descend_all(linearised, starts, Damping(down=3.0, up=4.0), steps=20)
    # with the first on its bound, the second solves what is left
    rest = 0.3 + (slope[:, 1] @ slope[:, 0] * 0.4 / (slope[:, 1] @ slope[:, 1])).item()
    np.testing.assert_allclose(ends.unit.numpy(), [[1.0, rest]] * 2, atol=1e-6)
    assert len(ends.tried) == len(ends.losses) == 2 * 21
    capped = descend_all(linearised, starts, Damping(4.0, 5.0, farthest=0.1), steps=1)
    assert (capped.unit - starts).abs().max() <= 0.1 + 1e-12
