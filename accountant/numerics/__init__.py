"""Numerics: rounding, logarithms, quadrature, searches and sums of exponentials, without privacy.

The room knows no loss and no plan. Bounds on the error stand beside each function, and results
are rounded in the direction its docstring states. Every other room of the accountant may import
it, but for `errors`, `domains`, `randomness`, `formatting` and `files`; it imports `errors` alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
