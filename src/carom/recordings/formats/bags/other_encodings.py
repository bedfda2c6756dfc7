"""Messages that are not ROS's: JSON, and protobuf with its schema (Foxglove's types), decoded to the same flat form."""

from __future__ import annotations

import json
from typing import Any

from carom.recordings.formats.bags.decoding import DamageError, UndefinedError, Values

DEEPEST = 20


def from_json(data: bytes) -> Values:
    """The fields of a message in JSON by their dotted names."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamageError("it is no JSON") from error
    if not isinstance(message, dict):
        raise DamageError("it is no JSON object")
    return _flat(message, 0)


def _flat(message: dict[str, Any], depth: int) -> Values:
    found: Values = {}
    if depth > DEEPEST:
        raise DamageError(f"it is nested more than {DEEPEST} deep")
    for name, value in message.items():
        name = {"nsec": "nanosec", "nsecs": "nanosec", "secs": "sec"}.get(name, name)
        if isinstance(value, dict):
            found.update({f"{name}.{inner}": each for inner, each in _flat(value, depth + 1).items()})
        elif isinstance(value, list):
            found[name] = [_flat(each, depth + 1) if isinstance(each, dict) else each for each in value]
        else:
            found[name] = value
    if "seconds" in found and "nanos" in found:
        found |= {"sec": found["seconds"], "nanosec": found["nanos"]}
    return found


class ProtobufDecoder:
    """Decodes protobuf messages by the descriptors that an MCAP file holds."""

    def __init__(self, kind: str, definition: bytes) -> None:
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        except ImportError as error:
            raise UndefinedError(f"{kind} (protobuf needs: pip install protobuf)") from error
        pool = descriptor_pool.DescriptorPool()
        try:
            for file in descriptor_pb2.FileDescriptorSet.FromString(definition).file:
                pool.Add(file)
            self._type = message_factory.GetMessageClass(pool.FindMessageTypeByName(kind))
        except Exception as error:  # protobuf has errors of its own for every layer
            raise UndefinedError(kind) from error

    def __call__(self, data: bytes) -> Values:
        """The fields of a message by their dotted names."""
        try:
            return _of_protobuf(self._type.FromString(data), 0)
        except Exception as error:
            raise DamageError("it is no such protobuf message") from error


def _of_protobuf(message: Any, depth: int) -> Values:
    found: Values = {}
    if depth > DEEPEST:
        raise DamageError(f"it is nested more than {DEEPEST} deep")
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            if field.message_type is not None and not field.message_type.GetOptions().map_entry:
                found[field.name] = [_of_protobuf(each, depth + 1) for each in value]
            elif field.message_type is None:
                found[field.name] = list(value)
        elif field.message_type is None:
            found[field.name] = value
        elif field.message_type.full_name == "google.protobuf.Timestamp":
            found |= {f"{field.name}.sec": value.seconds, f"{field.name}.nanosec": value.nanos}
        else:
            found.update({f"{field.name}.{inner}": each for inner, each in _of_protobuf(value, depth + 1).items()})
    return found
