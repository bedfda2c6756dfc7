"""The page of an identification from whole trajectories: errors before and after, motions, parameters, doubts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from carom.core.errors import CaromError
from carom.identify.result import Identification
from carom.identify.tosses.recorded import Motions
from carom.report.estimates import by_verdict, effort_rows, parameter_sections, unit
from carom.report.figures import brief
from carom.report.identified_figures import correlation_map, error_pairs, errors_of, motion_rows
from carom.report.page import Figure, Next, Section, Step, Table, Text, write_report
from carom.state import Motion

EQUATION_1 = "mean over time of distance over the body's width, plus angle in radians; 0 is perfect"


def identified_page(
    path: Path,
    identification: Identification,
    motions: Motions,
    after: Motion,
    before: Motion,
    steps: Sequence[Step] = (),
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
            "How far the simulated body is from the real one, as a mean over each recording: the distance in percent "
            "of the body's width, and the angle. Lower is better. Grey: with the engine's default parameters. "
            "Orange: with those identified. Dotted: means over all recordings.",
        ),
        Figure(
            "Real and simulated motion",
            motion_rows(motions, after, before),
            "Recordings from the best to the worst after identification, simulated from the state shortly "
            "before the first contact without a look at what follows. The dashed line should lie on the dark one, "
            "and the angle should stay near zero. After several bounces small errors grow large: that is the nature "
            "of tumbling.",
        ),
        *parameter_sections(identification),
        *_doubts(identification),
        _facts(identification),
        *([Next(tuple(steps))] if steps else []),
    ]
    title = f"Identified: {identification.scene}"
    subtitle = f"recordings shown: {len(motions)}; {identification.method}, seed {identification.seed}"
    return write_report(path, sections, title=title, subtitle=subtitle)


def _in_short(identification: Identification, motions: Motions, after: Motion, before: Motion) -> Text:
    (p0, r0), (p1, r1) = (errors_of(motions, m) for m in (before, after))
    turned = bool(np.isfinite(motions.quaternion).any())
    before_turned, after_turned = (f" and **{r.mean():.1f}°**" if turned else "" for r in (r0, r1))
    count = f"{len(motions)} recordings" if len(motions) > 1 else "one recording"
    first = (
        f"On {count} the simulator was off by **{p0.mean():.1f} %** of the body's width{before_turned} with default "
        f"parameters, and is by **{p1.mean():.1f} %**{after_turned} with those identified. "
        f"{'' if turned else 'Orientation was not measured. '}{_seen(identification, motions)}"
    )
    paragraphs = [first]
    if (held := identification.held_out) is not None:
        paragraphs.append(
            f"As one number ({EQUATION_1}; Eq. 1 of the few-shot paper) the error is **{held.loss:.3f}** on "
            f"recordings held out ({identification.held_out_by}) and "
            f"{identification.training.loss:.3f} on the {identification.training.strikes} that were fitted. Alike is "
            "good; much larger on those held out means that too few were fitted."
        )
    return Text("In short", (*paragraphs, *by_verdict(identification)))


def _seen(identification: Identification, motions: Motions) -> str:
    """Whether the recordings on the page are those that were fitted."""
    fitted = set(identification.extra.get("recordings", ()))
    used = sum(name in fitted for name in motions.names)
    if not fitted:
        return ""
    if not used:
        return f"None of these recordings was used to identify them: {len(fitted)} others were."
    every = "These recordings were" if len(motions) > 1 else "It was"
    which = every if used == len(motions) else f"{used} of these recordings were"
    return f"{which} used to identify them."


def _doubts(identification: Identification) -> list[Section]:
    """Which parameters trade off against each other, and where other starts ended; what is there of the two."""
    made: list[Section] = []
    extra = identification.extra
    correlations = extra.get("correlations")
    if correlations and len(correlations["names"]) > 1:
        figure = correlation_map(correlations["names"], correlations["matrix"])
        caption = (
            "Correlation of the parameters' errors; columns have the numbers of the rows. Near 0 is good. Near 1 or "
            "-1 the recordings show a combination of the two rather than each: one can be raised if the other "
            "follows."
        )
        made.append(Figure("Which parameters trade off", figure, caption))
    restarts: Sequence[Mapping[str, float]] = extra.get("restarts") or ()
    if restarts:
        names = list(restarts[0])
        rows = []
        for name in names:
            ends = [float(r[name]) for r in restarts]
            symbol = unit(identification[name].unit)
            rows.append((name.replace("_", " "), symbol, *map(brief, ends), brief(identification[name].value)))
        columns = ("parameter", "unit", *(f"start {i}" for i in range(1, len(restarts) + 1)), "in the end")
        note = (
            "Where searches from other starts ended, before the last stage went on from the best of them. Ends that "
            "agree are good; where they differ, the recordings leave the value open."
        )
        made.append(Table("Searches from other starts", columns, tuple(rows), note))
    return made


def _facts(identification: Identification) -> Table:
    """Everything else, so that the page says how it was made."""
    extra = identification.extra
    rows: list[tuple[str, str]] = []
    direct = [e for e in identification.estimates if e.name in identification.extra.get("read_off", ())]
    if direct:
        said = (f"{e.name.replace('_', ' ')} {brief(e.value)} {e.unit if e.unit != '1' else ''}" for e in direct)
        rows.append(("read off directly, without a search", "; ".join(s.strip() for s in said)))
    if sides := extra.get("sides"):
        towards: dict[str, list[str]] = {}
        for name, side in sides.items():
            towards.setdefault(str(side), []).append(Path(name).stem)
        words = "; ".join(f"{side}: {', '.join(names)}" for side, names in sorted(towards.items()))
        rows.append(("side of the body towards which its mass lies", words))
    rows.append(("error (Eq. 1), fitted recordings", f"{identification.training.loss:.4f} ({identification.norm})"))
    if identification.held_out is not None:
        rows.append((f"error (Eq. 1), {identification.held_out_by}", f"{identification.held_out.loss:.4f}"))
    rows += effort_rows(identification)
    note = f"What else was found, and how, so that it can be done again. Eq. 1: {EQUATION_1}."
    return Table("How it was made", ("what", "value"), tuple(rows), note)
