"""Suggestions: that what is suggested tells more than what is not, and that what nothing shows is named."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rolled_bodies import Rolled
from simulated_strikes import strikes_at

from carom.cli import main
from carom.core.errors import CaromError
from carom.engines.mujoco.collide import Collider
from carom.identify.next.candidates import free_candidates, off_corners, practical, reachable
from carom.identify.next.choose import Known, Suggestion
from carom.identify.next.suggest import Described, describe, looked_for, suggest_strikes, suggest_tosses
from carom.identify.result import Errors, Estimate, Identification, Verdict
from carom.identify.tosses.problem import MotionProblem
from carom.identify.tosses.recorded import Motions
from carom.identify.tosses.result import MotionModel
from carom.identify.tosses.simulate import Starts
from carom.learn.impact.sample import sample_strikes
from carom.recordings import Recordings, Trajectory, write
from carom.scenes.free import FreeScene
from carom.scenes.parameters import FREE, free_parameters
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Array, Impacts, Strikes

PERIOD, SAMPLES, NOISE = 0.01, 22, 0.001
TRUE = {"friction": 0.15, "stiffness": 20_000.0, "damping": 100.0}
BALL = FreeScene("ball", (Body("ball", "target", Shape("sphere", radius=0.05), mass=0.2),))


def _recorded(starts: Starts, *, noise: float = NOISE, seed: int = 0) -> Motions:
    """Recordings of the ball with the true parameters, and noise [m] on its positions."""
    engine = Rolled(BALL, free_parameters(tuple(TRUE)), period=PERIOD, threads=1)
    motion = engine.run(starts, np.array([list(TRUE.values())]), SAMPLES)
    shaken = motion.position + noise * np.random.default_rng(seed).normal(size=motion.position.shape)
    count = len(starts)
    return Motions(
        BALL,
        tuple(f"toss_{i}" for i in range(count)),
        PERIOD,
        starts,
        shaken,
        motion.quaternion,
        np.zeros((count, 3)),
        np.zeros((count, 3, 3)),
        np.full(count, np.inf),
    )


def _drops(count: int, *, sideways: float = 0.0) -> Starts:
    """Straight drops, spun about the vertical: they show how hard the ground is, and nothing of friction."""
    fall = np.linspace(1.0, 1.6, count)
    position = np.tile([0.0, 0.0, 0.05], (count, 1, 1))
    position[:, 0, 2] += 0.02
    velocity = np.stack([np.full(count, sideways), np.zeros(count), -fall], axis=-1)[:, None]
    spin = np.tile([0.0, 0.0, 20.0], (count, 1, 1))
    return Starts.known(position, np.tile([1.0, 0, 0, 0], (count, 1, 1)), velocity, spin)


def _joined(a: Starts, b: Starts) -> Starts:
    both = [np.concatenate([getattr(s, n) for s in (a, b)]) for n in ("position", "quaternion", "velocity", "spin")]
    return Starts.known(*both)


def _log_spread(starts: Starts) -> float:
    """Summed ln of the standard deviations that recordings from these starts leave, by central differences."""
    motions = _recorded(starts, noise=0.0)
    problem = MotionProblem.of(motions, free_parameters(tuple(TRUE)), {}, threads=1)
    unit = np.array([float(FREE[name].to_unit(value)) for name, value in TRUE.items()])
    ends = problem.residuals(np.concatenate([unit + 0.03 * np.eye(3), unit - 0.03 * np.eye(3)]), short=True)
    slope = ((ends[:3] - ends[3:]) / 0.06).reshape(3, -1)
    noise = NOISE / 0.1 / np.sqrt(3)  # widths; about three frames are averaged
    return float(np.log(np.diag(np.linalg.inv(slope @ slope.T / noise**2 + 12 * np.eye(3)))).sum() / 2)


def _start_of(suggestion: Suggestion) -> Starts:
    """The toss as a person would make it: the heading is free, and left or right."""
    s = suggestion.settings
    fall = np.sqrt(2 * 9.81 * s["drop_m"])
    spin = np.array([s["spin_aside_rad_s"], s["spin_forward_rad_s"], s["spin_vertical_rad_s"]])
    position = np.array([[[0.0, 0.0, 0.05 + 3 * PERIOD * fall]]])
    velocity = np.array([[[s["sideways_m_s"], 0.0, -fall]]])
    return Starts.known(position, np.array([[[1.0, 0, 0, 0]]]), velocity, spin[None, None])


def test_a_suggested_toss_tells_more_than_a_random_one() -> None:
    starts = _drops(4)
    model = MotionModel(BALL, TRUE, None)
    stated = _stated(TRUE)
    made = suggest_tosses(
        Described(_recorded(starts), model, stated), names=tuple(TRUE), count=2, candidates=32, threads=1
    )
    first = made[0]
    assert first.most == "friction"  # straight drops said nothing about it
    now = _log_spread(starts)
    gained = now - _log_spread(_joined(starts, _start_of(first)))
    others = free_candidates(_recorded(starts), TRUE, None, 12, seed=99).starts
    usual = np.mean([now - _log_spread(_joined(starts, others[[i]])) for i in range(len(others))])
    assert gained > 1.8 * usual > 0
    assert first.gain > first.typical > 0
    assert made[1].words != first.words
    spread = {s.name: s for s in first.spreads}["friction"]
    assert np.ptp(spread.after) < 0.7 * np.ptp(spread.before)
    assert made[1].spreads[0].before == pytest.approx(first.spreads[0].after)
    for one in first.spreads:  # what is known now is what was stated, not another reading of it
        assert one.before == pytest.approx((stated[one.name].low, stated[one.name].high))
        assert one.before[0] <= one.after[0] <= TRUE[one.name] <= one.after[1] <= one.before[1]


def test_what_no_toss_shows_is_named() -> None:
    # contact in the direct form is per mass: a ball's mass changes nothing of its motion
    model = MotionModel(BALL, {**TRUE, "mass_scale": 1.0}, None)
    names = ("friction", "damping", "mass_scale")
    stated = _stated({**TRUE, "mass_scale": 1.0})
    first = suggest_tosses(
        Described(_recorded(_drops(3)), model, stated), names=names, count=1, candidates=16, threads=1
    )[0]
    assert first.unseen == ("mass_scale",)
    mass = first.spreads[2]
    assert mass.after == pytest.approx(mass.before, rel=0.01)


def test_suggestions_repeat_and_do_not_depend_on_threads() -> None:
    motions, model = _recorded(_drops(3)), MotionModel(BALL, TRUE, None)
    known = Described(motions, model, _stated(TRUE))
    one, two = (suggest_tosses(known, names=tuple(TRUE), candidates=16, threads=t) for t in (1, 2))
    assert one == two
    other = suggest_tosses(known, names=tuple(TRUE), candidates=16, threads=1, seed=5)
    assert [s.words for s in other] != [s.words for s in one]


def test_boxes_land_on_faces_edges_and_corners() -> None:
    box = replace(BALL, bodies=(Body("box", "target", Shape("box", size=(0.1, 0.1, 0.1)), mass=0.4),))
    words = free_candidates(replace(_recorded(_drops(3)), scene=box), TRUE, None, 30, seed=0).experiments.words
    for first in ("nearly flat on a face", "edge first", "corner first"):
        assert sum(first in w for w in words) >= 6, first


def test_wrong_questions_are_refused() -> None:
    motions, model = _recorded(_drops(3)), MotionModel(BALL, TRUE, None)
    with pytest.raises(CaromError, match=r"unknown parameter 'frictoin'.*friction"):
        suggest_tosses(Described(motions, model, _stated(TRUE)), names=("frictoin",))
    with pytest.raises(CaromError, match="at least one suggestion"):
        suggest_tosses(Described(motions, model, _stated(TRUE)), count=0)
    with pytest.raises(CaromError, match=r"parameters are of strikes \('striker_friction'\)"):
        describe(motions, _identification({"striker_friction": 0.3}))


# strikes

SQUARE = builtin("square")
HELD = {"ground_friction", "ground_damping", "com_x", "com_y"}


def _identification(values: dict[str, float], *, teacher: str = "mujoco", held: Sequence[str] = ()) -> Identification:
    errors = Errors(0.1, 0.1, 0.5, 4)
    made = []
    for name, value in values.items():
        verdict: Verdict = "given" if name in held else "identified"
        made.append(Estimate(name, value, "1", value, value, (0.0, 1.0), verdict, ""))
    return Identification("cma", "square", tuple(made), errors, None, "", 1, 0, 1.0, 0, teacher=teacher)


def _stated(values: dict[str, float]) -> Identification:
    """An identification that states intervals a fifth below and above these values."""
    found = _identification(values)
    wide = tuple(replace(e, low=0.8 * e.value, high=1.2 * e.value) for e in found.estimates)
    return replace(found, estimates=wide)


def _values(scene: StrikeScene) -> dict[str, float]:
    return {p.name: p.default for p in scene.parameters("mujoco")}


def _head_on(count: int) -> Strikes:
    """Strikes on the middle of a face, straight: nothing slips, friction does not show."""
    speed = np.linspace(0.3, 0.7, count)
    still, zero = np.zeros((count, 3)), np.zeros(count)
    reach = 0.04 + float(SQUARE.striker.radius or 0.0)
    return Strikes(still, still, np.c_[np.full(count, -reach), zero, zero], np.c_[speed, zero, zero])


def _struck(strikes: Strikes, values: Array) -> Array:
    return (
        Collider(SQUARE, SQUARE.parameters("mujoco"), threads=1).run(strikes, np.tile(values, (len(strikes), 1))).post
    )


def _strike_log_spread(strikes: Strikes) -> float:
    parameters = SQUARE.parameters("mujoco")
    centre = np.array(list(_values(SQUARE).values()))
    rows = [i for i, p in enumerate(parameters) if p.name not in HELD]
    speed = np.linalg.norm(strikes.striker_velocity[:, :2], axis=-1, keepdims=True)
    slopes = []
    for row in rows:
        unit = float(parameters[row].to_unit(centre[row]))
        high, low = centre.copy(), centre.copy()
        high[row], low[row] = parameters[row].from_unit(unit + 0.08), parameters[row].from_unit(unit - 0.08)
        moved = (_struck(strikes, high) - _struck(strikes, low)) * [1, 1, SQUARE.gyration_radius] / speed
        slopes.append(moved.ravel() / 0.16)
    gram = np.array(slopes) @ np.array(slopes).T / 0.02**2
    return float(np.log(np.diag(np.linalg.inv(gram + 12 * np.eye(len(rows))))).sum() / 2)


def _suggested(threads: int) -> tuple[Suggestion, ...]:
    strikes = _head_on(4)
    post = _struck(strikes, np.array(list(_values(SQUARE).values())))
    shaken = post + 0.01 * np.random.default_rng(0).normal(size=post.shape) * [1, 1, 1 / SQUARE.gyration_radius]
    impacts = Impacts(strikes, shaken, np.full_like(post, 0.01), tuple(f"hit_{i}" for i in range(4)))
    found = _identification(_values(SQUARE), held=sorted(HELD))
    drawn = sample_strikes(SQUARE, 40, np.random.default_rng(3))
    return suggest_strikes(SQUARE, impacts, found, candidates=drawn, count=2, threads=threads)


def test_a_suggested_strike_tells_more_than_a_random_one() -> None:
    made = _suggested(1)
    settings = made[0].settings
    assert made[0].most == "striker_friction"
    drawn = sample_strikes(SQUARE, 40, np.random.default_rng(3))
    speeds = np.linalg.norm(drawn.striker_velocity[:, :2], axis=-1)
    chosen = int(np.argmin(np.abs(speeds - settings["speed_m_s"])))

    def with_strike(row: Strikes) -> float:
        old = _head_on(4)
        names = ("target_pose", "target_velocity", "striker_pose", "striker_velocity", "posture")
        return _strike_log_spread(Strikes(*(np.concatenate([getattr(s, n) for s in (old, row)]) for n in names)))

    now = _strike_log_spread(_head_on(4))
    gained = now - with_strike(drawn[[chosen]])
    usual = np.mean([now - with_strike(strikes_at(SQUARE, 1, seed=s)) for s in range(6)])
    assert gained > 1.5 * usual > 0
    # off the middle or off the normal, within the scene's range of speeds
    assert abs(settings["off_normal_deg"]) > 1 or min(abs(settings["x_m"]), abs(settings["y_m"])) > 0.01
    assert SQUARE.speed[0] <= settings["speed_m_s"] <= SQUARE.speed[1]
    assert "mm along the outline" in made[0].words
    assert made == _suggested(2)


def test_candidates_stay_near_what_was_struck() -> None:
    strikes = _head_on(4)
    impacts = Impacts(strikes, np.ones((4, 3)), np.ones((4, 3)), tuple("abcd"))
    near = practical(SQUARE, impacts)
    assert near.deflection == pytest.approx(0.1)
    assert near.speed == pytest.approx((0.3 / 1.3, 0.8))
    drawn = sample_strikes(near, 200, np.random.default_rng(0))
    kept = reachable(near, drawn, impacts)
    assert 0 < len(kept) < len(drawn)
    assert (kept.striker_pose[:, 0] < -0.02).all()


@pytest.mark.parametrize("name", ["square", "triangle", "semi-cylinder"])
def test_candidates_keep_off_corners_as_far_as_a_robot_can_aim(name: str) -> None:
    scene = replace(builtin(name), arc=None)
    drawn = sample_strikes(scene, 300, np.random.default_rng(0))
    corners = {"square": slice(None), "triangle": slice(None), "semi-cylinder": [0, -1]}[name]
    sharp = scene.outline.vertices[corners]

    def nearest(strikes: Strikes) -> Array:
        point, _ = scene.outline.nearest(strikes.striker_pose[:, :2])
        return np.asarray(np.linalg.norm(point[:, None] - sharp, axis=-1).min(axis=1))

    kept = off_corners(scene, drawn)
    assert nearest(drawn).min() < 0.002
    assert nearest(kept).min() >= 0.0049
    assert len(kept) > 0.6 * len(drawn)  # the rest of the outline is left as it was


def test_a_round_target_has_no_corner() -> None:
    puck = replace(SQUARE, target=Body("puck", "target", Shape("cylinder", radius=0.04, height=0.04), mass=0.2))
    drawn = sample_strikes(puck, 50, np.random.default_rng(0))
    assert len(off_corners(puck, drawn)) == 50


def test_a_value_that_means_nothing_is_not_what_an_interval_narrows_to() -> None:
    friction = FREE["friction"]
    stated = Estimate("friction", 0.0, "1", 0.0, 1.0, (0.0, 1.0), "not identifiable from these recordings", "")
    ((low, high),) = Known.of([friction], [stated]).narrowed(np.array([0.5]))
    assert (low, high) == pytest.approx((0.25, 0.75))
    ((low, high),) = Known.of([friction], [replace(stated, verdict="on a bound")]).narrowed(np.array([0.5]))
    assert (low, high) == pytest.approx((0.0, 0.5))


def test_what_slides_gave_is_not_to_be_narrowed() -> None:
    impacts = Impacts(
        _head_on(3), _struck(_head_on(3), np.array(list(_values(SQUARE).values()))), np.ones((3, 3)), ("a", "b", "c")
    )
    found = _identification(_values(SQUARE), held=["ground_damping", "com_x", "com_y"])
    found = replace(found, extra={"read_off": ["ground_friction"]})
    drawn = sample_strikes(SQUARE, 8, np.random.default_rng(0))
    first = suggest_strikes(SQUARE, impacts, found, candidates=drawn, count=1, threads=1)[0]
    assert [s.name for s in first.spreads] == ["striker_friction", "striker_damping"]


def test_parameters_of_another_teacher_are_refused() -> None:
    impacts = Impacts(_head_on(2), np.ones((2, 3)), np.ones((2, 3)), ("a", "b"))
    drawn = sample_strikes(SQUARE, 4, np.random.default_rng(0))
    with pytest.raises(CaromError, match=r"MuJoCo's parameters, got those of the teacher 'compliant'.*carom identify"):
        suggest_strikes(SQUARE, impacts, _identification(_values(SQUARE), teacher="compliant"), candidates=drawn)
    with pytest.raises(CaromError, match=r"strikes of scene 'square' need striker_friction.*are of 'square': friction"):
        suggest_strikes(SQUARE, impacts, _identification({"friction": 0.3}), candidates=drawn)
    given = _identification(_values(SQUARE), held=list(_values(SQUARE)))
    with pytest.raises(CaromError, match="every parameter was given or read off"):
        suggest_strikes(SQUARE, impacts, given, candidates=drawn)


# the command


def _folder(path: Path) -> Path:
    """Three tosses of the ball from 0.15 m, with their flights."""
    starts = _drops(3, sideways=0.3)
    starts = replace(starts, position=starts.position + np.array([0.0, 0.0, 0.13]))
    motions = _recorded(starts, noise=1e-4)
    time = np.arange(SAMPLES, dtype=np.float64) * PERIOD
    bodies = {"ball": BALL.bodies[0]}
    tracks = tuple(
        Trajectory(
            f"{n}.csv",
            path / f"{n}.csv",
            time,
            {"ball": motions.position[i, :, 0]},
            {"ball": motions.quaternion[i, :, 0]},
            bodies,
        )
        for i, n in enumerate(motions.names)
    )
    write(path, Recordings(path, bodies, tracks))
    return path


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["carom", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_command_writes_a_table_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _folder(tmp_path / "tosses")
    parameters = _identification(TRUE, held=["damping"]).write(tmp_path / "parameters.yaml")
    out = tmp_path / "next.json"
    assert _run(monkeypatch, "suggest", folder, "--params", parameters, "--count", 2, "--json", out) == 0
    (group,) = json.loads(out.read_text(encoding="utf-8"))["groups"]
    assert len(group["suggestions"]) == 2
    assert set(group["suggestions"][0]["interval_90"]) == {"friction", "stiffness"}
    shown = capsys.readouterr().out
    assert "drop by" in shown
    assert "after 2" in shown


def test_the_command_fails_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _folder(tmp_path / "tosses")
    found = replace(_identification(TRUE), extra={"recordings": ["other.csv"]})
    parameters = found.write(tmp_path / "parameters.yaml")
    assert _run(monkeypatch, "suggest", folder, "--params", parameters) == 2
    said = capsys.readouterr().err.strip()
    assert "none of the recordings that the parameters were identified from" in said
    assert "\n" not in said


def test_given_parameters_are_not_to_be_narrowed() -> None:
    motions = _recorded(_drops(3))
    assert looked_for(motions, _identification(TRUE, held=["damping"])) == ("friction", "stiffness")
