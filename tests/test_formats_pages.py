"""docs/recordings.md and docs/scenes.md have the keys and defaults of the models, and their Python runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from carom.recordings.formats import header
from carom.scenes import schema
from carom.scenes.stated import BodyModel

DOCS = Path(__file__).resolve().parents[1] / "docs"
SECTIONS = {
    "recordings.md": {
        "recordings.yaml": header.HeaderModel,
        "units": header.UnitsModel,
        "body": header.RecordedBodyModel,
        "tracked": header.TrackedModel,
        "ground": header.GroundModel,
        "trajectory": header.TrajectoryModel,
    },
    "scenes.md": {
        "scene": schema.SceneModel,
        "units": schema.UnitsModel,
        "target": schema.TargetModel,
        "roles": schema.RolesModel,
    },
}
PLACES = [(page, section) for page, sections in SECTIONS.items() for section in sections]


def rows(page: str, section: str) -> dict[str, list[str]]:
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in cells}


@pytest.mark.parametrize(("page", "section"), PLACES)
def test_a_page_has_the_keys_and_defaults_of_its_model(page: str, section: str) -> None:
    model: type[BaseModel] = SECTIONS[page][section]
    fields = dict(model.model_fields)
    if model is schema.TargetModel:  # the others are those of a body, on the other page
        fields = {key: field for key, field in fields.items() if key not in BodyModel.model_fields}
    stated = rows(page, section)
    assert set(stated) == set(fields)
    for key, field in fields.items():
        said = stated[key][1]
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        if field.is_required():
            assert said == "required", key
        elif isinstance(default, BaseModel):
            assert said == "see below", key
        elif default is None:
            assert said == "none", key
        else:
            shown = yaml.safe_load(said.strip("`"))
            assert (tuple(shown) if isinstance(shown, list) else shown) == default, key
        for allowed in get_args(field.annotation):
            if isinstance(allowed, str):
                assert f"`{allowed}`" in stated[key][2], key


def test_a_scenes_striker_has_the_keys_of_a_recorded_body() -> None:
    assert set(schema.StrikerModel.model_fields) == set(BodyModel.model_fields)
    assert set(header.RecordedBodyModel.model_fields) == {*BodyModel.model_fields, "role", "tracked"}


@pytest.mark.parametrize("page", SECTIONS)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})  # noqa: S102 - code of our own pages
