"""``python -m tests.selection.room accountant/book``: what pytest runs for a room.

These are the room's own tests and its laws.  A law is of a room if its file uses it: it imports a
module below the room, a public name that lives there, or a helper of the room's tests, itself or by
another law.  A law about an error bound has no test of its own: it is asked beside its mutants.
"""

import ast
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
LAWS = TESTS / "laws"
MUTANTS = "tests/mutants/test_mutants.py::test_the_law_catches_the_mutant"
LIVES = re.compile(r"^from \.([\w.]+) import \w+ as (\w+)$", re.MULTILINE)


@cache
def homes(package: str) -> dict[str, str]:
    """The modules of the public names of a package."""
    stub = ROOT / package / "__init__.pyi"
    found = LIVES.findall(stub.read_text("utf-8")) if stub.is_file() else []
    return {name: f"{package}.{module}" for module, name in found}


@cache
def imported(path: Path) -> set[str]:
    """The modules that a file imports, with those of public names."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                modules.add(homes(node.module).get(one.name, f"{node.module}.{one.name}"))
    return modules


def other_laws(path: Path) -> set[Path]:
    """The files of laws that a law imports."""
    found = set()
    for module in imported(path):
        words = module.split(".")
        if words[:2] == ["tests", "laws"]:
            for end in (len(words), len(words) - 1):  # a module, or a name of one
                file = ROOT.joinpath(*words[:end]).with_suffix(".py")
                if file.is_file() and (file.stem.startswith("test_") or file.parent != LAWS):
                    found.add(file)
    return found


def uses(path: Path, room: str) -> bool:
    """Whether a law uses a room."""
    inside = tuple(f"{prefix}{room.replace('/', '.')}." for prefix in ("", "tests."))
    own = any(f"{module}.".startswith(inside) for module in imported(path))
    return own or any(uses(other, room) for other in other_laws(path))


def bounds_of(room: str) -> list[str]:
    """A case of each law about an error bound of a room."""
    from tests.laws import registry, test_error_bounds

    files = {name: Path(law.__code__.co_filename) for name, law in test_error_bounds.LAWS.items()}
    used = [f"error bounds: {name}" for name, file in files.items() if uses(file, room)]
    return [
        f"{MUTANTS}[{law}-{next(iter(registry.LAWS[law].mutants))}]".replace(" ", "_")
        for law in used
    ]


def tests_of(room: str) -> list[str]:
    """The arguments of pytest for a room."""
    laws = [path for path in sorted(LAWS.glob("test_*.py")) if uses(path, room)]
    bounds = LAWS / "test_error_bounds.py"
    named = [path.relative_to(ROOT).as_posix() for path in laws if path != bounds]
    return [f"tests/{room}", *named, *(bounds_of(room) if bounds in laws else [])]


def main(words: list[str]) -> int:
    """Print the arguments, or refuse what is no room."""
    (word,) = words
    folder = (TESTS / word).resolve()
    if TESTS not in folder.parents or not folder.is_dir():
        print(f"{word!r} is no room: give ROOM=accountant/book, or another folder of tests",
              file=sys.stderr)  # fmt: skip
        return 2
    print(" ".join(tests_of(folder.relative_to(TESTS).as_posix())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
