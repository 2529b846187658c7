"""delta of finitely many outcomes, by listing them, and closed forms."""

from bisect import bisect_left, bisect_right

from flint import acb, arb, arb_poly

from .document import NoProof
from .parts import exact

MOST = 300_000
LATTICE = ("response", "discrete laplace", "discrete gaussian")


def outcomes(release, backwards):
    """Return (p, q) of each outcome, and a ball of the whole mass of P, listed or not."""
    kind, *given = release
    if kind == "sampled":  # (1 - r) Q + r P against Q, P the product of the parts' laws
        law = [(arb(1), arb(1))]
        for one in given[1]:
            law = [(a * p, b * q) for a, b in law for p, q in outcomes(one, backwards=False)[0]]
            if len(law) > MOST // 10:
                raise NoProof("too many outcomes")
        r = exact(given[0])
        law = [((1 - r) * q + r * p, q) for p, q in law]
    elif kind == "pair":
        law = [(exact(p), exact(q)) for p, q in given[0]]
    elif kind == "response":
        d, high = exact(given[1]), 1 / (1 + (-exact(given[0])).exp())
        low = 1 / (1 + exact(given[0]).exp())
        law = [((1 - d) * low, (1 - d) * high), ((1 - d) * high, (1 - d) * low)]
        law += [(arb(0), d), (d, arb(0))] if given[1] else []
    elif kind == "discrete laplace":  # all k <= 0 and all k >= shift have one ratio each
        r, shift = (-1 / exact(given[0])).exp(), given[1]
        q = [1 / (1 + r), *((1 - r) / (1 + r) * r**k for k in range(1, shift)), r**shift / (1 + r)]
        law = list(zip(reversed(q), q, strict=True))
    elif kind == "discrete gaussian":  # up to 40 deviations; beyond, a geometric series
        scale, shift, far = exact(given[0]), given[1], int(40 * given[0]) + 2 + given[1]
        mass = [(-((arb(k) / scale) ** 2) / 2).exp() for k in range(far + 1)]
        rest = mass[far] / (1 - (-arb(far) / scale**2).exp())
        whole = mass[0] + 2 * sum(mass[1:], arb(0)) + 2 * rest * arb(0.5, 0.5)
        law = [
            (mass[abs(k - shift)] / whole, mass[abs(k)] / whole)
            for k in range(shift - far, far + 1)
        ]
    else:
        raise NoProof(f"a {kind} has more than finitely many outcomes")
    law = [(q, p) for p, q in law] if backwards else law
    listed = sum((p for p, _ in law), arb(0))
    return law, listed.union(arb(1)) if kind == "discrete gaussian" else listed


def power(law, n, lattice):
    """Return the law of n releases: powers of polynomials, or each count of the outcomes."""
    if lattice:
        sides = [arb_poly(list(side)) ** n for side in zip(*law, strict=True)]
        return [(sides[0][j], sides[1][j]) for j in range(n * (len(law) - 1) + 1)]
    found = [(arb(1), arb(1), n)]
    for k, (p, q) in enumerate(law):
        found = [(a * ways * p**j, b * ways * q**j, left - j) for a, b, left in found
                 for j in (range(left + 1) if k < len(law) - 1 else (left,))
                 for ways in (arb.bin_uiui(left, j),)]  # fmt: skip
        if len(found) > MOST:
            raise NoProof("too many sums of losses")
    return [(a, b) for a, b, _ in found]


def listed(items, backwards, epsilon):
    """Return bounds of sum (p - e^eps q)_+ over all outcomes; those not listed add at most P."""
    laws, whole, some = [], arb(1), arb(1)
    for one, n in items:
        law, total = outcomes(one, backwards)
        if one[0] in LATTICE:
            revealing = [p for p, q in law if not q > 0] + [arb(0)]
            law = [(p, q) for p, q in law if p > 0 and q > 0]
            finite = sum((p for p, _ in law), arb(0))
            whole, some = whole * (finite + sum(revealing, arb(0))) ** n, some * finite**n
            missed = total - finite - sum(revealing, arb(0))
        else:
            missed = arb(0)
        if n * len(law) > MOST:
            raise NoProof("too many sums of losses")
        laws.append((power(law, n, one[0] in LATTICE), n * missed))
    laws.sort(key=lambda one: len(one[0]))
    first = [(arb(1), arb(1))]
    for law, _ in laws[:-1]:
        if len(first) * len(law) > MOST // 10:
            raise NoProof("too many sums of losses")
        first = [(a * p, b * q) for a, b in first for p, q in law]
    lower, upper = stick(first, laws[-1][0], arb(epsilon))
    missed = sum((one.upper() for _, one in laws), arb(0))
    return lower + whole - some, upper + whole - some + missed.max(arb(0))


def stick(first, second, epsilon):
    """Return bounds of sum (p p' - e^eps q q')_+: below a threshold of p'/q' there is nothing."""
    known, unknown = [], arb(0)
    for p, q in second:
        if p > 0 and q > 0 and (p / q).log().rad() < 1e-12:
            known.append((float((p / q).log().mid()), p, q))
        else:
            unknown += p.upper().max(arb(0))
    known.sort(key=lambda one: one[0])
    keys, above = [key for key, _, _ in known], [(arb(0), arb(0))]
    for _, p, q in reversed(known):
        above.append((above[-1][0] + p, above[-1][1] + q))
    above.reverse()
    grown, total, fuzzy = epsilon.exp(), arb(0), arb(0)
    for p, q in first:
        fuzzy += unknown * p.upper().max(arb(0))
        if not p > 0:
            fuzzy += p.upper().max(arb(0))
            continue
        if not q > 0:
            raise NoProof("an outcome that is not surely finite")
        at = float((grown * q / p).log().mid())
        margin = 1e-9 * (1 + abs(at))
        i, j = bisect_right(keys, at + margin), bisect_left(keys, at - margin)
        total += p * above[i][0] - grown * q * above[i][1]
        for _, a, b in known[j:i]:
            total += (p * a - grown * q * b).max(arb(0))
    return total, total + fuzzy


def residues(m, n, epsilon):
    """Return delta of n equal Laplaces by the residues of M^n e^{-z eps} / (z (z + 1)).

    The n-th power has terms C(n,k) e^{-(n-k)m} (1+z)^k z^(n-k) e^{z c} / (1+2z)^n, c = (2k - n) m -
    eps.  Where c < 0 the contour closes to the right, without a pole; else to the left: a pole of
    order n at -1/2, and one of residue 1 at 0 for k = n.  In w = z + 1/2 the first is a
    coefficient of a power series.
    """
    if n > 1000:
        raise NoProof("too many Laplaces for their residues")
    m, total, half = exact(m), arb(0), arb(0.5)
    for k in range(1, n + 1):
        c = (2 * k - n) * m - arb(epsilon)
        if c < 0:
            continue
        series = [(-c / 2).exp()]
        for i in range(1, n):
            series.append(series[-1] * c / i)
        series = arb_poly(series) * arb_poly([half, 1]) ** (k - 1)
        if k < n:
            series *= arb_poly([-half, 1]) ** (n - k - 1)
        else:
            series *= arb_poly([-(arb(2) ** (i + 1)) for i in range(n)])  # 1 / (w - 1/2)
        residue = series[n - 1] / arb(2) ** n + (k == n)
        term = arb.bin_uiui(n, k) * (-(n - k) * m).exp() * residue
        total += term if c > 0 else term.union(arb(0))
    return total


def tail(x):
    """Return P(N(0, 1) > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def single(release, part, epsilon):
    """Return delta of one release, or of Gaussians together, by its closed form."""
    kind, *given = release
    eps = arb(epsilon)
    match kind:
        case "gaussian":
            mu = exact(given[0]).sqrt()
            return tail(eps / mu - mu / 2) - eps.exp() * tail(eps / mu + mu / 2)
        case "laplace":
            return (1 - ((eps - exact(given[0])) / 2).exp()).max(arb(0))
        case "fixed sample":  # Balle, Barthe & Gaboardi (2018), Theorem 9: q delta at this epsilon
            q = exact(given[0])
            return q * single(given[1], None, (1 + (eps.exp() - 1) / q).log())
        case "mixture":  # L grows with x: the best test is x > t, and its gain is stationary there
            low, high, gap = arb(-64), arb(4096), arb(1)
            for _ in range(300):
                t = ((low + high) / 2).mid()
                f, g = (one.real for one in part.logs(acb(t)))
                gap = f - g - eps
                if not (gap > 0 or gap < 0):
                    break
                low, high = (low, t) if gap > 0 else (t, high)
            p, q = (sum((w * tail(t - s) for w, s in side), arb(0)) for side in part.sides)
            # between t and the best threshold |1 - e^{eps - L}| <= e^|gap| - 1
            missed = abs(gap).exp() - 1 if -60 < t < 4000 else tail(arb(60))
            if not part.most - part.least < 1000:
                raise NoProof("shifts too large for a closed form")
            return p - eps.exp() * q + missed.upper() * arb(0.5, 0.5)
    raise NoProof(f"one {kind} has no closed form here")
