"""Single changes of the code that carries privacy, by mutmut's operators, and a sample of them.

Not changed is what no test should have to see: docstrings, annotations, imports, decorators,
`__slots__`, the words of errors (everything inside `raise`, and every string with a space), and the
name in ``DOMAIN.check(name, value)``, which `tests.test_checked_names` compares in the source.
"""

import ast
import difflib
import random
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")
# pages, command lines and pictures carry neither privacy nor truth; the zoo is wrong on purpose
ROOMS_LEFT_OUT = (
    "accountant/cli", "accountant/reports", "audits/cli", "audits/formats", "audits/report",
    "audits/zoo", "mechanisms/base/docs_table.py", "mechanisms/base/exactness_table.py",
    "mechanisms/base/marked_table.py", "mechanisms/base/package_stub.py",
)  # fmt: skip
SAMPLE = 300
REGRESSION_SEED = 18  # the sample that tests were written for: no measure of them any more
LEFT_ALONE = (
    cst.Annotation, cst.Import, cst.ImportFrom, cst.Raise, cst.Decorator, cst.FormattedString,
    cst.ConcatenatedString, cst.TypeAlias, cst.TypeParameters,
)  # fmt: skip
TYPES_ONLY = {"cast", "TypeVar", "NewType", "ParamSpec", "overload"}


class Mutant(NamedTuple):
    """One change: what a line was and becomes, the whole changed file, and where tests see it."""

    path: str
    function: str
    line: int
    was: str
    becomes: str
    source: str
    lines: range | None  # of the statement; None where it runs at import

    @property
    def name(self):
        """What it is called in the lists: it stays when other lines move."""
        return (self.path, self.function, self.was, self.becomes)


class Candidate(NamedTuple):
    """A node and what an operator makes of it."""

    node: cst.CSTNode
    mutated: cst.CSTNode
    function: str
    line: int
    lines: range | None


class Finder(cst.CSTVisitor):
    """Every candidate of a file."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self):
        super().__init__()
        self.found, self._scopes, self._statements, self._names = [], [], [], set()

    def on_visit(self, node):
        if _left_alone(node) or node in self._names:
            return False
        method = getattr(getattr(node, "func", None), "attr", None)
        if getattr(method, "value", None) == "check" and node.args:
            self._names.add(node.args[0])
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._scopes.append(node)
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            self._statements.append(node)
        if self._scopes and node is getattr(self._scopes[-1], "params", None):
            self._scopes.append(None)  # defaults are evaluated outside of the function
        for kind, operator in mutation_operators:
            if isinstance(node, kind) and not _prose(node):
                self.found += [
                    self._candidate(node, mutated)
                    for mutated in operator(node)
                    if not self._changes_a_name(node, mutated)
                ]
        return True

    def on_leave(self, original_node):
        super().on_leave(original_node)
        if self._scopes and original_node in (self._scopes[-1], self._defaults_of()):
            self._scopes.pop()
        if self._statements and original_node is self._statements[-1]:
            self._statements.pop()

    def _changes_a_name(self, node, mutated):
        """Whether another call of ``check`` says another name of what it checks, or none."""
        names = [call.args[0] for call in (node, mutated) if getattr(call, "args", ())]
        if not names or names[0] not in self._names:
            return False
        return len(names) < 2 or not names[0].deep_equals(names[1])

    def _defaults_of(self):
        """The parameters that are being visited, where they are."""
        return self._scopes[-2].params if self._scopes[-1] is None else None

    def _candidate(self, node, mutated):
        scopes = [scope for scope in self._scopes if scope is not None]
        inside = scopes[: len(scopes) - (None in self._scopes)]
        running = any(isinstance(scope, cst.FunctionDef) for scope in inside)
        statement = self._statements[-1]
        start = self.get_metadata(PositionProvider, statement).start.line
        if isinstance(statement, cst.SimpleStatementLine):
            end = self.get_metadata(PositionProvider, statement).end.line + 1
        elif isinstance(statement, cst.Match):
            end = start + 1
        else:
            end = self.get_metadata(PositionProvider, statement.body).start.line + 1
        line = self.get_metadata(PositionProvider, node, None)
        return Candidate(
            node, mutated, ".".join(scope.name.value for scope in scopes),
            line.start.line if line else start, range(start, end) if running else None,
        )  # fmt: skip


def _left_alone(node):
    """Whether a node and all in it is none of the tests' business."""
    if isinstance(node, cst.If):
        return getattr(node.test, "value", None) == "TYPE_CHECKING"
    if isinstance(node, cst.Call):
        return getattr(node.func, "value", None) in TYPES_ONLY
    if isinstance(node, cst.Assign):
        named = getattr(node.targets[0].target, "value", None)
        alias = str(named)[0].isupper() and isinstance(node.value, cst.Subscript)
        return alias or named in {"__slots__", "__all__"}
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)
    return isinstance(node, LEFT_ALONE)


def _prose(node):
    """Whether a node is words for readers."""
    return isinstance(node, cst.SimpleString) and " " in node.value


def candidates(source):
    """The parsed file, and by line every candidate in it."""
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    finder = Finder()
    wrapper.visit(finder)
    by_line = {}
    for one in finder.found:
        by_line.setdefault(one.line, []).append(one)
    return wrapper.module, by_line


def mutants_of(path, source, parsed, count, seed=REGRESSION_SEED):
    """So many mutants of a file: a line is drawn, then what changes in it; one mutant a line."""
    module, by_line = parsed
    draw = random.Random(f"{seed} {path}")
    made = []
    for line in draw.sample(sorted(by_line), len(by_line)):
        if len(made) == count:
            break
        for one in draw.sample(by_line[line], len(by_line[line])):
            changed = module.deep_replace(one.node, one.mutated).code
            if _another_program(source, changed):
                was, becomes = differing_lines(source, changed)
                made.append(Mutant(path, one.function, line, was, becomes, changed, one.lines))
                break
    return made


def _another_program(source, changed):
    """Whether a change compiles, and to something else."""
    try:
        return ast.dump(ast.parse(source)) != ast.dump(ast.parse(changed))
    except SyntaxError:
        return False


def differing_lines(source, changed):
    """The lines that differ, before and after, each as one line of single spaces."""
    difference = list(difflib.ndiff(source.splitlines(), changed.splitlines()))
    before, after = (
        " ".join(line[2:] for line in difference if line.startswith(sign)) for sign in "-+"
    )
    return tuple(re.sub(r"\s+", " ", text).strip() for text in (before, after))


def modules(root):
    """The files of all rooms that carry privacy or truth, those of sub-folders too."""
    names = [
        str(file.relative_to(root))
        for package in PACKAGES
        for file in sorted((Path(root) / package).rglob("*.py"))
        if file.name != "__init__.py"
    ]
    return [name for name in names if not name.startswith(ROOMS_LEFT_OUT)]


def code_lines(source):
    """How many lines of a file have code: what a file weighs in a sample."""
    return len({node.lineno for node in ast.walk(ast.parse(source)) if hasattr(node, "lineno")})


def sample(root, size=SAMPLE, seed=REGRESSION_SEED):
    """A sample of mutants: each is of a file that is drawn in proportion to its lines of code."""
    sources = {path: (Path(root) / path).read_text() for path in modules(root)}
    weights = [code_lines(source) for source in sources.values()]
    counts = Counter(random.Random(seed).choices(list(sources), weights, k=size))
    mutants = [
        mutant
        for path, count in counts.items()
        for mutant in mutants_of(path, sources[path], candidates(sources[path]), count, seed)
    ]
    random.Random(seed).shuffle(mutants)  # what an interrupted run has tried is a sample too
    return mutants
