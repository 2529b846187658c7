"""Wrong bisections: functions in place of `search._bisect`."""


def unchecked_midpoint(holds, good, bad, relative=0.0, steps=60, mean=None):
    """Returns a point that was never asked about."""
    for _ in range(steps):
        middle = good / 2 + bad / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good / 2 + bad / 2


def failing_end(holds, good, bad, relative=0.0, steps=60, mean=None):
    """Returns the end where it fails."""
    for _ in range(steps):
        middle = good / 2 + bad / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return bad


def exchanged(holds, good, bad, relative=0.0, steps=60, mean=None):
    """Takes what fails for what holds."""
    for _ in range(steps):
        middle = good / 2 + bad / 2
        good, bad = (good, middle) if holds(middle) else (middle, bad)
    return good


def evaluated_end(holds, good, bad, relative=0.0, steps=60, mean=None):
    """Asks about the ends that the caller answers for."""
    return good if holds(good) and not holds(bad) else bad
