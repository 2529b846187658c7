"""How fast mechanisms draw, beside the bare draws they cannot do without, and beside peers.

Peers (opendp, multi-freq-ldpy) come with the extra `peers`; what is not installed is left out.
"""

import importlib.util
import time
import tracemalloc

import numpy as np

from accountant import Ledger, Parallel, calibrate
from benchmarks.measure import beside, least_seconds, options
from mechanisms import (
    CubeLinf,
    DiscreteGaussian,
    DiscreteLaplace,
    HadamardResponse,
    HemisphereL2,
    LocalHashing,
    PrivUnit,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from mechanisms.exact_noise.integer_noise import IntegerNoise

RNG = np.random.default_rng(0)


OPTIONS = options(__doc__)
USERS = 2_000 if OPTIONS.quick else 1_000_000  # 10 times so many of the cheapest


def print_row(name, seconds, peer, peer_seconds):
    print(f"  {name:44} {seconds * 1e3:9.1f} ms   {beside(seconds, peer_seconds, peer)}"
          f" ({peer_seconds * 1e3:.1f} ms)")  # fmt: skip


def exact_noise():
    print("exact noise: million draws a second on one core (aim 2)")
    count, ask = 2 * USERS, USERS // 10
    words = least_seconds(lambda: RNG.bytes(8 * count))
    for made, power in ((DiscreteLaplace(10.0), 1), (DiscreteGaussian(10.0), 2)):
        zeros = np.zeros(count, dtype=np.int64)
        for source in ("a seed", "the operating system's key"):
            rng = np.random.default_rng(1) if source == "a seed" else None
            seconds = least_seconds(lambda: made.release(zeros, rng))
            rate = count / seconds / 1e6
            print(f"  {made!s:44} {rate:9.1f} M/s from {source}, "
                  f"{beside(seconds, words, 'as many words of bits')}")  # fmt: skip
        if importlib.util.find_spec("opendp"):
            draws, seconds = opendp_draws(power, ask)
            peer = ask / seconds / 1e6
            print(f"    opendp {peer:.3f} M/s: {rate / peer:.0f} times fewer; its {ask:,} draws"
                  f" under our law: chi-square tail {chi_square_tail(draws, made):.3f}")  # fmt: skip
    for wide in (1e3, 1e9):
        for power in (1, 2):
            law = IntegerNoise(wide, power)
            seconds = least_seconds(lambda: law.draw(count, RNG))
            print(f"  {law!s:44} {count / seconds / 1e6:9.1f} M/s, "
                  f"{beside(seconds, words, 'as many words of bits')}")  # fmt: skip


def opendp_draws(power, count):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), (dp.l1_distance if power == 1
                                                      else dp.l2_distance)(T=int)  # fmt: skip
    maker = dp.m.make_laplace if power == 1 else dp.m.make_gaussian
    release = maker(*space, scale=10.0)
    zeros = [0] * count
    start = time.process_time()
    draws = release(zeros)
    return np.array(draws), time.process_time() - start


def chi_square_tail(draws, made):
    from scipy.stats import chi2

    k = np.arange(-400, 401)
    expected = np.exp(made.terms(k, 0)) * draws.size
    seen = np.bincount(draws + 400, minlength=801)
    kept = expected > 20
    return chi2.sf(((seen - expected)[kept] ** 2 / expected[kept]).sum(), kept.sum() - 1)


def vectors():
    n, p = USERS // 10, 100
    print(f"vectors: {n:,} users x {p} (aim: 1.5 times the normals)")
    values = RNG.normal(size=(n, p))
    values /= np.sqrt(np.square(values).sum(axis=1, keepdims=True))
    normals = least_seconds(lambda: RNG.standard_normal((n, p)), 5)
    for made in (
        calibrate(HemisphereL2, dimension=p, radius=1.0, epsilon=1.0),
        calibrate(CubeLinf, dimension=p, radius=1.0, epsilon=1.0),
        PrivUnit.optimised(p, 1.0),
    ):
        times = 5 if not isinstance(made, PrivUnit) else 1
        for name, rng in (("a seed", RNG), ("the system's key", None)):
            taken = least_seconds(lambda: made.release(values, rng), times)
            print_row(f"{type(made).__name__}, {name}", taken, "its normals", normals)
    for epsilon in (1.0, 4.0, 8.0):
        one = PrivUnit.optimised(p, epsilon)
        other = calibrate(HemisphereL2, dimension=p, radius=1.0, epsilon=epsilon)
        ratio = other.variance(values[0]) / one.variance(values[0])
        print(
            f"    epsilon {epsilon:g}: HemisphereL2 has {ratio:.2f} times the variance of PrivUnit"
        )


def labels():
    print("labels (aims: k-ary 2 times its integers, unary 2 times its bits)")
    n, k = 10 * USERS, 10
    truth = RNG.integers(0, k, n)
    made = calibrate(RandomizedResponse, k=k, epsilon=1.0)
    integers = least_seconds(lambda: RNG.integers(0, k, n))
    print_row(f"RandomizedResponse, {n:,} users", least_seconds(lambda: made.release(truth, RNG)),
         "rng.integers", integers)  # fmt: skip
    n, k = USERS // 2, 100
    truth = RNG.integers(0, k, n)
    made = UnaryEncoding.optimised(k, 1.0)
    bits = least_seconds(lambda: RNG.random((n, k)) < made.q)
    print_row(
        f"UnaryEncoding, {n:,} x {k}",
        least_seconds(lambda: made.release(truth, RNG)),
        "rng.random < q",
        bits,
    )
    print_row(
        "UnaryEncoding, packed",
        least_seconds(lambda: made.packed(truth, RNG)),
        "rng.random < q",
        bits,
    )
    for made in (
        SubsetSelection.optimised(k, 1.0),
        calibrate(HadamardResponse, k=k, epsilon=1.0),
        LocalHashing.optimised(k, 1.0),
    ):
        print_row(f"{type(made).__name__}, {n:,} users", least_seconds(lambda: made.release(truth, RNG)),
             "rng.random", least_seconds(lambda: RNG.random(n)))  # fmt: skip
    if importlib.util.find_spec("multi_freq_ldpy"):
        from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

        some = truth[:20_000].tolist()
        seconds = least_seconds(lambda: [GRR_Client(one, k, 1.0) for one in some], 1) / len(some)
        made = calibrate(RandomizedResponse, k=k, epsilon=1.0)
        ours = least_seconds(lambda: made.release(truth, RNG)) / n
        print(f"    multi-freq-ldpy k-ary {seconds * 1e6:.1f} us a user, here {ours * 1e9:.1f} ns:"
              f" {seconds / ours:,.0f} times")  # fmt: skip


def memory():
    n = 10 * USERS
    truth = RNG.integers(0, 10, n)
    made = calibrate(RandomizedResponse, k=10, epsilon=1.0)
    ledger = Ledger(truth, Parallel([made] * 100), rng=0, transcript="digest")
    tracemalloc.start()
    counts = np.zeros(10)
    for part in range(100):
        who = slice(part * n // 100, (part + 1) * n // 100)
        counts += made.decode(ledger.release_each(made, lambda rows: rows, who)) / 100
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(f"{n:,} users through release_each in 100 groups: {peak:.2f} MiB, "
          f"{beside(peak, truth.nbytes / 2**20, 'the data')}; largest error {np.abs(counts - 0.1).max():.5f}")  # fmt: skip


def main():
    exact_noise()
    vectors()
    labels()
    memory()


if __name__ == "__main__":
    main()
