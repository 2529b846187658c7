"""Numbers of docs/sign-votes.md that no figure shows: errata E12, E13, E14, and the threshold."""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from charts import over_seeds
from common import Setting
from vote_charts import Scores, methods
from votes import DELTA, RECORDS, SELECT, MeanStudy, RegressionStudy

from accountant.accountants.tight import Tight
from algorithms import SignVote
from algorithms.voting.machine_votes import lasso_signs, threshold_rule
from algorithms.voting.vote_counts import VoteCounter, majority_signs
from audits.papers.sign_votes import printed_noisy_threshold, printed_peeling, printed_votes

BASE = Setting(200, 10, 1.0)
MACHINES, LASSOS = (200, 1200), 100


class Thresholded(MeanStudy):
    """Machines that vote at another threshold."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold


def thresholds(machines: int) -> dict[str, float]:
    """What a machine may compare its means to."""
    rule = threshold_rule(machines, RECORDS, BASE.features, SELECT, BASE.epsilon, DELTA)
    least = math.sqrt(math.log(BASE.features) / (machines * RECORDS))
    return {"sqrt(ln p / N)": least, "the figures'": MeanStudy.threshold, "the rule": rule}


def voted(machines: int, threshold: float, seed: int) -> dict[str, Scores]:
    """Scores of both forms."""
    study = Thresholded(threshold)
    drawn = study.sample(BASE, machines, seed)
    return {one.name: one.error(BASE, drawn, seed) for one in methods(study)[1:3]}


def flips() -> tuple[int, int]:
    """Stability of four votes for and one against, and how many votes change the majority."""
    votes = np.array([[1], [1], [1], [1], [-1]], dtype=np.int8)
    changed = next(k for k in range(6) if majority_signs(np.vstack([-votes[:k], votes[k:]])) != 1)
    return int(VoteCounter().stability(votes)[0]), changed


def same_votes() -> int:
    """Machines whose Lasso votes the same at half the figures' penalty."""
    drawn = RegressionStudy().sample(BASE, LASSOS, 0)
    again = [lasso_signs(data, RegressionStudy.threshold / 2, SELECT)
             for data in zip(*drawn.data, strict=True)]  # fmt: skip
    return int((drawn.votes == again).all(axis=1).sum())


def main() -> None:
    """Print them."""
    began = time.perf_counter()
    stability, needed = flips()
    print(f"E12 four votes of five: stability {stability}, {needed} changed votes end the majority")
    for select in (10, SELECT):
        whole, peel = (made(1.0, DELTA, select) for made in (printed_votes, printed_peeling))
        print(f"E13 s = {select}, claim (1, {DELTA:g}): DPVote really {whole.true_epsilon:.3f}, "
              f"its peeling alone {peel.true_epsilon:.3f}")  # fmt: skip
    for form in ("published", "calibrated"):
        peel, signs = SignVote(1.0, DELTA, SELECT, form=form).plan((400, 200)).part.parts
        print(f"noise of {form} selection {peel.part.scale:.1f}, of signs {signs.part.scale:.1f} "
              f"votes")  # fmt: skip
    for select in (10, SELECT):
        # condition (6) with gamma = 2, the least f being m
        least = 24 * math.sqrt(2 * select * math.log(2 / DELTA)) * math.log(BASE.features)
        print(f"E14 s = {select}: the theorem needs {least:,.0f} machines, all of one mind")
    print(f"local Lasso at {RegressionStudy.threshold:g} and at half of that: the same votes of "
          f"{same_votes()} of {LASSOS} machines")  # fmt: skip
    for machines in MACHINES:
        for name, threshold in thresholds(machines).items():
            found = over_seeds(partial(voted, machines, threshold), 20)
            told = "; ".join(
                f"{form}: FDR {scores[:, 0].mean():.3f}, power {scores[:, 1].mean():.3f}"
                for form, scores in found.items()
            )
            print(f"{machines:,} machines, threshold {threshold:.4f} ({name}): {told}")
    print(f"NoisyHT, s = {SELECT}, claim (1, {DELTA:g}): really "
          f"{printed_noisy_threshold(1.0, DELTA, SELECT).true_epsilon:.3f}")  # fmt: skip
    for form in ("published", "calibrated"):
        made = RegressionStudy().baseline(BASE, 400, form)
        plan = made.plan((400, RECORDS, BASE.features))
        scale, true = plan.part.part.parts[0].part.scale, Tight().epsilon(plan, DELTA)
        print(f"Cai-Wang-Zhang regression, {form}: really {true:.3f} in 20 rounds, "
              f"noise {scale:.2g} on gradient steps")  # fmt: skip
    print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
