"""Sparse logistic regression on real data, all in one place: the study of Figures 3 and 4."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from common import Error, Method, Setting
from scipy import optimize, sparse
from scipy.special import expit

from accountant.accountants.tight import Tight
from accountant.planning.calibration import calibrate
from algorithms import SparseERM
from algorithms.base.hard_thresholding import keep_largest
from mechanisms.gaussian import Gaussian

PENALTY, PRINTED_DELTA, DELTA, PRINTED_STEP = 1e-3, 1e-3, 1e-5, 0.1
STEP = 1 / (2 * (0.25 + PENALTY))  # 1/(2l), of Theorem 8
SHARED = Path(__file__).parents[2] / "shared" / "data"
Data = tuple[np.ndarray, np.ndarray]  # rows, labels -1 and 1
Prepared = tuple[np.ndarray, np.ndarray, float, float]  # the same, least loss, noiseless gap


def covtype(path: Path) -> Data:
    """Cover type 2 against the rest, features in [0, 1]."""
    with np.load(path) as file:
        low = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0])
        high = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173])
        numeric = (file["numeric"] - low) / (high - low)
        x = np.hstack([numeric, np.eye(4)[file["wilderness"]], np.eye(40)[file["soil"]]])
        return x, np.where(file["label"] == 2, 1.0, -1.0)


def rcv1(path: Path) -> Data:
    """The 200 commonest terms; CCAT against the rest."""
    with np.load(path) as file:
        x = sparse.csr_array(
            (file["data"].astype(float), file["indices"], file["indptr"]), shape=file["shape"]
        )
        common = np.argsort(-np.diff(x.tocsc().indptr), kind="stable")[:200]
        return x[:, common].toarray(), file["label"].astype(float)


def loss(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Mean logistic loss and the ridge."""
    return float(np.logaddexp(0, -y * (x @ theta)).mean() + PENALTY / 2 * theta @ theta)


def gradient(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Its gradient."""
    return -x.T @ (y * expit(-y * (x @ theta))) / len(y) + PENALTY * theta


def noiseless(x: np.ndarray, y: np.ndarray, sparsity: int, rounds: int) -> np.ndarray:
    """The same iteration without noise, to the paper's end: a relative change of 1e-4."""
    theta = np.zeros(x.shape[1])
    for _ in range(rounds):
        moved = keep_largest(theta - 2 * gradient(theta, x, y), sparsity)
        still = np.linalg.norm(moved - theta) <= 1e-4 * np.linalg.norm(moved)
        theta = moved
        if still:
            break
    return theta


def optimum(x: np.ndarray, y: np.ndarray, sparsity: int) -> float:
    """The paper's reference, finished on the support it finds."""
    theta = noiseless(x, y, sparsity, 500)
    kept = np.flatnonzero(theta)
    some = x[:, kept]
    found = optimize.minimize(loss, theta[kept], (some, y), jac=gradient, method="L-BFGS-B")
    return float(found.fun)


@dataclass(frozen=True)
class CentralStudy:
    """Optimality gap; rows have length 1, runs differ by their noise alone, T = sqrt n.

    The paper leaves T open.  With ln n rounds gaps are those of stopping early, at any epsilon.
    """

    name: str
    load: Callable[[Path], Data]
    path: Path
    ylabel: str = "optimality gap of the loss"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Data may lie elsewhere."""
        parser.add_argument("--data", type=Path, default=self.path, help=f"the file {self.path}")

    def configured(self, options: argparse.Namespace) -> CentralStudy:
        """The study that the command line asks for."""
        path = options.data / self.path.name if options.data.is_dir() else options.data
        if not path.is_file():
            raise SystemExit(
                f"{self.name}: no data at {path}; give the file or its folder with --data PATH "
                f"({self.path.name}, made as {self.path.parent / 'README.md'} says)"
            )
        return replace(self, path=path)

    def sample(self, setting: Setting, users: int, seed: int) -> Prepared:
        """The same records in every run, and the least loss on them."""
        del seed
        return prepared(self, setting.features, setting.sparsity, users)

    @property
    def methods(self) -> tuple[Method, ...]:
        """Delta below 1/n, the printed delta, the printed step."""

        def fitted(delta: float, step: float) -> Error:
            def error(setting: Setting, data: Prepared, seed: int) -> float:
                x, y, least, _ = data
                made = SparseERM(
                    epsilon=setting.epsilon, delta=delta, sparsity=setting.sparsity,
                    rounds=math.isqrt(len(y)), step=step, penalty=PENALTY, random_state=seed,
                )  # fmt: skip
                return loss(made.fit(x, y).coef_, x, y) - least

            return error

        def floor(setting: Setting, data: Prepared, _: int) -> float:
            del setting
            return data[3]

        def note(setting: Setting) -> str:
            return f"   (- - ε = {printed_epsilon(setting.epsilon):.3g} at δ = {DELTA:g})"

        return (
            Method(f"δ = {DELTA:g}, step 1/(2l) = 2", fitted(DELTA, STEP)),
            Method(
                f"printed δ = {PRINTED_DELTA:g}", fitted(PRINTED_DELTA, STEP),
                lambda setting: printed_epsilon(setting.epsilon), note, "--",
            ),
            Method(
                f"δ = {DELTA:g}, printed step {PRINTED_STEP}", fitted(DELTA, PRINTED_STEP),
                line=":", base_only=True,
            ),
            Method("no noise, as many rounds", floor, line="-.", base_only=True),
        )  # fmt: skip


@lru_cache
def printed_epsilon(epsilon: float) -> float:
    """What noise for the printed delta gives at the smaller one: all rounds are one Gaussian."""
    return Tight().epsilon(calibrate(Gaussian, epsilon=epsilon, delta=PRINTED_DELTA), DELTA)


@lru_cache
def loaded(study: CentralStudy) -> Data:
    """All data in one fixed order."""
    x, y = study.load(study.path)
    order = np.random.default_rng(0).permutation(len(y))
    return x[order], y[order]


@lru_cache(maxsize=256)
def prepared(study: CentralStudy, features: int, sparsity: int, users: int) -> Prepared:
    """The first users' first features, rows of length 1; least loss and gap without noise."""
    x, y = (part[:users] for part in loaded(study))
    x = x[:, :features]
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    least, stopped = optimum(x, y, sparsity), noiseless(x, y, sparsity, math.isqrt(users))
    return x, y, least, loss(stopped, x, y) - least
