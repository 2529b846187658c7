"""Figure 2 of Liu, Tu, Mao & Chen (2022): signs of a sparse mean against machines."""

from charts import main
from common import Grid, Setting
from vote_charts import chart
from votes import MeanStudy

CHART = chart(
    "vote_figure2",
    "Figure 2. Signs of a sparse mean: more machines",
    MeanStudy(),
    full=Grid(Setting(200, 10, 1.0), (50, 100, 200, 400, 600, 800, 1200), {}),
    quick=Grid(Setting(200, 10, 1.0), (100, 200, 1200), {}),
)

if __name__ == "__main__":
    main(CHART)
