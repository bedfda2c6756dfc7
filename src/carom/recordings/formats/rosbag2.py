"""Bags of ROS 2: a folder with `metadata.yaml`, or one of its files alone (SQLite or MCAP; zstd too)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from carom.core.errors import RecordingError, short
from carom.core.yaml_files import YamlError, read_yaml
from carom.recordings.formats.bags import mcap_records, sqlite_records
from carom.recordings.formats.bags.channels import LARGEST_MESSAGE, ZSTD, Messages, Unpacker, Wanted, extra_needed
from carom.recordings.formats.bags.collecting import bag_take
from carom.recordings.formats.take import ReadOptions, Take

NAME = "ROS 2 bag"
METADATA, KEY = "metadata.yaml", "rosbag2_bagfile_information"
ENDINGS = (".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
LARGEST_UNPACKED = 20_000_000_000  #: [bytes] of a packed file, unpacked onto the disk


def recognise(path: Path, head: bytes) -> float:
    """By the tables of its SQLite file; a folder by its metadata, or by the files in it."""
    if path.is_dir():
        return 0.95 if _stated(path) is not None else 0.9 if _files_in(path) else 0.0
    if head.startswith(sqlite_records.MAGIC):
        return 0.95 if b"topics" in head and b"messages" in head else 0.6
    return 0.9 if head.startswith(ZSTD) and path.name.endswith(ENDINGS) else 0.0


def read(path: Path, options: ReadOptions) -> tuple[Take, ...]:
    """The poses, transforms and joints of a bag, as one take."""
    said: list[str] = []
    files = _listed(path, said) if path.is_dir() else (path,)

    def messages(wants: Wanted, told: list[str]) -> Messages:
        for file in files:
            own: list[str] = []
            with _unpacked(file, own) as plain:
                unpack = Unpacker(file)
                for channel, received, data in _records_of(file, plain)(plain, wants, own):
                    if data.startswith(ZSTD):  # CDR begins with a zero
                        data, _ = unpack("zstd", data, most=LARGEST_MESSAGE)
                    yield channel, received, data
            told += own if len(files) == 1 else [f"{file.name}: {words}" for words in own]

    return (bag_take(path, NAME, options, messages, said=tuple(said)),)


def _records_of(file: Path, plain: Path) -> Callable[[Path, Wanted, list[str]], Messages]:
    with plain.open("rb") as opened:
        head = opened.read(16)
    if head.startswith(sqlite_records.MAGIC):
        return sqlite_records.messages
    if head.startswith(mcap_records.MAGIC):
        return mcap_records.messages
    raise RecordingError(f"{file}: expected a file of rosbag2 (SQLite or MCAP), got another beginning; is it whole?")


def _files_in(folder: Path) -> tuple[Path, ...]:
    """The bag's files by name, part 10 after part 9."""
    files = [file for file in folder.iterdir() if file.name.endswith(ENDINGS) and file.is_file()]
    plain = {file.name for file in files}
    files = [file for file in files if not (file.suffix == ".zstd" and file.stem in plain)]  # unpacked beside it
    return tuple(sorted(files, key=lambda file: [int(w) if w.isdigit() else w for w in re.split(r"(\d+)", file.name)]))


def _stated(folder: Path) -> Sequence[str] | None:
    """The names of the bag's files in its metadata; None where it has none that can be read."""
    try:
        if KEY not in (folder / METADATA).read_text(encoding="utf-8", errors="replace"):
            return None
        content, _ = read_yaml(folder / METADATA)
    except (OSError, YamlError):
        return None
    about = content.get(KEY) if isinstance(content, dict) else None
    names = about.get("relative_file_paths") if isinstance(about, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else None


def _listed(folder: Path, said: list[str]) -> tuple[Path, ...]:
    there = {file.name: file for file in _files_in(folder)}
    stated = _stated(folder)
    if stated is None:
        if not there:
            raise RecordingError(f"{folder}: no file of a bag in it; expected names that end in {', '.join(ENDINGS)}")
        said.append(f"no {METADATA} that can be read: the folder's files count, in the order of their names")
        return tuple(there.values())
    found: dict[str, Path] = {}
    for name in (Path(each).name for each in stated):  # early versions wrote the bag's own folder before it
        file = next((there[n] for n in (name, name.removesuffix(".zstd"), f"{name}.zstd") if n in there), None)
        if file is None:
            said.append(f"{short(name)} is not there, though {METADATA} lists it")
        else:
            found[file.name] = file
    others = [name for name in there if name not in found]
    if others:
        said.append(f"{METADATA} does not list {', '.join(map(short, others[:5]))}: read too")
    if not found and not others:
        raise RecordingError(
            f"{folder}: none of the files is there that {METADATA} lists: {', '.join(map(short, stated[:5]))}"
        )
    return (*found.values(), *(there[name] for name in others))


@contextmanager
def _unpacked(file: Path, said: list[str]) -> Iterator[Path]:
    """The file itself, or what is in it if zstd packed it as a whole."""
    with file.open("rb") as opened:
        if opened.read(4) != ZSTD:
            yield file
            return
    try:
        import zstandard
    except ImportError as error:
        raise extra_needed(file, "zstd") from error
    with TemporaryDirectory(prefix="carom-") as folder:
        place = Path(folder) / file.stem
        with file.open("rb") as opened, place.open("wb") as plain:
            reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(opened, read_across_frames=True)
            try:
                while piece := reader.read(1 << 20):
                    plain.write(piece)
                    if plain.tell() > LARGEST_UNPACKED:
                        raise RecordingError(f"{file}: it unpacks to more than {LARGEST_UNPACKED:.0e} bytes")
            except zstandard.ZstdError as error:
                said.append(f"the packed file is damaged ({short(error)}): what came before was read")
        yield place
