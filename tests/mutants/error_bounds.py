"""Bounds on errors that lack one of their terms: by law, each an edit of one function."""

from typing import Any, NamedTuple

from accountant import Loss
from accountant.accountants import (
    advanced,
    bounded_range_composition,
    gaussian_fit,
    profile_ends,
    tradeoff_curves,
    tradeoff_ends,
)
from accountant.accountants.advanced import Advanced
from accountant.amplification import group_privacy, poisson_sampling, shuffling
from accountant.amplification.allocation import allocated_gaussian, few_steps
from accountant.amplification.group_privacy import GroupLoss
from accountant.amplification.sampled_gaussian.sampled_gaussian_renyi import SampledGaussianRenyi
from accountant.amplification.sampled_ratio_cgf import SampledRatioLaw
from accountant.amplification.sampled_ratio_filon import FilonRule
from accountant.composition import cgf, contour, pld_grid
from accountant.composition.aliasing import AliasingBound
from accountant.composition.cgf import PlanCGF
from accountant.composition.contour import Contour
from accountant.composition.enumeration import Enumeration
from accountant.composition.fft_composition import SumOnGrid
from accountant.composition.lattice import Lattice
from accountant.losses import connect_the_dots, discrete_gaussian, laplace, pure_and_approximate
from accountant.losses.mixture_pair import MixturePair
from accountant.numerics import exponential_sums, lognormal_lattice
from accountant.numerics.lognormal_cut import CutTransform
from accountant.numerics.lognormal_inversion import Line
from accountant.numerics.lognormal_rule import LogNormalRule
from accountant.verifier import contour as proof_contour
from accountant.verifier import lattice_pairs, lattice_sums, outcomes, pairs_of_sets
from accountant.verifier.allocation import EpochTransform
from accountant.verifier.lattice_sums import TiltedSum
from accountant.verifier.moments import GaussianMoments, LaplaceMoments, MixtureMoments
from tests.mutants.edits import edit


class Dropped(NamedTuple):
    """A term that is left out: what stands in place of ``old`` in one function of ``owner``."""

    owner: Any
    function: str
    old: str
    new: str = ""

    def __call__(self, patch):
        edit(patch, *self)


SumOnLattice = lognormal_lattice._SumOnLattice
BellmanStep = bounded_range_composition._BellmanStep
TERMS = {
    "contours": {
        "truncation": Dropped(
            Contour, "bounds", "noise += math.exp(min(self._truncated, 700.0))", "pass"
        ),
        "truncation at many": Dropped(
            Contour, "_log_upper", " + math.exp(min(self._truncated, 700.0))"
        ),
        "aliases": Dropped(
            Contour, "bounds",
            " - math.exp(min(self._aliases.log_bound(epsilon) - scale, 700.0))",
        ),
        "aliases below": Dropped(
            AliasingBound, "log_bound", "np.logaddexp(below, above)", "above"
        ),
        "aliases above": Dropped(AliasingBound, "log_bound", "np.logaddexp(below, above)", "below"),
        "smoothing": Dropped(Contour, "bounds", "low -= added", "pass"),
    },
    "sums of a contour": {
        "additions": Dropped(contour, "_round_off", " + 64 * ULP * float(np.sum(size))"),
        "turns": Dropped(contour, "_round_off", "return fixed, 4 * ULP", "return fixed, 0"),
        "frequency of a turn": Dropped(contour, "_round_off", "size * np.abs(z)", "size"),
    },
    "tables of a contour": {
        "transform": Dropped(Contour, "upper_table", "[indices], error)", "[indices], 0.0)"),
        "its size": Dropped(Contour, "upper_table", "math.sqrt(2 * size * ", "math.sqrt(2 * "),
        "its levels": Dropped(Contour, "upper_table", " * (math.log2(size) + 1)"),
        "its constant": Dropped(Contour, "upper_table", "FFT_ULPS * ULP", "ULP"),
        "first epsilon": Dropped(
            Contour, "upper_table", "math.floor(low / spacing) - 1", "math.ceil(low / spacing)"
        ),
        "last epsilon": Dropped(
            Contour, "upper_table", "math.ceil(high / spacing) + 2", "math.floor(high / spacing)"
        ),
    },
    "smoothed contours": {
        "density": Dropped(Contour, "bounds", "self._density_error[0] + ", "0.0 + "),
        "growth of the density": Dropped(
            Contour, "bounds", "math.exp(min(self.smoothing / 8, 700.0)) * "
        ),
        "smoothing of the density": Dropped(Contour, "bounds", "* self.smoothing * max", "* max"),
        "kernel of the density": Dropped(Contour, "integrate", "error * np.abs(kernel)", "error"),
    },
    "smoothed cumulants": {
        "at a point": Dropped(PlanCGF, "value_at", "size = 4 * ULP *", "size = 0 *"),
        "some ulps at a point": Dropped(PlanCGF, "value_at", "size = 4 * ULP *", "size = ULP *"),
        "at a node": Dropped(PlanCGF, "cf_ratio", "missed = 4 * ULP *", "missed = 0 *"),
        "size at a node": Dropped(
            PlanCGF, "cf_ratio", "np.abs(exponent) * np.abs(product)", "np.abs(product)"
        ),
        "a small difference": Dropped(
            PlanCGF, "cf_ratio", "(z - z[0, 0]) * (z + (z[0, 0] + 1))",
            "(z * z + z - z[0, 0] * (z[0, 0] + 1))",
        ),
    },
    "phases of a contour": {
        "growing": Dropped(Contour, "bounds", " + self._sum_error[1] * abs(epsilon)"),
        "growing at many": Dropped(
            Contour, "_log_upper", " + self._sum_error[1] * np.abs(epsilon)"
        ),
    },
    "rough cumulants": {
        "height": Dropped(Contour, "_scale_error", "2 * self._height_error + "),
        "height at many": Dropped(Contour, "_log_upper", "self._scale_error(scale)", "0.0 * scale"),
        "scale": Dropped(
            Contour, "bounds", "noise += self._scale_error(scale) * abs(total)", "pass"
        ),
        "scale at many": Dropped(Contour, "_log_upper", "scale_error * np.abs(total) + "),
        "terms": Dropped(contour, "_round_off", "float(np.sum(error)) + "),
        "fixed": Dropped(Contour, "bounds", "self._sum_error[0] + "),
        "fixed at many": Dropped(Contour, "_log_upper", "self._sum_error[0] + "),
    },
    "cumulants": {
        "finite": Dropped(
            exponential_sums, "_finite_cgf_block", "16 * ULP * (size + np.abs(value))",
            "0 * (size + np.abs(value))",
        ),
        "terms of finite": Dropped(
            exponential_sums, "_finite_cgf_block", "(size + np.abs(value))", "np.abs(value)"
        ),
        "phases of finite": Dropped(
            exponential_sums, "_finite_cgf_block",
            "size = 1 + ordered_dot(np.abs(terms), np.abs(loss)) * np.abs(z[:, 0]) / np.abs(total)",
            "size = 1.0",
        ),
        "powers": Dropped(exponential_sums, "power_round_off", "16 * ULP * count", "0 * count"),
        "sums in powers": Dropped(exponential_sums, "power_round_off", "1 + own_error + "),
        "Laplace": Dropped(
            laplace, "_laplace_cgf", "return value, 16 * ULP * size", "return value, 0 * size"
        ),
        "response": Dropped(
            pure_and_approximate, "response_cgf", "return value, 16 * ULP * size",
            "return value, 0 * size",
        ),
        "terms of a response": Dropped(
            pure_and_approximate, "response_cgf", "terms + np.abs(value) + far", "np.abs(value)"
        ),
        "phases of a response": Dropped(
            pure_and_approximate, "response_cgf", "np.abs(z) * epsilon * np.exp",
            "np.minimum(np.abs(z) * epsilon, 1.0) * np.exp",
        ),
        "factors": Dropped(PlanCGF, "cf_ratio", " + error * np.abs(product)"),
        "summands": Dropped(PlanCGF, "value_at", "size + error", "size"),
    },
    "transforms on a grid": {
        "wrapped and cut": Dropped(
            SumOnGrid, "delta", "self.error_1 / (1 + a) + wrapped", "self.error_1 / (1 + a)"
        ),
        "kernel": Dropped(
            SumOnGrid, "delta", "wrapped += math.exp(-a * (terms - 1) * h)", "pass"
        ),
        "round-off at many": Dropped(SumOnGrid, "upper_deltas", " + missed"),
    },
    "rough transforms on a grid": {
        "transform back": Dropped(SumOnGrid, "convolve", " + round_off) * size)", ") * size)"),
        "transforms": Dropped(
            SumOnGrid, "convolve", "power_error += count * ", "power_error += 0 * "
        ),
        "levels": Dropped(SumOnGrid, "convolve", " * (math.log2(n) + 1)"),
        "kernel": Dropped(SumOnGrid, "delta", "self.error_2 * size", "self.error_2 * 0"),
        "round-off at many": Dropped(SumOnGrid, "_all_tails", "1.000001 * self.error_2 * size + "),
        "factors above 1": Dropped(
            SumOnGrid, "convolve", "slack = math.exp(min(2 * power_error * math.sqrt(n), 700.0))",
            "slack = 1.0",
        ),
        "size of a factor above 1": Dropped(SumOnGrid, "convolve", " * math.sqrt(n), 700", ", 700"),
        "wrapped": Dropped(SumOnGrid, "delta", "wrapped = self._wrapped / (1 + a)", "wrapped = 0"),
    },
    "noise on a grid": {
        "noise": Dropped(
            pld_grid, "grid_of_sum", "mass.size * max(0.0, -float(mass.min())) + "
        ),
        "sums": Dropped(pld_grid, "grid_of_sum", " + mass.size * ULP**1.5 + 64 * ULP"),
        "powers": Dropped(pld_grid, "grid_of_sum", "noise += releases * ULP", "pass"),
        "cut off, below": Dropped(pld_grid, "grid_of_sum", "noise += cut_off", "pass"),
        "cut off, above": Dropped(
            pld_grid, "grid_of_sum", "minus_log_finite -= math.log1p(-cut_off)", "pass"
        ),
    },
    "few outcomes": {
        "enumeration": Dropped(
            Enumeration, "__init__", "self._error += 8 * ULP * (size + count)", "pass"
        ),
        "lattice": Dropped(
            Lattice, "_bounds", "total - noise - alias, total + noise", "total - alias, total"
        ),
        "aliases": Dropped(Lattice, "_bounds", "total - noise - alias", "total - noise"),
        "terms": Dropped(Lattice, "integrate", "error + turn", "turn"),
    },
    "little discrete noise": {
        "masses too small for a float": Dropped(
            discrete_gaussian, "_listed_outcomes", "mass >= np.finfo(float).tiny",
            "(mass > 0) & (np.exp(-(((x - shift) / scale) ** 2) / 2) > 0)",
        ),
    },
    "far moments": {
        "moved mass": Dropped(
            Loss, "renyi", "np.logaddexp(value + error, moved)", "(value + error)"
        ),
    },
    "large groups": {
        "levels too small for a float": Dropped(
            group_privacy, "_power_curve", "np.max(power[is_lost], initial=0.0)", "0.0"
        ),
        "no lower end of a cut": Dropped(GroupLoss, "numerics", " or is_cut"),
    },
    "masses of samples": {
        "outcomes of Q alone": Dropped(
            poisson_sampling, "_sampled_outcomes", "1 - rate + rate * ratio_of_q",
            "rate * ratio_of_q",
        ),
    },
    "finite pairs": {
        "gaps": Dropped(
            connect_the_dots, "pair_below",
            " - np.maximum(np.append(0.0, gap), np.append(gap, 0.0))",
        ),
        "gaps before a point": Dropped(
            connect_the_dots, "pair_below",
            "np.maximum(np.append(0.0, gap), np.append(gap, 0.0))", "np.append(gap, 0.0)",
        ),
        "gaps behind a point": Dropped(
            connect_the_dots, "pair_below",
            "np.maximum(np.append(0.0, gap), np.append(gap, 0.0))", "np.append(0.0, gap)",
        ),
        "accuracy below": Dropped(
            connect_the_dots, "pair_below", "lowered[1:] -= 4 * ACCURACY * values[1:]", "pass"
        ),
        "the cell where the curve ends": Dropped(
            connect_the_dots, "pair_below", "first_reached - int(gap[first_reached - 1] > 0)",
            "first_reached",
        ),
        "accuracy above": Dropped(connect_the_dots, "pair_above", " * (1 + ACCURACY)"),
        "beyond a cut": Dropped(
            connect_the_dots, "discretise",
            "loss.infinity if high >= loss.max_loss else None", "loss.infinity",
        ),
        "an end that stands twice": Dropped(
            connect_the_dots, "discretise", "central_points[1:-1]", "central_points"
        ),
        "digits near epsilon 0": Dropped(
            connect_the_dots, "_x_less_1", "np.append(-1.0, np.expm1(points))",
            "np.append(0.0, np.exp(points))",
        ),
        "the point x = 0": Dropped(
            connect_the_dots, "_x_less_1", "np.append(-1.0, ", "np.append(-0.999, "
        ),
    },
    "mixtures": {
        "rule": Dropped(
            MixturePair, "cgf",
            "round_off + rule_error * growth", "round_off",
        ),
        "size against the tilted": Dropped(
            MixturePair, "cgf", "rule_error * growth", "rule_error"
        ),
        "rule of a ratio": Dropped(MixturePair, "cf_ratio", " + 2 * count * rule_error"),
        "turns of P": Dropped(
            MixturePair, "quadrature_step",
            "log_growth = log_growth - max(-1 - lowest_order, 0.0) * "
            "np.log(np.cos(right_spread * d / 2))",
            "log_growth = log_growth",
        ),
        "turns of Q": Dropped(
            MixturePair, "quadrature_step",
            "log_growth = log_growth - max(highest_order, 0.0) * "
            "np.log(np.cos(left_spread * d / 2))",
            "log_growth = log_growth",
        ),
        "rule of a decay": Dropped(MixturePair, "log_cf_bound", "5 * math.exp(-DIGITS) + "),
        "ends of a decay": Dropped(
            MixturePair, "log_cf_bound", " + TAIL_ERROR * math.exp(min(log_growth, 600.0))"
        ),
        "round-off of a decay": Dropped(
            MixturePair, "log_cf_bound", " + 16 * ULP * ((1 + 2 * a) * largest_term + farthest**2)"
        ),
    },
    "edges of mixtures": {
        "edges": Dropped(MixturePair, "cell_masses", "error = 16 * ULP *", "error = 0 *"),
        "ulps of edges": Dropped(MixturePair, "cell_masses", "error = 16 * ", "error = "),
        "losses below 1": Dropped(
            MixturePair, "cell_masses", "(1 + largest_edge", "(largest_edge"
        ),
        "slope": Dropped(MixturePair, "cell_masses", " + self.span * (1 + farthest))", ")"),
        "outputs": Dropped(MixturePair, "cell_masses", " * (1 + farthest)"),
    },
    "Renyi curves": {
        "rule": Dropped(
            SampledGaussianRenyi, "_sum_block", "self._rule_error(z, x, weight, rule) + "
        ),
        "rule, present": Dropped(
            SampledGaussianRenyi, "_rule_error", "2.1 * math.exp(-nats) * strip", "0 * strip"
        ),
        "rule, added": Dropped(
            SampledGaussianRenyi, "_rule_error", "4.2 * ordered_dot", "0 * ordered_dot"
        ),
        "tails": Dropped(
            SampledGaussianRenyi, "_sum_block", "error + ordered_dot", "error + 0 * ordered_dot"
        ),
        "one bump": Dropped(
            SampledGaussianRenyi, "_of_one_bump", "error + np.exp(left_out - value)", "error"
        ),
        "between two bumps": Dropped(
            SampledGaussianRenyi, "_of_two_bumps", " + math.exp(between[i] - total)"
        ),
        "of small moments": Dropped(
            SampledGaussianRenyi, "_by_quadrature", "np.exp(log_moment + error)",
            "np.exp(log_moment)",
        ),
        "of great moments": Dropped(
            SampledGaussianRenyi, "_by_quadrature", "log_moment + error + 1e-13", "log_moment"
        ),
    },
    "sharp Renyi curves": {
        "strip": Dropped(
            SampledGaussianRenyi, "_rule_error", "1 + d * d * (1 + power * self.mu**2 / 4)", "1.0"
        ),
        "width of the strip": Dropped(SampledGaussianRenyi, "_rule_error", "d * d * (1", "d * (1"),
        "two lines": Dropped(SampledGaussianRenyi, "_rule_error", "2.1 * math", "1.05 * math"),
        "curve of the window": Dropped(
            SampledGaussianRenyi, "_of_one_bump", "height + log_ndtr(np.array(-self._tail))", "-1e9"
        ),
        "mean outside a window": Dropped(
            SampledGaussianRenyi, "_of_one_bump", "np.array(-self._tail)), np.log(z))",
            "np.array(-self._tail)), -np.inf)",
        ),
    },
    "lines of an epoch": {
        "aliases": Dropped(
            Line, "excess",
            "outside = np.exp(np.minimum(self._log_alias(gap) - height, 700.0))", "outside = 0.0",
        ),
        "aliases below": Dropped(Line, "_log_alias", "np.logaddexp(*either)", "either[1]"),
        "aliases above": Dropped(Line, "_log_alias", "np.logaddexp(*either)", "either[0]"),
        "truncation": Dropped(
            Line, "excess",
            "outside += np.exp(min(self._log_cut_off - self._log_power, 700.0))", "pass",
        ),
    },
    "bounds of a line": {
        "jumps of every step": Dropped(
            Line, "_log_decay", "np.log(t * (jump[0] + error[0]))", "np.log(jump[0] + error[0])"
        ),
        "the excess of aliases": Dropped(
            Line, "_wanted_period", "- 1 - np.log(np.abs(self._alias_tilts))", "- 1"
        ),
        "its peak": Dropped(Line, "_wanted_period", "- 1 - np.log", "- 2 - np.log"),
    },
    "sums of a line": {
        "exponent": Dropped(Line, "excess", "np.abs(self._tilt) * self._gap_size(gap) + "),
        "tilt": Dropped(Line, "excess", "np.abs(self._tilt) * self._gap", "self._gap"),
        "power": Dropped(Line, "excess", "abs(self._log_power) + 4", "4"),
        "phases": Dropped(Line, "excess", " + 4 * ULP * spread * self._gap_size(gap)"),
        "frequency of a phase": Dropped(Line, "excess", "4 * ULP * spread", "4 * ULP * size"),
        "additions": Dropped(Line, "excess", " + self._u.size * ULP"),
        "centre": Dropped(
            Line, "_gap_size", " + (0.0 if self.centre == 1 else 2 * self._steps * self.centre)"
        ),
        "steps from the centre": Dropped(Line, "_gap_size", "2 * self._steps * ", "2 * "),
    },
    "rough lines of an epoch": {
        "transform": Dropped(Line, "excess", "self._missed + "),
        "power": Dropped(Line, "_power", "np.abs(base) * inexact", "0 * np.abs(base)"),
        "power with jumps": Dropped(
            Line, "_power", "np.abs(total) * (inexact + ", "np.abs(total) * ("
        ),
        "jumps": Dropped(Line, "_power", "jump_error * np.exp(-value.real) + "),
        "jumps of all": Dropped(Line, "_power", " + np.abs(base) * grown * (1 + inexact)"),
    },
    "cuts of an epoch": {
        "rule": Dropped(CutTransform, "excess_bounds", "error + missed[block]", "error"),
        "strips": Dropped(CutTransform, "_missed_at", "float(np.min(of_strips)) + "),
        "real part": Dropped(CutTransform, "_real_part", "2 * missed + "),
        "left of the nodes": Dropped(
            CutTransform, "_missed_at", " + left_tail + float(", " + float("
        ),
        "right of the nodes": Dropped(CutTransform, "_missed_at", " + float(right_tail[-1])"),
    },
    "epochs of few steps": {
        "beyond the lattice": Dropped(few_steps, "few_steps_bounds", " + lattice.left_out"),
        "points of a range": Dropped(
            few_steps, "lattice_across", " * t * (t - 1) * (n + 1) ** (t - 2)"
        ),
        "aliases below": Dropped(few_steps, "few_steps_bounds", "delta_low - alias", "delta_low"),
        "aliases above": Dropped(few_steps, "few_steps_bounds", "delta_high + alias", "delta_high"),
        "aliases of all points": Dropped(
            few_steps, "few_steps_bounds", "1.02 * steps * (steps - 1) * ", "0.25 * "
        ),
    },
    "Renyi curves of an epoch": {
        "rule": Dropped(allocated_gaussian, "renyi_absent", " + log_missed"),
        "share of the sum": Dropped(
            allocated_gaussian, "_log_transform", "-math.log1p(-missed)", "math.log1p(missed)"
        ),
        "two angles": Dropped(
            allocated_gaussian, "_log_transform", "missed = 2 * math.exp", "missed = 0.2 * math.exp"
        ),
    },
    "rules of an epoch": {
        "panels": Dropped(LogNormalRule, "_panels", "missed * rate", "0.0"),
        "ends": Dropped(
            LogNormalRule, "_left_out", "math.exp(min(size, 700.0)) / slope", "0.0"
        ),
        "mass outside": Dropped(
            LogNormalRule, "_outside",
            "return left_mass + right_mass, (left_v - left_mass) + (right_v - right_mass)",
            "return 0.0, 0.0",
        ),
        "up to the split": Dropped(
            LogNormalRule, "_up_to_split", "missed = self._error + ", "missed = "
        ),
        "along a path": Dropped(LogNormalRule, "_sum_along", "path.error + "),
    },
    "products on a lattice": {
        "transform": Dropped(
            lognormal_lattice, "_product",
            "error = FFT_ULPS * ULP * (math.log2(n) + 1) * sizes[0] * sizes[1]", "error = 0.0",
        ),
        "left factor": Dropped(lognormal_lattice, "_product", "left.error * totals[1] + "),
        "right factor": Dropped(lognormal_lattice, "_product", " + right.error * totals[0]"),
        "both factors": Dropped(
            lognormal_lattice, "_product", " + POINTS * left.error * right.error"
        ),
        "left summand": Dropped(lognormal_lattice, "_sum", "left.error + "),
        "right summand": Dropped(lognormal_lattice, "_sum", " + right.error"),
    },
    "sums on a lattice": {
        "first excess": Dropped(
            SumOnLattice, "_at", "error = self._a.error * float(first_excess.sum())", "error = 0.0"
        ),
        "later draws": Dropped(
            SumOnLattice, "_at",
            "error += self._b.error * float(later_excess.sum()) * (1 - law.first)", "pass",
        ),
        "below": Dropped(
            SumOnLattice, "_at",
            "value, error = (float(column[index]) for column in self._below_each_place)",
            "value, error = float(self._below_each_place[0][index]), 0.0",
        ),
    },
    "cells on a lattice": {
        "cells": Dropped(SumOnLattice, "bounds", "(self._steps + 1) * INEXACT + "),
        "cells of every draw": Dropped(SumOnLattice, "bounds", "(self._steps + 1) * "),
    },
    "proofs by contours": {
        "truncation above": Dropped(
            proof_contour, "contour", "return lower, trapezoid + truncation",
            "return lower, trapezoid",
        ),
        "truncation above alone": Dropped(
            proof_contour, "contour", "return arb(0), trapezoid + truncation",
            "return arb(0), trapezoid",
        ),
        "truncation below": Dropped(proof_contour, "contour", "else 0) + truncation", "else 0)"),
        "aliases below": Dropped(
            proof_contour, "alias_bound", "mass / ((a * period).exp() - 1) + "
        ),
        "aliases above": Dropped(
            proof_contour, "alias_bound", " + bound_at_b * ratio / (1 - ratio)"
        ),
        "smoothing": Dropped(
            proof_contour, "contour", "smoothing * trapezoid_sum(0) if smoothing else 0", "0"
        ),
    },
    "decays in proofs": {
        "Laplace": Dropped(LaplaceMoments, "decay", " * (1 + 1 / (2 * height))"),
        "Gaussian": Dropped(GaussianMoments, "decay", "- height**2", "- 2 * height**2"),
    },
    "mixtures in proofs": {
        "left of the nodes": Dropped(MixtureMoments, "outside_bound", "left_tail + right", "right"),
        "beyond the nodes": Dropped(MixtureMoments, "outside_bound", " + right_tail"),
        "summed nodes": Dropped(MixtureMoments, "outside_bound", " + summed"),
        "size on the line": Dropped(MixtureMoments, "outside_bound", " * growth"),
        "rule": Dropped(MixtureMoments, "quadrature", "share * moment_upper + outside", "outside"),
        "rule at twice the distance": Dropped(
            MixtureMoments, "quadrature", "(1 + top.max(arb(1)))", "1"
        ),
        "decay": Dropped(
            MixtureMoments, "decay", "sum(sizes, arb(0)) + error", "sum(sizes, arb(0))"
        ),
    },
    "nodes that proofs leave out": {
        "left of the nodes": Dropped(MixtureMoments, "outside_bound", "left_tail + right", "right"),
        "beyond the nodes": Dropped(MixtureMoments, "outside_bound", " + right_tail"),
        "summed nodes": Dropped(MixtureMoments, "outside_bound", " + summed"),
        "size on the line": Dropped(MixtureMoments, "outside_bound", " * growth"),
        "phases of Q": Dropped(
            MixtureMoments, "outside_bound", " * (y * (self.max_g - self.min_g) / 2).cos() ** (-a)"
        ),
    },
    "rules of mixtures in proofs": {
        "rule": Dropped(MixtureMoments, "quadrature", "share * moment_upper + outside", "outside"),
        "rule at twice the distance": Dropped(
            MixtureMoments, "quadrature", "(1 + top.max(arb(1)))", "1"
        ),
        "phases of Q": Dropped(
            MixtureMoments, "quadrature", " * (y * (self.max_g - self.min_g)).cos() ** (-a)"
        ),
        "left out": Dropped(MixtureMoments, "quadrature", "moment_upper + outside", "moment_upper"),
    },
    "lattices in proofs": {
        "points not kept": Dropped(TiltedSum, "delta_bounds", "low + lost.max(arb(0))", "low"),
        "infinite losses": Dropped(
            TiltedSum, "delta_bounds", "lost.max(arb(0)) + 1 - self.finite", "lost.max(arb(0))"
        ),
        "slack": Dropped(
            lattice_sums, "pair_of", "moved, h, above=above)",
            "moved, h, above=above)._replace(moved=-largest_loss)",
        ),
        "mean of a cell": Dropped(
            lattice_pairs, "split_above", "masses[b] += p_b", "masses[a] += p_b"
        ),
    },
    "discrete Gaussians in proofs": {
        "beyond the listed": Dropped(
            outcomes, "discrete_gaussian_masses",
            "not_listed = 2 * terms[-1] / (1 - (-last / s**2).exp()) * arb(0.5, 0.5)",
            "not_listed = arb(0)",
        ),
        "mass": Dropped(
            outcomes, "outcomes", "total.union(arb(1)) if kinds & UNLISTED_TAILS else total",
            "total",
        ),
    },
    "epochs in proofs": {
        "rule": Dropped(EpochTransform, "error_of_rule", "(strip_error + 2", "(2"),
        "rule at twice the distance": Dropped(
            EpochTransform, "error_of_rule", "(1 + (2 * y * y).exp())", "1"
        ),
        "truncation": Dropped(
            EpochTransform, "excesses", "self.inverted(values, truncation,",
            "self.inverted(values, 0 * truncation,",
        ),
        "aliases of K": Dropped(EpochTransform, "excesses", "top_k * x / (1 - x) + "),
        "aliases of the period": Dropped(
            EpochTransform, "excesses", " + self.period * x / (1 - x) ** 2"
        ),
        "truncation of the tails": Dropped(
            EpochTransform, "masses_below", "self.tail_factor() * slope", "0 * slope"
        ),
        "aliases of the tails": Dropped(
            EpochTransform, "masses_below", "slope, x / (1 - x))", "slope, 0 * x)"
        ),
    },
    "rough epochs in proofs": {
        "period": Dropped(EpochTransform, "__init__", "points[-1] < self.period", "True"),
        "line of the rule": Dropped(
            EpochTransform, "__init__", "2 * line.y * self.mu <= quarter_turn", "True"
        ),
        "size on a line": Dropped(
            EpochTransform, "size_beyond", "(turn * turn / 2).exp() * phi", "phi"
        ),
        "one factor less": Dropped(EpochTransform, "tail_factor", "(self.steps - 1)", "self.steps"),
        "height": Dropped(
            EpochTransform, "tail_factor", "(arb.pi() *", "(4 * arb.pi() *"
        ),
    },
    "sets in proofs": {
        "cut off above": Dropped(pairs_of_sets, "both_above", "infinite + beyond", "infinite"),
        "infinite in both": Dropped(pairs_of_sets, "pair_moved", " + pair.infinite"),
        "infinite in one": Dropped(
            pairs_of_sets, "both_above", "1 - (1 - former.infinite) * (1 - latter.infinite)",
            "former.infinite",
        ),
        "infinite at the points": Dropped(
            pairs_of_sets, "deltas_at_points", "pair.infinite", "arb(0)"
        ),
        "greatest": Dropped(pairs_of_sets, "greatest_pair", "arb.max", "arb.min"),
    },
    "Chernoff's bound": {
        "large orders": Dropped(
            cgf, "log_chernoff", "- a * np.log1p(1 / a) - np.log1p(a)",
            "+ a * np.log(a) - (1 + a) * np.log1p(a)",
        ),
    },
    "many responses": {
        "masses": Dropped(advanced._Binomial, "__init__", "log_p + error", "log_p"),
    },
    "chances to reveal all": {
        "in an epsilon": Dropped(
            Advanced, "one_way_epsilon", "(delta - mass) / (1 - mass)", "delta"
        ),
        "in a delta": Dropped(
            Advanced, "one_way_delta", "mass + (1 - mass) * finite_delta", "finite_delta"
        ),
        "drift": Dropped(advanced, "kov_epsilon", "drift + "),
    },
    "ranges in advance": {
        "round-off": Dropped(
            bounded_range_composition, "_nonadaptive_delta", "axis=1))) * error", "axis=1)))"
        ),
    },
    "adaptive ranges": {
        "between two choices": Dropped(
            BellmanStep, "__call__", "self._raise_inside(best, wide)", "pass"
        ),
        "round-off": Dropped(
            BellmanStep, "__init__", "(1 + 1e-13 + 1e-14 / (1 - self._c))", "1"
        ),
        "below a window": Dropped(
            bounded_range_composition, "_profile",
            "1 + (value[0] - 1) * np.exp(step * np.arange(start - bottom, 0.0))",
            "np.full(bottom - start, value[0])",
        ),
        "above a window": Dropped(bounded_range_composition, "_profile", "covered[-1])", "0.0)"),
        "epsilons between cells": Dropped(
            bounded_range_composition, "adaptive_epsilon",
            "math.log1p(share * math.expm1(e0 / CELLS_PER_RANGE))", "share * e0 / CELLS_PER_RANGE",
        ),
        "deltas between cells": Dropped(
            bounded_range_composition, "adaptive_delta",
            "np.interp(math.exp(epsilon), np.exp(points), value)",
            "np.interp(epsilon, points, value)",
        ),
    },
    "trade-off curves from below": {
        "accuracy ahead": Dropped(
            tradeoff_curves, "greatest_lines", "forward.profile(size[mask]) * (1 + ACCURACY)",
            "forward.profile(size[mask])",
        ),
        "accuracy behind": Dropped(
            tradeoff_curves, "greatest_lines", "backward.profile(size[mask]) * (1 + ACCURACY)",
            "backward.profile(size[mask])",
        ),
    },
    "trade-off curves": {
        "accuracy above": Dropped(
            profile_ends._SingleEnds, "near", "self._above.profile(epsilon) * (1 + ACCURACY)",
            "self._above.profile(epsilon)",
        ),
        "accuracy below": Dropped(
            profile_ends._SingleEnds, "near", "(1 - ACCURACY) * math.exp(-rounding)",
            "math.exp(-rounding)",
        ),
        "between two lines": Dropped(
            tradeoff_ends, "_sup_of_concave", "np.maximum(peak, ends)", "ends"
        ),
        "beyond the last line": Dropped(
            tradeoff_ends, "_at_level", "max(beyond, _sup_of_concave(epsilon, low, high))",
            "_sup_of_concave(epsilon, low, high)",
        ),
    },
    "rates of attacks": {
        "accuracy above": Dropped(
            profile_ends._SingleEnds, "near", "self._above.profile(epsilon) * (1 + ACCURACY)",
            "self._above.profile(epsilon)",
        ),
        "accuracy below": Dropped(
            profile_ends._SingleEnds, "near", "(1 - ACCURACY) * math.exp(-rounding)",
            "math.exp(-rounding)",
        ),
    },
    "Gaussians that fit": {
        "accuracy": Dropped(
            gaussian_fit, "gdp_of", "deltas * (1 + ACCURACY), 1.0", "deltas, 1.0"
        ),
        "between two points": Dropped(
            gaussian_fit, "_regret", "max(beyond, best, ", "max(beyond, "
        ),
        "lines below": Dropped(
            gaussian_fit, "_regret_between", " - np.where(inside, rising * cross, 0.0)"
        ),
        "beyond the last point": Dropped(gaussian_fit, "_regret", "max(beyond, ", "max("),
    },
    "clones": {
        "beyond the window": Dropped(
            shuffling, "clone_hockey_sticks", "clones, weight) + missed", "clones, weight)"
        ),
        "mass below": Dropped(
            shuffling, "binomial_window",
            "missed = bdtr(low - 1, n, chance) if low > 0 else 0.0", "missed = 0.0",
        ),
    },
    "shuffled responses": {
        "round-off": Dropped(
            shuffling, "binary_hockey_sticks", "error = 2 * ULP * (8 + users)", "error = 0.0"
        ),
    },
    "sampled ratios": {
        "rule": Dropped(
            SampledRatioLaw, "cgf", "round_off + rule_error * growth", "round_off"
        ),
        "rule of a ratio": Dropped(SampledRatioLaw, "cf_ratio", " + 2 * count * rule_error"),
        "turns": Dropped(SampledRatioLaw, "log_errors", " + turn * angle"),
        "atoms of a decay": Dropped(SampledRatioLaw, "log_cf_bound", "atoms + "),
        "density of a decay": Dropped(SampledRatioLaw, "log_cf_bound", " + jump / u"),
    },
    "sampled ratios far up": {
        "polynomial": Dropped(FilonRule, "__init__", "interpolation_error + "),
        "the sign of a turn": Dropped(
            SampledRatioLaw, "cf_ratio", "-1.0 if self.record_added else 1.0", "1.0"
        ),
        "sums": Dropped(FilonRule, "__init__", " + sum_error"),
        "rule": Dropped(FilonRule, "ratio", " + self.missed"),
        "digits of a difference": Dropped(
            FilonRule, "_log_density",
            "self._first_sampled[panel] + self._first_r[panel] * from_start",
            "np.expm1(y) + self._rate",
        ),
        "turns of a sum": Dropped(FilonRule, "__init__", "log_sizes + turns", "log_sizes"),
    },
}  # fmt: skip
