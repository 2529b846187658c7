"""Plans from the configurations of jax-privacy, whose fields are read from a dictionary.

Neither JAX nor Keras is imported.  `DPKerasConfig` adds the gradients of several batches before a
step; its accountant takes them for one Poisson sample, while `fit` draws each by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import asdict, is_dataclass
from typing import Any

from accountant.accountants.tight import Tight
from accountant.amplification.poisson_sampling import PoissonSampled
from accountant.amplification.truncated_sampling import TruncatedPoisson
from accountant.domains import BOOLEAN, POSITIVE, POSITIVE_DELTA, IntegerRange, Interval, OrNone
from accountant.errors import ParameterError, UnsupportedPlan
from accountant.formats.added_samples import ADDED, added_samples
from accountant.formatting import format_upper
from accountant.losses.gaussian import GaussianLoss
from accountant.planning.calibration import calibrate
from accountant.plans.plan import Plan

COUNT = IntegerRange(1)
# Whether an update has one Poisson sample, cut into batches, or each batch is a sample by itself.
LOADERS = ("poisson", "poisson batches")
OTHER = "'poisson' or 'poisson batches'; for other draws dp_sgd(..., loader=...) states the cost"
PlanOfNoise = Callable[[float], Plan]
# The fields of both configurations, of a DPKerasConfig, and of a BandMFConfig.
SHARED = ("epsilon", "delta", "noise_multiplier", "rescale_to_unit_norm")
KERAS = (
    *SHARED,
    "clipping_norm",
    "batch_size",
    "gradient_accumulation_steps",
    "train_steps",
    "train_size",
    "poisson_sampling_in_fit",
    "microbatch_size",
    "seed",
)
BANDED = (
    *SHARED,
    "iterations",
    "expected_participations",
    "strategy",
    "l2_clip_norm",
    "normalize_by",
    "truncated_batch_size",
    "num_examples",
    "column_normalize",
)
UNSET = "a number: take that of model.get_noise_multiplier() or of the calibrated config"
NO_LOADER = (
    "poisson_sampling_in_fit is off, so batches are those of the iterator that fit was given, and "
    "the config counts Poisson samples: turn it on, or pass loader='poisson' if that iterator cuts "
    "one Poisson sample an update into batches; shuffled batches cost more, see dp_sgd"
)


def from_jax_privacy(
    config: Any,
    loader: str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Plan:
    """Return the plan of a jax-privacy configuration, checked against the epsilon it claims.

    Parameters
    ----------
    config : mapping
        The fields of a `DPKerasConfig` or a `BandMFConfig`, or the configuration itself.
        ``train_steps`` counts updates, as jax-privacy's accountant does.
    loader : str, optional
        How batches were drawn where the configuration does not draw them: "poisson", one Poisson
        sample an update, cut into batches; or "poisson batches", one for each batch.
    epsilon : float, optional
        The claim, where the configuration has none.
    delta : float, optional
        Its delta, where the configuration has none.

    Returns
    -------
    Plan
        Poisson-sampled Gaussians, for add-remove neighbours.

    Raises
    ------
    ParameterError
        If a field is missing or wrong, if batches are not Poisson samples, or if the claimed
        epsilon is too small; the message says what is true, and how much noise keeps the claim.

    Examples
    --------
    >>> from accountant import ParameterError, from_jax_privacy
    >>> config = dict(epsilon=1.1, delta=1e-5, batch_size=10, gradient_accumulation_steps=8,
    ...               train_steps=100, train_size=1000, noise_multiplier=1.0)
    >>> try:
    ...     from_jax_privacy(config, loader="poisson")
    ... except ParameterError as error:
    ...     print("5.614 is true" in str(error), "0.7181 would be" in str(error))
    True True
    """
    config_fields = _checked_fields(config)
    if loader is not None and loader not in LOADERS:
        raise ParameterError("loader", loader, OTHER)
    if config_fields.get("noise_multiplier") is None:
        raise ParameterError("noise_multiplier", None, UNSET)
    noise = POSITIVE.check("noise_multiplier", config_fields["noise_multiplier"])
    claim = config_fields.get("epsilon") if epsilon is None else epsilon
    at = config_fields.get("delta") if delta is None else delta
    if "batch_size" in config_fields:
        plan_of, problems, hint = _keras(config_fields, loader)
    else:
        plan_of, problems, hint = _banded(config_fields), [], ""
    if claim is not None:
        problems += _too_small_claim(plan_of, noise, claim, at, hint)
    if problems:
        numbered = "; ".join(f"({i}) {problem}" for i, problem in enumerate(problems, 1))
        allowed = f"what was run, and differs: {numbered if len(problems) > 1 else problems[0]}"
        shown = {
            name: config_fields[name]
            for name in ("epsilon", "noise_multiplier")
            if name in config_fields
        }
        raise ParameterError("config", shown, allowed)
    return plan_of(noise)


def _checked_fields(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration, whose names are known."""
    if is_dataclass(config) and not isinstance(config, type):
        config = asdict(config)
    if not isinstance(config, Mapping):
        allowed = "a DPKerasConfig or a BandMFConfig, or a dictionary of its fields"
        raise ParameterError("config", type(config).__name__, allowed)
    known_fields = KERAS if "batch_size" in config else BANDED
    unknown = sorted(map(str, set(config) - set(known_fields)))
    if unknown:
        raise ParameterError("config", unknown[0], f"of the fields {', '.join(known_fields)}")
    needed_by_keras = ("batch_size", "train_steps", "train_size")
    needed_by_bands = ("iterations", "expected_participations", "strategy")
    for name in needed_by_keras if known_fields is KERAS else needed_by_bands:
        if name not in config:
            raise ParameterError(name, None, "among the fields of the config")
    return dict(config)


def _keras(config_fields: dict[str, Any], loader: str | None) -> tuple[PlanOfNoise, list[str], str]:
    """Return the plan as a function of the noise, what is wrong with the loader, and a hint.

    The hint says in words which batches are added for an update, and what a single one would cost;
    it is empty where an update has one batch.
    """
    records = COUNT.check("train_size", config_fields["train_size"])
    batch = IntegerRange(1, records).check("batch_size", config_fields["batch_size"])
    steps = COUNT.check("train_steps", config_fields["train_steps"])
    added = ADDED.check(
        "gradient_accumulation_steps", config_fields.get("gradient_accumulation_steps", 1)
    )
    in_fit = BOOLEAN.check(
        "poisson_sampling_in_fit", config_fields.get("poisson_sampling_in_fit", False)
    )
    if added * batch > records:
        allowed = f"at most train_size / batch_size = {records // batch:,}"
        raise ParameterError("gradient_accumulation_steps", added, allowed)
    problems = [NO_LOADER] if loader is None and not in_fit else []
    has_separate_samples = in_fit or loader == "poisson batches"

    def plan_of(noise: float) -> Plan:
        if added > 1 and has_separate_samples:
            return steps * added_samples(noise, batch / records, added)
        return steps * PoissonSampled(GaussianLoss(1 / noise), added * batch / records)

    hint = ""
    if added > 1:
        parts = f"{added:,} batches of {batch:,} are added for each update"
        single_sample = f"one Poisson sample of {added * batch:,} of {records:,} records"
        separate_samples = f"{added:,} Poisson samples of {batch:,} of {records:,} records"
        hint = f"{parts}, {separate_samples if has_separate_samples else single_sample}"
        delta, noise = config_fields.get("delta"), config_fields["noise_multiplier"]
        if delta is not None:
            alone = steps * PoissonSampled(GaussianLoss(1 / noise), batch / records)
            cost = Tight().epsilon(alone, POSITIVE_DELTA.check("delta", delta))
            hint += f", and {format_upper(cost, 4)} would be that of a single batch an update"
    return plan_of, problems, hint


def _banded(config_fields: dict[str, Any]) -> PlanOfNoise:
    """Return the plan of a banded matrix mechanism with cyclic Poisson samples, by the noise.

    With b bands the records are in b groups, and each step samples from the next group.  The plan
    has a sample for each time that a group comes up.
    """
    strategy = config_fields["strategy"]
    if isinstance(strategy, (str, Mapping)) or not isinstance(strategy, Sized) or not len(strategy):
        raise ParameterError("strategy", strategy, "a list of the coefficients of the bands")
    steps = COUNT.check("iterations", config_fields["iterations"])
    bands = IntegerRange(1, steps).check("bands of the strategy", len(strategy))
    allowed_participations = Interval(0.0, steps / bands, "(]")
    participations = allowed_participations.check(
        "expected_participations", config_fields["expected_participations"]
    )
    rate, rounds = min(1.0, participations * bands / steps), -(-steps // bands)
    largest, records = (config_fields.get(key) for key in ("truncated_batch_size", "num_examples"))
    OrNone(COUNT).check("truncated_batch_size", largest)
    OrNone(COUNT).check("num_examples", records)
    if largest is None:
        return lambda noise: rounds * PoissonSampled(GaussianLoss(1 / noise), rate)
    if records is None:
        raise ParameterError("num_examples", None, "given where truncated_batch_size is")
    # size of the largest group, one group a band
    group = -(-COUNT.check("num_examples", records) // bands)
    largest_batch = COUNT.check("truncated_batch_size", largest)
    return lambda noise: (
        rounds * TruncatedPoisson(GaussianLoss(1 / noise), rate, records=group, batch=largest_batch)
    )


def _too_small_claim(
    plan_of: PlanOfNoise, noise: float, epsilon: object, delta: object, hint: str
) -> list[str]:
    """Return in words by how much a claim is too small, and the noise that keeps it."""
    claimed = POSITIVE.check("epsilon", epsilon)
    if delta is None:
        raise ParameterError("delta", None, "given beside the epsilon that is claimed")
    at = POSITIVE_DELTA.check("delta", delta)
    cost = Tight().epsilon(plan_of(noise), at)
    if cost <= claimed:
        return []
    message = f"epsilon {claimed:g} is claimed at delta {at:g}, and {format_upper(cost, 4)} is true"
    message += f" ({hint})" * bool(hint)
    try:
        smallest_noise = calibrate(plan_of, epsilon=claimed, delta=at)
    except (ParameterError, UnsupportedPlan):
        return [f"{message}: claim that, or add more noise"]
    rounded = math.ceil(smallest_noise * 1e4) / 1e4
    return [f"{message}: claim that, or set noise_multiplier to {rounded:g} before training"]
