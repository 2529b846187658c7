"""Texts that every form of an audit report shows: titles, facts about a row, lines of a curve.

The terminal, the page and the other forms of a report take these texts from here.  A fact is a pair
(name, value) of texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from audits.results.rows import ProfileCurve

TITLES = {
    "mechanism": "Declared mechanisms: claimed, exact, attacked",
    "bits": "Floating-point leak test (float samplers must fail, exact ones must pass)",
    "specimen": "Mechanisms and algorithms broken on purpose (each must be caught)",
    "algorithm": "Algorithms: replayed and attacked",
    "paper": "Published claims: printed, provable, attacked",
    "library": "Other libraries: known faults (must be found), sound controls (must survive)",
    "target": "Your function",
    "scores": "One training run, by the scores of its canaries",
}
CLOSING = "SURVIVED: the runs saw no violation. That is no proof of privacy."
PROFILE_HEAD = ("epsilon", "empirical delta", "band", "accountant's delta")
SHOWN_SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)  # shares of the greatest epsilon of a curve


def title_of(kind: str) -> str:
    """The title above the rows of a kind; the kind itself if it has none."""
    return TITLES.get(kind, kind)


def algorithm_facts(
    lasso: Any, data: Any, result: Any, claim: tuple[float, float]
) -> Iterator[tuple[str, str]]:
    """(name, value) facts of the row of a private Lasso regression that was replayed and attacked.

    ``lasso`` is the fitted estimator, ``data`` its training and test rows, ``result`` the outcome
    of the audit, and ``claim`` the (epsilon, delta) that the fit claims to cost.  Privacy losses
    were sampled by runs, some of them with tilted noise, which makes large losses frequent and
    gives each run a weight; mean, deviation and largest loss are those of the other runs.
    """
    from sklearn.linear_model import Lasso
    from sklearn.metrics import r2_score

    (x, y), (x_test, y_test) = data.train, data.test
    non_private = Lasso(alpha=0.003, fit_intercept=False).fit(x, y)
    node = result.plan.part
    yield "plan", f"{result.plan.count} x {node!r}"
    yield (
        "rounds",
        f"{result.plan.count} (the utility bound's optimum T* is {lasso.best_rounds(x.shape)})",
    )
    yield "records", f"{len(x):,} to fit, {len(x_test):,} to test, {x.shape[1]} features"
    yield "test R2, private", f"{r2_score(y_test, lasso.predict(x_test)):.3f} at {claim}"
    yield (
        "test R2, scikit-learn",
        f"{r2_score(y_test, non_private.predict(x_test)):.3f}, no privacy",
    )
    yield "replay", result.replayed.witness
    yield "leak free, on plan", f"{result.replayed.leak_free}, {result.replayed.on_plan}"
    unchecked = "; ".join(result.replayed.unchecked) or "nothing"
    yield "sound", f"{result.replayed.sound}; not checked: {unchecked}"
    losses, untilted_losses = result.losses, result.losses[result.untilted]
    drawn = (
        f"{losses.size - untilted_losses.size} of them drawn where losses are rare, and weighted"
    )
    yield "privacy losses", f"{losses.size} runs against one extreme record, {drawn}"
    if untilted_losses.size:
        yield "mean, deviation", f"{untilted_losses.mean():.4f}, {untilted_losses.std():.4f}"
        yield (
            "largest loss",
            f"{untilted_losses.max():.4f} of the epsilon {claim[0]:g} that was paid",
        )
        # The largest epsilon at which the samples show a delta above 1e-12, at 95% confidence.
        epsilons = result.epsilon_grid()
        lower = result.profile_lower(epsilons, 0.95)
        bounded = [i for i in range(len(lower)) if lower[i] > 1e-12]
        rarest_loss = "none"
        if bounded:
            largest = bounded[-1]
            rarest_loss = (
                f"delta at epsilon {epsilons[largest]:.3g} is at least {lower[largest]:.1e} (95%)"
            )
        yield "rarest loss seen", rarest_loss


def profile_rows(curve: ProfileCurve) -> list[list[str]]:
    """A line for each of `SHOWN_SHARES`: epsilon, empirical delta, its band, accountant's delta."""
    largest_epsilon, lines = curve.epsilon[-1], []
    for share in SHOWN_SHARES:
        index = min(
            range(len(curve.epsilon)), key=lambda i: abs(curve.epsilon[i] - share * largest_epsilon)
        )
        band = f"[{curve.lower[index]:.1e}, {curve.upper[index]:.1e}]"
        lines.append(
            [
                f"{curve.epsilon[index]:.2f}",
                f"{curve.mean[index]:.2e}",
                band,
                f"{curve.claimed[index]:.2e}",
            ]
        )
    return lines
