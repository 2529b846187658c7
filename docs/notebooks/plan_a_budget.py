# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Plan a budget
#
# A year of weekly counts and one histogram may cost ε = 1 at δ = 10⁻⁶ together. Nothing here reads
# data, so nothing here costs privacy. Objects show themselves: a cell ends with their name.

# %%
from accountant import Budget, Deviation, Maximum, Wanted, allocate, at_deltas, compare
from mechanisms import Gaussian

budget = Budget(epsilon=1.0, delta=1e-6)
counts = Wanted(
    Gaussian, Deviation(), sensitivity=1.0, arithmetic="exact", weight=1.0, count=52, name="count"
)
districts = Wanted(
    Gaussian, Maximum(50), sensitivity=1.0, arithmetic="exact", dimension=50, weight=0.5,
    name="districts",
)  # fmt: skip
found = allocate([counts, districts], budget)
found

# %% [markdown]
# `noise` is the scale of each release and `error` what was asked for: the deviation of a count, and
# the largest of the 50 errors of the histogram. The whole plan meets the budget.
#
# ## Every accountant, beside each other
#
# `Tight` is the one to quote. The others show what an older theorem would have said.

# %%
rows = compare(found.plan, delta=budget.delta)
rows

# %%
figure = rows.plot()
figure

# %% [markdown]
# ## The same as a data frame
#
# Every table has `to_frame()`.

# %%
rows.to_frame()[["accountant", "epsilon"]]

# %% [markdown]
# ## What a smaller δ costs

# %%
import matplotlib.pyplot as plt

deltas = [10.0**-k for k in range(3, 13)]
epsilons = [epsilon for _, epsilon in at_deltas(found.plan, deltas)]
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(deltas, epsilons, marker="o")
axes.set(xscale="log", xlabel="δ", ylabel="ε of the plan", ylim=(0, None))
plt.close(figure)
figure

# %% [markdown]
# Next: [keep a team's ledger](../how-to/keep-a-ledger.md), which spends such a plan.
