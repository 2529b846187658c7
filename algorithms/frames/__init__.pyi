"""The public names; `lazy_loader` reads where each one lies, and loads it when asked for."""

from .answer import Answer as Answer
from .column_kinds import Category as Category
from .column_kinds import Flag as Flag
from .column_kinds import Integer as Integer
from .column_kinds import Number as Number
from .conditions import Condition as Condition
from .conditions import col as col
from .queries import FrameQuery as FrameQuery
from .schema import Schema as Schema
from .statistics import contingency as contingency
from .statistics import count as count
from .statistics import histogram as histogram
from .statistics import mean as mean
from .statistics import sum_ as sum_
from .statistics import variance as variance
