"""Recordings beside engines: strikes of a stand-in and of a robot, tosses; poses, impulses and errors are physics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from free_recordings import tosses_folder

from carom.core.errors import CaromError
from carom.reality import sample_commands, standin
from carom.recordings import read
from carom.view import Show, opened
from carom.view.shown import RECORDED, errors_of, poses_at


@pytest.fixture(scope="module")
def strikes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab") / "strikes"
    lab = standin("resin-low", "square", seed=1)
    return Path(lab.execute(sample_commands(lab.bodies["block"].solid, 3, np.random.default_rng(0)), folder, seed=2))


@pytest.fixture(scope="module")
def shown(strikes: Path) -> Show:
    return opened(strikes)


def test_a_folder_of_strikes_is_shown_beside_mujoco(shown: Show, strikes: Path) -> None:
    assert shown.names == ("hit_000.csv", "hit_001.csv", "hit_002.csv")
    take = shown.take(0)
    assert [t.name for t in take.tracks] == [RECORDED, "MuJoCo, default contact"]
    assert any("simulated strikes are planar" in words.lower() for words in take.words)
    real, made = take.tracks
    recording = read(strikes).trajectories[0]
    row = int(np.argmin(np.abs(recording.time - recording.time[0] - (real.time[5] - real.time[0]))))
    assert np.allclose(real.position[5, real.bodies.index("block")], recording.position_world["block"][row], atol=1e-9)
    assert made.bodies == ("block", "striker")
    assert made.time[0] == pytest.approx(-0.15, abs=0.01)  # contact is at zero in both


def test_simulated_and_recorded_bodies_agree_until_the_contact(shown: Show) -> None:
    for index in range(3):
        take = shown.take(index)
        (time, by), before = errors_of(take)["MuJoCo, default contact"], -0.01
        assert by["block"][0][time < before].max() < 1.5e-3
        assert set(by) == {"block"}  # a striker is led, not predicted
        assert by["block"][0][-1] > by["block"][0][0]  # its default contact is not this one


def test_impulses_act_where_the_striker_touches_and_push_the_way_the_block_goes(shown: Show, strikes: Path) -> None:
    take = shown.take(0)
    real = next(a for a in take.arrows if a.track == RECORDED)
    track = take.recorded
    assert track is not None
    block = track.bodies.index("block")
    now = poses_at(track.time, track.position, track.quaternion, 0.0)[0]
    later = poses_at(track.time, track.position, track.quaternion, 0.1)[0]
    away = later[block] - now[block]
    assert float(away[:2] @ real.vector[:2]) > 0.95 * np.linalg.norm(away[:2]) * np.linalg.norm(real.vector[:2])
    assert np.linalg.norm(real.point[:2] - now[block, :2]) < take.shapes["block"].reach
    # momentum: mass times the speed that the block has at once
    start = poses_at(track.time, track.position, track.quaternion, 0.03)[0][block]
    speed = np.linalg.norm((later[block] - start)[:2]) / 0.07
    mass = float(read(strikes).bodies["block"].mass or 0)
    assert 0.9 * mass * speed < np.linalg.norm(real.vector) < 1.6 * mass * speed  # friction has slowed it since


def test_a_toss_starts_where_it_was_and_its_contacts_change_its_momentum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carom.view.bodies.LEAST", 0.0)  # small arrows too
    show = opened(tosses_folder(tmp_path / "tosses", 2, seed=3))
    take = show.take(0)
    made = next(t for t in take.tracks if t.name != RECORDED)
    _, by = errors_of(take)[made.name]
    (away, angle) = next(iter(by.values()))
    assert away[:3].max() < 1e-3
    assert angle[:3].max() < 0.02
    # contacts change the momentum that gravity does not
    mass = float(read(tmp_path / "tosses").bodies[made.bodies[0]].mass or 0)
    height, time = made.position[:, 0, 2], made.time
    first, last = np.diff(height)[[0, -1]] / np.diff(time)[[0, -1]]
    own = [a for a in take.arrows if a.track == made.name]
    given = mass * (last - first + 9.81 * (time[-1] - time[1]))
    assert sum(a.vector[2] for a in own) == pytest.approx(given, rel=0.05)
    assert all(abs(a.point[2] - float(take.ground or 0)) < 0.02 for a in own)


def test_what_cannot_be_shown_is_refused_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(CaromError, match="expected recordings, an adapted model") as said:
            opened(path)
        assert "\n" not in str(said.value)


def test_a_robots_strikes_are_shown_as_they_were_recorded(shared_data: Path) -> None:
    show = opened(shared_data / "robot_hits" / "D1")
    take = show.take(3)
    track = take.recorded
    assert track is not None
    box = track.bodies.index("box")
    place = poses_at(track.time, track.position, track.quaternion, 0.8)[0][box]
    before = poses_at(track.time, track.position, track.quaternion, -0.1)[0][box]
    assert place[1] - before[1] > 0.1  # struck along +y
    real = next(a for a in take.arrows if a.track == RECORDED)
    assert real.vector[1] > 3 * abs(real.vector[0])
    assert take.ground == pytest.approx(float(before[2]) - 0.116, abs=0.01)
