"""The search methods alone, on functions whose minimum is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from carom.plan.methods import FAILED, METHODS, Cem, Cma, Gradient, Method

Evaluation = tuple[np.ndarray, np.ndarray, np.ndarray]  # losses [M], residuals [M, R], derivatives [M, R, 3]
Function = Callable[[np.ndarray], Evaluation]
CENTRE = np.array([0.7, 0.2, 0.45])
BUDGETS = {"cma": 1000, "cem": 1000, "gradient": 100}
CLOSE = {"cma": 1e-8, "cem": 1e-5, "gradient": 1e-12}  # the cross-entropy method stops at a spread of a thousandth


def evaluated(residual: np.ndarray, derivative: np.ndarray) -> Evaluation:
    return (residual**2).sum(axis=1), residual, derivative


def sphere(points: np.ndarray, centre: np.ndarray = CENTRE) -> Evaluation:
    """Least at the centre."""
    return evaluated(points - centre, np.broadcast_to(np.eye(3), (len(points), 3, 3)).copy())


def beyond(points: np.ndarray) -> Evaluation:
    """Least outside the cube along the first axis, so on its bound; the residuals are coupled."""
    matrix = np.array([[1.0, 0.3, 0.0], [0.2, 1.0, 0.1], [0.0, 0.2, 1.0]])
    residual = (points - [1.4, 0.3, 0.6]) @ matrix.T
    return evaluated(residual, np.broadcast_to(matrix, (len(points), 3, 3)).copy())


def valleys(points: np.ndarray, width: float = 0.1, floor: float = 0.05) -> Evaluation:
    """Two valleys along the first axis, at 0.2 with this floor (squared) and at 0.8, this wide, down to zero."""
    x = points[:, 0]
    pit, slope = np.exp(-(((x - 0.8) / width) ** 2)), -2 * (x - 0.8) / width**2
    first = 0.5 * (x - 0.2) ** 2 + floor
    residual = np.column_stack([first * (1 - pit), points[:, 1] - 0.5, points[:, 2] - 0.5])
    derivative = np.tile(np.eye(3), (len(x), 1, 1))
    derivative[:, 0, 0] = (x - 0.2) * (1 - pit) - first * pit * slope
    return evaluated(residual, derivative)


def partly_failing(points: np.ndarray) -> Evaluation:
    """A sphere where 60 % of the cube fails, and leaves no numbers."""
    loss, residual, derivative = sphere(points)
    lost = points[:, 0] < 0.6
    residual[lost], derivative[lost] = np.nan, np.nan
    return np.where(lost, FAILED, loss), residual, derivative


def searched(method: Method, function: Function, budget: int, goal: float = -1.0) -> tuple[float, np.ndarray, int]:
    """Least loss, where, and after how many evaluations."""
    best, where, done = np.inf, np.zeros(3), 0
    while done < budget and best > goal:
        points = method.ask()
        if not len(points):
            break
        assert (points >= 0).all()
        assert (points <= 1).all()
        loss, residual, derivative = function(points)
        done += len(points)
        if loss.min() < best:
            best, where = float(loss.min()), points[np.argmin(loss)]
        method.tell(points, loss, residual, derivative if method.wants_derivatives else None)
    return best, where, done


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", METHODS)
def test_each_finds_the_centre_of_a_sphere(name, seed):
    best, where, done = searched(METHODS[name](3, seed), sphere, BUDGETS[name])
    assert best < CLOSE[name]
    np.testing.assert_allclose(where, CENTRE, atol=5e-3)
    assert done < BUDGETS[name] + 64  # the last generation is whole


@pytest.mark.parametrize("name", METHODS)
def test_each_finds_an_optimum_on_a_bound(name):
    grid = np.stack(np.meshgrid([1.0], np.linspace(0, 1, 201), np.linspace(0, 1, 201), indexing="ij"), -1)
    least = beyond(grid.reshape(-1, 3))[0].min()
    best, where, _ = searched(METHODS[name](3, 0), beyond, BUDGETS[name])
    assert where[0] == pytest.approx(1.0, abs=2e-3)
    assert best == pytest.approx(least, rel=5e-3)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", METHODS)
def test_each_prefers_the_deeper_of_two_valleys(name, seed):
    # the cross-entropy method has one Gaussian, and stays where the first points are best: it needs a plain difference
    kind = {"width": 0.25, "floor": 0.3} if name == "cem" else {}
    best, where, _ = searched(METHODS[name](3, seed), lambda u: valleys(u, **kind), BUDGETS[name])
    assert where[0] == pytest.approx(0.8, abs=0.03)
    assert best < 1e-4  # the other valley's floor is 2.5e-3


@pytest.mark.parametrize("name", METHODS)
def test_failures_do_not_stop_a_search(name):
    best, where, _ = searched(METHODS[name](3, 0), partly_failing, BUDGETS[name])
    assert best < CLOSE[name]
    np.testing.assert_allclose(where, CENTRE, atol=5e-3)


@pytest.mark.parametrize("name", METHODS)
def test_a_search_in_which_everything_fails_ends(name):
    def hopeless(points: np.ndarray) -> Evaluation:
        return np.full(len(points), FAILED), np.full((len(points), 3), np.nan), np.full((len(points), 3, 3), np.nan)

    best, _, done = searched(METHODS[name](3, 0), hopeless, BUDGETS[name])
    assert best == FAILED
    if name == "gradient":
        assert done == 32  # a derivative of nothing leads nowhere


def test_generations_have_the_sizes_asked_for():
    for method, sizes in (
        (Cma(3, 0, first=16, population=6), [16, 6, 6]),
        (Cem(3, 0, first=32, population=10, elite=4), [32, 10, 10]),
        (Gradient(3, 0, first=8, starts=3), [8, 3, 3]),
    ):
        seen = []
        for _ in sizes:
            points = method.ask()
            seen.append(len(points))
            assert points.shape[1] == 3
            method.tell(points, *valleys(points))
        assert seen == sizes, type(method).__name__


def test_the_gradient_says_when_it_has_converged():
    method = Gradient(3, 0)
    _, _, done = searched(method, sphere, 10_000)
    assert done <= 32 + 8 * 8
    assert len(method.ask()) == 0


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_search(name):
    runs = [searched(METHODS[name](3, seed), valleys, 300) for seed in (4, 4, 5)]
    assert runs[0][0] == runs[1][0]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert not np.array_equal(runs[0][1], runs[2][1])


def test_derivatives_save_nine_tenths_of_the_evaluations():
    goal = 1e-10
    cma, _, many = searched(METHODS["cma"](3, 0), bent, 5000, goal)
    gradient, _, few = searched(METHODS["gradient"](3, 0), bent, 5000, goal)
    assert max(cma, gradient) <= goal
    assert few <= many / 10, (few, many)


def bent(points: np.ndarray) -> Evaluation:
    """A bent valley within the cube (Rosenbrock's, in three dimensions)."""
    x, y, z = 3 * points.T - 1
    zero, one = np.zeros_like(x), np.ones_like(x)
    residual = np.column_stack([3 * (y - x * x), 1 - x, z - y])
    rows = [[-6 * x, 3 * one, zero], [-one, zero, zero], [zero, -one, one]]
    return evaluated(residual, 3 * np.array(rows).transpose(2, 0, 1))
