"""Tables and lines as a person sees them: whole words and numbers at any width, and nothing taken for markup."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from carom.cli.drawing import draw, harmless
from carom.cli.watching import EVERY, Lines
from carom.recipes.result import PrintedTable


def drawn(table, width):
    out = io.StringIO()
    draw(Console(file=out, width=width), table)
    return out.getvalue()


def narrow(columns=3):
    rows = [[f"file_{i:02d}.csv", *(0.123456 * (i + 1) for _ in range(columns - 2)), "ok"] for i in range(3)]
    return PrintedTable("a title", ("file", *(f"v{i} [m/s]" for i in range(columns - 2)), "status"), rows)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("columns", [2, 3, 6, 9, 14])
def test_numbers_and_names_are_never_broken(width, columns):
    said = drawn(narrow(columns), width)
    for word in ("file_00.csv", "file_02.csv", "[m/s]" if columns > 2 else "status", "0.1235" if columns > 2 else "ok"):
        assert word in said
    assert max(map(len, said.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 80, 120])
def test_long_text_wraps_between_words(width):
    text = "the strikes that were recorded last lie outside of what the others show, by more than half of their speed"
    said = drawn(PrintedTable("findings", ("level", "message"), [["warning", text]], (text,)), width)
    shown = re.findall(r"[a-z]+", said)
    assert set(text.replace(",", "").split()) <= set(shown)
    assert max(map(len, said.splitlines())) <= width


@pytest.mark.parametrize("width", [40, 80])
def test_a_name_longer_than_a_line_stays_whole(width):
    path = "/" + "/".join(f"folder_{i:02d}" for i in range(12))
    assert path in drawn(PrintedTable("t", ("what", "value"), [["model", path]]), width)


@pytest.mark.parametrize("text", ["[/x]", "[bold]no[/bold]", ":smile:", "[nat]", r"\[m]", "vx [m/s]", "[red"])
def test_nothing_is_markup(text):
    said = drawn(PrintedTable(text, (f"{text} a", f"{text} b"), [[text, 1.0]], (f"{text} note",)), 80)
    assert said.count(text) == 5


def test_what_a_terminal_would_act_on_is_shown_as_text():
    assert harmless("a\x1b]0;t\x07b\r\n\u202ec\udcff") == r"a\x1b]0;t\x07b\r\n\u202ec\udcff"
    said = drawn(PrintedTable("\x1b[2J", ("\x07", "b"), [["\x1b[31m", "\x9b1m"]], ("\x1bc",)), 80)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said)
    assert r"\x1b[31m" in said


def test_what_is_not_known_is_a_dash():
    said = drawn(PrintedTable("t", ("what", "value"), [["a", None], ["b", float("nan")], ["c", 0.0]]), 80)
    assert "nan" not in said
    assert "None" not in said
    assert len(re.findall(r"│ +- │", said)) == 2


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_log_gets_a_line_for_each_stage_and_one_every_ten_seconds():
    clock, said = Clock(), []
    lines = Lines(said.append, clock)
    lines.beat()
    assert said == []  # nothing has begun, and nobody has waited yet
    lines.update("simulate", 0, 100)
    assert said == []  # what is done within a second needs no line
    for clock.now in (0.2, 0.4, 2.0, 5.0, 8.0):
        lines.update("simulate", int(clock.now), 100)
        lines.beat()
    assert said == ["... simulate: 2 of 100, after 2 s"]
    clock.now = EVERY + 2
    lines.beat()
    assert said[-1] == "... simulate: 8 of 100, after 12 s"
    clock.now += 2
    lines.update("train", 1, 9)
    assert said[-1] == "... train: 1 of 9, after 14 s"
    lines.update("save", 0, 1)  # at once: it has to wait for its line
    assert len(said) == 3
    clock.now += 1.5
    lines.beat()
    assert said[-1] == "... save: 0 of 1, after 16 s"


def test_a_log_says_that_something_is_done_even_if_the_work_says_nothing():
    clock, said = Clock(), []
    lines = Lines(said.append, clock)
    for clock.now in (3.0, EVERY, EVERY + 1, 2 * EVERY):
        lines.beat()
    assert said == ["... working, after 10 s", "... working, after 20 s"]
