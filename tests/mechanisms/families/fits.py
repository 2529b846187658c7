"""How well reports fit their density."""

import numpy as np
from scipy.stats import chi2

from mechanisms.families.frequency_oracle import FrequencyOracle


def fit(oracle: FrequencyOracle, label: int, reports: np.ndarray) -> float:
    """Pearson's test of reports of one label."""
    outputs = oracle.support.cells(label, label).outputs
    law = np.exp(oracle.log_density(outputs, label)) * len(reports)
    if outputs.ndim == 2:  # rows as the digits of a number
        digits = (1 + int(outputs.max())) ** np.arange(outputs.shape[1])
        outputs, reports = outputs @ digits, reports @ digits
    order = outputs.argsort()
    seen = np.bincount(outputs[order].searchsorted(reports), minlength=law.size)
    return float(chi2.sf(np.sum((seen - law[order]) ** 2 / law[order]), law.size - 1))
