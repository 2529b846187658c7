"""Hostile proof files: one line and exit status 2, in bounded time and memory."""

import contextlib
import copy
import functools
import resource
import subprocess
import sys

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.__main__ import main
from accountant.verifier import ProofError, verify
from tests.accountant.verifier.written_proofs import (
    PLANS,
    content,
    document,
    proof_of,
)

GIGABYTE = 1 << 30


def changed(road, change):
    found = content(road)
    change(found)
    return document(found)


def without(name):
    return changed("contour", lambda it: it.pop(name))


def with_field(road, name, value):
    return changed(road, lambda it: it.__setitem__(name, value))


def with_entry(road, name, value):
    return changed(road, lambda it: it["above"][0].__setitem__(name, value))


def with_rule(name, value):
    return changed("lattice", lambda it: it["above"][0]["rules"][0].__setitem__(name, value))


def nested(levels):
    plan = {"kind": "PureLoss", "epsilon": 0.5}
    for _ in range(levels):
        plan = {"kind": "Sequential", "parts": [plan]}
    return plan


FIELDS = ("above", "below", "delta", "lower", "plan", "proof", "upper")


def good():
    """A proof that no test changed."""
    return proof_of("contour")


def replaced(old, new):
    """The same proof with other bytes."""
    assert old in good()
    return good().replace(old, new)


def with_count(value):
    """The same proof with another number of repetitions."""
    return changed("contour", lambda it: it["plan"]["parts"][0].update(count=value))


# made where a test asks for them: proofs take seconds
HOSTILE = {
    "empty": lambda: b"",
    "null": lambda: b"null\n",
    "a list": lambda: b"[]\n",
    "a number": lambda: b"1\n",
    "no text": lambda: b"\xff\xfe\x00",
    "truncated": lambda: good()[:-40],
    "one byte less": lambda: good()[:-1],
    "twice": lambda: good() + good(),
    "a blank": lambda: good().replace(b",", b", ", 1),
    "duplicate keys": lambda: good().replace(b'"delta":', b'"delta":"0x1.0p-3","delta":', 1),
    "unknown field": lambda: with_field("contour", "trust", 1),
    "unknown version": lambda: with_field("contour", "proof", 2),
    "a true version": lambda: with_field("contour", "proof", True),
    "other letters": lambda: replaced(b"Laplace", "Läplace".encode()),
    "digits of another script": lambda: replaced(b'"count":64', '"count":\u0666\u0664'.encode()),
    "their escapes": lambda: with_field("contour", "delta", "\u0660x1.0p-20"),
    "NaN": lambda: good().replace(b'"count":64', b'"count":NaN'),
    "infinite": lambda: good().replace(b'"count":64', b'"count":Infinity'),
    "too large": lambda: good().replace(b'"count":64', b'"count":1e999'),
    "a long number": lambda: good().replace(b'"count":64', b'"count":' + b"9" * 100_000),
    "nan delta": lambda: with_field("contour", "delta", "nan"),
    "infinite upper end": lambda: with_field("contour", "upper", "inf"),
    "delta of 1": lambda: with_field("contour", "delta", "0x1.0000000000000p+0"),
    "delta as a number": lambda: with_field("contour", "delta", 1e-6),
    "lower above upper": lambda: with_field("contour", "lower", "0x1.0000000000000p+9"),
    "huge count": lambda: with_count(10**18),
    "count below 0": lambda: with_count(-1),
    "count as a float": lambda: with_count(64.0),
    "true count": lambda: with_count(True),
    "a billion nodes": lambda: with_entry("contour", "nodes", 10**9),
    "nodes as text": lambda: with_entry("contour", "nodes", "38"),
    "true nodes": lambda: with_entry("contour", "nodes", True),
    "a billion bits": lambda: with_entry("contour", "bits", 10**9),
    "a lattice of a million points": lambda: with_entry("lattice", "size", 2**18 + 1),
    "a lattice of one point": lambda: with_entry("lattice", "size", 1),
    "a lattice of less than none": lambda: with_entry("lattice", "size", -(2**16)),
    "a step of nan": lambda: with_entry("lattice", "h", "nan"),
    "a step below 0": lambda: with_entry("lattice", "h", (-0.5).hex()),
    "a step of 0": lambda: with_entry("lattice", "h", (0.0).hex()),
    "an infinite order": lambda: with_entry("lattice", "a", "inf"),
    "a negative order": lambda: with_entry("lattice", "a", (-1.0).hex()),
    "a negative slack": lambda: with_entry("lattice", "slack", (-(2.0**-30)).hex()),
    "no rules": lambda: with_entry("lattice", "rules", []),
    "a table of rules": lambda: with_entry("lattice", "rules", {}),
    "a rule of no table": lambda: with_entry("lattice", "rules", [[]]),
    "a million nodes": lambda: with_rule("count", 10**6),
    "nodes below 0": lambda: with_rule("count", -1),
    "a rule with more": lambda: with_rule("trust", 1),
    "nodes an infinity apart": lambda: with_rule("step", "inf"),
    "no direction": lambda: with_entry("contour", "direction", "sideways"),
    "a million entries": lambda: with_field("contour", "above", [0] * 400_000),
    "entries of numbers": lambda: with_field("contour", "above", [1, 2]),
    "deep nesting": lambda: b'{"plan":' + b"[" * 200_000,
    "deep plan": lambda: with_field("contour", "plan", nested(60)),
    "no plan": lambda: with_field("contour", "plan", None),
    "a plan of text": lambda: with_field("contour", "plan", "__import__('os').system('true')"),
    "a kind of tables": lambda: with_field("contour", "plan", {"kind": {"kind": "PureLoss"}}),
    "a scale of text": lambda: changed("contour",
        lambda it: it["plan"]["parts"][0]["part"].update(scale="20")),
    **{f"without {name}": functools.partial(without, name) for name in FIELDS},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_with_one_line_and_status_2(name, tmp_path, capsys):
    path = tmp_path / "cost.proof.json"
    path.write_bytes(HOSTILE[name]())
    assert main(["verify", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dp-attest account: proof must be ")
    assert err.count("\n") == 1
    assert len(err) < 500


CODE = """
import sys, time
from accountant.verifier import verdict, verify, ProofError
verdict.BUDGET /= 10  # of a minute six seconds are left: what it takes grows with it
for name in sys.argv[1:]:
    start = time.process_time()
    with open(name, "rb") as file:
        try:
            print(name, verify(file.read(2**20 + 1)).word)
        except ProofError as error:
            print(name, "no proof")
    assert time.process_time() - start < 6, name
"""


def test_the_checker_keeps_its_limits_of_time_and_memory(tmp_path):
    """All of them in one process that may use 60 s and 2 GB, each a tenth of its minute."""
    names = []
    for made in HOSTILE.values():
        (path := tmp_path / f"{len(names)}.json").write_bytes(made())
        names.append(str(path))
    with open(tmp_path / "sparse.json", "wb") as file:
        file.truncate(100_000_000)
    names.append(str(tmp_path / "sparse.json"))
    done = subprocess.run(
        [sys.executable, "-c", CODE, *names], capture_output=True, text=True, check=False,
        preexec_fn=limited,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("no proof") == len(names)


LINE = {"a": 8.0, "b": 0.0, "h": 0.001, "smooth": 0.0}
REAL = {name: value.hex() for name, value in LINE.items()}
PAIR = {"kind": "PairLoss", "p": [0.5, 0.25, 0.25], "q": [0.25, 0.5, 0.25]}
MANY = [{"kind": "PairLoss", "p": [2.0**-12] * 4096, "q": [2.0**-12] * 4096}] * 3
FINE = {"a": 8.0, "h": 2.0**-17, "slack": 2.0**-30}
FINE = {name: value.hex() for name, value in FINE.items()}
RULE = {"first": (-0.5).hex(), "step": (2.0**-16).hex(), "count": 10**5}
EPOCH = {"first": 1.0, "a": 1.0, "h": 2.0**-10, "y": 0.5, "step": 0.01, "turn": 0.5}
EPOCH = {name: value.hex() for name, value in EPOCH.items()} | {
    "nodes": 2**17, "length": 2**18, "count": 2**17,
}  # fmt: skip
# within each limit alone: a part of the plan, its count, and the road
HEAVY = {
    "sums of pairs": (PAIR, 100_000, {"road": "enumeration"}),
    "a product of outcomes": (
        {"kind": "PoissonSampled", "rate": 0.5, "part": {"kind": "Sequential", "parts": MANY}},
        1, {"road": "enumeration"},
    ),
    "half a million nodes": (
        {"kind": "LaplaceLoss", "shift": 0.5}, 1000,
        {"road": "contour", "nodes": 2**19, "bits": 4096, "rules": [], **REAL},
    ),
    "entries many times": (
        {"kind": "GaussianLoss", "mu": 0.5}, 1000,
        {"road": "contour", "nodes": 2**17, "bits": 2048, "rules": [], **REAL},
    ),
    "a fine lattice": (
        {"kind": "LaplaceLoss", "shift": 0.5}, 1000,
        {"road": "lattice", "bits": 4096, "rules": [RULE], "size": 2**18, **FINE},
    ),
    "a lattice of few digits": (
        {"kind": "LaplaceLoss", "shift": 0.5}, 10**12,
        {"road": "lattice", "bits": 64, "rules": [RULE], "size": 2**18, **FINE},
    ),
    "a coarse lattice": (
        {"kind": "GaussianLoss", "mu": 0.5}, 10**15,
        {"road": "lattice", "bits": 4096, "rules": [RULE], "size": 2, **FINE},
    ),
    "a far order": (
        {"kind": "LaplaceLoss", "shift": 0.5}, 1000,
        {"road": "lattice", "bits": 128, "rules": [RULE], "size": 2**12, **FINE, "a": (1e9).hex()},
    ),
    "too many rules": (
        {"kind": "LaplaceLoss", "shift": 0.5}, 10,
        {"road": "lattice", "bits": 128, "rules": [RULE] * 9000, "size": 2**12, **FINE},
    ),
    "points of an epoch": (
        {"kind": "RandomAllocation", "part": {"kind": "GaussianLoss", "mu": 0.5}, "steps": 100}, 9,
        {"road": "lattice", "bits": 4096, "rules": [EPOCH], "size": 2**18, **FINE},
    ),
    "discrete Gaussians": (
        {"kind": "DiscreteGaussian", "scale": 50.0}, 70, {"road": "enumeration", "bits": 4096},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEAVY)
def test_a_heavy_file_is_refused_in_time(name, tmp_path):
    """The product of what is within its limits is limited too."""
    part, count, road = HEAVY[name]
    entry = {"way": 0, "direction": "forward", "bits": 256, **road}
    claim = content("contour") | {
        "plan": {"kind": "Repeat", "part": part, "count": count},
        "above": [entry] * 128, "below": None, "lower": (0.0).hex(),
    }  # fmt: skip
    (tmp_path / "heavy.json").write_bytes(document(claim))
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "heavy.json")], capture_output=True, text=True,
        check=False, preexec_fn=limited,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith(("no proof\n", "NOT PROVED\n"))


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (2 * GIGABYTE, 2 * GIGABYTE))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def test_a_large_file_and_no_file_are_refused(tmp_path, capsys):
    path = tmp_path / "cost.proof.json"
    with open(path, "wb") as file:
        file.truncate(100_000_000)
    for name in (str(path), str(tmp_path), str(tmp_path / "none"), "/dev/zero", "\0"):
        assert main(["verify", name]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def places(value, at=()):
    """Every place in a document, from the top."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, list) else ()  # fmt: skip
    for key, one in inner:
        yield from places(one, (*at, key))


ONE = (1.0).hex()
WRONG = (
    None, True, False, -1, 0, 1, 0.5, 10**9, 10**30, 1e300, "", "nan", "0x1.0p+0", ONE, [], {},
    [[]], {"kind": "PureLoss"}, "reversed", "closed form", "\u0661",
)  # fmt: skip


def coarse(whole):
    """The same file with short lattices: it proves less, and is read as any other."""
    for entry in [*whole["above"], whole["below"]]:
        if entry["road"] == "lattice":
            entry["h"], entry["size"] = (0.05).hex(), 256
            for rule in entry["rules"]:
                span = float.fromhex(rule["step"]) * rule["count"]
                rule["count"], rule["step"] = 40, (span / 40).hex()
    return whole


def refuses_or_judges(raw):
    with contextlib.suppress(ProofError):
        verify(raw)


@pytest.mark.parametrize("road", PLANS)
def test_a_wrong_value_anywhere_is_a_verdict_or_no_proof(road):
    """Whatever stands in a field, the checker raises nothing else."""
    whole = coarse(content(road))
    dear = road in ("allocation", "sampled Gaussians")
    for k, place in enumerate(places(whole)):
        if place and (k % 3 == 0 or not dear):
            replace_at(whole, place, WRONG[k % len(WRONG)])


@pytest.mark.slow
@pytest.mark.parametrize("road", PLANS)
def test_every_wrong_value_anywhere_is_a_verdict_or_no_proof(road):
    whole = coarse(content(road))
    for place in places(whole):
        for value in WRONG if place else ():
            replace_at(whole, place, value)


def replace_at(whole, place, value):
    other = copy.deepcopy(whole)
    holder = other
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    refuses_or_judges(document(other))
