"""Malformed files made from good ones: bytes, lines and cells, keys and values, tensors and tables.

Every mutation draws from the generator that it is given: the same seed makes the same file.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from carom.core.artefacts import seal

Rng = np.random.Generator
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # those in C are ten times faster
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

#: what a key, a value or a number may wrongly be
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 1e-9, -1e-9, 1e308, -1e308, 5e-324, 1e5, 1e12, 1e17, -0.0, float("nan"),
    float("inf"), -float("inf"), 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, "", " ", "x", "0", "1e400", "nan",
    "[/x]",
    "\x1b[31m", "é", "\udcff", "a\0b", "\n", "../x", "../../x.csv", "/etc/passwd", ".", "..", "/", "box", "mesh",
    "target",
    "[1, 2]", "2001-01-01", "!!python/object", "yes", "~", [], {}, [[]], [None], [0], [0, 0], [1, 2, 3], [1, 2, 3, 4],
    [float("nan")] * 3, {"x": 1}, {"": None}, ["a", "b"], [[0, 0], [1, 0], [0, 1]], [[0, 0], [0, 0]], "x" * 3000,
)  # fmt: skip
TEXTS = (b"\r", b"\r\n", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3\x28", b"\t", b" ", b",", b'"', b"'",
b"{", b"}",
         b"[", b"]", b":", b"- ", b"&a ", b"*a", b"!!bool x", b"!!timestamp 2001-01-01", b"<<: ", b"---\n", b"...",
         b"%TAG",
         b"nan", b"inf", b"-inf", b"1e999", b"9" * 5000, b"0x1", b"1_000", b"NaN", b"<", b">", b"&", b"]]>", b"<!--",
         b"|\n",
         b"x" * 200_000, b"[" * 2000, b"{a: " * 1000, b"\x1b]0;x\x07", b"\xe2\x80\xae", b"=1+1", b";")  # fmt: skip


def mutated(path: Path, content: bytes, rng: Rng) -> bytes:
    """Another content for a file, one to three mutations away from the good one."""
    own = BY_SUFFIX.get(path.suffix)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        if own is not None and rng.random() < 0.7:
            try:
                content = own(content, rng)
                continue
            except Exception:  # no longer a file of its kind, after a first mutation: then its bytes
                own = None
        content = _bytes(content, rng)
    return content


def _choice(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _bytes(content: bytes, rng: Rng) -> bytes:
    """Bits flipped, bytes cut, inserted, repeated or moved; nothing is known of the format."""
    found, kind = bytearray(content), int(rng.integers(9))
    at = int(rng.integers(len(found) + 1))
    size = int(rng.choice([1, 2, 8, 64, 1000]))
    if kind == 0 and found:
        found[at % len(found)] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        found[at : at + size] = rng.bytes(size)
    elif kind == 2:
        del found[at:]
    elif kind == 3:
        del found[at : at + size]
    elif kind == 4:
        found[at:at] = _choice(rng, TEXTS)
    elif kind == 5:
        found[at:at] = found[at : at + size]
    elif kind == 6:
        found = found.replace(b"\n", _choice(rng, (b"\r", b"\r\n", b"\n\n", b"", b"\0")))
    elif kind == 7:
        found = bytearray(
            _choice(rng, (b"", b"\0", b"\n", b"\xff" * 100, b"\xef\xbb\xbf", b"PK\x03\x04", b"null", b"[]"))
        )
    else:
        other = int(rng.integers(len(found) + 1))
        found[at:at] = found[other : other + size]
    return bytes(found)


def places(tree: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values of nested mappings and lists."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        inside = list(tree.items())
    elif isinstance(tree, list):
        inside = list(enumerate(tree))[:40]
    return [where, *(place for key, value in inside for place in places(value, (*where, key)))]


def tree_mutated(tree: Any, rng: Rng) -> Any:
    """Nested mappings and lists with one key or value changed, lost, doubled, renamed or of another type."""
    where = _choice(rng, places(tree)[1:] or [()])
    if not where:
        return _choice(rng, ODD)
    *way, last = where
    parent = tree
    for step in way:
        parent = parent[step]
    value, kind = parent[last], int(rng.integers(10))
    if kind == 0:
        del parent[last]
    elif kind == 1 and isinstance(parent, dict):
        parent[_choice(rng, ("x", "", f"{last}s", "format", 3, None, "files", "\x1b[1m"))] = parent.pop(last)
    elif kind == 2:
        parent[last] = _scaled(value, rng)
    elif kind == 3:
        parent[last] = [value] if rng.random() < 0.5 else {"x": value}
    elif kind == 4 and isinstance(value, list):
        parent[last] = value[: int(rng.integers(len(value) + 1))] if rng.random() < 0.5 else value + value
    elif kind == 5:
        other = _choice(rng, list(parent) if isinstance(parent, dict) else range(len(parent)))
        parent[last], parent[other] = parent[other], value
    elif kind == 6:
        parent[last] = _deep(int(rng.choice([3, 60, 2000])))
    elif kind == 7:
        parent[last] = str(value)
    else:
        parent[last] = _choice(rng, ODD)
    return tree


def _scaled(value: Any, rng: Rng) -> Any:
    """Numbers of a value made larger, smaller, negative or whole."""
    if isinstance(value, list):
        return [_scaled(v, rng) for v in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _choice(rng, ODD)
    factor = float(rng.choice([-1, 0, 1e-3, 1e3, 1e6, 1e9, 1e15, 1e-12, 1e300, 0.5, 2, 1.01]))
    found = value * factor
    return int(found) if isinstance(value, int) and rng.random() < 0.8 and np.isfinite(found) else found


def _deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


def _yaml(content: bytes, rng: Rng) -> bytes:
    if rng.random() < 0.3:
        return _line(content, rng)
    tree = tree_mutated(yaml.load(content, _LOADER), rng)  # noqa: S506 (a safe one)
    if isinstance(tree, dict) and "header_sha256" in tree and rng.random() < 0.8:
        tree["header_sha256"] = "edited"
    text = yaml.dump(tree, Dumper=_DUMPER, sort_keys=False, default_flow_style=None, allow_unicode=True)
    return text.encode(errors="surrogatepass")


def _line(content: bytes, rng: Rng) -> bytes:
    """One line doubled, lost, moved, indented, or followed by another key."""
    lines = content.split(b"\n")
    at, kind = int(rng.integers(len(lines))), int(rng.integers(6))
    if kind == 0:
        lines.insert(at, lines[at])
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        lines[at] = b"  " + lines[at]
    elif kind == 3:
        key, colon, value = lines[at].partition(b":")
        lines[at] = key + colon + b" " + _choice(rng, TEXTS) + value
    elif kind == 4:
        lines[at] = _number(lines[at], rng)
    else:
        other = int(rng.integers(len(lines)))
        lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


NUMBERS = (b"0", b"-1", b"1e308", b"-1e308", b"nan", b"inf", b"1e-320", b"1e5", b"1000000", b"2147483648",
b"99999999999",
           b"", b"x", b"0 0 0", b"1e20", b"-0.1", b"50000")  # fmt: skip


def _number(text: bytes, rng: Rng) -> bytes:
    found = list(re.finditer(rb"-?\d+(\.\d*)?(e-?\d+)?", text))
    if not found:
        return text + _choice(rng, TEXTS)
    one = _choice(rng, found)
    return text[: one.start()] + _choice(rng, NUMBERS) + text[one.end() :]


def _json(content: bytes, rng: Rng) -> bytes:
    """A header with another key or value, its own checksum made to fit again."""
    tree = tree_mutated(json.loads(content), rng)
    if isinstance(tree, dict) and "header_sha256" in tree and rng.random() < 0.9:
        tree = seal(tree)
    return json.dumps(tree).encode(errors="surrogatepass")


def _csv(content: bytes, rng: Rng) -> bytes:
    rows = [line.split(b",") for line in content.split(b"\n")]
    row = int(rng.integers(len(rows))) if rng.random() < 0.8 else 0
    column, kind = int(rng.integers(len(rows[row]))), int(rng.integers(9))
    if kind == 0:
        rows[row][column] = _choice(rng, TEXTS)
    elif kind == 1:
        rows[row][column] = _choice(rng, NUMBERS)
    elif kind == 2:
        del rows[row][column]
    elif kind == 3:
        rows[row].insert(column, rows[row][column])
    elif kind == 4:
        value, start = _choice(rng, NUMBERS), int(rng.integers(len(rows)))
        for cells in rows[start : start + int(rng.choice([2, 10, 1000]))]:  # a whole column, from some row on
            if column < len(cells) and cells is not rows[0]:
                cells[column] = value
    elif kind == 5:
        factor = float(rng.choice([-1, 0, 1e-3, 1e3, 1e6, 1e12, 1e150]))
        for cells in rows[1 + int(rng.integers(len(rows))) :]:
            try:
                cells[column] = repr(float(cells[column]) * factor).encode()
            except (ValueError, IndexError):
                continue
    elif kind == 6:
        rows = rows[: int(rng.integers(len(rows)))]
    elif kind == 7:
        del rows[row : row + int(rng.choice([1, 5, 20]))]
    else:
        return _line(content, rng)
    return b"\n".join(b",".join(cells) for cells in rows)


def _xml(content: bytes, rng: Rng) -> bytes:
    if rng.random() < 0.6:
        return _number(content, rng)
    tags = list(re.finditer(rb"<\w+[^>]*>", content))
    if rng.random() < 0.5 and tags:
        tag = _choice(rng, tags)
        return content[: tag.end()] + _choice(rng, SNIPPETS) + content[tag.end() :]
    words = list(re.finditer(rb"\w+", content))
    one = _choice(rng, words)
    return content[: one.start()] + _choice(rng, (b"", b"x", b"body", b"geom", b"mesh", *TEXTS)) + content[one.end() :]


SNIPPETS = (
    b'<asset><hfield name="h" nrow="20000" ncol="20000" size="1 1 1 1"/></asset>',
    b'<asset><texture name="t" type="2d" builtin="flat" width="30000" height="30000"/></asset>',
    b'<asset><texture name="t" type="cube" builtin="gradient" width="9000" height="9000"/></asset>',
    b'<include file="/etc/passwd"/>', b'<include file="scene.xml"/>', b'<include file="../x.xml"/>',
    b'<asset><mesh name="far" file="../x.stl"/></asset>', b'<asset><mesh name="far" file="/etc/passwd"/></asset>',
    b'<compiler meshdir="/"/>', b'<compiler meshdir=".." angle="x"/>', b'<size memory="100G"/>',
    b'<size njmax="99999999"/>',
    b'<size nuserdata="900000000"/>', b'<size nkey="100000000"/>',
    b'<replicate count="100000"><geom size="1"/></replicate>',
    b'<composite type="cable" count="100000 1 1"/>', b'<extension><plugin plugin="x"/></extension>',
    b'<flexcomp type="grid" count="500 500 500" name="f" dim="3"/>', b'<body><joint/><geom size="0"/></body>',
    b'<frame><body name="block"/></frame>', b"<!DOCTYPE x [<!ENTITY a 'aaaa'>]>", b"<body>" * 3000, b'<freejoint/>',
    b'<inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/>', b'<joint type="ball"/>', b'<option timestep="0"/>',
    b'<keyframe><key qpos="nan"/></keyframe>', b'<attach model="x"/>', b'<geom type="plane" size="1 1 1"/>',
)  # fmt: skip


def _mesh(content: bytes, rng: Rng) -> bytes:
    if rng.random() < 0.5:
        return _number(content, rng)
    if rng.random() < 0.2:
        return content + b"mtllib /etc/passwd\nusemtl x\n"
    return _line(content, rng)


def _array(values: np.ndarray, rng: Rng) -> np.ndarray:
    """Another array: of another type or shape, cut, empty, or with numbers that no measurement gives."""
    kind = int(rng.integers(8))
    if kind == 0:
        return values.astype(_choice(rng, ("f2", "f4", "f8", "i1", "i8", "u1", "u8", "?", "c16", "S4", "U3")))
    if kind == 1:
        return values.reshape(_choice(rng, ((-1,), (1, -1), (-1, 1), (*values.shape, 1))))
    if kind == 2:
        return values[: int(rng.integers(len(values) + 1))] if values.ndim else np.zeros((0,))
    if kind == 3:
        return np.concatenate([values, values]) if values.ndim else np.array([values, values])
    if kind == 4:
        return np.zeros(_choice(rng, ((), (0,), (0, 3), (3, 0), (1,), (2, 2, 2))))
    found = np.array(values)
    if found.size and found.dtype.kind in "fiu":
        wrong = (np.nan, np.inf, -np.inf, 1e30, -1.0, 0.0) if found.dtype.kind == "f" else (0, 1, 127)
        if kind == 5:
            found.flat[int(rng.integers(found.size))] = _choice(rng, wrong)
        elif kind == 6:
            found[...] = _choice(rng, wrong)
        else:
            with np.errstate(over="ignore"):
                found = (found * _choice(rng, (1000, 1e-6, -1, 1e20))).astype(found.dtype)
    return found


def _named(arrays: dict[str, Any], rng: Rng, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Named arrays, one of them lost, renamed, added, swapped or changed."""
    name, kind = _choice(rng, list(arrays)), int(rng.integers(8))
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[_choice(rng, ("x", "", f"{name}.x", "time", "network.x", "é", "a/b"))] = arrays.pop(name)
    elif kind == 2:
        arrays["extra"] = arrays[name]
    elif kind == 3:
        other = _choice(rng, list(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    else:
        arrays[name] = change(arrays[name])
    return arrays


def _npz(content: bytes, rng: Rng) -> bytes:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays = _named(arrays, rng, lambda values: _array(values, rng))
    if rng.random() < 0.05:
        arrays[_choice(rng, list(arrays) or ["x"])] = np.array([{"an": "object"}, None], dtype=object)
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def _safetensors(content: bytes, rng: Rng) -> bytes:
    import torch
    from safetensors.torch import load, save

    if rng.random() < 0.15:  # the header of the file itself
        size = int.from_bytes(content[:8], "little")
        head = json.dumps(tree_mutated(json.loads(content[8 : 8 + size]), rng)).encode()
        return len(head).to_bytes(8, "little") + head + content[8 + size :]

    def change(tensor: Any) -> Any:
        if rng.random() < 0.2:
            return tensor.to(_choice(rng, (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool,
                                           torch.uint8, torch.float8_e4m3fn)))  # fmt: skip
        found = _array(tensor.double().numpy(), rng)
        return torch.from_numpy(np.ascontiguousarray(found if found.dtype.kind in "fiub" else found.astype("f4")))

    return bytes(save({k: v.contiguous().clone() for k, v in _named(dict(load(content)), rng, change).items()}))


def _parquet(content: bytes, rng: Rng) -> bytes:
    table = pq.read_table(io.BytesIO(content))
    columns = {name: table[name] for name in table.column_names}

    def change(column: Any) -> Any:
        kind, values = int(rng.integers(8)), column.to_pylist()
        if kind == 0:
            return pa.array([str(v) for v in values])
        if kind == 1:
            return pa.array([None] * len(values), type=column.type)
        if kind == 2:
            return pa.array([[v] for v in values])
        if kind == 3:
            return pa.array([{"a": 1}] * len(values))
        if kind == 4 and pa.types.is_floating(column.type):
            return pa.array(np.asarray(values, dtype=float).astype(_choice(rng, ("f2", "f4", "i8", "i4", "u1", "?"))))
        if kind == 5:
            row = int(rng.integers(len(values)))
            wrong = _choice(rng, (None, np.nan, np.inf, 1e300, -1.0))
            if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                wrong = _choice(rng, ([], None, values[row] + values[row], [None] * len(values[row]), values[row][:-1]))
            elif not pa.types.is_floating(column.type):
                wrong = None if wrong is None else values[row - 1]
            return pa.array([*values[:row], wrong, *values[row + 1 :]], type=column.type)
        if kind == 6 and pa.types.is_floating(column.type):
            return pa.array(_array(np.asarray(values, dtype=float), rng))
        return column.slice(0, 0) if kind == 7 else column.dictionary_encode()

    columns = _named(columns, rng, change)
    names = list(columns)
    if rng.random() < 0.1:
        names = [_choice(rng, names) for _ in names]  # names twice
    try:
        made = pa.Table.from_arrays([columns[n] for n in columns], names=names)
    except pa.ArrowInvalid:  # of different lengths
        least = min(len(c) for c in columns.values())
        made = pa.Table.from_arrays([c.slice(0, least) for c in columns.values()], names=names)
    if rng.random() < 0.1:
        made = made.slice(0, int(rng.integers(3)))
    sink = pa.BufferOutputStream()
    pq.write_table(made, sink)
    return bytes(sink.getvalue().to_pybytes())


def _pt(content: bytes, rng: Rng) -> bytes:
    import torch

    values = torch.load(io.BytesIO(content), weights_only=True).numpy()
    found = _array(values, rng)
    tensor = torch.from_numpy(np.ascontiguousarray(found)) if found.dtype.kind in "fiub" else torch.zeros(0)
    saved: Any = _choice(rng, (tensor, tensor, tensor, [tensor], {"a": tensor}, tensor.to_sparse(), None, "x", 3,
                               tensor.to(torch.complex64), torch.nn.Parameter(tensor.float()), tensor.bool(),
                               tensor.to(torch.bfloat16), tensor.expand(2, *tensor.shape)))  # fmt: skip
    sink = io.BytesIO()
    torch.save(saved, sink, _use_new_zipfile_serialization=bool(rng.random() < 0.8))
    return sink.getvalue()


BY_SUFFIX: dict[str, Callable[[bytes, Rng], bytes]] = {
    ".yaml": _yaml, ".json": _json, ".csv": _csv, ".xml": _xml, ".stl": _mesh, ".obj": _mesh, ".npz": _npz,
    ".safetensors": _safetensors, ".parquet": _parquet, ".pt": _pt,
}  # fmt: skip


def reseal_folder(folder: Path, headers: tuple[str, ...]) -> None:
    """Make the checksums in a folder fit what is there now, so that the checks behind them are reached.

    `headers` are patterns, those whose checksum others hold first.
    """
    for pattern in headers:
        for path in sorted(folder.glob(pattern)):
            try:
                header = json.loads(path.read_bytes())
                files = header["files"]
                for name in [name for name in files if isinstance(name, str) and name]:
                    there = sorted(path.parent.rglob(Path(name).name))
                    if there and there[0].is_file():
                        files[name] = sha256(there[0].read_bytes()).hexdigest()
                path.write_text(json.dumps(seal(header), indent=1) + "\n")
            except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError):
                continue  # not a header any more
