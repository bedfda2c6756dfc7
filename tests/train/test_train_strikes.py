"""Training in the real environment: what a checkpoint needs from it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from carom.core.errors import CaromError
from carom.envs.batch import StrikeBatch
from carom.envs.routes import route_from
from carom.envs.sb3 import StrikeVecEnv
from carom.envs.starts import SegmentStarts
from carom.scenes.strike import builtin
from carom.state import StrikeCommands, rotate
from carom.train import Policy, Preset, Training, run_trials, train

SCENE = builtin("semi-cylinder")
SMALL = Preset("small", "sac", envs=8, layers=(16,), learning_rate=1e-3, batch=32, warm_up=64, buffer=1000)


def strike(commands: StrikeCommands) -> tuple[np.ndarray, np.ndarray]:
    """A block that goes where the blow goes, farther for faster ones."""
    pose = commands.target_pose.copy()
    pose[:, :2] += 0.3 * rotate(commands.velocity, pose[:, 2])
    return pose, np.ones(len(pose), dtype=bool)


def environments(count: int) -> StrikeVecEnv:
    return StrikeVecEnv(StrikeBatch(strike, SCENE, starts=SegmentStarts(), count=count))


def trained(out: Path, stop: int | None = None) -> Policy:
    def progress(what: str, done: int, total: int) -> None:
        if stop is not None and stop <= done < total:
            raise RuntimeError("killed")

    return train(environments, out, Training(steps=400, preset=SMALL, seed=5), progress=progress)


def test_goes_on_in_the_middle_of_episodes_bit_for_bit(tmp_path: Path) -> None:
    straight = trained(tmp_path / "a")
    with pytest.raises(RuntimeError, match="killed"):
        trained(tmp_path / "b", stop=200)
    resumed = trained(tmp_path / "b")
    for a, b in zip(straight.weights, resumed.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert resumed.made_by["strikes_mean"]["shape"] == "semi-cylinder"  # told by the environment itself
    result = run_trials(resumed, strike, SCENE, route_from(2), trials=10)
    assert (result.strikes > 0).all()


def test_a_short_training_learns_too_and_torch_has_one_thread(tmp_path: Path) -> None:
    threads = []

    def progress(what: str, done: int, total: int) -> None:
        threads.append(torch.get_num_threads())

    before = torch.get_num_threads()
    policy = train(environments, tmp_path, Training(steps=48, preset=SMALL), progress=progress)
    assert policy.made_by["settings"]["warm_up"] == 24  # not 64
    assert policy.made_by["timing"]["updates"] > 0
    assert set(threads[:-1]) == {1}
    assert torch.get_num_threads() == before


def test_a_model_may_be_moved_but_not_changed(tmp_path: Path) -> None:
    def begun(folder: str, digest: str) -> Policy:
        made_by = {"folder": folder, "digest": digest}
        return train(environments, tmp_path, Training(steps=48, preset=SMALL), made_by=made_by)

    first = begun("here", "a")
    assert begun("there", "a").weights[0].tolist() == first.weights[0].tolist()
    with pytest.raises(CaromError, match=r"other settings: made_by\.digest a \(now b\)"):
        begun("here", "b")
