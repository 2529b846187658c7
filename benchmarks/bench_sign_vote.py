"""DPVote's server: from all machines' votes, or messages, to private signs, against one pass."""

import resource
import time

import numpy as np

from accountant import Ledger
from algorithms.voting.sign_vote import SignVote
from algorithms.voting.vote_collection import VoteCollector
from algorithms.voting.vote_encoding import pack_vote

MACHINES, FEATURES, SELECT, SIGNALS = 10_000, 100_000, 20, 10


def seconds(work, repeats=3):
    """(median seconds of a few repeats, the last result)."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), result


def peak_memory_mib():
    """Greatest memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def a_vote(rng):
    """Nulls vote -1, 0, 1 with probability 1/4, 1/2, 1/4; the signals with 1."""
    # two random bits a feature: their difference
    bits = rng.integers(0, 4, FEATURES, dtype=np.int8)
    vote = (bits & 1) - (bits >> 1)
    vote[:SIGNALS] = 1
    return vote


def main():
    rng = np.random.default_rng(0)
    messages = [pack_vote(a_vote(rng)) for _ in range(MACHINES)]
    before = peak_memory_mib()

    def opened():
        box = VoteCollector(MACHINES)
        for machine, message in enumerate(messages):
            box.receive(machine, message)
        return box.read_votes(FEATURES)

    opening, (votes, report) = seconds(opened, 1)
    print(f"{report} ({sum(report.bytes) / MACHINES / FEATURES * 8:.2f} bits a vote)")
    print(f"messages to votes: {opening:.2f} s")

    # the physical limit: every byte of the votes is read once
    limit, _ = seconds(lambda: np.bitwise_or.reduce(votes.reshape(-1).view(np.uint64)))
    for form in ("calibrated", "published"):
        model = SignVote(1.0, 1e-3, SELECT, form=form)
        planning, plan = seconds(lambda model=model: model.plan(votes.shape), 1)
        step, signs = seconds(lambda model=model, plan=plan: model.run(Ledger(votes, plan, rng=1)))
        right = np.count_nonzero(signs[:SIGNALS] == 1), np.count_nonzero(signs[SIGNALS:])
        print(f"{form:10} server step {step:.2f} s (aim 2), {step / limit:.1f} x one pass over the "
              f"votes ({limit:.3f} s); plan {planning:.2f} s; {right[0]} of {SIGNALS} right, {right[1]} wrong")  # fmt: skip
    print(
        f"peak memory {peak_memory_mib():.2f} GiB (aim 2), {before:.2f} GiB before votes were unpacked"
    )


if __name__ == "__main__":
    main()
