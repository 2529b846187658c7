"""Real data sets, read from the folder that ``--data`` names."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import sparse

SHARED = Path(__file__).parents[2] / "shared" / "data"
COVTYPE, RCV1, MNIST, RIBOFLAVIN, LEUKAEMIA = (
    "covtype/covtype.npz", "rcv1_subset/rcv1_subset.npz", "mnist10k/mnist10k.npz",
    "riboflavin/riboflavin.npz", "golub_leukemia/golub_leukemia.npz",
)  # fmt: skip
Table = tuple[np.ndarray, np.ndarray]  # rows of features, and labels or targets


def present(folder: Path, file: str) -> bool:
    """Whether the folder has the file; one line on stderr if not."""
    found = (folder / file).is_file()
    if not found:
        print(f"left out what needs {file}: not in {folder}", file=sys.stderr)
    return found


@lru_cache
def covtype(folder: Path) -> Table:
    """Features in [0, 1] by public bounds, cover types 1 to 7."""
    with np.load(folder / COVTYPE) as file:
        low = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0])
        high = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173])
        numeric = (file["numeric"] - low) / (high - low)
        x = np.hstack([numeric, np.eye(4)[file["wilderness"]], np.eye(40)[file["soil"]]])
        return x, file["label"].astype(int)


def covtype_signs(folder: Path) -> Table:
    """Covtype; cover type 2 against the rest, as 1 and -1."""
    x, y = covtype(folder)
    return x, np.where(y == 2, 1.0, -1.0)


@lru_cache
def rcv1_signs(folder: Path) -> Table:
    """The 200 commonest terms; CCAT against the rest, as 1 and -1."""
    with np.load(folder / RCV1) as file:
        x = sparse.csr_array(
            (file["data"].astype(float), file["indices"], file["indptr"]), shape=file["shape"]
        )
        common = np.argsort(-np.diff(x.tocsc().indptr), kind="stable")[:200]
        return x[:, common].toarray(), file["label"].astype(float)


@lru_cache
def mnist(folder: Path) -> Table:
    """10,000 digits: pixels in [0, 1], and classes."""
    with np.load(folder / MNIST) as file:
        return file["images"] / 255.0, file["labels"].astype(int)


@lru_cache
def riboflavin(folder: Path) -> Table:
    """Standardised genes; the production rate in [-1, 1], from log2 rates of -10 to -5."""
    with np.load(folder / RIBOFLAVIN) as file:
        return standardised(file["X"]), (file["y"] + 7.5) / 2.5


@lru_cache
def leukaemia(folder: Path) -> Table:
    """Standardised logarithms of gene expressions; two classes."""
    with np.load(folder / LEUKAEMIA) as file:
        return standardised(np.log2(np.clip(file["X"], 20, 16_000))), file["y"].astype(float)


def standardised(x: np.ndarray) -> np.ndarray:
    """Clipped at three deviations, within [-1, 1]; a constant is added.

    Means and deviations are those of all records, as if public: that favours the private fit.
    """
    spread = x.std(axis=0)
    x = np.clip((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0), -3, 3) / 3
    return np.hstack([x, np.ones((len(x), 1))])


def train_and_test(records: int, seed: int) -> list[np.ndarray]:
    """Indices of a random four fifths, and of the rest."""
    order = np.random.default_rng(seed).permutation(records)
    return np.split(order, [4 * records // 5])
