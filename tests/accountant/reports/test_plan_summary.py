"""What the page of a plan says is what the accountant says."""

from accountant import Budget, Sequential, Tight
from accountant.formats.plan_toml import file_from_toml
from accountant.planning.capacity import remaining_capacity
from accountant.reports.plan_lines import lines_of, lines_of_file, plan_of
from accountant.reports.plan_summary import _costs, what_if
from mechanisms import Gaussian, Laplace, NoisyMax


def test_room_on_the_page_counts_what_is_admitted_far_from_the_plan():
    # noisy maxima are chosen with all earlier answers: what hundreds more of them cost
    top = NoisyMax(26.0, monotone=True)
    plan = Sequential([4 * Gaussian(11.0), 7 * Laplace(20.0), 2 * top])
    budget = Budget(2.0, 1e-6)
    found = list(_costs(plan, lines_of(plan), budget, lambda steps: None))[2].capacity
    assert found == remaining_capacity(plan, top, budget) == 405
    assert budget.admits(Sequential([plan, found * top]))
    assert not budget.admits(Sequential([plan, (found + 1) * top]))


def test_a_plan_of_few_releases_is_told_as_tight_has_it_on_the_page():
    # three, three quarters as often, are three: that cell is asked first
    text = '[budget]\nepsilon = 1\n[[release]]\nkind = "Laplace"\nscale = 10.0\ncount = 3\n'
    text += '[[release]]\nkind = "Gaussian"\nscale = 50.0\n'
    lines = lines_of_file(file_from_toml(text), Budget(1.0))
    grid = what_if(lines, Budget(1.0))
    i, j = grid.plan_index
    exact = tuple(Tight().epsilon(plan_of(lines), delta) for delta in grid.deltas)
    assert grid.epsilon[i][j] == exact
    assert grid.epsilon[i][j - 1] == exact
