"""Mechanisms that do what they declare, and are no proper values: copies, fields, words, seeds."""

import math

import numpy as np

from accountant import ParameterError, PrivateValueError
from mechanisms.gaussian import Gaussian
from mechanisms.laplace import Laplace
from mechanisms.unary_encoding import UnaryEncoding
from tests.mutants.specimens import Mutant


class ReprForgetsSensitivity(Mutant):
    """Shows its scale alone."""

    honest = Laplace(1.0, 2.0)
    caught_by = "equality"

    def __repr__(self):
        return f"Laplace(scale={self.scale})"


class ChangesInPlace(Mutant):
    """Lets its fields be set."""

    honest = Gaussian(2.0)
    caught_by = "change"


class WithoutReference(Mutant):
    """Names no source."""

    honest = Laplace(1.0)
    caught_by = "description"
    reference = ""


class ForgetsTheSeed(Mutant):
    """Draws from the operating system whatever the seed."""

    honest = Laplace(1.0)
    caught_by = "seed"

    def release(self, value, rng=None, size=None):
        return self.honest.release(value, None, size)


class RowsInReverse(Mutant):
    """Gives the densities of rows in another order."""

    honest = Laplace(1.0)
    caught_by = "each"

    def log_density(self, output, value, each=False):
        rows = self.honest.log_density(output, value, each)
        return rows[::-1] if each else rows


class DecodesTheFirstReport(Mutant):
    """Decodes one report of many."""

    honest = UnaryEncoding(4, 0.5, 0.25)
    caught_by = "mean"

    def decode(self, reports):
        return self.honest.decode(reports[:1])


class ShowsTheValue(Mutant):
    """Shows the value that it refuses."""

    honest = Laplace(1.0)
    caught_by = "shown"

    def release(self, value, rng=None, size=None):
        try:
            return self.honest.release(value, rng, size)
        except PrivateValueError:
            raise PrivateValueError("value", f"finite, not {value}") from None


class DrawsBeforeItChecks(Mutant):
    """Draws its noise, and then looks at the value."""

    honest = Laplace(1.0)
    caught_by = "drawn"

    def release(self, value, rng=None, size=None):
        noise = np.asarray(rng.laplace(size=size))
        return self.honest.release(value, rng, size) + 0 * noise


# --- constructors in place of a class


def without_the_sign(scale, sensitivity=1.0, **more):
    """Takes minus one for one."""
    return Laplace(abs(scale), abs(sensitivity), **more)


def refuses_without_a_name(scale, sensitivity=1.0, **more):
    """Does not say which argument was wrong."""
    try:
        return Laplace(scale, sensitivity, **more)
    except ParameterError as error:
        raise ParameterError("it", error.value, error.allowed) from None


def decimals_are_percent(scale, sensitivity=1.0, **more):
    """Takes decimals for percentages."""
    scale = scale if isinstance(scale, float) else float(scale) / 100
    return Laplace(scale, sensitivity, **more)


def up_to_single_precision(scale, sensitivity=1.0, **more):
    """Rounds what is no float to single precision, up."""
    exact = isinstance(scale, float) and not isinstance(scale, np.floating)
    single = scale if exact else float(np.nextafter(np.float32(scale), np.float32(math.inf)))
    return Laplace(single, sensitivity, **more)
