# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # The ε of a training run
#
# You trained a network by DP-SGD: 60,000 records, batches of 512, noise multiplier 1.1, 10 epochs.
# What does it cost, and what if the loader shuffled?

# %%
from accountant import dp_sgd

run = {"examples": 60_000, "batch": 512, "noise": 1.1, "delta": 1e-5}
found = dp_sgd(**run, epochs=10)
print(found)

# %% [markdown]
# ## Under another loader
#
# The number above holds where each record flips a coin in each step. A loader that shuffles costs
# more at the same noise.

# %%
shuffled = dp_sgd(**run, epochs=10, loader="shuffled")
round(found.epsilon, 2), round(shuffled.epsilon, 2)

# %% [markdown]
# ## How ε grows with the epochs

# %%
import matplotlib.pyplot as plt

epochs = [1, 2, 5, 10, 20]
costs = [dp_sgd(**run, epochs=count).epsilon for count in epochs]
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(epochs, costs, marker="o")
axes.set(xlabel="epochs", ylabel="epsilon at delta 1e-5", ylim=(0, None))
plt.close(figure)
figure

# %% [markdown]
# ## The noise for a target
#
# With `epsilon=` in place of `noise=` the least noise is found.

# %%
planned = dp_sgd(examples=60_000, batch=512, epochs=10, epsilon=1.0, delta=1e-5)
round(planned.noise, 3)

# %% [markdown]
# Next: [find the ε of a training run](../how-to/cost-of-a-training-run.md), and
# [audit it](../how-to/audit-a-training-run.md).
