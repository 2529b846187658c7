"""Tables of the draws of numpy's generators: names of their arguments, and the laws of their noise.

An audit runs a function twice, on two neighbouring data sets, and records every draw of random
numbers; the second run gets the recorded numbers of the first one.  `NOISE` has the draws whose
outputs are followed as noise through the code, so that the privacy loss of what is released can be
computed; a law "unknown" has no formula for that loss.  `COINS` has the draws whose outputs are
plain numbers for the code.  They are not followed, and are the same in both runs but for a record
that one of the data sets lacks.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final


@final
class DrawTable(NamedTuple):
    """The arguments of a draw, and the law of its output."""

    arguments: dict[str, Any]  # with their defaults; that of a required one is None
    law: str  # its name; "" for coins
    place: str = ""  # the name of the argument of location; "" if there is none
    spread: str = ""  # the name of the argument of scale; "" if there is none
    # "*" if each positional argument is one dimension of the shape, as in ``rand(2, 3)``
    size: str = "size"


def _location(law: str) -> DrawTable:
    """The table of a draw of this law with a location ``loc`` and a scale ``scale``."""
    return DrawTable({"loc": 0.0, "scale": 1.0, "size": None}, law, "loc", "scale")


def _standard(law: str) -> DrawTable:
    """The table of a draw of this law without parameters."""
    return DrawTable({"size": None, "dtype": float, "out": None}, law)


# draws that are followed through the code as noise
NOISE = {
    "laplace": _location("laplace"),
    "normal": _location("gaussian"),
    "gumbel": _location("gumbel"),
    "logistic": _location("logistic"),
    "standard_normal": _standard("gaussian"),
    "standard_exponential": DrawTable(
        {"size": None, "dtype": float, "method": "zig", "out": None}, "exponential"
    ),
    "exponential": DrawTable({"scale": 1.0, "size": None}, "exponential", "", "scale"),
    "uniform": DrawTable({"low": 0.0, "high": 1.0, "size": None}, "uniform"),
    "random": _standard("uniform"),
    "random_sample": _standard("uniform"),
    "ranf": _standard("uniform"),
    "sample": _standard("uniform"),
    "geometric": DrawTable({"p": None, "size": None}, "geometric"),
    "standard_cauchy": DrawTable({"size": None}, "unknown"),
    "standard_t": DrawTable({"df": None, "size": None}, "unknown"),
    "standard_gamma": DrawTable(
        {"shape": None, "size": None, "dtype": float, "out": None}, "unknown"
    ),
    "gamma": DrawTable({"shape": None, "scale": 1.0, "size": None}, "unknown"),
    "poisson": DrawTable({"lam": 1.0, "size": None}, "unknown"),
    "chisquare": DrawTable({"df": None, "size": None}, "unknown"),
    "rayleigh": DrawTable({"scale": 1.0, "size": None}, "unknown"),
    "negative_binomial": DrawTable({"n": None, "p": None, "size": None}, "unknown"),
    "triangular": DrawTable({"left": None, "mode": None, "right": None, "size": None}, "unknown"),
    "rand": DrawTable({}, "uniform", size="*"),
    "randn": DrawTable({}, "gaussian", size="*"),
}
# draws whose recorded output is handed out as plain numbers in both runs
COINS = {
    "integers": DrawTable(
        {"low": None, "high": None, "size": None, "dtype": None, "endpoint": False}, ""
    ),
    "randint": DrawTable({"low": None, "high": None, "size": None, "dtype": None}, ""),
    "random_integers": DrawTable({"low": None, "high": None, "size": None}, ""),
    "bytes": DrawTable({"length": None}, ""),
    "hypergeometric": DrawTable({"ngood": None, "nbad": None, "nsample": None, "size": None}, ""),
    "beta": DrawTable({"a": None, "b": None, "size": None}, ""),
    "dirichlet": DrawTable({"alpha": None, "size": None}, ""),
    "wald": DrawTable({"mean": None, "scale": None, "size": None}, ""),
    "weibull": DrawTable({"a": None, "size": None}, ""),
    "pareto": DrawTable({"a": None, "size": None}, ""),
    "power": DrawTable({"a": None, "size": None}, ""),
    "lognormal": DrawTable({"mean": 0.0, "sigma": 1.0, "size": None}, ""),
    "vonmises": DrawTable({"mu": None, "kappa": None, "size": None}, ""),
    "zipf": DrawTable({"a": None, "size": None}, ""),
    "logseries": DrawTable({"p": None, "size": None}, ""),
    "f": DrawTable({"dfnum": None, "dfden": None, "size": None}, ""),
}


def bound(table: DrawTable, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a draw by name, with the defaults of those that were omitted."""
    if table.size == "*":
        return {"size": tuple(arguments)}
    positional = dict(zip(table.arguments, arguments, strict=False))
    return {**table.arguments, **positional, **options}
