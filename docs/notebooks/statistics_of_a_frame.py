# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Statistics of a frame
#
# The frame is the housing data of the census of 1990: 20,640 blocks of houses in California. One
# block more or less must not show. (They are public data, so that the answers can be compared.)

# %%
import pandas as pd

frame = pd.read_csv("../../examples/data/california_housing/housing.csv.gz")
frame = frame.rename(columns={"housing_median_age": "age", "median_house_value": "price"})
frame = frame.rename(columns={"median_income": "income", "ocean_proximity": "ocean"})
frame[["age", "income", "price", "ocean"]].head(3)

# %% [markdown]
# ## Declare what is public
#
# Bounds and labels come from what is known without the data. What lies beyond is clipped.

# %%
from algorithms.frames import Category, Number, Schema, col, count, histogram, mean

places = ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"]
schema = Schema(
    {
        "age": Number(0, 60),
        "income": Number(0, 15),
        "price": Number(0, 500_001),
        "ocean": Category(places),
    }
)

# %% [markdown]
# ## Ask before you read
#
# A question says in words what will happen, and its plan says what it costs.

# %%
by_ocean = mean("price", by="ocean", epsilon=0.4)
print(by_ocean.explain(schema))

# %% [markdown]
# ## Release
#
# `rng=0` is for this page only: without it the noise comes from the operating system.

# %%
from accountant import Budget, Filter

gate = Filter(frame, Budget(epsilon=1.0), rng=0)
prices = by_ocean.release(gate, schema)
prices

# %% [markdown]
# `lower` and `upper` are an interval of 95 % for the mean of this frame. There are five blocks on
# islands: so few cannot be distinguished from the noise, and their interval says so.

# %%
bins = histogram("income", 15, epsilon=0.3).release(gate, schema).to_frame()
bins.head()

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
spread = [bins["count"] - bins["lower"], bins["upper"] - bins["count"]]
axes.bar(range(len(bins)), bins["count"], yerr=spread, color="tab:blue", ecolor="black")
axes.set(xlabel="median income of a block, 10,000 dollars", ylabel="blocks")
plt.close(figure)
figure

# %%
old = count(by="ocean", where=col("age") >= 50, epsilon=0.2).release(gate, schema)
old

# %% [markdown]
# ## What is left
#
# The three answers cost 0.9 together. A fourth one fits; a fifth would be refused.

# %%
gate

# %% [markdown]
# Next: [release statistics from a frame](../how-to/release-statistics.md), the same in short, and
# [all about frames](../frames.md).
