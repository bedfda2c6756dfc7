"""Task files of a user's own MJCF: what they mean, and one line for every mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from carom.core.errors import CaromError
from carom.engines.pushing import push_simulator
from carom.envs.pushing import PushingBatch
from carom.envs.pushing.files import fingerprint_of, load_task
from carom.scenes.pushing import OWN

CELL = """
<mujoco>
  <option timestep="0.005" cone="elliptic"/>
  <worldbody>
    <geom name="table" type="plane" size="1 1 0.1"/>
    <body name="puck" pos="0.1 0 0.03"><freejoint/><geom type="cylinder" size="0.04 0.03" mass="0.3"/></body>
    <body name="finger">
      <joint name="cart_x" type="slide" axis="1 0 0"/><joint name="cart_y" type="slide" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0.02 0 0 0.1" size="0.01" mass="0.3"/><site pos="0 0 0.01"/>
    </body>
  </worldbody>
  <actuator>
    <position joint="cart_x" kp="200" kv="15" ctrlrange="-0.4 0.4"/>
    <position joint="cart_y" kp="200" kv="15" ctrlrange="-0.4 0.4"/>
  </actuator>
</mujoco>
"""
TASK = """
format: carom-pushing/1
mjcf: cell.xml
roles: {target: puck, tool: finger}
start: {centre: [0.12, 0], far: 0.04}
goal: {centre: [0.12, 0], far: 0.15}
border: {far: 0.4}
"""


def written(tmp_path: Path, text: str = TASK, cell: str = CELL) -> Path:
    (tmp_path / "cell.xml").write_text(cell)
    (tmp_path / "mine.yaml").write_text(text)
    return tmp_path / "mine.yaml"


def test_a_task_file_is_a_task_that_can_be_pushed(tmp_path: Path) -> None:
    task = load_task(written(tmp_path, TASK + "turn: 60\nsteps: 40\nreach: 0.02\n"))
    assert (task.steps, task.reach, task.turns, task.acts) == (40, 0.02, True, 2)
    assert task.places.turn == pytest.approx(np.pi / 3)
    batch = PushingBatch(task, push_simulator(task.scene), count=4)
    for _ in range(10):
        outcome = batch.step(np.tile([1.0, 0.0], (4, 1)))
    assert (outcome.observation[:, 0] > 0.3).all()  # the finger has gone ahead
    assert not load_task(written(tmp_path)).turns
    assert [load_task(name).scene.name for name in OWN] == list(OWN)


def test_the_fingerprint_tells_other_scenes_apart(tmp_path: Path) -> None:
    one = fingerprint_of(load_task(written(tmp_path)))
    other = fingerprint_of(load_task(written(tmp_path, cell=CELL.replace('mass="0.3"', 'mass="0.4"'))))
    assert {key for key in one if one[key] != other[key]} == {"mjcf_sha256"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TASK.replace("carom-pushing/1", "carom-pushing/2"), r"mine.yaml: expected format: carom-pushing/1"),
        (TASK + "border: {far: 1}\n", "line 8: .*border"),
        (TASK + "step: 3\n", r"mine.yaml, line 8: unknown key 'step' \(did you mean 'steps'\?\)"),
        (TASK.replace("far: 0.15", "fat: 0.15"), "line 6: key 'goal.far' is missing"),
        (TASK.replace("tool: finger", "tool: thumb"), "role tool: unknown body 'thumb'"),
        (TASK.replace("cell.xml", "../cell.xml"), "mine.yaml: .*cell.xml"),
        (TASK.replace("far: 0.4", "far: 0.05"), r"border: \d+% of the starts lie outside of it"),
        (TASK.replace("far: 0.15", "far: 0.01"), "goal: some starts have no place in it"),
        (TASK.replace("far: 0.4", "far: 0.4, near: 0.5"), "border: expected near below far, got 0.5 and 0.4"),
        ("[1]", "expected a mapping that starts with 'format: carom-pushing/1'"),
    ],
)
def test_one_line_for_every_mistake(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CaromError, match=message) as caught:
        load_task(written(tmp_path, text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("joint", "message"),
    [
        ('<joint type="ball"/>', "body 'finger' has a ball joint; pushing needs hinges and slides"),
        ('<joint axis="0 0 1"/>', "a joint of body 'finger' has no name"),
    ],
)
def test_joints_that_pushing_does_not_know_are_refused(tmp_path: Path, joint: str, message: str) -> None:
    cell = CELL.replace('<geom type="capsule"', joint + '<geom type="capsule"')
    with pytest.raises(CaromError, match=message):
        load_task(written(tmp_path, cell=cell))


def test_what_is_no_task_file_is_told(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(CaromError, match=r"cell.xml is an MJCF.*write cell.yaml beside it: \{format: carom-pushing/1"):
        load_task(tmp_path / "cell.xml")
    with pytest.raises(CaromError, match=r"unknown scene of pushing 'planar-cub' \(did you mean 'planar-cube'"):
        load_task("planar-cub")
    with pytest.raises(CaromError, match="there is no such file"):
        load_task(tmp_path / "none.yaml")
