"""Parameters from recordings of a tool that pushes a block: replayed windows, search, and how far to trust it."""

from carom.identify.pushes.led import guided_scene, led_windows_of
from carom.identify.pushes.search import METHODS, Method, Tuning, tune
from carom.identify.pushes.tuned import Tuned
from carom.identify.pushes.windows import Windows, windows_of

__all__ = ["METHODS", "Method", "Tuned", "Tuning", "Windows", "guided_scene", "led_windows_of", "tune", "windows_of"]
