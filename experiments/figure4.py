"""Figure 4 of Wang & Xu (2021): optimality gap of SparseERM (Algorithm 3) on rcv1."""

from central import SHARED, CentralStudy, rcv1
from command import main
from common import Figure, Grid, Setting

FIGURE = Figure(
    "figure4",
    "Figure 4. SparseERM: sparse ridge-logistic regression, (ε, δ)-DP, rcv1",
    CentralStudy("figure4", rcv1, SHARED / "rcv1_subset/rcv1_subset.npz"),
    full=Grid(
        Setting(200, 10, 2.0), (200, 400, 800, 1_700),
        {"features": (50, 100, 200), "sparsity": (5, 10, 20), "epsilon": (0.5, 1.0, 2.0)},
    ),
    quick=Grid(
        Setting(50, 5, 2.0), (200, 1_600),
        {"features": (20, 50), "sparsity": (2, 5), "epsilon": (0.5, 2.0)},
    ),
)  # fmt: skip

if __name__ == "__main__":
    main(FIGURE)
