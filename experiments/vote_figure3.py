"""Figure 3 of Liu, Tu, Mao & Chen (2022): signs of a sparse mean against epsilon."""

from charts import main
from common import Grid, Setting
from vote_charts import chart
from votes import MeanStudy

BASE = Setting(200, 10, 1.0)
CHART = chart(
    "vote_figure3",
    "Figure 3. Signs of a sparse mean: more epsilon",
    MeanStudy(),
    full=Grid(BASE, (400,), {"epsilon": (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)}),
    quick=Grid(BASE, (200,), {"epsilon": (1.0, 8.0)}),
)

if __name__ == "__main__":
    main(CHART)
