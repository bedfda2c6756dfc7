"""The demo, made small: its report, the model it leaves, and that one can go on with it."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
from report_pages import downloads, good_page, next_commands, sections

from carom import recipes
from carom.compare import method_words
from carom.learn.impact import student
from carom.recipes import demonstrating, evaluating


def test_the_demo_leaves_a_model_to_go_on_with(tmp_path, monkeypatch):
    for name, value in {"TEST": 8, "SAMPLES": 2048, "STEPS": 100, "METHODS": ("mean", "carom")}.items():
        monkeypatch.setattr(demonstrating, name, value)
    monkeypatch.setattr(evaluating, "paper_base", lambda *_: None)  # its method is not asked for
    monkeypatch.setattr(student, "SMALL", replace(student.SMALL, steps=150))
    monkeypatch.setattr(student, "SPREAD_STEPS", 100)
    result = recipes.demo(tmp_path / "demo")
    assert result.model == tmp_path / "demo" / "model"
    page = good_page(result.report)
    assert {"Methods side by side", "A planned strike", "Plan and outcome in motion"} <= set(sections(page))
    for method in ("mean", "carom"):
        assert method_words(method) in page
    command = next_commands(page)[0]
    assert command[:3] == ["carom", "plan", str(result.model)]
    assert f"model: {result.model}" in result.notes()
    assert result.next_commands()[0] == shlex.join(command)
    assert result.to_dict()["model"] == str(result.model)
    pose = [float(word) for word in command[4:7]]
    search = recipes.SearchOptions(budget=60, robust=False, tolerance=(0.1, 1.0))
    files = recipes.PlanFiles(report=tmp_path / "plan.html")
    made = recipes.plan(result.model, pose, search=search, files=files, threads=1)
    _says_the_same_everywhere(made, good_page(tmp_path / "plan.html"))


def _says_the_same_everywhere(made, page):
    assert "--export" in next_commands(page)[0]
    said = f"position error {1e3 * made.plan.position_error:.1f} mm"
    assert said in page
    places = {row[0]: row for row in downloads(page)["a-planned-strike.csv"][1:]}
    np.testing.assert_allclose([float(v) for v in places["wanted"][1:]], made.plan.wanted, atol=1e-5)
