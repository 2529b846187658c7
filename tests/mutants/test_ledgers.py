"""Wrong ledgers, each caught by a law of the ledger."""

import numpy as np
import pytest

from accountant import Ledger
from accountant.gate import Entry
from tests.laws import test_ledger as laws


class LooksFirst(Ledger):
    """Asks the query before it charges."""

    def _spend(self, mechanism, query, who):
        query(self._data)
        return super()._spend(mechanism, query, who)


class DrawsFirst(Ledger):
    """Draws noise before it knows whether it may."""

    def _spend(self, mechanism, query, who):
        self._noise.random()
        return super()._spend(mechanism, query, who)


class ForgivesFailure(Ledger):
    """Does not charge a query that failed."""

    def _spend(self, mechanism, query, who):
        query(self._data)
        return super()._spend(mechanism, query, who)


class NeverAdvances(Ledger):
    """Charges the same leaf for ever."""

    def _spend(self, mechanism, query, who):
        value = mechanism.release(query(self._data), self._noise)
        self._entries.append(Entry(mechanism, who, value))
        return value


class SharesItsAnswers(Ledger):
    """Hands out the very array that the transcript keeps, open to change."""

    def _spend(self, mechanism, query, who):
        output = super()._spend(mechanism, query, who).copy()
        self._entries[-1] = Entry(mechanism, who, output)
        return output


class OneSourceOfRandomness(Ledger):
    """Coins from the seed of the noise."""

    def __init__(self, *data, **options):
        super().__init__(*data, **options)
        self.coins = np.random.default_rng(self._noise.bit_generator.seed_seq)


CAUGHT_BY = {
    LooksFirst: laws.test_off_plan_is_refused_before_looking_or_drawing,
    DrawsFirst: laws.test_off_plan_is_refused_before_looking_or_drawing,
    ForgivesFailure: laws.test_a_failing_query_is_charged_and_recorded,
    NeverAdvances: laws.test_off_plan_is_refused_before_looking_or_drawing,
    SharesItsAnswers: laws.test_outputs_are_read_only_and_the_transcript_keeps_them,
    OneSourceOfRandomness: laws.test_coins_are_public_and_apart_from_the_noise,
}


@pytest.mark.parametrize("mutant", CAUGHT_BY, ids=lambda cls: cls.__name__)
def test_the_named_law_catches_the_ledger(mutant, monkeypatch):
    CAUGHT_BY[mutant]()
    monkeypatch.setattr(laws, "Ledger", mutant)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        CAUGHT_BY[mutant]()
