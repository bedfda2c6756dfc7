"""MJCF files of others: looked over before MuJoCo builds what they ask for, which may be gigabytes for one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

from carom.core.errors import CaromError, SceneError
from carom.core.folders import file_within

Made = TypeVar("Made")

MOST_BYTES = 20_000_000  #: of an MJCF, and of each file that it names
MOST_FILES = 100  #: that are included
DEEPEST = 200  #: elements within each other
MOST_CELLS = 4_000_000  #: of a height field, and pixels of a texture
MOST_MEMORY = 1_000_000_000  #: [bytes] that `<size memory=>` may ask for
MOST_NUMBER = 1_000_000  #: other things that `<size>` counts
MOST_COPIES = 10_000  #: of what `<replicate>`, `<composite>` and `<flexcomp>` make, all together
_ASSETS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}
_FILES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}


def load_mjcf(path: Path, make: Callable[[str], Made]) -> Made:
    """What `make`, one of MuJoCo's loaders, makes of an MJCF file that was looked over."""
    check_mjcf(path)
    return built(f"MJCF file {path}", lambda: make(str(path)))


def built(what: str, make: Callable[[], Made]) -> Made:
    """What MuJoCo makes, its refusal as a `SceneError` of one line that begins with `what`."""
    import mujoco

    try:
        return make()
    except (ValueError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise SceneError(f"{what} does not load: {' '.join(str(error).split()):.300}") from error


def check_mjcf(path: Path) -> None:
    """Raise if an MJCF asks for more than fits into memory, or for files outside of its folder."""
    if not path.is_file():
        raise SceneError(f"MJCF file {path} does not exist")
    for file, root in _included(path):
        directories = _directories(root)
        for element, copies in _elements(root, f"MJCF file {file}"):
            try:
                _check_sizes(element, copies)
                _check_files(element, directories, path.parent)
            except CaromError as error:
                raise SceneError(f"MJCF file {file}: <{element.tag:.40}>: {error}") from error


def check_xml(text: str, what: str) -> None:
    """The same of an MJCF that is no file; what it names is looked for by MuJoCo."""
    for element, copies in _elements(_parsed(text.encode(errors="replace"), what), what):
        try:
            _check_sizes(element, copies)
        except SceneError as error:
            raise SceneError(f"{what}: <{element.tag:.40}>: {error}") from error


def _included(path: Path) -> Iterator[tuple[Path, ElementTree.Element]]:
    """An MJCF and those that it includes, each once."""
    waiting, seen = [path], {path.resolve()}
    while waiting:
        file = waiting.pop()
        if file.stat().st_size > MOST_BYTES:
            raise SceneError(f"MJCF file {file}: expected at most {MOST_BYTES // 1_000_000} MB")
        root = _parsed(file.read_bytes(), f"MJCF file {file}")
        yield file, root
        for element in root.iter("include"):
            try:
                other = file_within(path.parent, element.get("file", ""), error=SceneError)
            except SceneError as error:
                raise SceneError(f"MJCF file {file}: <include>: {error}") from error
            if other.is_file() and other.resolve() not in seen:
                seen.add(other.resolve())
                waiting.append(other)
        if len(seen) > MOST_FILES:
            raise SceneError(f"MJCF file {path} includes more than {MOST_FILES} files")


def _parsed(content: bytes, what: str) -> ElementTree.Element:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # entities of entities grow without end
        raise SceneError(f"{what}: expected an MJCF without DOCTYPE and ENTITY")
    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise SceneError(f"{what} is not valid XML: {' '.join(str(error).split()):.200}") from error


def _elements(root: ElementTree.Element, what: str) -> Iterator[tuple[ElementTree.Element, int]]:
    """All elements, and how often those that copy make what is in them."""
    waiting = [(root, 1, 1)]
    total = 0
    while waiting:
        element, copies, depth = waiting.pop()
        for word in element.get("count", "").split() if element.tag in ("replicate", "composite", "flexcomp") else ():
            copies *= max(1, int(_number(word)))
        total += copies
        if depth > DEEPEST or total > 10 * MOST_COPIES or copies > MOST_COPIES:
            most = f"expected elements within each other up to {DEEPEST} deep, and up to {MOST_COPIES} copies of one"
            raise SceneError(f"{what}: <{element.tag:.40}>: {most}")
        yield element, copies
        waiting.extend((child, copies, depth + 1) for child in element)


def _number(text: str) -> float:
    """A number as MuJoCo reads it, or 0 where it will refuse it; infinity and NaN are large."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return min(abs(value), 1e18) if value == value else 1e18


def _check_sizes(element: ElementTree.Element, copies: int) -> None:
    get = element.attrib.get
    if element.tag == "hfield":
        _bound("nrow x ncol", _number(get("nrow", "0")) * _number(get("ncol", "0")), MOST_CELLS)
    elif element.tag == "texture":
        sides = 6 if get("type", "cube") in ("cube", "skybox") else 1
        _bound("pixels", sides * _number(get("width", "0")) * max(1.0, _number(get("height", "0"))), MOST_CELLS)
    elif element.tag == "size":
        for name, value in element.attrib.items():
            unit = value.strip()[-1:].upper() if name in ("memory", "nstack") else ""
            amount = _number(value.strip()[:-1] if unit in _UNITS and unit else value) * _UNITS.get(unit, 1)
            most = MOST_MEMORY if name == "memory" else MOST_NUMBER * (8 if name == "nstack" else 1)
            if amount > 0 and not value.strip().startswith("-"):
                _bound(name, amount, most)
    elif element.tag == "mesh" and element.get("builtin"):
        for word in element.get("params", "").split():
            _bound("params", _number(word), 1000)


def _bound(name: str, value: float, most: float) -> None:
    if value > most:
        raise SceneError(f"{name}: expected {most:g} at most, got {value:g}")


def _directories(root: ElementTree.Element) -> Mapping[str, str]:
    """Where assets are looked for, by the name of the compiler's attribute."""
    found: dict[str, str] = {}
    for compiler in root.iter("compiler"):
        shared = compiler.get("assetdir")
        found |= {} if shared is None else dict.fromkeys(_ASSETS.values(), shared)
        found |= {name: compiler.attrib[name] for name in _ASSETS.values() if name in compiler.attrib}
    return found


def _check_files(element: ElementTree.Element, directories: Mapping[str, Any], folder: Path) -> None:
    if element.tag == "compiler":
        for name in ("assetdir", "meshdir", "texturedir"):
            if element.get(name):
                file_within(folder, element.attrib[name], error=SceneError)
        return
    if element.tag not in (*_ASSETS, "model", "flexcomp"):
        return
    for name in _FILES:
        file = element.get(name)
        if file is None:
            continue
        path = file_within(folder, f"{directories.get(_ASSETS.get(element.tag, ''), '.')}/{file}", error=SceneError)
        if file.startswith("/"):
            file_within(folder, file, error=SceneError)
        if path.is_file():
            _bound(f"bytes of {path.name}", path.stat().st_size, MOST_BYTES)
            _bound(f"pixels of {path.name}", _pixels(path), MOST_CELLS)
        if element.tag == "model" and path.is_file():
            check_mjcf(path)


def _pixels(path: Path) -> int:
    """Of a PNG, as its first bytes say."""
    with path.open("rb") as file:
        start = file.read(24)
    if not start.startswith(b"\x89PNG\r\n\x1a\n"):
        return 0
    return int.from_bytes(start[16:20], "big") * int.from_bytes(start[20:24], "big")
