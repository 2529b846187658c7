"""The facts that a report shows of a private Lasso regression, as pairs (name, value) of texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


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
    # A fit without privacy, to compare with; alpha is the weight of its penalty.
    non_private = Lasso(alpha=0.003, fit_intercept=False).fit(x, y)
    part = result.plan.part
    yield "plan", f"{result.plan.count} x {part!r}"
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
