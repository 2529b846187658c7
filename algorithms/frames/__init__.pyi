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
from .schema import Schema as Schema
from .statistics.ranks import median as median
from .statistics.ranks import quantile as quantile
from .statistics.ranks import quantiles as quantiles
from .statistics.ranks import top_k as top_k
from .statistics.sums import count as count
from .statistics.sums import mean as mean
from .statistics.sums import sum_ as sum_
from .statistics.sums import variance as variance
from .statistics.tables import contingency as contingency
from .statistics.tables import histogram as histogram
from .top_query import TopQuery as TopQuery
