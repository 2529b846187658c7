"""The least epsilon for wanted errors, beside a simple plan and beside the least of any mechanism.

The simple plan answers all with the same family at the same errors, and takes the better of two:
Laplace noise and the exponential mechanism with the sum of their epsilons, and Gaussian noise with
the epsilon of the sum of their rho.  The bound is `least_epsilon_bound`.
"""

from accountant import ZCDP, Basic, Statistic, least_epsilon
from accountant.planning.least_epsilon import Answer, _plan
from audits.minimax import least_epsilon_bound
from benchmarks.measure import beside, median_seconds, options

TOP = Statistic("selection", 50.0, candidates=300, monotone=True, name="the best of 300")
PANELS = {
    "one count within 3": [Statistic("count", 3.0)],
    "one mean of 1,000 within .01": [Statistic("sum", 0.01, sensitivity=0.001)],
    "the best of 300 within 50 votes": [TOP],
    "12 counts within 10": [Statistic("count", 10.0, count=12)],
    "52 counts within 20": [Statistic("count", 20.0, count=52)],
    "52 counts within 20, the best of 300": [Statistic("count", 20.0, count=52), TOP],
    "40 counts, 10 means, the best of 300": [
        Statistic("count", 10.0, count=40),
        Statistic("sum", 0.05, 0.9, count=10, sensitivity=0.002),
        TOP,
    ],
    "1,000 sums within 30": [Statistic("sum", 30.0, count=1000)],
    "5,000 counts within 60": [Statistic("count", 60.0, count=5000)],
}
DELTAS = (0.0, 1e-6)
LAPLACE = {"DiscreteLaplace", "Laplace", "Exponential"}
GAUSSIAN = {"DiscreteGaussian", "Gaussian", "Exponential"}


def simple_epsilon(statistics, delta):
    """Return the epsilon of the better simple plan."""
    costs = []
    for families, accountant in ((LAPLACE, Basic()), (GAUSSIAN, ZCDP())):
        answers = [
            Answer(request.plan(request.settled), request.settled, statistic.error)
            for statistic in statistics
            for request in statistic.requests()
            if request.family.__name__ in families
        ]
        costs.append(accountant.epsilon(_plan(statistics, answers), delta))
    return min(costs)


def main():
    quick = options(__doc__).quick
    panels = dict([*PANELS.items()][:2]) if quick else PANELS
    least_epsilon([Statistic("count", 3.0)], 0.0)  # imports
    for name, statistics in panels.items():
        for delta in DELTAS:
            found = least_epsilon(statistics, delta, least_epsilon_bound)
            milliseconds = 1e3 * median_seconds(
                lambda s=statistics, d=delta: least_epsilon(s, d, least_epsilon_bound)
            )
            kinds = ", ".join(dict.fromkeys(type(a.mechanism).__name__ for a in found.answers))
            simple = simple_epsilon(statistics, delta)
            print(
                f"{name}, delta {delta:g}: {kinds}; epsilon {found.epsilon:.5g}, "
                f"{beside(simple, found.epsilon, 'ours')}: the simple plan, "
                f"{beside(found.epsilon, found.lower, 'the least of any mechanism')}; "
                f"{milliseconds:.0f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
