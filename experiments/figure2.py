"""Figure 2 of Wang & Xu (2021): error of LabelIHT (Algorithm 2) against users."""

from command import main
from common import Figure
from regression import LABEL_FULL, LABEL_QUICK, LabelStudy

FIGURE = Figure(
    "figure2",
    "Figure 2. LabelIHT: labels private, (ε, 0.001)-LDP, y = <x, θ> + noise",
    LabelStudy(),
    full=LABEL_FULL,
    quick=LABEL_QUICK,
)

if __name__ == "__main__":
    main(FIGURE)
