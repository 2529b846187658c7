"""What `docs/proofs/trusted-base.md` states of the best of a random number of runs, in floats."""

import math

import numpy as np

from tests.accountant.verifier.theorem_tools import gap, random_pair, same


def tries_of(rng):
    """A law of the number of runs: its f, and f'(1 - u) / f'(1), and E K."""
    if rng.random() < 0.3:
        mean = rng.uniform(0.3, 20.0)
        return lambda x: math.exp(mean * (x - 1)), lambda u: np.exp(-mean * u), mean
    shape, stop = rng.uniform(0.2, 3.0), rng.uniform(0.01, 0.5)
    c = (1 - stop) / stop

    def f(x):
        return ((1 - (1 - stop) * x) ** -shape - 1) / (stop**-shape - 1)

    return f, lambda u: (1 + c * u) ** (-1 - shape), shape * c / (1 - stop**shape)


def greatest_chance(p, q, u, slopes):
    """The least of the lines above the chance under Q of an event of chance u under P."""
    deltas = [np.maximum(q - math.exp(s) * p, 0).sum() for s in slopes]
    lines = [math.exp(s) * u + delta for s, delta in zip(slopes, deltas, strict=True)]
    return np.minimum(np.min(lines, axis=0), 1.0)


def tests_of_one_run(rng, changed):
    # changed: without the delta of the other direction
    p, q = random_pair(rng)
    event, s = rng.random(p.size) < 0.5, rng.uniform(0, 1.5)
    line = math.exp(s) * p[event].sum() + (not changed) * np.maximum(q - math.exp(s) * p, 0).sum()
    return gap(line, q[event].sum())


def best_of_runs(rng, changed):
    # any order of the scores, and cells of u; changed: a run is bettered as often on both sides
    (p, q), (f, share, mean), e = random_pair(rng), tries_of(rng), rng.uniform(0, 1.0)
    order = rng.permutation(p.size)
    best = [
        np.diff([f(min(x, 1.0)) for x in np.append(0, np.cumsum(side[order]))]) for side in (p, q)
    ]
    truth = np.maximum(best[0] - math.exp(e) * best[1], 0).sum()
    u = np.linspace(0, 1, 801)
    above = u if changed else greatest_chance(p, q, u, np.linspace(0, 3, 60))
    y = math.exp(e) * q / p
    phi = np.max(np.maximum(share(u[:-1]) - y[:, None] * share(above[1:]), 0), axis=1)
    return gap(mean * float(phi @ p), truth)


def one_run(rng, changed):
    # scores that are equal: the first run is released; changed: a number that may be 0
    p, _ = random_pair(rng)
    no_run = math.exp(-rng.uniform(0.1, 3.0)) if changed else 0.0
    return same(float((1 - no_run) * p[0]), float(p[0]))


def mirrored_delta(rng, changed):
    # changed: delta of the same direction
    (p, q), e = random_pair(rng), rng.uniform(0.05, 2.0)
    truth = np.maximum(p - math.exp(-e) * q, 0).sum()
    back = np.maximum(p - math.exp(e) * q, 0) if changed else np.maximum(q - math.exp(e) * p, 0)
    return same(float(1 - math.exp(-e) * (1 - back.sum())), float(truth))


def largest_of_best(rng, changed):
    # thin outcomes of a response at any place of the order; changed: the loss of one run
    epsilon, u = rng.uniform(0.1, 3.0), np.linspace(0, 1, 200)
    odds = math.exp(epsilon)
    v = np.minimum(odds * u, 1 - (1 - u) / odds)
    if rng.random() < 0.5:
        mean = rng.uniform(0.3, 20.0)
        losses, bound = epsilon + mean * (v - u), epsilon + mean * (odds - 1) / (odds + 1)
    else:
        shape, stop = rng.uniform(-0.9, 3.0), rng.uniform(0.001, 0.5)
        c = (1 - stop) / stop
        losses = epsilon + (1 + shape) * np.log((1 + c * v) / (1 + c * u))
        bound = epsilon + (1 + shape) * math.log((1 + (1 + c) * odds) / (1 + c + odds))
    return gap(epsilon if changed else bound, float(losses.max()))


THEOREMS = [tests_of_one_run, best_of_runs, one_run, mirrored_delta, largest_of_best]
