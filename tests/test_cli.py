"""The command as a user types it: results, JSON, and one line with exit code 2 for every mistake."""

import json

import numpy as np
import pytest
from report_pages import good_page, next_commands
from typed import typed as carom

from carom.reality import sample_commands, standin
from carom.recordings import end_pose, read
from carom.recordings.strikes import first_strike
from carom.state import wrap_angle


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Twelve strikes of a stand-in, and a small base model of their scene."""
    out = tmp_path_factory.mktemp("lab")
    reality = standin("resin-low", "square", seed=5)
    reality.execute(sample_commands(reality.shape, 12, np.random.default_rng(0)), out / "strikes", seed=1)
    code, _, err = carom("distill", out / "strikes", "--out", out / "base", "--samples", 4096, "--steps", 150)
    assert code == 0, err
    return out


def test_three_commands_from_recordings_to_predictions(lab):
    code, out, err = carom("adapt", lab / "base", lab / "strikes", "--out", lab / "model", "--json", "-")
    assert code == 0, err
    facts = json.loads(out)  # stdout holds the JSON and nothing else
    assert facts["strikes"] == 12
    code, _, err = carom("predict", lab / "model", lab / "strikes", "--json", lab / "predicted.json")
    assert code == 0, err
    predicted = json.loads((lab / "predicted.json").read_text())
    assert len(predicted) == 12
    first = next(iter(predicted.values()))
    assert set(first) == {"post", "post_std", "rest", "rest_std", "status", "from_engine"}
    assert len(first["post"]) == 3
    assert first["status"] == "ok"


def test_stated_spreads_of_rests_hold_the_truth(lab, tmp_path):
    """Forty strikes that the model has not seen, each with its own scatter: where they end lies within what is said."""
    if not (lab / "model" / "hybrid").is_dir():
        assert carom("adapt", lab / "base", lab / "strikes", "--out", lab / "model")[0] == 0
    reality = standin("resin-low", "square", seed=5)
    commands = sample_commands(reality.shape, 40, np.random.default_rng(7))
    reality.execute(commands, tmp_path / "new", seed=3)
    code, out, err = carom("predict", lab / "model", tmp_path / "new", "--json", tmp_path / "p.json")
    assert code == 0, err
    assert "+-" in out
    assert "yaw [rad]" in out  # units are not taken for markup
    predicted = json.loads((tmp_path / "p.json").read_text())
    off, std = [], []
    for trajectory in read(tmp_path / "new").trajectories:
        strike, _ = first_strike(trajectory)
        if predicted[trajectory.name]["rest_std"] is None or strike is None:
            continue
        away = np.array(predicted[trajectory.name]["rest"]) - end_pose(trajectory, strike)
        off.append([*away[:2], wrap_angle(away[2])])
        std.append(predicted[trajectory.name]["rest_std"])
    assert len(std) > 30
    inside = np.abs(off) < 1.645 * np.array(std)
    assert 0.75 <= inside.mean() <= 0.995, inside.mean(axis=0)
    assert np.median(np.array(std)[:, 0]) < 0.03  # and they are no empty words [m]


def test_a_strike_is_planned_exported_and_pictured(lab, tmp_path):
    if not (lab / "model" / "hybrid").is_dir():
        assert carom("adapt", lab / "base", lab / "strikes", "--out", lab / "model")[0] == 0
    rest = next(iter(json.loads(carom("predict", lab / "model", lab / "strikes", "--json", "-")[1]).values()))["rest"]
    assert len(rest) == 3
    start = ("--from", "0.2", "-0.1", "0.5")
    arguments = ("plan", lab / "model", *start, "--method", "gradient", "--json", "-")
    code, out, err = carom(
        *arguments,
        "--target",
        0.26,
        -0.06,
        0.6,
        "--tolerance",
        0.05,
        1.5,
        "--export",
        tmp_path / "robot",
        "--report",
        tmp_path / "plan.html",
    )
    assert code == 0, err
    plan = json.loads(out)
    assert plan["reachable"]
    assert plan["target_pose"] == [0.2, -0.1, 0.5]
    assert {p.name for p in (tmp_path / "robot").iterdir()} == {
        "strike.csv",
        "strike.json",
        "franka_cartesian_velocities.csv",
    }
    page = good_page(tmp_path / "plan.html")
    assert str(tmp_path / "robot") in page  # carry it out: the set-points are there
    assert f"position error {1e3 * plan['position_error_m']:.1f} mm" in page
    report = ("--report", tmp_path / "far.html")
    far = carom(*arguments, "--target", 5, 5, 0, "--export", tmp_path / "far", *report)
    assert far[0] == 2
    assert "nearest pose is" in far[2]
    assert json.loads(far[1])["reachable"] is False
    assert not (tmp_path / "far").exists()
    nearest = next_commands(good_page(tmp_path / "far.html"))[0]
    assert nearest[:3] == ["carom", "plan", str(lab / "model")]
    place = [float(word) for word in nearest[nearest.index("--target") + 1 :][:2]]
    assert place == pytest.approx(json.loads(far[1])["expected_pose"][:2], abs=1e-4)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--simulator", "mujoko"), "did you mean 'mujoco'"),
        (("--method", "cmaes"), "unknown method"),
        (("--speed", "0.5", "9"), "the model has learned"),
        (("--simulator", "mujoco", "--method", "gradient"), "needs the hybrid"),
        (("--simulator", "mjx", "--robust"), "does not say how uncertain it is there"),
    ],
)
def test_mistakes_in_planning_end_in_one_line(lab, wrong, said):
    if not (lab / "model" / "hybrid").is_dir():
        assert carom("adapt", lab / "base", lab / "strikes", "--out", lab / "model")[0] == 0
    code, _, err = carom("plan", lab / "model", "--target", 0.1, 0, 0, *wrong)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_prediction_uses_nothing_after_the_contact(lab, tmp_path):
    """Cut every record 5 ms before its contact: what is predicted must hardly change."""
    carom("adapt", lab / "base", lab / "strikes", "--out", lab / "model")
    from carom.recordings import find_impacts, write

    recordings = read(lab / "strikes")
    whole = json.loads(carom("predict", lab / "model", lab / "strikes", "--json", "-")[1])
    from dataclasses import replace

    cut = tuple(t.until(find_impacts(t)[0].time - 0.005) for t in recordings.trajectories)
    write(tmp_path / "cut", replace(recordings, trajectories=cut))
    code, out, err = carom("predict", lab / "model", tmp_path / "cut", "--json", "-")
    assert code == 0, err
    for name, p in json.loads(out).items():
        speed = np.linalg.norm(whole[name]["post"][:2])
        np.testing.assert_allclose(p["post"][:2], whole[name]["post"][:2], atol=0.06 * speed + 0.01)


def test_identify_writes_parameters_with_units(lab, tmp_path):
    code, out, err = carom("identify", lab / "strikes", "--method", "grid", "--out", tmp_path / "p", "--json", "-")
    assert code == 0, err
    found = json.loads(out)
    assert found["parameters"]["striker_friction"]["unit"] == "1"
    assert (tmp_path / "p" / "parameters.yaml").is_file()
    assert 0.15 < found["slides"]["friction"] < 0.3  # the stand-in's ground is 0.22


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fit", 3), "--parameters, --fix, --fit, --refine-starts are for free bodies"),
        (("--fit", 0), "Invalid value for '--fit'"),
        (("--refine-starts",), "are for free bodies"),
        (("--method", "cma", "--model", "base"), "--model is for --method gradient, asked for cma"),
        (("--method", "mjx", "--threads", 2), "--threads is for engines that search"),
    ],
)
def test_options_that_mean_nothing_for_strikes_are_refused(lab, options, message):
    code, out, err = carom("identify", lab / "strikes", *options)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not out


def test_a_robots_base_without_an_export_is_refused(lab):
    code, _, err = carom("plan", lab / "model", "--target", 0.1, 0, 0, "--base", 1, 0, 0)
    assert code == 2
    assert "--base is for --export" in err


def test_check_prints_json_and_table(lab, tmp_path):
    code, out, _ = carom("check", lab / "strikes", "--json", tmp_path / "c.json")
    assert code == 0
    assert "12 of 12 readable" in out
    assert json.loads((tmp_path / "c.json").read_text())["readable"] == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nowhere"], "no such folder"),
        (["distill", "squre", "--out", "x"], "unknown scene 'squre' (did you mean 'square'?)"),
        (["distill", "square"], "Missing option"),
        (["distill", "square", "--out", "x", "--samples", "10"], "needs 1000 impacts or more"),
        (["distill", "square", "--out", "x", "--teacher", "bullet"], "unknown teacher 'bullet'"),
        (["distill", "square", "--out", "x", "--preset", "papr"], "unknown preset 'papr' (did you mean 'paper'?)"),
        (["adapt", "nomodel", "nowhere", "--out", "x"], "no such folder"),
        (["predict", "nomodel", "nowhere"], "holds no impact model"),
        (["bench", "speeed"], "unknown benchmark 'speeed'"),
        (["bench", "robot-hits"], "needs --data DIR"),
        (["identify", "nowhere"], "no such folder"),
        (["check", "nowhere", "--seed", "1"], "No such option: --seed"),
        (["predict", "nomodel", "nowhere", "--seed", "1"], "No such option: --seed"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_mistakes_end_in_one_line_and_code_two(arguments, message, tmp_path):
    code, _, err = carom(*arguments, cwd=tmp_path)
    assert code == 2
    assert message in err
    assert err.startswith("carom: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_model_refuses_another_scene(lab, tmp_path):
    reality = standin("resin-low", "triangle", seed=5)
    reality.execute(sample_commands(reality.shape, 4, np.random.default_rng(0)), tmp_path / "other", seed=1)
    code, _, err = carom("adapt", lab / "base", tmp_path / "other", "--out", tmp_path / "model")
    assert code == 2
    assert "the model was made for scene" in err
    assert "target outline" in err


def test_distillation_goes_on_after_a_kill_with_the_same_bytes(lab, tmp_path):
    """A shard that a kill took away comes back identical; the others are not touched."""
    import hashlib

    shard = lab / "base" / "data" / "mujoco" / "impacts-00000.parquet"
    before = hashlib.sha256(shard.read_bytes()).hexdigest()
    shard.unlink()
    again = ["distill", lab / "strikes", "--out", lab / "base", "--samples", 4096, "--steps", 150, "--threads", 1]
    code, _, err = carom(*again)
    assert code == 0, err
    assert hashlib.sha256(shard.read_bytes()).hexdigest() == before
