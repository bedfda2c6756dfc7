"""Kinds of broken folders: `check` names each by its cause, with place and advice, and by nothing else.

Each kind breaks a healthy folder in one way. Beside the finding that is asked for, no other error or warning may
appear: what follows from a fault is no finding of its own.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from synthetic_recordings import BOX, TOOL, Strike, toss, two_discs

from carom.core.rotations import multiply
from carom.recordings import Recordings, check, write

CONTACT = 60  #: the last row before contact
GYRATION = 0.2 / np.sqrt(6)  #: [m] of the box


def hit(s, **keywords):
    """A healthy strike: the further from the middle, the more spin; other speeds and directions in every file."""
    speed, place = 0.6 + 0.1 * s, 0.012 * (s - 2)
    strike = Strike(
        duration=1.5,
        striker_velocity=(0.02 * s, speed),
        velocity=(0.02 * s, 1.3 * speed),
        spin=1.3 * speed * place / GYRATION**2,
        **keywords,
    )
    return path(strike.trajectory(s), "tool", moved(place - 0.01, 0, 0))


def hits(count=5, **keywords):
    return [hit(s, **keywords) for s in range(count)]


def tosses(count=4):
    return [toss(seed=s) for s in range(count)]


def pucks():
    return [two_discs(seed=s)[0] for s in range(4)]


def path(t, body, change):
    return replace(t, position_world={**t.position_world, body: change(t.position_world[body].copy())})


def moved(x, y, z):
    return lambda array: array + np.array([x, y, z])


def turn(t, body, change):
    return replace(t, quaternion_world={**t.quaternion_world, body: change(t.quaternion_world[body].copy())})


def paths(t, change):
    return replace(t, position_world={n: change(p.copy()) for n, p in t.position_world.items()})


def turns(t, change):
    return replace(t, quaternion_world={n: change(q.copy()) for n, q in t.quaternion_world.items()})


def every(change, folder=hits):
    return lambda: [change(t) for t in folder()]


def one(change, at=3):
    return lambda: [change(t) if s == at else t for s, t in enumerate(hits())]


def rows(t, keep):
    return replace(turns(paths(t, lambda p: p[keep]), lambda q: q[keep]), time=t.time[keep])


def at_rows(first, last, value=None):
    """A change of an array: its rows are those of the row before, or lost."""

    def change(array):
        array[first:last] = array[first - 1] if value is None else value
        return array

    return change


def lost(t, body, first, last):
    empty = at_rows(first, last, np.nan)
    return turn(path(t, body, empty), body, empty)


def frozen(t, body, first, last):
    held = at_rows(first, last)
    return turn(path(t, body, held), body, held)


def drawn_up(first, last):
    def change(array):
        share = np.linspace(0, 1, last - first)[:, None]
        array[first:last] = array[first] + share * (array[last - 1] - array[first])
        return array

    return change


def smoothed(array):
    mean = np.ones(9) / 9
    return np.column_stack([np.convolve(np.pad(column, 4, mode="edge"), mean, "valid") for column in array.T])


def turned(t, rotation):
    quaternion = rotation.as_quat()[[3, 0, 1, 2]]
    return turns(paths(t, rotation.apply), lambda q: multiply(quaternion, q))


Y_UP = Rotation.from_euler("x", -90, degrees=True)
X_UP = Rotation.from_matrix([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
TILTED = Rotation.from_euler("x", 2, degrees=True)


def late(t, count):
    """The striker's samples of `count` rows earlier under the same times."""
    ahead, behind = slice(count, None), slice(None, -count)
    both = {"box": ahead, "tool": behind} if count > 0 else {"box": slice(None, count), "tool": slice(-count, None)}
    return replace(
        t,
        time=t.time[: len(t) - abs(count)],
        position_world={n: p[both[n]] for n, p in t.position_world.items()},
        quaternion_world={n: q[both[n]] for n, q in t.quaternion_world.items()},
    )


def swapped(t):
    other = {"box": "tool", "tool": "box"}
    return replace(
        t,
        position_world={n: t.position_world[other[n]] for n in other},
        quaternion_world={n: t.quaternion_world[other[n]] for n in other},
    )


def bodies(t, **changes):
    return replace(t, bodies={"box": replace(BOX, **changes), "tool": TOOL})


def still(t, body="box"):
    noise = 1e-4 * np.random.default_rng(1).standard_normal((len(t), 3))
    return path(t, body, lambda p: p[:1] + noise)


def away(t):
    """A striker that stops before it reaches the target."""
    noise = 1e-4 * np.random.default_rng(4).standard_normal((len(t), 3))
    return path(still(t), "tool", lambda p: np.where((t.time > 0.2)[:, None], p[40] + noise, p) - [0.0, 0.1, 0.0])


def outliers(t):
    return path(t, "box", lambda p: p + (np.arange(len(p)) % 47 == 46)[:, None] * [0.05, 0.05, 0.0])


def exchanged(t):
    box, tool = (t.position_world[n].copy() for n in ("box", "tool"))
    box[120:140], tool[120:140] = tool[120:140].copy(), box[120:140].copy()
    return replace(t, position_world={"box": box, "tool": tool})


def pushed(t):
    since = t.time - 0.3037
    speed = 0.15 + 0.3 * float(t.position_world["tool"][-1, 1])
    way = speed * (np.minimum(since, 0.5) + 0.2 * np.clip(since, 0, 0.5) ** 2)
    noise = 1e-4 * np.random.default_rng(2).standard_normal((2, len(t), 3))
    level = np.full(len(t), 0.05)
    back = np.where(since > 0.5, 0.3 * (since - 0.5), 0.0)
    box = np.column_stack([0 * way, np.where(since > 0, way, 0.0), level])
    tool = np.column_stack([0 * way, way - back - 0.115, level])
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
    return turn(replace(t, position_world={"box": box + noise[0], "tool": tool + noise[1]}), "box", lambda q: upright)


def tipped(t):
    lean = np.clip((t.time - 0.32) / 0.3, 0, 1) * np.pi / 2
    over = np.stack([np.cos(lean / 2), -np.sin(lean / 2), 0 * lean, 0 * lean], axis=-1)
    rise = 0.05 * np.cos(lean) + 0.1 * np.sin(lean) - 0.05
    return turn(path(t, "box", lambda p: p + np.outer(rise, [0, 0, 1])), "box", lambda q: multiply(over, q))


def drawn_lying(t):
    """The box's frame as it is drawn in a world with y up."""
    return turn(t, "box", lambda q: multiply(q, np.array([1.0, -1.0, 0.0, 0.0]) / np.sqrt(2)))


def struck_twice(t):
    box, tool = t.position_world["box"].copy(), t.position_world["tool"].copy()
    again = t.time > 1.2
    box[again] += np.outer(np.minimum(t.time[again] - 1.2, 0.3), [0.0, 0.8, 0.0])
    place = box[np.argmax(again) - 1] + [0.0, -0.115, 0.0]
    start, stop = 160, int(np.argmax(again))
    share = np.clip((t.time[start:stop] - t.time[start]) / 0.3, 0, 1)[:, None]
    noise = 1e-4 * np.random.default_rng(3).standard_normal((stop - start, 3))
    before = place - [0.0, 0.05, 0.0]
    tool[start:stop] = tool[start] + share * (before - tool[start]) + noise
    near = t.time[start:stop] > 1.1
    tool[start:stop][near] += np.outer(t.time[start:stop][near] - 1.1, [0.0, 0.5, 0.0])
    tool[again] = box[again] + [0.0, -0.116, 0.0]
    return replace(t, position_world={"box": box, "tool": tool})


def velocity(t):
    return np.gradient(t.position_world["box"], t.time, axis=0)


def spin(t):
    return np.outer(np.gradient(t.yaw("box"), t.time), [0.0, 0.0, 1.0])


def tumbling(t, *, world):
    """A toss that turns evenly about a slanting axis until it lands, with the spin in either frame."""
    rate = np.array([3.0, 2.0, 1.0])
    start = Rotation.from_euler("xyz", [0.4, 1.0, 0.3])
    angle = np.minimum(t.time, 0.15)[:, None] * rate
    pose = Rotation.from_rotvec(angle) * start
    given = np.where(t.time[:, None] < 0.15, rate, 0.0)
    given = given if world else pose.inv().apply(given)
    return replace(turn(t, "cube", lambda q: pose.as_quat()[:, [3, 0, 1, 2]]), angular_velocity_world={"cube": given})


def jumps(t):
    return replace(t, time=t.time + np.where(np.arange(len(t)) >= 80, 1.0, 0.0))


def same():
    return [Strike(duration=1.5).trajectory(s) for s in range(10)]


def high_friction():
    def strike(s):
        t = Strike(
            duration=1.5, striker_velocity=(0.0, 0.6 + 0.1 * s), velocity=(0.0, 0.05), spin=0.0, deceleration=5.0
        )
        stops = at_rows(CONTACT + 1, None)
        noise = 1e-4 * np.random.default_rng(s).standard_normal((300, 3))
        return path(
            t.trajectory(s), "tool", lambda p: stops(p) + np.where(np.arange(300) > CONTACT, 1, 0)[:, None] * noise
        )

    return [strike(s) for s in range(5)]


#: kind: (the folder, the codes of all its errors and warnings (and notes, where it is one), words of the first of them)
KINDS = {
    # conventions
    "quaternions w-last": (
        every(lambda t: turn(t, "box", lambda q: q[:, [1, 2, 3, 0]])),
        ["quaternion-convention"],
        "box: the quaternion columns look like x, y, z, w under w-first names (more than 99.9 % sure): rename",
    ),
    "quaternions inverted": (
        every(lambda t: turn(t, "box", lambda q: q * [1, -1, -1, -1])),
        ["quaternion-convention"],
        "look like body from world, not world from body",
    ),
    "one axis mirrored": (
        every(lambda t: paths(t, lambda p: p * [-1, 1, 1])),
        ["quaternion-convention"],
        "(or mirror one axis, if the positions are left-handed)",
    ),
    "quaternions rounded": (
        every(lambda t: turn(t, "box", lambda q: 1.004 * q)),
        ["quaternion-norm"],
        "column 'box.qw': quaternions are not of unit length (off by 0.004)",
    ),
    "Euler angles as quaternions": (
        one(
            lambda t: turn(
                t, "box", lambda q: np.column_stack([0 * t.time, 0 * t.time, t.yaw("box") + 0.3, 0 * t.time])
            )
        ),
        ["quaternion-norm"],
        "hit_003.csv, row 2, column 'box.qw': expected a unit quaternion (w first), got length 0.3",
    ),
    "y up": (every(lambda t: turned(t, Y_UP)), ["frame"], "state frame: y-up"),
    "x up": (every(lambda t: turned(t, X_UP)), ["frame"], "turn about x (in 5 of 5 motions that show it); frames may"),
    "tosses with y up": (every(lambda t: turned(t, Y_UP), tosses), ["frame"], "state frame: y-up"),
    "tosses with x up": (every(lambda t: turned(t, X_UP), tosses), ["frame"], "turn about x"),
    "z down": (every(lambda t: paths(t, lambda p: p * [1, 1, -1]), tosses), ["frame"], "turn about -z"),
    # units
    "mm for m": (every(lambda t: paths(t, lambda p: 1000 * p)), ["length-unit"], "and the samples look like mm; state"),
    "cm for m": (every(lambda t: paths(t, lambda p: 100 * p)), ["length-unit"], "and the samples look like cm; state"),
    "mm for m in tosses": (
        every(lambda t: paths(t, lambda p: 1000 * p), tosses),
        ["length-unit"],
        "lengths are 1000 times too large (in 4 of 4 files",
    ),
    "ms for s": (
        every(lambda t: replace(t, time=1000 * t.time)),
        ["time-unit"],
        "column 'time': samples are 5 s apart, in 5 of 5 files",
    ),
    "s for ms": (every(lambda t: replace(t, time=t.time / 1000)), ["time-unit"], "samples are 5e-06 s apart"),
    "half the rate in tosses": (
        every(lambda t: replace(t, time=2 * t.time), tosses),
        ["gravity"],
        "or times too long (multiply them by 0.5000)",
    ),
    "degrees per second": (
        every(lambda t: replace(t, angular_velocity_world={"box": np.rad2deg(spin(t))})),
        ["velocity-unit"],
        "degrees per second?",
    ),
    "velocities in mm/s": (
        every(lambda t: replace(t, velocity_world={"box": 1000 * velocity(t)})),
        ["velocity-unit"],
        "times those of the poses, in 5 of 5 files",
    ),
    "velocities of another size": (
        every(lambda t: replace(t, velocity_world={"box": 1.4 * velocity(t)})),
        ["velocity-differs"],
        "column 'box.vx': recorded velocities are 4",
    ),
    "velocities of another sign": (
        every(lambda t: replace(t, velocity_world={"box": -velocity(t)})),
        ["velocity-differs"],
        "their signs are the other way round",
    ),
    "velocities with other axes": (
        every(lambda t: replace(t, velocity_world={"box": velocity(t)[:, [1, 0, 2]]})),
        ["velocity-differs"],
        "their axes are in another order",
    ),
    "spin in the body's frame": (
        every(lambda t: tumbling(t, world=False), tosses),
        ["velocity-differs"],
        "it seems that they are in the body's frame, not the world's",
    ),
    # samples
    "frozen from before contact": (
        every(lambda t: frozen(t, "box", 50, 75)),
        ["no-usable-impact", "frozen", "unusable-impact"],
        "none of the 5 recorded impacts can be used (the pose of 'box' is frozen when they meet)",
    ),
    "frozen after contact": (
        one(lambda t: frozen(t, "box", 81, 90)),
        ["frozen"],
        "hit_003.csv, row 83, column 'box.x': the same place is repeated while the body moves, in 9 of its rows",
    ),
    "frozen to the end": (
        one(lambda t: frozen(t, "box", 90, None)),
        ["frozen"],
        "hit_003.csv, row 92, column 'box.x': the same place is repeated while the body moves, in 210 of its rows",
    ),
    "place frozen, orientation not": (
        one(lambda t: path(t, "box", at_rows(81, 84))),
        ["frozen"],
        "hit_003.csv, row 83, column 'box.x': the same place is repeated while the body moves, in 3 of its rows",
    ),
    "a few samples lost": (one(lambda t: lost(t, "box", 100, 103)), [], "hit_003.csv, row 102, column 'box.x': 1.0 %"),
    "many samples lost": (
        one(lambda t: lost(t, "box", 100, 160)),
        ["lost-samples"],
        "20.0 % of the samples are lost; up to 60 in a row",
    ),
    "lost at contact": (
        one(lambda t: lost(t, "box", 55, 67)),
        ["lost-samples", "contact-unseen"],
        "hit_003.csv, row 57, column 'box.x': 4.0 % of the samples are lost; up to 12 in a row",
    ),
    "rows missing at contact": (
        one(lambda t: rows(t, np.r_[0:55, 67 : len(t)])),
        ["time-gap", "contact-unseen", "contact-unseen"],
        "hit_003.csv, row 57, column 'time': a gap in time of 0.065 s",
    ),
    "striker lost before contact": (
        one(lambda t: lost(t, "tool", 20, 70)),
        ["lost-samples", "no-striker", "unusable-impact"],
        "column 'tool.x': 16.7 % of the samples are lost; up to 50 in a row",
    ),
    "gap filled with a line": (
        one(lambda t: path(t, "box", drawn_up(80, 112))),
        ["filled"],
        "hit_003.csv, row 82, column 'box.x': 32 samples lie on a straight line without any scatter; up to 32 in a row",
    ),
    "outliers": (one(outliers), ["spike"], "hit_003.csv, row 283, column 'box.x': a sample jumps 71 mm away and back"),
    "bodies exchanged for a while": (
        one(exchanged),
        ["teleport", "teleport"],
        "hit_003.csv, row 142, column 'box.x': the body leaps by",
    ),
    "noise of 1 mm": (lambda: hits(noise=1e-3, yaw_noise=1e-2), ["noise"], "column 'box.x': samples scatter by 1."),
    "filtered across the impact": (
        every(lambda t: paths(t, smoothed)),
        ["smoothed"],
        "before the outlines touch and reach their speed within 3",
    ),
    # times
    "time goes back": (
        one(lambda t: replace(t, time=np.where(np.arange(len(t)) == 50, t.time[45], t.time))),
        ["time-order"],
        "hit_003.csv, row 52, column 'time': expected a time after 0.245, got 0.225: time goes back",
    ),
    "jitter of the stamps": (
        every(lambda t: replace(t, time=t.time + np.where(np.arange(len(t)) % 2, 0.3, -0.3) * t.period)),
        ["irregular-rate", "sample-times"],
        "column 'time': intervals between samples scatter by 0.75 of a period",
    ),
    "the clock jumps": (
        one(jumps),
        ["clock-jump"],
        "hit_003.csv, row 82, column 'time': the clock jumps by 1 s, and bodies go on as if nothing had been",
    ),
    "stamps as float32": (
        every(lambda t: replace(t, time=(np.float32(5e4) + t.time).astype(np.float32).astype(float))),
        ["time-resolution", "sample-times"],
        "column 'time': time stamps are all multiples of 3.91 ms, which is too coarse for these samples",
    ),
    "striker 50 ms late": (
        every(lambda t: late(t, 10)),
        ["clock-shift"],
        "its times are about 50 ms later than those of 'box' (median of 5 strikes)",
    ),
    "striker 50 ms early": (
        every(lambda t: late(t, -10)),
        ["no-usable-impact", "clock-shift", "unusable-impact"],
        "none of the 5 recorded impacts can be used (the outlines are",
    ),
    "20 Hz": (lambda: hits(rate=20.0), ["low-rate", "no-impact"], "column 'time': sampled at 20 Hz, in 5 of 5 files"),
    "another rate in one file": (
        lambda: [*hits(4), hit(4, rate=100.0)],
        ["other-rate"],
        "hit_004.csv, column 'time': sampled at 100 Hz, most files at 200 Hz",
    ),
    # bodies
    "roles swapped": (
        lambda: [
            replace(t, bodies={"box": replace(BOX, role="striker"), "tool": replace(TOOL, role="target", mass=0.05)})
            for t in hits()
        ],
        ["roles-swapped", "no-impact"],
        "'tool' (target) moves from the start, and 'box' (striker) rests until the two meet, in 5 of 5 files",
    ),
    "columns swapped in one file": (
        one(swapped),
        ["roles-swapped"],
        "hit_003.csv: 'box' (target) moves from the start, and 'tool' (striker) rests until the two meet; are",
    ),
    "no target": (
        lambda: [replace(t, bodies={"box": replace(BOX, role="other"), "tool": TOOL}) for t in hits()],
        ["no-target", "no-impact"],
        "no body has the role 'target' (box: other, tool: striker); name the one that is struck",
    ),
    "grams for kg": (
        every(lambda t: bodies(t, mass=500.0)),
        ["mass-unit"],
        "'box' has a mass of 500 kg; are these grams?",
    ),
    "mass of nothing": (
        every(lambda t: bodies(t, mass=0.0005)),
        ["density"],
        "0.125 kg/m^3: check the units of its mass",
    ),
    "impossible inertia": (
        every(lambda t: bodies(t, inertia=(0.001, 0.001, 0.003))),
        ["bad-mass"],
        "inertia [0.001, 0.001, 0.003] [kg m^2] is impossible: no solid has one moment that is larger",
    ),
    "inertia in another unit": (
        every(lambda t: bodies(t, inertia=(2.0, 2.0, 3.0))),
        ["inertia"],
        "0.5 kg within its shape have at most 0.0117 kg m^2, stated are 3: check its unit",
    ),
    "centre of mass outside": (
        every(lambda t: bodies(t, com=(0.3, 0.0, 0.0))),
        ["com-outside"],
        "the centre of mass of 'box', [0.3, 0.0, 0.0] m in its frame",
    ),
    "size 10 % off in one file": (
        one(lambda t: bodies(t, shape=replace(BOX.shape, size=(0.22, 0.22, 0.1)))),
        ["other-size"],
        "hit_003.csv: the outlines are -",
    ),
    "lengths 10 % off in one file": (
        one(lambda t: paths(t, lambda p: 1.1 * p)),
        ["other-size", "other-size"],
        "hit_003.csv: the outlines are +1",
    ),
    "markers 5 mm off": (
        every(lambda t: path(t, "tool", moved(0, 0.005, 0))),
        [],
        "outlines are 4.8 mm inside each other at contact (median of 5 strikes): stated sizes or frames are off by",
    ),
    "markers 20 mm off": (
        every(lambda t: path(t, "tool", moved(0, 0.02, 0))),
        ["no-usable-impact", "unusable-impact"],
        "(the outlines are 20 mm inside each other at contact: check sizes and frame)",
    ),
    "in the striker's frame": (
        lambda: [paths(t, lambda p, o=t.position_world["tool"]: p - o + [0, 0, 0.05]) for t in hits()],
        ["striker-still", "no-impact"],
        "'tool' never moves, and 'box' moves from the start",
    ),
    "in the target's frame": (
        lambda: [paths(t, lambda p, o=t.position_world["box"]: p - o + [0, 0, 0.05]) for t in hits()],
        ["target-still", "passes-through", "no-impact"],
        "nothing can be learned from it; was it recorded in its own frame?",
    ),
    # what happens
    "target already moving": (
        every(lambda t: path(t, "box", lambda p: p + np.outer(np.minimum(t.time - 0.3037, 0), [0.05, 0, 0]))),
        [],
        "'box' already moves before contact, at 0.0",
    ),
    "moved by hand just before": (
        every(lambda t: path(t, "box", lambda p: p + np.outer(np.maximum(0.1 - t.time, 0), [0.3, 0, 0]))),
        ["begins-moving", "no-impact"],
        "'box' moves from the first sample on, and no strike is found, in 5 of 5 files",
    ),
    "struck twice": (
        one(struck_twice),
        ["second-strike"],
        "'box' is struck more than once; only the first strike is used; cut the recording before the second",
    ),
    "no contact": (every(away), ["target-still", "striker-far", "no-impact"], "'box' never moves, in 5 of 5 files"),
    "striker passes through": (
        every(still),
        ["target-still", "passes-through", "no-impact"],
        "'box' never moves, in 5 of 5 files",
    ),
    "contact at the first sample": (
        every(lambda t: rows(t, t.time >= 0.3)),
        ["begins-moving", "no-impact"],
        "begin the record 0.1 s and more before the strike",
    ),
    "contact at the last sample": (
        every(lambda t: t.until(0.312)),
        ["no-usable-impact", "unusable-impact"],
        "none of the 5 recorded impacts can be used (only 0 samples of 'box' after contact)",
    ),
    "ends before rest": (
        every(lambda t: t.until(0.6)),
        [],
        "the record ends while 'box' still moves: its resting place",
    ),
    "friction too high": (high_friction, ["target-still", "no-impact"], "'box' never moves, in 5 of 5 files"),
    "pushed": (every(pushed), [], "and drives it: a push, not a strike, in 5 of 5 files"),  # a kind of its own
    "tips over": (every(tipped), ["tips"], "column 'box.qw': 'box' leans over by 90 degrees, in 5 of 5 files"),
    "frame lies": (every(drawn_lying), ["lies"], "the z axis of 'box' lies, 90 degrees off the vertical"),
    "table tilted": (every(lambda t: turned(t, TILTED)), ["ground-tilt"], "targets slide on a slope of 2.0 degrees"),
    "ground tilted": (
        every(lambda t: turned(t, TILTED), tosses),
        ["ground-tilt"],
        "lean by 2.00 degrees (median of 4)",
    ),
    "ground height": (
        every(lambda t: paths(t, moved(0, 0, 0.01)), tosses),
        ["ground-height"],
        "bodies rest 10.0 mm above z = 0",
    ),
    "landing not recorded": (
        every(lambda t: t.until(0.15), tosses),
        ["no-landing", "no-impact"],
        "'cube' falls, but its landing is not seen, in 4 of 4 files",
    ),
    "a file copied": (
        lambda: [*hits(), hits()[0]],
        ["copy"],
        "hit_005.csv: the same samples as in hit_000.csv; a copy adds nothing",
    ),
    "ten strikes alike": (same, ["strikes-alike"], "the 10 strikes are nearly the same: speed within 0."),
    "discs too large": (
        every(
            lambda t: replace(
                t, bodies={n: replace(b, shape=replace(b.shape, radius=0.05)) for n, b in t.bodies.items()}
            ),
            pucks,
        ),
        ["no-usable-impact", "unusable-impact"],
        "the outlines are 50 mm inside each other at contact",
    ),
}
HEALTHY = {
    "strikes at 50 Hz": lambda: hits(rate=50.0),
    "strikes at 1000 Hz": lambda: hits(3, rate=1000.0),
    "strikes": hits,
    "strikes without noise": lambda: hits(noise=0.0, yaw_noise=0.0),
    "strikes on a rough table": lambda: hits(noise=0.0, yaw_noise=0.0, deceleration=6.0),
    "strikes with lost samples": lambda: hits(lost=0.01),
    "strikes with 0.3 mm of noise": lambda: hits(noise=3e-4, yaw_noise=3e-3),
    "tosses": tosses,
    "discs": pucks,
    "tumbling": every(lambda t: tumbling(t, world=True), tosses),
}
FILES = {
    "a file missing": (lambda p: p.unlink(), "no-file", "hit_001.csv: no such file, though it is listed"),
    "a file empty": (
        lambda p: p.write_text(""),
        "empty",
        "hit_001.csv: empty file; expected a header line and samples",
    ),
    "a file cut off": (
        lambda p: p.write_text(p.read_text()[:-30]),
        "row-length",
        "hit_001.csv, row 301: expected 15 cells as in the header, got",
    ),
}


def folder(place, trajectories):
    named = tuple(replace(t, name=f"hit_{i:03d}.csv") for i, t in enumerate(trajectories))
    write(place, Recordings(place, named[0].bodies, named))
    return place


def serious(report):
    return [f.code for f in report.findings if f.level != "note"]


@pytest.mark.parametrize("kind", HEALTHY)
def test_a_healthy_folder_raises_no_alarm(tmp_path, kind):
    report = check(folder(tmp_path, HEALTHY[kind]()))
    assert serious(report) == [], report.findings
    assert report.ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_folder_is_named_by_its_cause(tmp_path, kind):
    make, codes, words = KINDS[kind]
    report = check(folder(tmp_path, make()))
    assert sorted(serious(report)) == sorted(codes), [f.message for f in report.findings]
    assert any(words in f.message for f in report.findings), [f.message for f in report.findings]


@pytest.mark.parametrize("kind", FILES)
def test_a_broken_file_is_named(tmp_path, kind):
    spoil, code, words = FILES[kind]
    spoil(folder(tmp_path, hits()) / "hit_001.csv")
    report = check(tmp_path)
    (error,) = [f for f in report.findings if f.level == "error"]
    assert (error.code, report.readable, report.listed) == (code, 4, 5)
    assert error.message.startswith(words)
    shutil.rmtree(tmp_path)
