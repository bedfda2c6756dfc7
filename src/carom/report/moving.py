"""Pictures of a planned strike against what came of it, seen from above: one still, one that moves.

Colours mean what they mean in the other figures: what was measured is dark, what was predicted is orange.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from carom.core.errors import CaromError
from carom.report.from_above import distances, error, from_above, statement, with_controls
from carom.report.style import BLUE, GREY, INK, ORANGE, PURPLE, faint
from carom.state import Array, rotate, wrap_angle

MOST_FRAMES = 40  #: of an animation; more would make the page heavy and show nothing new
GHOSTS = 5  #: outlines that a planned motion leaves on its way
PATH_POINTS = 200  #: of a path that is drawn; longer ones are thinned
DIGITS = 5  #: decimals of a coordinate [m]: a hundredth of a millimetre, below any pixel


def planned_strike(
    outline: ArrayLike,
    start_pose: ArrayLike,
    wanted_pose: ArrayLike,
    planned: ArrayLike,
    outcomes: Sequence[ArrayLike],
    contact_point_world: ArrayLike,
    striker_velocity_world: ArrayLike,
    *,
    names: Sequence[str] | None = None,
) -> Any:
    """One strike from above: where the block lay, was wanted, was planned to go, and where it went.

    `outline` [V, 2] is in the block's frame [m]. Poses are (x, y, yaw) of that frame in the world [m, m, rad]:
    `start_pose` [3], `wanted_pose` [3], `planned` [T, 3] over time, and one array [T, 3] per execution in `outcomes`,
    each of its own length; [1, 3] if only the last pose is known; none before the strike. `contact_point_world` [2] is
    in m, `striker_velocity_world` [2] in m/s. `names` are those of the outcomes. The planned motion leaves
    outlines on its way. Rows that are not finite are gaps; an outcome that ends in one has no error, and the title
    says so. A short line from the frame's origin along its x tells how a symmetric block is turned.
    """
    shape = _finite("outline", outline, (-1, 2), least=3)
    start, wanted = _finite("start_pose", start_pose, (3,)), _finite("wanted_pose", wanted_pose, (3,))
    plan = _shaped("planned", planned, (-1, 3))
    runs = [_shaped(f"outcomes[{i}]", run, (-1, 3)) for i, run in enumerate(outcomes)]
    contact = _finite("contact_point_world", contact_point_world, (2,))
    velocity = _finite("striker_velocity_world", striker_velocity_world, (2,))
    labels = [f"execution {i + 1}" for i in range(len(runs))] if names is None else list(names)
    if len(labels) != len(runs):
        raise CaromError(f"names: expected one for each of the {len(runs)} outcomes, got {len(labels)}")
    ends = np.array([run[-1] for run in runs]).reshape(-1, 3)
    figure = go.Figure(_start(shape, start))
    along = [_placed(shape, pose) for pose in _on_the_way(plan, _radius(shape), GHOSTS)]
    figure.add_trace(_lines(_joined(along), "planned", faint(ORANGE), width=1, legend=False))
    figure.add_trace(_path([plan], "planned", ORANGE))
    figure.add_trace(_lines(_placed(shape, plan[-1]), "planned", ORANGE))
    repeats = f"executed, {len(runs)} times" if len(runs) > 1 else "executed"
    if runs:
        placed = _joined([_placed(shape, end) for end in ends])
        figure.add_trace(_path(runs, repeats, INK))
        figure.add_trace(_lines(placed, repeats, INK, fill="rgba(29,36,48,0.06)"))
        figure.add_trace(_end_points(ends, wanted, labels, repeats))
    figure.add_trace(_wanted(shape, wanted))
    figure.add_trace(_strike(contact, velocity, _radius(shape)))
    return from_above(figure, statement(wanted, plan[-1], ends))


def strike_animation(
    outline: ArrayLike,
    start_pose: ArrayLike,
    wanted_pose: ArrayLike,
    time: ArrayLike,
    planned: ArrayLike,
    executed: ArrayLike,
    striker: ArrayLike | None = None,
    *,
    play_seconds: float = 4.0,
) -> Any:
    """The planned and the executed motion side by side in time, with buttons and a slider.

    `outline` [V, 2] is in the block's frame [m]; poses are (x, y, yaw) of that frame in the world [m, m, rad]. `time`
    [T] [s] increases and is common to `planned` [T, 3], `executed` [T, 3] and the place of the `striker` [T, 2] [m].
    At most 40 frames, evenly chosen in time, are kept, and play in `play_seconds` [s]. Until it plays, the figure
    shows the end. Rows that are not finite are not drawn.
    """
    shape = _finite("outline", outline, (-1, 2), least=3)
    start, wanted = _finite("start_pose", start_pose, (3,)), _finite("wanted_pose", wanted_pose, (3,))
    clock = _finite("time", time, (-1,))
    if np.any(np.diff(clock) <= 0):
        raise CaromError("time: expected seconds that increase, got some that repeat or go back")
    if not play_seconds > 0:
        raise CaromError(f"play_seconds: expected more than zero, got {play_seconds}")
    plan, done = (_shaped(name, a, (len(clock), 3)) for name, a in (("planned", planned), ("executed", executed)))
    tool = None if striker is None else _shaped("striker", striker, (len(clock), 2))
    chosen = _even_in_time(clock, MOST_FRAMES)
    shown = [_moving(shape, plan[i], done[i], None if tool is None else tool[i]) for i in chosen]
    figure = go.Figure(_start(shape, start))
    figure.add_traces([_path([plan], "planned", ORANGE), _path([done], "executed", INK)])
    first = len(figure.data)  # the traces from here on move
    figure.add_traces(shown[-1])
    moving = list(range(first, len(figure.data)))
    figure.add_trace(_wanted(shape, wanted))
    figure.frames = [
        go.Frame(name=str(number), data=[go.Scatter(x=t.x, y=t.y) for t in traces], traces=moving)  # where, not how
        for number, traces in enumerate(shown)
    ]
    everywhere = [_placed(shape, pose) for pose in (start, wanted, *plan[chosen], *done[chosen])]
    points = np.vstack(everywhere if tool is None else [*everywhere, tool[chosen]])
    from_above(figure, statement(wanted, plan[-1], done[-1:]), points=points, below=100)
    return with_controls(figure, clock[chosen], 1000.0 * play_seconds / len(chosen))


def _shaped(name: str, value: ArrayLike, shape: tuple[int, ...], *, least: int = 1) -> Array:
    """An array of this shape, where -1 stands for any number from `least` on."""
    array = np.asarray(value, dtype=np.float64)
    fits = array.ndim == len(shape) and all(
        n == m or (m == -1 and n >= least) for n, m in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(f"{least} or more" if n == -1 else str(n) for n in shape)
        raise CaromError(f"{name}: expected an array of shape ({wanted}), got {array.shape}")
    return array


def _finite(name: str, value: ArrayLike, shape: tuple[int, ...], *, least: int = 1) -> Array:
    array = _shaped(name, value, shape, least=least)
    if not np.isfinite(array).all():
        raise CaromError(f"{name}: expected finite numbers, got {int((~np.isfinite(array)).sum())} that are not")
    return array


def _radius(outline: Array) -> float:
    """Half of the block's greatest extent [m]."""
    return 0.5 * float(np.ptp(outline, axis=0).max())


def _placed(outline: Array, pose: Array) -> Array:
    """What is drawn of a block at a pose [V + 4, 2] [m]: its outline, closed, a gap, and the line along its x."""
    mark = [[np.nan, np.nan], [0.0, 0.0], [0.5 * _radius(outline), 0.0]]
    return np.asarray(rotate(np.vstack([outline, outline[:1], mark]), pose[2]) + pose[:2])


def _joined(pieces: Sequence[Array]) -> Array:
    """Several lines as one, with gaps between them."""
    gap = np.full((1, 2), np.nan)
    return np.vstack([row for piece in pieces for row in (piece, gap)][:-1]) if len(pieces) else np.empty((0, 2))


def _on_the_way(motion: Array, radius: float, count: int) -> Array:
    """Poses [count, 3] between the ends of a motion, evenly spaced in distance gone and turned, not in time."""
    rows = motion[np.isfinite(motion).all(axis=1)]
    if len(rows) < 3 or count < 1:
        return np.empty((0, 3))
    steps = np.linalg.norm(np.diff(rows[:, :2], axis=0), axis=1) + radius * np.abs(wrap_angle(np.diff(rows[:, 2])))
    gone = np.concatenate([[0.0], np.cumsum(steps)])
    at = np.unique(np.searchsorted(gone, np.linspace(0.0, gone[-1], count + 2)[1:-1]))
    return np.asarray(rows[at[(at > 0) & (at < len(rows) - 1)]])


def _even_in_time(time: Array, most: int) -> list[int]:
    """At most `most` rows, evenly spaced in time, first and last among them."""
    even = np.linspace(time[0], time[-1], min(most, len(time)))
    after = np.clip(np.searchsorted(time, even), 1, len(time) - 1) if len(time) > 1 else np.zeros(1, dtype=int)
    nearer = np.where(even - time[after - 1] < time[after] - even, after - 1, after)
    return [int(i) for i in np.unique(nearer)]


def _xy(points: Array) -> dict[str, list[float]]:
    """Coordinates for plotly as short numbers; base64, which arrays become, would be longer."""
    x, y = np.round(points, DIGITS).T
    return {"x": x.tolist(), "y": y.tolist()}


def _lines(
    points: Array, name: str, colour: str, *, width: float = 2, dash: str = "solid", fill: str = "", legend: bool = True
) -> Any:
    return go.Scatter(
        **_xy(points),
        mode="lines",
        name=name,
        legendgroup=name,
        showlegend=legend,
        line={"color": colour, "width": width, "dash": dash},
        fill="toself" if fill else "none",
        fillcolor=fill or None,
        hoverinfo="skip",
    )


def _start(outline: Array, pose: Array) -> Any:
    return _lines(_placed(outline, pose), "start", GREY, fill="#eef1f4")


def _wanted(outline: Array, pose: Array) -> Any:
    """Drawn after the others, so that a block which lies nearly there does not hide it."""
    return _lines(_placed(outline, pose), "wanted", BLUE, dash="dash")


def _moving(outline: Array, planned: Array, executed: Array, striker: Array | None) -> list[Any]:
    """What differs from frame to frame: both blocks, and the striker if its place is known."""
    traces = [
        _lines(_placed(outline, planned), "planned", ORANGE),
        _lines(_placed(outline, executed), "executed", INK, fill="rgba(29,36,48,0.06)"),
    ]
    if striker is not None:
        marker = {"size": 11, "color": PURPLE, "line": {"color": "white", "width": 1}}
        traces.append(go.Scatter(**_xy(striker[None]), mode="markers", name="striker", marker=marker, hoverinfo="skip"))
    return traces


def _path(motions: Sequence[Array], name: str, colour: str) -> Any:
    """The way of the block's frame, thinned, one line per motion."""
    thin = [m[np.unique(np.linspace(0, len(m) - 1, PATH_POINTS).round().astype(int)), :2] for m in motions]
    return _lines(_joined(thin), name, colour, width=1.2, dash="dot", legend=False)


def _end_points(ends: Array, wanted: Array, labels: Sequence[str], group: str) -> Any:
    """Where the block's frame came to rest; its error shows under the pointer."""
    return go.Scatter(
        **_xy(ends[:, :2]),
        mode="markers",
        name=group,
        legendgroup=group,
        showlegend=False,
        marker={"size": 6, "color": INK},
        text=[f"{label}<br>{error(*off)}" for label, off in zip(labels, distances(ends, wanted), strict=True)],
        hovertemplate="%{text}<extra></extra>",
    )


def _strike(contact: Array, velocity: Array, radius: float) -> Any:
    """An arrow, one block's extent long, that ends where the striker touches; its speed is in the legend."""
    speed = float(np.linalg.norm(velocity))
    if not speed > 0:
        raise CaromError("striker_velocity_world: expected a striker that moves, got zero")
    return go.Scatter(
        **_xy(np.array([contact - 2 * radius * velocity / speed, contact])),
        mode="lines+markers",
        name=f"strike, {speed:.2f} m/s",
        line={"color": PURPLE, "width": 2.4},
        marker={"symbol": "arrow", "angleref": "previous", "size": [0, 13], "color": PURPLE, "opacity": 1},
        hoverinfo="skip",
    )
