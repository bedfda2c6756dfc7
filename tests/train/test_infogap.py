"""Estimators of the gap against known divergences, W1 of one more point against exact transport, terms and wrappers.

What sample size allows is stated where it is asserted: 4,000 samples of two Gaussians in two dimensions give a KL of
0.5 to 2 nats within 0.1 (Gaussian) and 0.15 (nearest neighbours). A kernel density's own width biases it: within 25 %.
"""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scipy.optimize import linprog
from stable_baselines3 import PPO, SAC
from toy_env import ToyVecEnv

from carom.core.errors import CaromError
from carom.train.infogap import (
    Disagreement,
    InfoGap,
    Transitions,
    conditional_kl,
    expected_information,
    fading,
    gap,
    gaussian_kl,
    kde_kl,
    knn_kl,
    of_one_more,
    sliced_wasserstein,
    wasserstein_1d,
)
from carom.train.infogap.wrappers import InfoGapEnv, InfoGapVecEnv

SAMPLES = 4000


def gaussians(shift: float, spread: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """Samples of N(shift, 1) and N(0, spread^2) in two dimensions, and the KL of the first against the second."""
    rng = np.random.default_rng(seed)
    real, simulated = rng.standard_normal((2, SAMPLES, 2))
    truth = 2 * (np.log(spread) + (1 + shift**2) / (2 * spread**2) - 0.5)
    return real + shift, simulated * spread, float(truth)


@pytest.mark.parametrize(("shift", "spread"), [(0.0, 1.0), (0.7, 1.0), (1.0, 1.0), (0.5, 2.0), (1.5, 1.5)])
def test_marginal_estimators_find_known_divergences(shift: float, spread: float) -> None:
    real, simulated, truth = gaussians(shift, spread)
    assert gaussian_kl(real, simulated) == pytest.approx(truth, abs=0.1)
    assert knn_kl(real, simulated) == pytest.approx(truth, abs=0.15)
    assert kde_kl(real, simulated) == pytest.approx(truth, abs=0.05 + 0.25 * truth)


def test_estimates_get_better_with_samples() -> None:
    errors = []
    for count in (100, 4000):
        draws = [gaussians(0.7, 1.0, seed) for seed in range(10)]
        errors.append(np.mean([abs(gaussian_kl(r[:count], s[:count]) - t) for r, s, t in draws]))
    assert errors[1] < errors[0] / 3  # 40 times the samples: about 6 times nearer


def test_the_conditional_gap_is_exact_and_pays_for_its_noise() -> None:
    rng = np.random.default_rng(1)
    simulated = rng.standard_normal((SAMPLES, 3))
    noise = np.array([0.1, 0.2, 0.5])
    measured = simulated + noise * rng.standard_normal(simulated.shape)
    assert conditional_kl(measured, simulated, noise) == pytest.approx(0.0, abs=0.06)
    # a constant error of two standard deviations in one column: half of its square
    off = measured + np.array([0.2, 0.0, 0.0])
    assert conditional_kl(off, simulated, noise) == pytest.approx(2.0, abs=0.1)


def test_paired_samples_mislead_marginal_estimators_and_not_the_conditional_one() -> None:
    rng = np.random.default_rng(2)
    simulated = rng.standard_normal((500, 4))
    real = simulated + 0.01 * rng.standard_normal(simulated.shape)
    assert knn_kl(real, simulated) < -0.25  # the truth is 0
    assert conditional_kl(real, simulated, np.full(4, 0.01)) == pytest.approx(0.0, abs=0.15)
    assert gap("knn", real, simulated, np.ones(4)) == 0.0


@pytest.mark.parametrize("estimator", ["gaussian", "kde", "knn", "conditional"])
def test_a_wider_gap_is_a_larger_one_and_none_is_none(estimator: str) -> None:
    rng = np.random.default_rng(3)
    simulated = rng.standard_normal((600, 2))
    noise = rng.standard_normal(simulated.shape)
    found = [gap(estimator, simulated + noise + shift, simulated, np.ones(2)) for shift in (0.0, 1.0, 2.0)]
    assert found[0] < found[1] < found[2]
    assert gap(estimator, simulated, simulated, np.ones(2)) <= 1e-9


def exact_w1(a: np.ndarray, wa: np.ndarray, b: np.ndarray, wb: np.ndarray) -> float:
    """Optimal transport as a linear programme."""
    cost = np.linalg.norm(a[:, None] - b[None], axis=-1)
    rows = np.kron(np.eye(len(a)), np.ones(len(b)))
    columns = np.kron(np.ones(len(a)), np.eye(len(b)))
    solved = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([wa, wb]), method="highs")
    return float(solved.fun)


@pytest.mark.parametrize("seed", range(4))
def test_w1_of_one_more_point_is_that_of_exact_transport(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, new = rng.standard_normal((17, 3)), 2 * rng.standard_normal((1, 3))
    more = np.concatenate([data, new])
    exact = exact_w1(data, np.full(17, 1 / 17), more, np.full(18, 1 / 18))
    assert of_one_more(data, new)[0] == pytest.approx(exact, rel=1e-7)


def test_sliced_distances_are_exact_for_shifts_in_one_dimension_and_bounds_in_more() -> None:
    rng = np.random.default_rng(5)
    numbers = rng.standard_normal(50)
    assert wasserstein_1d(numbers, numbers + 0.3) == pytest.approx(0.3)
    a, b = rng.standard_normal((20, 2)), rng.standard_normal((20, 2)) + 1.0
    even = np.full(20, 1 / 20)
    assert 0.4 * exact_w1(a, even, b, even) < sliced_wasserstein(a, b, seed=1) <= exact_w1(a, even, b, even) + 1e-9


def data(count: int = 200, seed: int = 0) -> Transitions:
    rng = np.random.default_rng(seed)
    return Transitions(*(rng.standard_normal((count, width)) for width in (3, 2, 3)))


def test_the_term_rewards_what_is_far_and_fades_with_the_gap() -> None:
    seen = data()
    near, far = np.zeros((1, 3)), np.full((1, 3), 3.0)
    full, less, none = (InfoGap(seen, weight=w) for w in (1.0, 0.25, 0.0))
    still = np.zeros((1, 2))
    assert full(far, still, far)[0] > full(near, still, near)[0] > 0
    assert less(far, still, far) == pytest.approx(0.25 * full(far, still, far))
    assert none(far, still, far)[0] == 0.0
    typical = full(seen.observation, seen.action, seen.following).mean()
    assert typical == pytest.approx(1.0, rel=0.02)  # the unit of the weight
    assert full(1e6 * far, still, far)[0] == pytest.approx(5.0)  # nobody is paid for a crash without end


def test_the_term_is_the_closed_form_up_to_its_unit() -> None:
    seen = data(100)
    new = data(10, seed=1)
    scale = seen.table.std(axis=0)
    exact = of_one_more(seen.table / scale, new.table / scale)
    told = InfoGap(seen, weight=1.0)(new.observation, new.action, new.following)
    np.testing.assert_allclose(told / told[0], exact / exact[0], rtol=1e-6)


def test_the_weight_is_relative_to_the_first_round() -> None:
    assert fading([500.0]) == 1.0
    assert fading([500.0, 50.0]) == pytest.approx(0.1)
    assert fading([5.0, 50.0]) == 1.0  # it never grows
    with pytest.raises(CaromError, match="not negative"):
        fading([-1.0])


def test_an_ensemble_that_agrees_expects_nothing_and_noise_hides_what_is_small() -> None:
    said = np.zeros((5, 3, 2))
    said[:, 1] = np.linspace(-1, 1, 5)[:, None]
    said[:, 2] = 0.01 * said[:, 1]
    told = expected_information(said, [0.1, 0.1])
    assert told[0] == 0.0
    assert told[1] > 1.0
    assert told[2] < 0.02
    # one parameter moves both columns: half the logarithm of 1 + the sum of both variances over the noise's
    assert told[1] == pytest.approx(0.5 * np.log(1 + 2 * 0.5 / 0.01))


def test_disagreement_is_learned_and_paid_where_it_is() -> None:
    seen = data(1000, seed=4)
    contact = (seen.observation[:, 0] > 0).astype(float)  # simulators disagree where there is contact
    term = Disagreement(seen, contact, weight=2.0, seed=0)
    assert term.explained > 0.5
    new = data(300, seed=5)
    told = term(new.observation, new.action, new.following)
    touching = new.observation[:, 0] > 0
    assert told[touching].mean() > 3 * told[~touching].mean() >= 0
    assert Disagreement(seen, contact, weight=0.0)(new.observation, new.action, new.following).max() == 0.0


class Chain(gymnasium.Env):
    """A point on a line; the task pays nothing, so only the term can move it."""

    observation_space = spaces.Box(-10, 10, (3,), dtype=np.float32)
    action_space = spaces.Box(-1, 1, (2,), dtype=np.float32)

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
        super().reset(seed=seed)
        self.place = np.zeros(3, dtype=np.float32)
        return self.place.copy(), {}

    def step(self, action):  # type: ignore[no-untyped-def]
        self.place = np.clip(self.place + 0.1 * float(action[0]), -2, 2).astype(np.float32)
        return self.place.copy(), 0.0, False, False, {}


def test_ppo_and_sac_take_the_wrapped_environments_unchanged() -> None:
    one = gymnasium.wrappers.TimeLimit(InfoGapEnv(Chain(), InfoGap(data(), weight=1.0)), 20)
    PPO("MlpPolicy", one, n_steps=32, batch_size=32, n_epochs=1, seed=0).learn(64)
    assert one.env.log()["information"] > 0
    seen = Transitions(*(np.random.default_rng(0).standard_normal((50, w)) for w in (6, 3, 6)))
    batch = InfoGapVecEnv(ToyVecEnv(4), InfoGap(seen, weight=1.0))
    SAC("MlpPolicy", batch, learning_starts=8, batch_size=8, seed=0).learn(16)
    log = batch.log()
    assert log["steps"] == 16
    assert log["task"] < 0 < log["information"]


def test_a_policy_goes_where_it_is_paid_to_learn() -> None:
    """The data are at zero: a policy that is paid for distance leaves it, one that is not has no reason to."""
    seen = Transitions(*(0.3 * np.random.default_rng(0).standard_normal((50, w)) for w in (3, 2, 3)))
    env = gymnasium.wrappers.TimeLimit(InfoGapEnv(Chain(), InfoGap(seen, weight=1.0)), 20)
    model = PPO("MlpPolicy", env, n_steps=256, batch_size=64, learning_rate=3e-3, gamma=0.9, seed=0, device="cpu")
    model.learn(4096)
    place, _ = env.reset(seed=0)
    for _ in range(20):
        place, *_ = env.step(model.predict(place, deterministic=True)[0])
    assert abs(place[0]) > 0.5


def test_episode_ends_count_with_their_own_last_observation() -> None:
    seen = Transitions(*(np.random.default_rng(0).standard_normal((50, w)) for w in (6, 3, 6)))
    term = InfoGap(seen, weight=1.0)
    env = InfoGapVecEnv(ToyVecEnv(3), term)
    env.seed(1)
    before = env.reset().copy()
    action = np.zeros((3, 3))
    _, _, _, infos = env.step(action)
    last = np.array([info["terminal_observation"] for info in infos])
    np.testing.assert_allclose([info["information"] for info in infos], term(before, action, last))


def test_a_wrapped_batch_goes_on_where_it_was() -> None:
    seen = Transitions(*(np.random.default_rng(0).standard_normal((50, w)) for w in (6, 3, 6)))
    first, second = (InfoGapVecEnv(ToyVecEnv(3), InfoGap(seen, weight=1.0)) for _ in range(2))
    for env in (first, second):
        env.seed(7)
        env.reset()
    first.step(np.zeros((3, 3)))
    second.restore(first.state())
    a, b = (env.step(np.full((3, 3), 0.1)) for env in (first, second))
    np.testing.assert_array_equal(a[1], b[1])
    assert first.log() == second.log()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: conditional_kl([[1.0], [2.0]], [[1.0], [2.0], [3.0]], [1.0]), "as many simulated as real"),
        (lambda: conditional_kl([[1.0], [2.0]], [[1.0], [2.0]], [0.0]), "noise: expected 1 positive"),
        (lambda: gaussian_kl(np.zeros((3, 4)), np.zeros((9, 4))), "expected 6 rows or more, got 3"),
        (lambda: knn_kl([[np.nan], [1.0]], [[0.0], [1.0]]), "finite"),
        (lambda: gap("kll", [[1.0], [2.0]], [[1.0], [2.0]], [1.0]), "did you mean 'kde'|known: conditional"),
        (lambda: InfoGap(data(1), weight=1.0), "2 transitions or more"),
        (lambda: InfoGap(data(), weight=-1.0), "not negative"),
        (
            lambda: InfoGap(data(), weight=1.0)(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2))),
            "expected 8 numbers",
        ),
    ],
)
def test_messages(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CaromError, match=words):
        call()
