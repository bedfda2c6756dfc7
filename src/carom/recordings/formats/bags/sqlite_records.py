"""The SQLite files of rosbag2 as containers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from carom.core.errors import RecordingError, short
from carom.recordings.formats.bags.channels import LARGEST_MESSAGE, Channel, Messages, Wanted
from carom.recordings.formats.bags.definitions import normal

MAGIC = b"SQLite format 3\0"
MOST_STEPS = (
    20_000  #: times ten thousand of SQLite's instructions for one question; a damaged file may ask for endless ones
)


def messages(path: Path, wants: Wanted, said: list[str]) -> Messages:
    """The messages of a file on the channels that are wanted; `said` gets what is damaged."""
    damaged = 0
    try:
        with closing(_opened(path)) as base:
            channels = {number: channel for number, channel in _channels(path, base).items() if wants(channel)}
            holes = ", ".join("?" * len(channels))
            question = f"SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({holes}) ORDER BY id"
            for number, received, data in base.execute(question, tuple(channels)):
                if not isinstance(data, bytes) or not isinstance(received, int) or number not in channels:
                    damaged += 1
                    continue
                yield channels[number], received, data
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        said.append(f"the file is damaged ({short(error)}): what came before was read")
    if damaged:
        said.append(f"{damaged} messages are damaged")


def _opened(path: Path) -> sqlite3.Connection:
    # immutable: nothing is written beside the file, unless a recorder left a journal that belongs to it
    journal = path.with_name(path.name + "-wal")
    mode = "mode=ro" if journal.is_file() and journal.stat().st_size else "mode=ro&immutable=1"
    base = sqlite3.connect(f"file:{quote(str(path.resolve()))}?{mode}", uri=True)
    base.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * LARGEST_MESSAGE)
    base.execute("PRAGMA trusted_schema=OFF")
    base.execute("PRAGMA writable_schema=ON")  # else SQLite refuses a file that was cut off; nothing is written
    steps = iter(range(MOST_STEPS))
    base.set_progress_handler(lambda: next(steps, None) is None, 10_000)
    return base


def _channels(path: Path, base: sqlite3.Connection) -> dict[int, Channel]:
    tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"topics", "messages"} <= tables:
        listed = ", ".join(sorted(map(short, tables))[:10]) or "no table"
        raise RecordingError(f"{path}: expected a rosbag2 file with the tables topics and messages, got {listed}")
    texts: dict[str, tuple[str, bytes]] = {}
    if "message_definitions" in tables:
        for kind, language, text in base.execute(
            "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
        ):
            if isinstance(kind, str) and isinstance(text, str) and text:
                texts[normal(kind)] = ("msg" if language == "ros2msg" else "idl", text.encode())
    found: dict[int, Channel] = {}
    for number, topic, kind, form in base.execute("SELECT id, name, type, serialization_format FROM topics"):
        if isinstance(number, int) and isinstance(topic, str) and isinstance(kind, str):
            language, definition = texts.get(normal(kind), ("msg", b""))
            found[number] = Channel(topic, normal(kind), "cdr" if form == "cdr" else "other", definition, language)
    return found
