"""Canaries of gradients: an audit of one training by DP-SGD that sees the sums of all steps.

A canary is a record whose gradient points along one parameter of its own.  A fair coin puts it into
the data for the whole training, and a step then uses it with the sampling rate, as any record.
What a step releases along that parameter, less what the other records add there, is noise, moved by
one clipping length if the step used the canary.  The score of a canary is the privacy loss of these
numbers, added up over the steps: of all scores it tells best who was in, as few steps use a canary.

The others' gradients and their draws may be known to the auditor: a claim on Poisson samples is one
against an attacker who knows all of them.  Proofs: docs/proofs/one_run.md, section 7.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import DELTA, POSITIVE, IntegerRange
from accountant.errors import ParameterError
from accountant.numerics import Array
from accountant.plans.plan import Plan
from accountant.randomness import Rng
from audits.claims.arguments import CONFIDENCE, seed_and_generator
from audits.claims.claims import ClaimLike
from audits.claims.findings import OTHER_EVENTS, NotTested, Outcome
from audits.one_run.canaries import COUNT, Canaries
from audits.one_run.canary_power import (
    MOST_CANARIES,
    RATE,
    CanaryPower,
    SimulatedCanaries,
    canary_power,
    log_ratios,
    sampled_gaussians,
)
from audits.one_run.findings import NOT_TESTED, NoiseFinding, OneRunFinding

# Shares of the declared noise for which scores are kept.  The likeliest one for BLOCK canaries of
# neighbouring parameters is audited: one layer may have other noise than the next.
BLOCK = 64
SHARES = np.geomspace(1 / 32, 1.25, 30)
LENGTH = 10.0  # of a canary's gradient in clipping lengths, so that it is clipped
REPEATED = NotTested(
    OTHER_EVENTS, "whether the noise of a step is independent of other steps' was not"
)
DRAWS = NotTested(
    OTHER_EVENTS, "canaries are drawn at the declared rate; how the loader draws records was not"
)


@final
class GradientCanaries:
    """Canaries of a training whose steps release noisy sums of clipped gradients.

    In each step `rows` gives the gradients that are added to those of the records, and `observe`
    takes the noisy sum.  After the last one `audit` judges the plan, and `audit_noise` the noise.
    Any trainer will do, by arrays; for Opacus there is `opacus_canaries`.

    Parameters
    ----------
    count : int
        Number of canaries: at least 10, at most ``parameters``.
    parameters : int
        Number of parameters, the length of a gradient.
    rate : float
        Declared probability in (0, 1] with which a step uses a record.
    noise_multiplier : float
        Declared standard deviation of the noise in clipping lengths, positive.
    clip : float, optional
        The declared clipping length.
    rng : int, Generator or None, optional
        Draws the coins, the parameters, and the steps that use a canary.  The training must not
        get the same seed.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    References
    ----------
    Steinke, Nasr & Jagielski (2023); Nasr et al. (2023) for gradients as canaries.

    Examples
    --------
    >>> import numpy as np
    >>> from audits import GradientCanaries
    >>> canaries = GradientCanaries(700, 738, rate=0.05, noise_multiplier=1.1, rng=0)
    >>> noise = np.random.default_rng(1)
    >>> for step in range(100):
    ...     rows = canaries.rows()
    ...     clipped = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    ...     canaries.observe(clipped.sum(axis=0) + noise.normal(scale=0.55, size=738))
    >>> canaries.audit().outcome.name
    'FALSIFIED'
    """

    def __init__(
        self,
        count: int,
        parameters: int,
        *,
        rate: float,
        noise_multiplier: float,
        clip: float = 1.0,
        rng: Rng = None,
    ) -> None:
        number = COUNT.check("count", count)
        self.parameters = IntegerRange(number).check("parameters", parameters)
        self.rate = RATE.check("rate", rate)
        self.noise_multiplier = POSITIVE.check("noise_multiplier", noise_multiplier)
        self.clip = POSITIVE.check("clip", clip)
        self.seed, self._rng = seed_and_generator(rng)
        self.coins = Canaries.flip(number, rng=self._rng).coins
        # The parameter of each canary; all layers get canaries in proportion to their size.
        self.along = np.sort(self._rng.choice(self.parameters, size=number, replace=False))
        self.steps = 0
        self._drawn: NDArray[np.bool_] | None = None
        # For each share of the noise and each canary its score, and ln of the share's likelihood.
        self._scores, self._likelihood = np.zeros((2, SHARES.size, number))
        self._unknown_variance = 0.0
        # The sum of squares of noise alone, in units of its declared variance, and their number.
        self._squares, self._squared = 0.0, 0

    def __len__(self) -> int:
        """Return the number of canaries."""
        return int(self.coins.size)

    def __repr__(self) -> str:
        return (
            f"<GradientCanaries: {len(self):,} of {self.parameters:,} parameters, rate "
            f"{self.rate:g}, noise multiplier {self.noise_multiplier:g}, {self.steps:,} steps>"
        )

    def draw(self) -> NDArray[np.int64]:
        """Draw the canaries that the next step uses.

        Returns
        -------
        array of int
            The parameter along which the gradient of each of them points.
        """
        if self._drawn is not None:
            raise ParameterError("draw", "a second time", "one observe after each draw or rows")
        self._drawn = (self._rng.random(len(self)) < self.rate) & self.coins
        return np.asarray(self.along[self._drawn])

    def rows(self, length: float = LENGTH) -> Array:
        """Draw the canaries that the next step uses, and return their gradients.

        Parameters
        ----------
        length : float, optional
            Their length in clipping lengths.  Above 1 the trainer must clip them, which is tested
            too; 1 is for trainers that clip elsewhere.

        Returns
        -------
        array
            A row for each of them, of one number for each parameter; there may be none.
        """
        scaled = POSITIVE.check("length", length) * self.clip
        along = self.draw()
        gradients = np.zeros((along.size, self.parameters))
        gradients[np.arange(along.size), along] = scaled
        return gradients

    def observe(
        self, released: ArrayLike, others: ArrayLike = 0.0, variance: ArrayLike = 0.0
    ) -> None:
        """Take what a step released, before it is divided by a number of records.

        Parameters
        ----------
        released : array
            The noisy sum of the clipped gradients, a number for each parameter.
        others : array, optional
            The sum of the records' clipped gradients without canaries, or what is expected of it.
        variance : float or array, optional
            Variance of the records' sum about ``others``, for each parameter; 0 if it is known.

        Raises
        ------
        ParameterError
            If there is not a finite number for each parameter, or `rows` was not called before.
        """
        if self._drawn is None:
            raise ParameterError(
                "observe", "no canaries drawn", "rows() or draw() before each step"
            )
        shape = (self.parameters,)
        arrays = []
        for argument, numbers in (
            ("released", released),
            ("others", others),
            ("variance", variance),
        ):
            array = np.asarray(numbers, dtype=float)
            fits = array.shape == shape or (array.ndim == 0 and argument != "released")
            if (
                not fits
                or not np.isfinite(array).all()
                or (argument == "variance" and (array < 0).any())
            ):
                shown = f"an array of shape {array.shape}" if not fits else "numbers out of range"
                raise ParameterError(argument, shown, f"{self.parameters:,} finite numbers")
            arrays.append(np.broadcast_to(array, shape)[self.along])
        total, records, spread = arrays
        self.observe_along(total / self.clip, records / self.clip, spread / self.clip**2)

    def observe_along(self, released: Array, others: Array, variance: Array | float = 0.0) -> None:
        """Take a step as `observe` does, from the numbers along the canaries alone.

        Parameters
        ----------
        released : array
            The noisy sum, a number for each canary in ascending order of `along`, in units of the
            clipping length.
        others : array
            The records' sum in the same units.
        variance : float or array, optional
            Its variance in these units, squared.
        """
        if self._drawn is None:
            raise ParameterError(
                "observe", "no canaries drawn", "rows() or draw() before each step"
            )
        moved, spread = released - others, np.broadcast_to(variance, released.shape)
        drawn, self._drawn = self._drawn, None
        self.steps += 1
        self._unknown_variance += float(spread.mean())
        variances = (SHARES[:, None] * self.noise_multiplier) ** 2 + spread
        self._scores += log_ratios(moved, variances, self.rate)
        # A coin and a draw put a canary into a step with half the rate.
        densities = log_ratios(moved, variances, self.rate / 2)
        densities -= moved**2 / (2 * variances) + np.log(variances) / 2
        self._likelihood += densities
        self._squares += float(((moved[~drawn] / self.noise_multiplier) ** 2).sum())
        self._squared += int(np.count_nonzero(~drawn))

    @property
    def scores(self) -> Array:
        """The score of each canary: its privacy loss at the noise that was likeliest released."""
        return np.asarray(self._scores[self._likeliest, np.arange(len(self))])

    @property
    def _likeliest(self) -> NDArray[np.int64]:
        """The index of the likeliest share of the noise, for each canary that of its block."""
        starts = np.arange(0, len(self), BLOCK)
        by_block = np.add.reduceat(self._likelihood, starts, axis=1).argmax(axis=0)
        return np.asarray(by_block[np.arange(len(self)) // BLOCK])

    def power(
        self,
        steps: int,
        claim: Plan | ClaimLike | None = None,
        delta: float = 1e-5,
        confidence: float = 0.95,
    ) -> CanaryPower:
        """Say before a training of so many steps what these canaries can show of it.

        Parameters
        ----------
        steps : int
            Number of steps.
        claim : Plan, Budget, float or (float, float), optional
            As in `audit`.
        delta : float, optional
            As in `audit`.
        confidence : float, optional
            As in `audit`.

        Returns
        -------
        CanaryPower
            The chance that half the noise is falsified, and what would do if it is below 95 %.
        """
        return canary_power(
            len(self),
            rate=self.rate,
            steps=steps,
            noise_multiplier=self.noise_multiplier,
            claim=claim,
            delta=delta,
            confidence=confidence,
            parameters=self.parameters,
        )

    def audit(
        self,
        claim: Plan | ClaimLike | None = None,
        delta: float = 1e-5,
        confidence: float = 0.95,
    ) -> OneRunFinding:
        """Judge the claim of the whole training by guesses of which canaries were in.

        Parameters
        ----------
        claim : Plan, Budget, float or (float, float), optional
            As in `audit_scores`; by default the Gaussians on Poisson samples that were declared.
        delta : float, optional
            The delta in [0, 1) of the bound.
        confidence : float, optional
            Probability in (0, 1) with which the bound holds and a true claim survives.

        Returns
        -------
        OneRunFinding
            FALSIFIED, SURVIVED if half the noise would have been falsified with probability 95 %,
            else INCONCLUSIVE with ``needed_coins``.

        Raises
        ------
        ParameterError
            If no step was observed.
        """
        start = time.perf_counter()
        self._check_observed()
        if claim is None:
            claim = sampled_gaussians(self.rate, self.noise_multiplier, self.steps)
        coins = Canaries(self.coins, self.seed)
        finding = coins.audit(self.scores, claim, DELTA.check("delta", delta), confidence)
        variance = self._unknown_variance / self.steps
        half, noiseless = (
            SimulatedCanaries(self.rate, self.steps, noise, variance)
            for noise in (self.noise_multiplier / 2, 0.0)
        )
        alpha, plan = 1 - finding.confidence, finding.claim
        outcome, needed = finding.outcome, None
        if outcome is not Outcome.FALSIFIED and plan is not None:
            limit = min(self.parameters, MOST_CANARIES)
            needed = half.needed_canaries(len(self), limit, plan, finding.delta, alpha)
            outcome = Outcome.SURVIVED if needed == len(self) else Outcome.INCONCLUSIVE
        seen_noise = float(np.median(SHARES[self._likeliest])) * self.noise_multiplier
        return replace(
            finding,
            outcome=outcome,
            witness=f"{finding.witness.partition(';')[0]}; the noise along them looks like "
            f"{seen_noise:.2g} clipping lengths, {self.noise_multiplier:g} are declared",
            seconds=time.perf_counter() - start,
            seed=self.seed,
            provable=noiseless.epsilon_lower(len(self), finding.delta, alpha),
            noise="the declared noise",
            needed_coins=needed if outcome is Outcome.INCONCLUSIVE else None,
            not_tested=(*NOT_TESTED, REPEATED, DRAWS),
        )

    def audit_noise(
        self, noise_multiplier: float | None = None, confidence: float = 0.95
    ) -> NoiseFinding:
        """Judge the declared noise alone: that each step adds normal noise of this multiplier.

        The noise is what the steps released along canaries that they did not use, less what the
        records added.  This is another claim than that of `audit`, which it does not refute: it
        takes the noise to be normal, and independent for each parameter and step.

        Parameters
        ----------
        noise_multiplier : float, optional
            Another multiplier that is claimed.
        confidence : float, optional
            Probability in (0, 1) with which noise as declared survives.

        Returns
        -------
        NoiseFinding
            FALSIFIED if the noise is too small, with an upper bound on the multiplier.

        Raises
        ------
        ParameterError
            If no step was observed, or the records' gradients are not known.
        """
        self._check_observed()
        if self._unknown_variance > 0:
            allowed = "0 in every observe: the records' own noise would be taken for added noise"
            raise ParameterError("variance", "above 0", allowed)
        claimed = POSITIVE.check("noise_multiplier", noise_multiplier or self.noise_multiplier)
        return NoiseFinding.of(
            claimed,
            self._squares * (self.noise_multiplier / claimed) ** 2,
            self._squared,
            CONFIDENCE.check("confidence", confidence),
        )

    def _check_observed(self) -> None:
        if not self.steps:
            raise ParameterError("steps", 0, "at least one step, each with rows() and observe()")
