"""`carom view`: recorded against simulated motion in the browser, from this machine to this machine."""

from carom.view.opened import opened
from carom.view.serving import Place
from carom.view.shown import Arrow, Ghost, Mark, Show, Take, Track
from carom.view.view import serve, view

__all__ = ["Arrow", "Ghost", "Mark", "Place", "Show", "Take", "Track", "opened", "serve", "view"]
