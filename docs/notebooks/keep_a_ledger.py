# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Keep a ledger
#
# Several people publish statistics of the same data. A book keeps their budget: it charges every
# release before it reads the data, and refuses what does not fit.

# %%
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from accountant import Book, Budget
from mechanisms import DiscreteLaplace, Gaussian

folder = Path(mkdtemp())
book = Book.create(f"sqlite:///{folder}/team.db", author="ada")
status = book.dataset("visits", budget=Budget(1.0, 1e-6), unit="one patient")
status

# %% [markdown]
# ## Release through it
#
# A label names an answer. The same label gives the same answer again, and costs nothing.

# %%
weeks = np.arange(2_000) % 4
with book.ledger("visits", weeks) as ledger:
    first = ledger.release(DiscreteLaplace(20.0), np.size, label="May")
    again = ledger.release(DiscreteLaplace(20.0), np.size, label="May")
    for _ in range(12):
        ledger.release(Gaussian(40.0), np.size)
is_same = first == again
is_same

# %% [markdown]
# ## What was spent
#
# Every release is a line of the history.

# %%
history = book.history("visits", last=5)
history

# %% [markdown]
# ## What is left
#
# `remaining` says how many more releases of a kind fit.

# %%
import matplotlib.pyplot as plt

lines = book.history("visits")
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.step([line.seq for line in lines], [line.epsilon for line in lines])
axes.axhline(1.0, linestyle=":", color="black", label="budget")
axes.set(xlabel="entry", ylabel="epsilon spent")
axes.legend()
plt.close(figure)
figure

# %%
remaining = book.remaining("visits", DiscreteLaplace(20.0))
remaining

# %% [markdown]
# Next: [keep a team's ledger](../how-to/keep-a-ledger.md) with several processes, windows and keys.
