"""Every figure by its name: its title, the file that draws it, the data that it needs."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A figure, or the numbers that a page in docs/ claims (those write no file)."""

    module: str  # where FIGURES has the function
    title: str
    file: str = ""  # name of the CSV, the PNG and the SVG
    data: tuple[str, ...] = ()
    optional_data: tuple[str, ...] = ()  # without which it prints fewer lines
    unnormalised: bool = False  # whether --unnormalised means something
    page: str = ""  # the file of docs/ that it prints, whole


SPARSE, LOGISTIC, VOTES, WOLFE, LABELS, BOUNDS = (
    "papers.sparse_regression", "papers.sparse_logistic", "papers.sign_votes",
    "papers.frank_wolfe", "papers.private_labels", "lower_bounds",
)  # fmt: skip
RECORDS, LABEL = (
    "LocalIHT: whole records private, ε-LDP",
    "LabelIHT: labels private, (ε, δ)-LDP, δ = 10⁻³",
)
ERM = "SparseERM: sparse ridge-logistic regression, (ε, δ)-DP"
LINK = "y = 8u + cos u + noise, u = <x, θ>"
FIGURES = {
    "sparse-regression-1": Figure(
        SPARSE, f"Figure 1. {RECORDS}, y = <x, θ> + noise", "figure1", unnormalised=True),
    "sparse-regression-2": Figure(
        SPARSE, f"Figure 2. {LABEL}, y = <x, θ> + noise", "figure2", unnormalised=True),
    "sparse-regression-3": Figure(
        LOGISTIC, f"Figure 3. {ERM}, covtype", "figure3", ("covtype/covtype.npz",)),
    "sparse-regression-4": Figure(
        LOGISTIC, f"Figure 4. {ERM}, rcv1", "figure4", ("rcv1_subset/rcv1_subset.npz",)),
    "sparse-regression-5": Figure(
        SPARSE, f"Figure 5. {RECORDS}, {LINK}", "figure5", unnormalised=True),
    "sparse-regression-6": Figure(
        SPARSE, f"Figure 6. {LABEL}, {LINK}", "figure6", unnormalised=True),
    "sparse-regression-claims": Figure(
        "papers.sparse_regression_claims", "Errata E1, E2, E3, E5, E7, E10; accuracy on covtype",
        optional_data=("covtype/covtype.npz", "rcv1_subset/rcv1_subset.npz")),
    "sparse-regression-whole": Figure(
        "papers.sparse_logistic_whole", "Figures 3 and 4 on all of covtype and rcv1",
        data=("covtype/covtype.npz", "rcv1_subset/rcv1_subset.npz")),
    "sign-votes-2": Figure(
        VOTES, "Figure 2. Signs of a sparse mean: more machines", "vote_figure2"),
    "sign-votes-3": Figure(VOTES, "Figure 3. Signs of a sparse mean: more epsilon", "vote_figure3"),
    "sign-votes-4": Figure(
        VOTES, "Figure 4. Signs of sparse regression: more machines", "vote_figure4"),
    "sign-votes-5": Figure(
        VOTES, "Figure 5. Signs of sparse regression: more epsilon", "vote_figure5"),
    "sign-votes-claims": Figure(
        "papers.sign_votes_claims", "Errata E12, E13, E14; thresholds of the machines"),
    "sign-votes-signals": Figure(
        "papers.sign_votes_signals", "Theorems 3 and 4: how small a signal may be"),
    "frank-wolfe-risk": Figure(
        WOLFE, "Private Frank-Wolfe over the l1 ball: T* rounds, δ = 10⁻⁶, one record replaced",
        "frank_wolfe_risk"),
    "frank-wolfe-data": Figure(
        "papers.frank_wolfe_data", "Private Frank-Wolfe on real data, δ = 10⁻⁶: where it is no "
        "better than a constant, n is too small", "frank_wolfe_data",
        ("riboflavin/riboflavin.npz", "golub_leukemia/golub_leukemia.npz")),
    "frank-wolfe-claims": Figure(WOLFE, "Errata E18 to E23; how the risk depends on p"),
    "frank-wolfe-width": Figure(
        "papers.gaussian_width", "Theorem 2.6: the Gaussian width of the l2 ball"),
    "private-labels-moments": Figure(
        LABELS, "What a private label costs: V of four randomisers", "label_moments"),
    "private-labels-risk": Figure(
        LABELS, "Excess risk with private labels, ε = 1", "label_risk", ("mnist10k/mnist10k.npz",)),
    "private-labels-claims": Figure(
        LABELS, "Errata E15 and E17; accuracy on MNIST and covtype",
        optional_data=("mnist10k/mnist10k.npz", "covtype/covtype.npz")),
    "lower-bounds-records": Figure(
        BOUNDS, "Sparse regression, whole records private, each user once", "bounds_records"),
    "lower-bounds-labels": Figure(BOUNDS, "Labels alone are private", "bounds_labels"),
    "lower-bounds-central": Figure(BOUNDS, "A curator is trusted, δ = 10⁻⁶", "bounds_central"),
    "lower-bounds-everyday": Figure(BOUNDS, "Mean, histogram, selection", "bounds_everyday"),
    "lower-bounds-accuracy": Figure(
        "audits_in_reverse", "Too accurate to be private: algorithms without their noise"),
    "lower-bounds-tracing": Figure(
        "audits_in_reverse", "Tracing: algorithms without their noise"),
    "published": Figure(
        "published", "Published epsilons, recomputed: docs/published.md", page="published.md"),
    "faults": Figure(
        "faults", "Faults and errata for programs: docs/faults.json", page="faults.json"),
    "intervals": Figure("intervals", "How often intervals cover, on simulated and real data"),
    "planning-gap": Figure("planning_gap", "How far a planned budget is from the least error"),
    "book-attacks": Figure("book_attacks", "How often flips, cuts and kills break a book"),
}  # fmt: skip


def function_of(name: str) -> Callable[..., Any]:
    """From `Options` to the `Chart`, or to an iterator of the lines that are claimed."""
    functions: dict[str, Callable[..., Any]]
    functions = import_module(f"experiments.{FIGURES[name].module}").FIGURES
    return functions[name]


def nearest(name: str) -> list[str]:
    """Up to three names that look like this one, or whose file does."""
    words = {figure.file: known for known, figure in FIGURES.items() if figure.file}
    words |= {known: known for known in FIGURES}
    close = difflib.get_close_matches(name, words, n=3, cutoff=0)
    return list(dict.fromkeys(words[word] for word in close))
