"""Google's cases as controls of the auditor and of our own releases.

Of each case that states what a release on two neighbouring inputs may show, (epsilon, delta):

- ``ours``: a release of `algorithms.frames` on both inputs must not be falsified; of the cases on
  the shape of noise, a sum of a frame beside noise of the stated law, under the claim that nothing
  tells them apart;
- ``reference``: the noise that the case's own library is tested against must not be falsified;
- ``too far``: the same noise on inputs that lie further apart than noise was made for, by the
  factor that the case names, must be falsified; of the shape of noise this is ``shifted``,
  ``scaled`` and ``of another shape``;
- ``failing``: the same noise that fails as often as the case says, on one input alone, must be
  falsified.

Where so many runs as are allowed cannot show it, the auditor must not claim that it did, and the
control says how many it would take.  These are computed from the law of the reference, before any
run.  What is audited of means, deviations and approximate bounds are the noisy counts and sums that
they are made of: these tell no less.
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr, ndtr
from scipy.stats import laplace, norm

from accountant import ApproxLoss, Budget, Filter, PureLoss
from accountant.losses.loss import Loss
from algorithms.frames import (
    Category,
    Integer,
    Number,
    Schema,
    count,
    histogram,
    mean,
    quantiles,
    standard_deviation,
    sum_,
)
from audits import INDEPENDENT, Outcome, audit
from audits.attacks.half_noise import all_runs
from audits.known_densities.outcome_models import OutcomePair
from audits.known_densities.sample_size import best_guess_test_runs
from tests.heldout.read_textproto import CASES

Case = dict[str, Any]
SURE = 1 - 1e-9  # of each of some 600 controls that must not be falsified: 6e-7 together
CONFIDENCE, POWER = 0.95, 0.99  # of those that must be
FIRST_RUNS = 10_000  # of true claims; more follow if these do not see half the noise
SPARE = 5  # times the runs that the best guess needs: the auditor has to learn what to guess
MOST_ROWS = 1000  # rows that all neighbours share are added as a number where they are more
NOISES = {"LAPLACE": "laplace", "GAUSSIAN": "gaussian"}
# How many releases share the budget of one answer.
RELEASES = {"count": 1, "bounded_sum": 1, "long_bounded_sum": 1, "bounded_mean": 2,
            "bounded_stdv": 3}  # fmt: skip
WHOLE = {"count", "long_bounded_sum"}  # families whose inputs move by whole numbers
DRAWS = 100_000  # sampled losses of a reference


def read_cases() -> list[Case]:
    """All cases of the file."""
    cases: list[Case] = json.loads(CASES.read_text(encoding="utf-8"))["cases"]
    return cases


@dataclass(frozen=True)
class Control:
    """A release on two inputs, what is claimed of it, and whether the claim is true."""

    case: Case
    kind: str
    release: Callable[..., Any]
    claim: Loss
    is_true: bool
    pair: tuple[Any, Any] = (0, 1)
    needed: float = 0.0  # runs of a test that shows that the claim is false; infinite if none does
    most_runs: int = 10**9  # of a release that takes long

    @property
    def name(self) -> str:
        """The family, the name of the case, and the kind of the control."""
        return f"{self.case['family']}: {self.case['name']}: {self.kind}"


@dataclass(frozen=True)
class Result:
    """What an audit said of a control."""

    control: Control
    outcome: Outcome
    runs: int
    needed_runs: int | None  # to show what it did not; None if it did, or if no number would

    @property
    def agrees(self) -> bool:
        """Whether the auditor said what the case says, as far as its runs could show it."""
        if self.control.is_true:
            return self.outcome is not Outcome.FALSIFIED
        could = self.needed_runs is not None and SPARE * self.needed_runs <= self.runs
        return self.outcome is Outcome.FALSIFIED or not could

    @property
    def shown(self) -> bool:
        """Whether nothing more is to be said: a true claim survived, a false one fell."""
        expected = Outcome.SURVIVED if self.control.is_true else Outcome.FALSIFIED
        return self.outcome is expected


def examine(control: Control, most_runs: int, seed: int) -> Result:
    """Audit a control with as many runs as it takes, and at most so many."""
    most_runs = min(most_runs, control.most_runs)
    if control.is_true:
        runs = min(most_runs, FIRST_RUNS)
        ask = functools.partial(audit, control.release, control.pair, control.claim)
        finding = ask(runs=runs, confidence=SURE, rng=seed)
        if finding.needed_runs and runs < finding.needed_runs <= most_runs:
            finding = ask(runs=finding.needed_runs, confidence=SURE, rng=seed)
        return Result(control, finding.outcome, finding.runs, finding.needed_runs)
    needed = all_runs(control.needed)
    runs = min(most_runs, SPARE * needed if needed else most_runs)
    finding = audit(control.release, control.pair, control.claim, runs, CONFIDENCE, rng=seed)
    return Result(control, finding.outcome, runs, needed)


def controls(case: Case) -> Iterator[Control]:
    """The controls of one case."""
    family = case["family"]
    if family.endswith("closeness"):
        yield from shape_controls(case)
        return
    epsilon, delta = case["claimed_epsilon"], case.get("claimed_delta", 0.0)
    claim = ApproxLoss(epsilon, delta) if delta else PureLoss(epsilon)
    if family in RELEASES:
        yield from noise_controls(case, claim)
        yield frame_control(case, claim)
    else:
        yield from response_controls(case, claim)
        yield (
            quantile_control(case) if family == "bounded_quantiles" else frame_control(case, claim)
        )


# --- the references ---


@functools.lru_cache
def gaussian_deviation(epsilon: float, delta: float) -> float:
    """The least deviation of Gaussian noise of (epsilon, delta) for inputs 1 apart."""

    def excess(log_deviation: float) -> float:
        mu = math.exp(-log_deviation)
        far = math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))
        return float(ndtr(mu / 2 - epsilon / mu) - far - delta)

    return math.exp(brentq(excess, -5.0, 12.0, xtol=1e-13))


def reference_deviation(case: Case) -> float:
    """The scale of Laplace noise, or the deviation of Gaussian noise, for inputs 1 apart."""
    shares = RELEASES[case["family"]]
    if case["noise_type"] == "LAPLACE":
        return shares / case["epsilon"]
    return gaussian_deviation(case["epsilon"] / shares, case["delta"] / shares)


@dataclass(frozen=True)
class Reference:
    """Noise on one or more numbers that all move by a shift; it may fail on the second input."""

    noise: str
    scale: float
    numbers: int
    shift: float
    failing: float = 0.0

    def __call__(self, value: int, rng: np.random.Generator, size: int) -> Any:
        """Outputs of the input 0 or 1."""
        draw = rng.laplace if self.noise == "LAPLACE" else rng.normal
        outputs = value * self.shift + draw(scale=self.scale, size=(size, self.numbers))
        outputs[rng.random(size) < value * self.failing] = np.nan
        return outputs[:, 0] if self.numbers == 1 else outputs


@functools.lru_cache
def runs_needed(reference: Reference, claim: Loss) -> float:
    """Runs of the best guess test that refute the claim of a reference; maybe infinite."""
    if reference.failing:
        p = reference.failing
        pair = OutcomePair("failing", np.array([1.0, 0.0]), np.array([1 - p, p]))
    elif reference.noise == "GAUSSIAN":  # several numbers tell as much as one that moves further
        moved = reference.shift * math.sqrt(reference.numbers)
        pair = laws_on_a_grid(("GAUSSIAN", 0.0, 1.0), ("GAUSSIAN", moved / reference.scale, 1.0))
    else:
        noise = reference(0, np.random.default_rng(0), DRAWS).reshape(DRAWS, -1)
        moved = np.abs(noise - reference.shift) - np.abs(noise)
        losses = moved.sum(axis=1) / reference.scale
        # The law of the noise is symmetric, so that losses on either input are alike.
        losses = np.concatenate([losses, -losses])
        weights = expit(losses), expit(-losses)
        pair = OutcomePair("sampled", *(weight / weight.sum() for weight in weights))
    return best_guess_test_runs(
        pair, claim.epsilon_at(claim.infinity), claim.infinity, 1 - CONFIDENCE, POWER
    )


def laws_on_a_grid(
    first: tuple[str, float, float], second: tuple[str, float, float]
) -> OutcomePair:
    """The masses of two laws of (kind, mean, deviation) between points of a grid."""
    edges = np.linspace(-12.0, 15.0, 6001)
    masses = []
    for kind, place, size in (first, second):
        law = laplace(place, size / math.sqrt(2)) if kind == "LAPLACE" else norm(place, size)
        # beyond its middle a law is known by what is above, which keeps its digits
        masses.append(np.where(edges[1:] < place, np.diff(law.cdf(edges)), -np.diff(law.sf(edges))))
    possible = np.minimum(*masses) > 0
    return OutcomePair("two laws", *(side[possible] / side[possible].sum() for side in masses))


def noise_controls(case: Case, claim: Loss) -> Iterator[Control]:
    """The case's noise at the sensitivity, beyond it, and failing."""
    shares, scale, noise = RELEASES[case["family"]], reference_deviation(case), case["noise_type"]
    near, far = 1.0, float(case["distance_specificity"])
    if case["family"] in WHOLE:  # in units of the sensitivity
        parts = case["max_partitions_contributed"]
        bounds = (abs(case.get("lower_bound", 1)), abs(case.get("upper_bound", 1)))
        sensitivity = max(bounds) * (parts if noise == "LAPLACE" else math.sqrt(parts))
        near, far = (math.floor(sensitivity) / sensitivity,
                     math.ceil(far * sensitivity) / sensitivity)  # fmt: skip
    failing = case["claimed_delta_tolerance"] * case["failure_specificity"]
    honest = Reference(noise, scale, shares, near)
    beyond = Reference(noise, scale, shares, far)
    broken = Reference(noise, scale, shares, 0.0, failing)
    yield Control(case, "reference", honest, claim, is_true=True)
    for kind, release in (("too far", beyond), ("failing", broken)):
        needed = runs_needed(release, claim)
        yield Control(case, kind, release, claim, is_true=False, needed=needed)


@dataclass(frozen=True)
class Response:
    """Labels: the first one of its input with a probability, else another one; it may fail."""

    labels: int
    chances: tuple[float, float]  # of the label of the first input, and of the second
    own: tuple[int, int]  # these labels
    failing: float = 0.0

    def __call__(self, value: int, rng: np.random.Generator, size: int) -> Any:
        """Outputs of the input 0 or 1."""
        own = self.own[value]
        other = (own + rng.integers(1, self.labels, size)) % self.labels
        said = np.where(rng.random(size) < self.chances[value], own, other)
        return np.where(rng.random(size) < value * self.failing, -1, said)

    def pair(self) -> OutcomePair:
        """The probabilities of all labels, and of a failure."""
        sides = []
        for value, chance in enumerate(self.chances):
            masses = np.full(self.labels + 1, (1 - chance) / (self.labels - 1))
            masses[self.own[value]] = chance
            masses *= 1 - value * self.failing
            masses[-1] = value * self.failing
            sides.append(masses)
        possible = np.maximum(*sides) > 0
        return OutcomePair("response", *(side[possible] for side in sides))


def response_controls(case: Case, claim: Loss) -> Iterator[Control]:
    """Quantiles and bounds: a law on few labels at the claim, beyond it, and failing."""
    epsilon, beyond = case["epsilon"], case["epsilon_specificity"]
    if case["family"] == "bounded_quantiles":
        labels = case["claimed_num_of_buckets"]
        chance = math.exp(epsilon) / (math.exp(epsilon) + labels - 1)
        honest = Response(labels, (chance, chance), (0, labels - 1))
        broken = Response(labels, (beyond * chance, beyond * chance), (0, labels - 1))
    else:  # a bound is returned, or it is not, with the probability 1/2 on the second input
        honest = Response(2, (1 - math.exp(-epsilon) / 2, 0.5), (0, 0))
        broken = Response(2, (1 - math.exp(-epsilon * beyond) / 2, 0.5), (0, 0))
    failing = case["claimed_delta_tolerance"] * case["failure_specificity"]
    yield Control(case, "reference", honest, claim, is_true=True)
    delta = claim.infinity
    for kind, release in (
        ("too far", broken),
        ("failing", Response(honest.labels, (honest.chances[1],) * 2, (0, 0), failing)),
    ):
        needed = best_guess_test_runs(
            release.pair(), claim.epsilon_at(delta), delta, 1 - CONFIDENCE, POWER
        )
        yield Control(case, kind, release, claim, is_true=False, needed=needed)


# --- the shape of noise ---


@dataclass(frozen=True)
class BesideReference:
    """Noise of one law on the input 0, and of the law that a case states on the input 1."""

    case_noise: str
    mean: float
    deviation: float
    granularity: float
    other: Any  # a mechanism on the raw input, or (kind, mean, deviation) of noise
    raw_input: float

    def __call__(self, value: int, rng: np.random.Generator, size: int) -> Any:
        """Outputs on the grid of the case."""
        if value == 0 and not isinstance(self.other, tuple):
            outputs = self.other.release(self.raw_input, rng, size)
        else:
            stated = (self.case_noise, self.mean, self.deviation)
            kind, center, deviation = self.other if value == 0 else stated
            scale = deviation / math.sqrt(2) if kind == "LAPLACE" else deviation
            draw = rng.laplace if kind == "LAPLACE" else rng.normal
            outputs = draw(center, scale, size)
        return np.round(np.asarray(outputs, dtype=float) / self.granularity) * self.granularity


def shape_controls(case: Case) -> Iterator[Control]:
    """Our noise beside that of the case, and noise of another place, size and shape beside it."""
    kind = case["family"].removesuffix("_closeness").upper()
    other_kind = "GAUSSIAN" if kind == "LAPLACE" else "LAPLACE"
    center, deviation = float(case["mean"]), math.sqrt(case["variance"])
    parts, bound, epsilon = case["l0_sensitivity"], case["linf_sensitivity"], case["epsilon"]
    # a person has a row in each of so many groups
    columns = {"x": Number(0.0, float(bound)), "part": Category(range(parts + 1))}
    facts_of_persons = {"groups_per_person": parts, "rows_per_person_and_group": 1}
    schema = Schema(columns, person="id", **facts_of_persons)
    cost = {"epsilon": float(epsilon), "delta": case.get("delta") or 0.0}
    query = sum_("x", by="part", noise=NOISES[kind], **cost)
    ours = FirstSum(query, schema, NOISES[kind])
    facts = (kind, center, deviation, case["granularity"])
    raw, same = float(case["raw_input"]), INDEPENDENT
    yield Control(case, "ours", BesideReference(*facts, ours, raw), same, is_true=True)
    for control, other in (
        ("shifted", (kind, center + case["shift_specificity"] * deviation, deviation)),
        ("scaled", (kind, center, math.sqrt(case["scale_specificity"]) * deviation)),
        ("of another shape", (other_kind, center, deviation)),
    ):
        name, place, size = other
        moved = (name, (place - center) / deviation, size / deviation)
        needed = runs_to_tell(moved, (kind, 0.0, 1.0))
        release = BesideReference(*facts, other, raw)
        yield Control(case, control, release, same, is_true=False, needed=needed)


@functools.lru_cache
def runs_to_tell(first: tuple[str, float, float], second: tuple[str, float, float]) -> float:
    """Runs of the best guess test that tell two laws apart."""
    pair = laws_on_a_grid(first, second)
    return best_guess_test_runs(pair, 0.0, 0.0, 1 - CONFIDENCE, POWER)


# --- our releases ---


@dataclass(frozen=True)
class FirstSum:
    """The noisy sum of the first group of a frame without rows, and a public number."""

    query: Any
    schema: Schema
    noise: str

    def release(self, raw_input: float, rng: np.random.Generator, size: int) -> Any:
        """Sums of so many releases, of which the other groups are not looked at."""
        frame = pd.DataFrame({name: np.array([], dtype=int) for name in ("x", "part", "id")})
        mechanism = self.query.mechanism(self.schema)
        if self.noise == "gaussian":
            mechanism = replace(mechanism, dimension=1)
        exact = self.query.sums(frame, self.schema, self.noise)[0]
        unit = self.query.statistic.basis(self.schema, self.noise).unit
        return raw_input + unit * mechanism.release(int(exact), rng, size)


@dataclass(frozen=True)
class FrameRelease:
    """The noisy sums of a question to a frame: all that its answer is made of."""

    query: Any
    schema: Schema
    noise: str
    shared: int  # rows that both frames have besides those in them

    def __call__(self, frame: Any, rng: np.random.Generator, size: int) -> Any:
        """Noisy sums of so many releases."""
        mechanism = self.query.mechanism(self.schema)
        sums = self.query.sums(frame, self.schema, self.noise)
        noisy = mechanism.release(sums + self.shared, rng, size)
        return np.asarray(noisy, dtype=float).reshape(size, -1)


def neighbours(case: Case) -> tuple[list[Any], list[Any]]:
    """The entries that both inputs have, and those that one person adds to one of them."""
    if case["family"] == "count":
        before, after = (sum(case[name]) for name in ("raw_increment_by",
                                                      "neighbour_raw_increment_by"))  # fmt: skip
        return [0] * before if before <= MOST_ROWS else [], [0] * (after - before)
    before, after = case["raw_entry"], case["neighbour_raw_entry"]
    if Counter(before) - Counter(after):
        raise ValueError(f"the second input of {case['name']} lacks entries of the first")
    return before, list((Counter(after) - Counter(before)).elements())


def frames_and_schema(case: Case) -> tuple[tuple[Any, Any], Schema]:
    """Both inputs as frames: each shared entry is of a person, and all others of one."""
    shared, extra = neighbours(case)
    whole = case["family"] in WHOLE
    dtype = int if whole else float
    people = [*range(len(shared)), *[len(shared)] * len(extra)]
    after = pd.DataFrame({"x": np.array([*shared, *extra], dtype=dtype), "id": people})
    before = after.iloc[: len(shared)].reset_index(drop=True)
    edges = bins_of_powers(case) or [0, 1]
    low, high = case.get("lower_bound", edges[0]), case.get("upper_bound", edges[-1])
    column = Integer(int(low), int(high)) if whole else Number(float(low), float(high))
    return (before, after), Schema({"x": column}, person="id", rows_per_person=len(extra))


def bins_of_powers(case: Case) -> list[float]:
    """The edges between which approximate bounds count: powers of a base, of both signs."""
    if case["family"] != "approximate_bounds":
        return []
    ends = [case["scale"] * case["base"] ** i for i in range(case["number_of_bins"])]
    return [*(-end for end in ends[::-1]), 0.0, *ends]


def frame_control(case: Case, claim: Loss) -> Control:
    """The same question to `algorithms.frames`, at the privacy that the case claims."""
    frames, schema = frames_and_schema(case)
    cost = {"epsilon": case["epsilon"], "delta": case.get("delta", 0.0) or 0.0}
    noise = NOISES[case["noise_type"]]
    ask = {"count": count, "bounded_mean": functools.partial(mean, "x"),
           "bounded_stdv": functools.partial(standard_deviation, "x"),
           "approximate_bounds": functools.partial(histogram, "x", bins_of_powers(case))}.get(
               case["family"], functools.partial(sum_, "x"))  # fmt: skip
    query = ask(**cost, noise=noise)
    common = sum(case["raw_increment_by"]) if case["family"] == "count" else 0
    release = FrameRelease(query, schema, noise, common if common > MOST_ROWS else 0)
    return Control(case, "ours", release, claim, is_true=True, pair=frames)


@dataclass(frozen=True)
class QuantileRelease:
    """Quantiles of a frame, released through a ledger."""

    query: Any
    schema: Schema
    epsilon: float

    def __call__(self, frame: Any, rng: np.random.Generator) -> list[float]:
        """The quantiles of one release."""
        gate = Filter(frame, Budget(self.epsilon * (1 + 1e-9)), rng=rng)
        answer = self.query.release(gate, self.schema)
        return [float(value) for value in np.ravel(answer.value)]


def quantile_control(case: Case) -> Control:
    """The same quantiles of `algorithms.frames`; each run is a release through a ledger.

    Ours spend no delta, so the claim has none.
    """
    frames, schema = frames_and_schema(case)
    query = quantiles("x", case["rank"], epsilon=case["epsilon"], confidence=None)
    release, claim = QuantileRelease(query, schema, case["epsilon"]), PureLoss(case["epsilon"])
    return Control(case, "ours", release, claim, is_true=True, pair=frames, most_runs=1000)
