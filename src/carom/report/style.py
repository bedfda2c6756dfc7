"""The look that all figures of the report share."""

from __future__ import annotations

from typing import Any

INK, SOFT, LINE = "#1d2430", "#5b6675", "#dfe4ea"
#: Okabe and Ito's colours: told apart by colour-blind readers too
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
GREY = "#a3adb8"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)


def styled(figure: Any, height: int, **layout: Any) -> Any:
    """The figure itself, with the common look and whatever `layout` changes in it."""
    figure.update_layout(
        template="plotly_white",
        height=height,
        font={"family": "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif", "size": 13, "color": INK},
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        hoverlabel={"font": {"size": 12}},
        paper_bgcolor="rgba(0,0,0,0)",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": INK},
    )
    axis = {"gridcolor": LINE, "zerolinecolor": LINE, "linecolor": GREY, "ticks": "outside", "tickcolor": GREY}
    figure.update_xaxes(**axis, title_font={"size": 13})
    figure.update_yaxes(**axis, title_font={"size": 13})
    return figure.update_layout(**layout)


def faint(colour: str) -> str:
    """The same colour, nearly transparent."""
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({r},{g},{b},0.35)"
