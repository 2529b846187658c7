"""jax-privacy's own tests with our strategies, sensitivities and bounds in the place of its own.

They come with the installed package, as files that are no module.  Each is imported, its library's
functions are replaced by ours (`REPLACED`), and its cases run.  A case counts where it called ours.
Where an argument is traced, as while a strategy is optimised, the library's own function answers:
ours are certified numbers, which have no gradient.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import math
import unittest
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from accountant import (
    BandedMatrix,
    BufferedToeplitz,
    FixedEpochs,
    MinSeparation,
    Once,
    ParameterError,
    StrategyMatrix,
    Toeplitz,
    sensitivity,
)
from accountant.correlated_noise.gram_bounds import greatest_sum
from audits.statistics.binomial_bounds import clopper_pearson_lower
from tests.heldout.dp_accounting_suite import cases
from tests.heldout.peer_rows import BETTER, DISAGREES, PASSED, REFUSED, PeerRow

MANY = 10**9  # participations, where only the separation limits them
# Cases that optimise strategies, which ours does not: they take minutes.
SKIPPED = ("test_optimi", "test_full_participation", "test_toeplitz_more_bands", "test_large_eps",
           "test_small_eps", "test_loss_fn", "test_bootstrap", "test_auditing_metric",
           "test_max_iter_loss_grad")  # fmt: skip
# what a case expects, and why ours does something else
ANSWERED = {
    "test_diag_strategy_matrix": "it asks for a root to the last bit; ours is rounded up",
    "test_not_orthogonal": "it asks for orthogonal columns; ours answers for others, certified",
    "test_banded": "it asks for orthogonal columns; ours answers for others, certified",
    "test_sensitivty_too_big_buf_decay": "it says infinity for a decay above 1; ours is exact",
    "test_sensitivity_squared_bad_input": "it asks for coefficients that fall, none negative; ours "
    "answers for others, certified",
    "test_assert_blt_valid": "it asks for weights that are not negative; ours answers for others, "
    "certified",
}


def separated(k: int | None, b: int) -> MinSeparation:
    """At most k uses, any two at least b apart."""
    return MinSeparation(MANY if k is None else int(k), int(b))


def coefficients(coef: Any, n: int | None) -> tuple[np.ndarray, int]:
    """The coefficients of a Toeplitz matrix, and its size: their number where none is given."""
    given = np.asarray(coef, dtype=float)
    return given, given.size if n is None else int(n)


def of_toeplitz(coef: Any, n: int | None) -> Toeplitz:
    given, size = coefficients(coef, n)
    return Toeplitz(given[:size], size)


def of_gram(x: Any) -> StrategyMatrix:
    """A matrix with these inner products of its columns."""
    return StrategyMatrix(np.linalg.cholesky(np.asarray(x, dtype=float)).T)


def single_participation(c: Any) -> float:
    return sensitivity(StrategyMatrix(c), Once()).value


def most_participations(n: int, min_sep: int = 1, max_participations: int | None = None) -> int:
    return separated(max_participations, min_sep).most(n)


def linear(x: Any, min_sep: int = 1, max_participations: int | None = None) -> float:
    """Ours sums squares, which are not negative: a negative term is left out."""
    terms = np.maximum(np.asarray(x, dtype=float), 0.0)
    return greatest_sum(terms, terms.size if max_participations is None else max_participations,
                        min_sep) if max_participations != 0 else 0.0  # fmt: skip


def of_matrix(c: Any, min_sep: int = 1, max_participations: int | None = None) -> float:
    return sensitivity(StrategyMatrix(c), separated(max_participations, min_sep)).value


def of_products(x: Any, min_sep: int = 1, max_participations: int | None = None) -> float:
    return sensitivity(of_gram(x), separated(max_participations, min_sep)).value


def of_epochs(c: Any, epochs: int) -> float:
    return sensitivity(StrategyMatrix(c), FixedEpochs(epochs)).value


def toeplitz_once(coef: Any, n: int | None = None) -> float:
    return sensitivity(of_toeplitz(coef, n), Once()).value ** 2


def toeplitz_separated(
    strategy_coef: Any,
    min_sep: int,
    max_participations: int | None = None,
    n: int | None = None,
    skip_checks: bool = False,
) -> float:
    del skip_checks
    pattern = separated(max_participations, min_sep)
    return sensitivity(of_toeplitz(strategy_coef, n), pattern).value ** 2


def triangle(coef: Any, n: int | None = None) -> np.ndarray:
    _, size = coefficients(coef, n)
    return of_toeplitz(coef, n).times(np.eye(size))


def solved(coef: Any, rhs: Any) -> np.ndarray:
    return of_toeplitz(coef, len(rhs)).recovered(np.asarray(rhs, dtype=float))


def inverse(coef: Any, n: int | None = None) -> np.ndarray:
    _, size = coefficients(coef, n)
    return of_toeplitz(coef, n).recovered(np.eye(size)[:, 0])


def errors(
    *,
    strategy_coef: Any = None,
    noising_coef: Any = None,
    n: int | None = None,
    workload_coef: Any = None,
    skip_checks: bool = False,
) -> np.ndarray:
    """The variances of decoded sums: the matrix of workload times decoder is Toeplitz too."""
    del skip_checks
    _, size = coefficients(noising_coef if strategy_coef is None else strategy_coef, n)
    wanted = np.zeros(size)
    given = np.ones(size) if workload_coef is None else np.asarray(workload_coef, dtype=float)
    wanted[: given.size] = given[:size]
    column = (of_toeplitz(noising_coef, size).times(wanted) if strategy_coef is None
              else of_toeplitz(strategy_coef, size).recovered(wanted))  # fmt: skip
    return np.cumsum(column**2)


def banded_separated(
    strategy: Any,
    min_sep: int,
    max_participations: int | None = None,
    n: int | None = None,
    skip_checks: bool = False,
) -> float:
    del n, skip_checks
    whole = np.asarray(strategy.materialize(), dtype=float)
    size, bands = len(whole), strategy.bands
    diagonals = [np.append(np.diag(whole, -d), np.zeros(d)) for d in range(bands)]
    assert np.allclose(BandedMatrix(diagonals).times(np.eye(size)), whole)
    if bands > min_sep:
        raise ValueError("it asks for no more bands than the separation")
    pattern = separated(max_participations, min_sep)
    return round(sensitivity(BandedMatrix(diagonals), pattern).value ** 2, 9)


def buffered(blt: Any, n: float) -> BufferedToeplitz:
    steps: Any = int(n) if math.isfinite(n) else n
    return BufferedToeplitz(np.asarray(blt.buf_decay), np.asarray(blt.output_scale), steps)


def buffered_once(blt: Any, n: Any) -> float:
    return sensitivity(buffered(blt, n), Once()).value ** 2


def buffered_coefficients(blt: Any, n: int) -> np.ndarray:
    return buffered(blt, n).coefficients


def proportion_above(k: Any, n: float, significance: float) -> Any:
    """The upper bound on a proportion, from our lower bound on the other share."""
    others = np.asarray(n - k, dtype=float)
    return 1 - clopper_pearson_lower(
        others, np.broadcast_to(np.asarray(n, dtype=float), others.shape), significance
    )


# module of the library, name in it, our function
REPLACED: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("matrix_factorization.sensitivity", "single_participation_sensitivity", single_participation),
    ("matrix_factorization.sensitivity", "minsep_true_max_participations", most_participations),
    ("matrix_factorization.sensitivity", "max_participation_for_linear_fn", linear),
    ("matrix_factorization.sensitivity", "get_sensitivity_banded", of_matrix),
    ("matrix_factorization.sensitivity", "get_min_sep_sensitivity_upper_bound", of_matrix),
    ("matrix_factorization.sensitivity", "get_min_sep_sensitivity_upper_bound_for_X", of_products),
    ("matrix_factorization.sensitivity", "fixed_epoch_sensitivity", of_epochs),
    ("matrix_factorization.toeplitz", "sensitivity_squared", toeplitz_once),
    ("matrix_factorization.toeplitz", "minsep_sensitivity_squared", toeplitz_separated),
    ("matrix_factorization.toeplitz", "materialize_lower_triangular", triangle),
    ("matrix_factorization.toeplitz", "solve_banded", solved),
    ("matrix_factorization.toeplitz", "inverse_coef", inverse),
    ("matrix_factorization.toeplitz", "per_query_error", errors),
    ("matrix_factorization.banded", "minsep_sensitivity_squared", banded_separated),
    ("matrix_factorization.buffered_toeplitz", "sensitivity_squared", buffered_once),
    ("matrix_factorization.buffered_toeplitz:BufferedToeplitz", "toeplitz_coefs",
     buffered_coefficients),
    ("auditing", "_clopper_pearson_upper", proportion_above),
)  # fmt: skip
FILES = {
    "matrix_factorization/sensitivity": "sensitivities",
    "matrix_factorization/toeplitz": "Toeplitz matrices",
    "matrix_factorization/banded": "banded matrices",
    "matrix_factorization/buffered_toeplitz": "buffered Toeplitz",
    "auditing": "auditing",
}


def test_file(name: str) -> ModuleType:
    """The tests of a file of the installed package, as a module."""
    root = Path(str(importlib.metadata.distribution("jax-privacy").locate_file("tests")))
    spec = importlib.util.spec_from_file_location(
        name.replace("/", "_") + "_of_jax_privacy", root / f"{name}_test.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Answers:
    """What our functions did in one case: which answered, and what they refused."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.refused: list[ParameterError] = []

    def in_place_of(self, theirs: Callable[..., Any], ours: Callable[..., Any]) -> Any:
        """A function that asks ours, in the library's precision; theirs where it is traced."""
        import jax
        from jax.core import Tracer

        def answer(*args: Any, **kwargs: Any) -> Any:
            leaves = jax.tree.leaves((args, kwargs))
            if any(isinstance(leaf, Tracer) for leaf in leaves):
                return theirs(*args, **kwargs)
            self.called.append(ours.__name__)
            try:
                found = ours(*args, **kwargs)
            except ParameterError as error:
                self.refused.append(error)
                raise
            short = any(getattr(leaf, "dtype", None) == np.float32 for leaf in leaves)
            if isinstance(found, np.ndarray):
                return jax.numpy.asarray(found, dtype=np.float32 if short else None)
            return np.float32(found) if short and not isinstance(found, int) else found

        return answer

    def patches(self) -> contextlib.ExitStack:
        """Ours in the place of the library's; a refusal need not be in the library's words."""
        stack = contextlib.ExitStack()
        for path, name, ours in REPLACED:
            module, _, owner = path.partition(":")
            place: Any = importlib.import_module(f"jax_privacy.{module}")
            place = getattr(place, owner) if owner else place
            answer = self.in_place_of(getattr(place, name), ours)
            stack.enter_context(mock.patch.object(place, name, answer))
        raises = unittest.TestCase.assertRaises

        def refuses(case: unittest.TestCase, kind: type[Exception], regex: str) -> Any:
            del regex
            return raises(case, kind)

        stack.enter_context(mock.patch.object(unittest.TestCase, "assertRaisesRegex", refuses))
        return stack


def row_of(title: str, case: unittest.TestCase) -> PeerRow | None:
    """What a case says of ours; None where it did not meet ours."""
    answers, result = Answers(), unittest.TestResult()
    with answers.patches():
        case.run(result)
    if not answers.called or result.skipped:
        return None
    method = case.id().rpartition(".")[2]
    broken = [text for _, text in (*result.failures, *result.errors)]
    verdict, reason = PASSED, ""
    if broken:
        answered = [why for name, why in ANSWERED.items() if method.startswith(name)]
        if answered:
            verdict, reason = BETTER, answered[0]
        elif answers.refused:
            error = answers.refused[-1]
            verdict, reason = REFUSED, f"{error.argument} must be {error.allowed}"
        else:
            verdict, reason = DISAGREES, broken[0].strip().splitlines()[-1]
    return PeerRow(f"jax-privacy, {title}", case.id(), verdict, reason)


def rows(names: Iterable[str] = FILES) -> Iterator[PeerRow]:
    """A row for each case of these files that met ours, in double precision."""
    import jax

    jax.config.update("jax_enable_x64", True)
    for name in names:
        module = test_file(name)
        for case in cases(unittest.defaultTestLoader.loadTestsFromModule(module)):
            if not case.id().rpartition(".")[2].startswith(SKIPPED):
                row = row_of(FILES[name], case)
                if row is not None:
                    yield row
