"""Print the lowest declared version of every dependency as a pin, for pip's --constraint."""

import re
import tomllib
from pathlib import Path

MINIMUM = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)")

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
declared = [*project["dependencies"], *(line for name in extras for line in extras[name])]
found = {}
for name, version in (match.groups() for match in map(MINIMUM.match, declared) if match):
    # of two extras that name one package the higher minimum is what both allow
    numbers = tuple(map(int, version.split(".")))
    found[name] = max(found.get(name, numbers), numbers)
for name, numbers in sorted(found.items()):
    print(f"{name}=={'.'.join(map(str, numbers))}")
