"""How easy the project is to hold in one head: counts of its sources, imports and calls.

``python -m tests.shape`` prints them; `test_shape` lets none of them rise.
"""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")
# as local names they do not say what the value is
BARE_WORDS = {
    "found", "made", "one", "other", "known", "given", "asked", "some", "most", "least",
    "left", "kept", "seen", "whole", "words", "way", "ways", "each", "both", "rest",
    "first", "last", "near", "rough", "held", "place", "more", "back", "enough", "all",
    "apart", "read", "used", "own",
}  # fmt: skip
# a number that decides which method answers, or how much work is done
THRESHOLD = re.compile(
    r"QUICK|FEW|MANY|LONG|SHORT|LARGE|ENOUGH|MAX_|MIN_|MOST|LEAST|NEAR|SMALL"
    r"|quick|second|slow|long|cheap|time|few|many|cost"
)
IMPORTS = ("from mechanisms import Laplace", "from accountant import Tight", "import audits")
CALLS = {
    "52 Gaussians": """
from accountant import Tight
from mechanisms import Gaussian
plan = 52 * Gaussian(40.0)
call = lambda: Tight().epsilon(plan, delta=1e-6)""",
    "DP-SGD": """
from accountant import PoissonSampled, Tight
from mechanisms import Gaussian
plan = 1000 * PoissonSampled(Gaussian(1.0), 0.01)
call = lambda: Tight().epsilon(plan, delta=1e-6)""",
    "Ledger.release": """
import numpy as np
from accountant import Ledger
from mechanisms import Laplace
total = Laplace(scale=100.0, sensitivity=100.0)
call = lambda: Ledger(np.array([23.0, 35.0]), 1 * total).release(total, lambda ages: ages.sum())""",
    "release of a Book": """
import tempfile
import numpy as np
from accountant import Book, Budget
from mechanisms import Laplace
book = Book.create("sqlite:///" + tempfile.mkdtemp() + "/book.db")
book.dataset("ages", budget=Budget(epsilon=1.0), notion="pure")
total = Laplace(scale=100.0, sensitivity=100.0)
def call():
    with book.ledger("ages", np.array([23.0, 35.0])) as ledger:
        return ledger.release(total, lambda ages: ages.sum())""",
    "PrivateLasso.fit": """
import numpy as np
from algorithms import PrivateLasso
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (2000, 20))
y = X[:, 0] / 2 + rng.normal(size=2000) / 10
model = PrivateLasso(epsilon=1.0, delta=1e-6, rounds=30, random_state=1)
call = lambda: model.fit(X, y)""",
    "audit of a function": """
from accountant import PureLoss
from audits import audit
def noisy(value, rng, size):
    return value + rng.laplace(scale=0.5, size=size)
call = lambda: audit(noisy, pair=(0.0, 1.0), claim=PureLoss(1.0), rng=0)""",
}
TRACE = """
import pathlib, sys, warnings
warnings.simplefilter("ignore")
{setup}
root, entered = str(pathlib.Path.cwd()) + "/", set()
def watch(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(root) and frame.f_code.co_name != "<module>":
        if name[len(root):].startswith({packages!r}):
            entered.add(name)
sys.setprofile(watch)
call()
sys.setprofile(None)
print(len(entered))
"""
LOADED = """
import sys
{statement}
print(sum(name.partition(".")[0] in {packages!r} for name in sys.modules))
"""


@cache
def trees() -> dict[str, tuple[Path, str, ast.Module]]:
    """The path, the text and the syntax of every product module, by its dotted name."""
    modules = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            modules[name] = (path, text, ast.parse(text))
    return modules


def bare_share() -> float:
    """The share of local names that are bare words."""
    stored = [
        node.id
        for _, _, tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.isupper()
    ]
    return sum(name in BARE_WORDS for name in stored) / len(stored)


def private_functions_used_once() -> int:
    """How many private functions one place of their own file calls."""
    count = 0
    for _, _, tree in trees().values():
        uses = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        count += sum(
            uses[node.name] == 1
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("_")
            and not node.name.startswith("__")
        )
    return count


def files_with_one_client() -> int:
    """How many files one other file imports, which stands in the same folder."""
    clients = defaultdict(set)
    for name, (_, _, tree) in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                inside = (f"{node.module}.{alias.name}" for alias in node.names)
                for module in (node.module, *inside):
                    clients[module].add(name)
    return sum(
        len(clients[name]) == 1
        and next(iter(clients[name])).rpartition(".")[0] == name.rpartition(".")[0]
        for name, (path, _, _) in trees().items()
        if path.name != "__init__.py"
    )


def thresholds() -> int:
    """How many numbers of the accountant choose a method, or an amount of work."""
    count = 0
    for name, (_, text, tree) in trees().items():
        rows = text.splitlines()
        for node in tree.body if name.startswith("accountant.") else ():
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", 0)
            targets = [target] if isinstance(target, ast.Name) else getattr(target, "elts", [])
            names = [n.id for n in targets if isinstance(n, ast.Name) and n.id.strip("_").isupper()]
            value = getattr(node, "value", None)
            numbers = value and [
                n for n in ast.walk(value)
                if isinstance(n, ast.Constant) and type(n.value) in (int, float)
            ]  # fmt: skip
            if names and numbers:
                said = " ".join(names) + " " + rows[node.lineno - 1].partition("#")[2]
                count += bool(THRESHOLD.search(said)) * len(names)
    return count


def number_printed(program: str) -> int:
    """The number that a program of its own prints."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return int(done.stdout)


def modules_loaded(statement: str) -> int:
    """How many modules of the project an import loads."""
    return number_printed(LOADED.format(statement=statement, packages=PACKAGES))


def files_entered(setup: str) -> int:
    """How many files of the project a call runs through, after an import."""
    folders = tuple(f"{package}/" for package in PACKAGES)
    return number_printed(TRACE.format(setup=setup, packages=folders))


def counts() -> dict[str, float]:
    """All counts, by their names."""
    return {
        "share of bare words among local names": round(bare_share(), 4),
        "private functions used once": private_functions_used_once(),
        "files with one client, in the same folder": files_with_one_client(),
        "thresholds in the accountant": thresholds(),
        **{f"modules loaded by {one}": modules_loaded(one) for one in IMPORTS},
        **{f"files entered by {name}": files_entered(setup) for name, setup in CALLS.items()},
    }


if __name__ == "__main__":
    for name, number in counts().items():
        print(f"{name:50} {number}")
