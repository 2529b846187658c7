"""Families of features on which the coverage of intervals is measured."""

import numpy as np

FAMILIES = ["uniform", "coins", "off centre", "collinear", "one-hot", "heavy tails", "small",
            "rare marks", "spread", "imbalanced"]  # fmt: skip


def design_of_family(name, records, rng):
    """Features within [-1, 1], and the coefficients of scores, the constant last."""
    x = rng.uniform(-1, 1, (records, 4))
    truth = np.array([-0.2, 1.1, -0.7, 0.5, -2.0 if name == "imbalanced" else 0.3])
    if name == "coins":
        x = np.sign(x)
    elif name == "off centre":
        x = 0.6 + 0.4 * x
    elif name == "collinear":
        x = 0.6 * x + 0.4 * x[:, [0]]
    elif name == "one-hot":
        codes = np.eye(4)[rng.choice(4, records, p=[0.4, 0.3, 0.2, 0.1])]
        x = np.hstack([codes[:, 1:], x[:, :1]])
    elif name == "heavy tails":
        x = np.clip(rng.standard_t(3, x.shape) / 4, -1, 1)
    elif name == "small":
        x = 0.3 * x
    elif name == "rare marks":
        x[:, 3] = rng.random(records) < 0.15
    elif name == "spread":
        x = x * np.geomspace(1, 0.3, 4)
    return x, truth
