"""Checks values against JSON schemas of the few keywords that ours and the registry's use."""

import datetime

TYPES = {"string": str, "number": (int, float), "integer": int, "array": list, "object": dict,
         "null": type(None)}  # fmt: skip
KEYWORDS = {"type", "properties", "required", "additionalProperties", "enum", "items", "minItems",
            "format", "description", "tier", "title", "$schema"}  # fmt: skip


def errors(value, schema, path=""):
    """What of a value does not fit a schema; a keyword that is not known fails."""
    assert set(schema) <= KEYWORDS, path
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if kinds != [None] and not any(isinstance(value, TYPES[kind]) for kind in kinds):
        yield f"{path} is no {kinds}"
    if value not in schema.get("enum", [value]):
        yield f"{path}: {value!r} is none of the choices"
    if schema.get("format") == "date":
        datetime.date.fromisoformat(value)
    if isinstance(value, dict) and "properties" in schema:
        missing = (name for name in schema.get("required", []) if name not in value)
        yield from (f"{path} lacks {name}" for name in missing)
        for name, field in value.items():
            if name in schema["properties"]:
                yield from errors(field, schema["properties"][name], f"{path}.{name}")
            else:
                yield f"{path} has the unknown {name}"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{path} is empty"
        for item in value:
            yield from errors(item, schema["items"], path)
