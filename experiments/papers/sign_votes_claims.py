"""Numbers of docs/sign-votes.md that no figure shows: errata E12, E13, E14, and the threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from accountant.accountants.tight import Tight
from algorithms import SignVote
from algorithms.voting.machine_votes import lasso_signs, threshold_rule
from algorithms.voting.peeling import VoteCounter, majority_signs
from audits.papers.sparse_regression import printed_noisy_threshold, printed_peeling, printed_votes
from experiments.charts import Options, over_seeds
from experiments.papers.sign_votes import BASE, Scores, methods
from experiments.papers.voting_machines import DELTA, RECORDS, SELECT, MeanStudy, RegressionStudy


def thresholds(machines: int) -> dict[str, float]:
    """What a machine may compare its means to."""
    rule = threshold_rule(machines, RECORDS, BASE.features, SELECT, BASE.epsilon, DELTA)
    least = math.sqrt(math.log(BASE.features) / (machines * RECORDS))
    return {"sqrt(ln p / N)": least, "the figures'": MeanStudy.threshold, "the rule": rule}


def voted(machines: int, threshold: float, seed: int) -> dict[str, Scores]:
    """Scores of both forms."""
    study = MeanStudy(threshold)
    drawn = study.sample(BASE, machines, seed)
    both = {name: method for name, method in methods(study).items() if name.startswith("DPVote")}
    return {name: method(BASE, drawn, seed) for name, method in both.items()}


def flips() -> tuple[int, int]:
    """Stability of four votes for and one against, and how many votes change the majority."""
    votes = np.array([[1], [1], [1], [1], [-1]], dtype=np.int8)
    changed = next(k for k in range(6) if majority_signs(np.vstack([-votes[:k], votes[k:]])) != 1)
    return int(VoteCounter().stability(votes)[0]), changed


def same_votes(machines: int) -> int:
    """Machines whose Lasso votes the same at half the figures' penalty."""
    drawn = RegressionStudy().sample(BASE, machines, 0)
    again = [lasso_signs(data, RegressionStudy.threshold / 2, SELECT)
             for data in zip(*drawn.data, strict=True)]  # fmt: skip
    return int((drawn.votes == again).all(axis=1).sum())


def claims(options: Options) -> Iterator[str]:
    """A line for each number."""
    stability, needed = flips()
    yield f"E12 four votes of five: stability {stability}, {needed} changed votes end the majority"
    for select in (10, SELECT):
        whole, peeling = (made(1.0, DELTA, select) for made in (printed_votes, printed_peeling))
        yield (f"E13 s = {select}, claim (1, {DELTA:g}): DPVote really {whole.true_epsilon:.3f}, "
               f"its peeling alone {peeling.true_epsilon:.3f}")  # fmt: skip
    for form in ("published", "calibrated"):
        plan: Any = SignVote(1.0, DELTA, SELECT, form=form).plan((400, 200))
        peel, signs = plan.part.parts
        yield (f"noise of {form} selection {peel.part.scale:.1f}, of signs {signs.part.scale:.1f} "
               f"votes")  # fmt: skip
    for select in (10, SELECT):
        # condition (6) with gamma = 2, the least f being m
        least = 24 * math.sqrt(2 * select * math.log(2 / DELTA)) * math.log(BASE.features)
        yield f"E14 s = {select}: the theorem needs {least:,.0f} machines, all of one mind"
    lassos = 10 if options.quick else 100
    yield (f"local Lasso at {RegressionStudy.threshold:g} and at half of that: the same votes of "
           f"{same_votes(lassos)} of {lassos} machines")  # fmt: skip
    for machines in (200,) if options.quick else (200, 1200):
        for name, threshold in thresholds(machines).items():
            found = over_seeds(partial(voted, machines, threshold), options.seeds)
            each = "; ".join(
                f"{form}: FDR {scores[:, 0].mean():.3f}, power {scores[:, 1].mean():.3f}"
                for form, scores in found.items()
            )
            yield f"{machines:,} machines, threshold {threshold:.4f} ({name}): {each}"
    yield (f"NoisyHT, s = {SELECT}, claim (1, {DELTA:g}): really "
           f"{printed_noisy_threshold(1.0, DELTA, SELECT).true_epsilon:.3f}")  # fmt: skip
    for form in ("published", "calibrated"):
        plan = RegressionStudy().baseline(BASE, 400, form).plan((400, RECORDS, BASE.features))
        scale, true = plan.part.part.parts[0].part.scale, Tight().epsilon(plan, DELTA)
        yield (f"Cai-Wang-Zhang regression, {form}: really {true:.3f} in 20 rounds, "
               f"noise {scale:.2g} on gradient steps")  # fmt: skip


FIGURES = {"sign-votes-claims": claims}
