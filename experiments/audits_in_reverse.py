"""Tables of docs/lower-bounds.md: algorithms without their noise are too accurate, or traced.

Every audit has the first seed of the options; a line is a row of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from signal import SIG_DFL, SIGINT, signal
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from audits import Decoded, Traced, audit_accuracy, audit_tracing
from experiments.charts import Options

DELTA = 1e-6  # of the central algorithms
SMALL = {"rows": 8, "features": 256}
DECODED_HEAD = (
    "algorithm", "setting", "s_max", "right without noise", "right with it",
    "falsified up to noise times",
)  # fmt: skip
TRACED_HEAD = (
    "algorithm", "score, no noise", "true positives at 5 %, no noise / private",
    "ε ≥, no noise / private", "falsified up to noise times",
)  # fmt: skip
ONE_HEAD = (
    "", "member's score ± standard deviation", "stranger's",
    "true positives at 1, 5, 10, 25, 50 % false ones", "pairs distinguished", "ε ≥ (95 %)",
)  # fmt: skip


def decoded_cases() -> dict[tuple[str, str], Callable[..., Decoded]]:
    """Local algorithms by name and setting, then those of other families."""
    from algorithms import (
        LabelIHT,
        LabelLasso,
        LabelSGD,
        LocalHistogram,
        LocalIHT,
        LocalMean,
        PrivateMean,
        PrivateSelection,
    )
    from algorithms.base.hard_thresholding import default_step
    from audits.minimax.bounds.selection import FewVotes
    from audits.minimax.families.paired_shares import PairedShares
    from audits.minimax.families.sign_means import SignCopies, SignMeans

    records = partial(LocalIHT, epsilon=1.0, sparsity=1, noise_bound=1.0, rounds=1)
    labels = partial(LabelIHT, epsilon=0.5, sparsity=1, y_bound=1.0, step=default_step())
    gradients = partial(LabelSGD, epsilon=0.5, k=2, diameter=2.0)
    lasso = LabelLasso(epsilon=0.5, delta=1e-5, y_bound=1.0, noise_bound=0.01)
    n, p, q = "(200, 512, 1)", "(30, 512, .5)", 1e-5
    regression = {
        ("`LocalIHT`", n): (records(), 200, 1.0, 0.0),
        ("`LocalIHT`, residuals clipped", n): (records(residual_bound=1.0), 200, 1.0, 0.0),
        ("`LabelIHT`, bounded noise", p): (labels(delta=0.0, randomizer="bounded"), 30, 0.5, 0.0),
        ("`LabelIHT`, Laplace", p): (labels(delta=0.0, randomizer="laplace"), 30, 0.5, 0.0),
        ("`LabelIHT`, Gaussian, δ = 10⁻⁵", p): (labels(delta=q, randomizer="gaussian"), 30, 0.5, q),
        ("`LabelLasso`, δ = 10⁻⁵", p): (lasso, 30, 0.5, q),
        ("`LabelSGD`", p): (gradients(), 30, 0.5, 0.0),
        ("`LabelSGD`, unary", p): (gradients(randomizer="unary"), 30, 0.5, 0.0),
    }
    families: dict[tuple[str, str], tuple[Any, Any, int]] = {
        ("`LocalMean`", "`SignMeans(64)`, 60, 1"): (LocalMean(epsilon=1.0), SignMeans(64), 60),
        ("`LocalHistogram`", "`PairedShares(64)`, 500, 1"): (
            LocalHistogram(k=64, epsilon=1.0), PairedShares(64), 500),
        ("`PrivateMean`", "`SignCopies(64, 60, 10)`, 60, 1"): (
            PrivateMean(epsilon=1.0), SignCopies(64, 60, 10), 60),
        ("`PrivateSelection`", "`FewVotes(20, 50, 3)`, 50, .5"): (
            PrivateSelection(epsilon=0.5), FewVotes(20, 50, 3), 50),
    }  # fmt: skip
    found: dict[tuple[str, str], Callable[..., Decoded]] = {
        key: partial(audit_accuracy, model, users, 512, epsilon, delta)
        for key, (model, users, epsilon, delta) in regression.items()
    }
    return found | {key: partial(audit_accuracy, model, users, family=family)
                    for key, (model, family, users) in families.items()}  # fmt: skip


def traced_cases() -> dict[str, Callable[..., Traced]]:
    """Central algorithms at (1, 1e-6)."""
    from algorithms import (
        FrankWolfe,
        GaussianFrankWolfe,
        PrivateLasso,
        PrivateLogisticLasso,
        SignVote,
        SparseERM,
        ThresholdedMean,
        ThresholdedRegression,
    )
    from algorithms.frank_wolfe.convex_sets import L2Ball
    from algorithms.frank_wolfe.polytopes import L1Ball
    from audits.minimax.families.fingerprints import append_ridge_twice

    def members_alone(x: Any, y: Any) -> Any:
        return x[y == 1]

    def one_record_a_machine(x: Any, y: Any) -> Any:
        return x[:, None, :], y[:, None]

    erm = partial(SparseERM, epsilon=1.0, delta=DELTA, sparsity=256, rounds=50, row_bound=16.0,
                  fit_intercept=False)  # fmt: skip
    models: dict[str, tuple[Any, Any]] = {
        "`PrivateLasso`": (
            PrivateLasso(1.0, DELTA, rounds=200, fit_intercept=False), None),
        "`FrankWolfe` on the l1 ball": (
            FrankWolfe("squared", L1Ball(1.0), 1.0, DELTA, rounds=200), None),
        "`PrivateLogisticLasso`": (
            PrivateLogisticLasso(1.0, DELTA, rounds=200, fit_intercept=False), append_ridge_twice),
        "`GaussianFrankWolfe` on the l2 ball": (
            GaussianFrankWolfe("squared", L2Ball(1.0), 1.0, DELTA, rounds=50, row_bound=16.0),
            None),
        "`SparseERM`, squared": (erm(loss="squared"), None),
        "`SparseERM`, logistic": (erm(loss="logistic"), append_ridge_twice),
        "`SignVote`": (SignVote(1.0, DELTA, k=64, threshold=0.0), members_alone),
        "`ThresholdedMean`": (ThresholdedMean(1.0, DELTA, sparsity=64, x_bound=1.0), members_alone),
        "`ThresholdedRegression`": (
            ThresholdedRegression(1.0, DELTA, sparsity=128, x_bound=1.0, y_bound=1.0, radius=1.0,
                                  rounds=10, step=0.1), one_record_a_machine),
    }  # fmt: skip
    return {
        name: partial(audit_tracing, model, 1.0, DELTA, data_of=data_of)
        for name, (model, data_of) in models.items()
    }


def shown(number: float, digits: int = 2) -> str:
    """As .06, 2.74, 0: without a zero before the point."""
    words = f"{number:.{digits}f}".replace("-", "−")
    return "0" if not number else words.replace("0.", ".") if abs(number) < 1 else words


def factor(found: Decoded | Traced) -> str:
    """The largest noise factor that was falsified, with two digits."""
    return "0" if not found.noise_factor else f"{found.noise_factor:.2g}".replace("0.", ".")


def row(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def head(cells: Sequence[str]) -> list[str]:
    """The first two rows of a table."""
    return [row(cells), "|" + " --- |" * len(cells)]


def decoded_row(key: tuple[str, str], runs: int, tries: int, seed: int) -> str:
    """An algorithm without its noise, with it, and the factor between."""
    audit = decoded_cases()[key]
    bare = audit(noise=0.0, search=tries, runs=runs, rng=seed)
    noisy = audit(runs=runs, rng=seed)
    most = bare.most_right
    return row([
        *key, f"{most:.3f}".lstrip("0") if most > 1e-3 else f"{most:.0e}",
        f"{bare.right} of {runs}", f"{noisy.right} of {runs}", factor(bare),
    ])  # fmt: skip


def traced_row(name: str, runs: int, tries: int, seed: int) -> str:
    """The same for a central algorithm."""
    audit = partial(traced_cases()[name], runs=runs, rng=seed, **SMALL)
    bare, noisy = audit(noise=0.0, search=tries), audit()
    rates = " / ".join(shown(one.true_positives(0.05)) for one in (bare, noisy))
    bounds = " / ".join(shown(one.epsilon_lower) for one in (bare, noisy))
    return row([name, shown(float(bare.members.mean())), rates, bounds, factor(bare)])


def one_fit(part: float, quick: bool, seed: int) -> str:
    """PrivateLasso on 24 rows of 2 048 features."""
    from algorithms import PrivateLasso

    model = PrivateLasso(1.0, DELTA, rounds=40 if quick else 400, fit_intercept=False)
    features = 256 if quick else 2048
    found = audit_tracing(
        model, 1.0, DELTA, runs=2, rows=24, features=features, noise=part, rng=seed
    )
    scores = (f"{shown(float(np.mean(some)))} ± {shown(float(np.std(some, ddof=1)))}"
              for some in (found.members, found.others))  # fmt: skip
    rates = ", ".join(shown(rate) for _, rate in found.curve)
    words = "with its noise" if part else "no noise"
    return row([words, *scores, rates, f"{found.right} of {found.pairs}",
                shown(found.epsilon_lower)])  # fmt: skip


def rows(tasks: list[Callable[[], str]], few: bool) -> Iterator[str]:
    """The rows in their order; in processes where they take long."""
    if few:
        yield from (on_one_thread(task) for task in tasks)
        return
    with ProcessPoolExecutor(initializer=signal, initargs=(SIGINT, SIG_DFL)) as pool:
        yield from pool.map(on_one_thread, tasks)


def on_one_thread(task: Callable[[], str]) -> str:
    """One row."""
    with threadpool_limits(1):
        return task()


def accuracy(options: Options) -> Iterator[str]:
    """The two tables of algorithms that are too accurate; 20 runs each."""
    sizes = (4, 2) if options.quick else (20, 7)
    tasks = [partial(decoded_row, key, *sizes, options.seeds[0]) for key in decoded_cases()]
    yield from [*head(DECODED_HEAD), *rows(list(tasks), options.quick)]


def tracing(options: Options) -> Iterator[str]:
    """The two tables of algorithms that are traced; 160 pairs each, 48 of one fit."""
    sizes, seed = (2, 2) if options.quick else (20, 7), options.seeds[0]
    yield from head(ONE_HEAD)
    yield from rows([partial(one_fit, part, options.quick, seed) for part in (0, 1)], options.quick)
    yield ""
    yield from head(TRACED_HEAD)
    tasks = [partial(traced_row, name, *sizes, seed) for name in traced_cases()]
    yield from rows(list(tasks), options.quick)


FIGURES = {"lower-bounds-accuracy": accuracy, "lower-bounds-tracing": tracing}
