"""The frame of a picture from above: its title with the errors, equal axes, and the controls of one that moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from carom.report.style import GREY, SOFT, styled
from carom.state import Array, wrap_angle

PLOT_WIDTH = 900.0  #: of the axes on the report's page [px], to choose the height


def distances(poses: Array, wanted: Array) -> Array:
    """How far poses [N, 3] are from the wanted one, [N, 2]: distance [m], signed angle in (-pi, pi] [rad]."""
    return np.column_stack([np.linalg.norm(poses[:, :2] - wanted[:2], axis=1), wrap_angle(poses[:, 2] - wanted[2])])


def error(distance: float, angle: float) -> str:
    """An error [m, rad] in the units one reads it in."""
    if not np.isfinite(distance + angle):
        return "final pose unknown"
    degrees = round(float(np.degrees(angle)), 1) + 0.0  # no minus zero
    return f"position error {1e3 * distance:.1f} mm, yaw error {degrees:+.1f}°"


def statement(wanted: Array, planned: Array, executed: Array) -> str:
    """The title: the errors of what was executed [N, 3], and below them the plan's own."""
    plan = f"Planned: {error(*distances(planned[None], wanted)[0])}"
    off = distances(executed, wanted)
    known = np.abs(off[np.isfinite(off).all(axis=1)])
    if not len(off):
        said = "Not executed yet"
    elif len(off) == 1 or not len(known):
        said = f"Executed: {error(*off[0])}"
    else:
        (distance, angle), (far, wide) = known.mean(axis=0), known.max(axis=0)
        said = (
            f"Executed {len(off)} times, mean (largest) error: position {1e3 * distance:.1f} mm ({1e3 * far:.1f}), "
            f"yaw {np.degrees(angle):.1f}° ({np.degrees(wide):.1f})"
        )
        if len(known) < len(off):
            plan = f"{len(off) - len(known)} of {len(off)} without a final pose. {plan}"
    return f"<b>{said}</b><br>{plan}"


def from_above(figure: Any, title: str, *, points: Array | None = None, below: int = 0) -> Any:
    """The common look, equal axes, and a height that suits what is drawn; the range is fixed to `points`, if given."""
    drawn = (
        points if points is not None else np.vstack([np.column_stack([t.x, t.y]) for t in figure.data]).astype(float)
    )
    low, high = np.nanmin(drawn, axis=0), np.nanmax(drawn, axis=0)
    air = 0.06 * max(float((high - low).max()), 1e-3)
    low, high = low - air, high + air
    margin = {"l": 70, "r": 20, "t": 104, "b": 50 + below}
    axes = float(np.clip(PLOT_WIDTH * (high[1] - low[1]) / (high[0] - low[0]), 280.0, 560.0))
    styled(figure, round(axes) + margin["t"] + margin["b"], margin=margin, legend_y=1)
    left = {"x": 0, "xref": "paper", "xanchor": "left", "xshift": -50, "align": "left"}
    above = {"y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 56}  # the legend: two rows on a narrow page
    figure.add_annotation(text=title, font={"size": 12, "color": SOFT}, showarrow=False, **left, **above)
    figure.update_xaxes(title_text="x in the world [m]", zeroline=False, range=[low[0], high[0]])
    return figure.update_yaxes(
        title_text="y in the world [m]", zeroline=False, range=[low[1], high[1]], scaleanchor="x", scaleratio=1
    )


def with_controls(figure: Any, time: Array, duration: float) -> Any:
    """Play, pause, and a slider with the time [s]; a frame lasts `duration` [ms]."""

    def step(wait: float) -> dict[str, Any]:
        frame = {"duration": wait, "redraw": False}
        return {"frame": frame, "transition": {"duration": 0}, "mode": "immediate", "fromcurrent": True}

    play = {"label": "Play", "method": "animate", "args": [None, step(round(duration))]}
    pause = {"label": "Pause", "method": "animate", "args": [[None], step(0)]}
    steps = [
        {"label": f"{t:.3f}", "method": "animate", "args": [[str(number)], step(0)]} for number, t in enumerate(time)
    ]
    below = {"yanchor": "top", "y": 0}
    buttons = {
        "buttons": [play, pause],
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "bgcolor": "white",
    }
    right = {"x": 1, "xanchor": "right", "pad": {"t": 44}, "bordercolor": GREY}
    slider = {"steps": steps, "active": len(steps) - 1, "transition": {"duration": 0}, "x": 0, "len": 1}
    look = {"pad": {"t": 58, "b": 10}, "font": {"size": 11, "color": SOFT}, "bordercolor": GREY, "tickcolor": GREY}
    now = {"currentvalue": {"prefix": "time ", "suffix": " s", "font": {"size": 13}}}
    return figure.update_layout(updatemenus=[below | buttons | right], sliders=[below | slider | look | now])
