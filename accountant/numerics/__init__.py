"""Numerics: rounding, logarithms, quadrature, searches and sums of exponentials, without privacy.

The room knows no loss and no plan. Bounds on the error stand next to each function, and results
are rounded in the direction its docstring states. It imports at most `errors`; `plans` and every
room above may import it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
