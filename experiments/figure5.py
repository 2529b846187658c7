"""Figure 5 of Wang & Xu (2021): Figure 1 with y = 8u + cos u (Algorithm 4)."""

from command import main
from common import Figure
from regression import LOCAL_FULL, LOCAL_QUICK, LocalStudy

FIGURE = Figure(
    "figure5",
    "Figure 5. LocalIHT: whole records private, ε-LDP, y = 8u + cos u + noise, u = <x, θ>",
    LocalStudy("8x + cos x"),
    full=LOCAL_FULL,
    quick=LOCAL_QUICK,
)

if __name__ == "__main__":
    main(FIGURE)
