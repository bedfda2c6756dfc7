"""The page around the scene: its name, viser's scene, and the plots under it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from carom.report.page import render
from carom.view.figures import sections_of
from carom.view.shown import Show, Take


def main_page(show: Show) -> str:
    """The page that a browser opens."""
    return str(_template().render(title=show.title, words=show.words))


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
