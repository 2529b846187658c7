"""The public names; `lazy_loader` reads where each one lies, and loads it when asked for."""

from .answer import Answer as Answer
from .column_kinds import Category as Category
from .column_kinds import Flag as Flag
from .column_kinds import Integer as Integer
from .column_kinds import Key as Key
from .column_kinds import Number as Number
from .conditions import Condition as Condition
from .conditions import col as col
from .listing import ListedAnswer as ListedAnswer
from .quantile_query import QuantileQuery as QuantileQuery
from .queries import FrameQuery as FrameQuery
from .ranked_statistics import median as median
from .ranked_statistics import quantile as quantile
from .ranked_statistics import quantiles as quantiles
from .ranked_statistics import top_k as top_k
from .regression.answer import RegressionAnswer as RegressionAnswer
from .regression.query import RegressionQuery as RegressionQuery
from .regression.query import regression as regression
from .schema import Schema as Schema
from .statistics import contingency as contingency
from .statistics import count as count
from .statistics import histogram as histogram
from .statistics import mean as mean
from .statistics import sum_ as sum_
from .statistics import variance as variance
from .top_query import TopQuery as TopQuery
