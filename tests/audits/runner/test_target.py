"""`dp-attest audit target`: a function of the user's own, whatever it does."""

import hashlib
import json
import os
import re
import sys
import textwrap
import time
from types import SimpleNamespace

import numpy as np
import pytest

from accountant import Book, Budget
from audits.__main__ import main
from tests.child_processes import interrupt, interruptible

CODE = """
import os, sys, time
import numpy as np

def honest(value, rng, size):
    return value + rng.laplace(size=size)

def half(value, rng, size):
    return value + rng.laplace(scale=0.5, size=size)

def total(value, rng, size):
    return float(np.sum(np.asarray(value["x"]))) + rng.laplace(size=size)

def rows(value, rng, size):
    return len(value) + rng.laplace(scale=0.2, size=size)

def rows_of_x(value, rng, size):
    return rows(value["x"], rng, size)

def in_place(value, rng):
    value += 1
    return value.sum() + rng.laplace()

def own(value):
    return value + np.random.laplace()

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

def stalls(value, rng):
    with open("calls", "a") as file:
        file.write(".")
    if os.path.getsize("calls") > 400 and not os.path.exists("go"):
        open("started", "w").close()
        time.sleep(600)
    return value + rng.laplace(scale=0.1)

def slow(value, rng):
    time.sleep(0.02)
    return value + rng.laplace(scale=0.1)

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
    for name in ("junk.npy", "junk.npz", "bad.json"):
        (tmp_path / name).write_text("junk")
    np.savez(tmp_path / "objects.npz", np.array([{}], dtype=object))
    np.savez(tmp_path / "two.npz", x=np.ones(3), y=np.zeros(2))
    np.savez(tmp_path / "two_less.npz", x=np.ones(2), y=np.zeros(2))
    np.savez(tmp_path / "one.npz", np.ones(3))
    for name, rows in {"all": 3, "less": 2}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"x": [1.0] * rows}))
        (tmp_path / f"{name}.csv").write_text("x,who\n" + "1,Alice\n" * rows)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    return tmp_path


def words(name, *more, pair=("a.npy", "b.npy"), claim="1"):
    return ["target", name, "--epsilon", claim, "--pair", *pair, "--allow-import",
            "--runs", "4000", "--seed", "1", *more]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "status"),
    [("theirs:honest", 0), ("theirs:half", 1), ("theirs:one_at_a_time", 0), ("theirs:loud", 0),
     ("theirs:reads", 0), ("theirs:Holder.release", 0)],
)  # fmt: skip
def test_a_function_is_audited(name, status, folder, capfd):
    assert main(words(name, "--json", "r.json")) == status
    shown = capfd.readouterr()
    assert "LOUD" not in shown.out + shown.err
    # on a slow machine the audit prints how long it takes
    assert all(line.startswith("about ") for line in shown.err.splitlines())
    (row,) = json.loads((folder / "r.json").read_text())["findings"]
    assert (row["subject"], row["kind"]) == (name, "target")
    assert row["outcome"] == ("falsified" if status else "survived")
    assert "private" not in shown.out.lower()


def test_a_generator_is_read_where_it_is_made(folder, capsys):
    assert main(words("theirs:items")) == 1
    assert "theirs:items leaks" in capsys.readouterr().out


def test_what_cannot_be_looked_into_is_inconclusive(folder, capsys):
    command = words("theirs:hidden", "--json", "r.json", "--runs", "500")
    assert main(command) == 0
    assert "not looked into: output[1]: Handle" in capsys.readouterr().out
    assert main([*command, "--strict", "--force"]) == 3
    written = json.loads((folder / "r.json").read_text())
    assert written["findings"][0]["outcome"] == "inconclusive"
    assert written["details"][0]["unseen"] == ["output[1]: Handle"]


@pytest.mark.parametrize(
    ("name", "pair", "status"),
    [("half", ("0", "1"), 1), ("honest", ("-1", "-0.5"), 0),
     ("total", ("all.json", "less.json"), 0),
     ("total", ("two.npz", "two_less.npz"), 0), ("rows", ("one.npz", "three.npy"), 1),
     ("rows", ("one.npz", "two.npz"), 1)],
)  # fmt: skip
def test_values_are_numbers_or_files_of_any_size(name, pair, status, folder, capsys):
    np.save(folder / "three.npy", np.zeros(4))
    assert main(words(f"theirs:{name}", "--runs", "2000", pair=pair)) == status
    capsys.readouterr()


def test_tables_are_frames_and_no_record_is_printed(folder, capsys):
    pytest.importorskip("pandas")
    more = ["--runs", "2000", "--json", "r.json"]
    assert main(words("theirs:rows_of_x", *more, pair=("all.csv", "less.csv"))) == 1
    kept = (folder / "r.json").read_text()
    assert "a DataFrame of shape (3, 2) against a DataFrame of shape (2, 2)" in kept
    assert "Alice" not in capsys.readouterr().out + kept


def test_what_reads_a_table_is_named_where_it_is_missing(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert main(words("theirs:total", pair=("all.csv", "less.csv"))) == 2
    assert "read by pandas, which is not installed: python -m pip" in capsys.readouterr().err

    def without_pyarrow(word):
        raise ImportError

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(read_parquet=without_pyarrow))
    assert main(words("theirs:total", pair=("all.parquet", "less.csv"))) == 2
    assert "read by pyarrow, which is not installed: python -m pip" in capsys.readouterr().err


def test_notes_are_printed_and_written(folder, capsys):
    np.save("four.npy", np.zeros(4))
    reports = ["--runs", "500", "--json", "r.json", "--junit", "r.xml", "--out", "r.html"]
    assert main(words("theirs:in_place", *reports, pair=("three.npy", "four.npy"))) == 0
    sentence = "The release changes the value that it receives"
    out = " ".join(capsys.readouterr().out.split())
    assert f"note on theirs:in_place: {sentence}" in out
    (detail,) = json.loads((folder / "r.json").read_text())["details"]
    assert detail["notes"] == [f"{sentence}; every call had a copy of its own."]
    assert all(sentence in (folder / name).read_text() for name in ("r.xml", "r.html"))
    assert main(words("theirs:own", "--runs", "500")) == 0
    assert "a seed does not repeat it" in " ".join(capsys.readouterr().out.split())


def test_help_shows_commands_to_try(capsys):
    assert main(["target", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("dp-attest audit target mycode:") == 4
    assert "--pair 0 1 --allow-import" in shown


def test_low_order_bits_are_looked_at_on_request(folder, capsys):
    assert main(words("theirs:honest", "--bits")) == 1
    assert "low bits of theirs:honest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [("theirs:raises", "raised RuntimeError at theirs.py:"),
     ("theirs:raises_mute", "raised Mute at theirs.py:"),
     ("theirs:too_few", "shape (3,)"),
     ("theirs:leaves", "SystemExit: 7"), ("theirs:dies", "its process exited with 0"),
     ("theirs:crashes", "its process exited with -6"), ("theirs:number", "a function"),
     ("theirs:nothing", "AttributeError"), ("leaves_now:f", "SystemExit"),
     ("fails:f", "ZeroDivisionError"), ("bad:f", "SyntaxError"),
     ("dies_now:f", "its process exited with 0"),
     ("nowhere:f", "ModuleNotFoundError"), ("theirs", "written package.module:function"),
     ("theirs.py:honest", "not as a file: theirs:honest"),
     ("mine/theirs.py", "not as a file: theirs:release, in the folder mine"),
     ("../theirs:honest", "written"), ("theirs:honest()", "written"), (":", "written")],
)  # fmt: skip
def test_a_target_that_cannot_be_audited_is_one_line_and_exit_2(name, message, folder, capfd):
    before = sorted(path.name for path in folder.iterdir())
    assert main(words(name, "--json", "r.json", "--out", "r.html")) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert message in shown.err
    after = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert after == set(before)


@pytest.mark.parametrize(
    ("pair", "claim", "message"),
    [(("a.npy", "a.npy"), "1", "two values that differ"),
     (("a.npy", "objects.npy"), "1", "without objects"),
     (("a.npy", "junk.npy"), "1", "without objects"), (("a.npy", "words.npy"), "1", "numbers"),
     (("a.npy", "missing.npy"), "1", "No such file"),
     (("a.npy", "."), "1", "a number, or a file that ends in .npy"),
     (("0", "0.0"), "1", "two values that differ"), (("0", "inf"), "1", "finite"),
     (("a.npy", "bad.json"), "1", "can be read (JSONDecodeError)"),
     (("a.npy", "junk.npz"), "1", "can be read"), (("a.npy", "objects.npz"), "1", "can be read"),
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
    assert main(words("theirs:half", "--json", "r.json", "--runs", "2000")) == 1
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


def settled(path):
    """The file of a result without its date, its durations and the digests of the code."""
    found = json.loads(path.read_text())
    found.pop("date")
    assert found.pop("digests")["unknown"]  # the function reads files
    for row in found["findings"]:
        row["seconds"] = 0
    return re.sub(r"SHA-256 \w+", "SHA-256", json.dumps(found))


def test_an_interrupted_target_goes_on_from_what_was_drawn(folder, capsys):
    command = words("theirs:stalls", "--json", "r.json", "--runs", "600", "--jobs", "2")
    with interruptible([sys.executable, "-m", "audits", *command]) as process:
        while not (folder / "started").exists() and process.poll() is None:
            time.sleep(0.1)
        out, err = interrupt(process)
    assert (process.returncode, out) == (130, "")
    assert "outputs of" in err
    assert "--resume" in err
    kept, part = folder / "r.json.part.outputs", folder / "r.json.part"
    assert kept.stat().st_mode & 0o777 == 0o600
    with kept.open("ab") as file:  # as if an interruption had cut the last record
        file.write(kept.read_bytes()[:60])
    (folder / "go").touch()
    left = {path: path.read_bytes() for path in (kept, part)}
    drawn = {}
    drawn["the rest"] = calls_of([*command, "--resume"], folder)
    first = settled(folder / "r.json")
    assert not kept.exists()
    assert not part.exists()
    for path, content in left.items():
        path.write_bytes(content)
    with (folder / "theirs.py").open("a") as file:
        file.write("# another version\n")
    drawn["other code"] = calls_of([*command, "--resume", "--force"], folder)
    drawn["all"] = calls_of([*command, "--json", "whole.json"], folder)
    # what was kept is not drawn again, unless the code is another
    assert 0 < drawn["the rest"] < drawn["all"] - 200
    assert drawn["other code"] > drawn["all"] - 50
    assert first == settled(folder / "r.json") == settled(folder / "whole.json")
    assert "stalls" in capsys.readouterr().out


def calls_of(command, folder):
    """How often an audit that finds a violation calls the function."""
    before = (folder / "calls").stat().st_size
    assert main(command) == 1
    return (folder / "calls").stat().st_size - before


def test_a_limit_keeps_what_was_drawn(folder, capsys):
    command = words("theirs:slow", "--json", "r.json", "--runs", "2000", "--max-seconds", "3")
    assert main(command) == 2
    err = capsys.readouterr().err
    assert "continue with --resume" in err
    left = re.match(r"about (\d+) s left, more than --max-seconds 3", err)
    assert left is not None
    assert int(left[1]) >= 30  # of 2,000 runs of a fiftieth of a second each
    assert "more than --max-seconds 3; fewer --runs or" in err
    assert (folder / "r.json.part.outputs").stat().st_size > 100


def test_an_estimate_leaves_stdout_alone(folder, capsys):
    command = words("theirs:slow", "--json", "-", "--runs", "600", "--early")
    assert main(command) == 1
    shown = capsys.readouterr()
    assert re.match(r"at most about \d+ s left; fewer --runs", shown.err)
    (row,) = json.loads(shown.out)["findings"]
    assert row["runs"] < 300


@pytest.mark.parametrize(("name", "status"), [("theirs:honest", 0), ("theirs:half", 1)])
def test_an_early_stop_has_the_confidence_of_the_verdict(name, status, folder):
    assert main(words(name, "--early", "--json", "r.json")) == status
    found = json.loads((folder / "r.json").read_text())
    (row,) = found["findings"]
    assert row["runs"] == 4000 if status == 0 else row["runs"] < 2000
    assert row["confidence"] == 1 - 1e-6
    assert "--early" in found["command"]


def with_evidence(name, *more, version="1.0", seed="48"):
    return ["target", name, "--epsilon", "1", "--pair", "0", "1", "--allow-import", "--runs",
            "100", "--early", "--seed", seed, "--evidence", "book.db", "--version", version,
            *more]  # fmt: skip


@pytest.fixture
def claims(folder):
    with Book.create(folder / "book.db") as book:
        book.claim("theirs:half", Budget(1.0))
        book.claim("count", Budget(1.0))
    return folder / "book.db"


def test_versions_add_up_to_an_alarm_that_fails_the_run(claims, capsys):
    statuses = []
    for number in range(4):
        statuses.append(main(with_evidence("theirs:half", version=f"1.{number}", seed=str(number))))
        shown = " ".join(capsys.readouterr().out.split())
        assert "SURVIVED" in shown
        assert "Evidence: theirs:half: PureLoss(epsilon=1.0); wealth" in shown
    assert statuses[0] == 0
    assert statuses[-1] == 1
    assert "ALARM since entry" in shown
    # an alarm stays
    assert main(with_evidence("theirs:honest", "--claim", "theirs:half", seed="9")) == 1
    with Book.open(claims) as book:
        evidence = book.evidence("theirs:half")
        assert [line.version for line in evidence.lines[:3]] == ["1.0", "1.1", "1.2"]
        assert evidence.is_alarmed
        assert not book.evidence("count").lines
        book.verify()


def test_the_code_itself_is_the_version_where_none_is_stated(claims):
    command = with_evidence("theirs:honest", "--claim", "count", "--bits")
    del command[command.index("--version") : command.index("--version") + 2]
    assert main(command) in {0, 1}  # its low bits leak, if so few runs show it
    with Book.open(claims) as book:
        versions = {line.version for line in book.evidence("count").lines}
        assert len(book.evidence("count").lines) == 2  # of outputs, and of their low bits
    digest = hashlib.sha256(claims.with_name("theirs.py").read_bytes()).hexdigest()
    assert versions == {digest[:12]}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--claim", "absent"), "--evidence must be a book whose claim 'absent' has epsilon 1"),
        (("--epsilon", "2"), "--evidence must be a book whose claim 'theirs:half' has epsilon 2"),
        (("--delta", "1e-5"), "ledger claim BOOK theirs:half --epsilon 1.0 --delta 1e-05 opens it"),
        (("--evidence", "other.db"), "url must be a book that is there"),
        (("--version", "\n"), "version must be"),
    ],
)
def test_evidence_that_cannot_be_added_is_refused_before_any_run(claims, more, said, capsys):
    assert main([*with_evidence("theirs:half"), *more]) == 2
    error = capsys.readouterr().err
    assert said in error
    with Book.open(claims) as book:
        assert book.verify().entries == 3


def test_the_same_seed_is_refused_before_any_run(claims, capsys):
    command = with_evidence("theirs:honest", "--claim", "count")
    assert main(command) == 0
    assert main([*command, "--runs", "300", "--version", "2.0"]) == 2
    assert "--seed must be another one: its runs count already" in capsys.readouterr().err
    with Book.open(claims) as book:
        assert len(book.evidence("count").lines) == 1


def test_the_options_of_a_claim_need_a_book(folder, capsys):
    assert main(words("theirs:half", "--claim", "count")) == 2
    assert "--claim, --version, --key must be given with --evidence" in capsys.readouterr().err
    assert folder.is_dir()
