"""Plan files that hold other releases than the plan: each takes a monkeypatch."""

from accountant.formats import plan_file
from tests.mutants.edits import edit


def the_outer_count_alone(patch):
    """Writes the count of a repeated `Repeat` in place of its own."""
    edit(patch, plan_file, "to_table", 'if "count" in table:', "if False:")


MUTANTS = (the_outer_count_alone,)
