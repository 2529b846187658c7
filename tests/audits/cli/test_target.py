"""`python -m audits target`: somebody's function, whatever it does."""

import json
import os
import sys
import textwrap
import time

import numpy as np
import pytest

from audits.__main__ import main
from tests.child_processes import interrupt, interruptible

CODE = """
import os, sys, time
import numpy as np

def honest(value, rng, size):
    return value + rng.laplace(size=size)

def half(value, rng, size):
    return value + rng.laplace(scale=0.5, size=size)

def one_at_a_time(value, rng):
    return value + rng.laplace()

def loud(value, rng, size):
    print("LOUD")
    os.write(1, b"LOUDER")
    print("LOUD", file=sys.stderr)
    return honest(value, rng, size)

def reads(value, rng, size):
    sys.stdin.read()
    return honest(value, rng, size)

def raises(value, rng, size):
    raise RuntimeError("first\\nsecond")

def raises_mute(value, rng, size):
    class Mute(Exception):
        def __str__(self):
            raise ValueError
    raise Mute

def too_few(value, rng, size):
    return np.zeros(3)

def leaves(value, rng, size):
    sys.exit(7)

def dies(value, rng, size):
    os._exit(0)

def crashes(value, rng, size):
    os.abort()

def sleeps(value, rng, size):
    open("started", "w").close()
    time.sleep(600)

class Handle:
    __slots__ = ()
    def __reduce_ex__(self, protocol):
        raise TypeError

def hidden(value, rng):
    return one_at_a_time(value, rng), Handle()

def items(value, rng):
    return (one for one in (1, {"a": value + rng.laplace(scale=0.5)}))

class Holder:
    @staticmethod
    def release(value, rng, size):
        return honest(value, rng, size)

number = 3
"""
IMPORTS = {"leaves_now": "import sys; sys.exit(0)", "fails": "1 / 0", "bad": "def f(:\n",
           "dies_now": "import os; os._exit(0)"}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text(textwrap.dedent(CODE))
    for name, code in IMPORTS.items():
        (tmp_path / f"{name}.py").write_text(code)
    for name, value in {"a": 0.0, "b": 1.0, "three": np.zeros(3), "words": np.array(["x"])}.items():
        np.save(tmp_path / f"{name}.npy", value)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "junk.npy").write_text("junk")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    return tmp_path


def words(name, *more, pair=("a.npy", "b.npy"), claim="1"):
    return ["target", name, "--epsilon", claim, "--pair", *pair, "--allow-import",
            "--samples", "20000", "--seed", "1", *more]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "status"),
    [("theirs:honest", 0), ("theirs:half", 1), ("theirs:one_at_a_time", 0), ("theirs:loud", 0),
     ("theirs:reads", 0), ("theirs:Holder.release", 0)],
)  # fmt: skip
def test_a_function_is_audited(name, status, folder, capfd):
    assert main(words(name, "--json", "r.json")) == status
    shown = capfd.readouterr()
    assert "LOUD" not in shown.out + shown.err
    assert shown.err == ""
    (row,) = json.loads((folder / "r.json").read_text())["findings"]
    assert (row["subject"], row["kind"]) == (name, "target")
    assert row["outcome"] == ("falsified" if status else "survived")
    assert "private" not in shown.out.lower()


def test_a_generator_is_read_where_it_is_made(folder, capsys):
    assert main(words("theirs:items")) == 1
    assert "theirs:items leaks" in capsys.readouterr().out


def test_what_cannot_be_looked_into_is_inconclusive(folder, capsys):
    command = words("theirs:hidden", "--json", "r.json", "--samples", "2000")
    assert main(command) == 0
    assert "not looked into: output[1]: Handle" in capsys.readouterr().out
    assert main([*command, "--strict"]) == 3
    written = json.loads((folder / "r.json").read_text())
    assert written["findings"][0]["outcome"] == "inconclusive"
    assert written["details"][0]["unseen"] == ["output[1]: Handle"]


def test_low_order_bits_are_looked_at_on_request(folder, capsys):
    assert main(words("theirs:honest", "--bits")) == 1
    assert "low bits of theirs:honest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [("theirs:raises", "first"), ("theirs:raises_mute", "code that runs"),
     ("theirs:too_few", "shape (3,)"),
     ("theirs:leaves", "SystemExit: 7"), ("theirs:dies", "its process exited with 0"),
     ("theirs:crashes", "its process exited with -6"), ("theirs:number", "a function"),
     ("theirs:nothing", "AttributeError"), ("leaves_now:f", "SystemExit"),
     ("fails:f", "ZeroDivisionError"), ("bad:f", "SyntaxError"),
     ("dies_now:f", "its process exited with 0"),
     ("nowhere:f", "ModuleNotFoundError"), ("theirs", "written package.module:function"),
     ("../theirs:honest", "written"), ("theirs:honest()", "written"), (":", "written")],
)  # fmt: skip
def test_a_target_that_cannot_be_audited_is_one_line_and_exit_2(name, message, folder, capfd):
    before = sorted(path.name for path in folder.iterdir())
    assert main(words(name, "--json", "r.json", "--html", "r.html")) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert message in shown.err
    after = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert after == set(before)


@pytest.mark.parametrize(
    ("pair", "claim", "message"),
    [(("a.npy", "three.npy"), "1", "shape"), (("a.npy", "objects.npy"), "1", "without objects"),
     (("a.npy", "junk.npy"), "1", "without objects"), (("a.npy", "words.npy"), "1", "numbers"),
     (("a.npy", "missing.npy"), "1", "No such file"), (("a.npy", "."), "1", "a .npy file"),
     (("a.npy", "b.npy"), "nan", "--epsilon must be"), (("a.npy", "b.npy"), "-1", "--epsilon"),
     (("a.npy", "b.npy"), "much", "--epsilon must be")],
)  # fmt: skip
def test_bad_pairs_and_claims_are_refused_before_any_import(pair, claim, message, folder, capsys):
    (folder / "theirs.py").write_text("open('imported', 'w').close()")
    assert main(words("theirs:honest", pair=pair, claim=claim)) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (folder / "imported").exists()


def test_nothing_is_imported_without_leave(folder, capsys):
    (folder / "theirs.py").write_text("open('imported', 'w').close()")
    some = [word for word in words("theirs:honest") if word != "--allow-import"]
    assert main(some) == 2
    assert "--allow-import must be given" in capsys.readouterr().err
    assert not (folder / "imported").exists()


def test_replay_asks_for_leave_too(folder, capsys):
    assert main(words("theirs:half", "--json", "r.json")) == 1
    assert main(["replay", "r.json"]) == 2
    assert "--allow-import must be given" in capsys.readouterr().err
    assert main(["replay", "r.json", "--allow-import"]) == 0
    assert "identical but for times" in capsys.readouterr().out


def test_an_interrupt_takes_the_child_along(folder):
    with interruptible([sys.executable, "-m", "audits", *words("theirs:sleeps")]) as process:
        while not (folder / "started").exists() and process.poll() is None:
            time.sleep(0.1)
        _, err = interrupt(process)  # would wait for a child that holds its output
    assert process.returncode == 130
    assert err == "interrupted: no rows were saved\n"
