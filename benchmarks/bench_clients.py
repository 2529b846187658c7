"""Sums of clients under secure aggregation, beside the published bounds of their Rényi divergence.

Both papers bound it by closed formulas, which are computed here for the same steps and noise, as
their code has them (google-research/federated at a5af8c44, distributed_dp/accounting_utils.py):
Kairouz, Liu & Steinke (2021), Proposition 14; Agarwal, Kairouz & Liu (2021).  Epsilon comes from the best of the orders of their experiments, 2 to 128 and 256, by the conversion of
dp-accounting; a sample of clients by the bound that their code takes (Zhu & Wang 2019).  The
settings are those of the papers' experiments.  ``width`` says how far one coordinate alone, which
is a lower end, stays behind.
"""

import math
import warnings

import numpy as np
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from scipy.special import gammaln, logsumexp

from accountant import PoissonSampled, SummedNoiseLoss, Tight, calibrate
from benchmarks.measure import beside, median_seconds, options
from mechanisms import ClientVectors, DiscreteGaussian, Skellam, SumOfClients, calibrate_sum

ORDERS = np.array([*range(2, 129), 256])
DELTA = 1e-5
# name: coordinates, clients, bits, epsilon of one sum: distributed means of both papers
MEANS = {
    "a mean of 100 clients, d = 250, 10 bits": (250, 100, 10, 3.0),
    "a mean of 1,000 clients, d = 250, 16 bits": (250, 1000, 16, 1.0),
    "a mean of 100 clients, d = 75,000, 12 bits": (75_000, 100, 12, 10.0),
    "a mean of 1,000 clients, d = 75,000, 18 bits": (75_000, 1000, 18, 2.0),
}
# name: coordinates, population, rounds, epsilon, step: 100 clients a round, clipped to 1
TRAINING = {
    "EMNIST, 1,500 rounds, 100 of 3,400 clients": (1_018_174, 3400, 1500, 5.0, 2.0**-10),
    "Stack Overflow, 1,600 rounds, 100 of 342,477 clients": (
        4_050_748, 342_477, 1600, 5.0, 2.0**-12
    ),
}  # fmt: skip


# scale of one client's noise in a count of 1,000 clients
COUNTS = 0.5, 0.7, 1.0


def published(total):
    """Return the published bounds of Rényi divergences of one sum, at all orders."""
    n, d, length = total.survivors, total.dimension, total.sensitivity
    variance, l1 = n * total.scale**2, length * min(math.sqrt(d), length)
    if isinstance(total.mechanism, Skellam):
        second = ((2 * ORDERS - 1) * length**2 + 6 * l1) / (4 * variance**2)
        return ORDERS * length**2 / 2 / variance + np.minimum(second, 3 * l1 / (2 * variance))
    k = np.arange(1.0, n)
    tau = 10 * np.exp(-2 * (math.pi * total.scale) ** 2 * k / (k + 1)).sum()
    ratio, l1_ratio = length / math.sqrt(variance), l1 / math.sqrt(variance)
    return np.minimum.reduce([
        ORDERS / 2 * ratio**2 + tau * d,
        ORDERS / 2 * (ratio**2 + 2 * l1_ratio * tau + tau**2 * d),
        ORDERS / 2 * (ratio + math.sqrt(d) * tau) ** 2,
    ])  # fmt: skip


def sampled(divergences, rate):
    """Return the bounds of a sample of this rate: Zhu & Wang (2019), Theorem 5."""
    at, bounds = dict(zip(ORDERS, divergences, strict=True)), []
    for order, own in at.items():
        picks = np.arange(2, order + 1)
        if not set(picks) <= set(at):  # beyond 128 not every whole order is there
            bounds.append(own)
            continue
        logs = gammaln(order + 1) - gammaln(picks + 1) - gammaln(order - picks + 1)
        logs = logs + picks * math.log(rate) + (order - picks) * math.log1p(-rate)
        logs = logs + np.log(np.where(picks > 2, 3.0, 1.0))
        logs = logs + (picks - 1) * np.array([at[pick] for pick in picks])
        none = (order - 1) * math.log1p(-rate) + math.log(order * rate - rate + 1)
        bounds.append(min(own, logsumexp([none, *logs]) / (order - 1)))
    return np.array(bounds)


def report(name, plan, divergences, delta, *notes):
    """Print the row of a plan."""
    tight = Tight()
    ours = tight.epsilon(plan, delta)
    milliseconds = 1e3 * median_seconds(lambda: Tight().epsilon(plan, delta))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, _ = compute_epsilon(ORDERS, divergences, delta)
    print(
        f"{name}: epsilon {ours:.5g}; published {theirs:.5g}, "
        f"{beside(theirs, ours, 'ours: the published bound')}; "
        + "".join(f"{note}; " for note in notes) + f"{milliseconds:.2g} ms",
        flush=True,
    )  # fmt: skip


def width(total):
    """Return how far the pair of one coordinate stays below the loss, in epsilon."""
    shift = math.isqrt(math.floor(total.sensitivity**2))
    if not total.noise.is_listed(shift):
        return "width not listed"
    least = SummedNoiseLoss(total.noise, shift).epsilon_at(DELTA)
    return f"width {total.loss.epsilon_at(DELTA) / least - 1:.2g}"


def main():
    quick = options(__doc__).quick
    for name, (d, clients, bits, epsilon) in [*MEANS.items()][: 1 if quick else None]:
        for share in (DiscreteGaussian, Skellam):
            vectors, total = calibrate_sum(
                share, dimension=d, clip=1.0, bits=bits, clients=clients, epsilon=epsilon,
                delta=DELTA, wrap=1e-3,
            )  # fmt: skip
            step = f"step {vectors.step:.3g}, noise {total.scale:.3g} a client"
            report(f"{name}, {share.__name__}", total, published(total), DELTA, step, width(total))
    for scale in COUNTS[: 1 if quick else None]:
        for share in (DiscreteGaussian, Skellam):
            total = SumOfClients(share(scale), 1000, dropout=0.1)
            name = f"a count of 1,000 clients, a tenth drops out, noise {scale}, {share.__name__}"
            report(name, total, published(total), DELTA)
    for name, (d, population, rounds, epsilon, step) in [*TRAINING.items()][: 1 if quick else None]:
        vectors, rate = ClientVectors(d, 1.0, step, 18, rotation=0), 100 / population
        fixed, delta = (vectors.sensitivity, vectors.coordinates), 1 / population
        for share in (DiscreteGaussian, Skellam):

            def training(scale, share=share, fixed=fixed, rate=rate, rounds=rounds):
                total = SumOfClients(share(scale, *fixed), 100)
                return rounds * PoissonSampled(total, rate, "zero-out")

            scale = calibrate(training, epsilon=epsilon, delta=delta)
            total = SumOfClients(share(scale, *fixed), 100)
            divergences = rounds * sampled(published(total), rate)
            report(f"{name}, {share.__name__}", training(scale), divergences, delta,
                   f"noise {scale:.3g} a client")  # fmt: skip


if __name__ == "__main__":
    main()
