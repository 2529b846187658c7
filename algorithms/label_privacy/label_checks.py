"""Before anything is released: private labels as indices, and what a user's loss declares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from accountant.errors import ParameterError
from algorithms.label_privacy.label_losses import LabelLoss


def checked_labels(y: Any, classes: int) -> Any:
    """Return labels as integers; a label outside 0 to ``classes - 1`` counts as 0."""
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        allowed = f"whole numbers from 0 to {classes - 1}, one for each row"
        raise ParameterError("y", f"{labels.dtype}{labels.shape}", allowed)
    valid = (labels >= 0) & (labels < classes) & (labels == np.floor(labels))
    return np.where(valid, labels, 0).astype(np.intp)


def check_loss(loss: LabelLoss, X: Any, classes: int, lipschitz: float) -> None:
    """Check a user's loss on a few public rows: shape and length of gradients at the start."""
    rows = X[:8]
    theta = np.zeros(loss.shape(X.shape[1], classes))
    gradients = np.asarray(loss.gradients(theta, rows))
    if (
        gradients.shape != (rows.shape[0], classes, *theta.shape)
        or not np.isfinite(gradients).all()
    ):
        allowed = f"finite gradients of shape (rows, {classes}, *theta.shape)"
        raise ParameterError("loss", f"gradients of shape {gradients.shape}", allowed)
    longest = math.sqrt((gradients.reshape(*gradients.shape[:2], -1) ** 2).sum(axis=2).max())
    if longest > lipschitz * (1 + 1e-9):
        measured = f"a gradient of length {longest:.6g}"
        raise ParameterError(
            "loss", measured, f"of gradients at most {lipschitz:.6g} long, as declared"
        )
