"""Figure 3 of Wang & Xu (2021): optimality gap of SparseERM (Algorithm 3) on covtype."""

from central import SHARED, CentralStudy, covtype
from command import main
from common import Figure, Grid, Setting

FIGURE = Figure(
    "figure3",
    "Figure 3. SparseERM: sparse ridge-logistic regression, (ε, δ)-DP, covtype",
    CentralStudy("figure3", covtype, SHARED / "covtype/covtype.npz"),
    full=Grid(
        Setting(54, 10, 2.0), (300, 1_000, 3_000, 10_000, 20_000),
        {"features": (14, 34, 54), "sparsity": (5, 10, 20), "epsilon": (0.5, 1.0, 2.0)},
    ),
    quick=Grid(
        Setting(20, 5, 2.0), (300, 3_000),
        {"features": (14, 20), "sparsity": (2, 5), "epsilon": (0.5, 2.0)},
    ),
)  # fmt: skip

if __name__ == "__main__":
    main(FIGURE)
