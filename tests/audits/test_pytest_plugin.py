"""The pytest plugin: what passes, what fails and how it reads, the flake rate, the start-up."""

import dataclasses
import inspect
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accountant import GaussianLoss, ZCDPLoss
from audits.claims.findings import Outcome
from audits.pytest_plugin import FLAKE_RATE, confidence_of, flake_rate, seed_of
from audits.pytest_support import assertions
from audits.pytest_support.assertions import assert_release, assert_returned
from audits.pytest_support.failures import ClaimFailed, Trial
from mechanisms import Gaussian, Laplace, RandomizedResponse
from tests.processor_time import standard

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
INI = """
[pytest]
addopts = -p audits.pytest_plugin --strict-markers --strict-config -p no:cacheprovider
filterwarnings = error
"""
HEADER = """
import numpy as np
import pytest
from accountant import GaussianLoss, PureLoss
from mechanisms import Gaussian, Laplace

def honest(value, rng, size):
    return value + rng.laplace(size=size)

def half(value, rng, size):
    return value + rng.laplace(scale=0.5, size=size)

def boom(value, rng, size):
    raise RuntimeError("sampled")

PAIR = (0.0, 1.0)
RECORDS, CHANGED = np.linspace(0.0, 1.0, 20), np.append(np.linspace(0.0, 1.0, 20)[:-1], 0.0)

"""
RECORDS, CHANGED = np.linspace(0.0, 1.0, 20), np.append(np.linspace(0.0, 1.0, 20)[:-1], 0.0)


class Sum:
    """The noisy sum of records in [0, 1]: honest."""

    def plan(self, shape):
        return 1 * Laplace(scale=1.0)

    def run(self, ledger):
        return float(ledger.release(ledger.plan.part, np.sum))


class Peek(Sum):
    """Adds a billionth of the data, past the gate."""

    def run(self, ledger):
        return super().run(ledger) + 1e-9 * float(ledger._data.sum())


class HalfTheSensitivity(Sum):
    """Doubles the records that it sums."""

    def run(self, ledger):
        return float(ledger.release(ledger.plan.part, lambda data: 2 * data.sum()))


HEADER += "\n".join(map(inspect.getsource, (Sum, Peek, HalfTheSensitivity)))


@pytest.fixture(scope="module")
def warm():
    """Load what audits load: a session inside this one would load it again, which numpy refuses."""
    trial = Trial(20_000, 1 - 1e-6, 1, "")
    for one in (Laplace(scale=1.0), Gaussian(scale=4.0)):
        assert_returned(one, 1.0, 1e-5, None, trial)
        assert_returned((one.release, (0.0, 1.0), one.loss), 1.0, 1e-5, None, trial)
    assert_returned((Sum(), RECORDS, CHANGED), 1.0, 0.0, None, trial)


@pytest.fixture
def session(pytester, monkeypatch, warm):
    """Run a file of tests with the plugin; returns pytest's result."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makefile(".ini", pytest=INI)

    def run(body, *options, conftest=""):
        pytester.makeconftest(conftest)
        pytester.makepyfile(test_inner=HEADER + "\n" + inspect.cleandoc(body))
        return pytester.runpytest_inprocess("-q", *options)

    return run


def said(result):
    return "\n".join(result.outlines)


# What passes


GAUSSIAN_PROGRAM = """
import json, random, sys
for line in sys.stdin:
    value, runs, seed = json.loads(line).values()
    random.seed(seed)
    outputs = [value + random.gauss(0, float(sys.argv[1])) for run in range(runs)]
    print(json.dumps({"outputs": outputs}), flush=True)
"""


def test_programs_in_other_languages_are_audited_too(session, pytester):
    pytester.path.joinpath("noisy.py").write_text(GAUSSIAN_PROGRAM)
    done = session(
        """
        import sys
        from audits import Command

        @pytest.mark.dp(epsilon=1, delta=1e-5, runs=20_000)
        def test_honest():
            return Command([sys.executable, "noisy.py", "4"]), (0, 1)

        def test_half(audit):
            with Command([sys.executable, "noisy.py", "0.5"]) as release:
                audit(release, (0, 1), claim=(1.0, 1e-5), runs=4000)
        """
    )
    done.assert_outcomes(passed=1, failed=1)
    assert re.search(r"FALSIFIED: \S*python\S* noisy.py 0.5", said(done))
    assert "dp: 0 audits survived, 1 inconclusive" in said(done)


def test_every_shape_passes_where_it_is_honest(session):
    done = session(
        """
        @pytest.mark.dp(epsilon=1)
        def test_mechanism():
            return Laplace(scale=1.0)

        @pytest.mark.dp(epsilon=1, delta=0)
        def test_a_claim_weaker_than_the_mark():
            return Laplace(scale=3.0)

        @pytest.mark.dp(epsilon=1, delta=1e-5)
        def test_gaussian():
            return Gaussian(scale=4.0)

        @pytest.mark.parametrize("scale", [1.0, 2.0])
        @pytest.mark.dp(epsilon=1, runs=20_000)
        def test_function(scale):
            return (lambda value, rng: value + rng.laplace(scale=scale)), PAIR

        @pytest.mark.dp(epsilon=1)
        class TestMany:
            def test_function_and_claim(self):
                return honest, PAIR, PureLoss(1.0)

            def test_algorithm(self):
                return Sum(), RECORDS, CHANGED

            def test_public(self, tmp_path):
                return Sum(), RECORDS, CHANGED, RECORDS

        @pytest.mark.dp(epsilon=1)
        @pytest.mark.dp(epsilon=0.1)
        def test_the_nearest_mark_counts():
            return Laplace(scale=10.0)

        def test_unmarked():
            pass
        """,
        "-v",
    )
    done.assert_outcomes(passed=10)
    assert "dp: 9 audits share a flake rate of 1e-06, 200,000 runs each, seed 0" in said(done)


def test_a_mark_and_a_test_take_every_form_of_a_claim(session):
    done = session(
        """
        from accountant import Budget

        def counted(value, rng, size):
            return len(value) + rng.laplace(size=size)

        @pytest.mark.dp(claim=1.0)
        def test_number():
            return honest, PAIR

        @pytest.mark.dp(claim=(1.0, 1e-5), runs=5_000)
        def test_two_numbers():
            return counted, ([1.0, 2.0], [1.0]), (1.0, 1e-6)

        @pytest.mark.dp(claim=Budget(1.0), runs=5_000)
        def test_budget():
            return honest, PAIR, Budget(1.0)

        @pytest.mark.dp(claim=GaussianLoss(0.5))
        def test_curve():
            return Gaussian(scale=2.0)

        @pytest.mark.dp(claim=GaussianLoss(0.5))
        def test_curve_of_a_function():
            return (lambda value, rng, size: value + rng.normal(scale=2, size=size)), PAIR

        @pytest.mark.dp(claim=1.0, runs=5_000)
        def test_algorithm():
            return Sum(), RECORDS, CHANGED

        def test_fixture(audit):
            for claim in (1.0, (1.0, 1e-5), Budget(1.0)):
                audit(honest, PAIR, claim, runs=5_000)

        @pytest.mark.dp(claim=GaussianLoss(0.49))
        def test_overclaimed():
            return Gaussian(scale=2.0)

        @pytest.mark.dp(claim=0.5)
        def test_falsified():
            return counted, (["Alice", RECORDS], ["Alice"])
        """
    )
    done.assert_outcomes(passed=7, failed=2)
    assert "OVERCLAIMED: Gaussian(scale=2.0" in said(done)
    assert "  pair    a list of length 2 against a list of length 1; the same in" in said(done)
    assert "Alice" not in said(done)


def test_a_test_that_expects_a_violation_has_none_if_the_audit_is_inconclusive(
    session, monkeypatch
):
    found = assertions.audit(Laplace(1.0), runs=20_000, rng=1)
    undecided = dataclasses.replace(
        found, outcome=Outcome.INCONCLUSIVE, unseen=("output[1]: Handle",)
    )
    monkeypatch.setattr(assertions, "audit", lambda *given: undecided)
    done = session(
        """
        @pytest.mark.xfail(raises=AssertionError, strict=True)
        @pytest.mark.dp(epsilon=1)
        def test_undecided():
            return honest, PAIR
        """
    )
    done.assert_outcomes(failed=1)
    assert "the audit cannot look into output[1]: Handle" in said(done)


def test_nothing_is_said_where_nothing_is_audited(session):
    done = session("def test_plain(): pass", "-v")
    done.assert_outcomes(passed=1)
    assert "dp:" not in said(done)


def test_the_marker_is_listed(session):
    done = session("", "--markers")
    done.stdout.fnmatch_lines(
        ["@pytest.mark.dp(epsilon, delta=0.0, claim=None, runs=None): the test returns*"]
    )


def test_the_fixture_returns_the_finding(session):
    done = session(
        """
        def test_fixture(audit):
            first = audit(honest, PAIR, PureLoss(1.0), runs=50_000)
            again = audit(honest, PAIR, claim=PureLoss(1.0), runs=50_000)
            own = audit(Laplace(scale=2.0), runs=50_000)
            weaker = audit(Laplace(scale=2.0), claim=PureLoss(1.0), runs=50_000)
            at = audit(Gaussian(scale=4.0), delta=1e-4, runs=50_000)
            assert 0.8 < first.epsilon_lower < 1.0
            assert first.runs == 50_000
            assert first.seed != again.seed
            assert own.claim == weaker.claim == Laplace(scale=2.0).loss
            assert at.delta == 1e-4
            share = 1e-6 * 6 / np.pi**2
            assert 1 - first.confidence == pytest.approx(share)
            assert 1 - weaker.confidence == pytest.approx(share / 16)
        """
    )
    done.assert_outcomes(passed=1)


# What fails, and how it reads

FALSE = """
@pytest.mark.dp(epsilon=1)
def test_function(): return half, PAIR

@pytest.mark.dp(epsilon=9, delta=1e-5)
def test_given():
    return (lambda value, rng, size: rng.normal(value, size=size)), PAIR, GaussianLoss(0.5)

@pytest.mark.dp(epsilon=1)
def test_leak(): return Peek(), RECORDS, CHANGED

@pytest.mark.dp(epsilon=1)
def test_losses(): return HalfTheSensitivity(), RECORDS, CHANGED

@pytest.mark.dp(epsilon=3)
def test_sampler(monkeypatch):
    monkeypatch.setattr(Laplace, "release", lambda self, *arguments: half(*arguments))
    return Laplace(scale=1.0)

@pytest.mark.dp(epsilon=0.5)
def test_overclaimed(monkeypatch):
    monkeypatch.setattr(Laplace, "release", boom)
    return Laplace(scale=1.0)

@pytest.mark.dp(epsilon=1)
def test_gaussian_is_not_pure(): return Gaussian(scale=100.0)

@pytest.mark.dp(epsilon=1)
def test_given_overclaimed(): return boom, PAIR, PureLoss(1.1)

@pytest.mark.dp(epsilon=0.9)
def test_plan_overclaimed(): return Peek(), RECORDS, CHANGED

def test_fixture(audit):
    audit(honest, PAIR, PureLoss(1.0))
    audit(half, PAIR, PureLoss(1.0))

def test_fixture_overclaimed(audit):
    audit(Laplace(scale=1.0), claim=PureLoss(0.5))
"""


FACT = re.compile("  (event  |counts |bound  |claim  |seed   ) ")


def blocks(text):
    """The report of each failed test, by its name."""
    parts = (
        text.partition("= FAILURES =")[2].partition("short test summary")[0].split("\n_____")[1:]
    )
    return {part.strip("_ ").split()[0]: part for part in parts}


def test_failures_say_what_was_seen_and_how_to_see_it_again(session):
    done = session(FALSE)
    done.assert_outcomes(failed=11)
    found = blocks(said(done))
    for name, block in found.items():
        words = ["claim   epsilon <= ", "seed    ", f"test_inner.py::{name} --dp-seed 0"]
        assert all(word in block for word in words), block
        assert "asserting.py" not in block
        assert "failing.py" not in block
        assert "pytest_plugin.py" not in block
    for name in ("test_function", "test_given", "test_leak", "test_losses", "test_sampler"):
        assert "\nFALSIFIED: " in found[name]
        assert all(word in found[name] for word in ("  event   ", "  counts  ", "  bound   "))
    bound = "bound   epsilon >= 1.9"
    assert bound in found["test_function"]
    assert "wrong with chance 9.1e-08 at most" in found["test_function"]
    assert "claims" not in found["test_function"]
    assert "the claim allows 73.11%) in " in found["test_function"]
    assert "claim   epsilon <= 1 at delta = 0, claimed by the test" in found["test_function"]
    assert "returned by the test" in found["test_given"]
    assert "the result changed although every answer was the same" in found["test_leak"]
    assert "one run lost 2, the claim allows 1" in found["test_losses"]
    assert "as declared" in found["test_sampler"]
    # the call of the fixture that failed is shown, with its line
    assert ">       audit(half, PAIR, PureLoss(1.0))" not in found["test_function"]
    assert ">   " in found["test_fixture"]
    assert "audit(half, PAIR, PureLoss(1.0))" in found["test_fixture"]
    assert "FALSIFIED: half" in found["test_fixture"]


@pytest.mark.parametrize("claim", [GaussianLoss(0.3), ZCDPLoss(0.045)])
def test_a_claim_of_a_whole_curve_is_compared_at_all_of_its_points(claim):
    trial = Trial(2000, 1 - 1e-6, 1, "")
    # At delta = 1e-5, where these claims have 1.13 and more, the mechanism costs 1.
    with pytest.raises(ClaimFailed, match="OVERCLAIMED"):
        assert_release(Laplace(1.0), None, claim, None, 2000, trial)
    with pytest.raises(ClaimFailed, match="OVERCLAIMED"):
        assert_returned((Sum(), RECORDS, CHANGED), 1.0, 0.0, None, trial, claim)


def test_what_the_accountant_refutes_is_not_sampled(session):
    done = session(FALSE, "-k", "overclaimed or pure")
    done.assert_outcomes(failed=5, deselected=6)
    found = blocks(said(done))
    for block in found.values():
        assert "OVERCLAIMED: " in block
        assert "computed, no runs" in block
        assert "RuntimeError" not in block
    assert "cost    epsilon = 1 at delta = 0, by the accountant" in found["test_overclaimed"]
    assert "claim   epsilon <= 0.5 at delta = 0" in found["test_overclaimed"]
    assert "epsilon = inf" in found["test_gaussian_is_not_pure"]
    assert "the claim PureLoss(epsilon=1.1)" in found["test_given_overclaimed"]
    assert "the plan of Peek" in found["test_plan_overclaimed"]


@pytest.mark.parametrize(
    "names",
    [("test_function", "test_losses", "test_fixture"), pytest.param((), marks=pytest.mark.slow)],
    ids=["in this process", "as it would be pasted"],
)
def test_the_line_to_repeat_repeats_it(names, session, pytester):
    chosen = "test_function or test_losses or test_fixture"
    done = session(FALSE, "--dp-seed", "3", "--dp-runs", "20000", "-k", chosen)
    for name in names or ["test_function"]:
        block = blocks(said(done))[name]
        line = next(one for one in block.splitlines() if "  repeat  " in one).partition("repeat")[2]
        command, words = shlex.split(line)[:3], shlex.split(line)[3:]
        assert command == ["python", "-m", "pytest"]
        if not names:
            again = subprocess.run(
                [sys.executable, *command[1:], *words], capture_output=True, text=True, check=False
            )
            assert again.returncode == 1
            text = again.stdout
        else:
            text = said(pytester.runpytest_inprocess(*words))
        facts = [one for one in block.splitlines() if FACT.search(one)]
        assert len(facts) == 5
        assert all(fact in text for fact in facts)


def test_expected_failures_are_xfail(session):
    done = session(
        """
        @pytest.mark.xfail(raises=AssertionError, strict=True)
        @pytest.mark.dp(epsilon=1)
        def test_broken(): return half, PAIR

        @pytest.mark.xfail(strict=True)
        def test_broken_too(audit): audit(half, PAIR, PureLoss(1.0))

        @pytest.mark.xfail(strict=True)
        @pytest.mark.dp(epsilon=1)
        def test_honest(): return honest, PAIR

        @pytest.mark.xfail(raises=AssertionError)
        @pytest.mark.dp(epsilon=1)
        def test_misused(): return 1.0

        def test_caught(audit):
            with pytest.raises(AssertionError, match="FALSIFIED: half"):
                audit(half, PAIR, PureLoss(1.0))

        @pytest.mark.dp(epsilon=1)
        def test_skipped(): pytest.skip("not today")
        """
    )
    done.assert_outcomes(xfailed=2, failed=2, passed=1, skipped=1)
    assert "[XPASS(strict)]" in said(done)


# What is refused

SHAPE = "a test marked dp must return a declared mechanism"
REFUSED = {
    "pass": f"{SHAPE}; (release, pair); *This one returned None",
    "return 1.0": "*This one returned float",
    "return Laplace": "*This one returned the class Laplace, not an instance",
    "return Laplace, PAIR": "*returned (the class Laplace, not an instance, (float, float))",
    "return honest": "*This one returned function",
    "return ()": "*This one returned ()",
    "return honest, PAIR, PureLoss(1.0), 4": "*returned (function, (float, float), PureLoss, int)",
    "return honest, PAIR, 1j": "claim must be a loss such as PureLoss(1.0), a number *",
    "return Peek(), RECORDS": "*This one returned (Peek, ndarray)",
    "return Peek, RECORDS, CHANGED": "*the class Peek, not an instance*",
    "return honest, (0.0,)": "*pair must be two neighbouring values*",
    "return honest, (RECORDS, RECORDS.copy())": "*pair must be two values that differ*",
}


def test_other_shapes_are_refused_in_words(session):
    tests = [
        f"@pytest.mark.dp(epsilon=1)\ndef test_{i}():\n    {body}\n"
        for i, body in enumerate(REFUSED)
    ]
    done = session("\n".join(tests))
    done.assert_outcomes(failed=len(REFUSED))
    done.stdout.fnmatch_lines([f"*{words.lstrip('*')}" for words in map(escaped, REFUSED.values())])


def escaped(words):
    return words.replace("[", "[[]")


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("dp", "*by name, not ()"),
        ("dp(1)", "*by name, not (1)"),
        ("dp(epsilon=1, rho=2)", "*by name, not (*rho=2)"),
        ("dp(epsilon=float('nan'))", "epsilon must be a number in *, got nan"),
        ("dp(epsilon=-1)", "epsilon must be a number in *, got -1"),
        ("dp(epsilon=True)", "epsilon must be a number in *, got True"),
        ("dp(epsilon=float('inf'))", "epsilon must be a number in *, got inf"),
        ("dp(epsilon=1, delta=1.0)", "delta must be a number in *, got 1.0"),
        ("dp(epsilon=1, runs=5)", "runs must be a whole number from 10 *, got 5"),
        ("dp(epsilon=20)", "200,000 runs are too few: *epsilon = 20 *; use 13,107,200,000 *"),
    ],
)
def test_nonsense_claims_are_refused_in_words(session, mark, words):
    done = session(f"@pytest.mark.{mark}\ndef test_it(): return honest, PAIR")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([words])


def test_a_part_that_no_audit_sees_fails_the_test(session):
    done = session(
        """
        def test_it(audit):
            audit(lambda value, rng: (rng.laplace(), object()), PAIR, PureLoss(1.0), runs=2000)
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["the audit cannot look into output?1?: object, so nothing is known*"]
    )


def test_the_fixture_refuses_in_words(session):
    done = session(
        """
        def test_0(audit): audit(honest, PAIR)
        def test_1(audit): audit(3, PAIR, PureLoss(1.0))
        def test_2(audit): audit(Peek(), (RECORDS, CHANGED), PureLoss(1.0))
        def test_3(audit): audit(honest, PAIR, True)
        def test_4(audit): audit(honest, PAIR, PureLoss(1.0), runs=1)
        def test_5(audit): audit(honest, PAIR, PureLoss(1.0), delta=2)
        def test_6(request): request.getfixturevalue("audit")
        """
    )
    done.assert_outcomes(failed=7)
    done.stdout.fnmatch_lines(
        [
            "*audit of a function needs the claim that it makes, such as PureLoss(1.0)",
            "*audit takes a mechanism or a function of (value, rng), not int",
            "*audit takes a mechanism or a function of (value, rng), not Peek",
            "*claim must be a loss*, got True",
            "*runs must be a whole number*, got 1",
            "*delta must be a number*, got 2",
            "*make the fixture audit an argument*",
        ]
    )


def test_a_marked_test_that_nobody_audits_fails(session):
    asynchronous = """
    import asyncio, inspect, pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem):
        if inspect.iscoroutinefunction(pyfuncitem.obj):
            with asyncio.Runner() as runner:
                runner.run(pyfuncitem.obj())
            return True
    """
    done = session(
        """
        import unittest

        @pytest.mark.dp(epsilon=1)
        class TestCase(unittest.TestCase):
            def test_it(self): pass

        @pytest.mark.dp(epsilon=1)
        async def test_async(): pass
        """,
        conftest=asynchronous,
    )
    done.assert_outcomes(failed=2)
    assert said(done).count("no audit ran: the mark dp works on plain test functions") >= 2


def test_an_error_of_the_release_is_the_users_to_see(session):
    done = session(
        """
        @pytest.mark.dp(epsilon=1)
        def test_raises():
            raise OSError("no such table")
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*raise OSError(*", "E *OSError: no such table"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dp-seed", "-1"], "--dp-seed must be a whole number of at least 0"),
        (["--dp-runs", "9"], "--dp-runs must be a whole number of at least 10"),
        (["--dp-audits", "1"], "--dp-audits must be at least 2, the audits collected"),
        (["--dp-seed", "x"], "*invalid int value*"),
    ],
)
def test_options_that_are_none_are_refused(session, options, words):
    done = session(FALSE, "-k", "test_function or test_leak", *options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"*{words}*"])


# Seeds and the flake rate

SEEDS = """
import json

@pytest.mark.parametrize("i", [0, 1])
def test_seed(audit, i):
    one, two = (audit(honest, PAIR, PureLoss(1.0), runs=1000) for _ in range(2))
    with open("seen.json", "a") as file:
        print(json.dumps([i, one.seed, two.seed, one.epsilon_lower, two.epsilon_lower,
                          one.confidence]), file=file)
"""


def seen(session, pytester, *options):
    (pytester.path / "seen.json").unlink(missing_ok=True)
    left = int("-k" in options)
    session(SEEDS, *options).assert_outcomes(passed=2 - left, deselected=left)
    return [json.loads(line) for line in (pytester.path / "seen.json").read_text().splitlines()]


def test_seeds_are_those_of_the_node_and_nothing_else(session, pytester):
    first = seen(session, pytester)
    assert seen(session, pytester) == first
    other = seen(session, pytester, "--dp-seed", "1")
    seeds = [seed for row in first + other for seed in row[1:3]]
    assert len(set(seeds)) == 8
    # alone, as a worker or a repeat runs it, a test gives the same bits for the same share
    alone = seen(session, pytester, "-k", "test_seed and not 0", "--dp-audits", "2")
    assert alone == first[1:]


def test_seeds_are_wide_and_distinct():
    seeds = {seed_of(s, f"a.py::t[{i}]", k) for s in range(3) for i in range(100) for k in range(9)}
    assert len(seeds) == 2700
    assert max(seeds) < 2**48
    assert seed_of(0, "tests/a.py::test", 0) == 64_716_379_335_478  # seeds of old reports hold


def test_the_rates_of_a_session_sum_to_one_in_a_million():
    marks, fixtures, calls = 30, 12, 20_000
    tests = marks + fixtures
    spent = marks * flake_rate(tests) + fixtures * sum(
        flake_rate(tests, k) for k in range(1, calls + 1)
    )
    assert 0.999 * FLAKE_RATE < spent <= FLAKE_RATE
    assert flake_rate(7) == FLAKE_RATE / 7


@pytest.mark.parametrize("rate", [1e-6, 1e-6 / 7, 3e-9, 1.3e-13, 2.3e-16])
def test_the_confidence_never_grants_more_than_the_rate(rate):
    confidence = confidence_of(rate)
    assert rate - 2**-53 <= 1 - confidence <= rate


def test_a_rate_that_floats_do_not_hold_is_refused():
    with pytest.raises(pytest.fail.Exception, match="fewer audits per test"):
        confidence_of(1e-17)


def test_honest_claims_fail_at_the_stated_rate_and_no_more():
    # exactly at its claim: the most alarms an honest claim can give
    response, rate, repeats = RandomizedResponse(k=2, keep=math.e / (1 + math.e)), 0.2, 200
    alarms = 0
    for seed in range(repeats):
        trial = Trial(500, 1 - rate, seed, "")
        try:
            assert_returned(response, 1.0, 0.0, None, trial)
        except ClaimFailed:
            alarms += 1
    # above 4.9 standard errors with chance 1e-6 at most; an exact test wastes some of its rate
    assert 0.08 * repeats < alarms < (rate + 4.9 * math.sqrt(rate * (1 - rate) / repeats)) * repeats


def test_an_algorithm_runs_once_for_every_thousand(monkeypatch):
    import audits.pytest_support.assertions as home

    asked = []
    examine = home.audit_algorithm
    monkeypatch.setattr(
        home, "audit_algorithm", lambda *a, **k: asked.append(a[4]) or examine(*a, **k)
    )
    for runs in (10, 1000, 1001, 25_000):
        assert_returned((Sum(), RECORDS, CHANGED), 1.0, 0.0, runs, Trial(10, 1 - 1e-6, 1, ""))
    assert asked == [1, 1, 2, 25]


# Start-up

HEAVY = (
    "numpy",
    "scipy",
    "accountant",
    "mechanisms",
    "algorithms",
    "audits.pytest_support.assertions",
    "audits.pytest_support.failures",
    "sklearn",
)


def test_the_plugin_imports_nothing_that_pytest_has_not():
    code = """
import sys, time, pytest
before = set(sys.modules); start = time.process_time()
import audits.pytest_plugin
print(time.process_time() - start, *sorted(set(sys.modules) - before))
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    # lazy_loader is one small file, as are those of dp_attest: the package's names are its stub
    light = {"lazy_loader", "dp_attest", "dp_attest.installation", "dp_attest.public_names"}
    assert set(out[1:]) - light == {"audits", "audits.pytest_plugin"}
    assert standard(float(out[0])) < 0.5


def installed(folder):
    """A folder that makes the plugin installed, as the entry point of a wheel would."""
    info = folder / "dp_attest_twin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dp-attest-twin\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[pytest11]\naudits.pytest_plugin = audits.pytest_plugin\n"
    )
    (info / "RECORD").write_text("audits/__init__.py,,\naudits/pytest_plugin.py,,\n")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


@pytest.mark.parametrize("options", [(), ("-p", "audits.pytest_plugin")])
def test_installed_it_loads_itself_and_costs_nothing(tmp_path, options):
    (tmp_path / "test_light.py").write_text(
        f"import sys\ndef test_light(): assert not [m for m in {HEAVY} if m in sys.modules]\n"
        "def test_loaded(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.has_plugin('audits.pytest_plugin')\n"
        "    assert pytestconfig.getoption('--dp-runs') == 200_000\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "--strict-markers", *options]
    done = subprocess.run(
        command, cwd=tmp_path, env=installed(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


# The page


@pytest.mark.parametrize(("name", "tests"), [("testing.md", 4), ("how-to/audit-a-function.md", 2)])
def test_the_page_runs(name, tests, pytester, warm):
    page = (ROOT / "docs" / name).read_text()
    code = next(part for part in page.split("```python\n") if "import pytest" in part)
    code = code.partition("```")[0]
    assert code.count("def test_") >= tests
    pytester.makefile(".ini", pytest=INI)
    pytester.makepyfile(test_page=code)
    done = pytester.runpytest_inprocess("-q")
    outcomes = done.parseoutcomes()
    assert set(outcomes) == {"passed", "xfailed"}, said(done)
    assert outcomes["xfailed"] == 1


def test_no_traceback_of_a_refusal_shows_the_pair(session):
    result = session("""
        NAMES = ["a secret name"], ["another"]

        @pytest.mark.dp(epsilon=1)
        def test_raises():
            def release(value, rng, size):
                raise KeyError(value[0])
            return release, NAMES
    """)
    result.assert_outcomes(failed=1)
    assert "KeyError at" in result.stdout.str()
    assert "a secret name" not in result.stdout.str()


def test_a_strict_session_fails_where_half_the_noise_would_not_be_seen(session):
    body = """
        @pytest.mark.dp(epsilon=1, runs=500)
        def test_few():
            return honest, PAIR

        @pytest.mark.dp(epsilon=1, runs=1_000)
        def test_enough():
            return honest, PAIR
        """
    session(body).assert_outcomes(passed=2)
    done = session(body, "--dp-strict")
    done.assert_outcomes(passed=1, failed=1)
    assert "too few runs to see half of Laplace noise; 690 would (--dp-strict)" in said(done)


SURVIVORS = """
    @pytest.mark.dp(epsilon=1, runs=500)
    def test_few():
        return honest, PAIR

    @pytest.mark.dp(epsilon=1, runs=20_000)
    def test_enough():
        return honest, PAIR

    @pytest.mark.dp(epsilon=1, runs=20_000)
    def test_algorithm():
        return Sum(), RECORDS, CHANGED
    """


def test_a_line_at_the_end_counts_the_survivors(session):
    kinds = "; not tested: low bits, timing, other pairs, side effects"
    done = session(SURVIVORS)
    line = f"dp: 2 audits survived, 1 inconclusive (runs=710 would decide){kinds}"
    assert line in said(done)
    assert f"    {line}\n" in (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    done = session(SURVIVORS, "-k", "enough")
    assert f"dp: 1 audit survived{kinds}" in said(done)
    fixture = """
        def test_two(audit):
            audit(honest, PAIR, 1.0, runs=500)
            audit(honest, PAIR, 1.0, runs=600)
            audit(Laplace(scale=2.0), runs=20_000)
        """
    assert "dp: 1 audit survived, 2 inconclusive (runs=" in said(session(fixture))
    failing = "@pytest.mark.dp(epsilon=1)\ndef test_it(): return half, PAIR"
    assert "survived" not in said(session(failing))


def test_what_was_found_is_a_property_of_the_test(session, pytester):
    session(SURVIVORS, "-k", "few", "--junitxml=report.xml")
    shown = (pytester.path / "report.xml").read_text()
    for name, value in (
        ("outcome", "INCONCLUSIVE"),
        ("needed_runs", "660"),
        ("not_tested", "low bits, timing, other pairs, side effects"),
    ):
        assert f'<property name="dp.{name}" value="{value}"' in shown


def test_a_slow_release_says_how_long_it_takes(session, monkeypatch):
    monkeypatch.setattr("audits.pytest_support.progress.MIN_SECONDS_SAID", 0.0)
    done = session(
        """
        @pytest.mark.dp(epsilon=1, runs=2_000)
        def test_slow():
            return (lambda value, rng: value + rng.laplace()), PAIR
        """
    )
    done.assert_outcomes(passed=1)
    (line,) = (line for line in done.outlines if "for 2,000 runs" in line)
    assert re.fullmatch(r"dp: \S+ s for 2,000 runs; runs=660 would see epsilon >= 2 in \S+ s", line)
    assert "[#" not in said(done)  # there is no terminal
