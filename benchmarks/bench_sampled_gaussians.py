"""Sampled Gaussians, the training of models, on three grids of settings beside dp-accounting.

The wide grid of 200 is fixed: an additive sequence over the logarithms of the sampling rate (1e-6
to 1), the noise (.1 to 50), the steps (1 to 10^6) and delta (1e-12 to 1e-3).  Another has 30
settings as they are common.  Times are of a processor, of the first answer to a plan.  The peer
gets every fifth setting of the wide grid and all others, a process of its own for each, and a
limit of time and memory; ``--peer 200`` gives it all, ``--peer 0`` none.  The third grid is drawn
at random, with noise from .5 to 20; both answer in this process, one after the other.
"""

import argparse
import itertools
import math
import multiprocessing
import random
import resource
import time
from dataclasses import dataclass

import numpy as np

from accountant import GaussianLoss, PoissonSampled, Tight
from benchmarks.measure import beside
from mechanisms.base.marked_table import markdown_table

SETTINGS, PEER_SECONDS, PEER_BYTES = 200, 12, 3 * 2**30
RANGES = ((1e-6, 1.0), (0.1, 50.0), (1.0, 1e6), (1e-12, 1e-3))
TYPICAL = (
    (0.001, 0.004, 0.01, 0.02, 0.05, 0.1),
    (0.6, 0.8, 1.0, 1.3, 2.0, 4.0),
    (500, 2_000, 10_000, 40_000),
    (1e-5, 1e-6, 1e-8),
)
TYPICAL_SETTINGS = 30
RANDOM_SETTINGS, RANDOM_SEED, RANDOM_NOISE = 120, 41, (0.5, 20.0)
MANY_STEPS = 500  # from here on the ratio is given again
AIMS = {"1 step": 1e-8, "2 to 19 steps": 1e-6, "20 steps and more": 1e-8}


@dataclass(frozen=True)
class Setting:
    """Training as accountants see it."""

    rate: float
    noise: float
    steps: int
    delta: float

    @property
    def plan(self):
        """What `Tight` is asked."""
        return self.steps * PoissonSampled(GaussianLoss(1 / self.noise), self.rate)

    @property
    def length(self):
        """The class of its number of steps."""
        return list(AIMS)[(self.steps > 1) + (self.steps > 19)]

    def __str__(self):
        return (f"rate {self.rate:.3g}, noise {self.noise:.3g}, {self.steps:,} steps, "
                f"delta {self.delta:.1g}")  # fmt: skip


def grid(count=SETTINGS):
    """The first settings of the sequence of Roberts: multiples of powers of 1/g, g^5 = g + 1."""
    g = 1.1673039782614187
    for k in range(1, count + 1):
        shares = [(0.5 + k * g**-j) % 1 for j in (1, 2, 3, 4)]
        rate, noise, steps, delta = (
            math.exp(math.log(low) + share * math.log(high / low))
            for share, (low, high) in zip(shares, RANGES, strict=True)
        )
        yield Setting(rate, noise, max(round(steps), 1), delta)


def typical(count=TYPICAL_SETTINGS):
    """Some settings of a lattice of common ones."""
    every = list(itertools.product(*TYPICAL))
    return [Setting(*one) for one in random.Random(1).sample(every, count)]


def ours(setting):
    """Processor seconds of the first answer, and the certificate."""
    plan = setting.plan
    start = time.process_time()
    found = Tight().certify(plan, setting.delta)
    return time.process_time() - start, found


def relative_width(found):
    return 0.0 if found.width == 0 else found.width / found.upper


def peer_epsilon(setting):
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant()
    event = dp_event.PoissonSampledDpEvent(setting.rate, dp_event.GaussianDpEvent(setting.noise))
    accountant.compose(event, setting.steps)
    return accountant.get_epsilon(setting.delta)


def _answer(pipe, setting):
    import dp_accounting.pld.pld_privacy_accountant  # noqa: F401 - imports are not its work

    resource.setrlimit(resource.RLIMIT_AS, (PEER_BYTES, PEER_BYTES))
    start = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (start + PEER_SECONDS, start + PEER_SECONDS + 1))
    begun = time.process_time()
    epsilon = peer_epsilon(setting)
    pipe.send((time.process_time() - begun, float(epsilon)))


def peer(setting):
    """Processor seconds and epsilon of dp-accounting's default, or None beyond the limits."""
    mine, other = multiprocessing.get_context("fork").Pipe(duplex=False)
    one = multiprocessing.get_context("fork").Process(target=_quietly, args=(other, setting))
    one.start()
    other.close()
    try:
        return mine.recv()
    except EOFError:
        return None
    finally:
        one.join()


def _quietly(pipe, setting):
    import contextlib
    import os
    import warnings

    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):
        _answer(pipe, setting)


def error_of(epsilon, found):
    """Signed and relative: 0 inside the certificate."""
    if found.lower <= epsilon <= found.upper:
        return 0.0
    end = found.upper if epsilon > found.upper else found.lower
    return epsilon / end - 1 if end else math.inf


def quantiles(values):
    """Median, 90 % and worst."""
    return [float(np.quantile(values, share, method="higher")) for share in (0.5, 0.9, 1.0)]


def certified(settings):
    """Rows of setting, seconds and certificate, and lines about those that failed."""
    rows, failed = [], []
    for setting in settings:
        try:
            rows.append((setting, *ours(setting)))
        except Exception as error:
            failed.append(f"  failed: {setting}: {error!r}")
    return rows, failed


def report_ours(rows):
    """Lines of times and widths."""
    times = [1e3 * seconds for _, seconds, _ in rows]
    print(f"{len(rows)} settings: processor time, median, 90 %, worst (aims 10 and 300 ms): "
          + ", ".join(f"{one:.1f} ms" for one in quantiles(times)))  # fmt: skip
    for length, aim in AIMS.items():
        widths = [relative_width(f) for s, _, f in rows if s.length == length]
        if widths:
            wide = sum(one > aim for one in widths)
            print(f"  {length}: {len(widths)} settings, width median, 90 %, worst: "
                  + ", ".join(f"{one:.1e}" for one in quantiles(widths))
                  + f"; {wide} above {aim:.0e}")  # fmt: skip
    for title, key in (
        ("slowest", lambda row: row[1]),
        ("widest", lambda row: relative_width(row[2])),
    ):
        for setting, seconds, found in sorted(rows, key=key)[-5:][::-1]:
            print(f"  {title}: {setting}: [{found.lower:.8g}, {found.upper:.8g}], "
                  f"width {relative_width(found):.1e}, {1e3 * seconds:.1f} ms, {found.engine}")  # fmt: skip


def report_peer(rows, wanted):
    """Lines of the peer's time and error beside ours."""
    chosen = rows[:: max(len(rows) // wanted, 1)] if wanted else []
    answers = [(row, peer(row[0])) for row in chosen]
    answered = [(row, one) for row, one in answers if one and math.isfinite(one[1])]
    print(f"dp-accounting's default: {len(answered)} of {len(chosen)} settings answered within "
          f"{PEER_SECONDS} s of a processor and {PEER_BYTES >> 30} GiB")  # fmt: skip
    if not answered:
        return
    ratios = {row[0]: one[0] / row[1] for row, one in answered}
    errors = [abs(error_of(one[1], row[2])) for row, one in answered]
    low, middle, high = np.quantile(list(ratios.values()), (0, 0.5, 1))
    print(f"  its time: median {beside(middle, 1, 'Tight')} (aim 40), least "
          f"{beside(low, 1, 'Tight')}, most {beside(high, 1, 'Tight')}")  # fmt: skip
    print("  its error against the certificate: median, 90 %, worst: "
          + ", ".join(f"{one:.1e}" for one in quantiles(errors)))  # fmt: skip
    right = [(row, one) for row, one in answered if abs(error_of(one[1], row[2])) < 1e-3]
    if right:
        middle = float(np.median([ratios[row[0]] for row, _ in right]))
        print(f"  where it answers to 1e-3: {len(right)} settings, median "
              f"{beside(middle, 1, 'Tight')}")  # fmt: skip
    slower = [(row, one) for row, one in right if one[0] < row[1]]
    print(f"  quicker than Tight where it answers to 1e-3: {len(slower)} settings (aim 0)")
    for row, one in slower:
        print(f"    {row[0]}: {1e3 * one[0]:.1f} ms, ours {1e3 * row[1]:.1f} ms")


def report_typical(count, with_peer):
    """A table of common settings with the peer beside; the lines of those that failed."""
    rows, failed = certified(typical(count))
    times = [1e3 * seconds for _, seconds, _ in rows]
    print(f"{len(rows)} common settings: processor time, median, 90 %, worst: "
          + ", ".join(f"{one:.1f} ms" for one in quantiles(times)))  # fmt: skip
    ratios, cells = {}, []
    for setting, seconds, found in rows:
        other = peer(setting) if with_peer else None
        answered = other is not None and math.isfinite(other[1])
        if answered:
            ratios[setting] = other[0] / seconds
        cells.append(
            (f"{setting.rate:g}", f"{setting.noise:g}", f"{setting.steps:,}",
             f"{setting.delta:.0e}", f"{found.upper:.6g}", f"{relative_width(found):.1e}",
             f"{1e3 * seconds:.1f} ms", f"{1e3 * other[0]:.0f} ms" if answered else "?",
             f"{ratios[setting]:.3g}" if answered else "?",
             f"{error_of(other[1], found):+.1e}" if answered else "?")
        )  # fmt: skip
    head = ("rate", "noise", "steps", "delta", "epsilon", "width", "time", "peer", "ratio", "error")
    print(markdown_table(head, cells), end="")
    if ratios:
        low, middle, high = np.quantile(list(ratios.values()), (0, 0.5, 1))
        print(f"  dp-accounting's time: median {beside(middle, 1, 'Tight')} (aim 40), least "
              f"{beside(low, 1, 'Tight')}, most {beside(high, 1, 'Tight')}")  # fmt: skip
    print("\n".join(failed) or "  every setting was answered")
    return failed


def random_settings(count=RANDOM_SETTINGS):
    """Settings drawn from the whole ranges, with noise as it is used."""
    rng, ranges = np.random.default_rng(RANDOM_SEED), (RANGES[0], RANDOM_NOISE, *RANGES[2:])
    for _ in range(count):
        rate, noise, steps, delta = (
            math.exp(rng.uniform(math.log(low), math.log(high))) for low, high in ranges
        )
        yield Setting(rate, noise, max(round(steps), 1), delta)


def report_random(count):
    """Ratios of times in this process; where the peer is quicker, how far its answer is off."""
    rows = []
    for setting in random_settings(count):
        seconds, found = ours(setting)
        start = time.process_time()
        epsilon = float(peer_epsilon(setting))
        ratio = (time.process_time() - start) / seconds
        rows.append((ratio, abs(error_of(epsilon, found)), setting))
    every = np.array([ratio for ratio, _, _ in rows])
    long = np.array([ratio for ratio, _, setting in rows if setting.steps >= MANY_STEPS])
    right = np.array([ratio for ratio, error, _ in rows if error < 1e-2])
    print(f"{count} random settings, noise {RANDOM_NOISE[0]:g} to {RANDOM_NOISE[1]:g}, both in one process, "
          "first answers")  # fmt: skip
    for name, ratios in (
        ("all (aims 6 and 1)", every),
        (f"from {MANY_STEPS} steps on", long),
        ("where the peer answers to 1e-2", right),
    ):
        if ratios.size:
            print(f"  {name}: {ratios.size} settings, the peer takes {np.median(ratios):.3g} times "
                  f"our time (median), {ratios.min():.3g} at least")  # fmt: skip
    quicker = [(error, setting) for ratio, error, setting in rows if ratio < 1]
    errors = sorted(error for error, _ in quicker)
    about = f", whose answers are off by {errors[0]:.1e} at least" if quicker else ""
    print(f"  the peer is quicker: {len(quicker)} settings{about}")


def main():
    """Print the grid, and exit with 1 where a setting had no answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the script works")
    parser.add_argument("--settings", type=int, default=SETTINGS, metavar="N")
    parser.add_argument("--peer", type=int, default=40, metavar="N", help="settings the peer gets")
    given = parser.parse_args()
    count, wanted, others = given.settings, given.peer, TYPICAL_SETTINGS
    if given.quick:
        count, wanted, others = 4, 1, 2
    Tight().certify(Setting(0.1, 2.0, 30, 1e-5).plan, 1e-5)  # what is imported once
    rows, failed = certified(grid(count))
    report_ours(rows)
    print("\n".join(failed) or "  every setting was answered")
    report_peer(rows, wanted)
    more = report_typical(others, wanted > 0)
    if wanted:
        report_random(RANDOM_SETTINGS if not given.quick else 2)
    return 1 if failed or more else 0


if __name__ == "__main__":
    raise SystemExit(main())
