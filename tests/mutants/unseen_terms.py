"""Terms of bounds on errors that no law sees dropped, and why: others are larger, where we looked.

They are kept: each bounds an error that floats may make.  A term of round-off is some ten times
what round-off is, so that one of several can cover for another.
"""

from accountant.accountants import (
    advanced,
    attack_rates,
    gaussian_fit,
    tradeoff_curves,
    tradeoff_ends,
)
from accountant.amplification import shuffling
from accountant.amplification.sampled_gaussian.sampled_gaussian_renyi import SampledGaussianRenyi
from accountant.amplification.sampled_ratio_cgf import SampledRatioLaw
from accountant.amplification.sampled_ratio_filon import FilonRule
from accountant.composition import contour
from accountant.composition.contour import Contour
from accountant.composition.enumeration import Enumeration
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.lattice import Lattice
from accountant.losses import laplace
from accountant.losses.mixture_pair import MixturePair
from accountant.numerics import lognormal_lattice
from accountant.numerics.lognormal_inversion import Line
from accountant.verifier.allocation import EpochTransform
from accountant.verifier.moments import MixtureMoments
from tests.mutants.error_bounds import Dropped

UNSEEN = {
    Dropped(Contour, "_scale_error", " + 4 * ULP * (abs(scale) + abs(self._height))"): (
        "the term that grows with epsilon is 4 ulps of |z| >= a times it, and as large"
    ),
    Dropped(Contour, "integrate", "fixed += math.exp(self._truncated) / self.smoothing", "pass"): (
        "what truncation takes from both sums together is at most the truncation of one, times"
        " e^(S/8), which is 1 to four digits (docs/proofs/trusted-base.md)"
    ),
    Dropped(Contour, "bounds", " + self._density_error[1] * abs(epsilon)"): (
        "S |z|^2 times the round-off of the sum itself; where that is large, added is above delta"
    ),
    Dropped(Contour, "upper_table", "math.sqrt(2 * size", "math.sqrt(size"): (
        "the sums of a table have at most sqrt(size) times the 2-norm of the terms"
    ),
    Dropped(contour, "_round_off", "fixed, 4 * ULP", "fixed, ULP"): (
        "a phase errs by 0.6 ulps of itself, among 400"
    ),
    Dropped(contour, "_round_off", " + 64 * ULP", " + ULP"): (
        "2,000 floats in pairs add up to 0.02 ulps of their sizes"
    ),
    Dropped(MixturePair, "cf_ratio", "power_round_off(count, spread, z, ratio_error) + "): (
        "the error of the rule, 5 e^-42, is below it; a law of cumulants sees it of finite losses"
    ),
    Dropped(MixturePair, "cell_masses", "(1 + largest_edge + ", "(1 + "): (
        "a loss is at most the span times the farthest output, which stands beside it: the edges of"
        " 400 pairs err by 0.29 of what is left at most"
    ),
    Dropped(SampledGaussianRenyi, "_sum_block", " + self._round_off(z, x, t, weight)"): (
        "answers are raised by 16 ulps at the end, and sums of one sign err by less"
    ),
    Dropped(SampledGaussianRenyi, "_of_two_bumps", "edges, LEFT_TAIL", "edges, NO_TAIL"): (
        "what is between the bumps is bounded by its greatest height, which is more"
    ),
    Dropped(SampledGaussianRenyi, "_of_two_bumps", "window, RIGHT_TAIL", "window, NO_TAIL"): (
        "the same"
    ),
    Dropped(SampledGaussianRenyi, "_rule_error", " * (1 + power * self.mu**2 / 4)"): (
        "where mu is 0.2 a rule misses 0.80 of what is left, at mu above 0.5 at most 0.39, in 6,000"
        " settings"
    ),
    Dropped(SampledGaussianRenyi, "_rule_error", " / math.cos(angle / 2) ** power"): (
        "a rule misses 0.79 of what is left at most, in the same settings"
    ),
    Dropped(
        SampledGaussianRenyi, "_of_one_bump", "-self._tail)), np.log(z))", "-self._tail)), 0.0)"
    ): (
        "what lies beyond the window is below 1, or below the bound on the curve there, unless I is"
        " above e^50"
    ),
    Dropped(Line, "_integrate", " + float(np.sum(np.abs(self._terms))) * 8 * ULP"): (
        "`excess` adds 16 ulps of the same terms and one for each node; a product, a square and a"
        " quotient of a term err by 3"
    ),
    Dropped(Line, "_power", "(error + 4 * ULP)", "4 * ULP"): (
        "the error of the whole power counts that of each factor already"
    ),
    Dropped(lognormal_lattice._SumOnLattice, "bounds", " + SUMMED"): (
        "1e-11 for sums of positive terms, whose round-off is some 1e-14"
    ),
    Dropped(Enumeration, "__init__", "_mismatch += 4 * ULP", "_mismatch += 0 * ULP"): (
        "the error of the logarithms of masses is larger by their size"
    ),
    Dropped(Lattice, "integrate", "error + turn", "error"): (
        "the error of the cumulant has an ulp of the same phases"
    ),
    Dropped(Lattice, "_bounds", "2 * self._height_error + "): (
        "the error of the cumulant at the nodes has that at the tilt in it"
    ),
    Dropped(Lattice, "_bounds", " + 4 * ULP * size"): "32 ulps of all terms are more",
    Dropped(SumOnGrid, "delta", "error = self.error_2 * size + ", "error = "): (
        "of positive masses the other round-off is more: both together are seen"
        " (round_off_forgotten in lattices.py)"
    ),
    Dropped(SumOnGrid, "delta", "error += 1000 * ULP * abs(value)", "pass"): (
        "the same, while no value is near the whole"
    ),
    Dropped(SumOnGrid, "convolve", "(4 * ULP * factors + round_off)", "round_off"): (
        "each of the same factors has 8 ulps for each level of its transform, of a larger 2-norm"
    ),
    Dropped(SumOnGrid, "convolve", "min(2 * power_error", "min(power_error"): (
        "(1 + e)^n - 1 is at most n e times e^(n e), which is half of the exponent: the other half"
        " is to spare"
    ),
    Dropped(SumOnGrid, "__init__", "2 * math.exp(log_wrapped)", "math.exp(log_wrapped)"): (
        "from above, 0.42 of both is the most that we made appear near epsilon, where the kernel is"
        " largest; what wraps from below appears where the kernel is at most e^log_wrapped"
    ),
    Dropped(SumOnGrid, "upper_deltas", "self._wrapped / (1 + a) + "): (
        "what wraps around adds to masses and takes nothing from them, so that upper bounds hold"
    ),
    Dropped(laplace, "_laplace_cgf", "terms + np.abs(value) + far", "np.abs(value) + far"): (
        "a cumulant of Laplace noise is not small where its terms are large, but at its zeros"
    ),
    Dropped(EpochTransform, "size_beyond", " + arb(0, self.rule_error)"): (
        "it is in the bound on what is truncated alone, which is larger than that by factors"
    ),
    Dropped(EpochTransform, "error_of_rule", " + 2 * (y * y / 2).exp() * normal_tail(arb(18))"): (
        "1e-72: a check at 256 bits does not see it, one at 4096 bits may"
    ),
    Dropped(MixtureMoments, "quadrature", " + outside) / (1 - share)", ")"): (
        "a second order: the error of an error"
    ),
    Dropped(
        advanced._Binomial,
        "delta",
        "np.where(epsilon < self.window_start, 1.0, np.minimum(result, 1.0))",
        "result",
    ): "masses are raised by more than what lies below their window, 1e-300",
    Dropped(advanced._Binomial, "__init__", " * (1 + 4 * ULP)"): (
        "masses are raised by 8 ulps of count times epsilon, which is more"
    ),
    Dropped(
        tradeoff_curves,
        "greatest_lines",
        " - 4 * ULP * (np.abs(result) + np.exp(np.minimum(epsilon, 0.0)))",
    ): "the accuracy of a profile, 2^-36, is more unless delta is below 1e-4",
    Dropped(tradeoff_ends, "_heights", "return low - error, high + error", "return low, high"): (
        "the same"
    ),
    Dropped(tradeoff_ends, "_sup_of_concave", " + 16 * ULP * size"): "the same",
    Dropped(attack_rates, "_powers", "1 - high - ULP", "1 - high"): "the same",
    Dropped(attack_rates, "_powers", "1 - low + ULP", "1 - low"): "the same",
    Dropped(attack_rates, "bayes_risk", "lower * (1 - 4 * ULP)", "lower"): "the same",
    Dropped(attack_rates, "bayes_risk", "upper * (1 + 4 * ULP)", "upper"): "the same",
    Dropped(gaussian_fit, "_corner_mus", "np.log(power) + 8 * ULP", "np.log(power)"): "the same",
    Dropped(gaussian_fit, "_corner_mus", "level - 8 * ULP * size", "level"): "the same",
    Dropped(
        shuffling,
        "binomial_window",
        "missed += bdtrc(high, n, chance) if high < n else 0.0",
        "pass",
    ): "sticks fall with the number of clones, and the masses of a window are raised to 1",
    Dropped(shuffling, "_sticks_of_clones", " + ULP * error + TINY"): (
        "the accuracy of a profile is more where sticks are no small differences"
    ),
    Dropped(
        shuffling,
        "binary_hockey_sticks",
        "above_p[threshold] * (1 + error)",
        "above_p[threshold]",
    ): "the error of Q is as large where both nearly cancel; both together are seen",
    Dropped(SampledRatioLaw, "cgf", " * growth"): (
        "rules err by some hundredths of their bound, and atoms keep values large; mixtures see it"
    ),
    Dropped(SampledRatioLaw, "log_cf_bound", " + 1e-12"): "sums by parts are sharp at no frequency",
    Dropped(FilonRule, "ratio", "8 * ULP * (size + abs(self._log_moment))", "0.0"): (
        "sums of a rule err by less, and truths are known to 1e-12"
    ),
}
