"""Pictures of a planned strike against what came of it, seen from above: one still, one that moves.

Colours mean what they mean in the other figures: what was measured is dark, what was predicted is orange.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import CaromError
from carom.report.axes import joined
from carom.report.chart import Arrows, Cells, Chart, Data, Line, Mark, Moving, Panel, Points
from carom.report.pose_errors import distances, error, statement
from carom.report.style import BLUE, GREY, INK, ORANGE, PURPLE, faint
from carom.state import Array, rotate, wrap_angle

MOST_FRAMES = 40  #: of an animation; more would make the page heavy and show nothing new
GHOSTS = 5  #: outlines that a planned motion leaves on its way
PATH_POINTS = 200  #: of a path that is drawn; longer ones are thinned
POSE = ("x [m]", "y [m]", "yaw [rad]")
SHADE = "rgba(29,36,48,0.06)"  #: of a block that was measured


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
) -> Chart:
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
    marks: list[Mark] = [_start(shape, start)]
    along = [_placed(shape, pose) for pose in _on_the_way(plan, _radius(shape), GHOSTS)]
    marks.append(_outline(joined(along), faint(ORANGE), width=1))
    marks.append(_path([plan], ORANGE))
    marks.append(_outline(_placed(shape, plan[-1]), ORANGE, "planned"))
    repeats = f"executed, {len(runs)} times" if len(runs) > 1 else "executed"
    if runs:
        hints = [f"{label}: {error(*off)}" for label, off in zip(labels, distances(ends, wanted), strict=True)]
        marks.append(_path(runs, INK))
        placed = joined([_placed(shape, end) for end in ends])
        marks.append(_outline(placed, INK, repeats, width=2 if len(runs) == 1 else 1.2, fill=SHADE))
        marks.append(Points(ends[:, 0], ends[:, 1], INK, size=3, labels=hints))
    marks += [_wanted(shape, wanted), _strike(contact, velocity, _radius(shape))]
    paths = [("start", start[None]), ("wanted", wanted[None]), ("planned", plan), *zip(labels, runs, strict=True)]
    rows: tuple[Cells, ...] = tuple((what, *map(float, pose)) for what, path in paths for pose in _thinned(path))
    return Chart((_from_above(marks),), Data(("what", *POSE), rows), statement(wanted, plan[-1], ends))


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
) -> Chart:
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
    bodies = [
        Moving(_block(shape, ORANGE, "planned"), plan[chosen]),
        Moving(_block(shape, INK, "executed", fill=SHADE), done[chosen]),
    ]
    if tool is not None:
        places = np.column_stack([tool[chosen], np.zeros(len(chosen))])
        bodies.append(Moving(Points([0.0], [0.0], PURPLE, "striker", size=5), places))
    still = _wanted(shape, np.zeros(3))  # stays where it is, but over what moves
    bodies.append(Moving(still, np.tile(wanted, (len(chosen), 1))))
    marks = [_start(shape, start), _path([plan], ORANGE), _path([done], INK)]
    kinds: list[tuple[str, Array, Sequence[str]]] = [("planned", plan, POSE), ("executed", done, POSE)]
    kinds += [] if tool is None else [("striker", tool, POSE[:2])]
    columns = ("time [s]", *(f"{name} {axis}" for name, _, axes in kinds for axis in axes))
    rows = [(float(clock[i]), *(float(v) for _, values, _ in kinds for v in values[i])) for i in chosen]
    return Chart(
        (_from_above(marks, tuple(bodies)),),
        Data(columns, tuple(rows)),
        statement(wanted, plan[-1], done[-1:]),
        clock=tuple(float(t) for t in clock[chosen]),
        play_seconds=play_seconds,
    )


def _from_above(marks: Sequence[Mark], moving: tuple[Moving, ...] = ()) -> Panel:
    return Panel("x in the world [m]", "y in the world [m]", tuple(marks), equal=True, moving=moving)


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


def _outline(points: Array, colour: str, name: str = "", *, width: float = 2, dash: str = "", fill: str = "") -> Line:
    return Line(points[:, 0], points[:, 1], colour, name, width, dash, fill)


def _block(outline: Array, colour: str, name: str, *, fill: str = "") -> Line:
    """A block in its own frame."""
    return _outline(_placed(outline, np.zeros(3)), colour, name, fill=fill)


def _start(outline: Array, pose: Array) -> Line:
    return _outline(_placed(outline, pose), GREY, "start", fill="#eef1f4")


def _wanted(outline: Array, pose: Array) -> Line:
    """Drawn after the others, so that a block which lies nearly there does not hide it."""
    return _outline(_placed(outline, pose), BLUE, "wanted", dash="5 4")


def _path(motions: Sequence[Array], colour: str) -> Line:
    """The way of the block's frame, thinned, one line per motion."""
    return _outline(joined([_thinned(motion)[:, :2] for motion in motions]), colour, width=1.2, dash="2 3")


def _thinned(motion: Array) -> Array:
    """At most `PATH_POINTS` poses of a motion, first and last among them."""
    return np.asarray(motion[np.unique(np.linspace(0, len(motion) - 1, PATH_POINTS).round().astype(int))])


def _strike(contact: Array, velocity: Array, radius: float) -> Arrows:
    """An arrow, one block's extent long, that ends where the striker touches; its speed is in the legend."""
    speed = float(np.linalg.norm(velocity))
    if not speed > 0:
        raise CaromError("striker_velocity_world: expected a striker that moves, got zero")
    return Arrows([contact - 2 * radius * velocity / speed], [contact], PURPLE, f"strike, {speed:.2f} m/s", 2.4)
