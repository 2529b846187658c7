"""A training by Opacus at rate 1/20 with canaries in it: the honest one, and ones with a fault.

A network of 738 parameters takes 100 steps on 2,000 records, with noise of 1.1 clipping lengths.

    python -m examples.audit_opacus --write examples/audit_opacus.txt
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

from accountant import Tight, from_opacus
from audits import OpacusCanaries, opacus_canaries

RECORDS, FEATURES, HIDDEN = 2000, 20, 32
RATE, STEPS, NOISE, CLIP, DELTA = 1 / 20, 100, 1.1, 1.0, 1e-5
CANARIES = 700


def half_the_noise(optimizer: Any) -> None:
    """Add half the noise that the accountant counts."""
    add_noise = optimizer.add_noise

    def add_half() -> None:
        declared, optimizer.noise_multiplier = optimizer.noise_multiplier, NOISE / 2
        add_noise()
        optimizer.noise_multiplier = declared

    optimizer.add_noise = add_half


def one_layer_is_not_clipped(optimizer: Any) -> None:
    """Sum the gradients of the first layer as they are."""
    clip = optimizer.clip_and_accumulate

    def clip_the_last_layer() -> None:
        clip()
        for parameter in optimizer.params[:2]:
            parameter.summed_grad = parameter.grad_sample.sum(dim=0)

    optimizer.clip_and_accumulate = clip_the_last_layer


def clipped_after_averaging(optimizer: Any) -> None:
    """Clip the average, and not the gradient of each record."""
    clip = optimizer.clip_and_accumulate

    def clip_average() -> None:
        clip()
        sums = [parameter.grad_sample.sum(dim=0) for parameter in optimizer.params]
        length = float(torch.cat([total.ravel() for total in sums]).norm())
        for parameter, total in zip(optimizer.params, sums, strict=True):
            factor = min(1.0, CLIP * optimizer.expected_batch_size / length)
            parameter.summed_grad = total * factor

    optimizer.clip_and_accumulate = clip_average


def no_noise_on_one_layer(optimizer: Any) -> None:
    """Leave the last layer without noise."""
    add_noise = optimizer.add_noise

    def add_to_the_first_layer() -> None:
        add_noise()
        for parameter in optimizer.params[2:]:
            parameter.grad = parameter.summed_grad.clone()

    optimizer.add_noise = add_to_the_first_layer


def nothing(optimizer: Any) -> None:
    """Leave the optimizer as it is."""


FAULTS: dict[str, Callable[[Any], None]] = {
    "honest": nothing,
    "half the noise": half_the_noise,
    "one layer is not clipped": one_layer_is_not_clipped,
    "clipped after averaging": clipped_after_averaging,
    "no noise on one layer": no_noise_on_one_layer,
}


def train(
    fault: Callable[[Any], None], seed: int, canaries: int = CANARIES
) -> tuple[OpacusCanaries, PrivacyEngine]:
    """Train with canaries, and return them and the privacy engine."""
    torch.manual_seed(seed)
    features = torch.randn(RECORDS, FEATURES)
    data = TensorDataset(features, (features[:, 0] > 0).long())
    network = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 2)
    )
    engine = PrivacyEngine()
    watching = opacus_canaries(engine, canaries, rng=seed)
    model, optimizer, loader = engine.make_private(
        module=network, optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=round(RATE * RECORDS)),
        noise_multiplier=NOISE, max_grad_norm=CLIP,
    )  # fmt: skip
    fault(optimizer)
    for _ in range(round(RATE * STEPS)):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    return watching, engine


def row(name: str, runs: int) -> str:
    """Train so many times with a fault, and return one row of the table on the page."""
    audits, noises = [], []
    for seed in range(runs):
        canaries, engine = train(FAULTS[name], seed)
        audits.append(canaries.audit(delta=DELTA))
        noises.append(canaries.audit_noise())
    claimed = Tight().epsilon(from_opacus(engine, assume="poisson"), DELTA)
    shown = statistics.median(found.epsilon_lower for found in audits)
    noise = statistics.median(found.estimate for found in noises)
    fell = sum(found.outcome.name == "FALSIFIED" for found in audits)
    return f"| {name} | {claimed:.2f} | {shown:.2f} | {fell} of {runs} | {noise:.2f} |"


def main() -> None:
    """Print the table, and write it to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore", module="opacus|torch")
    lines = []
    for name in FAULTS:
        lines.append(row(name, chosen.runs))
        print(lines[-1], flush=True)
    if chosen.write:
        chosen.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
