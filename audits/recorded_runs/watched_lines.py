"""What code does with private numbers that have no noise: branches, and statistics of all records.

An audit runs a function on data, and on a neighbour with the same noise.  A branch on a number
without noise, such as ``if len(data) < 10``, may take the same way for both, and then nothing
differs.  Neither does it where the records are first divided by a statistic of all of them, as in
standardising, and this pair moves the statistic little.  Neither is a fault for sure, so that it is
named with its line, as something that this pair did not check.

While the function runs once more on each of the two data, each line of the user's code is looked
at just before it runs.  Expressions that have no side effects are evaluated there a second time:
what is compared in a branch, and what has as many rows as there are records.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple, final

import numpy as np

from audits.recorded_runs.call_sites import is_library, shown_path
from audits.recorded_runs.findings import NOT_FOLLOWED, RecordedFinding
from audits.recorded_runs.noisy_numbers import noisy_of
from audits.recorded_runs.tape import running

LOOKS = 1000  # how often one line is looked at in one run
DIGITS = 9  # after the first one, up to which numbers of two runs are compared
LARGEST = 10**6  # arrays of more numbers are not looked at
SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic, range)
LIBRARY_KINDS = (type, types.BuiltinFunctionType, np.ufunc)
# Methods and functions that compute and change nothing.
PURE = {
    "DataFrame", "MinMaxScaler", "RobustScaler", "Series", "StandardScaler", "abs", "all", "any",
    "argmax", "argmin", "argsort", "array", "asarray", "astype", "bincount", "bool", "clip", "copy",
    "corrcoef", "count", "cov", "cumsum", "describe", "diff", "dot", "exp", "fabs", "fit_transform",
    "flatten", "float", "fsum", "get", "histogram", "int", "isfinite", "isnan", "item", "len",
    "linspace", "list", "log", "log1p", "max", "maximum", "mean", "median", "min", "minimum",
    "minmax_scale", "nanmax", "nanmean", "nanmin", "nanstd", "nansum", "norm", "normalize",
    "nunique", "percentile", "ptp", "quantile", "rank", "rankdata", "ravel", "reshape", "round",
    "scale", "sorted", "sqrt", "square", "std", "str", "sum", "tanh", "to_numpy", "tolist",
    "transpose", "tuple", "unique", "value_counts", "values", "var", "zscore",
}  # fmt: skip
PURE_NODES = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Attribute,
    ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Call, ast.keyword, ast.IfExp, ast.Load,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.ListComp, ast.GeneratorExp,
    ast.comprehension, ast.Store,
)  # fmt: skip


@final
class Expression(NamedTuple):
    """An expression of a line, compiled, with its text; ``is_branch`` if it decides a way."""

    code: CodeType
    names: frozenset[str]
    text: str
    is_branch: bool
    parts: tuple[Expression, ...] = ()  # within one that decides a way


@final
class WatchedLines:
    """What the lines of the user's code computed in one run."""

    def __init__(self, records: int | None) -> None:
        self.records = records
        # by file, line and text of the expression, what its values were
        self.compared: defaultdict[tuple[str, int, str], list[Any]] = defaultdict(list)
        self.rows: dict[tuple[str, int, str], Counter[bytes]] = {}
        self._looks: Counter[tuple[str, int]] = Counter()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at each line that runs meanwhile in this thread."""
        earlier_trace = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(earlier_trace)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Decide for a frame whether its lines are looked at."""
        return None if is_library(frame.f_code.co_filename) else self._look

    def _look(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Look at a line that is about to run."""
        file, line = frame.f_code.co_filename, frame.f_lineno
        expressions = expressions_of(file).get(line, ()) if event == "line" else ()
        if not expressions or self._looks[file, line] >= LOOKS:
            return self._look
        self._looks[file, line] += 1
        sys.settrace(None)
        try:
            for expression in expressions:
                # Rows of all records are compared where a line runs first, as that takes time.
                if expression.is_branch or self._looks[file, line] == 1:
                    self._evaluate(frame, expression)
        finally:
            sys.settrace(self._enter)
        return self._look

    def _evaluate(self, frame: FrameType, expression: Expression) -> None:
        """Compute an expression once more, if nothing in it is noise or has effects.

        Where a noisy number is compared with a private one, the private part is computed.
        """
        local_names, global_names = frame.f_locals, frame.f_globals
        for name in expression.names:
            value = local_names.get(name, global_names.get(name))
            code = getattr(value, "__code__", None)
            file = getattr(value, "__file__", None) or getattr(code, "co_filename", "")
            is_of_library = isinstance(value, LIBRARY_KINDS) or (file and is_library(file))
            if not (_is_plain(value) or is_of_library):
                for part in expression.parts:
                    self._evaluate(frame, part)
                return
        try:
            with np.errstate(all="ignore"), running(None):
                value = eval(expression.code, {**global_names, **local_names})
        except Exception:  # what the line itself does of it is its own affair
            return
        key = (frame.f_code.co_filename, frame.f_lineno, expression.text)
        if expression.is_branch:
            is_array = isinstance(value, np.ndarray) and not value.dtype.hasobject
            shown = repr(value) if isinstance(value, SCALARS) else type(value).__name__
            self.compared[key].append(value.tobytes() if is_array else shown)
        rows = None if key in self.rows else _rows_of(value, self.records)
        if rows is not None:
            self.rows[key] = rows


def _is_plain(value: Any) -> bool:
    """Whether a value is data without noise, and no object with methods of the user's own."""
    if noisy_of(value) is not None or hasattr(value, "as_plain"):
        return False
    if isinstance(value, (list, tuple, set)):
        return len(value) <= LARGEST and all(map(_is_plain, value))
    if isinstance(value, dict):
        return len(value) <= LARGEST and all(map(_is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return value.size <= LARGEST and not value.dtype.hasobject
    return isinstance(value, SCALARS) or type(value).__module__.startswith("pandas")


@functools.lru_cache(maxsize=64)
def expressions_of(file: str) -> dict[int, list[Expression]]:
    """The expressions of a source file without side effects, by the line on which they begin."""
    expressions: dict[int, list[Expression]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    for node, is_branch in _within(tree, is_branch=False):
        expression = _compiled(node, is_branch, file)
        if expression is not None:
            expressions.setdefault(node.lineno, []).append(expression)
    return expressions


def _compiled(node: ast.expr, is_branch: bool, file: str) -> Expression | None:
    """An expression that computes and changes nothing; None of another one."""
    if isinstance(node, ast.GeneratorExp):
        node = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
    nodes = list(ast.walk(node))
    uses = [part for part in nodes if isinstance(part, ast.Name)]
    bound = {part.id for part in uses if isinstance(part.ctx, ast.Store)}
    names = frozenset(part.id for part in uses) - bound
    calls = [part for part in nodes if isinstance(part, ast.Call)]
    called = {getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls}
    changed = {keyword.arg for call in calls for keyword in call.keywords} & {"out", "inplace"}
    is_value = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)  # and no target
    if not (names and is_value and called <= PURE and not changed):
        return None
    if not all(isinstance(part, PURE_NODES) for part in nodes):
        return None
    parts = [_compiled(call, True, file) for call in calls if is_branch and call is not node]
    code = compile(ast.fix_missing_locations(ast.Expression(node)), file, "eval")
    within = tuple(part for part in parts if part is not None)
    return Expression(code, names, ast.unparse(node), is_branch, within)


def _within(node: ast.AST, is_branch: bool) -> Iterator[tuple[ast.expr, bool]]:
    """The expressions in a part of a program, and whether a way is decided by their values."""
    tests = [getattr(node, "test", None), *getattr(node, "ifs", ())]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        yield ast.copy_location(ast.BinOp(name, node.op, node.value), node), False
    for child in ast.iter_child_nodes(node):
        is_in_branch = (is_branch and not isinstance(child, ast.stmt)) or child in tests
        is_condition = isinstance(child, (ast.Compare, ast.BoolOp)) or (
            isinstance(child, ast.UnaryOp) and isinstance(child.op, ast.Not)
        )
        if isinstance(child, ast.expr):
            is_part_of_condition = child in tests or isinstance(
                node, (ast.Compare, ast.BoolOp, ast.UnaryOp)
            )
            yield child, is_in_branch and is_part_of_condition and not is_condition
        yield from _within(child, is_in_branch)


def _rows_of(value: Any, records: int | None) -> Counter[bytes] | None:
    """How often each row is in an array of as many numbers or rows as records; None of others."""
    if (
        not records
        or records < 3
        or not hasattr(value, "__len__")
        or isinstance(value, (str, dict))
    ):
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    if array.dtype.kind != "f" or array.shape[:1] != (records,) or array.size > LARGEST:
        return None
    # Sums in another order are rounded differently.
    exponents = np.floor(np.log10(np.abs(array), where=array != 0, out=np.zeros(array.shape)))
    with np.errstate(all="ignore"):
        rounded = np.round(array / 10.0**exponents, DIGITS) * 10.0**exponents + 0.0
    return Counter(row.tobytes() for row in rounded.reshape(len(array), -1))


def bare_branches(data: WatchedLines, others: list[WatchedLines]) -> list[str]:
    """What was compared in a branch and has no noise, with its line.

    Each of the ``others`` is of data that differ from the first in one record.
    """
    notes: dict[tuple[str, int], str] = {}
    for file, line, text in data.compared:
        values = Counter(data.compared[file, line, text])
        if any(Counter(lines.compared[file, line, text]) != values for lines in others):
            notes.setdefault((file, line), f"a branch compares `{text}`, which has no noise")
    return [f"{shown_path(file)}:{line}: {note}" for (file, line), note in sorted(notes.items())]


def mixed_records(data: WatchedLines, others: list[WatchedLines]) -> list[RecordedFinding]:
    """Where one record moves rows of other records without noise, as in standardising."""
    findings: dict[tuple[str, int], RecordedFinding] = {}
    for (file, line, text), rows in data.rows.items():
        # Of as many numbers as records in one run alone, none belongs to a record.
        if any(
            lines.records != data.records and (file, line, text) not in lines.rows
            for lines in others
        ):
            continue
        for lines in others:
            other_rows = lines.rows.get((file, line, text), rows)
            if max((rows - other_rows).total(), (other_rows - rows).total()) > 1:
                sentence = (
                    f"one record moves rows of other records in `{text}`, without noise; "
                    "a worse pair may cost more"
                )
                finding = RecordedFinding(NOT_FOLLOWED, f"{shown_path(file)}:{line}", sentence)
                findings.setdefault((file, line), finding)
    # Later lines compute with what the first of them mixed.
    return [findings[min(findings)]] if findings else []
