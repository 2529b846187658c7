"""A minimax lower bound on the excess risk of convex learning from locally private labels.

The losses are L-Lipschitz and convex, on a set of parameters of diameter D.  The hard case is
`LabelFamily`: K labels in K/2 pairs, where a secret sign v_j and a shift d in (0, 1] decide which
label of pair j is likelier.  A learner with a small risk must guess the signs, so with m the
largest correlation of a guess with a sign (`sign_correlation`) every learner has a mean excess risk
of

    at least L D (d / (2 sqrt(K - 1))) (1 - m),

of which the best d and number of labels are taken.

Reference: Chua and others (2026), Theorem 2, with the constants of its proof made explicit.
"""

from __future__ import annotations

import math
from functools import partial

from accountant.domains import IntegerRange, Interval
from accountant.numerics.search import maximum_of_one_peak
from audits.minimax.bounds.bound import LowerBound, round_down
from audits.minimax.families.label_family import LabelFamily
from audits.minimax.information.bernoulli_kl import most_right_given_information
from audits.minimax.information.contraction import entropy_factor
from audits.minimax.information.theorem_domains import LOCAL_EPSILON, USERS, TheoremDomain

_THEOREM = "Theorem 2 of Chua and others"
_LENGTH = Interval(1e-150, 1e150)  # the product of two such numbers is a float, and not 0


def label_optimisation(
    n: int, k: int, epsilon: float, lipschitz: float = 1.0, diameter: float = 1.0
) -> LowerBound:
    """Bound the worst-case expected excess risk of convex learning from epsilon-LDP labels.

    Users send their labels once, all at once; features are public.

    Parameters
    ----------
    n : int
        Number of users.
    k : int
        Number of labels, 2 to 10^6.
    epsilon : float
        0 to 300.
    lipschitz : float, optional
        Lipschitz constant of the convex losses in the Euclidean norm.
    diameter : float, optional
        Euclidean diameter of the set of parameters.

    Returns
    -------
    LowerBound
        The bound, rounded down, in the units of ``lipschitz * diameter``.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Chua and others (2026), Theorem 2, with every constant explicit.

    Examples
    --------
    >>> from audits.minimax import label_optimisation
    >>> round(label_optimisation(n=1000, k=10, epsilon=1.0).value, 5)
    0.01294
    """
    n = TheoremDomain(USERS, _THEOREM).whole("n", n)
    k = TheoremDomain(IntegerRange(2, 10**6), _THEOREM).whole("k", k)
    epsilon = TheoremDomain(LOCAL_EPSILON, _THEOREM).number("epsilon", epsilon)
    lipschitz = TheoremDomain(_LENGTH, _THEOREM).number("lipschitz", lipschitz)
    diameter = TheoremDomain(_LENGTH, _THEOREM).number("diameter", diameter)
    even = k - k % 2
    # A family on fewer labels, where the others never occur, may be harder.  So the powers of 2 up
    # to k and the largest even number are tried.
    label_counts = sorted({even, *(2**i for i in range(1, even.bit_length()))})

    def sharp_bound(label_count: int, d: float) -> float:
        # in units of L D
        wrong = 1 - sign_correlation(n, label_count, epsilon, d)
        return d / (2 * math.sqrt(label_count - 1)) * wrong

    optima = [
        (maximum_of_one_peak(partial(sharp_bound, label_count), 1.0), label_count)
        for label_count in label_counts
    ]
    (value, d), label_count = max(optima)
    return LowerBound(
        value=round_down(lipschitz * diameter * value),
        published=round_down(lipschitz * diameter * _published_bound(n, even, epsilon)),
        statement=f"E [risk - least risk] of any estimate from {n:,} users whose labels, of {k:,}, "
        f"are {epsilon:g}-LDP, all at once ({_THEOREM}, sharper constants)",
        construction=LabelFamily(label_count, d, lipschitz, diameter),
        valid_for=f"every epsilon and n, k >= 2; convex losses, {lipschitz:g}-Lipschitz in l2, "
        f"diameter {diameter:g}; delta 0",
        optimised_over=f"even number of labels up to {even:,}: {label_count:,}; "
        f"d in (0, 1]: {d:.6g}",
    )


def sign_correlation(n: int, k: int, epsilon: float, d: float) -> float:
    """The largest possible m, the root mean square of ``E[v_j | Z]`` over pairs j and reports Z.

    The k / 2 signs share the information of n reports,
    ``sum_j I(v_j; Z) <= I(v; Z) <= n c_2(d tanh(eps / 2)) (2 d^2 / k) sinh^2(eps / 2)``, with c_2
    of `entropy_factor`.  A sign with mean m given Z takes at least ``ln 2 - H((1 + m) / 2)`` of it,
    where H is the entropy of a coin; this is convex in m^2, so m is largest if all signs have an
    equal share.
    """
    reach = d * math.tanh(epsilon / 2)
    report_information = entropy_factor(reach) * n * (2 * d**2 / k) * math.sinh(epsilon / 2) ** 2
    # Reports carry no more information than the labels themselves.
    information = min(report_information, n * d**2 * entropy_factor(d))
    # On average a sign gets 2 / k of the information, and a guess of it is right with probability
    # (1 + m) / 2.
    return 2 * most_right_given_information(2 * information / k, 2) - 1


def _published_bound(n: int, k: int, epsilon: float) -> float:
    """The bound as published, in units of L D: ``(d / (8 sqrt K))(1 - d sqrt(2 n c) / K)``.

    It is taken at the best ``d <= 1/2``.  Here ``c = min((e^eps - 1)^2, 4 e^eps)``; for
    ``n >= K^2 / (2 c)`` it is ``sqrt(K / (2 n c)) / 32``.
    """
    root = math.sqrt(2 * n * min(math.expm1(epsilon) ** 2, 4 * math.exp(epsilon))) / k
    d = min(0.5, 1 / (2 * root)) if root > 0 else 0.5
    return d / (8 * math.sqrt(k)) * (1 - d * root)
