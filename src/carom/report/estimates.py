"""What every page of an identification shares: parameters with intervals and verdicts, and how it was made."""

from __future__ import annotations

from carom.identify.result import Estimate, Identification
from carom.report.figures import brief, parameter_intervals
from carom.report.page import Figure, Section, Table

#: what to make of a verdict, in plain words
VERDICTS = {
    "identified": "its interval is narrow; the value can be used",
    "weakly identified": "its interval is wide; the value is a rough guide",
    "on a bound": "the search ended at the edge of what is allowed; do not trust the value",
    "not identifiable from these recordings": "other values explain the recordings as well; the value means little",
    "given": "it was not looked for; it is what you, the slides or the defaults say",
}


def by_verdict(identification: Identification) -> tuple[str, ...]:
    """Which parameters have which verdict, and what that means: a paragraph each."""
    found: dict[str, list[str]] = {}
    for e in identification.estimates:
        found.setdefault(e.verdict, []).append(e.name.replace("_", " "))
    return tuple(
        f"**{verdict[0].upper() + verdict[1:]}:** {', '.join(names)} ({VERDICTS[verdict]})."
        for verdict, names in found.items()
    )


def parameter_sections(identification: Identification) -> list[Section]:
    """Parameters as a figure and as a table."""
    figure = Figure(
        "Parameters",
        parameter_intervals(identification.estimates),
        "Where each parameter was found between the bounds it was looked for in. Dot: the value. Bar: the 90 % "
        "interval, which holds the truth in nine cases of ten. A short bar is good; a bar over the whole range says "
        "nothing. Parameters that span powers of ten are drawn on a logarithmic scale.",
    )
    columns = ("parameter", "value", "unit", "90 % interval", "bounds", "verdict", "why")
    note = "The same in figures, with the reason for each verdict. Only what is called identified should be relied on."
    every = (*identification.estimates, *identification.derived)
    return [figure, Table("Parameters, in figures", columns, tuple(map(_row, every)), note)]


def _row(e: Estimate) -> tuple[str, ...]:
    interval, bounds = (f"{brief(low)} to {brief(high)}" for low, high in ((e.low, e.high), e.bounds))
    return e.name.replace("_", " "), brief(e.value), unit(e.unit), interval, bounds, e.verdict, e.reason


def unit(symbol: str) -> str:
    """A unit as a cell of its own."""
    return "–" if symbol == "1" else symbol


def effort_rows(identification: Identification) -> list[tuple[str, str]]:
    """Notes, effort, method and versions: the end of every table on how it was made."""
    rows = [("note", note) for note in identification.notes]
    rows += [
        ("simulated", f"{identification.evaluations} rollouts, of which {identification.failures} failed"),
        ("time", f"{identification.seconds:.1f} s"),
        ("method and seed", f"{identification.method}, {identification.seed}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in identification.to_dict()["made_with"].items())),
    ]
    return rows
