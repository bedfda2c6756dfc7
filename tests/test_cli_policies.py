"""Policies as a user types it: train, go on after a kill, roll out along routes; one line for every mistake."""

import json
import shutil
import signal
import subprocess
import sys
from time import monotonic, sleep

import pytest
from sealed import reseal
from typed import typed as carom

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: pip install carom[rl]")

TRAIN = ("train", "--simulator", "mujoco", "--steps", "384", "--threads", "1")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    out = tmp_path_factory.mktemp("policy") / "here"
    code, said, err = carom(*TRAIN, "--out", out, "--json", "-")
    assert code == 0, err
    facts = json.loads(said)
    assert facts["transitions"] == 384
    assert facts["simulator"] == "mujoco"
    assert set(facts["timing"]) == {"environment", "updates", "rest", "total", "cpu"}
    own = facts["in_own_simulator"]
    assert own["trials"] == 100
    assert own["success_rate_interval"][0] <= own["success_rate"] <= own["success_rate_interval"][1]
    return out


def test_a_finished_training_is_not_repeated(policy):
    before = (policy / "policy.safetensors").stat().st_mtime_ns
    code, said, err = carom(*TRAIN, "--out", policy)
    assert code == 0, err
    assert "the arc whose middle sends it -90 degrees from its x axis" in " ".join(said.split())
    words = " ".join(err.split())
    assert "success in its own simulator: 0." in words  # three updates teach nothing, and it says so
    assert "warning: it succeeds in less than 0.8 of the trials even where it was trained" in words
    assert (policy / "policy.safetensors").stat().st_mtime_ns == before
    code, _, err = carom(*TRAIN, "--out", policy, "--seed", 5)
    assert code == 2
    assert "other settings: seed 0 (now 5)" in err


def test_ctrl_c_says_so_and_the_same_command_goes_on(tmp_path):
    arguments = ("train", "--simulator", "mujoco", "--steps", "2560", "--threads", "1", "--out", tmp_path / "policy")
    run = subprocess.Popen(
        [sys.executable, "-m", "carom", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    patience = monotonic() + 120
    while not list(tmp_path.glob("policy/checkpoint-*/state.json")) and monotonic() < patience:
        assert run.poll() is None, run.communicate()
        sleep(0.1)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 130
    assert "carom: stopped; what was finished is kept" in err
    assert "Traceback" not in err
    assert (tmp_path / "policy" / "checkpoint.json").is_file()


def test_rates_and_an_animation_along_several_routes(policy, tmp_path):
    route = tmp_path / "hall.yaml"
    route.write_text("name: hall\npoints: [[0, 0], [0.3, 0], [0.5, 0.1]]\n")
    gif = tmp_path / "trials.gif"
    arguments = ("rollout", policy, "--on", "nylon-low", "--routes", "1", "3", route, "--trials", 7, "--animation", gif)
    code, said, err = carom(*arguments, "--json", "-")
    assert code == 0, err
    rows = json.loads(said)["routes"]
    assert [(r["segments"], r["trials"]) for r in rows] == [(1, 7), (3, 7), (2, 7)]
    alone = json.loads(carom("rollout", policy, "--routes", 3, "--trials", 7, "--json", "-")[1])["routes"]
    assert alone == rows[1:2]  # no route depends on the others
    assert gif.read_bytes()[:3] == b"GIF"
    assert json.loads(carom(*arguments, "--json", "-")[1])["routes"] == rows  # the same seed, the same trials


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "--out", "X"), "without --model there is MuJoCo with default parameters only"),
        ((*TRAIN, "--out", "X", "--algo", "sacc"), "did you mean 'sac'"),
        ((*TRAIN, "--out", "X", "--env", "carom/StrikeRoute-v1"), "did you mean 'carom/StrikeRoute-v0'"),
        ((*TRAIN, "--out", "X", "--route", "2"), "--route belongs to carom/StrikeRoute-v0"),
        ((*TRAIN, "--out", "X", "--preset", "quik"), "unknown preset 'quik' (did you mean 'quick'?)"),
        ((*TRAIN, "--out", "X", "--length", "0"), "length of a segment: expected 0.08 to 10 m"),
        ((*TRAIN, "--out", "X", "--length", "3"), "out of reach in five strikes: the fastest blow (0.8 m/s) moves"),
        ((*TRAIN, "--out", "X", "--model", "nowhere"), "nowhere"),
        (("rollout", "POLICY", "--on", "nylon-lo"), "did you mean 'nylon-low'"),
        (("rollout", "POLICY", "--routes", "7"), "expected one of 1, 2, 3 or a file"),
        (("rollout", "POLICY", "--routes", "1", "gone.yaml"), "gone.yaml"),
        (("rollout", "nowhere"), "nowhere"),
        (("rollout", "POLICY", "--threads", "2"), "--threads is for models; stand-in nylon-low has no use for it"),
        (("rollout", "POLICY", "2"), "routes follow --routes"),
        (("rollout", "POLICY", "--animation", "trials.mp4"), "expected a name that ends in .gif"),
        (("rollout", "POLICY", "--trials", "1000000000"), "expected 1 to 100000"),
        (("rollout", "SQUARE"), "the policy's scene: "),  # a box that has a radius
    ],
)
def test_mistakes_end_in_one_line(policy, tmp_path, arguments, said):
    places = {"X": tmp_path / "X", "POLICY": policy, "SQUARE": tmp_path / "square"}
    shutil.copytree(policy, places["SQUARE"])
    header = (policy / "policy.json").read_text()
    reseal(places["SQUARE"] / "policy.json", **json.loads(header.replace('"shape": "semi-cylinder"', '"shape": "box"')))
    code, _, err = carom(*(places.get(a, a) for a in arguments))
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
