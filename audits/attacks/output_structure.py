"""Events of outputs of any kind: type, length, errors, the exact answer, values with a mass.

An output may be None, a number, a text, a tuple, an array of any length or an exception.  Each
becomes a few integer codes, one for each of `CODE_NAMES`, and a guess of the value that was
released is tested by the most informative code.  An atom is a value that comes with a probability
above 0, such as the exact answer of a release that sometimes adds no noise.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from accountant.randomness import Rng
from audits.attacks.front import noted
from audits.attacks.output_codes import Codes, audit_by_codes, check_arguments
from audits.claims.arguments import checked_pair
from audits.claims.claims import ClaimLike
from audits.claims.findings import Finding, outcome_at
from audits.classifiers.output_features import MAX_UNSEEN, output_features
from audits.classifiers.output_walk import array_bytes
from audits.runs.release_functions import awaiting, call_form
from audits.values.copies import copies
from audits.values.tracebacks import without_values

CODE_NAMES = (
    "the type of the output",
    "its length or shape",
    "the types of its parts",
    "an answer without noise in it",
    "the output as a whole",
    "its first part",
    "its last part",
)

CODES_ALONE = "only types, lengths and values with a mass were looked at; audit looks at sizes too"


@without_values
def audit_atoms(
    release: Callable[..., Any],
    pair: tuple[Any, Any],
    claim: ClaimLike | None = None,
    runs: int = 20_000,
    confidence: float = 0.95,
    delta: float | None = None,
    rng: Rng = None,
    truth: Callable[[Any], Any] = lambda value: value,
) -> Finding:
    """Try to falsify a claim by the type, length, errors and exact values of any output.

    The test codes each output by its type, its length or shape, the types of its parts, and whether
    it contains the exact answer.  Pilot runs choose the most informative code, which the other runs
    test.

    Parameters
    ----------
    release : callable
        A function as for `audit`, whose outputs may be of any kind.  An exception is an output too:
        its class is seen, its message is not.
    pair : tuple of two values
        Two neighbouring values.
    claim : Loss, Budget, float or (float, float), optional
        What is claimed of the release, as for `audit`.
    runs : int, optional
        Number of draws, at least 10; an eighth of them are pilot runs.
    confidence : float, optional
        Probability in (0, 1) with which the bound holds.
    delta : float, optional
        The delta in [0, 1) of the bound; None as for `audit`.
    rng : int, numpy.random.Generator or None, optional
        Seed or generator.
    truth : callable, optional
        ``truth(value)`` is the answer before noise, by default the value itself.

    Returns
    -------
    Finding
        The outcome, and a lower bound on epsilon, rounded down; ``unseen`` are parts of outputs
        that nothing could look into.

    Raises
    ------
    ParameterError
        If an argument is out of its range.

    Examples
    --------
    >>> from accountant import PureLoss
    >>> from audits import audit_atoms
    >>> def sometimes_exact(value, rng):
    ...     return value if rng.random() < 0.3 else value + rng.laplace()
    >>> finding = audit_atoms(sometimes_exact, (0.0, 1.0), PureLoss(1.0), runs=4000, rng=0)
    >>> finding.outcome.name, round(finding.epsilon_lower, 2)
    ('FALSIFIED', 5.39)
    """
    checked_loss, pair = check_arguments(runs, confidence, claim, delta), checked_pair(pair)
    answers = [
        frozenset(_comparable(part, {}) for part in output_parts(truth(value))) for value in pair
    ]
    draw_outputs = listed_outputs(release)

    unseen: dict[str, None] = {}

    def coded(value: Any, source: np.random.Generator, size: int) -> Codes:
        rows = [
            _output_codes(output, answers, unseen) for output in draw_outputs(value, source, size)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, len(CODE_NAMES))

    finding = audit_by_codes(coded, CODE_NAMES, pair, checked_loss, runs, confidence, delta, rng)
    finding = replace(finding, unseen=tuple(unseen)[:MAX_UNSEEN])
    finding = replace(finding, outcome=outcome_at(finding, confidence))
    return noted(finding, release, pair, events=CODES_ALONE)


def listed_outputs(
    release: Callable[..., Any],
) -> Callable[[Any, np.random.Generator, int], list[Any]]:
    """``release`` as a function of (value, rng, size) that returns a list of outputs of any kind.

    An exception is an output: its class.
    """
    form = call_form(release)

    def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return next(iter(call(release, *arguments, 1))) if form.size else call(*arguments)
        except Exception as error:  # any exception is an output
            return type(error)

    def many(value: Any, rng: np.random.Generator, size: int) -> list[Any]:
        """Outputs of ``size`` runs, by one call if that is possible and does not raise."""
        values = copies(value)
        call = form.many_runs if form.size else form.one_run(release)
        with awaiting(call, awaited=form.awaited) as run:
            if form.size and size > 0:
                try:
                    outputs = list(run(release, next(values), rng, size))
                except Exception:  # which of the outputs raised is not known
                    outputs = []
                if len(outputs) == size:
                    return outputs
            return [outcome(run, copied, rng) for copied in itertools.islice(values, size)]

    return many


def output_parts(output: Any) -> Sequence[Any]:
    """The parts of a tuple, list, dictionary or array; else the output itself alone."""
    if isinstance(output, dict):
        return [*output.keys(), *output.values()]
    if isinstance(output, (tuple, list, set, frozenset)):
        return list(output)
    if isinstance(output, np.ndarray) and output.ndim > 0:
        return output.ravel().tolist()
    return [output]


def _output_codes(
    output: Any, answers: Iterable[frozenset[Any]], unseen: dict[str, None]
) -> list[int]:
    """A code of an output for each of `CODE_NAMES`; what nothing can read is added to unseen."""
    parts = output_parts(output)
    atoms = [
        _comparable(part, unseen, path)
        for part, path in zip(parts, _paths(output, parts, "output"), strict=True)
    ]
    # ``answers`` has the answers without noise of the first and of the second value.
    holds_answer = [int(any(atom in answer for atom in atoms)) for answer in answers]
    first_atom, last_atom = (atoms[0], atoms[-1]) if atoms else ("", "")
    return [
        # An exception is its class, so outputs that are classes are distinguished as they are.
        _hash(type(output), output if isinstance(output, type) else None),
        _hash(np.shape(output) if isinstance(output, np.ndarray) else len(parts)),
        _hash(getattr(output, "dtype", None), *{type(part).__name__ for part in parts}),
        # 1: the first value's answer alone, 2: the second's alone, 0: neither or both
        2 * holds_answer[1] + holds_answer[0] if holds_answer[0] != holds_answer[1] else 0,
        _hash(*atoms),
        _hash(first_atom),
        _hash(last_atom),
    ]


def _paths(output: Any, inside: Sequence[Any], path: str) -> list[str]:
    """The place of each part: its index in a list or tuple, that of the whole in others."""
    listed = isinstance(output, (tuple, list))
    return [f"{path}[{index}]" if listed else path for index in range(len(inside))]


def _comparable(part: Any, unseen: dict[str, None], path: str = "output") -> Any:
    """A hashable value that equals itself and identifies the part: a number by its value.

    What nothing can look into is added to ``unseen``, with its ``path``.
    """
    if isinstance(part, (bool, np.bool_)):
        return ("bool", bool(part))  # True equals 1 in Python
    if isinstance(part, (int, np.integer)):
        return int(part)
    if isinstance(part, (float, np.floating)):
        number = float(part)
        return "nan" if number != number else number  # NaN is not equal to itself  # noqa: PLR0124
    if isinstance(part, (str, bytes)) or part is None:
        return part
    if isinstance(part, type):
        return part.__qualname__
    if isinstance(part, np.ndarray) and part.dtype != object:
        return array_bytes(part)
    if isinstance(part, (tuple, list, dict, set, frozenset, np.ndarray)):
        elements = output_parts(part)
        paths = _paths(part, elements, path)
        return tuple(
            _comparable(element, unseen, element_path)
            for element, element_path in zip(elements, paths, strict=True)
        )
    features = output_features(part)
    unseen.update(dict.fromkeys(path + hidden.removeprefix("output") for hidden in features.unseen))
    return features.category


def _hash(*words: Any) -> int:
    """A code of 32 bits; different words may have the same one, which only loses information."""
    return zlib.crc32(repr(words).encode())
