"""The page of an identification from strikes: parameters, measured against predicted outcomes, slides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from carom.compare.metrics import accuracy, relative_error
from carom.engines.contact_frames import contact_frames
from carom.identify.result import Identification
from carom.identify.strikes.slides import SlideFriction
from carom.report.chart import Chart, Data, Line, Panel, Points
from carom.report.estimates import by_verdict, effort_rows, parameter_sections
from carom.report.figures import ALPHA, impact_scatter, strike_map
from carom.report.page import Figure, Next, Section, Step, Table, Text, write_report
from carom.report.style import BLUE, INK
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, rotate


def strikes_page(
    path: Path,
    scene: StrikeScene,
    identification: Identification,
    impacts: Impacts,
    predicted: Array,
    slides: SlideFriction | None,
    steps: Sequence[Step],
) -> Path:
    """Write the page to `path`; `predicted` [N, 3] are outcomes of the recorded strikes with what was identified."""
    sections: list[Section] = [
        _in_short(identification, scene, impacts, predicted),
        *parameter_sections(identification),
        *outcome_sections(scene, impacts, predicted, None, "These strikes were fitted; unseen ones are off by more."),
        *_slides(slides),
        _facts(identification),
        Next(tuple(steps)),
    ]
    subtitle = f"{len(impacts)} strikes, {identification.method}, seed {identification.seed}"
    return write_report(path, sections, title=f"Identified from strikes: {scene.name}", subtitle=subtitle)


def outcome_sections(
    scene: StrikeScene, impacts: Impacts, predicted: Array, std: Array | None, words: str
) -> list[Section]:
    """Predicted against measured outcomes of strikes, and where they were struck; `words` say which these are."""
    frames, yaw = contact_frames(scene, impacts.strikes), impacts.strikes.target_pose[:, 2]
    local = [rotate(v[:, :2], -yaw) for v in (impacts.strikes.striker_velocity, impacts.post, predicted)]
    bars = "" if std is None else " Bars are 90 % intervals of the prediction; nine of ten should reach the diagonal."
    return [
        Figure(
            "Predicted and measured outcomes",
            impact_scatter(impacts.post, predicted, std, scene.gyration_radius, impacts.names),
            "The target's velocity right after each strike: forward and sideways (vx, vy), and its spin as a speed "
            "(k·wz, spin times the radius of gyration). On the diagonal a prediction is perfect; in the blue band it "
            f"is about right. Red strikes are off by 10 % or more as a whole.{bars} {words}",
        ),
        Figure(
            "Where and how it was struck",
            strike_map(scene.outline.vertices, frames.point, *local),
            "The target seen from above, in its own frame. Grey arrows: the striker as it comes. Dark: how the "
            "target left, as measured. Orange: as predicted; it should lie on the dark one. Places without arrows "
            "were not tried.",
        ),
    ]


def _in_short(identification: Identification, scene: StrikeScene, impacts: Impacts, predicted: Array) -> Text:
    error = relative_error(predicted, impacts.post, scene.gyration_radius)
    share, middle = accuracy(error, ALPHA), float(np.median(error))
    paragraphs = [
        f"With the identified parameters **{100 * share:.0f} %** of the {len(impacts)} fitted strikes are predicted "
        f"within 10 %, half of them within {100 * middle:.1f} %. The error is that of the whole outcome (vx, vy, "
        "k·wz), over its size."
    ]
    if (held := identification.held_out) is not None:
        paragraphs.append(
            f"On strikes left out of the fit ({identification.held_out_by}) **{100 * held.accuracy:.0f} %** are "
            f"within 10 %, half within {100 * held.median_relative_error:.1f} %: this is what to expect of the next "
            "strikes. Where it is far below the first figure, the parameters fit these strikes rather than the "
            "contact."
        )
    return Text("In short", (*paragraphs, *by_verdict(identification)))


def _slides(slides: SlideFriction | None) -> list[Section]:
    """Friction of every slide, and what they say together."""
    if slides is None:
        said = "No recording shows a slide that ground friction could be read from. It was looked for with the others."
        return [Text("Slides", (said,))]
    low, high = slides.interval()
    count = len(slides.each)
    ends = np.array([0.4, count + 0.6])
    hints = [f"{name}: friction {mu:.3f}" for name, mu in zip(slides.names, slides.each, strict=True)]
    band = Line([*ends, *ends[::-1]], [low, low, high, high], BLUE, "90 % interval", 0, fill="rgba(0,114,178,0.15)")
    marks = (
        band,
        Line(ends, [slides.friction] * 2, BLUE, "together"),
        Points(np.arange(1, count + 1), slides.each, INK, "one slide each", labels=hints),
    )
    top = 1.1 * max(float(slides.each.max()), high)
    what = "ground friction [1]"
    panel = Panel("slides, in the order of the recordings", what, marks, y_range=(0.0, top), x_numbers=False)
    rows = tuple((name, float(mu)) for name, mu in zip(slides.names, slides.each, strict=True))
    words = f"**Ground friction {slides.friction:.3f}** [{low:.3f}, {high:.3f}] from {slides.slides} slides."
    figure = Figure(
        "Slides",
        Chart((panel,), Data(("recording", what), rows), words),
        "Friction between target and ground, read off each recorded slide; it was held while the contact was fitted. "
        "Dots close together are good. A dot far from the others, or a trend, means that the ground differs from "
        "place to place, or that something else acts on the target.",
    )
    return [figure, *_slide_facts(slides)]


def _slide_facts(slides: SlideFriction) -> list[Section]:
    rows: list[tuple[str, str]] = []
    if np.isfinite(slides.torsion_length):
        spread = f" ± {1e3 * slides.torsion_std:.1f}" if np.isfinite(slides.torsion_std) else ""
        length = f"{1e3 * slides.torsion_length:.1f}{spread} mm"
        rows.append(("torque of friction over its force, in pure spin", length))
    if np.isfinite(slides.patch_length):
        rows.append(("the same for even pressure under the whole target", f"{1e3 * slides.patch_length:.1f} mm"))
    rows += [(f"not used: {name}", reason) for name, reason in slides.skipped]
    if not rows:
        return []
    note = (
        "How the target rubs when it spins, against what a flat, evenly loaded bottom would do: alike is usual, much "
        "less means that it stands on a small patch. Slides that were not used are named with the reason."
    )
    return [Table("Slides, in figures", ("what", "value"), tuple(rows), note)]


def _facts(identification: Identification) -> Table:
    training, held = identification.training, identification.held_out
    rows = [("engine whose parameters these are", identification.teacher)]
    rows.append(("mean squared error, fitted strikes", f"{training.loss:.4g} ({identification.norm})"))
    if held is not None:
        rows.append((f"mean squared error, {identification.held_out_by}", f"{held.loss:.4g}"))
    note = "How it was found, so that it can be done again. Of the mean squared errors, lower is better."
    return Table("How it was made", ("what", "value"), (*rows, *effort_rows(identification)), note)
