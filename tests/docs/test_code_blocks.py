"""Every block of code in the README and in docs/ runs, from top to bottom of its page, in a folder with a lab in it.

Python blocks of a page share their names. Commands run as they are typed, but with smaller numbers (`LESS`): they are
looked at for whether they work, not for what they find.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from page_labs import Labs, furnish
from small_loops import quick_strikes

from carom.cli import main

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(p.relative_to(ROOT) for p in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")))
#: what is asked for in docs, and how much of it is enough here
LESS = {
    "--steps 200000": "--steps 384",
    "--count 3000": "--count 6",
    "--count 1500": "--count 12",
    "--fit 8": "--fit 3",
    "--trials 100": "--trials 2",
    "--samples 60000": "--samples 512",
    "random((1000, 3))": "random((20, 3))",
    "trials=10": "trials=1",
    "--routes 1 2 3": "--routes 1",
    "--rate 148": "--rate 148 --count 12",
    "train-graph around thrown": "train-graph around thrown --updates 10",
    "push_tasks(engine, 20": "push_tasks(engine, 2",
    "steps=100_000": "steps=4096",
    "steps=50_000": "steps=4096",
    "updates=100": "updates=1",
    "plan_pushes(engine, tasks, ": "plan_pushes(engine, tasks, guesses=2, epochs=1, ",
    "--scene planar-cube": "--scene planar-cube --steps 4096",
    "carom rollout policies/push ": "carom rollout policies/push --trials 2 ",
}
#: first words of lines that other tests or the makers of a machine look after
ELSEWHERE = ("make", "pip", "cd", "git", ".")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]


def commands(text: str) -> list[str]:
    """The commands of a block, without comments and continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [found for line in lines if (found := re.split(r"\s#", line)[0].strip()) and not found.startswith("#")]


def smaller(text: str) -> str:
    for asked, enough in LESS.items():
        text = text.replace(asked, enough)
    return text


def run(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(command)
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code == 0, f"{command}: {said.err}"


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Labs:
    return Labs(tmp_path_factory.mktemp("labs"))


WITH_CODE = [page for page in PAGES if any(kind in ("python", "sh") for kind, _ in blocks(page))]


def test_code_stands_in_fences() -> None:
    """Indented code would not be seen here."""
    typed = re.compile(r"^ {4}(?:\$ )?(?:carom|python|pip|make) ", re.MULTILINE)
    for page in PAGES:
        outside = BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
        assert not typed.search(outside), f"{page}: put it between ```sh and ```"


@pytest.mark.parametrize("page", WITH_CODE, ids=str)
def test_a_page_runs(
    page: Path, labs: Labs, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [(kind, smaller(text)) for kind, text in blocks(page)]
    furnish("\n".join(text for _, text in parts), labs, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    names: dict[str, object] = {"__name__": "page"}
    with quick_strikes():
        for kind, text in parts:
            if kind == "python":
                exec(compile(text, str(page), "exec"), names)  # noqa: S102 - code of our own pages
            elif kind == "sh":
                for command in commands(text):
                    if command.startswith("python examples/"):
                        subprocess.run([sys.executable, *shlex.split(command)[1:]], check=True, timeout=300)
                    elif command.split()[0] not in ELSEWHERE:
                        assert command.startswith("carom "), f"{page}: {command}: nobody would know how to run this"
                        if not labs.again(command):
                            run(command, capsys, monkeypatch)
                            labs.keep(command)


def test_what_pages_ask_of_make_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        for kind, text in blocks(page):
            asked = {command.split()[1] for command in commands(text) if command.startswith("make ")}
            assert kind != "sh" or asked <= targets, f"{page}: {asked - targets}"
