"""Plan files and a book that several tests read."""

import pytest

from accountant import Book, Budget
from mechanisms import Laplace

WANTED = """
[budget]
epsilon = 1.0
delta = 1e-6

[[release]]
name = "ages"
kind = "Laplace"
sensitivity = 2.0
count = 12
weight = 1.0

[[release]]
name = "top diagnosis"
kind = "NoisyMax"
count = 4
error = { selection = 100 }
target = 120.0

[[release]]
kind = "PoissonSampled"
rate = 0.01
count = 5
part = { kind = "Gaussian" }
weight = 0.5

[[release]]
kind = "Gaussian"
scale = 60.0
error = { maximum = 30 }
"""

PLAN = """
[budget]
epsilon = 2.0
delta = 1e-6

[[release]]
name = "ages"
kind = "Laplace"
scale = 20.0
count = 2

[[release]]
kind = "Gaussian"
scale = 15.0
"""


def spent_book(folder):
    """The address of a book whose one ledger has answered three times and failed once."""
    url = f"sqlite:///{folder}/spent.db"
    with Book.create(url, author="<b>ann</b>") as book:
        book.dataset("visits <script>", budget=Budget(1.0))
        with book.ledger("visits <script>", [0.25, 987654.5]) as ledger:
            for _ in range(3):
                ledger.release(Laplace(scale=10.0), lambda rows: 123456.75)
            with pytest.raises(ZeroDivisionError):
                ledger.release(Laplace(scale=20.0), lambda rows: 1 / 0)
    return url
