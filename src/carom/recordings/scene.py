"""The scene that recordings were made in, from their header and from how their striker approaches."""

from __future__ import annotations

import numpy as np

from carom.core.errors import ModelError, SceneError
from carom.recordings.kind import kind_of
from carom.recordings.strikes import approaches
from carom.recordings.trajectory import Recordings
from carom.scenes.load import scene_from_bodies
from carom.scenes.strike import StrikeScene
from carom.state import Strikes


def scene_of(recordings: Recordings) -> StrikeScene:
    """The strike scene of these recordings. A flat face looks where the striker goes, to the nearest right angle
    of its frame: tools are square; what is left is the unknown `face_tilt`."""
    scene = _declared(recordings, 0.0)
    if not scene.striker.flat:
        return scene
    strikes, _, _ = approaches(recordings)
    return _declared(recordings, facing(strikes))


def _declared(recordings: Recordings, forward: float) -> StrikeScene:
    """The scene of the bodies that the header states; what is wrong with them is told with the folder's name."""
    try:
        return scene_from_bodies(recordings.bodies, forward=forward)
    except SceneError as error:
        raise SceneError(f"{recordings.path}: {error}{_if_pushed(recordings)}") from error


def _if_pushed(recordings: Recordings) -> str:
    """What to say to somebody whose recordings have a tool and no striker."""
    roles = {body.role for body in recordings.bodies.values()}
    if "striker" in roles or "tool" not in roles:
        return ""
    if kind_of(recordings) == "pushes":
        return "; these are pushes: carom identify and carom evaluate take them"
    return f"; if its tool pushes: most recordings do not look like pushes, see carom check {recordings.path}"


def facing(strikes: Strikes) -> float:
    """Direction of approach in the striker's frame, to the nearest right angle [rad]."""
    if not len(strikes):
        return 0.0
    heading = np.arctan2(strikes.striker_velocity[:, 1], strikes.striker_velocity[:, 0]) - strikes.striker_pose[:, 2]
    mean = np.angle(np.nanmean(np.exp(1j * heading)))
    return float(np.round(mean / (np.pi / 2)) * np.pi / 2)


def check_scene(made_for: StrikeScene, recordings: Recordings) -> None:
    """Raise, by name, if a model of one scene is asked about recordings of another."""
    scene = _declared(recordings, made_for.striker.forward)
    mine, theirs = made_for.signature(), scene.signature()
    for body in ("target", "striker"):
        for key, expected in mine[body].items():
            got = theirs[body][key]
            if _differ(expected, got):
                raise ModelError(
                    f"the model was made for scene '{made_for.name}' with {body} {key.rsplit('_', 1)[0]} "
                    f"{_short(expected)}, "
                    f"{recordings.path} has {_short(got)}; distil and adapt a model for these bodies"
                )


def _differ(a: object, b: object) -> bool:
    if a is None or b is None:
        return a is not b
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return x.shape != y.shape or not np.allclose(x, y, rtol=0.01, atol=1e-4)


def _short(value: object) -> str:
    if isinstance(value, list) and len(value) > 4:
        return f"of {len(value)} corners"
    return "none" if value is None else str(value)
