"""What every report has to be: one small file that loads nothing, explains each figure, and says what to do next."""

from __future__ import annotations

import base64
import csv
import io
import re
import shlex
from html import unescape
from pathlib import Path

MOST = 1_500_000  #: [bytes]


def downloads(page: str) -> dict[str, list[list[str]]]:
    """The tables that a page's links hold, by file name."""
    links = re.findall(r'<a download="([^"]+)" href="data:text/csv;charset=utf-8;base64,([^"]+)">', page)
    return {name: list(csv.reader(io.StringIO(base64.b64decode(held).decode()))) for name, held in links}


def sections(page: str) -> list[str]:
    """The titles of a page's sections, in their order."""
    return [unescape(title) for title in re.findall(r"<h2>(.*?)</h2>", page)]


def next_commands(page: str) -> list[list[str]]:
    """The words of the commands that a page's last section has."""
    last = page[page.rindex("<section") :]
    assert "<h2>What to do next</h2>" in last
    made = (unescape(re.sub(r"<[^>]+>", "", text)) for text in re.findall(r"<pre>(.*?)</pre>", last, flags=re.S))
    return [shlex.split(line) for text in made for line in text.splitlines()]


def good_page(path: Path) -> str:
    """The text of a report that is as every report has to be."""
    page = path.read_text(encoding="utf-8")
    assert path.stat().st_size < MOST
    assert not re.findall(r'(?:src|href)="(?!#|data:text/csv)', page)
    assert not re.findall(r"https?:|url\(|@import", page)
    assert next_commands(page)
    for figure in re.findall(r"<figure.*?</figure>", page, flags=re.S):
        (caption,) = re.findall(r"<figcaption>(.*?)</figcaption>", figure, flags=re.S)
        assert len(caption) > 60, caption
        ((header, first, *_),) = downloads(figure).values()
        assert len(header) == len(first)
    tables = re.findall(r"<h2>(?P<title>[^<]*)</h2>\s*<div class=\"scroll\">.*?</section>", page, flags=re.S)
    notes = re.findall(r"</table></div>\s*<p class=\"note\">(.{60,}?)</p>", page, flags=re.S)
    assert len(notes) == len(tables), "a table without a sentence on what is shown"
    return page
