"""Law: ``DOMAIN.check(name, value)`` names the argument that it checks.

The name stands in the message of an error, so that a caller finds what to change.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("accountant", "mechanisms", "algorithms", "audits")
# Command lines check their options, which are written as "--name" or "NAME".
COMMAND_LINES = ("accountant/cli/", "audits/cli/", "audits/runner/")
# What is checked has no name in the code that a user knows: the words name it.
IN_WORDS = {
    "accountant/formats/jax_privacy.py": {
        "bands of the strategy", "num_examples", "truncated_batch_size",
    },
    "accountant/formats/opacus_accountant.py": {"added"},
    "accountant/formats/opacus_steps.py": {"noise_multiplier", "sample_rate", "steps", "added"},
    "accountant/formats/flower.py": {"noise_multiplier"},
    "accountant/formats/toml_writer.py": {"the suffix of name"},
    "accountant/formats/dp_event_readers.py": {"step_counts"},
    "accountant/formats/loader_facts.py": {"batch_size"},
    "accountant/planning/calibration_goals.py": {"epsilon"},
    "accountant/planning/error_measures.py": {"maximum", "selection"},
    "accountant/training/run.py": {"delta"},
    "algorithms/baselines/noisy_thresholding.py": {"machines"},
    "algorithms/frames/formulas.py": {"formula"},
    "algorithms/frames/schema.py": {"groups_per_person * rows_per_person_and_group"},
    "algorithms/frank_wolfe/polytopes.py": {"norm of the vertices"},
    "algorithms/label_privacy/label_randomizers.py": {"randomizer"},
    "algorithms/label_privacy/label_sgd.py": {"loss.lipschitz"},
    "algorithms/statistics/quantile_scores.py": {"grid_step"},
    "algorithms/voting/sign_vote.py": {"machines", "features"},
    "audits/adapters/reduced_noise.py": {"noise"},
}  # fmt: skip
PATHS = [
    str(file.relative_to(ROOT)) for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))
]


def names_in(node):
    """The names, attributes and keys of an expression."""
    return {
        word
        for part in ast.walk(node)
        for word in (getattr(part, "id", None), getattr(part, "attr", None),
                     getattr(part, "value", None))
        if isinstance(word, str)
    }  # fmt: skip


def wrong_names(source):
    """Return (line, name) of each check whose name is no argument and not in what is checked."""
    wrong = []

    def visit(node, arguments):
        for child in ast.iter_child_nodes(node):
            known = arguments
            if isinstance(child, ast.FunctionDef | ast.Lambda):
                known = known | {part.arg for part in ast.walk(child.args)
                                 if isinstance(part, ast.arg)}  # fmt: skip
            if isinstance(child, ast.ClassDef):
                known = {getattr(part.target, "id", "") for part in child.body
                         if isinstance(part, ast.AnnAssign)}  # fmt: skip
            if isinstance(child, ast.Call) and getattr(child.func, "attr", "") == "check":
                name = getattr(child.args[0], "value", None) if child.args else None
                if isinstance(name, str) and len(child.args) > 1:
                    last = name.rpartition(".")[2].partition("[")[0]
                    if not {name, last} & (known | names_in(child.args[1])):
                        wrong.append((child.lineno, name))
            visit(child, known)

    visit(ast.parse(source), set())
    return wrong


def test_a_check_names_the_argument_that_it_checks():
    found = {
        path: wrong
        for path in PATHS
        if not path.startswith(COMMAND_LINES) and (wrong := wrong_names((ROOT / path).read_text()))
    }
    assert {path: {name for _, name in wrong} for path, wrong in found.items()} == IN_WORDS


@pytest.mark.parametrize(
    ("right", "wrong"), [('DELTA.check("delta", delta)', 'DELTA.check("epsilon", delta)')]
)
def test_a_wrong_name_is_seen(right, wrong):
    assert wrong_names(f"def f(delta):\n    return {right}") == []
    assert wrong_names(f"def f(delta):\n    return {wrong}") == [(2, "epsilon")]
