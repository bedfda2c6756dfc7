"""YAML files that people write: read safely, with faults that know their line and fit on one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import ValidationError

from carom.core.errors import short, unknown_name

Where = tuple[int | str, ...]  #: keys and indices that lead to a place in a file
LARGEST = 2_000_000  #: [bytes] of a file; ten thousand recordings are listed in half of it
MOST_NODES = 100_000  #: values and keys in a file: reading so many takes seconds
DEEPEST = 50  #: levels of lists and mappings within each other
MOST_DIGITS = 100  #: of a number; float64 has 17
_PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")


class YamlError(Exception):
    """What is wrong with a file. Its readers turn it into an error of their own kind, with the file's name."""

    def __init__(self, message: str, *, code: str, line: int | None) -> None:
        super().__init__(message)
        self.message, self.code, self.line = message, code, line


class _Loader(yaml.SafeLoader):
    """Plain data only: mappings, lists, text, numbers, booleans and nothing. A file of a stranger cannot grow in memory
    (no aliases, so many nodes at most, so deep at most, short numbers), and dates stay the text that they are."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in _PLAIN]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in _PLAIN
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.nodes = self.depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self.nodes, self.depth = self.nodes + 1, self.depth + 1
        if isinstance(event, yaml.AliasEvent):
            raise _refusal(f"'*{event.anchor}' repeats another place of the file; write it out", event.start_mark)
        if self.nodes > MOST_NODES:
            raise _refusal(f"more than {MOST_NODES} entries", event.start_mark)
        if self.depth > DEEPEST:
            raise _refusal(f"nested more than {DEEPEST} deep", event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        kind = node.tag.rpartition(":")[2]
        if isinstance(node, yaml.ScalarNode):
            if kind in ("int", "float") and len(node.value) > MOST_DIGITS:
                raise _refusal(f"a number of {len(node.value)} digits; at most {MOST_DIGITS}", node.start_mark)
            if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in node.value):
                raise _refusal("a character that no text has (NUL, or half of a pair)", node.start_mark)
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, OverflowError) as error:
            raise _refusal(f"{node.value!r:.60} is no {kind}", node.start_mark) from error


def _refusal(problem: str, mark: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, mark)


def read_yaml(path: Path) -> tuple[Any, yaml.Node | None]:
    """The content of a file, and the nodes that know their lines. The only reader of YAML, bounded in all it takes."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            message = f"expected a text of at most {LARGEST // 1_000_000} MB, got more; is this the right file?"
            raise YamlError(message, code="bad-yaml", line=None)
        loader = _Loader(raw.decode("utf-8"))
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except OSError as error:
        raise YamlError(f"cannot be read: {error.strerror or error}", code="no-file", line=None) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = " ".join(str(getattr(error, "problem", None) or str(error).partition("\n")[0]).split())
        line = None if mark is None else mark.line + 1
        raise YamlError(f"not valid YAML: {problem:.200}", code="bad-yaml", line=line) from error


def yaml_text(value: Any, *, flow: bool | None = False, width: int = 120) -> str:
    """A value as YAML, in the order it has. What is there twice is written twice: `read_yaml` takes no aliases."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=flow, width=width, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


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
            if not isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                raise YamlError("expected a name as a key, got a list or a mapping", code="bad-yaml", line=line)
            if key.value in seen:
                message = f"key '{short(key.value)}' is there twice; keep one"
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
    name, got = ".".join(map(short, where)), f"{first.get('input')!r:.80}"
    code = "bad-value"
    if first["type"] == "extra_forbidden":
        parent = ".".join(map(short, where[:-1])) or whole
        message = unknown_name(f"key in {parent}" if parent else "key", str(where[-1]), known(where))
        code = "unknown-key"
    elif first["type"] == "missing":
        message, code = f"key '{name}' is missing; add it", "missing-key"
    elif first["type"] == "literal_error":
        message = f"{name}: expected {first.get('ctx', {}).get('expected', '')}, got {got}"
    else:
        message = f"{name}: {first['msg'][0].lower()}{first['msg'][1:]}, got {got}"
    return YamlError(message, code=code, line=line_of(node, *where))
