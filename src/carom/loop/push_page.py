"""Figures of a loop on pushes: one start and goal, repeated in every round, in reality and in the round's simulator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from carom.envs.pushing import PushingTask
from carom.loop.push_trials import MOTIONS, REPEATS
from carom.loop.steps import Round
from carom.report import Figure, Section, Table
from carom.report.chart import Chart, Data, Line, Mark, Panel, Points
from carom.report.moving import strike_animation
from carom.report.style import BLUE, CYCLE, GREY, INK, ORANGE, faint
from carom.state import Array

Motions = Mapping[str, Any]


def push_sections(task: PushingTask, rounds: Sequence[Round]) -> list[Section]:
    """What the finished rounds show beside the gap: Table I and figures 3 to 5 of the paper, success, an animation."""
    kept = [(r, found) for r in rounds if (found := _motions(r))]
    sections: list[Section] = []
    tried = [r for r in rounds if r.facts("deploy").get("trials")]
    if tried:
        sections.append(_success(tried))
    if not kept:
        return sections
    return [
        *sections,
        _table_one([r for r, _ in kept]),
        _trajectories(kept),
        _errors(kept),
        _yaw(kept),
        _animation(task, *kept[-1]),
    ]


def _motions(now: Round) -> Motions:
    path = now.place("deploy") / MOTIONS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _array(motions: Motions, name: str) -> Array:
    return np.array(motions[name], dtype=np.float64)


def _table_one(rounds: Sequence[Round]) -> Section:
    found = [(r.number, r.facts("deploy")["repeated"]) for r in rounds]
    rows = tuple((f"{n}", f["kl_x"], f["kl_y"], np.degrees(f["turn_off_rad"])) for n, f in found)
    note = (
        f"Table I of the paper: each round's policy pushes from one start to one goal, {REPEATS} times in reality, "
        "once in the simulator that it was trained in. KL is half the squared distance of the simulated place from the "
        "mean real one, in units of the real places' scatter, in the mean over the instants. Each round has its own "
        "policy, which takes its own way."
    )
    columns = ("round", "KL in x [nats]", "KL in y [nats]", "turn: simulated less real [deg]")
    return Table("One start and goal, repeated", columns, rows, note)


def _trajectories(kept: Sequence[tuple[Round, Motions]]) -> Section:
    panels, data = [], []
    for now, motions in kept:
        real, said, goal = (_array(motions, k) for k in ("real_m_rad", "simulated_m_rad", "goal_m_rad"))
        marks: list[Mark] = [
            Line(run[:, 0], run[:, 1], INK, "real" if i == 0 else "", 1.2) for i, run in enumerate(real)
        ]
        marks.append(Line(said[:, 0], said[:, 1], ORANGE, "simulated", 2.2))
        marks.append(Points([real[0, 0, 0]], [real[0, 0, 1]], GREY, "start", size=5))
        marks.append(Points([goal[0]], [goal[1]], BLUE, "goal", size=5))
        panels.append(Panel("x [m]", "y [m]", tuple(marks), f"round {now.number}", equal=True))
        time = _array(motions, "time_s").tolist()
        for name, runs in (("real", real), ("simulated", said[None])):
            data += [
                (now.number, f"{name} {i + 1}", t, x, y, yaw)
                for i, run in enumerate(runs.tolist())
                for t, (x, y, yaw) in zip(time, run, strict=True)
            ]
    caption = (
        "The block's way from one start to one goal: the policy of each round in reality and in the simulator that it "
        "was trained in. The two should come to lie on each other."
    )
    columns = ("round", "what", "time [s]", "x [m]", "y [m]", "yaw [rad]")
    return Figure("Real and simulated ways", Chart(tuple(panels), Data(columns, tuple(data)), across=2), caption)


def _errors(kept: Sequence[tuple[Round, Motions]]) -> Section:
    marks: list[Mark] = []
    data = []
    for now, motions in kept:
        time, error = _array(motions, "time_s"), _array(motions, "error_m")
        marks.append(Line(time, 1e3 * error, CYCLE[(now.number - 1) % len(CYCLE)], f"round {now.number}"))
        data += [(now.number, float(t), float(1e3 * e)) for t, e in zip(time, error, strict=True)]
    caption = (
        f"Distance of the simulated block from the real one over time, mean of {REPEATS} real pushes from one start "
        "to the same goal. Later rounds should lie lower."
    )
    panel = Panel("time [s]", "mean distance [mm]", tuple(marks))
    return Figure("Error over time", Chart((panel,), Data(("round", "time [s]", "error [mm]"), tuple(data))), caption)


def _yaw(kept: Sequence[tuple[Round, Motions]]) -> Section:
    panels, data = [], []
    for now, motions in kept:
        time = _array(motions, "time_s")
        real = np.degrees(np.unwrap(_array(motions, "real_m_rad")[..., 2], axis=-1))
        draws = _array(motions, "draws_m_rad")
        said = _array(motions, "simulated_m_rad")[None, :, 2]
        runs = said if not len(draws) else np.concatenate([said, draws[..., 2]])
        simulated = np.degrees(np.unwrap(runs, axis=-1))
        marks: list[Mark] = []
        bounds = []
        for name, values, colour in (("real", real, INK), ("simulated", simulated, ORANGE)):
            middle, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
            marks.append(_band(time, middle - spread, middle + spread, colour))
            marks.append(Line(time, middle, colour, name))
            bounds += [middle, spread]
        panels.append(Panel("time [s]", "yaw [deg]", tuple(marks), f"round {now.number}"))
        data += [(now.number, *map(float, row)) for row in zip(time, *bounds, strict=True)]
    caption = (
        "The block's yaw from the same start to the same goal, mean and one standard deviation: of the repeats in "
        "reality, and of the simulators that are as plausible as the tuned one. In the first round there is one alone."
    )
    names = ("round", "time [s]", "real [deg]", "real sigma [deg]", "simulated [deg]", "simulated sigma [deg]")
    return Figure("Yaw over time", Chart(tuple(panels), Data(names, tuple(data)), across=2), caption)


def _band(time: Array, low: Array, high: Array, colour: str) -> Line:
    around = np.concatenate([high, low[::-1]])
    return Line(np.concatenate([time, time[::-1]]), around, faint(colour), width=0.5, fill=faint(colour))


def _success(rounds: Sequence[Round]) -> Section:
    rows = []
    for now in rounds:
        trials = now.facts("deploy")["trials"]
        away = np.array([t["position_error_m"] for t in trials])
        turn = np.degrees([t["yaw_error_rad"] for t in trials])
        share = float(np.mean([t["success"] for t in trials]))
        rows.append((f"{now.number}", len(trials), share, 1e3 * float(np.median(away)), float(np.median(turn))))
    columns = ("round", "trials", "success", "median distance [mm]", "median turn left [deg]")
    note = (
        "Trials of each round's policy in reality, with starts and goals that no one has seen: where the block lies "
        "when time is up. Success: within 2 cm of its goal (a T: within 3 cm and 15 degrees)."
    )
    return Table("Success in reality", columns, tuple(rows), note)


def _animation(task: PushingTask, now: Round, motions: Motions) -> Section:
    outline = _t_outline(task) if task.scene.block == "t" else task.scene.corners[0]
    time, said = _array(motions, "time_s"), _array(motions, "simulated_m_rad")
    real, goal = _array(motions, "real_m_rad")[0], _array(motions, "goal_m_rad")
    chart = strike_animation(outline, real[0], goal, time, said, real)
    caption = (
        f"The policy of round {now.number} at work, from above: the block in reality (dark), and in the simulator that "
        "the policy was trained in (orange), from the same start to the same goal (blue)."
    )
    return Figure("The policy at work", chart, caption)


def _t_outline(task: PushingTask) -> Array:
    """Corners of the T [8, 2] [m], around."""
    bar, stem = task.scene.corners
    (x0, y0), x1 = stem.min(axis=0), stem[:, 0].max()
    (b0, c0), (b1, c1) = bar.min(axis=0), bar.max(axis=0)
    return np.array([[b0, c1], [b0, c0], [x0, c0], [x0, y0], [x1, y0], [x1, c0], [b1, c0], [b1, c1]])
