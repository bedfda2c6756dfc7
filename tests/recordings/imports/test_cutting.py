"""One long take becomes one recording per event, and what a hand did in between is left out."""

from __future__ import annotations

import numpy as np
import pytest
from long_takes import LongTake

from carom.recordings import find_impacts
from carom.recordings.imports.cutting import between, cut
from carom.recordings.pushes import push_of
from carom.scenes.shapes import Body, Shape

SHAPES = {
    "block": Body("block", "target", Shape("box", size=(0.2, 0.2, 0.1)), mass=0.5),
    "tool": Body("tool", "striker", Shape("sphere", radius=0.015)),
}
BARE = {"block": Body("block", "target"), "tool": Body("tool", "tool")}


def take_of(*kinds: str) -> LongTake:
    take = LongTake()
    for number, kind in enumerate(kinds):
        getattr(take, kind)()
        take.rest(0.5)
        take.put_back((0.05 * number, -0.02 * number, 0.05))
        take.rest(0.6)
    return take


@pytest.mark.parametrize("shapes", [SHAPES, BARE], ids=["with shapes", "without"])
@pytest.mark.parametrize("kind", ["strike", "toss", "push"])
def test_every_event_is_found_and_hands_are_not(kind, shapes):
    take = take_of(kind, kind, kind)
    found = cut(take.trajectory(shapes))
    assert [piece.event for piece in found.pieces] == [kind] * 3
    for piece, (begin, end) in zip(found.pieces, take.events, strict=True):
        assert piece.begin <= begin + (0.15 if kind == "toss" else 0.0)
        assert piece.end >= end
    for piece, following in zip(found.pieces[:-1], found.pieces[1:], strict=True):
        assert piece.end <= following.begin
    assert sum(n for reason, n in found.others.items() if "carried" in reason) >= 2


def test_the_pieces_are_what_the_other_stages_read():
    take = take_of("strike", "strike")
    whole = take.trajectory(SHAPES)
    for number, piece in enumerate(cut(whole).pieces):
        (impact,) = find_impacts(between(whole, piece.begin, piece.end, f"hit_{number}.csv"))
        assert impact.kind == "strike"
        assert np.linalg.norm(impact.post.velocity_world[:2]) == pytest.approx(1.04, rel=0.03)
    take = take_of("push", "push")
    whole = take.trajectory(SHAPES)
    for piece in cut(whole).pieces:
        push = push_of(between(whole, piece.begin, piece.end, "push.csv"))
        assert push is not None
        assert push.distance == pytest.approx(0.09, rel=0.15)


def test_only_one_kind_goes_into_a_folder():
    take = take_of("strike", "strike", "push")
    found = cut(take.trajectory(SHAPES))
    assert [piece.event for piece in found.pieces] == ["strike", "strike"]
    assert any("a push" in reason for reason in found.others)
    assert [piece.event for piece in cut(take.trajectory(SHAPES), "push").pieces] == ["push"]


def test_a_toss_begins_when_it_is_free():
    take = take_of("toss")
    whole = take.trajectory(BARE)
    (piece,) = cut(whole).pieces
    flown = between(whole, piece.begin, piece.begin + 0.3, "flight")
    bend = np.polyfit(flown.time - flown.time[0], flown.position_world["block"][:, 2], 2)[0]
    assert 2 * bend == pytest.approx(-9.81, rel=0.03)


def test_nothing_is_found_where_nothing_happens():
    take = LongTake()
    take.rest(3.0)
    assert cut(take.trajectory(SHAPES)).pieces == ()
    take.put_back((0.3, 0.1, 0.05))
    take.rest(1.0)
    found = cut(take.trajectory(SHAPES))
    assert found.pieces == ()
    assert found.others
