"""Canaries: records made for an audit, of which fair coins put some into one training run.

`Canaries` flips the coins, saves and loads them, selects what goes into the training data, and
audits the run from one score of each canary.  A run that reveals the coins better than its privacy
claim allows refutes the claim; `audits.one_run.scores` has the statistics.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant.domains import IntegerRange
from accountant.errors import ParameterError
from accountant.files import write_text
from accountant.plans.plan import Plan
from accountant.randomness import Rng
from audits.claims.arguments import seed_and_generator
from audits.claims.claims import ClaimLike
from audits.one_run.findings import OneRunFinding
from audits.one_run.scores import LEAST_COINS, audit_in_order, checked_scores

COUNT = IntegerRange(LEAST_COINS, 100_000_000)  # numbers of canaries that `flip` takes
SCHEMA = 1  # version of the format of saved coins


@final
@dataclass(frozen=True, slots=True, eq=False)
class Canaries:
    """The coins of many canaries: which of them go into the data of one training run.

    A fair coin decides for each canary.  The training, by any library, gets the included ones.  The
    audit then needs a score of every canary, computed from what the training released.

    Parameters
    ----------
    coins : array of bool
        True for each canary that goes into the data; `flip` draws them.
    seed : int, optional
        The seed that the coins came from.

    Raises
    ------
    ParameterError
        If the coins are no booleans along one axis, or fewer than 10.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant import GaussianLoss
    >>> from audits import Canaries
    >>> canaries = Canaries.flip(2000, rng=0)
    >>> gradients = np.eye(2000)
    >>> released = canaries.included(gradients).sum(axis=0)
    >>> released += np.random.default_rng(1).normal(scale=0.5, size=2000)
    >>> found = canaries.audit(released, GaussianLoss(1.0))
    >>> found.outcome.name
    'FALSIFIED'
    """

    coins: NDArray[np.bool_]
    seed: int | None = None

    def __post_init__(self) -> None:
        raw = np.array(self.coins)
        if raw.dtype.kind != "b" or raw.ndim != 1 or raw.size < LEAST_COINS:
            shown = f"an array of {raw.dtype}, shape {raw.shape}"
            raise ParameterError(
                "coins",
                shown,
                f"at least {LEAST_COINS} booleans along one axis, as Canaries.flip draws them",
            )
        raw.setflags(write=False)
        object.__setattr__(self, "coins", raw)

    @classmethod
    def flip(cls, count: int, rng: Rng = None) -> Canaries:
        """Flip a fair coin for each of ``count`` canaries.

        Parameters
        ----------
        count : int
            Number of canaries, at least 10; more prove more.
        rng : int, Generator or None, optional
            The seed of the coins.  The training must not get the same seed.

        Returns
        -------
        Canaries
            The coins.
        """
        number = COUNT.check("count", count)
        seed, source = seed_and_generator(rng)
        return cls(source.random(number) < 0.5, seed)

    @classmethod
    def load(cls, path: str | Path) -> Canaries:
        """Read coins that `save` wrote.

        Parameters
        ----------
        path : path
            A .npz or .json file.

        Returns
        -------
        Canaries
            The same coins.
        """
        try:
            if Path(path).suffix == ".json":
                document = json.loads(Path(path).read_text(encoding="utf-8"))
                coins = np.array([{"1": True, "0": False}[digit] for digit in document["coins"]])
            else:
                with np.load(path, allow_pickle=False) as arrays:
                    document = {name: arrays[name] for name in arrays.files}
                coins = document["coins"]
            seed = int(document["seed"])
        except OSError as error:
            why = error.strerror or "not a .npz file"
            raise ParameterError("path", str(path), f"a file to read ({why})") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ParameterError(
                "path", str(path), "a .npz or .json file of coins, written by Canaries.save"
            ) from None
        return cls(coins, None if seed < 0 else seed)

    def save(self, path: str | Path) -> None:
        """Write the coins, which stay secret until the run has ended.

        Parameters
        ----------
        path : path
            A .npz or .json file.
        """
        seed, file = -1 if self.seed is None else self.seed, Path(path)
        if file.suffix == ".json":
            text = "".join("1" if coin else "0" for coin in self.coins.tolist())
            document = {"schema": SCHEMA, "seed": seed, "coins": text}
            write_text(str(file), json.dumps(document, indent=2) + "\n")
        elif file.suffix == ".npz":
            np.savez_compressed(file, schema=SCHEMA, seed=seed, coins=self.coins)
        else:
            raise ParameterError("path", str(path), "the name of a .npz or .json file")

    def __len__(self) -> int:
        """Return the number of canaries."""
        return int(self.coins.size)

    @property
    def indices(self) -> NDArray[np.int64]:
        """Indices of the canaries that go into the data, in ascending order."""
        return np.flatnonzero(self.coins)

    def save_indices(self, path: str | Path) -> None:
        """Write the `indices` for a training run elsewhere.

        Parameters
        ----------
        path : path
            A .npy file, or a text file of one index a line.
        """
        if Path(path).suffix == ".npy":
            np.save(path, self.indices)
        else:
            write_text(str(path), "".join(f"{index}\n" for index in self.indices.tolist()))

    def included(self, data: Any) -> Any:
        """Select the canaries that go into the data.

        Parameters
        ----------
        data : array, data frame or sequence
            All canaries along the first axis.

        Returns
        -------
        array, data frame or list
            The included ones, of the same kind.
        """
        return self._chosen(data, self.indices)

    def excluded(self, data: Any) -> Any:
        """Select the canaries that stay out of the data.

        Parameters
        ----------
        data : array, data frame or sequence
            All canaries along the first axis.

        Returns
        -------
        array, data frame or list
            The others, of the same kind.
        """
        return self._chosen(data, np.flatnonzero(~self.coins))

    def dataset(self, canaries: Sequence[Any], base: Sequence[Any] | None = None) -> Sequence[Any]:
        """Join a data set and its included canaries, for the loader of any framework.

        Parameters
        ----------
        canaries : sequence
            All canaries, with a length and items by index, such as a torch Dataset.
        base : sequence, optional
            The data set that they are added to.

        Returns
        -------
        sequence
            The records of ``base``, then the included canaries, read when asked for.  It is what
            torch calls a map-style data set; torch is not imported.
        """
        self._check_length(canaries)
        return JoinedDataset(base if base is not None else (), canaries, self.indices)

    def audit(
        self,
        scores: ArrayLike | str | Path,
        claim: Plan | ClaimLike | None = None,
        delta: float | None = None,
        confidence: float = 0.95,
    ) -> OneRunFinding:
        """Audit the run from one score of each canary.

        Parameters
        ----------
        scores : array or path
            One for each canary, in order; greater says "in the data".  Or a .npy file.
        claim : Plan, Budget, float or (float, float), optional
            As in `audit_scores`.
        delta : float, optional
            As in `audit_scores`.
        confidence : float, optional
            As in `audit_scores`.

        Returns
        -------
        OneRunFinding
            The verdict and a lower bound on epsilon, rounded down.
        """
        canary_scores = checked_scores("scores", scores)
        self._check_length(canary_scores)
        return audit_in_order(canary_scores, self.coins, claim, delta, confidence)

    def _chosen(self, data: Any, indices: NDArray[np.int64]) -> Any:
        """Return the entries of ``data``, which has one for each canary, at these indices."""
        self._check_length(data)
        if hasattr(data, "iloc"):  # a data frame or series
            return data.iloc[indices]
        if hasattr(data, "dtype"):  # an array or a tensor
            return data[indices]
        return [data[index] for index in indices.tolist()]

    def _check_length(self, data: Any) -> None:
        try:
            length: object = len(data)
        except TypeError:
            length = f"a {type(data).__name__} without length"
        if length != len(self):
            allowed = f"one for each of the {len(self):,} canaries, along the first axis"
            raise ParameterError("data", length, allowed)


class JoinedDataset(Sequence[Any]):
    """The records of a data set, then the ``chosen`` ones of another, each read when asked for."""

    def __init__(
        self, base: Sequence[Any], canaries: Sequence[Any], chosen: NDArray[np.int64]
    ) -> None:
        self.base, self.canaries, self.chosen = base, canaries, chosen

    def __len__(self) -> int:
        """Return the number of records of both."""
        return len(self.base) + int(self.chosen.size)

    def __getitem__(self, index: Any) -> Any:
        """Return one record."""
        at = range(len(self))[int(index)]
        base_size = len(self.base)
        return self.base[at] if at < base_size else self.canaries[int(self.chosen[at - base_size])]
