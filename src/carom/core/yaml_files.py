"""YAML files that people write: read safely, with faults that know their line and fit on one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from carom.core.errors import unknown_name

Where = tuple[int | str, ...]  #: keys and indices that lead to a place in a file


class YamlError(Exception):
    """What is wrong with a file. Its readers turn it into an error of their own kind, with the file's name."""

    def __init__(self, message: str, *, code: str, line: int | None) -> None:
        super().__init__(message)
        self.message, self.code, self.line = message, code, line


def read_yaml(path: Path) -> tuple[Any, yaml.Node | None]:
    """The content of a file, and the nodes that know their lines."""
    try:
        text = path.read_text(encoding="utf-8")
        return yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        line = None if mark is None else mark.line + 1
        raise YamlError(f"not valid YAML: {problem}", code="bad-yaml", line=line) from error


def line_of(node: yaml.Node | None, *where: int | str) -> int | None:
    """1-based line of a place in a file, or of the nearest thing around it."""
    line = None if node is None else node.start_mark.line + 1
    for step in where:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(step)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line


def refuse_duplicates(node: yaml.Node | None) -> None:
    """Raise if a key is there twice: YAML readers silently keep the last one."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                message = f"key '{key.value}' is there twice; keep one"
                raise YamlError(message, code="duplicate-key", line=key.start_mark.line + 1)
            seen.add(key.value)
            refuse_duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            refuse_duplicates(value)


def explain(
    error: ValidationError, node: yaml.Node | None, known: Callable[[Where], Iterable[str]], *, whole: str = ""
) -> YamlError:
    """The first of pydantic's complaints. `known` gives the keys that may stand at a place; `whole` names the file's
    top level in the message about a key that it does not have."""
    first = error.errors()[0]
    # of a value with several allowed types pydantic names the type that it tried: no key of the file
    where = tuple(step for step in first["loc"] if not str(step).startswith("literal["))
    name, got = ".".join(map(str, where)), first.get("input")
    code = "bad-value"
    if first["type"] == "extra_forbidden":
        parent = ".".join(map(str, where[:-1])) or whole
        message = unknown_name(f"key in {parent}" if parent else "key", str(where[-1]), known(where))
        code = "unknown-key"
    elif first["type"] == "missing":
        message, code = f"key '{name}' is missing; add it", "missing-key"
    elif first["type"] == "literal_error":
        message = f"{name}: expected {first.get('ctx', {}).get('expected', '')}, got {got!r}"
    else:
        message = f"{name}: {first['msg'][0].lower()}{first['msg'][1:]}, got {got!r}"
    return YamlError(message, code=code, line=line_of(node, *where))
