"""Scenes of pushing: `planar-cube`, `planar-t`, `arm-cube`, `arm-t`, or a user's own MJCF."""

from carom.scenes.pushing.scene import OWN, PushScene, push_scene

__all__ = ["OWN", "PushScene", "push_scene"]
