"""Evidence over the life of a program: what it shows of half the noise, and its false alarms.

Each version of a program is audited once, with few runs, and the evidence adds up (`Finding.add_to`
of a book).  A life with half the noise has 10 versions; beside the lives that raise an alarm stands
how often a single one of the same audits falsifies the claim.  Some lives are honest for 20 versions
before.  An honest life has 50 versions: at
most a share alpha of such lives may ever raise an alarm.  Most honest lives are of the program that
is hardest to tell from a broken one: each guess is right just as often as the claim allows.  They
need no audit; a twentieth as many lives are audits of noise that just keeps the claim.
"""

import numpy as np

from accountant import PureLoss
from accountant.book.evidence import grown, log_total, proof
from audits import Outcome, audit
from audits.claims.findings import GuessCounts
from audits.statistics.betting import (
    expert_odds,
    log_growth,
    log_mean_wealth,
)
from audits.statistics.binomial_bounds import max_correct_probability
from benchmarks.measure import beside, options

ALPHA, CLAIM, PAIR = 0.05, PureLoss(1.0), (0.0, 1.0)
KINDS = {False: "counted guesses", True: "bets run by run"}  # by whether audits may stop early


def life(seed, scale, runs, versions, early, honest=0):
    """The version that raised the alarm, 0 if none did, and how many single audits falsified.

    Before them come versions with noise of scale 1.
    """
    rng, wealth, falsified, alarm = np.random.default_rng([seed, runs]), [], 0, 0

    for version in range(1, honest + versions + 1):

        def release(value, rng, size, scale=scale if version > honest else 1.0):
            return value + rng.laplace(scale=scale, size=size)

        found = audit(release, PAIR, CLAIM, runs=runs, confidence=1 - ALPHA, rng=rng, early=early)
        falsified += found.outcome is Outcome.FALSIFIED
        _, log_e_values = found.log_e_values(CLAIM)
        wealth = grown(wealth, log_e_values, version)
        if not alarm and log_total(wealth, version) >= proof(ALPHA):
            alarm = version
    return alarm, falsified


def hardest_life(seed, versions, early):
    """The version that raised the alarm in a life whose guesses are right as often as is allowed.

    Audits have between 10 and 1,000 runs that test.
    """
    rng, wealth = np.random.default_rng(seed), []
    for version in range(1, versions + 1):
        runs = int(10 ** rng.uniform(1, 3))
        right = int(rng.binomial(runs, max_correct_probability(1.0)))
        if early:  # each expert bets in each run, as if the guess was surely right
            excess = expert_odds(np.array([1.0]), 1.0, exact=False)
            of_one = [
                log_growth(excess, np.array([side]), 1.0, 0.0)[:, 0] for side in (True, False)
            ]
            of_experts = right * of_one[0] + (runs - right) * of_one[1]
            log_e_values = np.array([log_mean_wealth(of_experts)])
        else:
            log_e_values = GuessCounts(right, runs, runs).log_e_values(1.0, 0.0)
        wealth = grown(wealth, log_e_values.tolist(), version)
        if log_total(wealth, version) >= proof(ALPHA):
            return version
    return 0


def lives(count, *arguments):
    """The alarms of many lives, and their counts of single audits that falsified."""
    return np.array([life(seed, *arguments) for seed in range(count)]).T


def main():
    """Exit with status 1 where more honest lives than alpha raise an alarm."""
    given = options(__doc__, lives=100, honest=2000, versions=50)
    count, honest, versions = (4, 40, 5) if given.quick else (
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
        alarms, _ = lives(count, 0.5, 100, 10, early, 20)
        found_later = alarms > 20
        middle = int(np.median(alarms[found_later])) - 20 if found_later.any() else "none"
        print(f"half the noise after 20 honest versions, 100 runs, {kind}: {np.mean(found_later):.0%} "
              f"of {count} lives raise the alarm, in the middle at broken version {middle}, and "
              f"{np.sum((alarms > 0) & ~found_later)} before", flush=True)  # fmt: skip
    false_alarms = total = 0
    for early, kind in KINDS.items():
        hardest = sum(hardest_life(seed, versions, early) > 0 for seed in range(honest))
        alarms, falsified = lives(honest // 20, 1.0, 60, versions, early)
        audited = int(np.sum(alarms > 0))
        false_alarms, total = false_alarms + hardest + audited, total + honest + honest // 20
        print(f"honest lives of {versions} versions, {kind}: {hardest} of {honest} of the hardest "
              f"program raise the alarm, {audited} of {honest // 20} audits of 60 runs a version; "
              f"in {np.sum(falsified > 0)} of these a single audit falsifies", flush=True)  # fmt: skip
    nominal = ALPHA * total
    print(f"all {false_alarms}/{total} false alarms in a life, "
          f"{beside(false_alarms, nominal, 'the nominal count')} of {nominal:.0f}")  # fmt: skip
    raise SystemExit(bool(false_alarms > nominal))


if __name__ == "__main__":
    main()
