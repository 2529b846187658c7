"""What tables of benches have on every machine: computed again, and the same wherever it stands."""

import re
from pathlib import Path

import pytest

from accountant import Tight
from benchmarks import bench_estimators, bench_honest, bench_schedules
from benchmarks.bench_proofs import cells, plans
from benchmarks.bench_sampled_gaussians import (
    AIMS,
    Setting,
    error_of,
    grid,
    ours,
    peer_epsilon,
    quantiles,
    relative_width,
    typical,
)
from benchmarks.bench_sampling_schemes import peer_answer, schemes
from benchmarks.page import TABLES

DOCS = Path(__file__).parents[2] / "docs"
RECORDS = DOCS / "records/bench"
PAGES = [DOCS / "accounting.md", *sorted(RECORDS.glob("*.txt"))]
# a cell of a table, with or without its first bar, or the line of a scheme
PRINTED = re.compile(
    r"^(?:\| )?(?P<plan>[^|\n]+?)(?: \||: epsilon) "
    r"(?:at most )?(?P<epsilon>\d[\d.]*) (?:\||at delta)",
    re.MULTILINE,
)
ROUNDING = 1e-9  # of epsilon: an upper end is printed to ten digits


def printed_epsilons(text):
    """By the plan of a row, every epsilon that a page prints for it."""
    epsilons = {}
    for row in PRINTED.finditer(text):
        epsilons.setdefault(row["plan"], []).append(float(row["epsilon"]))
    return epsilons


def test_a_plan_has_the_same_epsilon_on_every_page():
    printed = printed_epsilons("\n".join(page.read_text("utf-8") for page in PAGES))
    names = [name for name, _, _ in plans(quick=False)]
    assert [
        (name, printed[name])
        for name in names
        if printed[name] != pytest.approx(printed[name][:1] * len(printed[name]), rel=ROUNDING)
    ] == []
    # proofs stand in a table and in the output of their bench, schemes in two of each
    assert min(len(printed[name]) for name in names) >= 2
    assert sum(len(printed[name]) >= 4 for name in names) >= 13


def rows_of(bench):
    """The rows that a bench has on its page, by their first cell."""
    record = (RECORDS / f"{bench}.txt").read_text("utf-8")
    return {row[0]: row for row in re.findall(TABLES[bench].pattern, record, re.MULTILINE)}


def is_width(printed, computed):
    """Whether a printed width is no less than the computed one, up to another machine's engine."""
    return float(computed) <= 2 * float(printed) <= 1e3 * max(float(computed), 1e-13)


# a quarter of a second each, and less; the others take up to some seconds
QUICK = {
    "Gaussian, noise 3.7306334", "1,000 Gaussian, noise 100", "200 pure, epsilon .1",
    "500 Laplace and 500 Gaussian of 50 scales", "a tree of 1,600 steps, noise 1.13",
    "DP-SGD: 15,000 steps, rate .004, noise .8", "replace-one Poisson, noise 2, rate 0.8",
    "replace-one Poisson, noise 1.5, rate 0.8", "one pass of 1,000 batches in order, noise 1",
}  # fmt: skip


def marks_of(name):
    return () if name in QUICK else pytest.mark.slow


@pytest.fixture(scope="module")
def plans_by_name():
    return {name: (name, plan, delta) for name, plan, delta in plans(quick=False)}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=marks_of(n)) for n in rows_of("bench_proofs")],
)
def test_what_a_proof_has_on_every_machine_is_computed_again(name, plans_by_name):
    row, again = rows_of("bench_proofs")[name], cells(*plans_by_name[name])
    _, epsilon, width, wider, size, *_, verdict = again
    assert float(row[1]) == pytest.approx(float(epsilon), rel=ROUNDING)
    assert (row[4], row[9]) == (size, verdict)
    assert row[2] == width or is_width(row[2], width)
    assert float(wider) <= 2 * float(row[3])


SCHEMES = {scheme.name: scheme for scheme in schemes()}


@pytest.mark.parametrize(
    "name",
    [pytest.param(s.name, marks=() if s.peer == "RDP" else pytest.mark.slow)
     for s in SCHEMES.values() if s.event is not None],
)  # fmt: skip
def test_the_epsilon_of_a_peer_is_computed_again(name):
    _, epsilon = peer_answer(SCHEMES[name])
    assert rows_of("bench_sampling_schemes")[name][5] == f"{epsilon:.10g} ({SCHEMES[name].peer})"


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_has_the_epsilon_and_the_width_of_its_proof(name):
    _, epsilon, width, *_ = rows_of("bench_sampling_schemes")[name]
    assert (epsilon.removeprefix("at most "), width) == rows_of("bench_proofs")[name][1:3]


def test_a_schedule_is_computed_again():
    record = (RECORDS / "bench_schedules.txt").read_text("utf-8")
    printed = re.search(
        r"^\| twelve values \| 1,000 \| .* \| (.+) \| (.+) \|$", record, re.MULTILINE
    )
    noise, rates = bench_schedules.schedules(1000)["twelve values"]
    found = Tight().certify(bench_schedules.plan(noise, rates), bench_schedules.DELTA)
    assert float(printed[1]) == pytest.approx(found.upper, rel=ROUNDING)
    assert is_width(printed[2], relative_width(found))


@pytest.mark.parametrize("length", AIMS)
def test_widths_of_training_are_computed_again(length):
    """Those of every eighth setting where there are many: their quantiles are about all of them."""
    settings = [one for one in grid() if one.length == length]
    _, count, *printed = rows_of("bench_sampled_gaussians")[length]
    assert int(count) == len(settings)
    some = settings[::8] if len(settings) > 8 else settings
    widths = [relative_width(ours(one)[1]) for one in some]
    for quantile, width in zip(quantiles(widths), printed, strict=True):
        assert quantile <= 8 * float(width)


COMMON = re.compile(
    r"^\|" + r" (\S+) \|" * 6 + r" \S+ ms \| (\d+) ms \| \S+ \| (\S+) \|$", re.MULTILINE
)


def words_of(setting: Setting):
    """A setting as its row begins."""
    return f"{setting.rate:g}", f"{setting.noise:g}", f"{setting.steps:,}", f"{setting.delta:.0e}"


def test_common_settings_and_quick_peers_are_computed_again():
    record = (RECORDS / "bench_sampled_gaussians.txt").read_text("utf-8")
    common = {tuple(row[:4]): row[4:] for row in COMMON.findall(record)}
    settings = typical()
    assert [words_of(setting) for setting in settings] == list(common)
    quick = sorted(settings, key=lambda setting: int(common[words_of(setting)][2]))[:2]
    for setting in settings[::2] + quick:
        epsilon, width, _, error = common[words_of(setting)]
        found = ours(setting)[1]
        assert epsilon == f"{found.upper:.6g}"
        assert is_width(width, relative_width(found))
        if setting in quick:
            assert error == f"{error_of(peer_epsilon(setting), found):+.1e}"


@pytest.mark.parametrize(
    "name",
    ["private records, n 100,000, p 10, uncorrelated"]
    + [pytest.param(name, marks=pytest.mark.slow)
       for name in ("private records, n 100,000, p 10, correlated",
                    "private labels, n 20,000, p 90, uncorrelated",
                    "private labels, no sparsity, n 20,000, p 90, uncorrelated")],
)  # fmt: skip
def test_scores_of_estimators_are_computed_again(name, capsys):
    (task,) = (one for one in bench_estimators.TASKS if one.name == name)
    table = bench_estimators.measured(task, range(5), quick=False)
    record = (RECORDS / "bench_estimators.txt").read_text("utf-8")
    for task_cell, method, scores in bench_estimators.rows_of(task, table):
        assert f"| {task_cell} | {method} | {scores} |" in record


ALARMS = re.compile(r"^(.+?) +(\d+)/(\d+) false alarms", re.MULTILINE)


@pytest.mark.parametrize("name", [pytest.param("atoms with leaks", marks=pytest.mark.slow), "all"])
def test_false_alarms_are_counted_again(name):
    record = (RECORDS / "bench_honest.txt").read_text("utf-8")
    counts = {kind: (int(count), int(of)) for kind, count, of in ALARMS.findall(record)}
    count, of = counts.pop(name)
    if name == "all":
        assert (count, of) == tuple(map(sum, zip(*counts.values(), strict=True)))
    else:
        assert count == bench_honest.alarms(name, of)


def test_another_epsilon_is_found():
    rows = (
        "| a plan | 0.5400505455 | 4e-07 |\n"
        "a plan | at most 0.5400505678 | 6e-07\n"
        "a plan: epsilon at most 0.54005 at delta 1e-06, width 4e-07"
    )
    (epsilons,) = printed_epsilons(rows).values()
    assert epsilons == [0.5400505455, 0.5400505678, 0.54005]
    assert epsilons[1:] != pytest.approx(epsilons[:1] * 2, rel=ROUNDING)
