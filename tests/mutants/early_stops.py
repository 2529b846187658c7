"""Wrong early stops: bets on runs whose sides were not drawn by fair coins."""

from audits.attacks import sequential
from tests.mutants.edits import edit


def first_values_first(patch):
    """Bets on all runs of the first value, then on those of the second."""
    edit(
        patch,
        sequential._Bets,
        "_bet",
        "rng.permutation(scores.size)",
        "np.arange(scores.size)",
    )
