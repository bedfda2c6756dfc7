"""Which bodies of a foreign file are meant, what they are called here, and their roles: what `--map` says.

    LEFT=ROLE            a body or a marker of the file, with its role          "Rigid Body 1=target"
    LEFT=NAME:ROLE       the same, called NAME here                             "Rigid Body 1=block:target"
    NAME[:ROLE]=A,B,C    what a body is made of: columns, a data set, markers   "block:target=m1,m2,m3"

`*` and `?` stand for any letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from carom.core.errors import RecordingError, short, unknown_name
from carom.recordings.formats.take import NoPosesError, Take
from carom.scenes.shapes import ROLES

#: words in a body's name that tell its role, where nobody says it
HINTS: Mapping[str, tuple[str, ...]] = {
    "striker": ("striker", "hammer", "club", "bat", "racket", "paddle", "mallet", "cue", "hitter", "stick"),
    "tool": ("tool", "pusher", "gripper", "finger", "ee", "eef", "tcp", "effector", "tip", "poker", "probe"),
    "arm": ("arm", "robot", "link", "panda", "kuka", "iiwa", "ur5", "ur10", "hand"),
    "ground": ("ground", "floor", "table", "board"),
}
#: last parts of topics that name no body
NO_NAMES = (
    "pose",
    "poses",
    "pose_stamped",
    "odom",
    "odometry",
    "transform",
    "transforms",
    "tf",
    "state",
    "ground_truth",
)
FEWEST = 3  #: markers that make a body


@dataclass(frozen=True)
class Named:
    """What a user says of one body."""

    left: str
    right: tuple[str, ...]  #: names of parts; empty where the right side was a role or a new name only
    name: str | None  #: here
    role: str | None

    @property
    def either(self) -> bool:
        """Whether it may mean a new name for a body of the file as well as the one part that a body is made of."""
        return len(self.right) == 1 and self.role is None


@dataclass(frozen=True)
class Chosen:
    """A body to be imported: a track of a take, or markers that make one."""

    name: str  #: here
    role: str | None  #: None: nobody said it
    track: str | None  #: in the file
    markers: tuple[str, ...] = ()


def parse_map(text: str) -> Named:
    """One `--map`.

    >>> parse_map("Rigid Body 1=target")
    Named(left='Rigid Body 1', right=(), name=None, role='target')
    >>> parse_map("block:target=2-8").right
    ('2-8',)
    """
    left, equals, right = (part.strip() for part in text.partition("="))
    if not equals or not left or not right:
        raise RecordingError(
            f"{short(text)!r}: expected BODY=ROLE, BODY=NAME:ROLE or NAME=COLUMNS, such as 'Box=target'; "
            f"roles: {', '.join(ROLES)}"
        )
    if right in ROLES:
        return Named(left, (), None, right)
    name, colon, role = right.rpartition(":")
    if colon and role in ROLES and "," not in right:
        return Named(left, (), name.strip(), role)
    parts = tuple(part.strip() for part in _split(right) if part.strip())
    name, colon, role = left.rpartition(":")
    if colon and role in ROLES:
        return Named(name.strip(), parts, name.strip(), role)
    return Named(left, parts, left, None)


def _split(text: str) -> list[str]:
    """Parts between commas that are not within brackets."""
    return re.split(r",(?![^\[]*\])", text)


def sources_of(wanted: Sequence[Named]) -> dict[str, tuple[str, ...]]:
    """What readers of tables need to know: body -> names of what it is made from."""
    return {each.left: each.right for each in wanted if each.right}


def chosen_bodies(
    path: Path, take: Take, wanted: Sequence[Named], said: list[str], *, alone: bool = True
) -> list[Chosen]:
    """The bodies of a take that are meant, in the user's order; all of its tracks where he names none.

    Where a file is not `alone`, a name may be meant for another one; one of them at least must be this file's.
    """
    tracks = [track.name for track in take.tracks]
    markers = [name for cloud in take.markers for name in cloud.names]
    if not wanted:
        if not tracks:
            raise NoPosesError(f"{path}: {_no_bodies(take, markers)}")
        if markers:
            said.append(f"left out: {len(markers)} markers beside the bodies (name them with --map to have them)")
        return [Chosen(name, None, track) for name, track in zip(_brief(tracks), tracks, strict=True)]
    found: list[Chosen] = []
    missing: list[RecordingError] = []
    for each in wanted:
        try:
            found += _matching(path, each, tracks, markers)
        except NoPosesError:
            raise
        except RecordingError as error:
            if alone:
                raise
            missing.append(error)
    if missing and not found:
        raise missing[0]
    used = {chosen.track for chosen in found}
    rest = [name for name in tracks if name not in used]
    if rest:
        said.append(f"left out: bodies that --map does not name: {', '.join(map(short, rest[:12]))}")
    named: dict[str, Chosen] = {}
    for chosen in found:
        if chosen.name in named:
            raise RecordingError(
                f"{path}: two bodies would be called '{short(chosen.name)}'; name them with --map 'BODY=NAME:ROLE'"
            )
        named[chosen.name] = chosen
    return list(named.values())


def _matching(path: Path, each: Named, tracks: Sequence[str], markers: Sequence[str]) -> list[Chosen]:
    if each.right and each.left in tracks and not (each.either and _like(each.right[0], markers)):
        made = each.name if each.name and each.role else None
        if each.either and not each.role and each.left not in each.right:
            made = each.right[0]  # a new name, or the columns that the reader has made the body from
            made = each.left if each.right[0].isdigit() or "[" in made else made
        return [Chosen(plain(made or each.left), each.role, each.left)]
    if each.right:
        parts = [m for part in each.right for m in _like(part, markers)]
        missing = [part for part in each.right if not _like(part, markers)]
        if missing and each.either and _like(each.right[0], tracks):
            return [Chosen(plain(each.left), each.role, each.right[0])]  # written the other way round
        if missing:
            known = [*tracks, *markers]
            raise RecordingError(f"{path}: --map {short(each.left)}: {unknown_name('part', missing[0], known)}")
        return [Chosen(plain(each.left), each.role, None, tuple(dict.fromkeys(parts)))]
    bodies, points = _like(each.left, tracks), _like(each.left, markers)
    if not bodies and not points:
        known = [*tracks, *markers]
        if not known:
            raise NoPosesError(f"{path}: no bodies and no markers; --map names '{short(each.left)}'")
        raise RecordingError(f"{path}: --map: {unknown_name('body', each.left, known)}")
    if bodies:
        several = len(bodies) > 1 and each.name is not None
        if several:
            raise RecordingError(f"{path}: --map '{short(each.left)}' gives {len(bodies)} bodies one name; map each")
        return [Chosen(plain(each.name or name), each.role, name) for name in bodies]
    if each.name is not None and len(points) > 1:
        return [Chosen(plain(each.name), each.role, None, tuple(points))]
    return [Chosen(plain(each.name or name), each.role, None, (name,)) for name in points]


def _like(pattern: str, names: Sequence[str]) -> list[str]:
    """Names that are this one, or that it stands for."""
    if pattern in names:
        return [pattern]
    same = [name for name in names if name.lower() == pattern.lower()]
    return same or [name for name in names if fnmatchcase(name, pattern)]


def plain(name: str) -> str:
    """A body's name as columns of ours can have it.

    >>> plain("/vicon/block.1/pose"), plain("Rigid Body 1")
    ('vicon_block_1_pose', 'Rigid Body 1')
    """
    return " ".join(re.sub(r"[^\w \-+]+", "_", name).strip("_ ").split())[:60] or "body"


def _brief(tracks: Sequence[str]) -> list[str]:
    """Names of ours for all tracks; of a topic's name the part that tells, if it still tells all apart.

    >>> _brief(["/vicon/block/pose", "/vicon/tool/pose"])
    ['block', 'tool']
    """
    parts = [[part for part in name.split("/") if part and part.lower() not in NO_NAMES] for name in tracks]
    last = [plain(part[-1] if part else name) for part, name in zip(parts, tracks, strict=True)]
    names = last if len(set(last)) == len(tracks) else [plain(name) for name in tracks]
    return [name if names.count(name) == 1 else f"{name}_{place}" for place, name in enumerate(names)]


def _no_bodies(take: Take, markers: Sequence[str]) -> str:
    """What a take without bodies holds, and how to make some of it."""
    if not markers:
        signals = ", ".join(short(signal.name) for signal in take.signals[:12])
        more = f" and {len(take.signals) - 12} more" if len(take.signals) > 12 else ""
        return (
            f"no bodies in this {take.format}, but signals: {signals}{more}; make a body of three or seven of them "
            "with --map 'NAME:ROLE=COLUMN,COLUMN,COLUMN'"
            if signals
            else f"no rigid bodies and no markers in this {take.format}"
        )
    listed = ", ".join(map(short, markers[:12])) + (f" and {len(markers) - 12} more" if len(markers) > 12 else "")
    subjects = [name.rpartition(":")[0] for name in markers]
    shared = next((s for s in subjects if s and subjects.count(s) >= FEWEST), None)
    example = f"{plain(shared)}:target={shared}:*" if shared else f"NAME:target={','.join(markers[:FEWEST])}"
    return (
        f"no rigid bodies, but {len(markers)} markers: {listed}; make a body of those that are stuck to it with "
        f"--map {example!r}, or follow one as a point with --map '{markers[0]}=target'"
    )


def roles_of(names: Sequence[str], said: Mapping[str, str | None], told: list[str]) -> dict[str, str]:
    """The role of each body: as somebody says it, else as its name sounds, else a target's."""
    found: dict[str, str] = {}
    guessed: list[str] = []
    for name in names:
        role = said.get(name)
        if role is None:
            role = _hinted(name) if len(names) > 1 else "target"
            guessed.append(f"{name} {role}")
        found[name] = role
    if "target" not in found.values() and guessed:
        first = guessed[0].rpartition(" ")[0]
        found[first] = "target"
        guessed[0] = f"{first} target"
    if guessed and len(names) == 1:
        told.append(f"{names[0]} is the target, as the only body (say --map 'BODY=ROLE' where that is wrong)")
    elif guessed:
        told.append(f"roles from names: {', '.join(guessed)} (say --map 'BODY=ROLE' where that is wrong)")
    return found


def _hinted(name: str) -> str:
    words = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    return next((role for role, hints in HINTS.items() if words & set(hints)), "target")
