"""Evidence over the life of a program: what it shows of half the noise, and its false alarms.

Each version of a program is audited once, with few runs, and the evidence adds up (`Finding.add_to`
of a book).  A life with half the noise has 10 versions; beside the lives that raise an alarm stands
how often a single one of the same audits falsifies the claim.  An honest life has 50 versions, and
noise that just keeps the claim: at most a share alpha of such lives may ever raise an alarm.  Bets
run by run take three times as long as counts, so a quarter of the honest lives have them.
"""

import numpy as np

from accountant import PureLoss
from accountant.book.evidence import log_mean, product, proof
from audits import Outcome, audit
from benchmarks.measure import beside, options

ALPHA, CLAIM, PAIR = 0.05, PureLoss(1.0), (0.0, 1.0)
KINDS = {False: "counted guesses", True: "bets run by run"}  # by whether audits may stop early


def life(seed, scale, runs, versions, early):
    """The version that raised the alarm, 0 if none did, and how many single audits falsified."""
    rng, wealth, falsified, alarm = np.random.default_rng([seed, runs]), [0.0], 0, 0

    def release(value, rng, size):
        return value + rng.laplace(scale=scale, size=size)

    for version in range(1, versions + 1):
        found = audit(release, PAIR, CLAIM, runs=runs, confidence=1 - ALPHA, rng=rng, early=early)
        falsified += found.outcome is Outcome.FALSIFIED
        _, log_e_values = found.log_e_values(CLAIM)
        wealth = product(wealth, log_e_values)
        if not alarm and log_mean(wealth) >= proof(ALPHA):
            alarm = version
    return alarm, falsified


def lives(count, *arguments):
    """The alarms of many lives, and their counts of single audits that falsified."""
    return np.array([life(seed, *arguments) for seed in range(count)]).T


def main():
    """Exit with status 1 where more honest lives than alpha raise an alarm."""
    given = options(__doc__, lives=100, honest=2000, versions=50)
    count, honest, versions = (4, 4, 5) if given.quick else (
        given.lives, given.honest, given.versions)  # fmt: skip
    for early, kind in KINDS.items():
        for runs in (60, 100, 200):
            alarms, falsified = lives(count, 0.5, runs, 10, early)
            share, single = np.mean(alarms > 0), falsified.sum() / (10 * count)
            middle = int(np.median(alarms[alarms > 0])) if alarms.any() else "none"
            print(f"half the noise, {runs} runs a version, {kind}: {share:.0%} of {count} lives "
                  f"raise the alarm, in the middle at version {middle}; a single audit falsifies "
                  f"in {single:.1%}, {beside(share, max(single, 0.001), 'a single audit')}",
                  flush=True)  # fmt: skip
    totals = np.zeros(2)
    for early, kind in KINDS.items():
        count = honest // 4 if early else honest
        alarms, falsified = lives(count, 1.0, 60, versions, early)
        totals += np.sum(alarms > 0), count
        print(f"honest noise, 60 runs a version, {kind}: {np.sum(alarms > 0)} of {count} lives of "
              f"{versions} versions raise the alarm; single audits falsify in "
              f"{np.sum(falsified > 0)} of them", flush=True)  # fmt: skip
    nominal = ALPHA * totals[1]
    print(f"all {totals[0]:.0f}/{totals[1]:.0f} false alarms in a life, "
          f"{beside(totals[0], nominal, 'the nominal count')} of {nominal:.0f}")  # fmt: skip
    raise SystemExit(bool(totals[0] > nominal))


if __name__ == "__main__":
    main()
