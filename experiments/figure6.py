"""Figure 6 of Wang & Xu (2021): Figure 2 with y = 8u + cos u (Algorithm 5)."""

from command import main
from common import Figure
from regression import LABEL_FULL, LABEL_QUICK, LabelStudy

FIGURE = Figure(
    "figure6",
    "Figure 6. LabelIHT: labels private, (ε, 0.001)-LDP, y = 8u + cos u + noise, u = <x, θ>",
    LabelStudy("8x + cos x"),
    full=LABEL_FULL,
    quick=LABEL_QUICK,
)

if __name__ == "__main__":
    main(FIGURE)
