"""Floats without privacy: rounding, logarithms, quadrature, searches, sums of exponentials."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
