"""Units in docstrings stand in brackets, often two in a row: [N, 3] [m]. Markdown would take the second for a link."""

from __future__ import annotations

from typing import Any

import griffe


class Units(griffe.Extension):
    """Escapes the second of two brackets, so that it stays text."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("] [", "] \\[")
