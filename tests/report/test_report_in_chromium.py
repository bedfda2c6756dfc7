"""A report in a real browser, as wide as a phone and as a desk: nothing sticks out, no labels collide, motions play."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from carom.identify.result import Estimate
from carom.report import Figure, Next, Section, Step, Table, Text, write_report
from carom.report import figures as draw
from carom.report.identified_figures import correlation_map
from carom.report.moving import strike_animation

WIDTHS = (390, 1280)
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
LOOK = """
const seen = [];
addEventListener("load", () => setTimeout(() => {
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, wide = frame.clientWidth, out = {wide, sticking: [], colliding: [], panels: 0};
    const inside = e => e.closest(".scroll");
    const all = "h1, h2, h3, p, li, pre span, table, svg.panel, .row span, .axis, figcaption";
    for (const e of page.querySelectorAll(all)) {
      const box = e.getBoundingClientRect();
      if (box.right > wide + 0.5 && !inside(e)) out.sticking.push(e.tagName + ": " + e.textContent.slice(0, 40));
    }
    out.overflow = page.documentElement.scrollWidth - wide;
    for (const panel of page.querySelectorAll("svg.panel")) {
      out.panels += 1;
      const words = [...panel.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
      const edge = panel.getBoundingClientRect();
      for (const [i, [a, p]] of words.entries()) {
        if (p.left < edge.left - 1 || p.right > edge.right + 1) out.sticking.push(a);
        for (const [b, q] of words.slice(i + 1))
          if (p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)
            out.colliding.push(a + " | " + b);
      }
    }
    const first = [...page.querySelectorAll("svg.panel")].slice(0, 3);
    out.beside = new Set(first.map(e => Math.round(e.getBoundingClientRect().bottom))).size == 1;
    const slider = page.querySelector(".player input"), block = page.querySelector("[data-poses]");
    out.end = block.getAttribute("transform");
    slider.value = 0;
    slider.oninput();
    out.start = block.getAttribute("transform");
    out.clock = page.querySelector(".player output").textContent;
    seen.push(out);
  }
  document.body.textContent = "FOUND" + JSON.stringify(seen) + "END";
}, 300));
"""


def _page(path: Path) -> str:
    rng = np.random.default_rng(0)
    measured = rng.normal(size=(30, 3))
    square = 0.04 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    way = np.linspace([0.0, 0.0, 0.0], [0.3, -0.1, 1.0], 30)
    names = [f"a_rather_long_name_of_a_recording_{i}.csv" for i in range(30)]
    long = "not identifiable from these recordings"
    found = [
        Estimate("ground_friction_of_the_support", 1234.5, "kg m/s^2", 1e-9, 1e9, (-1e9, 1e9), long, "why")
        for _ in "ab"
    ]
    columns = tuple(f"column {i}" for i in range(7))
    sections: list[Section] = [
        Text("In short", ("word " * 60, f"`{'very/' * 30}long/path`")),
        Table("Wide", columns, (tuple(f"a cell of some words {i}" for i in range(7)),), "What is shown. " * 5),
        Figure("Scatter", draw.impact_scatter(measured, measured, 0.1 + 0 * measured, 0.03, names), "Caption. " * 20),
        Figure(
            "Bars", draw.error_bars(["mujoco-default", "carom"], [0.4, 1.0], [0.1, 0.0], "accuracy@0.1"), "Caption."
        ),
        Figure("Map", draw.strike_map(square, *4 * [0.03 * measured[:, :2]]), "Caption. " * 20),
        Figure("Parameters", draw.parameter_intervals(found), "Caption. " * 20),
        Figure("Loss", draw.training_curves({"m": [(i, 10.0**-i, 2 * 10.0**-i) for i in range(6)]}), "Caption."),
        Figure("Matrix", correlation_map([f"a_parameter_{i}" for i in range(9)], np.eye(9).tolist()), "Caption."),
        Figure("Motion", strike_animation(square, way[0], way[-1], np.arange(30) / 30, way, way), "Caption. " * 9),
        Figure("Long rows", draw.error_bars(["strike the left edge, " * 6, "b"], [0.4, 1.0], [0, 0], "g"), "Words."),
        Next((Step("Do this. " * 9, f"carom plan {'a_folder/' * 12}model --target 0.1234 -0.2345 0.345"),)),
    ]
    return write_report(path, sections, title="A title that is rather long for a phone", subtitle="sub").read_text(
        "utf-8"
    )


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    folder = tmp_path_factory.mktemp("browser")
    page = html.escape(_page(folder / "report.html"))
    frames = "".join(f'<iframe width="{w}" height="3000" style="border:0" srcdoc="{page}"></iframe>' for w in WIDTHS)
    (folder / "look.html").write_text(f"<!DOCTYPE html><body>{frames}<script>{LOOK}</script></body>", encoding="utf-8")
    options = (f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", "--dump-dom")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *options, (folder / "look.html").as_uri()], capture_output=True, text=True, timeout=240
    )
    told = re.search(r"FOUND(.*)END", done.stdout, flags=re.S)
    if told is None:
        pytest.skip(f"Chromium does not run here: {done.stderr[-300:]}")
    return {found["wide"]: found for found in json.loads(html.unescape(told[1]))}


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_and_no_labels_collide(seen: dict[int, dict], width: int) -> None:
    found = seen[width]
    assert found["panels"] == 6
    assert found["sticking"] == []
    assert found["colliding"] == []
    assert found["overflow"] <= 0


def test_panels_are_beside_each_other_only_where_there_is_room(seen: dict[int, dict]) -> None:
    assert not seen[390]["beside"]
    assert seen[1280]["beside"]


def test_the_slider_moves_the_block(seen: dict[int, dict]) -> None:
    found = seen[390]
    assert found["clock"] == "0.000 s"
    assert found["start"] != found["end"]
    assert "rotate(-57.3)" in found["end"]  # one radian
