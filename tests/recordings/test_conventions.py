"""Quaternions that are w-last or inverted are found, named and not switched; where nothing tells, nothing is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from synthetic_recordings import CUBE, two_discs

from carom.core.rotations import about_z, axes, multiply, unit
from carom.reality import sample_commands, standin
from carom.recipes import check as check_recipe
from carom.recordings import Recordings, Trajectory, Units, check, read, write
from carom.recordings.checks.conventions.hypotheses import CHANGES, read_as, scattered
from carom.recordings.checks.conventions.verdict import check_conventions, conventions
from carom.recordings.formats.folder import read_as_drawn
from carom.scenes.shapes import Body, Shape

WRONG = CHANGES[1:]


def misread(quaternion, change):
    """The four numbers as a user with another convention writes them under w-first names."""
    if quaternion is None:
        return None
    numbers = quaternion * [1, -1, -1, -1] if "inverted" in change else quaternion
    return numbers[:, [1, 2, 3, 0]] if "w-last" in change else numbers


def changed(recordings, bodies, change):
    def one(trajectory):
        quaternions = {n: misread(q, change) if n in bodies else q for n, q in trajectory.quaternion_world.items()}
        return replace(trajectory, quaternion_world=quaternions)

    return replace(recordings, trajectories=tuple(one(t) for t in recordings.trajectories))


def found(recordings):
    """What is said, by body: the change that the words stand for."""
    said = {}
    for seen in check_conventions(conventions(recordings)):
        body, text = seen.text.split(":", 1)
        last, inverted = "x, y, z, w under w-first names" in text, "body from world" in text
        assert "cannot be told" not in text
        said[body] = {(1, 0): "w-last", (0, 1): "inverted", (1, 1): "w-last and inverted"}[(last, inverted)]
    return said


def tumbling(size, soft=0.003):
    """Eight boxes that tumble on a floor, in MuJoCo."""
    body = Body("cube", "target", Shape("box", size=size), mass=0.4)
    half = " ".join(f"{s / 2}" for s in size)
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.0005"/><worldbody><geom type="plane" size="5 5 .1"/>
        <body><freejoint/><geom type="box" size="{half}" mass=".4" friction=".3" solref="{soft} 1"/></body>
        </worldbody></mujoco>"""
    )
    data, rng, made = mujoco.MjData(model), np.random.default_rng(3), []
    for number in range(8):
        mujoco.mj_resetData(model, data)
        data.qpos[:3], data.qpos[3:] = [0, 0, 0.25], unit(rng.normal(size=4))
        data.qvel[:] = [*rng.normal(0, 0.5, 2), 0.0, *rng.normal(0, 6, 3)]
        poses = []
        for _ in range(180):
            poses.append(data.qpos.copy())
            for _ in range(13):
                mujoco.mj_step(model, data)
        pose = np.array(poses)
        pose[:, :3] += 2e-4 * rng.standard_normal((len(pose), 3))
        turn = unit(pose[:, 3:] + 3e-4 * rng.standard_normal((len(pose), 4)))
        name = f"toss_{number}.csv"
        time = 0.0065 * np.arange(len(pose))
        made.append(Trajectory(name, Path(name), time, {"cube": pose[:, :3]}, {"cube": turn}, {"cube": body}))
    return Recordings(Path("tosses"), {"cube": body}, tuple(made))


@pytest.fixture(scope="module")
def tosses():
    return tumbling((0.1, 0.1, 0.1))


@pytest.fixture(scope="module", params=["semi-cylinder", "square"])
def strikes(request, tmp_path_factory):
    """Ten strikes of a stand-in, whose blocks only yaw."""
    folder = tmp_path_factory.mktemp(request.param)
    reality = standin("nylon-low", request.param, seed=1)
    reality.execute(sample_commands(reality.shape, 10, np.random.default_rng(2)), folder, seed=5)
    return read_as_drawn(folder)[0]


def test_the_four_ways_undo_what_was_done_to_the_numbers():
    numbers = unit(np.random.default_rng(0).normal(size=(5, 4)))
    for frame in ("z-up", "y-up"):
        quarter = np.sqrt(0.5) * np.array([1.0, 1.0, 0.0, 0.0])
        in_world = numbers if frame == "z-up" else multiply(quarter, numbers)  # as the reader turns them
        for way, change in enumerate(CHANGES):
            written = misread(numbers, change)
            as_read = written if frame == "z-up" else multiply(quarter, written)
            assert np.allclose(read_as(as_read, frame)[way], in_world)


def test_scatter_is_weighed_as_the_integral_says():
    rng = np.random.default_rng(1)
    values, columns = rng.normal(size=4), rng.normal(size=(4, 2))
    sigma = np.geomspace(0.1, 10, 25)
    direct = []
    for s in sigma:
        cov = s**2 * np.eye(4) + columns @ np.diag([4.0, 0.25]) @ columns.T
        direct.append(
            -0.5 * (values @ np.linalg.solve(cov, values) + np.linalg.slogdet(cov)[1] + 4 * np.log(2 * np.pi))
        )
    expected = np.log(np.mean(np.exp(direct)))
    assert scattered(values, columns, [2.0, 0.5], least=0.1, most=10.0) == pytest.approx(expected)


def test_tumbling_cubes_show_every_change(tosses):
    assert found(tosses) == {}
    for change in WRONG:
        assert found(changed(tosses, ["cube"], change)) == {"cube": change}


def test_a_soft_floor_is_no_alarm():
    """Corners that sink in by a centimetre fit no convention well: then nothing is said."""
    soft = tumbling((0.1, 0.1, 0.1), soft=0.02)
    for change in CHANGES:
        assert set(found(changed(soft, ["cube"], change)).values()) <= {change} - {"as declared"}


def test_strikes_show_every_change(strikes):
    assert found(strikes) == {}
    for change in WRONG:
        for bodies in (["block"], ["striker"], ["block", "striker"]):
            assert found(changed(strikes, bodies, change)) == dict.fromkeys(bodies, change)


def test_the_sign_of_a_yaw_is_told_by_blows_only(strikes):
    seen = conventions(strikes)["block"]
    assert seen.evidence["table"]["inverted"] == pytest.approx(0, abs=1)  # upright both ways
    assert seen.evidence["table"]["w-last"] < -50
    assert seen.evidence["blow"]["inverted"] < -10


def with_y_up(tosses, change):
    """As the reader gives a y-up folder with this change in its files: it turns whatever numbers it finds."""
    back = np.sqrt(0.5) * np.array([1.0, -1.0, 0.0, 0.0])
    made = []
    for trajectory in tosses.trajectories:
        written = misread(multiply(back, trajectory.quaternion_world["cube"]), change)
        made.append(replace(trajectory, quaternion_world={"cube": multiply(back * [1, -1, -1, -1], written)}))
    return replace(tosses, trajectories=tuple(made), units=Units(frame="y-up"))


def test_a_world_with_y_up():
    bricks = tumbling((0.12, 0.09, 0.06))
    for change in CHANGES:
        assert found(with_y_up(bricks, change)) == ({} if change == "as declared" else {"cube": change})


def test_a_cube_in_a_world_with_y_up_shows_less(tosses):
    """There, w-last and inverted together are a quarter turn about the vertical and one of the cube."""
    assert found(with_y_up(tosses, "as declared")) == {}
    assert found(with_y_up(tosses, "w-last and inverted")) == {}
    assert conventions(with_y_up(tosses, "as declared"))["cube"].untold == ("w-last and inverted",)
    for change in ("w-last", "inverted"):
        (seen,) = check_conventions(conventions(with_y_up(tosses, change)))
        assert "which of the two cannot be told from these recordings" in seen.text


def test_silence_where_nothing_tells():
    """Smooth discs that spin evenly: the sign of their yaw has no consequence, so nothing is said either way."""
    made = tuple(replace(two_discs(seed=s, orientation=True)[0], name=f"pair_{s}.csv") for s in range(6))
    pairs = Recordings(Path("pairs"), made[0].bodies, made)
    assert found(pairs) == {}
    for bodies in (["a"], ["b"], ["a", "b"]):
        assert found(changed(pairs, bodies, "inverted")) == {}
    assert "inverted" in conventions(pairs)["b"].untold


def test_silence_on_bodies_that_never_turn():
    """A body that always lies the same way: no other convention is better, and none is proven."""
    time = np.arange(0.0, 1.0, 0.005)
    rng = np.random.default_rng(0)
    turn = np.tile(about_z(0.0), (len(time), 1))
    path = np.column_stack([0.3 * np.clip(time - 0.3, 0, 0.4), 0 * time, np.full(len(time), 0.05)])
    made = [
        Trajectory(
            f"{i}.csv",
            Path(f"{i}.csv"),
            time,
            {"cube": path + 1e-4 * rng.standard_normal(path.shape)},
            {"cube": turn},
            {"cube": CUBE},
        )
        for i in range(10)
    ]
    still = Recordings(Path("still"), {"cube": CUBE}, tuple(made))
    for change in CHANGES:
        assert found(changed(still, ["cube"], change)) == {}


def test_an_odd_frame_is_no_alarm(tosses, strikes):
    """Frames that were not drawn along the shape, the same way in every recording, are no other convention."""
    turn = unit(np.array([0.8, 0.3, -0.4, 0.2]))
    for recordings, body in ((tosses, "cube"), (strikes, "striker")):
        made = tuple(
            replace(t, quaternion_world={**t.quaternion_world, body: multiply(t.quaternion_world[body], turn)})
            for t in recordings.trajectories
        )
        assert found(replace(recordings, trajectories=made)) == {}


def test_the_message_says_what_how_sure_and_what_to_do(tmp_path, tosses):
    write(tmp_path / "last", replace(changed(tosses, ["cube"], "w-last"), path=tmp_path / "last"))
    report = check(tmp_path / "last")
    (finding,) = [f for f in report.findings if f.code == "quaternion-convention"]
    assert finding.level == "error"
    assert not report.ok
    assert finding.message == (
        "cube: the quaternion columns look like x, y, z, w under w-first names (more than 99.9 % sure): rename the "
        "columns of cube; they were read as declared, nothing was switched"
    )
    told = json.loads(json.dumps(check_recipe(tmp_path / "last").to_dict()))["conventions"]["cube"]
    assert told["found"] == "w-last"
    assert told["probability"]["w-last"] > 0.999
    assert told["evidence"]["ground"]["w-last"] > 20
    both = next(check_conventions(conventions(changed(tosses, ["cube"], "w-last and inverted"))))
    assert "and like body from world, not world from body" in both.text
    assert "rename the columns of cube, then change the signs of qx, qy and qz of cube" in both.text
    read_back = read(tmp_path / "last").trajectories[0].quaternion_world["cube"]
    assert np.allclose(
        np.abs(np.sum(read_back * misread(tosses.trajectories[0].quaternion_world["cube"], "w-last"), -1)), 1
    )


def test_upright_axes_of_a_yaw_read_w_last():
    """Why a pure yaw shows its order: read w-last, it tilts the body by as much as it turns."""
    z = axes(unit(misread(about_z(np.array([0.3])), "w-last")))[0, 2]
    assert np.arccos(z[2]) == pytest.approx(0.3)


SETS = {
    "robot_hits/D1": ("box", "tool"),
    "robot_hits/D2": ("box", "tool"),
    "cube_toss/recordings": ("cube",),
    "two_puck/rigid": ("b", "a"),
    "two_puck/spring": ("b", "a"),
    "two_puck/plastic": ("b", "a"),
}


@pytest.mark.parametrize("name", SETS)
def test_recorded_folders_of_ten(shared_data, name):
    """No alarm on recorded folders as they are; with changed numbers, the right body and the right change."""
    whole, _ = read_as_drawn(shared_data / name)
    rng, right, asked = np.random.default_rng(11), 0, 0
    for _ in range(4):
        rows = sorted(rng.permutation(len(whole))[:10])
        few = replace(whole, trajectories=tuple(whole.trajectories[i] for i in rows))
        assert found(few) == {}, "a false alarm"
        for bodies in {(body,) for body in SETS[name]} | {SETS[name]}:
            for change in WRONG:
                asked += 1
                right += found(changed(few, bodies, change)) == dict.fromkeys(bodies, change)
    assert right >= 0.95 * asked
