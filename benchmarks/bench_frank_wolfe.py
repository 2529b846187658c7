"""Frank-Wolfe on sparse text against the same rounds on the dense form of the same data."""

import numpy as np
from scipy import sparse

from algorithms.frank_wolfe.private_lasso import PrivateLasso
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso
from benchmarks.measure import beside, options, seconds_of
from experiments.datasets import RCV1, SHARED

AIM = 20


def documents(quick):
    """RCV1 where it is at hand, else as many random documents."""
    if (SHARED / RCV1).is_file() and not quick:
        found = np.load(SHARED / RCV1)
        matrix = sparse.csr_matrix(
            (found["data"].astype(float), found["indices"], found["indptr"]),
            shape=tuple(found["shape"]),
        )
        return "rcv1", matrix, found["label"].astype(float)
    rng = np.random.default_rng(0)
    rows, columns, filled = (100, 2_000, 2_000) if quick else (1747, 47236, 136_655)
    matrix = sparse.random(rows, columns, filled / (rows * columns), "csr", rng=rng)
    return "random", matrix, rng.choice([-1.0, 1.0], rows)


def seconds_a_round(estimator, data, labels):
    (seconds,) = seconds_of(lambda: estimator.fit(data, labels))
    return seconds / estimator.rounds_


def main():
    given = options(__doc__, rounds=100)
    rounds = 5 if given.quick else given.rounds
    name, matrix, labels = documents(given.quick)
    dense = matrix.toarray()
    print(f"{name}: {matrix.shape[0]:,} x {matrix.shape[1]:,}, {matrix.nnz:,} non-zeros, "
          f"{rounds} rounds, Gumbel law, whole fits (aim: the dense form takes {AIM} x)")  # fmt: skip
    for cls in (PrivateLasso, PrivateLogisticLasso):
        for epsilon in (1.0, 10.0, 1000.0):
            made = cls(epsilon, 1e-6, radius=10.0, rounds=rounds, random_state=0)
            if cls is PrivateLogisticLasso:
                made.set_params(classes=[-1, 1])
            made.plan(matrix.shape)  # the calibration, which both share, is remembered
            thin = seconds_a_round(made, matrix, labels)
            thick = seconds_a_round(made, dense, labels)
            print(f"  {cls.__name__:20} epsilon {epsilon:6g}: dense {thick * 1e3:6.1f} ms a round, "
                  f"{beside(thick, thin, 'the sparse form')} ({thin * 1e3:.2f} ms)")  # fmt: skip


if __name__ == "__main__":
    main()
