"""What `adapt` and `identify` say of bad recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_loops import quick_strikes
from synthetic_recordings import CUBE, Strike, toss

from carom import recipes
from carom.core.errors import CaromError
from carom.recipes.strikes import slides_of
from carom.recordings import Recordings, read, write


def folder_of(place, *trajectories):
    named = [replace(t, name=f"file_{i:02d}.csv") for i, t in enumerate(trajectories)]
    write(place, Recordings(place, named[0].bodies, tuple(named)))
    return place


def hits(count):
    return [
        Strike(striker_velocity=(0.05, 0.7 + 0.05 * s), velocity=(-0.1, 1.0 + 0.06 * s), duration=1.5).trajectory(s)
        for s in range(count)
    ]


def moved(t, body, way):
    return replace(t, position_world={**t.position_world, body: t.position_world[body] + way})


def test_adapt_refuses_bodies_deep_inside_each_other(tmp_path):
    place = folder_of(tmp_path / "in", *(moved(t, "tool", [0, 0.025, 0]) for t in hits(4)))
    with pytest.raises(CaromError, match=r"no usable strike \(file_00.csv: the outlines are 2\d mm inside each other"):
        recipes.adapt(None, place, tmp_path / "out")


def test_adapt_says_what_check_found_and_what_it_left_out(tmp_path):
    far = moved(hits(1)[0], "tool", [0.5, 0, 0])
    place, told = folder_of(tmp_path / "some", *hits(5), hits(1)[0], far), []
    with quick_strikes():
        result = recipes.adapt(None, place, tmp_path / "out", progress=lambda *said: told.append(said))
    assert result.facts["strikes"] == 6
    assert ("file_06.csv", "no body was near the target when it began to move") in result.dropped
    notes = list(result.notes())
    assert "file_06.csv was left out: no body was near the target when it began to move" in notes
    assert any(n.startswith("check: warning: file_05.csv: the same samples as in file_00.csv") for n in notes)
    assert result.to_dict()["dropped"] == dict(result.dropped)
    ground = result.facts["ground_friction"]  # held while the impacts were explained: as well known as slides tell
    assert ground["low"] < ground["value"] < ground["high"]
    assert (ground["low"], ground["high"]) == pytest.approx(slides_of(read(place)).interval())
    stages = list(dict.fromkeys(what for what, _, _ in told))
    assert stages[:2] == ["read recordings and base models", "correct base models"]
    assert sum(what.startswith("hybrid: ") for what in stages) == 4
    assert len(told) > 30  # each of them says how far it is
    assert all(0 <= done <= total for _, done, total in told)


def test_identify_takes_no_other_files_place(tmp_path):
    place = folder_of(tmp_path / "hits", *hits(4))
    for name, said in (("file_00.csv", "that ends in .yaml"), ("recordings.yaml", "would be overwritten")):
        before = (place / name).read_bytes()
        with pytest.raises(CaromError, match=f"{name}.*{said}"):
            recipes.identify(place, out=place / name)
        assert (place / name).read_bytes() == before
    tosses = folder_of(tmp_path / "tosses", *(toss(seed=s) for s in range(3)))
    with pytest.raises(CaromError, match=r"file_00.csv is a file; what is found of free bodies is written to a folder"):
        recipes.identify(tosses, out=tosses / "file_00.csv")


def flight(seed):
    t = np.arange(0.0, 0.2, 1 / 148)
    whole = toss(seed=seed)
    z = 0.6 + 0.02 * seed - 4.905 * t**2
    path = np.column_stack([0.5 * t, 0 * t, z]) + 2e-5 * np.random.default_rng(seed).standard_normal((len(t), 3))
    turn = whole.quaternion_world["cube"][: len(t)]
    return replace(whole, time=t, position_world={"cube": path}, quaternion_world={"cube": turn})


def resting(seed):
    whole = toss(seed=seed)
    path = np.tile([0.0, 0.0, 0.05], (len(whole), 1))
    path += 2e-5 * np.random.default_rng(seed).standard_normal(path.shape)
    return replace(whole, position_world={"cube": path}, bodies={"cube": CUBE})


@pytest.mark.parametrize("kind", [flight, resting])
def test_identify_refuses_recordings_without_contact(tmp_path, kind):
    place = folder_of(tmp_path / "in", *(kind(seed) for seed in range(4)))
    with pytest.raises(CaromError, match="it shows no contact: nothing lands, and no two bodies meet") as refused:
        recipes.identify(place)
    assert "\n" not in str(refused.value)


def test_identify_passes_the_warnings_of_check_on(tmp_path):
    place = folder_of(tmp_path / "in", *(Strike(duration=1.5).trajectory(0) for _ in range(3)))
    from carom.recipes.checking import findings_of

    assert any("the same samples as in file_00.csv" in line for line in findings_of(place))
