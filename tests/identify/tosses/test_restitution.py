"""Restitution and contact time: read off velocities, and as MuJoCo plays them; intervals hold what they promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic_recordings import Strike, toss, two_discs

from carom.identify import trust
from carom.identify.problem import Problem
from carom.identify.result import Estimate
from carom.identify.result import read as read_parameters
from carom.identify.tosses.restitution import contact_character, measured, played
from carom.identify.tosses.result import TOGETHER, freedom
from carom.scenes.parameters import FREE

STEP = 0.0008
RESTITUTION = 0.9  #: of `two_discs`


def drawn(fit: trust.Fit, covariance: np.ndarray, seed: int) -> np.ndarray:
    return trust.draws(fit, covariance, seed, count=TOGETHER, freedom=freedom(fit))


def test_what_is_left_of_the_closing_speed_is_read_off():
    (found,) = measured([two_discs()[0]])
    assert found.name == "measured_restitution"
    assert found.value == pytest.approx(RESTITUTION, abs=0.02)
    assert found.low < found.value < found.high
    assert found.verdict == "identified"
    assert found.reason.startswith(
        "read off the velocities before and after 1 contact of the bodies; standard error 0.0"
    )
    assert not measured([toss()])  # a cube meets the ground by its corners
    assert not measured([Strike().trajectory()])  # a box is not round


def test_parameters_that_play_another_restitution_are_told():
    pair = two_discs()[0]

    def reason(value: float) -> str:
        simulated = Estimate("restitution", value, "1", value, value, (0.0, 1.0), "identified", "")
        return measured([pair], [simulated])[0].reason

    plain = measured([pair])[0].reason
    assert reason(RESTITUTION) == plain
    more, less = reason(RESTITUTION + 0.07).removeprefix(plain), reason(RESTITUTION - 0.2).removeprefix(plain)
    assert more.startswith("; the identified parameters play 0.97: simulated bodies part faster, by 0.0")
    assert less.startswith("; the identified parameters play 0.7: simulated bodies part slower, by 0.2")
    assert more.endswith("of their closing speed")


def test_its_interval_holds_the_truth_as_often_as_it_says_and_grows_with_noise():
    hits, widths = [], {}
    for noise in (3e-5, 3e-4):
        for seed in range(30):
            (found,) = measured([two_discs(seed=seed, noise=noise, contact=0.5 + 0.0001 * seed)[0]])
            hits.append(found.low <= RESTITUTION <= found.high)
            widths.setdefault(noise, []).append(found.high - found.low)
    assert np.mean(hits) >= 0.85
    assert np.median(widths[3e-4]) > 3 * np.median(widths[3e-5])


def test_several_contacts_tell_more_and_their_scatter_counts():
    one = measured([two_discs(seed=1)[0]])[0]
    four = measured([two_discs(seed=s)[0] for s in range(4)])[0]
    assert four.value == pytest.approx(RESTITUTION, abs=0.01)
    assert "4 contacts" in four.reason
    assert four.high - four.low < 1.5 * (one.high - one.low)
    slower = two_discs(seed=1)[0]
    after = slower.time > 0.5013  # the same collision, but they part at half the speed
    paths = {n: np.array(p) for n, p in slower.position_world.items()}
    middle = 0.6 * paths["a"] + 0.4 * paths["b"]
    for path in paths.values():
        away = path - middle
        meeting = away[int(np.argmax(after)) - 1]
        path[after] = middle[after] + meeting + 0.5 * (away[after] - meeting)
    differ = measured([two_discs(seed=2)[0], replace(slower, position_world=paths)])[0]
    assert "from their scatter" in differ.reason
    assert differ.high - differ.low > 0.3


def test_real_discs_part_as_the_recordings_say(shared_data):
    from carom.recordings import read

    folder = shared_data / "two_puck"
    if not folder.is_dir():
        pytest.skip(f"recordings of colliding discs are not there ({folder})")
    rigid, plastic = ([measured([t])[0] for t in read(folder / name).trajectories] for name in ("rigid", "plastic"))
    assert {e.verdict for e in rigid} <= {"identified", "weakly identified"}
    assert min(e.value for e in rigid) < 0.4
    assert max(e.value for e in rigid) > 0.85
    assert max(e.value for e in plastic) < 0.15  # they stick
    assert min(e.high - e.low for e in plastic) > 0.005  # which is known only so well


def fit_of(names, held=None, dead=None, width=0.02):
    """A problem whose parameters are known as well as this in unit space, around the middle."""
    parameters = tuple(FREE[n] for n in names)
    problem = Problem(parameters=parameters, held=held or {}, dead=dead or {})
    count = len(problem.active)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(6, 8))
    slope = rng.normal(size=(6, 8, count)) * noise.std() / (width * np.sqrt(48))
    fit = trust.Fit(np.full(count, 0.6), noise, slope, np.zeros((count, count)), np.zeros((0, count)), np.zeros(0))
    return problem, fit


def test_what_parameters_make_of_a_bounce_has_an_interval():
    problem, fit = fit_of(("friction", "stiffness", "damping"))
    points = drawn(fit, trust.covariance(fit), 3)
    restitution, contact_time = played(problem, fit.unit, points, STEP, 3)
    values = dict(zip(("friction", "stiffness", "damping"), problem.values(fit.unit)[0], strict=True))
    assert (restitution.value, contact_time.value) == contact_character(values, STEP)
    for e in (restitution, contact_time):
        assert e.low < e.value < e.high
        assert e.verdict == "identified"
        assert "a ball that meets the ground at 1 m/s in MuJoCo, 160 draws" in e.reason
    assert (restitution.unit, contact_time.unit) == ("1", "s")
    assert played(problem, fit.unit, points, STEP, 3) == (restitution, contact_time)  # the same seed, the same ends
    vague, loose = fit_of(("friction", "stiffness", "damping"), width=0.3)
    wide, _ = played(vague, loose.unit, drawn(loose, trust.covariance(loose), 3), STEP, 3)
    assert wide.high - wide.low > 3 * (restitution.high - restitution.low)
    assert wide.verdict != "identified"


def test_parameters_that_trade_off_leave_a_bounce_well_known():
    """Along a line of equal restitution, stiffness and damping are unknown; the restitution is not."""
    problem, fit = fit_of(("stiffness", "damping"))
    stiffness, damping = problem.parameters
    along = np.array([2.0 / np.log(stiffness.high / stiffness.low), 1.0 / np.log(damping.high / damping.low)])
    along /= np.linalg.norm(along)
    across = np.array([-along[1], along[0]])
    tied = 0.15**2 * np.outer(along, along) + 0.005**2 * np.outer(across, across)
    loose = np.diag(np.diag(tied))
    narrow, wide = (played(problem, fit.unit, drawn(fit, c, 1), STEP, 1)[0] for c in (tied, loose))
    assert narrow.high - narrow.low < 0.4 * (wide.high - wide.low)


def test_given_and_dead_parameters():
    held = {"stiffness": (20_000.0, "given"), "damping": (80.0, "given")}
    problem, fit = fit_of(("friction", "stiffness", "damping"), held=held)
    points = drawn(fit, trust.covariance(fit), 0)
    for e in played(problem, fit.unit, points, STEP, 0):
        assert (e.verdict, e.low, e.high) == ("given", e.value, e.value)
    problem, fit = fit_of(("friction",))
    assert played(problem, fit.unit, drawn(fit, trust.covariance(fit), 0), STEP, 0) == ()  # nobody asked
    problem, fit = fit_of(("friction", "stiffness", "damping"), dead={"stiffness": 0.0, "damping": 0.0})
    restitution, _ = played(problem, fit.unit, drawn(fit, trust.covariance(fit), 0), STEP, 0)
    assert restitution.verdict == "not identifiable from these recordings"


def test_the_file_keeps_it(tmp_path):
    from simulated_tosses import CALIBRATED, parameters_file

    found = read_parameters(parameters_file(tmp_path / "p.yaml", CALIBRATED))
    assert found.derived == ()
    derived = measured([two_discs()[0]])
    again = read_parameters(replace(found, derived=derived).write(tmp_path / "q.yaml"))
    assert again.derived == derived
    assert [e.name for e in again.estimates] == list(CALIBRATED)  # a simulator is given its parameters alone
