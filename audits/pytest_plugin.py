"""The pytest plugin: ``@pytest.mark.dp(epsilon=1)`` and the fixture ``audit``.

A marked test returns a release or an algorithm, which the plugin audits; the fixture is a function
that audits.  A test fails if the audit falsifies the claim.  An audit of a true claim fails with a
small probability too; the audits of a session share `FLAKE_RATE` for that, and each test has a
fixed seed.  How a test is written: ``docs/testing.md``.

Every pytest run of every user loads this file, so it imports only what pytest has loaded.  The file
has no bare assert, and so it says PYTEST_DONT_REWRITE: otherwise pytest would warn if the file was
imported before.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import math
import shlex
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from audits.claims.claims import ClaimLike
    from audits.claims.findings import Finding
    from audits.pytest_support.failures import Trial

# The largest probability that any true claim of a whole session fails.  A larger one would let
# false claims fail with fewer runs, and true ones fail more often.
FLAKE_RATE = 1e-6
RUNS = 200_000  # runs of an audit of a release, unless the test or the option says how many
MARKER_HELP = (
    "dp(epsilon, delta=0.0, claim=None, runs=None): the test returns a release or an algorithm "
    "to audit, with epsilon or a claim"
)
AUDIT_COUNT_KEY = pytest.StashKey[int]()  # of a session: how many audits share the flake rate
AUDITED_KEY = pytest.StashKey[bool]()  # of a test: whether its audit ran


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--dp-seed``, ``--dp-runs``, ``--dp-audits`` and ``--dp-strict``."""
    group = parser.getgroup("dp", "audits of differential privacy")
    group.addoption(
        "--dp-seed", type=int, default=0, metavar="S", help="Seed of every audit (default 0)."
    )
    group.addoption(
        "--dp-runs",
        type=int,
        default=RUNS,
        metavar="N",
        help=f"Runs of an audit that sets none (default {RUNS}); an algorithm runs once per 1000.",
    )
    group.addoption(
        "--dp-audits",
        type=int,
        default=None,
        metavar="N",
        help=f"Tests that share the flake rate of {FLAKE_RATE:g} (default: those collected). "
        "If the session is split, give the number over all parts.",
    )
    group.addoption(
        "--dp-strict",
        action="store_true",
        help="Fail where runs are too few to see half the noise.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and check the options."""
    config.addinivalue_line("markers", MARKER_HELP)
    for name, minimum in (("--dp-seed", 0), ("--dp-runs", 10)):
        if config.getoption(name) < minimum:
            raise pytest.UsageError(f"{name} must be a whole number of at least {minimum}")


@pytest.hookimpl(tryfirst=True)  # before the terminal reports the count
def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the audits that share the flake rate: each worker of a parallel run sees them all."""
    collected = sum(map(_has_mark, session.items)) + sum(map(_uses_fixture, session.items))
    declared_count = session.config.getoption("--dp-audits")
    if declared_count is not None and declared_count < collected:
        raise pytest.UsageError(f"--dp-audits must be at least {collected}, the audits collected")
    session.config.stash[AUDIT_COUNT_KEY] = collected if declared_count is None else declared_count


def pytest_report_collectionfinish(config: pytest.Config) -> str | list[str]:
    """Report the session's flake rate if it has audits."""
    audits = config.stash.get(AUDIT_COUNT_KEY, 0)
    if not audits:
        return []
    seed, runs = config.getoption("--dp-seed"), config.getoption("--dp-runs")
    share = f"{audits} audit{'s share' if audits > 1 else ' has'} a flake rate of {FLAKE_RATE:g}"
    return f"dp: {share}, {runs:,} runs each, seed {seed}"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Audit the return value of a marked test; pytest itself sees that it returns None."""
    __tracebackhide__ = True
    mark, body, returned = pyfuncitem.get_closest_marker("dp"), pyfuncitem.obj, []
    if mark is None or inspect.iscoroutinefunction(body):
        return (yield)
    terms = _mark_arguments(mark)

    @functools.wraps(body)
    def recorded_body(**arguments: Any) -> None:
        __tracebackhide__ = True
        returned.append(body(**arguments))

    pyfuncitem.obj = recorded_body
    try:
        result = yield
    finally:
        pyfuncitem.obj = body
    if not returned:
        return result
    from audits.pytest_support.assertions import assert_returned
    from audits.pytest_support.failures import ClaimFailed

    pyfuncitem.stash[AUDITED_KEY] = True
    try:
        finding = assert_returned(returned[0], trial=_trial(pyfuncitem, 0), **terms)
    except ClaimFailed as failed:
        failed.pytrace = False  # the message is complete; no line of the test is at fault
        raise
    note_survivor(pyfuncitem, finding)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a marked test that ran no audit, rather than let it pass."""
    __tracebackhide__ = True
    result = yield
    if _has_mark(item) and not item.stash.get(AUDITED_KEY, False):
        pytest.fail(
            "no audit ran: the mark dp works on plain test functions and methods, not on async "
            "tests or unittest.TestCase; call audits.assert_private there",
            pytrace=False,
        )
    return result


@pytest.fixture
def audit(request: pytest.FixtureRequest) -> Callable[..., Finding]:
    """Assert a privacy claim: ``finding = audit(release, pair, claim=1.0)``.

    ``release`` is a declared mechanism (pair and claim follow from it) or a function as
    `audits.audit` takes it.  The test fails if the claim is falsified; all calls of all tests
    of a session fail an honest claim with probability at most 1e-6.
    """
    item, calls = request.node, itertools.count(1)

    def audited(
        release: Any,
        pair: tuple[Any, Any] | None = None,
        claim: ClaimLike | None = None,
        *,
        delta: float | None = None,
        runs: int | None = None,
    ) -> Finding:
        __tracebackhide__ = True
        from audits.pytest_support.assertions import assert_release

        finding = assert_release(release, pair, claim, delta, runs, _trial(item, next(calls)))
        note_survivor(item, finding)
        return finding

    if not _uses_fixture(item):
        remedy = "make the fixture audit an argument of the test: only then is it counted"
        pytest.fail(f"{remedy} in the flake rate", pytrace=False)
    return audited


def note_survivor(item: pytest.Item, finding: Finding | None) -> None:
    """Add what an audit found to the test's report: the summary, JUnit and xdist read it there.

    An algorithm that was replayed has no finding.
    """
    outcome = "SURVIVED" if finding is None else finding.outcome.name
    needed_runs = None if finding is None else finding.needed_runs
    kinds = [] if finding is None else [reason.kind for reason in finding.not_tested]
    facts = {"dp.outcome": outcome, "dp.needed_runs": needed_runs, "dp.not_tested": kinds}
    item.user_properties += [
        (name, ", ".join(fact) if isinstance(fact, list) else fact)
        for name, fact in facts.items()
        if fact
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line on the audits that falsified nothing: what would decide, what was not tested."""
    facts = [
        fact
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for fact in report.user_properties
    ]
    outcomes = [value for name, value in facts if name == "dp.outcome"]
    if not outcomes:
        return
    weak = outcomes.count("INCONCLUSIVE")
    line = f"dp: {len(outcomes) - weak} audit{'s' * (len(outcomes) - weak != 1)} survived"
    if weak:
        needed_runs = [value for name, value in facts if name == "dp.needed_runs"]
        decided = "" if len(needed_runs) == weak else f" {len(needed_runs)} of them"
        remedy = (
            f"runs={max(needed_runs)} would decide{decided}"
            if needed_runs
            else "no number of runs would"
        )
        line += f", {weak} inconclusive ({remedy})"
    kinds = dict.fromkeys(
        kind for name, value in facts if name == "dp.not_tested" for kind in value.split(", ")
    )
    line += f"; not tested: {', '.join(kinds)}" if kinds else ""
    terminalreporter.write_line(line)


def flake_rate(audits: int, call: int = 0) -> float:
    """The false-alarm rate of a test, or of its k-th call: a share of the session's rate.

    The mark (call 0) uses a whole share; the calls of the fixture use 6 / (pi k)^2 of one, which
    sums to one for any number of calls.
    """
    share = FLAKE_RATE / audits
    return share if call == 0 else share * 6 / (math.pi * call) ** 2


def confidence_of(rate: float) -> float:
    """The least float of which ``1 - confidence`` is at most ``rate``."""
    confidence = 1 - rate
    if 1 - confidence > rate:
        confidence = math.nextafter(confidence, 1.0)
    if confidence == 1:
        pytest.fail(
            f"a flake rate of {rate:.2g} is below float precision: use fewer audits per test"
        )
    return confidence


def seed_of(seed: int, test: str, call: int) -> int:
    """The seed of an audit: a function of its test's node id and its place in the test only."""
    call_id = f"{seed} {test} {call}".encode()
    return int.from_bytes(hashlib.sha256(call_id).digest()[:6], "big")


def _trial(item: pytest.Item, call: int) -> Trial:
    """Return the runs, the confidence, the seed and the command line of a test's audit."""
    __tracebackhide__ = True
    from audits.pytest_support.failures import Trial
    from audits.pytest_support.progress import Screen

    config = item.config
    audits, seed = config.stash[AUDIT_COUNT_KEY], config.getoption("--dp-seed")
    strict = config.getoption("--dp-strict")
    runs, path, here = config.getoption("--dp-runs"), item.path, config.invocation_params.dir
    path = path.relative_to(here) if path.is_relative_to(here) else path
    test = "::".join([str(path), *item.nodeid.split("::")[1:]])
    return Trial(
        runs,
        confidence_of(flake_rate(audits, call)),
        seed_of(seed, item.nodeid, call),
        f"python -m pytest {shlex.quote(test)} "
        f"--dp-seed {seed} --dp-runs {runs} --dp-audits {audits}{' --dp-strict' * strict}",
        strict,
        Screen(config),
    )


def _mark_arguments(mark: pytest.Mark) -> dict[str, Any]:
    """Return the arguments of a mark with their defaults; fail a test whose mark is wrong."""
    names = mark.kwargs.keys() - {"runs"}
    by_epsilon = "epsilon" in names and names <= {"epsilon", "delta"}
    by_claim = names == {"claim"} and mark.kwargs["claim"] is not None
    if mark.args or not (by_epsilon or by_claim):
        argument_texts = [
            *map(repr, mark.args),
            *(f"{name}={value!r}" for name, value in mark.kwargs.items()),
        ]
        pytest.fail(
            "the mark dp takes epsilon and delta=0.0, or claim, and runs=None, by name, not "
            f"({', '.join(argument_texts)})",
            pytrace=False,
        )
    return {"epsilon": 0.0, "delta": 0.0, "runs": None, **mark.kwargs}


def _has_mark(item: pytest.Item) -> bool:
    return item.get_closest_marker("dp") is not None


def _uses_fixture(item: pytest.Item) -> bool:
    return "audit" in getattr(item, "fixturenames", ())
