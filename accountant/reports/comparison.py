"""What a plan costs by every accountant, side by side: a table, and a figure of their curves.

All answers are upper bounds on the same epsilon or delta, so the least one is the best.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np

from accountant.accountants.advanced import Advanced
from accountant.accountants.attack_rates import AttackRate, AttackRates, attack_rates
from accountant.accountants.base import Accountant
from accountant.accountants.basic import Basic
from accountant.accountants.gdp import GDP
from accountant.accountants.pld import PLD
from accountant.accountants.rdp import RDP
from accountant.accountants.tight import Tight
from accountant.accountants.tradeoff_curves import tradeoff
from accountant.accountants.zcdp import ZCDP
from accountant.domains import DELTA, EPSILON
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.files import write_atomically
from accountant.formatting import as_displayed, format_upper, short_upper
from accountant.plans.plan import Plan, as_plan
from accountant.proofs.checked_proof import checked_proof
from accountant.table_display import Table, TableDisplay

# All accountants, about from the coarsest bounds to the tightest.
ALL_ACCOUNTANTS: tuple[Accountant, ...] = (
    Basic(),
    Advanced(),
    ZCDP(),
    RDP(),
    GDP(),
    PLD(),
    Tight(width=1e-8),  # its default width could make another row look smaller
)
# One colour for each of `ALL_ACCOUNTANTS`, in their order; Tight is drawn last, as a thick line.
COLOURS = ("#9c755f", "#b07aa1", "#76b7b2", "#f28e2b", "#59a14f", "#4e79a7", "#111111")
# Attack rates are shown for plans with at most this many different losses; for more they take long.
MAX_DIFFERENT = 50


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One accountant's answer: epsilon or delta; infinity, or 1, where it has no bound."""

    accountant: str
    epsilon: float
    delta: float
    seconds: float  # how long the computation took, without the check of a proof
    note: str = ""  # of `Tight`: its interval, or the proof; else why there is no bound
    has_bound: bool = True

    def value(self, quantity: str) -> float:
        """Return the answer: epsilon or delta, as ``quantity`` names it."""
        return self.epsilon if quantity == "epsilon" else self.delta


@final
@dataclass(frozen=True, slots=True)
class Comparison(TableDisplay):
    """The answers of all accountants for one plan.  Prints a table.

    Parameters
    ----------
    plan : Plan
        What was asked about.
    asked : str
        "epsilon" or "delta": what the answers are.
    rows : tuple of Row
        One row an accountant.
    rates : tuple of AttackRate
        What an attacker can do at most, computed from the losses that `Tight` composes.

    Examples
    --------
    >>> from accountant import PureLoss, compare
    >>> compare(10 * PureLoss(0.1), delta=1e-6).best.accountant
    'Tight'
    """

    plan: Plan
    asked: str
    rows: tuple[Row, ...]
    rates: tuple[AttackRate, ...] = ()

    @property
    def best(self) -> Row:
        """Return the row with the smallest answer, the last of equals."""
        answers = [(row.value(self.asked), i) for i, row in enumerate(self.rows) if row.has_bound]
        _, best_index = min(answers, key=lambda answer: (answer[0], -answer[1]))
        return self.rows[best_index]

    def plot(self) -> Any:
        """Draw delta over epsilon by every accountant, and what an attacker can do.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it; its ``savefig`` writes a file.

        Raises
        ------
        ParameterError
            If matplotlib is not installed.
        """
        return cost_figure(self.plan, self.best.delta)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        least_answer = _number(self.best.value(self.asked), self.asked)
        return (
            f"<Comparison: {self.asked} {least_answer} {self._condition} by {self.best.accountant}>"
        )

    @property
    def _condition(self) -> str:
        """At which delta, or epsilon, the question was asked."""
        fixed = "delta" if self.asked == "epsilon" else "epsilon"
        return f"at {fixed} {short_upper(self.rows[0].value(fixed))}"

    def _table(self) -> Table:
        columns = ("accountant", "epsilon", "delta", "seconds", "note")
        # The attack rates are the plan's, not an accountant's.  They stand in the last row alone,
        # that of `Tight`, from whose losses they are computed.
        rates = {_rate_name(rate): rate.upper for rate in self.rates}
        rows = [
            [getattr(row, name) for name in columns]
            + [value if row is self.rows[-1] else None for value in rates.values()]
            for row in self.rows
        ]
        return Table((*columns, *rates), rows, upper=("epsilon", "delta", *rates))

    def __str__(self) -> str:
        lines = [
            f"{self.asked} {self._condition}",
            f"{'accountant':<12}{self.asked:>16}{'ms':>10}",
        ]
        for row in self.rows:
            value = row.value(self.asked)
            shown = _number(value, self.asked) if row.has_bound else "cannot say"
            mark = "  <- least" if row is self.best else ""
            lines.append(f"{row.accountant:<12}{shown:>16}{row.seconds * 1e3:>10.1f}{mark}")
        lines += [f"{row.accountant}: {row.note}" for row in self.rows if row.note]
        if self.rates:
            rate_bounds = (
                f"{_rate_name(rate)} is at most {format_upper(rate.upper)}" for rate in self.rates
            )
            lines.append(f"of an attack, {', '.join(rate_bounds)}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the table as JSON: the plan, and one row for each accountant.

        Returns
        -------
        str
            With null where an accountant has no bound.
        """
        from accountant.serialisation.plan_json import to_dict

        rows = [
            {
                "accountant": row.accountant,
                "epsilon": _in_json(row, "epsilon", self.asked),
                "delta": _in_json(row, "delta", self.asked),
                "seconds": row.seconds,
                "note": row.note,
            }
            for row in self.rows
        ]
        document = {"schema": 1, "plan": to_dict(self.plan), "asked": self.asked, "rows": rows}
        document["attack_rates"] = AttackRates(self.plan, self.rates).to_list()
        return json.dumps(document, indent=2, allow_nan=False) + "\n"


def compare(
    plan: Plan, delta: float | None = None, *, proof: bytes | str | PathLike[str] | None = None
) -> Comparison:
    """Ask every accountant for the epsilon of a plan at ``delta``.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    delta : float
        In [0, 1).
    proof : bytes or path, optional
        What ``Tight().certify(plan, delta, proof=...)`` wrote: it is checked, and the row of
        `Tight` is what it proves.

    Returns
    -------
    Comparison
        One row for each accountant; all are upper bounds. `Tight` is asked for an interval of
        1e-8 of epsilon here, so that its width does not decide which row is least.

    Raises
    ------
    ParameterError
        If delta is missing: a plan by itself has none.  If the proof is of another plan or delta,
        or does not prove its claim.

    Examples
    --------
    >>> from accountant import PureLoss, compare
    >>> round(compare(10 * PureLoss(0.1), delta=0.0).best.epsilon, 6)
    1.0
    """
    plan = as_plan(plan)
    if delta is None:
        how = "given: compare(plan, delta=1e-6), or compare_deltas(plan, epsilon=1.0)"
        raise ParameterError("delta", delta, how)
    delta = DELTA.check("delta", delta)
    proved = None if proof is None else checked_proof(plan, delta, proof)
    rows = []
    for accountant in ALL_ACCOUNTANTS:
        start, note, has_bound = time.perf_counter(), "", True
        try:
            if isinstance(accountant, Tight) and proved is not None:
                epsilon = proved.epsilon
                note = proved.words
            elif isinstance(accountant, Tight):
                certificate = accountant.certify(plan, delta)
                epsilon = certificate.upper
                note = str(certificate)
            else:
                epsilon = accountant.epsilon(plan, delta)
        except UnsupportedPlan as reason:
            epsilon, note, has_bound = math.inf, str(reason), False
        seconds = time.perf_counter() - start
        rows.append(Row(accountant.name, epsilon, delta, seconds, note, has_bound))
    return Comparison(plan, "epsilon", tuple(rows), _rates(plan))


def compare_deltas(plan: Plan, epsilon: float) -> Comparison:
    """Ask every accountant for the delta of a plan at ``epsilon``.

    Parameters
    ----------
    plan : Plan
        A plan, a loss or a mechanism.
    epsilon : float
        At least 0.

    Returns
    -------
    Comparison
        One row for each accountant; all are upper bounds.

    Examples
    --------
    >>> from accountant import PureLoss, compare_deltas
    >>> compare_deltas(10 * PureLoss(0.1), epsilon=1.0).best.delta
    0.0
    """
    plan, epsilon = as_plan(plan), EPSILON.check("epsilon", epsilon)
    rows = []
    for accountant in ALL_ACCOUNTANTS:
        start, note, has_bound = time.perf_counter(), "", True
        try:
            delta = accountant.delta(plan, epsilon)
        except UnsupportedPlan as reason:
            delta, note, has_bound = 1.0, str(reason), False
        seconds = time.perf_counter() - start
        rows.append(Row(accountant.name, epsilon, delta, seconds, note, has_bound))
    return Comparison(plan, "delta", tuple(rows), _rates(plan))


def write_figure(plan: Plan, delta: float, path: str | Path) -> None:
    """Write the figure of ``plan`` to ``path`` (.png, .svg or .pdf); needs matplotlib."""
    if Path(path).suffix not in {"", ".png", ".svg", ".pdf"}:
        raise ParameterError("--plot", str(path), "a .png, .svg or .pdf file")
    drawn, kind = io.BytesIO(), Path(path).suffix.lstrip(".") or "png"
    cost_figure(plan, delta).savefig(drawn, dpi=120, format=kind)
    write_atomically(Path(path), drawn.getvalue())


def cost_figure(plan: Plan, delta: float) -> Any:
    """Return the figure of ``plan`` with a line at ``delta``; needs matplotlib."""
    # Delta 0 has no place on a logarithmic axis.
    plan, delta = as_plan(plan), delta or 1e-6
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        allowed = "used where matplotlib is installed (pip install matplotlib)"
        raise ParameterError("plot", "no matplotlib", allowed) from None
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    curve_axes, attack_axes = figure.subplots(1, 2)
    # From a thousandth of the plan's delta up to 0.98: in equal ratios up to 0.02, then in equal
    # steps, whose ratios are closer to 1 where the curves bend to epsilon 0.
    least_delta = max(delta, 1e-12) * 1e-3
    deltas = np.concatenate([np.geomspace(least_delta, 0.02, 48), np.linspace(0.04, 0.98, 25)])
    for accountant, colour in zip(ALL_ACCOUNTANTS, COLOURS, strict=True):
        is_tight = isinstance(accountant, Tight)
        # an interval that is narrower than the line
        drawn = Tight(width=1e-4) if is_tight else accountant
        try:
            epsilons = drawn.epsilons(plan, deltas)
        except UnsupportedPlan:
            continue
        finite = np.where(np.isfinite(epsilons), epsilons, np.nan)
        line_width = 2.6 if is_tight else 1.4
        curve_axes.plot(finite, deltas, color=colour, lw=line_width, label=accountant.name)
    curve_axes.set(
        yscale="log",
        xlabel="epsilon",
        ylabel="delta",
        ylim=(max(delta, 1e-300) * 1e-3, 1.0),
        title="What each accountant can promise",
    )
    top = Tight().epsilon(plan, deltas[0])
    curve_axes.set_xlim(0.0, 1.5 * top if 0 < top < math.inf else 1.0)
    curve_axes.axhline(max(delta, 1e-300), color="#888888", lw=0.8, ls=":")
    curve_axes.legend(frameon=False)
    alpha = np.linspace(0, 1, 201)
    beta = tradeoff(plan, alpha)
    attack_axes.fill_between(alpha, beta, 1 - alpha, color="#4e79a7", alpha=0.15, lw=0)
    attack_axes.plot(alpha, beta, color="#111111", lw=2, label="any test, at best")
    attack_axes.plot(alpha, 1 - alpha, color="#888888", lw=0.8, ls=":", label="guessing")
    attack_axes.set(
        xlabel="type I error",
        ylabel="type II error",
        aspect="equal",
        xlim=(0, 1),
        ylim=(0, 1),
        title="What an attacker can do",
    )
    attack_axes.legend(frameon=False)
    return figure


def _rates(plan: Plan) -> tuple[AttackRate, ...]:
    """Return the advantage, and the power at a false-positive rate of one in a hundred."""
    different = sum(1 for _ in itertools.islice(plan.losses(), MAX_DIFFERENT + 1))
    return attack_rates(plan, fpr=0.01, prior=[]).rows if different <= MAX_DIFFERENT else ()


def _rate_name(rate: AttackRate) -> str:
    return rate.rate if rate.at is None else f"{rate.rate} at fpr {rate.at:g}"


def _number(value: float, quantity: str) -> str:
    """Return the text of an upper bound, rounded up."""
    if quantity == "epsilon":
        return f"{as_displayed(value, 9):.9g}"
    return f"{as_displayed(value, 7):.6e}"


def _in_json(row: Row, quantity: str, asked: str) -> float | str | None:
    """Return the number; its name if it is infinite, as JSON has no infinity; null for no bound."""
    value = row.value(quantity)
    if quantity == asked and not row.has_bound:
        return None
    return "inf" if math.isinf(value) else value
