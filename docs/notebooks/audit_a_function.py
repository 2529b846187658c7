# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Audit a function
#
# A function claims ε = 1. An audit runs it many times on two neighbouring inputs, guesses from each
# output which of the two it was, and asks whether so many right guesses are possible under ε = 1.

# %%
import numpy as np

from audits import audit


def noisy_mean(ages, rng, size):
    """The mean of ages between 0 and 100, with noise for one record exchanged."""
    return ages.clip(0, 100).mean() + rng.laplace(scale=100 / len(ages), size=size)


ages = np.array([23.0, 35.0, 41.0, 58.0, 64.0])
neighbour = np.append(ages[:-1], 0.0)

# %%
found = audit(noisy_mean, (ages, neighbour), claim=1.0, rng=0)
found

# %% [markdown]
# The claim survived: these runs, on this pair, saw no violation. That is no proof. The bound is far
# below 1, because these neighbours differ by 64 years and the noise is for 100. A worse pair shows
# more:

# %%
worst = np.append(ages[:-1], 100.0), neighbour
audit(noisy_mean, worst, claim=1.0, rng=0)

# %% [markdown]
# ## A fault
#
# Without clipping, one record moves the mean as far as it likes.


# %%
def unclipped_mean(ages, rng, size):
    """The same, but a record can be of any size."""
    return ages.mean() + rng.laplace(scale=100 / len(ages), size=size)


outlier = np.append(ages[:-1], 300.0), neighbour
falsified = audit(unclipped_mean, outlier, claim=1.0, rng=0)
falsified

# %% [markdown]
# `epsilon_lower` is proved, with 95 % confidence: the true ε is at least that. The finding also
# says which outputs contradict the claim.

# %%
falsified.witness

# %% [markdown]
# ## What it looks like
#
# The outputs of the two inputs, 20,000 runs of each. Under ε = 1 no region of outputs may be more
# than e times as likely under one input as under the other.

# %%
import matplotlib.pyplot as plt

rng = np.random.default_rng(0)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
pairs = [("noisy_mean", noisy_mean, worst), ("unclipped_mean", unclipped_mean, outlier)]
for panel, (name, release, pair) in zip(axes, pairs, strict=True):
    for values, label in zip(pair, ("with the record", "with its neighbour"), strict=True):
        panel.hist(release(values, rng, 20_000), bins=np.linspace(-50, 200, 80), alpha=0.6,
                   label=label)  # fmt: skip
    panel.set(title=name, xlabel="output", yscale="log")
axes[0].legend()
plt.close(figure)
figure

# %% [markdown]
# Next: keep it as a [test in CI](../how-to/audit-a-function.md).
