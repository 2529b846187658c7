"""dp-accounting's own tests of an accountant, with `TightAccountant` in the place of its own.

They are imported from the installed package.  Where we answer what its accountant refuses, or prove
less than it says, the test is replaced by one that says so, against a number of another source.
"""

import contextlib
import functools
import inspect
import math
from unittest import mock

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution

from accountant.formats.dp_accounting import Neighbours, TightAccountant

reason = "this dp-accounting comes without its tests"
peer_tests = pytest.importorskip("dp_accounting.privacy_accountant_test", reason=reason)
pld_tests = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant_test", reason=reason)

# what its accountant refuses for an exchanged record, and the ends between which the largest loss
# is by hand.  Of a sample: (1 - q) Lap(0) + q Lap(1) against (1 - q) Lap(0) + q Lap(-1) at outcomes
# of 1 and more, and what leaving a record out and adding one cost together
SAMPLED = (math.log((0.9 + 0.1 * math.e) / (0.9 + 0.1 / math.e)), 2 * math.log(0.9 + 0.1 * math.e))
ANSWERED = {
    "LaplaceDpEvent": (2.0, 2.0),
    "DiscreteLaplaceDpEvent": (0.2, 0.2),
    "PermuteAndFlipDpEvent": (1.0, 1.0),
    "PoissonSampledDpEvent": SAMPLED,
}


def differs(reason):
    """Say of a test why it replaces the library's; `make heldout` shows it."""

    def with_reason(test):
        test.reason = reason
        return test

    return with_reason


EXCHANGED = "an exchanged record, which it refuses"


def check_largest_loss(ours, kind):
    """The epsilon at a delta of 0 lies between the ends by hand."""
    least, most = ANSWERED[kind]
    assert least * (1 - 1e-9) <= ours.get_epsilon(0.0) <= most * (1 + 1e-9)


class TestOfAnyAccountant(peer_tests.PrivacyAccountantTest):
    """What dp-accounting asks of every accountant."""

    def _make_test_accountants(self):
        return [TightAccountant(relation) for relation in Neighbours]


class TestOfItsOwnAccountant(pld_tests.PldPrivacyAccountantTest):
    """What dp-accounting asks of its `PLDAccountant`, asked of ours."""

    def setUp(self):
        super().setUp()
        self.made = []

        def make(*given):
            # its tests compare numbers of 17 to six digits after the point
            self.made.append(TightAccountant(*given[:1], width=1e-8))
            return self.made[-1]

        module = pld_tests.pld_privacy_accountant
        replaced = mock.patch.object(module, "PLDAccountant", make)
        replaced.start()
        self.addCleanup(replaced.stop)

    @differs(EXCHANGED)
    def test_poisson_subsampling_laplace_not_supported_for_replace_one(self):
        """It refuses; we answer: one record is exchanged in a sampled sum."""
        event = dp_event.PoissonSampledDpEvent(0.1, dp_event.LaplaceDpEvent(1.0))
        ours = TightAccountant(Neighbours.REPLACE_ONE).compose(event)
        check_largest_loss(ours, "PoissonSampledDpEvent")

    @differs("less is proved of truncated samples than it charges")
    def test_truncated_subsampled_gaussian_basic(self):
        """It charges a batch that is cut as an exchanged record throughout; we prove less."""
        ours, theirs = TightAccountant(), privacy_loss_distribution.identity()
        for records, count in ((4, 3), (3, 2)):
            ours.compose(dp_event.TruncatedSubsampledGaussianDpEvent(records, 0.5, 2, 1.0), count)
            one = privacy_loss_distribution.from_truncated_subsampled_gaussian_mechanism(
                records, 0.5, 2, 1.0
            )
            theirs = theirs.compose(one.self_compose(count))
        # where no batch is cut it costs less
        sampled = dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(1.0))
        uncut = TightAccountant().compose(sampled, 5).get_delta(17.90433)
        assert uncut < ours.get_delta(17.90433) < theirs.get_delta_for_epsilon(17.90433)


def refused_or_answered(test):
    """The test, which fails where we answer: then the number is checked."""

    kind = type(inspect.getclosurevars(test).nonlocals["testcase_params"][0]).__name__

    @functools.wraps(test)
    def checked(self):
        refused = functools.partial(pytest.raises, AssertionError, match="not raised")
        with refused() if kind in ANSWERED else contextlib.nullcontext():
            test(self)
        for ours in self.made if kind in ANSWERED else ():
            assert ours.neighboring_relation is Neighbours.REPLACE_ONE
            check_largest_loss(ours, kind)

    return differs(EXCHANGED)(checked) if kind in ANSWERED else checked


for name, given in list(vars(pld_tests.PldPrivacyAccountantTest).items()):
    if name.startswith("test_composition_errors_for_neighboring_relation"):
        setattr(TestOfItsOwnAccountant, name, refused_or_answered(given))
