"""What is simulated: bodies, shapes and scenes with roles; by name, from a file, or from recordings' bodies."""

from carom.scenes.load import load_scene, save_scene, scene_from_bodies, scene_from_dict, scene_to_dict
from carom.scenes.scene import MjcfScene, Scene, mjcf_scene

__all__ = [
    "MjcfScene",
    "Scene",
    "load_scene",
    "mjcf_scene",
    "save_scene",
    "scene_from_bodies",
    "scene_from_dict",
    "scene_to_dict",
]
