"""Training runs: each figure of a statement, a tree, an attack or a calibration beside its peer.

Figures that are published stand beside ours; dp-accounting's own answers are computed here, with
its processor time over ours.  ``cold`` rows are the first calibration of a new process.
"""

import subprocess
import sys
import time
import warnings

import accountant
from accountant import (
    BinaryTree,
    GaussianLoss,
    MinSeparation,
    Once,
    ParameterError,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    Tight,
    dp_sgd,
    from_dp_event,
    from_jax_privacy,
    from_opacus,
    gdp_of,
    sensitivity,
)
from benchmarks.measure import beside, options
from mechanisms import MatrixMechanism

SAMPLED = "PoissonSampled(LaplaceLoss(1 / noise), 0.01)"
GAUSSIAN = "PoissonSampled(GaussianLoss(1 / noise), {})"
COLD = {
    "one sampled Laplace": f"lambda noise: {SAMPLED}",
    **{
        f"{count:,} sampled Laplaces": f"lambda noise: {count} * {SAMPLED}"
        for count in (2, 3, 30, 100, 1000)
    },
    "two sampled Gaussians": f"lambda noise: 2 * {GAUSSIAN.format(0.01)}",
    "three sampled Gaussians": f"lambda noise: 3 * {GAUSSIAN.format(0.004)}",
    "two different sampled Gaussians": f"lambda noise: {GAUSSIAN.format(0.01)} + "
    f"{GAUSSIAN.format(0.02)}",
    "three sampled Gaussians, two alike": f"lambda noise: 2 * {GAUSSIAN.format(0.01)} + "
    f"{GAUSSIAN.format(0.02)}",
    "DP-SGD, 1,000 steps": f"lambda noise: 1000 * {GAUSSIAN.format(0.01)}",
}
CHILD = """
import time, warnings
warnings.simplefilter("ignore")
from accountant import *
Tight().epsilon(GaussianLoss(1.0), 1e-6)
start = time.process_time()
found = calibrate({plan}, {target})
print(found, time.process_time() - start)
"""


def timed(work):
    """The answer and its processor seconds."""
    start = time.process_time()
    answer = work()
    return answer, time.process_time() - start


def said(name, answer, seconds, *others):
    """Print one row."""
    print("; ".join([f"{name}: {answer} in {1e3 * seconds:.1f} ms", *others]), flush=True)


def peer_epsilon(event, delta, kind="PLD", relation="ADD_OR_REMOVE_ONE"):
    """The epsilon of dp-accounting and its processor seconds."""
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    made = PLDAccountant if kind == "PLD" else RdpAccountant
    one = made(neighboring_relation=NeighboringRelation[relation])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return timed(lambda: float(one.compose(event).get_epsilon(delta)))


def trees():
    """Binary trees of 1,600 steps, published by a Rényi bound; sensitivities of patterns."""
    from dp_accounting import dp_event

    for noise, exact, published in ((1.13, 17.666751, 19.74), (8.83, 1.648659, 2.04)):
        event = dp_event.SingleEpochTreeAggregationDpEvent(noise, 1600)
        plan = MatrixMechanism(BinaryTree(1600), scale=noise)
        found, seconds = timed(lambda plan=plan: Tight().epsilon(plan, 1e-6))
        read = Tight().epsilon(from_dp_event(event), 1e-6)
        theirs, took = peer_epsilon(event, 1e-6, "RDP", "REPLACE_SPECIAL")
        said(f"a tree of 1,600 steps, noise {noise}", f"epsilon {found:.6f}", seconds,
             f"its event {read:.6f}, figure {exact}",
             f"{beside(found, published, 'the published bound')} of {published}",
             f"dp-accounting {theirs:.4f}, {beside(took, seconds, 'ours')}")  # fmt: skip
    for uses, apart, steps, squared in ((1, 7, 8, 4), (3, 3, 9, 11), (3, 2, 7, 9), (8, 2, 24, 88)):
        pattern = Once() if uses == 1 else MinSeparation(uses, apart + 1)
        one, seconds = timed(lambda p=pattern, n=steps: sensitivity(BinaryTree(n), p))
        said(f"a tree of {steps} steps, {uses} uses, {apart} steps between them",
             f"squared sensitivity {one.squared}", seconds, f"figure {squared}")  # fmt: skip


def statement():
    """The statement of TensorFlow Privacy: what it says, and what holds if batches were Poisson."""
    found, seconds = timed(
        lambda: dp_sgd(examples=10_000, batch=64, epochs=5, noise=2.0, delta=1e-6,
                       microbatching=True, loader="shuffled"))  # fmt: skip
    poisson = found.row("poisson").upper
    said("TensorFlow Privacy's statement, microbatching and shuffled batches",
         f"{found.epsilon:.3f}, and {poisson:.3f} if it were Poisson", seconds,
         "figures 12.595 and 1.199", beside(found.epsilon, poisson, "the claim"))  # fmt: skip


def claims():
    """Claims whose loader drew otherwise: the true epsilon, and what a reader says."""
    config = {
        "epsilon": 0.72, "delta": 1e-5, "batch_size": 10, "gradient_accumulation_steps": 8,
        "train_steps": 100, "train_size": 1000, "noise_multiplier": 1.0,
    }  # fmt: skip
    claimed, truth = (100 * PoissonSampled(GaussianLoss(1.0), rate) for rate in (0.01, 0.08))
    (low, true), seconds = timed(lambda: [Tight().epsilon(x, 1e-5) for x in (claimed, truth)])
    said("jax-privacy, eight batches added to one", f"{low:.3f} claimed, {true:.3f} true", seconds,
         "figures .72 and 5.6", beside(true, low, "the claim"),
         f"its config is {refused(lambda: from_jax_privacy(config, loader='poisson'))}")  # fmt: skip
    drawn = {
        "order": "weighted", "sampler": "WeightedRandomSampler", "records": 128, "batches": 8,
        "batch": 16, "rate": None, "drop_last": False, "dataset": 100_000,
    }  # fmt: skip
    history = [(1.0, 1 / 8, 8)]
    low, seconds = timed(
        lambda: Tight().epsilon(8 * PoissonSampled(GaussianLoss(1.0), 16e-5), 1e-5)
    )
    high = Tight().epsilon(from_opacus(history, assume="poisson"), 1e-5)
    said("Opacus, a weighted sampler of 128 of 100,000 records",
         f"{high:.3f} by its history, {low:.2g} at 16 of 100,000", seconds,
         beside(high, low, "Poisson samples"),
         f"with its loader the history is {refused(lambda: from_opacus(history, drawn))}")  # fmt: skip


def refused(work):
    """Whether a reader refuses what a loader or a configuration says."""
    try:
        work()
    except ParameterError:
        return "refused"
    return "READ"


def attacks(quick):
    """The mu of responses and of DP-SGD, and its regret."""
    for epsilon, figure in ((0.75, 0.93080679), (1.0, 1.23203539), (1.5, 1.81232047),
                            (2.0, 2.35796149)):  # fmt: skip
        (mu, _), seconds = timed(lambda e=epsilon: tuple(gdp_of(PureLoss(e))))
        said(f"a binary response of {epsilon}", f"mu {mu:.8f}", seconds, f"figure {figure:.8f}",
             beside(mu, figure, "the figure"))  # fmt: skip
    if quick:
        return
    plan = 2000 * PoissonSampled(GaussianLoss(1 / 9.4), 2**14 / 50_000)
    (mu, regret), seconds = timed(lambda: tuple(gdp_of(plan)))
    said("2,000 sampled Gaussians, noise 9.4, 2^14 of 50,000", f"mu {mu:.4f}, regret {regret:.5f}",
         seconds, "figures 1.567 and at most .01",
         beside(regret, 0.01, "the regret allowed"))  # fmt: skip


def cold(plan, target):
    """The answer of a calibration that a new process makes, and its processor seconds."""
    code = CHILD.format(plan=plan, target=target)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if ran.returncode:
        return None
    answer, seconds = ran.stdout.split()
    return float(answer), float(seconds)


def peer_calibration(plan, epsilon, delta):
    """The noise that dp-accounting finds in a bracket, and its processor seconds."""
    from dp_accounting import mechanism_calibration
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    kinds = ("PoissonSampled", "GaussianLoss", "LaplaceLoss")
    made = eval(plan, {name: getattr(accountant, name) for name in kinds})

    def event(noise):
        return accountant.to_dp_event(made(noise))

    bracket = mechanism_calibration.ExplicitBracketInterval(0.3, 300.0)
    return timed(
        lambda: mechanism_calibration.calibrate_dp_mechanism(
            PLDAccountant, event, epsilon, delta, bracket, tol=1e-6
        )
    )


def rates():
    """Calibrations to rates of attacks, cold; no peer has them."""
    run, few = f"1000 * {GAUSSIAN.format(0.01)}", SAMPLED.replace("0.01", "0.1")
    goals = {"tpr .05 at fpr .01": "tpr=0.05, fpr=0.01",
             "delta .05 at epsilon 0": "epsilon=0, delta=0.05"}  # fmt: skip
    for goal, target in goals.items():
        for name, plan in (("DP-SGD, 1,000 steps at rate .01", run),
                           ("50 sampled Laplaces at rate .1", f"50 * {few}")):  # fmt: skip
            found = cold(f"lambda noise: {plan}", target)
            answer = "failed" if found is None else f"noise {found[0]:.6f}"
            said(f"{name}, {goal}", answer, 0.0 if found is None else found[1])


def calibrations(quick):
    """Calibrations to advantage and to epsilon, cold."""
    run = f"lambda noise: 1000 * {GAUSSIAN.format(0.01)}"
    found = None if quick else cold(run, "advantage=0.05")
    if quick:
        pass
    elif found is None:
        print("DP-SGD at an advantage of .05: calibrate has no such target yet")
    else:
        said("DP-SGD, 1,000 steps at rate .01, at an advantage of .05", f"noise {found[0]:.6f}",
             found[1], beside(found[1], 0.2, "the time allowed"))  # fmt: skip
    if not quick:
        rates()
    for name, plan in COLD.items():
        if quick and not name.startswith("DP-SGD"):
            continue
        ours = cold(plan, "epsilon=0.1, delta=1e-6")
        if ours is None:
            print(f"{name}: failed")
            continue
        theirs = None if quick else peer_calibration(plan, 0.1, 1e-6)
        said(f"{name} at (.1, 1e-6), cold", f"noise {ours[0]:.6f}", ours[1],
             beside(ours[1], 0.3, "the time allowed"),
             "dp-accounting: left out" if theirs is None else
             f"dp-accounting {theirs[0]:.6f}, {beside(theirs[1], ours[1], 'ours')}")  # fmt: skip


def allocations(quick):
    """Random allocation: what an epoch costs, and ten."""
    rows = (("1 of 200, noise 1", RandomAllocation(GaussianLoss(1.0), 200), 1e-5, 0.3864968738),
            ("1 of 1,000, noise 1", RandomAllocation(GaussianLoss(1.0), 1000), 1e-6, 0.1717286547),
            ("1 of 100, noise 3", RandomAllocation(GaussianLoss(1 / 3), 100), 1e-6, 0.1267))  # fmt: skip
    for name, plan, delta, figure in rows[: 1 if quick else None]:
        found, seconds = timed(lambda p=plan, d=delta: Tight().epsilon(p, d))
        poisson = PoissonSampled(plan.part, 1 / plan.steps)
        most = Tight().epsilon(plan.steps * poisson, delta)
        said(f"random allocation, {name}", f"epsilon {found:.8f}", seconds, f"figure {figure}",
             beside(found, most, "Poisson"))  # fmt: skip


def main():
    given = options(__doc__)
    Tight().epsilon(3 * PoissonSampled(GaussianLoss(1.0), 0.1), 1e-5)  # imports
    trees()
    claims()
    if not given.quick:
        statement()
    attacks(given.quick)
    calibrations(given.quick)
    allocations(given.quick)


if __name__ == "__main__":
    main()
