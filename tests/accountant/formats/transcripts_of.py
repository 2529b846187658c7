"""Transcripts of real libraries, and loaders made from them: objects of the same names."""

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"


def transcript(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def as_object(tree):
    """An object whose class, attributes and length are those of a recorded loader or sampler."""
    more = {key: one for key, one in tree.items() if key not in {"class", "length"}}
    attributes = {
        key: as_object(one) if isinstance(one, dict) else one for key, one in more.items()
    }
    if tree["length"] is not None:
        attributes["__len__"] = lambda _: tree["length"]
    return type(tree["class"], (), attributes)()
