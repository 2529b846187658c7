"""Wrong calibrations: functions in place of `calibrate`."""

from accountant import calibrate


def a_thousandth_past(plan_of, *, epsilon, delta=0.0, **fixed):
    """Stops a thousandth beyond the target."""
    return calibrate(plan_of, epsilon=1.001 * epsilon, delta=delta, **fixed)


def far_from_the_target(plan_of, *, epsilon, delta=0.0, **fixed):
    """Leaves a hundredth of the budget."""
    return calibrate(plan_of, epsilon=0.99 * epsilon, delta=delta, **fixed)


def with_more_delta(plan_of, *, epsilon, delta=0.0, **fixed):
    """Takes ten times the delta."""
    return calibrate(plan_of, epsilon=epsilon, delta=10 * delta, **fixed)


def another_sensitivity(plan_of, *, epsilon, delta=0.0, **fixed):
    """Forgets the sensitivity that was given."""
    return calibrate(plan_of, epsilon=epsilon, delta=delta, **(fixed | {"sensitivity": 1.0}))


def target_without_its_sign(plan_of, *, epsilon, **fixed):
    """Takes minus one for one."""
    return calibrate(plan_of, epsilon=abs(epsilon), **fixed)


def truth_for_one(plan_of, *, epsilon, **fixed):
    """Takes True for an epsilon of one."""
    return calibrate(plan_of, epsilon=float(epsilon), **fixed)
