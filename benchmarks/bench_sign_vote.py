"""DPVote's server: from all machines' votes, or messages, to private signs, against one pass."""

import resource

import numpy as np

from accountant import Ledger
from algorithms.voting.sign_vote import SignVote
from algorithms.voting.vote_collection import VoteCollector, pack_vote
from benchmarks.measure import beside, median_seconds, options, seconds_of

FEATURES, SELECT, SIGNALS = 100_000, 20, 10


def peak_memory_gib():
    """Greatest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def a_vote(rng, features):
    """Nulls vote -1, 0, 1 with probability 1/4, 1/2, 1/4; the signals with 1."""
    # two random bits a feature: their difference
    bits = rng.integers(0, 4, features, dtype=np.int8)
    vote = (bits & 1) - (bits >> 1)
    vote[:SIGNALS] = 1
    return vote


def main():
    given = options(__doc__, machines=4_000)
    machines, features = (50, 2_000) if given.quick else (given.machines, FEATURES)
    rng = np.random.default_rng(0)
    messages = [pack_vote(a_vote(rng, features)) for _ in range(machines)]
    before, box = peak_memory_gib(), VoteCollector(machines)

    def receive():
        for machine, message in enumerate(messages):
            box.receive(machine, message)

    (receiving,) = seconds_of(receive)
    found = []
    (reading,) = seconds_of(lambda: found.append(box.read_votes(features)))
    ((votes, report),) = found
    # the physical limit: every byte of the votes is read once
    limit = median_seconds(lambda: np.bitwise_or.reduce(votes.reshape(-1).view(np.uint64)))
    print(f"{report} ({sum(report.bytes) / machines / features * 8:.2f} bits a vote)")
    print(f"messages to votes: {receiving + reading:.2f} s, "
          f"{beside(receiving + reading, limit, 'one pass over the votes')} ({limit:.4f} s)")  # fmt: skip
    for form in ("calibrated", "published"):
        model = SignVote(1.0, 1e-3, SELECT, form=form)
        (planning,) = seconds_of(lambda model=model: model.plan(votes.shape))
        plan = model.plan(votes.shape)
        signs = model.run(Ledger(votes, plan, rng=1))
        step = median_seconds(lambda model=model, plan=plan: model.run(Ledger(votes, plan, rng=1)))
        right = np.count_nonzero(signs[:SIGNALS] == 1), np.count_nonzero(signs[SIGNALS:])
        print(f"{form:10} server step {step:.2f} s (aim 2 of 10,000 machines), "
              f"{beside(step, limit, 'one pass over the votes')}; plan {planning:.2f} s; "
              f"{right[0]} of {SIGNALS} right, {right[1]} wrong")  # fmt: skip
    print(f"peak memory {peak_memory_gib():.2f} GiB, "
          f"{beside(peak_memory_gib() * 2**30, votes.nbytes, 'the votes')}; "
          f"{before:.2f} GiB before votes were unpacked")  # fmt: skip


if __name__ == "__main__":
    main()
