"""Figure 1 of Wang & Xu (2021): error of LocalIHT (Algorithm 1) against users."""

from command import main
from common import Figure
from regression import LOCAL_FULL, LOCAL_QUICK, LocalStudy

FIGURE = Figure(
    "figure1",
    "Figure 1. LocalIHT: whole records private, ε-LDP, y = <x, θ> + noise",
    LocalStudy(),
    full=LOCAL_FULL,
    quick=LOCAL_QUICK,
)

if __name__ == "__main__":
    main(FIGURE)
