"""Figure 5 of Liu, Tu, Mao & Chen (2022): signs of sparse regression against epsilon."""

from charts import main
from common import Grid, Setting
from vote_charts import chart
from votes import RegressionStudy

BASE = Setting(200, 10, 1.0)
CHART = chart(
    "vote_figure5",
    "Figure 5. Signs of sparse regression: more epsilon",
    RegressionStudy(),
    full=Grid(BASE, (400,), {"epsilon": (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)}),
    quick=Grid(Setting(50, 5, 1.0), (150,), {"epsilon": (1.0, 8.0)}),
)

if __name__ == "__main__":
    main(CHART)
