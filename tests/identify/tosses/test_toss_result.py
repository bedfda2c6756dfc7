"""Identification from whole trajectories: known parameters are recovered, and what cannot be known is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from free_recordings import TRUTH, toss

from carom.core.errors import CaromError
from carom.identify import trust
from carom.identify.tosses.read_off import read_off
from carom.identify.tosses.recorded import equation_1, groups, motions_of
from carom.identify.tosses.restitution import contact_character
from carom.identify.tosses.result import SIDE_NAMES, identify_motions, intervals
from carom.identify.tosses.search import Budget, How, default_names, held_and_looked_for
from carom.recordings import read

BUDGET = Budget(first=3, sides=6, last=4, population=8)
SMALL = How(budget=BUDGET)
ENOUGH = How(budget=Budget(first=4, sides=12, last=8, population=10))  #: for two parameters
CONTACT = {name: TRUTH[name] for name in ("stiffness", "damping")}


@pytest.fixture(scope="module")
def tossed():
    return toss(Path("tosses"), 8, seed=1, samples=90)


@pytest.fixture(scope="module")
def middle():
    """Five tosses of a cube whose mass is in its middle."""
    truth = {"friction": 0.25, **CONTACT, "inertia_scale": 1.1}
    return toss(Path("tosses"), 5, seed=4, truth=truth, samples=60).motions


@pytest.fixture(scope="module")
def found(tossed):
    """Everything at once: eight parameters and the heavy side of each toss."""
    seen = []
    identification, model = identify_motions(
        tossed.motions,
        how=How(budget=Budget(first=6, sides=20, last=10, population=12)),
        threads=1,
        progress=lambda *done: seen.append(done),
    )
    assert seen[-1][0] == seen[-1][1]
    return identification, model


def covers(estimate):
    return estimate.low <= TRUTH[estimate.name] <= estimate.high


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("friction", 0.05),
        ("inertia_scale", 0.05),
        ("length_scale", 0.05),
        ("gravity", 0.05),
        ("face_friction", 0.05),
        ("com_offset", 0.05),
        ("stiffness", 0.05),
        ("damping", 0.05),
    ],
)
def test_known_parameters_are_recovered(found, name, within):
    estimate = found[0][name]
    assert estimate.value == pytest.approx(TRUTH[name], rel=within)
    assert estimate.verdict == "identified", estimate.reason
    assert estimate.low < estimate.value < estimate.high


def test_most_intervals_hold_the_truth(found):
    covered = {e.name: covers(e) for e in found[0].estimates}
    assert set(covered) == set(TRUTH)
    assert sum(covered.values()) >= 5, covered


def test_the_heavy_side_of_every_toss_is_found(found, tossed):
    identification, model = found
    assert list(identification.extra["sides"].values()) == [SIDE_NAMES[i] for i in tossed.sides]
    np.testing.assert_array_equal(model.sides.counts, np.bincount(tossed.sides, minlength=6))


def test_the_calibrated_engine_predicts_tosses_it_has_not_seen(found):
    """From their flights alone, far better than MuJoCo as it comes does."""
    identification, model = found
    unseen = toss(Path("tosses"), 12, seed=99, samples=90).motions
    short = 25
    after = model.predict(unseen.until(short), threads=1)
    errors = equation_1(unseen.until(short), after)
    assert np.median(errors) < 0.1
    before, trained = identification.extra["errors_before"], identification.extra["errors_after"]
    assert trained["equation_1"] < before["equation_1"] / 3
    assert identification.held_out is not None
    assert identification.held_out.strikes == 8


def test_results_are_the_same_on_any_number_of_threads(middle):
    names, fixed = ("friction", "inertia_scale"), CONTACT
    one, two = (identify_motions(middle, names=names, fixed=fixed, how=SMALL, threads=n, seed=3)[0] for n in (1, 2))
    assert one.estimates == two.estimates


def test_two_seeds_agree_within_their_intervals(middle):
    names = ("friction", "inertia_scale")
    runs = [
        identify_motions(middle, names=names, fixed=CONTACT, how=ENOUGH, threads=1, seed=seed)[0] for seed in (1, 2)
    ]
    for name in names:
        one, other = (run[name] for run in runs)
        assert one.low <= other.high, name
        assert other.low <= one.high, name
        assert one.value == pytest.approx(TRUTH[name], rel=0.05)


def test_least_squares_recovers_the_same(middle):
    how = How("least-squares", BUDGET)
    identification, _ = identify_motions(middle, how=how, names=("friction", "inertia_scale"), fixed=CONTACT, threads=1)
    assert identification.method == "least-squares"
    for name in ("friction", "inertia_scale"):
        assert identification[name].value == pytest.approx(TRUTH[name], rel=0.05), name
    for name, value in CONTACT.items():
        assert (identification[name].value, identification[name].verdict) == (value, "given")


def test_the_mass_of_a_single_body_cannot_be_identified(middle):
    identification, model = identify_motions(
        middle, names=("friction", "mass_scale"), fixed=CONTACT, how=SMALL, threads=1
    )
    estimate = identification["mass_scale"]
    assert estimate.verdict == "not identifiable from these recordings"
    assert (estimate.value, estimate.low, estimate.high) == (1.0, 0.5, 2.0)
    assert "left at its default" in estimate.reason
    assert model.values["mass_scale"] == 1.0
    assert identification["friction"].verdict == "identified"
    with pytest.raises(CaromError, match=r"nothing to identify: none of these moves .*: mass_scale"):
        identify_motions(middle, names=("mass_scale",), fixed=CONTACT, how=SMALL, threads=1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"names": ("frction",)}, "unknown parameter 'frction' (did you mean 'friction'?)"),
        ({"fixed": {"mu": 0.2}}, "unknown parameter 'mu'"),
        ({"names": ("stiffness", "damping_ratio")}, "one form of solref"),
        ({"names": ("friction",), "fixed": {"friction": 0.2}}, "every parameter is held: nothing is left to identify"),
    ],
)
def test_wrong_requests_are_refused(middle, wrong, said):
    with pytest.raises(CaromError) as refused:
        identify_motions(middle, how=SMALL, threads=1, **wrong)
    assert said in str(refused.value)


@pytest.mark.parametrize("method", ["cmaes", "mjx", "surrogate"])
def test_an_unknown_method_is_refused(method):
    with pytest.raises(CaromError, match=f"unknown method '{method}'.*known: cma, least-squares"):
        How(method)


def test_tosses_of_a_cube_are_asked_for_eight_parameters(tossed):
    assert default_names(tossed.motions) == (
        "friction",
        "stiffness",
        "damping",
        "inertia_scale",
        "com_offset",
        "face_friction",
        "length_scale",
        "gravity",
    )


def test_intervals_cover_the_truth_where_residuals_are_linear():
    """In the case that their derivation assumes, nine of ten 90 % intervals hold the truth."""
    rng = np.random.default_rng(0)
    truth, hits = np.array([0.4, 0.6]), []
    for trial in range(100):
        slope = rng.normal(size=(6, 8, 2))
        noise = 0.05 * rng.normal(size=(6, 8))
        flat = slope.reshape(-1, 2)
        step = np.linalg.lstsq(flat, noise.ravel(), rcond=None)[0]
        best = truth + step
        residual = noise - slope @ step
        fit = trust.Fit(best, residual, slope, np.zeros((2, 2)), np.zeros((0, 2)), np.zeros(0))
        low, high = intervals(fit, trial)
        hits.append((low <= truth) & (truth <= high))
        assert (high - low < 0.2).all()
    assert (np.mean(hits, axis=0) >= 0.85).all()


def test_a_harder_damped_contact_returns_less():
    soft = [contact_character({"stiffness": 20_000.0, "damping": d}, 5e-4) for d in (20.0, 80.0, 200.0)]
    restitution = [r for r, _ in soft]
    assert restitution == sorted(restitution, reverse=True)
    assert 0 <= restitution[-1] < restitution[0] < 1
    quick, slow = (contact_character({"stiffness": k, "damping": 40.0}, 5e-4)[1] for k in (80_000.0, 5_000.0))
    assert quick < slow


def test_restitution_of_real_discs(shared_data):
    folder = shared_data / "two_puck" / "rigid"
    if not folder.is_dir():
        pytest.skip(f"recordings of colliding discs are not there ({folder})")
    recordings = read(folder)
    motions, _ = motions_of(recordings, groups(recordings)[0])
    assert motions.scene.planar
    identification, _ = identify_motions(motions, how=SMALL, threads=1)
    restitution, contact_time = identification.derived
    assert 0.28 <= restitution.value <= 0.96
    assert 0 <= restitution.low <= restitution.value <= restitution.high <= 1
    assert 0.001 < contact_time.low <= contact_time.value <= contact_time.high <= 0.5


def test_the_height_at_rest_tells_the_scale_of_lengths(tossed):
    """Of the cube that is simulated: with friction of its own, a face stands out a little."""
    value, _ = read_off(tossed.motions, ("face_friction", "length_scale"))["length_scale"]
    assert value == pytest.approx(TRUTH["length_scale"], rel=0.002)


def test_gravity_alone_can_be_asked_for(middle):
    identification, _ = identify_motions(middle, names=("gravity",), how=SMALL, threads=1)
    assert identification["gravity"].value == pytest.approx(9.81, rel=0.01)


def test_a_refused_parameter_does_not_stop_what_is_read_off(middle):
    identification, _ = identify_motions(middle, names=("gravity", "mass_scale"), how=SMALL, threads=1)
    assert identification["gravity"].value == pytest.approx(9.81, rel=0.01)
    assert identification["mass_scale"].verdict == "not identifiable from these recordings"


def test_errors_are_those_of_starts_that_were_not_fitted(middle):
    plain, refined = (
        identify_motions(
            middle,
            names=("friction",),
            fixed={**CONTACT, "inertia_scale": 1.1},
            how=How(budget=BUDGET, refine_starts=refine),
            threads=1,
        )[0]
        for refine in (False, True)
    )
    assert (plain.extra["refined_starts"], refined.extra["refined_starts"]) == (False, True)
    assert refined.training.loss == pytest.approx(plain.training.loss, rel=0.3)
    assert refined["friction"].value == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ({"damping_ratio": 0.5}, "one form of solref"),
        ({"damping": float("nan")}, "finite"),
        ({"inertia_scale": -1.0}, "inertia_scale"),
    ],
)
def test_held_values_are_checked_like_those_looked_for(middle, fixed, said):
    with pytest.raises(CaromError) as refused:
        held_and_looked_for(middle, ("friction", "stiffness"), fixed)
    assert said in str(refused.value)
