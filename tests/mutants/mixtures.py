"""Wrong nodes of sampled Gaussian noise: each takes a monkeypatch, and breaks what they cost."""

from dataclasses import replace

from accountant import SampledWithoutReplacement, TruncatedPoisson
from accountant.amplification import exchanged_record, group_privacy
from accountant.amplification.truncated_sampling import FullBatchLoss
from accountant.losses import normal_mixture
from accountant.losses.mixture_pair import MixturePair
from accountant.losses.normal_mixture import ORIGIN, Side


def exchange_as_removal(patch):
    made = exchanged_record.exchanged_loss

    def wrong(part, rate, *, part_is_exchanged):
        found = made(part, rate, part_is_exchanged=part_is_exchanged)
        return type(found)(MixturePair(found.pair.right, ORIGIN)) if rate == 0.3 else found

    patch.setattr("accountant.amplification.poisson_sampling.exchanged_loss", wrong)


def exchange_of_half_the_distance(patch):
    made = normal_mixture.side
    patch.setattr(
        exchanged_record, "side", lambda shifts, weights: made([s / 2 for s in shifts], weights)
    )


def chances_before_the_output(patch):
    made = Side.posterior
    patch.setattr(Side, "posterior", lambda self, x: made(self, 0 * x))


def group_hits_at_most_one(patch):
    made = group_privacy._hits
    patch.setattr(group_privacy, "_hits", lambda mu, rate, n: made(mu, min(n * rate, 1), min(n, 1)))


def full_batch_moves_the_sum_once(patch):
    made = FullBatchLoss.coefficients

    def at_the_last_place(self, growth):
        return made(replace(self, last_place=1.0, exchanged=0.0), growth)

    patch.setattr(FullBatchLoss, "coefficients", at_the_last_place)


def full_batch_keeps_no_record(patch):
    made = TruncatedPoisson._chances

    def cut(self):
        room, last, kept, left_out = made(self)
        return room, last, kept * 1e-9, left_out + kept * (1 - 1e-9)

    patch.setattr(TruncatedPoisson, "_chances", cut)


def share_of_others(patch):
    made = SampledWithoutReplacement.profile
    patch.setattr(
        SampledWithoutReplacement, "profile",
        lambda self, e: made(SampledWithoutReplacement(self.part, self.sample - 1, 4), e),
    )  # fmt: skip


def finite_exchange_at_half_the_rate(patch):
    made = exchanged_record._exchanged_outcomes.__wrapped__
    patch.setattr(exchanged_record, "_exchanged_outcomes", lambda part, rate: made(part, rate / 2))


MUTANTS = [
    exchange_as_removal, exchange_of_half_the_distance, chances_before_the_output,
    group_hits_at_most_one, full_batch_moves_the_sum_once, full_batch_keeps_no_record,
    share_of_others, finite_exchange_at_half_the_rate,
]  # fmt: skip
