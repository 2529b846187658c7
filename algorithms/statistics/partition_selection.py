"""The best selection of keys within a target (epsilon, delta), for persons with several keys.

`PartitionSelection` keeps a key with a probability that grows with the number of persons who have
it; each key has an epsilon and a delta of its own.  Here these two are chosen so that all keys of a
person together cost at most the target, and as few keys as possible are lost.

References: Desfontaines, Voss, Gipson & Mandayam (2022); Kairouz, Oh & Viswanath (2015).
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

import numpy as np

from accountant.domains import POSITIVE, POSITIVE_DELTA, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics.rounding import round_up
from accountant.planning.calibration import calibrate
from accountant.plans.adjacency import RECORD_RELATIONS, Adjacency, check_relation
from mechanisms.partition_selection import MOST_KEYS, PartitionSelection

# Shares of delta that the deltas of the keys are tried with.  With the rest of delta the epsilons
# of the keys may add up to more than the target.
SHARES = (0.3, 0.6, 0.8, 0.9)


def best_partition_selection(
    epsilon: float, delta: float, keys: int = 1, relation: str = Adjacency.ADD_REMOVE
) -> PartitionSelection:
    """Return the selection of keys that loses fewest keys at a target.

    Parameters
    ----------
    epsilon : float
        Target epsilon, positive, in nats.
    delta : float
        Target delta, in (0, 1).
    keys : int
        How many keys a person holds, at most.
    relation : {"add-remove", "replace-one"} or Adjacency
        How neighbours differ by a person; a person who is replaced moves twice as many keys.

    Returns
    -------
    PartitionSelection
        A mechanism that costs at most the target.

    Raises
    ------
    ParameterError
        If an argument is out of range.

    References
    ----------
    Desfontaines, Voss, Gipson & Mandayam (2022).

    Examples
    --------
    >>> from algorithms import best_partition_selection
    >>> best_partition_selection(1.0, 1e-6)
    PartitionSelection(key_epsilon=1.0, key_delta=1e-06)
    >>> best_partition_selection(1.0, 1e-6, keys=20).key_epsilon > 1 / 20
    True
    """
    neighbours = check_relation("relation", relation, RECORD_RELATIONS)
    moved = IntegerRange(1, MOST_KEYS // 2).check("keys", keys)
    moved *= 2 if neighbours is Adjacency.REPLACE_ONE else 1
    target = POSITIVE.check("epsilon", epsilon), POSITIVE_DELTA.check("delta", delta)
    return _best(*target, moved)


@lru_cache(maxsize=256)
def _best(epsilon: float, delta: float, keys: int) -> PartitionSelection:
    """Return the best of several selections that cost at most the target.

    For the first the epsilons of the keys add up to the target, and so do the deltas.  For each
    other one a share of delta is given to the keys, and their epsilon is calibrated to the target.
    """
    if keys == 1:
        return PartitionSelection(epsilon, delta)
    # delta / keys is rounded down.  The keys together lose at most the sum of their deltas.
    delta_each = delta / keys * (1 - 1e-12)
    candidates = [PartitionSelection(epsilon / round_up(float(keys)), delta_each, keys)]
    for share in SHARES:
        with suppress(ParameterError):  # the epsilon of a key may be out of range

            def plan_of(scale: float, share: float = share) -> PartitionSelection:
                return PartitionSelection(1 / scale, share * delta_each, keys)

            scale = calibrate(plan_of, epsilon=epsilon, delta=delta)
            candidates.append(plan_of(scale))
    return min(candidates, key=keys_lost)


def keys_lost(selection: PartitionSelection) -> float:
    """Return the expected number of lost keys where 1, 2, 3, ... people have one key each.

    This measure decides which selection is best.
    """
    count, expected_loss, start = 1024, 0.0, 1
    while True:
        missed = 1 - selection.keep_probability(np.arange(start, start + count))
        expected_loss += float(missed.sum())
        if missed[-1] == 0:
            return expected_loss
        start += count
