"""What every report tells: its titles, and the algorithm's story in plain rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from accountant.numerics import Array
from audits.cases import Row
from audits.examination import Profile

TITLES = {
    "mechanism": "Declared mechanisms: claimed, exact, attacked",
    "bits": "Low-order bits: floats that stand for real numbers are found out, exact noise is not",
    "specimen": "The zoo: broken on purpose, each must be caught",
    "algorithm": "Algorithms: replayed and attacked",
}
EPSILONS = np.array([0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0])


def facts(row: Row) -> Iterator[tuple[str, str]]:
    """(what, value) of an algorithm's row."""
    from sklearn.linear_model import Lasso
    from sklearn.metrics import r2_score

    lasso, data, found = row.detail
    (x, y), (x_test, y_test) = data.train, data.test
    plain = Lasso(alpha=0.003, fit_intercept=False).fit(x, y)
    node = found.plan.part
    yield "plan", f"{found.plan.count} x {node!r}"
    yield (
        "rounds",
        f"{found.plan.count} (the utility bound's optimum T* is {lasso.best_rounds(x.shape)})",
    )
    yield "records", f"{len(x):,} to fit, {len(x_test):,} to test, {x.shape[1]} features"
    yield "test R2, private", f"{r2_score(y_test, lasso.predict(x_test)):.3f} at {row.claim}"
    yield "test R2, scikit-learn", f"{r2_score(y_test, plain.predict(x_test)):.3f}, no privacy"
    yield "replay", found.replayed.witness
    yield "leak free, on plan", f"{found.replayed.leak_free}, {found.replayed.on_plan}"
    losses = found.losses
    yield "privacy losses", f"{losses.size} runs against one extreme record"
    yield "mean, deviation", f"{losses.mean():.4f}, {losses.std():.4f}"
    yield "greatest", f"{losses.max():.4f} of the epsilon {row.claim[0]:g} that was paid"


def profile(row: Row, epsilons: Array = EPSILONS) -> Profile:
    """The empirical profile of an algorithm's row beside the accountant's curve."""
    _, _, found = row.detail
    result: Profile = found.profile(epsilons, row.confidence)
    return result


def profile_rows(row: Row) -> list[list[str]]:
    """One line an epsilon: empirical delta, its band, the accountant's delta."""
    curve = profile(row)
    columns = (curve.epsilon, curve.mean, curve.lower, curve.upper, curve.accountant)
    return [
        [f"{e:.2f}", f"{mean:.2e}", f"[{low:.1e}, {high:.1e}]", f"{above:.2e}"]
        for e, mean, low, high, above in zip(*columns, strict=True)
    ]


PROFILE_HEAD = ("epsilon", "empirical delta", "band", "accountant's delta")
