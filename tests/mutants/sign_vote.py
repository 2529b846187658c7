"""Wrong sign votes, and the runs that convict them."""

import numpy as np

from algorithms.voting.peeling import (
    SIGNS,
    RemainingStability,
    VoteCounter,
    count_votes,
    majority_signs,
    peeling_and_sign_plan,
    peeling_stage,
)
from algorithms.voting.sign_vote import SignVote
from algorithms.voting.vote_collection import VoteCollector
from tests.laws.algorithms import Run

VOTES = np.zeros((21, 5), dtype=np.int8)
VOTES[:12, :2], VOTES[:9, 2], VOTES[:11, 3] = 1, -1, -1
NEIGHBOUR = VOTES.copy()
NEIGHBOUR[0] = [-1, -1, 1, 1, 1]  # one machine flips its votes, and votes on the last feature


class SmallSensitivity(SignVote):
    """Takes the noise for a machine that moves scores by an eighth of what it can."""

    def plan(self, shape):
        peel, signs = super().plan(shape).part.parts
        small = peeling_stage(peel.part.scale / 8, peel.count, peel.part.noise)
        return peeling_and_sign_plan(small, signs.part.scale / 8)


class VotesCountedFourTimes(SignVote):
    """Counts a vote for a sign four times."""

    def run(self, ledger):
        tally, found = VoteCounter(), np.zeros(ledger.shape[1], dtype=np.int8)
        peel, signs = ledger.plan.part.parts
        left = np.arange(ledger.shape[1])
        for _ in range(peel.count):
            of = left
            at = ledger.release(
                peel.part, lambda v, of=of: 4 * tally.stability(v)[of], shape=len(of)
            )
            left = np.delete(left, at)
        for at in np.setdiff1d(np.arange(found.size), left):
            drawn = ledger.release(signs.part, lambda v, at=at: 4 * tally.utilities(v, at), shape=3)
            found[at] = SIGNS[int(drawn)]
        return found


class ReleasesTrueMajority(SignVote):
    """Draws signs, and returns the majority in their place."""

    def run(self, ledger):
        return np.where(super().run(ledger) != 0, majority_signs(ledger._data), 0)


class SkipsFeaturesWithoutVotes(SignVote):
    """Peels only features that some machine voted on, which is private."""

    def run(self, ledger):
        left = np.flatnonzero(sum(count_votes(ledger._data)))
        peel, _ = ledger.plan.part.parts
        for _ in range(peel.count):
            left = np.delete(
                left,
                ledger.release(peel.part, RemainingStability(VoteCounter(), left), shape=len(left)),
            )
        return left


class StopsAtFirstTie(SignVote):
    """Draws no more signs once a selected feature has no majority."""

    def run(self, ledger):
        peel, signs = ledger.plan.part.parts
        tally, left, found = VoteCounter(), np.arange(ledger.shape[1]), []
        for _ in range(peel.count):
            at = int(ledger.release(peel.part, RemainingStability(tally, left), shape=len(left)))
            found.append(int(left[at]))
            left = np.delete(left, at)
        for at in found:
            if tally.stability(ledger._data)[at] < 0:
                break
            ledger.release(signs.part, lambda v, at=at: tally.utilities(v, at), shape=3)
        return np.zeros(ledger.shape[1])


class AddsSecondVote(VoteCollector):
    """Adds a machine's second vote to its first."""

    def receive(self, machine, message):
        if self._messages[machine] is not None:
            self._messages.append(message)
            self._fates.append(0)
            self._bytes.append(len(message))
            return
        super().receive(machine, message)


def run_of(kind, epsilon, delta):
    """A run in which one machine changes its votes."""
    return Run(kind(epsilon, delta, 3), VOTES, NEIGHBOUR)


PURE, HONEST = run_of(SignVote, 1.0, 0.0), run_of(SignVote, 9.0, 1e-3)
LOSSES = {
    mutant.__name__: (run_of(mutant, 1.0, 0.0), PURE)
    for mutant in (SmallSensitivity, VotesCountedFourTimes)
}
LEAKS = {"ReleasesTrueMajority": (run_of(ReleasesTrueMajority, 9.0, 1e-3), HONEST)}
PLANS = {
    mutant.__name__: (run_of(mutant, 9.0, 1e-3), HONEST)
    for mutant in (SkipsFeaturesWithoutVotes, StopsAtFirstTie)
}
