"""The colours that all figures share."""

from __future__ import annotations

INK, SOFT, LINE = "#1d2430", "#5b6675", "#dfe4ea"
#: Okabe and Ito's colours: told apart by colour-blind readers too
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
GREY = "#a3adb8"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)


def faint(colour: str) -> str:
    """The same colour, nearly transparent."""
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},0.35)"


def mixed(colour: str, share: float) -> str:
    """A colour on white, from none of it (0) to all of it (1).

    >>> mixed("#0072b2", 0.0), mixed("#0072b2", 1.0)
    ('#ffffff', '#0072b2')
    """
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (part - 255)):02x}" for part in parts)
