"""YAML of strangers: whatever is in it, one line says what is wrong, soon and in little memory."""

import re
import time
import tracemalloc
from pathlib import Path

import pytest

import carom
from carom.core.errors import CaromError
from carom.core.yaml_files import LARGEST, YamlError, read_yaml, yaml_text
from carom.envs.routes import route_from
from carom.identify.result import read as read_parameters
from carom.recordings import read as read_recordings
from carom.scenes.load import load_scene

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=False)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LAUGHS, "'*a' repeats another place of the file; write it out"),
        ("a: &a {b: *a}", "'*a' repeats"),
        ("[" * 10_000, "nested more than 50 deep"),
        ("? " * 10_000, "nested more than 50 deep"),
        ("a: " + "9" * 5000, "a number of 5000 digits; at most 100"),
        ("a: 1:" + "1:" * 5000 + "1", "digits; at most 100"),
        ("a: !!bool x", "'x' is no bool"),
        ("a: !!int x", "'x' is no int"),
        ("a: !!float ''", "'' is no float"),
        ("a: !!timestamp 2024-99-99", "could not determine a constructor for the tag"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor for the tag"),
        ("a: !!binary x", "could not determine a constructor for the tag"),
        ("a: !mine {}", "could not determine a constructor for the tag '!mine'"),
        ('a: "\\ud800"', "a character that no text has"),
        ('a: "x\\0y"', "a character that no text has"),
        ("[" + "0, " * 50_100 + "[" + "0, " * 50_100 + "]]", "more than 100000 entries"),
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_plain_data_is_one_line(tmp_path, text, says):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(YamlError, match=re.escape(says)) as refused:
        read_yaml(path)
    assert "\n" not in refused.value.message
    assert refused.value.line is not None


def test_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "x.yaml"
    with path.open("wb") as file:
        file.truncate(1_000_000_000)
    tracemalloc.start()
    with pytest.raises(YamlError, match="expected a text of at most 2 MB"):
        read_yaml(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * LARGEST
    tracemalloc.stop()


def test_every_reader_refuses_nested_aliases_at_once(tmp_path):
    for name, reader in (
        ("recordings.yaml", lambda path: read_recordings(path.parent)),
        ("scene.yaml", load_scene),
        ("parameters.yaml", read_parameters),
        ("route.yaml", route_from),
    ):
        path = tmp_path / name
        path.write_text(LAUGHS)
        start = time.monotonic()
        with pytest.raises(CaromError, match=f"{name}, (row|line) 2: .*repeats another place"):
            reader(path)
        assert time.monotonic() - start < 2


def test_dates_are_text(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("{day: 2024-02-30, at: 2024-01-01 10:00:00, yes: on, n: 1_0, f: 1.5, none: ~}")
    assert read_yaml(path)[0] == {
        "day": "2024-02-30",
        "at": "2024-01-01 10:00:00",
        True: True,
        "n": 10,
        "f": 1.5,
        "none": None,
    }


def test_what_is_written_can_be_read_though_it_repeats_itself(tmp_path):
    size = [1.0, 2.0]
    path = tmp_path / "x.yaml"
    path.write_text(yaml_text({"a": size, "b": size, "day": "2024-01-01"}))
    assert read_yaml(path)[0] == {"a": size, "b": size, "day": "2024-01-01"}


def test_there_is_one_reader():
    source = Path(carom.__file__).parent
    found = [p for p in source.rglob("*.py") if re.search(r"yaml\.(safe_|full_|unsafe_)?load\b", p.read_text())]
    assert found == []
