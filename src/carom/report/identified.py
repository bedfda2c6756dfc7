"""The page of an identification from whole trajectories: errors before and after, motions, parameters, doubts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError
from carom.identify.result import Identification
from carom.identify.tosses.recorded import Motions
from carom.report.figures import interval_of, parameter_intervals
from carom.report.identified_figures import correlation_map, error_pairs, errors_of, motion_rows
from carom.report.page import Figure, Section, Table, Text, write_report
from carom.scenes.parameters import PARAMETERS
from carom.state import Motion


def identified_page(
    path: Path, identification: Identification, motions: Motions, after: Motion, before: Motion
) -> Path:
    """Write the page to `path`; `after` and `before` are every recording with the identified and default parameters."""
    for label, motion in (("after", after), ("before", before)):
        if motion.position.shape != motions.position.shape:
            what = f"{label}: expected one rollout of {motions.samples} samples for each of {len(motions)} recordings"
            raise CaromError(f"{what}, {motions.position.shape}; got {motion.position.shape}")
    sections: list[Section] = [
        _in_short(identification, motions, after, before),
        Figure(
            "Error before and after",
            error_pairs(motions, after, before),
            "Eq. 1 of the few-shot paper, its two terms apart: mean over time of the distance over the body's width, "
            "and of the angle between real and simulated. Recordings are in the order of their error after "
            "identification. Dotted: means. Before: the engine's default parameters.",
        ),
        Figure(
            "Real and simulated motion",
            motion_rows(motions, after, before),
            "Simulated from the state shortly before the first contact, without a look at what follows. Rows go from "
            "the best to the worst of the recordings after identification. Left to right: height over time, the path "
            "seen from above, the angle between real and simulated.",
        ),
        *_parameters(identification),
        *_doubts(identification),
        _facts(identification),
    ]
    title = f"Identified: {identification.scene}"
    subtitle = f"{len(motions)} recordings shown, {identification.method}, seed {identification.seed}"
    return write_report(path, sections, title=title, subtitle=subtitle)


def _in_short(identification: Identification, motions: Motions, after: Motion, before: Motion) -> Text:
    (p0, r0), (p1, r1) = (errors_of(motions, m) for m in (before, after))
    first = (
        f"On {len(motions)} recordings the simulator was off by **{p0.mean():.1f} %** of the body's width and "
        f"**{r0.mean():.1f}°** with default parameters, and is by **{p1.mean():.1f} %** and **{r1.mean():.1f}°** with "
        f"those identified. {_seen(identification, motions)}"
    )
    paragraphs = [first]
    if (held := identification.held_out) is not None:
        paragraphs.append(
            f"On {held.strikes} recordings held out ({identification.held_out_by}) Eq. 1 is **{held.loss:.3f}**, "
            f"on the {identification.training.strikes} fitted ones {identification.training.loss:.3f}."
        )
    by_verdict: dict[str, list[str]] = {}
    for e in identification.estimates:
        by_verdict.setdefault(e.verdict, []).append(e.name.replace("_", " "))
    paragraphs.append("; ".join(f"**{v}**: {', '.join(names)}" for v, names in by_verdict.items()) + ".")
    return Text("In short", tuple(paragraphs))


def _seen(identification: Identification, motions: Motions) -> str:
    """Whether the recordings on the page are those that were fitted."""
    fitted = set(identification.extra.get("recordings", ()))
    used = sum(name in fitted for name in motions.names)
    if not fitted:
        return ""
    if not used:
        return f"None of these recordings was used to identify them: {len(fitted)} others were."
    which = "These recordings were" if used == len(motions) else f"{used} of these recordings were"
    return f"{which} used to identify them."


def _parameters(identification: Identification) -> list[Section]:
    drawn = [interval_of(estimate, log=_is_log(estimate.name)) for estimate in identification.estimates]
    rows = tuple(
        (
            e.name.replace("_", " "),
            _plain(e.value),
            _unit(e.unit),
            f"{_plain(e.low)} to {_plain(e.high)}",
            f"{_plain(e.bounds[0])} to {_plain(e.bounds[1])}",
            e.verdict,
            e.reason,
        )
        for e in (*identification.estimates, *identification.derived)
    )
    columns = ("parameter", "value", "unit", "90 % interval", "bounds", "verdict", "why")
    figure = parameter_intervals(drawn).update_layout(margin_r=280)
    return [
        Figure("Parameters", figure, "Dot: value. Bar: 90 % interval, within the bounds searched."),
        Table("Parameters, in figures", columns, rows),
    ]


def _is_log(name: str) -> bool:
    known = PARAMETERS.get(name)
    return known is not None and known.log


def _unit(unit: str) -> str:
    return "–" if unit == "1" else unit


def _plain(value: float) -> str:
    """Three digits, without a power of ten where a person would not write one.

    >>> _plain(51657.9), _plain(0.15352), _plain(2e-6)
    ('51700', '0.154', '2e-06')
    """
    if 1e3 <= abs(value) < 1e7:
        digits = 2 - int(np.floor(np.log10(abs(value))))
        return f"{round(value, digits):.0f}"
    return f"{value:.3g}"


def _doubts(identification: Identification) -> list[Section]:
    """Which parameters trade off against each other, and where other starts ended; what is there of the two."""
    made: list[Section] = []
    extra = identification.extra
    correlations = extra.get("correlations")
    if correlations and len(correlations["names"]) > 1:
        figure = correlation_map(correlations["names"], correlations["matrix"])
        caption = "Correlation of the parameters' errors. Near 1 or -1, recordings show a combination rather than each."
        made.append(Figure("Which parameters trade off", figure, caption))
    restarts: Sequence[Mapping[str, float]] = extra.get("restarts") or ()
    if restarts:
        names = list(restarts[0])
        rows = []
        for name in names:
            ends, unit = [float(r[name]) for r in restarts], _unit(identification[name].unit)
            rows.append((name.replace("_", " "), unit, *map(_plain, ends), _plain(identification[name].value)))
        columns = ("parameter", "unit", *(f"start {i}" for i in range(1, len(restarts) + 1)), "in the end")
        note = "Where searches from other starts ended, before the last stage went on from the best of them."
        made.append(Table("Searches from other starts", columns, tuple(rows), note))
    return made


def _facts(identification: Identification) -> Table:
    """Everything else, so that the page says how it was made."""
    extra = identification.extra
    rows: list[tuple[str, str]] = []
    direct = [e for e in identification.estimates if e.name in identification.extra.get("read_off", ())]
    if direct:
        said = (f"{e.name.replace('_', ' ')} {_plain(e.value)} {e.unit if e.unit != '1' else ''}" for e in direct)
        rows.append(("read off directly, without a search", "; ".join(s.strip() for s in said)))
    if sides := extra.get("sides"):
        towards: dict[str, list[str]] = {}
        for name, side in sides.items():
            towards.setdefault(str(side), []).append(Path(name).stem)
        words = "; ".join(f"{side}: {', '.join(names)}" for side, names in sorted(towards.items()))
        rows.append(("side of the body towards which its mass lies", words))
    rows += [("note", note) for note in identification.notes]
    rows.append(("Eq. 1, fitted recordings", f"{identification.training.loss:.4f} ({identification.norm})"))
    if identification.held_out is not None:
        rows.append((f"Eq. 1, {identification.held_out_by}", f"{identification.held_out.loss:.4f}"))
    rows += [
        ("rollouts simulated", f"{identification.evaluations}, of which {identification.failures} failed"),
        ("time", f"{identification.seconds:.1f} s"),
        ("method and seed", f"{identification.method}, {identification.seed}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in identification.to_dict()["made_with"].items())),
    ]
    return Table("How it was made", ("what", "value"), tuple(rows))
