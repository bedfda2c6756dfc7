"""What base models have learned about: the ranges of their scene, or those of base models that serve any scene."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.errors import ModelError
from carom.engines.contact_frames import Frames
from carom.scenes.strike import StrikeScene
from carom.state import Array


@dataclass(frozen=True)
class Ranges:
    """Scenes and strikes that base models for any scene have learned about. Lower bounds first."""

    size: tuple[float, float] = (0.03, 0.4)  #: greatest extent of the target seen from above [m]
    height: tuple[float, float] = (0.3, 4.0)  #: of the target, over its radius of gyration k
    radius: tuple[float, float] = (0.003, 0.08)  #: of a round striker [m]
    width: tuple[float, float] = (0.02, 1.0)  #: of a flat face, over the target's size
    mass_ratio: tuple[float, float] = (0.2, 50.0)  #: striker's over target's; or held stiffly
    speed: tuple[float, float] = (0.1, 3.0)  #: [m/s]
    pace: float = 60.0  #: [1/s] greatest speed over k: a faster striker passes through MuJoCo's soft contact
    deflection: float = 0.6  #: [rad] between velocity and inward normal
    face_angle: float = 0.35  #: [rad] of a flat face against the side

    @classmethod
    def of(cls, stated: Mapping[str, Any], path: Path) -> Ranges:
        """Ranges as a header states them."""
        try:
            found: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else float(v) for n, v in stated.items()}
            return cls(**found)
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"{path}: ranges are damaged: {error}") from error

    def outside(self, scene: StrikeScene) -> tuple[str, ...]:
        """What of a scene lies outside, in words; nothing if base models for any scene know such ones."""
        size = float(np.ptp(scene.outline.vertices, axis=0).max())
        striker = scene.striker
        found = [("target's extent in m", size, self.size)]
        found.append(("target's height over k", scene.shape.full_height / scene.gyration_radius, self.height))
        if striker.mass is not None:
            found.append(("striker's mass over the target's", striker.mass / scene.mass, self.mass_ratio))
        if striker.radius is not None:
            found.append(("striker's radius in m", striker.radius, self.radius))
        if striker.width is not None:
            found.append(("width of the face over the target's extent", striker.width / size, self.width))
        return tuple(
            f"{what} is {value:.3g}, learned were {low:g} to {high:g}"
            for what, value, (low, high) in found
            if not 0.9 * low <= value <= 1.1 * high
        )

    def within(self, scene: StrikeScene, frames: Frames) -> Array:
        """1 where strikes of a scene are within these ranges [N]."""
        if self.outside(scene):
            return np.zeros(len(frames))
        fastest = min(self.speed[1], self.pace * scene.gyration_radius)
        return _inside(frames, (self.speed[0], fastest), self.deflection, self.face_angle)


def within_learned(scene: StrikeScene, frames: Frames) -> Array:
    """1 where strikes are within the ranges of their scene [N], with a margin of a tenth."""
    return _inside(frames, scene.speed, 1.1 * scene.deflection + 0.05, 1.1 * scene.face_angle + 0.05)


def _inside(frames: Frames, pace: tuple[float, float], deflection: float, face_angle: float) -> Array:
    speed = np.linalg.norm(frames.velocity, axis=-1)
    heading = np.abs(np.arctan2(frames.velocity[:, 0], frames.velocity[:, 1]))
    inside = (speed > 0.9 * pace[0]) & (speed < 1.1 * pace[1]) & (heading < deflection)
    return np.asarray(inside & (np.abs(frames.angle) < face_angle), dtype=float)
