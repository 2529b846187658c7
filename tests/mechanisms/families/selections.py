"""Log ratios of neighbouring scores that a search finds."""


def searched(mechanism, rng, count):
    """Neighbours of two to seven scores, near and far, moved as far as they may."""
    for _ in range(count):
        size = rng.integers(2, 8)
        value = rng.normal(scale=rng.choice([0.5, 3.0, 15.0]) * mechanism.scale, size=size)
        if rng.random() < 0.5:  # all but one alike
            value[1:] = value[1]
        yield value, mechanism.values.moved_by_fractions(value, rng.uniform(-1, 1, size), rng)
