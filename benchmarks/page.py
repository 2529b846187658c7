"""The page docs/benchmarks.md and tables of other pages, made from the benches' records alone.

A record, docs/records/bench/NAME.txt, is what a bench printed, under the date, the commit, the
machine, the versions and the load of its run.  A row of the page asks a question and names the peer
or the limit; its numbers are those that a pattern finds in the record.  Where a pattern finds
several cases, the row shows the least and the greatest.  A table of another page has a row for
each place where its pattern finds the cells, and the date, the commit and the load below it.
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from mechanisms.base.marked_table import markdown_table

RECORDS = Path("records/bench")  # in docs/
FAILED = "failed with exit status"
HEAD = """# Benchmarks

How fast and how exact is it, beside what? Each row names a peer, or a limit that the machine sets,
measured in the same run. Where "its time is 3 times ours", we are quicker; at "3 times its time" we
are slower. Of several cases the middle one stands first, then the least and the greatest. The name
of a bench leads to all that it printed, with the machine and the versions. The last table says when
it was measured, and beside what load. What exactness costs each mechanism is in
[mechanisms.md](mechanisms.md), and scores on many data sets are in [algorithms.md](algorithms.md).

`make bench` measures all of this again, and `make bench ARGS=bench_start` one bench. This page is
made from what they printed, so do not edit it.
"""
FOOT = """## When these were measured

Load is the number of running processes: its means of the last 1, 5 and 15 minutes before the
start. "Before" a commit is one shortly before it, which was not noted.
"""


@dataclass(frozen=True)
class Row:
    """A row of the page: ``answer`` has a field for each group of ``pattern``."""

    bench: str
    question: str
    peer: str
    answer: str
    pattern: str

    def answered(self, record: str) -> str | None:
        """Return the answer with its numbers; None where the record has none."""
        found = re.findall(self.pattern, record, re.MULTILINE)
        if not found:
            return None
        cases = [case if isinstance(case, tuple) else (case,) for case in found]
        return self.answer.format(*map(span, zip(*cases, strict=True)))


def span(words: tuple[str, ...]) -> str:
    """Return the middle, the least and the greatest of numbers as they are printed; else all."""
    try:
        in_order = sorted(words, key=lambda word: float(word.replace(",", "")))
    except ValueError:
        return ", ".join(dict.fromkeys(words))
    least, middle, greatest = in_order[0], in_order[(len(words) - 1) // 2], in_order[-1]
    if least == greatest:
        return least
    ends = f"{least} to {greatest}"
    return ends if len(words) == 2 else f"{middle} ({ends})"


NUMBER = r"(?<![\d.])(?<!e[-+])([\d.]+(?:e[-+]\d+)?)"
OURS, ITS, THEIRS = "its time is {} times ours", "{} times its time", "{} times their time"
AREAS = {
    "Exact accounting": [
        Row("bench_accounting", "How long does an ε take, for nine plans?", "dp-accounting",
            OURS, rf"{NUMBER} x Tight \|$"),
        Row("bench_accounting", "How far is it from the truth?", "dp-accounting",
            "ours {} of ε, its {}",
            rf"ms \| \+{NUMBER} \| .* \| \+{NUMBER} \| .* x Tight \|$"),
        Row("bench_accounting", "Where is the peer's ε too small?", "dp-accounting", "{}",
            r"^\| (?:\w: )?([^|]+) \|.*wrong: below the truth"),
        Row("bench_accounting", "Calibrating 500 Gaussians", "dp-accounting",
            OURS, rf"{NUMBER} x calibrate$"),
        Row("bench_sampled_gaussians", "DP-SGD: 30 common settings", "dp-accounting",
            f"{OURS} (median)", rf"dp-accounting's time: median {NUMBER} x Tight"),
        Row("bench_sampled_gaussians", "DP-SGD: 40 of 200 settings of all sizes", "dp-accounting",
            f"{OURS} (median)", rf"^  its time: median {NUMBER} x Tight"),
        Row("bench_sampled_gaussians", "DP-SGD: 120 random settings, one process, first answers",
            "dp-accounting", "its time is {} times ours (median), {} at least",
            rf"^  all .*the peer takes {NUMBER} times our time \(median\), {NUMBER} at least"),
        Row("bench_sampled_gaussians", "Those of 500 steps and more", "dp-accounting",
            "its time is {} times ours (median), {} at least",
            rf"^  from 500 .*the peer takes {NUMBER} times our time \(median\), {NUMBER} at least"),
        Row("bench_sampled_gaussians", "All 200: median, 90 % and worst", "processor time", "{}",
            r"^200 settings: processor time, median, 90 %, worst.*?: (.*)$"),
        Row("bench_sampling_schemes", "Truncated and exchanged samples, groups, mixtures",
            "dp-accounting", OURS, rf", {NUMBER} x ours$"),
        Row("bench_schedules", "Noise and rates that change in each step",
            "`PLD`, our accountant on a grid", OURS, rf"^PLD, .*: {NUMBER} x Tight"),
        Row("bench_training", "Calibrating sampled noise in a new process", "dp-accounting",
            OURS, rf"cold: .*dp-accounting [\d.]+, {NUMBER} x ours"),
        Row("bench_training", "A binary tree of 1,600 steps", "published bound",
            "our ε is {} times the bound", rf"{NUMBER} x the published bound"),
        Row("bench_training", "A record of shuffled passes", "the bound in any order",
            "our ε is {} times the bound", rf"{NUMBER} x the bound in any order"),
        Row("bench_planning", "Planning 1,000 releases", "one exact answer", ITS,
            rf"{NUMBER} x one exact answer"),
        Row("bench_planning", "The error of such a plan", "dual bound, which no plan beats",
            "{} times the bound", rf"error {NUMBER} x the dual bound"),
        Row("bench_least_epsilon", "The least ε for wanted errors", "the least of any mechanism",
            "{} times the bound", rf"{NUMBER} x the least of any mechanism"),
        Row("bench_least_epsilon", "The least ε for wanted errors", "a simple plan",
            "its ε is {} times ours", rf"{NUMBER} x ours: the simple plan"),
        Row("bench_clients", "Sums under secure aggregation", "published bounds",
            "their ε is {} times ours", rf"{NUMBER} x ours: the published bound"),
        Row("bench_proofs", "Which certificates have a proof that checks?", "plans of the docs",
            "{} of {}", r"^bench_proofs (\d+) of (\d+) plans"),
        Row("bench_proofs", "Checking a proof", "computing the certificate", ITS,
            rf"{NUMBER} x Tight \| PROVED"),
        Row("bench_start", "Importing `accountant` or `mechanisms`", "importing numpy", ITS,
            rf"{NUMBER} x import numpy"),
    ],
    "Noise": [
        Row("bench_mechanisms", "Exact noise on whole numbers", "as many random words",
            "{1} times their time, {0} million draws a second",
            rf"([\d.]+) M/s.*, {NUMBER} x as many words of bits"),
        Row("bench_mechanisms", "Private vectors", "drawing as many normals", THEIRS,
            rf"{NUMBER} x its normals"),
        Row("bench_mechanisms", "Randomised response, unary encoding",
            "numpy's integers or comparisons", THEIRS, rf"{NUMBER} x rng\.(?:integers|random <)"),
        Row("bench_mechanisms", "Subsets, Hadamard response, hashing",
            "one random number a user", THEIRS, rf"{NUMBER} x rng\.random \("),
        Row("bench_mechanisms", "Memory of 10,000,000 users in 100 groups", "the data",
            "{} times their size", rf"{NUMBER} x the data"),
    ],
    "Budgets and books": [
        Row("bench_lasso", "A release through a ledger", "query and draw alone", THEIRS,
            rf"{NUMBER} x query and draw"),
        Row("bench_accounting", "A spend of a filter", "a sum of two numbers", ITS,
            rf"{NUMBER} x two-term sums"),
        Row("bench_ledger", "Spends on disk, 8 processes", "flushes of the disk",
            "{} a second, {} times the flushes",
            rf"8 processes x [\d,]+: (\d+), {NUMBER} x the flushes"),
        Row("bench_ledger", "A spend of a third of 1,000,000 users", "adding to totals in numpy",
            ITS, rf"{NUMBER} x numpy adding"),
        Row("bench_ledger", "A process's first spend, 100,000 authors with quotas",
            "one author with a quota", ITS, rf"{NUMBER} x that with one"),
        Row("bench_postgres", "8 writers on PostgreSQL", "one writer", "{} times its spends",
            rf"{NUMBER} x one writer"),
        Row("bench_long_log", "Verifying 100,000 entries", "hashing them", ITS,
            rf"{NUMBER} x hashing alone"),
        Row("bench_long_log", "The first spend after 100,000 entries", "hashing them", ITS,
            rf"first spend .*?{NUMBER} x hashing the log"),
    ],
    "Audits": [
        Row("bench_audit", "An audit of 1,000,000 runs of each mechanism", "drawing alone",
            THEIRS, rf"{NUMBER} x drawing alone"),
        Row("bench_power", "Which share of its runs would the best test need?", "Neyman and Pearson",
            "{} %", r"the best test needs (\d+)% of the runs"),
        Row("bench_power", "When does a watched audit stop?", "Neyman and Pearson, fixed size",
            "{} times its runs", rf"{NUMBER} x the best test of a fixed size"),
        Row("bench_honest", "False alarms on claims that are just true",
            "edge for a right audit", "{} of {}; edge {}",
            r"^all +(\d+)/(\d+) false alarms, .*?(?:at most|the edge of) (\d+)"),
        Row("bench_evidence", "False alarms of evidence in a life of 50 versions",
            "nominal count", "{} of {}; nominal {}",
            r"^all +(\d+)/(\d+) false alarms in a life, .* of (\d+)$"),
        Row("bench_evidence", "Half the noise in a few versions of few runs",
            "single audits of these runs", "{} times as often", rf"{NUMBER} x a single audit"),
        Row("bench_timing", "False alarms of the audit of times",
            "edge for a right audit", "{} of {}; edge {}",
            r"^all +(\d+) of +(\d+):.*at most (\d+)"),
        Row("bench_one_run", "ε from one training run", "jax-privacy",
            "ours is {} times its ε", rf"{NUMBER} x jax-privacy"),
        Row("bench_one_run", "How much of a Gaussian's μ does it find?", "the truth",
            "{} of it", rf"mu [\d.]+, {NUMBER} x the truth"),
    ],
    "Private models": [
        Row("bench_estimators", "Error with the defaults",
            "the best of clipped descent, AdaSSP, TukeyEM, diffprivlib, a constant",
            "{} times its error",
            rf"^  error of .*: {NUMBER} x"),
        Row("bench_quantiles", "Error of quantiles", "OpenDP", "{} times its error",
            rf"error: {NUMBER} x OpenDP"),
        Row("bench_quantiles", "Error of quantiles", "diffprivlib", "{} times its error",
            rf"error: {NUMBER} x diffprivlib"),
        Row("bench_quantiles", "Quartiles of 1,000,000 numbers", "OpenDP, diffprivlib",
            THEIRS, rf"ours takes {NUMBER} x (?:OpenDP|diffprivlib)"),
        Row("bench_top_k", "Counts of the top 10", "OpenDP's top k", "{} times its error",
            rf"error of counts {NUMBER} x OpenDP top k"),
        Row("bench_top_k", "Keys lost", "Laplace noise and a threshold", "{} times as many",
            rf"{NUMBER} x Laplace noise and a threshold"),
        Row("bench_lasso", "`PrivateLasso`", "its products", THEIRS, rf"{NUMBER} x its products"),
        Row("bench_regression", "`LocalIHT`, `LabelIHT`", "its normals, its products", THEIRS,
            rf"{NUMBER} x (?:drawing its normals|its \d+ matrix)"),
        Row("bench_label_sgd", "`LabelSGD`", "its products", THEIRS,
            rf"{NUMBER} x its two products"),
        Row("bench_frank_wolfe", "Frank-Wolfe on sparse text", "the same on dense data",
            OURS, rf"{NUMBER} x the sparse form"),
        Row("bench_sign_vote", "A vote of 4000 machines", "one pass over the votes", ITS,
            rf"server step .*{NUMBER} x one pass"),
        Row("bench_dask", "`LocalIHT` with data on Dask workers", "threads of one process", ITS,
            rf"{NUMBER} x threads"),
    ],
    "Statistics of frames": [
        Row("bench_frames", "Error at epsilon 1", "OpenDP", "{} times its error",
            rf"{NUMBER} x opendp \(±"),
        Row("bench_frames", "Error at epsilon 1", "diffprivlib", "{} times its error",
            rf"{NUMBER} x diffprivlib \(±"),
        Row("bench_frames", "Time on 1,000,000 rows", "OpenDP", ITS,
            rf"\bms, .*{NUMBER} x opendp"),
        Row("bench_frames", "Time on 1,000,000 rows", "diffprivlib", ITS,
            rf"\bms, .*{NUMBER} x diffprivlib"),
        Row("bench_frames", "Time on 1,000,000 rows", "the statistic without noise", ITS,
            rf"{NUMBER} x numpy and polars"),
        Row("bench_dask_frames", "Bytes fetched of 10,000,000 rows on Dask", "a column of numbers",
            "at most {} times its size", rf"fetched: at most {NUMBER} x a column"),
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table of another page: ``pattern`` finds the cells of its rows in the bench's record."""

    page: str  # in docs/
    head: tuple[str, ...]
    pattern: str

    def made(self, bench: str, record: str) -> str:
        """Return the table, and when and beside what it was measured."""
        facts = facts_of(record)
        rows = markdown_table(self.head, re.findall(self.pattern, record, re.MULTILINE))
        said = (
            f"Measured by `make bench ARGS={bench}` on {facts['date']}; commit {facts['commit']}; "
            f"load {facts['load'].partition(' (')[0]}."
        )
        return f"{rows}\n{textwrap.fill(said, 100)}\n"


TABLES = {
    "bench_sampled_gaussians": Table(
        "accounting.md", ("steps", "settings", "width: median", "90 %", "worst"),
        r"^  (.*): (\d+) settings, width median, 90 %, worst: ([\de.-]+), ([\de.-]+), ([\de.-]+);",
    ),
    "bench_sampling_schemes": Table(
        "accounting.md",
        ("scheme", "epsilon", "width", "time", "figure to meet", "peer", "peer's time"),
        r"^(.+): epsilon (.+) at delta .+, width (.+), (.+ ms); figure (.+); dp-accounting (.+), (.+)$",
    ),
    "bench_proofs": Table(
        "accounting.md",
        ("plan", "epsilon", "width", "wider", "proof", "Tight", "writing", "checking", "ratio",
         "verdict"),
        "^" + r" \| ".join([r"([^|\n]+)"] * 10) + "$",
    ),
    "bench_least_epsilon": Table(
        "budget.md",
        ("statistics", "delta", "mechanisms", "epsilon", "the simple plan", "over the bound",
         "time"),
        r"^(.+), delta (.+): (.+); epsilon ([\d.]+), ([\d.]+ x ours).*?, ([\d.]+) x the least.*; "
        r"(.+ ms)$",
    ),
    "bench_clients": Table(
        "secure-aggregation.md",
        ("sums of clients", "epsilon", "published", "over ours", "time"),
        r"^(.+): epsilon ([\d.e-]+); published ([\d.e-]+), ([\d.]+) x ours.*; (.+ ms)$",
    ),
    "bench_evidence": Table(
        "how-to/audit-every-version.md",
        ("runs of a version", "e-values of", "lives with an alarm", "at version, in the middle",
         "single audits that falsify"),
        r"^half the noise, (\d+) runs a version, (.+): (\d+%) of \d+ lives raise the alarm, in the "
        r"middle at version (\w+); a single audit falsifies in ([\d.]+%)",
    ),
    "bench_estimators": Table(
        "algorithms.md",
        ("data and measure", "ours", "the best alternative", "the constant", "without privacy"),
        r"^\| (?!data and |---)([^|]+) \|" + r" ([^|]*) \|" * 4 + "$",
    ),
}  # fmt: skip


def facts_of(record: str) -> dict[str, str]:
    """Return the lines above what a bench printed, by their first words."""
    lines = record.partition("\n\n")[0].splitlines()
    return dict(line.split(": ", 1) for line in lines)


def link(bench: str) -> str:
    """Return the name of a bench, which leads to its record."""
    return f"[{bench}]({(RECORDS / bench).as_posix()}.txt)"


def page_of(records: dict[str, str]) -> str:
    """Return the page of some records, by the names of their benches."""
    parts = [HEAD]
    for area, rows in AREAS.items():
        answers = []
        for row in rows:
            if (record := records.get(row.bench)) is None:
                continue
            answer = "failed" if FAILED in record else row.answered(record) or "not measured"
            answers.append((row.question, row.peer, answer, link(row.bench)))
        head = ("question", "peer or limit", "ratio", "bench")
        parts += [f"## {area}\n", markdown_table(head, answers)]
    runs = []
    for name, record in records.items():
        facts = facts_of(record)
        runs.append((link(name), facts["date"][:10], facts["commit"].removeprefix("shortly "),
                     facts["load"].partition(" (")[0]))  # fmt: skip
    return "\n".join([*parts, FOOT, markdown_table(("bench", "date", "commit", "load"), runs)])
