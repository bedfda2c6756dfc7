"""Which folders are strikes and which are free bodies, and that a faulty folder gets its own message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_recordings import toss, two_discs

from carom import recipes
from carom.core.errors import SceneError
from carom.reality import sample_commands, standin
from carom.recordings import Recordings, read, write
from carom.recordings.kind import kind_of


@pytest.fixture(scope="module")
def strikes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kind") / "strikes"
    lab = standin("resin-low", "square", seed=5)
    lab.execute(sample_commands(lab.shape, 3, np.random.default_rng(0)), folder, seed=1)
    return read(folder)


def with_bodies(recordings, **changes):
    """The recordings with other bodies in the header and in every file."""
    bodies = {name: replace(body, **changes.get(name, {})) for name, body in recordings.bodies.items()}
    trajectories = tuple(replace(t, bodies=bodies) for t in recordings.trajectories)
    return replace(recordings, bodies=bodies, trajectories=trajectories)


def folder_of(*trajectories):
    return Recordings(Path("folder"), trajectories[0].bodies, trajectories)


def test_a_tool_that_sets_a_resting_target_going_strikes(strikes):
    assert kind_of(strikes) == "strikes"


def test_tossed_bodies_are_free():
    assert kind_of(folder_of(*(toss(seed=s, name=f"toss_{s}.csv") for s in range(3)))) == "free bodies"


def test_two_pucks_on_the_move_are_free_though_one_is_called_striker():
    assert kind_of(folder_of(*(two_discs(seed=s)[0] for s in range(3)))) == "free bodies"


def test_bodies_that_nothing_strikes_are_free(strikes):
    alone = [
        replace(
            t,
            bodies={"block": t.bodies["block"]},
            position_world={"block": t.position_world["block"]},
            quaternion_world={"block": t.quaternion_world["block"]},
        )
        for t in strikes.trajectories
    ]
    assert kind_of(folder_of(*alone)) == "free bodies"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"block": {"shape": None}}, "body 'block' has no shape"),
        ({"striker": {"shape": None}}, "no striker with a shape"),
        ({"striker": {"role": "tool"}}, r"a strike scene needs one \(role: striker\)"),
        ({"striker": {"role": "target"}, "block": {"role": "striker"}}, None),
    ],
)
def test_a_faulty_folder_of_strikes_says_what_is_wrong_with_it(strikes, tmp_path, change, said):
    faulty = with_bodies(strikes, **change)
    if said is None:  # roles swapped: the "target" moves from the start, so nothing here tells strikes from pucks
        assert kind_of(faulty) == "free bodies"
        return
    assert kind_of(faulty) == "strikes"
    write(tmp_path / "faulty", faulty)
    with pytest.raises(SceneError, match=said):
        recipes.identify(tmp_path / "faulty", method="grid")


def test_shared_recordings_are_told_apart(shared_data):
    for name, kind in (("two_puck/rigid", "free bodies"), ("two_puck/spring", "free bodies")):
        assert kind_of(read(shared_data / name)) == kind
