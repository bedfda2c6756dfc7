"""Scenes of pushing: `planar-cube`, `planar-t`, `arm-cube`, `arm-t`, or a user's own MJCF."""

from carom.scenes.pushing.guided import GuidedScene
from carom.scenes.pushing.scene import OWN, PushScene, push_scene

__all__ = ["OWN", "GuidedScene", "PushScene", "push_scene"]
