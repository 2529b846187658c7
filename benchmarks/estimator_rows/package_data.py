"""Data sets that come with packages, for regression and for classification.

Features and targets are scaled by public bounds, which are stated here without the data: those of
the packages' descriptions, or the next round number.  The last fifth of an order that each seed
draws anew is the test part.
"""

from functools import lru_cache

import numpy as np
import sklearn.datasets
import statsmodels.api as sm

from audits.runner.california_housing import load
from benchmarks.estimator_rows import Split

# Bounds of columns of statsmodels' data, in the order of the columns.
VISITS = {
    "lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8), "fmde": (0, 9), "physlm": (0, 1),
    "disea": (0, 60), "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1),
}  # fmt: skip
MARRIAGES = {
    "rate_marriage": (1, 5), "age": (17, 45), "yrs_married": (0, 25), "children": (0, 6),
    "religious": (1, 4), "educ": (9, 20), "occupation": (1, 6), "occupation_husb": (1, 6),
}  # fmt: skip
SCHOOLS = {
    "LOWINC": (0, 100), "PERASIAN": (0, 100), "PERBLACK": (0, 100), "PERHISP": (0, 100),
    "PERMINTE": (0, 100), "AVYRSEXP": (0, 30), "AVSALK": (0, 100), "PERSPENK": (0, 10),
    "PTRATIO": (0, 40), "PCTAF": (0, 100), "PCTCHRT": (0, 100), "PCTYRRND": (0, 100),
}  # fmt: skip
VOTERS = {
    "logpopul": (-3, 10), "TVnews": (0, 7), "selfLR": (1, 7), "ClinLR": (1, 7), "DoleLR": (1, 7),
    "PID": (0, 6), "age": (18, 100), "educ": (1, 7), "income": (1, 24),
}  # fmt: skip
DIABETES = 0.2  # features of scikit-learn's set have a mean of 0 and a length of 1
TUMOURS = (
    30, 40, 200, 3000, 0.2, 0.4, 0.5, 0.3, 0.4, 0.1, 3, 5, 25, 600, 0.04, 0.2, 0.4, 0.06, 0.08,
    0.03, 40, 50, 300, 5000, 0.3, 1.2, 1.5, 0.3, 0.8, 0.3,
)  # fmt: skip
WINES = (15, 6, 4, 30, 170, 4, 6, 1, 4, 13, 2, 4, 2000)


def scaled(values, low, high):
    """Numbers between their bounds as numbers from -1 to 1."""
    return np.clip(2 * (values - np.asarray(low)) / (np.asarray(high) - low) - 1, -1, 1)


def columns_of(name, bounds):
    """A table of statsmodels, and some of its columns between their bounds."""
    table = getattr(sm.datasets, name).load_pandas().data
    columns = [scaled(table[column].to_numpy(float), *ends) for column, ends in bounds.items()]
    return table, np.column_stack(columns)


def california():
    """Values of districts; the project has the data in a file of its own."""
    parts = load()
    x, y = (np.concatenate([parts.train[i], parts.test[i]]) for i in (0, 1))
    return x[:, :-1], y  # without the constant


def doctor_visits():
    """Visits to a doctor in a year, of the insurance experiment of RAND."""
    table, x = columns_of("randhie", VISITS)
    return x, scaled(table["mdvis"].to_numpy(float), 0, 80)


def affairs():
    """Time in affairs, of a survey of marriages."""
    table, x = columns_of("fair", MARRIAGES)
    return x, scaled(table["affairs"].to_numpy(float), 0, 60)


def school_scores():
    """Shares of pupils above the median in mathematics, of districts."""
    table, x = columns_of("star98", SCHOOLS)
    return x, scaled(table["NABOVE"] / (table["NABOVE"] + table["NBELOW"]), 0, 1).to_numpy()


def diabetes():
    """The progress of a disease in a year."""
    x, y = sklearn.datasets.load_diabetes(return_X_y=True)
    return np.clip(x / DIABETES, -1, 1), scaled(y, 0, 350)


def any_visit():
    """Whether there was a visit to a doctor."""
    table, x = columns_of("randhie", VISITS)
    return x, (table["mdvis"].to_numpy() > 0) * 1


def any_affair():
    """Whether there was an affair."""
    table, x = columns_of("fair", MARRIAGES)
    return x, (table["affairs"].to_numpy() > 0) * 1


def votes():
    """The vote of an election."""
    table, x = columns_of("anes96", VOTERS)
    return x, table["vote"].to_numpy(int)


def tumours():
    """Whether a tumour is benign."""
    x, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    return scaled(x, 0, TUMOURS), y


def digits():
    """Digits of 8 x 8 pixels."""
    x, y = sklearn.datasets.load_digits(return_X_y=True)
    return scaled(x, 0, 16), y


def irises():
    """Species of iris."""
    x, y = sklearn.datasets.load_iris(return_X_y=True)
    return scaled(x, 0, 10), y


def wines():
    """Growers of wine."""
    x, y = sklearn.datasets.load_wine(return_X_y=True)
    return scaled(x, 0, WINES), y


REGRESSIONS = {
    "California housing": california, "visits to doctors": doctor_visits, "affairs": affairs,
    "school scores": school_scores, "diabetes": diabetes,
}  # fmt: skip
CLASSIFICATIONS = {
    "any visit to a doctor": any_visit, "any affair": any_affair, "votes": votes,
    "tumours": tumours, "digits": digits, "irises": irises, "wines": wines,
}  # fmt: skip


@lru_cache(maxsize=8)
def parts(name, seed, quick):
    """The training part and the test part of a seed; few records if quick."""
    x, y = (REGRESSIONS | CLASSIFICATIONS)[name]()
    order = np.random.default_rng(seed).permutation(len(y))
    return Split.last_fifth(x[order], y[order], most=400 if quick else len(y))
