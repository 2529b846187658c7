"""Figure 4 of Liu, Tu, Mao & Chen (2022): signs of sparse regression against machines."""

from charts import main
from common import Grid, Setting
from vote_charts import chart
from votes import RegressionStudy

CHART = chart(
    "vote_figure4",
    "Figure 4. Signs of sparse regression: more machines",
    RegressionStudy(),
    full=Grid(Setting(200, 10, 1.0), (25, 50, 100, 200, 400, 800, 1200), {}),
    quick=Grid(Setting(50, 5, 1.0), (50, 150), {}),
)

if __name__ == "__main__":
    main(CHART)
