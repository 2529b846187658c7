"""The first hour of a new user: ``python -m tests.first_hour`` in an environment of its own.

It builds the wheel, installs it beside nothing else, and then does what the how-tos say, as five
people would: an analyst with a CSV, a trainer, an author of a library, a reviewer and a researcher.
Each step is a process that knows the installed wheel alone; what it must have said or written is
checked, and so are the answers to first mistakes.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
WANTED = """
[budget]
epsilon = 1.0
delta = 1e-6

[[release]]
name = "weekly count"
kind = "Gaussian"
sensitivity = 1.0
count = 52
weight = 1.0
"""
A_COUNT = """
import numpy as np
from accountant import Budget, Filter, calibrate
from mechanisms import DiscreteLaplace

noise = calibrate(DiscreteLaplace, sensitivity=1, epsilon=0.5)
has_flu = np.array([1, 0, 0, 1, 1, 0, 0, 0, 1, 0] * 50)
gate = Filter(has_flu, Budget(epsilon=1.0))
print("count:", gate.release(noise, np.sum), "spent:", gate.spent)
"""
A_FRAME = """
import pandas as pd
from accountant import Book
from algorithms.frames import Category, Number, Schema, count, mean

schema = Schema({"age": Number(0, 110), "answer": Category(["yes", "no"])}, person="id")
frame = pd.DataFrame({"id": range(2000), "age": [20 + i % 60 for i in range(2000)],
                      "answer": ["yes", "no"] * 1000})
with Book.open("team.db", author="ada") as book:
    with book.ledger("survey", frame) as ledger:
        print(count(by="answer", epsilon=0.25).release(ledger, schema).frame)
        print(mean("age", epsilon=0.25).release(ledger, schema).value)
    print("left:", book.status("survey").budget.epsilon - book.status("survey").epsilon)
"""
A_MISTAKE = """
from accountant import Book, Budget
with Book.create("mistake.db") as book:
    book.dataset("visits", Budget(1.0))
    book.remaining("visits")
"""
LEAK = """
import numpy as np

def release(value, rng):
    return value + rng.laplace(scale=1.0)  # says epsilon .5, gives 1
"""
A_NOTEBOOK = """
import sys
import jupytext
import nbformat
from nbclient import NotebookClient

notebook = jupytext.read(sys.argv[1])
notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
NotebookClient(notebook, timeout=300).execute()
nbformat.write(notebook, "plan_a_budget.ipynb")
shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
print(sum("text/html" in one.get("data", {}) for one in shown), "tables shown")
"""
NOTEBOOK_TOOLS = ("jupytext", "nbclient", "ipykernel", "matplotlib")


class FirstHour:
    """Runs steps in a folder, with the programs of an environment that has the wheel alone."""

    def __init__(self, folder: Path) -> None:
        self._programs, self._work = folder / "env" / "bin", folder / "work"
        self._work.mkdir(parents=True)
        self._folder = folder

    def install(self) -> None:
        """Build the wheel and install it in a new environment, with what it needs alone."""
        self._run([sys.executable, "-m", "hatchling", "build", "-t", "wheel",
                   "-d", str(self._folder)], 0, "", ROOT)  # fmt: skip
        venv.create(self._folder / "env", with_pip=True)
        (wheel,) = self._folder.glob("*.whl")
        self.add_packages(str(wheel))

    def add_packages(self, *names: str) -> None:
        """Install packages there, as the remedies of messages say."""
        self.python("-m", "pip", "install", "--quiet", *names)

    def python(self, *words: str, says: str = "", status: int = 0) -> None:
        """Run Python there; it must end with ``status`` and print ``says``."""
        self._run([str(self._programs / "python"), *words], status, says)

    def command(self, *words: str, says: str = "", status: int = 0) -> None:
        """Run dp-attest there."""
        self._run([str(self._programs / "dp-attest"), *words], status, says)

    def _run(self, words: list[str], status: int, says: str, where: Path | None = None) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        start = time.perf_counter()
        done = subprocess.run(
            words, cwd=where or self._work, env=kept, capture_output=True, text=True, check=False
        )
        shown = " ".join([Path(words[0]).name, *words[1:]]).splitlines()[0]
        print(f"{time.perf_counter() - start:6.1f} s  {shown[:90]}", flush=True)
        if done.returncode != status or says not in done.stdout + done.stderr:
            raise AssertionError(
                f"{shown} ended with {done.returncode} (expected {status}, and to read {says!r}):\n"
                f"{done.stdout}{done.stderr}"
            )

    def write(self, name: str, text: str) -> None:
        """Write a file as the user does."""
        (self._work / name).write_text(text, encoding="utf-8")

    def remove(self, name: str) -> None:
        """Delete a file as the user does."""
        (self._work / name).unlink()


def play(folder: Path) -> None:
    """Play the hour in an empty folder; raises `AssertionError` at the first step that fails."""
    hour = FirstHour(folder)
    hour.install()
    hour.command("--version", says="dp-attest ")
    analyst(hour)
    trainer(hour)
    author_of_a_library(hour)
    reviewer(hour)
    researcher(hour)
    made = {path.name for path in (folder / "work").iterdir()}
    pages = {f"{name}.html" for name in ("plan", "run", "team", "index", "laplace")}
    assert pages | {"plan_a_budget.ipynb"} <= made


def analyst(hour: FirstHour) -> None:
    """A count, a plan, a book that a table spends from, and what goes wrong at first."""
    hour.write("count.py", A_COUNT)
    hour.python("count.py", says="spent: 0.49999")
    hour.python("-c", A_MISTAKE, status=1, says='book.remaining("visits", plan)')
    hour.write("wanted.toml", WANTED)
    hour.command("account", "fit", "wanted.toml", "--out", "plan.toml")
    hour.command("account", "fit", "wanted.toml", "--out", "plan.toml", status=2, says="--force")
    hour.command("account", "plan", "plan.toml", says="weekly count")
    hour.command("account", "pln", "plan.toml", status=2, says="Did you mean 'plan'")
    hour.command("account", "explain", "plan.toml", says="record")
    hour.command(
        "ledger", "open", "team.db", "survey", "--new", "--epsilon", "1", "--unit", "one person"
    )
    hour.add_packages("pandas")
    hour.write("frame.py", A_FRAME)
    hour.python("frame.py", says="left: 0.5")
    hour.command("ledger", "status", "team.db", "--json", says='"datasets"')
    hour.command("ledger", "verify", "team.db")


def trainer(hour: FirstHour) -> None:
    """The statement of a training run, its page, and the run again."""
    run = ("--examples", "200", "--batch", "100", "--epochs", "1", "--noise", "2")
    hour.command("account", "training", *run, "--loader", "shuffled", "--json", "run.json",
                 "--out", "run.html", says="the Poisson number does not hold")  # fmt: skip
    hour.command("account", "training", "--replay", "run.json", says="DP-SGD over 200 examples")


def author_of_a_library(hour: FirstHour) -> None:
    """An audit of a function of one's own, also in a folder that hides a package."""
    hour.write("leak.py", LEAK)
    target = ("audit", "target", "leak:release", "--epsilon", "0.5", "--pair", "0", "1")
    hour.command(*target, status=2, says="--allow-import")
    hour.command(*target, "--allow-import", "--seed", "7", "--json", "leak.json", status=1,
                 says="FALSIFIED")  # fmt: skip
    hour.write("algorithms.py", "def mine(): ...\n")
    hour.command(*target, "--allow-import", status=2, says="to install again cannot help")
    hour.remove("algorithms.py")


def reviewer(hour: FirstHour) -> None:
    """A proof, which needs one more package, and pages to look at."""
    certify = ("account", "certify", "plan.toml", "--out", "cost.proof.json")
    hour.command(*certify, status=2, says="pip install python-flint")
    hour.add_packages("python-flint")
    hour.command(*certify, says="PROVED")
    hour.command("account", "verify", "cost.proof.json", "--plan", "plan.toml",
                 says="this plan is that of plan.toml")  # fmt: skip
    hour.command("page", "plan.toml", "--out", "plan.html")
    hour.command("page", "--ledger", "team.db", "--out", "team.html")


def researcher(hour: FirstHour) -> None:
    """Audits of mechanisms, all accountants beside each other, and a notebook."""
    hour.command("audit", says="Commands:")
    hour.command("audit", "Laplace", "--seed", "7", "--runs", "20000", "--json", "laplace.json",
                 "--out", "laplace.html", says="SURVIVED")  # fmt: skip
    hour.command("account", "compare", "plan.toml", says="Tight")
    hour.command("index", ".", "--out", "index.html")
    hour.add_packages(*NOTEBOOK_TOOLS)
    hour.write("notebook.py", A_NOTEBOOK)
    source = ROOT / "docs" / "notebooks" / "plan_a_budget.py"
    hour.python("notebook.py", str(source), says="tables shown")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        play(Path(place if len(sys.argv) < 2 else sys.argv[1]))
