"""A bare function under audit: learn a rule, test it on fresh runs, learn a better one, test on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from audits.attacks.evaluation import Tested, count_guesses, guessed
from audits.claims.findings import Guesses, Point, together
from audits.classifiers.decision_rules import Guesser
from audits.classifiers.objective import Aim
from audits.classifiers.training import Learned, learn
from audits.runs.parallel_runs import gathered
from audits.runs.release_functions import Draw, joined
from audits.statistics.combined_tests import schedule

Outputs = tuple[Any, Any]


def black_box(
    draw: Draw,
    pair: tuple[Any, Any],
    aim: Aim,
    points: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    executor: Executor | None = None,
) -> Tested:
    """Test rules that are learned from earlier runs, each fixed before its own.

    The runs that a first rule is tested on are known when the second is learned.
    """
    blocks = schedule(aim.runs, aim.delta == 0 and not points)
    known: Outputs = gathered(draw, pair, blocks[0][0], rng, executor)
    done: list[tuple[Guesser, Guesses]] = []
    point = point_rule = None
    for block, (learned, tested) in enumerate(blocks):
        seen = len(known[0]) + len(known[1])
        if learned > seen:
            known = _with_more(known, gathered(draw, pair, learned - seen, rng, executor))
        aimed = replace(aim, runs=tested)
        found = learn(*known, aimed)
        rules = [found.rule(aimed)]
        best = _most_revealing(found, aimed, points)
        if best is not None:
            rules.append(found.rule(best))
        last = block == len(blocks) - 1
        if last:
            guesses = count_guesses(draw, pair, rules, tested, rng, executor)
        else:  # these runs are kept, to learn the next rule from
            fresh = gathered(draw, pair, tested, rng, executor)
            rule = rules[0]
            guesses = [guessed(rule, *rule.counts(*fresh), tested)]
            known = _with_more(known, fresh)
        # a rule that promises nothing would only dilute the next one's evidence
        if last or rules[0].expected.bound > 0:
            done.append((rules[0], guesses[0]))
        if best is not None and best.epsilon is not None:
            point, point_rule = Point(best.epsilon, best.delta, guesses[1]), rules[1]
    return Tested(pair, done[-1][0], together([g for _, g in done]), point, point_rule)


def _with_more(known: Outputs, more: Outputs) -> Outputs:
    return joined([known[0], more[0]]), joined([known[1], more[1]])


def _most_revealing(found: Learned, aim: Aim, points: Sequence[tuple[float, float]]) -> Aim | None:
    """The point of the claim that the learned score is expected to refute most surely."""
    aims = [
        Aim(aim.runs, delta, aim.alpha, epsilon, whole=epsilon == 0) for epsilon, delta in points
    ]
    best = max(aims, key=found.sureness, default=None)
    # the bound itself is a test at its own delta
    return None if best is None or best.delta == aim.delta else best
