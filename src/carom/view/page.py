"""The page around the scene: its name, viser's scene, and the plots under it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from carom.report.page import render
from carom.view.figures import sections_of
from carom.view.shown import Show, Take

SPEEDS = ("1/20", "1/10", "1/4", "1/2", "1", "2")
SPEED_AT_FIRST = "1/4"  #: impacts are over in an instant


def main_page(show: Show) -> str:
    """The page that a browser opens."""
    options = {"names": show.names, "speeds": SPEEDS, "speed": SPEED_AT_FIRST}
    return str(_template().render(title=show.title, words=show.words, **options))


def figures_page(take: Take) -> str:
    """The plots of one take, as a page of their own inside of the other; what they show can be downloaded there."""
    return render(sections_of(take), title=take.name)


@lru_cache(maxsize=1)
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("carom.view", "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("view.html.j2")
