"""Frank-Wolfe on sparse text against the same rounds on the dense form of the same data."""

import time
from pathlib import Path

import numpy as np
from scipy import sparse

from algorithms.frank_wolfe.private_lasso import PrivateLasso
from algorithms.frank_wolfe.private_logistic_lasso import PrivateLogisticLasso

RCV1 = Path(__file__).parents[2] / "shared" / "data" / "rcv1_subset" / "rcv1_subset.npz"
ROUNDS, AIM = 100, 20


def documents():
    """RCV1 where it is at hand, else as many random documents."""
    if RCV1.exists():
        found = np.load(RCV1)
        matrix = sparse.csr_matrix(
            (found["data"].astype(float), found["indices"], found["indptr"]),
            shape=tuple(found["shape"]),
        )
        return "rcv1", matrix, found["label"].astype(float)
    rng = np.random.default_rng(0)
    matrix = sparse.random(1747, 47236, 136_655 / (1747 * 47236), "csr", rng=rng)
    return "random", matrix, rng.choice([-1.0, 1.0], 1747)


def seconds_a_round(estimator, data, labels):
    start = time.perf_counter()
    estimator.fit(data, labels)
    return (time.perf_counter() - start) / estimator.rounds_


def main():
    name, matrix, labels = documents()
    dense = matrix.toarray()
    print(f"{name}: {matrix.shape[0]:,} x {matrix.shape[1]:,}, {matrix.nnz:,} non-zeros, "
          f"{ROUNDS} rounds, Gumbel law, whole fits")  # fmt: skip
    for cls in (PrivateLasso, PrivateLogisticLasso):
        for epsilon in (1.0, 10.0, 1000.0):
            made = cls(epsilon, 1e-6, radius=10.0, rounds=ROUNDS, random_state=0)
            made.plan(matrix.shape)  # the calibration, which both share, is remembered
            thin = seconds_a_round(made, matrix, labels)
            thick = seconds_a_round(made, dense, labels)
            print(f"  {cls.__name__:20} epsilon {epsilon:6g}: sparse {thin * 1e3:6.2f} ms a round, "
                  f"dense {thick * 1e3:6.1f} ms: {thick / thin:5.0f} x (aim {AIM})")  # fmt: skip
    made = PrivateLasso(1.0, 1e-6, radius=10.0, rounds=10 * ROUNDS, random_state=0)
    made.plan(matrix.shape)
    print(f"  sparse PrivateLasso, {10 * ROUNDS} rounds: "
          f"{seconds_a_round(made, matrix, labels) * 1e3:.2f} ms a round")  # fmt: skip


if __name__ == "__main__":
    main()
