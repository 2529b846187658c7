# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Audit a training run
#
# DP-SGD clips gradients and adds noise. Is the noise as large as declared? One run is enough to
# test it: canaries are records of your own, and a coin puts each of them into the data or not.

# %%
import numpy as np

from audits import GradientCanaries


def clipped_sum(gradients):
    """The sum of gradients of length 1 at most."""
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients / np.maximum(lengths, 1.0)).sum(axis=0)


def trained(noise, steps=10):
    """A training whose canaries expect a noise of 4."""
    canaries = GradientCanaries(700, 738, rate=0.5, noise_multiplier=4.0, rng=0)
    rng = np.random.default_rng(1)
    for _ in range(steps):
        batch = rng.normal(size=(50, 738))
        released = clipped_sum(np.concatenate([batch, canaries.rows()]))
        released += rng.normal(scale=noise, size=738)
        canaries.observe(released, others=clipped_sum(batch))
    return canaries


# %% [markdown]
# ## Noise that is too small
#
# The program declares 4 and draws .5. The audit sees it.

# %%
falsified = trained(0.5).audit()
falsified

# %% [markdown]
# ## What the noise was
#
# `audit_noise` measures it.

# %%
measured = trained(0.5).audit_noise()
measured

# %% [markdown]
# ## A run that keeps its word
#
# No violation is seen. Whether these canaries could have seen one, `canary_power` says before the
# training.

# %%
honest = trained(4.0).audit_noise()
honest

# %% [markdown]
# Next: [audit a training run](../how-to/audit-a-training-run.md) by Opacus or jax-privacy.
