"""Google's statistical test cases, read from their repository into one compact file.

    python -m tests.heldout.read_textproto FOLDER

where FOLDER is ``proto/testing`` of a copy of the repository google/differential-privacy.
The cases are data under the Apache License 2.0, Copyright 2020 Google LLC.  The files are in the
text format of protocol buffers; this reads what they use of it: fields of numbers, names and texts,
messages in braces, lists in brackets, comments.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

COMMIT = "b5b0286e313b64a692abfc8c528d54ef47d960a0"  # of 2026-08-06, the one that was read
CASES = Path(__file__).with_name("google_cases.json")
TOKEN = re.compile(
    r'#[^\n]*|\s+|("(?:[^"\\]|\\.)*")|([A-Za-z_]\w*)|([-+]?[\d.][\w.+-]*)|([{}\[\]:,])'
)


def tokens(text: str) -> list[str]:
    """The tokens of a text, without comments; `ValueError` at what is none."""
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"not the text format of protocol buffers at {text[at : at + 40]!r}")
        found += [group for group in match.groups() if group is not None]
        at = match.end()
    return found


def read_message(words: list[str]) -> dict[str, list[Any]]:
    """The fields of a message, each with all its values; takes the words from the list's end."""
    message: dict[str, list[Any]] = {}
    while words and words[-1] != "}":
        values = message.setdefault(words.pop(), [])
        if words[-1] == "{":
            words.pop()
            values.append(read_message(words))
            words.pop()  # the closing brace
            continue
        words.pop()  # the colon
        if words[-1] != "[":
            values.append(scalar(words.pop()))
            continue
        words.pop()
        while (word := words.pop()) != "]":
            if word != ",":
                values.append(scalar(word))
    return message


def scalar(word: str) -> Any:
    """A text, a number, or the name of a constant."""
    if word.startswith('"'):
        return json.loads(word)
    try:
        return int(word)
    except ValueError:
        return word if word[0].isalpha() else float(word)


def flat_case(family: str, case: dict[str, list[Any]], limits: dict[str, float]) -> dict[str, Any]:
    """One case with its parameters side by side: only what entries and ranks are, are lists."""
    flat: dict[str, Any] = {"family": family, **limits}
    for name, values in case.items():
        if name == "name":
            flat["name"] = values[0].strip()
            continue
        prefix = "claimed_" if name == "dp_test_parameters" else ""
        for field, parts in values[0].items():
            is_list = ("raw_" in field and field != "raw_input") or field == "rank"
            flat[prefix + field] = parts if is_list else parts[0]
    return flat


def read_folder(folder: str) -> list[dict[str, Any]]:
    """All cases of a folder's files, in the order of the files."""
    cases = []
    for path in sorted(Path(folder).glob("*_test_cases.textproto")):
        message = read_message(tokens(path.read_text(encoding="utf-8"))[::-1])
        limits = {name: values[0] for name, values in message["validity_parameters"][0].items()}
        family = path.name.removesuffix("_test_cases.textproto").removesuffix("_dp")
        (rows,) = (values for name, values in message.items() if name.endswith("_test_case"))
        cases += [flat_case(family, row, limits) for row in rows]
    return cases


def write_cases(folder: str) -> int:
    """Write the cases of a folder to `CASES`, one a line; return how many they are."""
    cases = read_folder(folder)
    lines = ",\n".join(json.dumps(case) for case in cases)
    source = {
        "source": f"google/differential-privacy, proto/testing, at {COMMIT}",
        "licence": "Apache License 2.0, Copyright 2020 Google LLC",
        "made by": "python -m tests.heldout.read_textproto FOLDER",
    }
    head = json.dumps(source, indent=1)[:-2]
    CASES.write_text(f'{head},\n "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    return len(cases)


if __name__ == "__main__":
    print(f"{write_cases(sys.argv[1])} cases in {CASES}")
