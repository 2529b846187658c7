"""Correct private functions in the ways people write them; none may be found at fault."""

from __future__ import annotations

import math
import random
import secrets

import numpy as np
from numpy.random import default_rng

from accountant import GaussianLoss, Repeat
from algorithms import PrivateSum
from mechanisms import Laplace

_ = (GaussianLoss, Repeat, PrivateSum, Laplace)
