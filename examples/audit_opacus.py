"""DP-SGD by Opacus on scikit-learn's digits, with the canaries and the claim of digits_sgd.

The privacy engine is used as its users do.  A canary is an item of the data set; after the backward
pass its row of the gradients of single records is set to its own gradient, before any clipping.

    python -m examples.audit_opacus --write examples/audit_opacus.txt
"""

from __future__ import annotations

import argparse
import copy
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

from accountant import Tight, from_opacus
from audits import Canaries, OneRunFinding
from examples import digits_sgd
from examples.audit_training import row
from examples.digits_sgd import CLIP, LEARNING_RATE, LENGTH, PARAMETERS, RATE, STEPS, Run

NONE = -1  # the canary number of an image


def network(seed: int) -> torch.nn.Sequential:
    """Return a network of one hidden layer."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))


def records() -> tuple[TensorDataset, TensorDataset]:
    """Return the images and all canaries; an item is pixels, label and number of the canary."""
    images, labels = (torch.as_tensor(one) for one in digits_sgd.digits())
    number = torch.full((len(images),), NONE)
    blank, zero = torch.zeros(PARAMETERS, 64), torch.zeros(PARAMETERS, dtype=torch.long)
    return (TensorDataset(images.float(), labels, number),
            TensorDataset(blank, zero, torch.arange(PARAMETERS)))  # fmt: skip


def set_canaries(optimizer: Any, number: torch.Tensor) -> None:
    """Set the gradients of a batch's canaries: LENGTH along the parameter of their number."""
    rows = torch.nonzero(number != NONE).ravel()
    first = 0
    for parameter in optimizer.params:
        flat = parameter.grad_sample.view(len(number), parameter.numel())
        flat[rows] = 0.0
        at = number - first
        here = torch.nonzero((number != NONE) & (at >= 0) & (at < parameter.numel())).ravel()
        flat[here, at[here]] = LENGTH
        first += parameter.numel()


def spoil(optimizer: Any, run: Run) -> None:
    """Put a fault of clipping into the optimizer."""
    honest = optimizer.clip_and_accumulate

    def unclipped_layer() -> None:
        honest()
        for parameter in optimizer.params[:2]:
            parameter.summed_grad = parameter.grad_sample.sum(dim=0)

    def clips_average() -> None:
        honest()
        sums = [one.grad_sample.sum(dim=0) for one in optimizer.params]
        length = torch.cat([one.ravel() for one in sums]).norm()
        factor = min(1.0, CLIP * optimizer.expected_batch_size / float(length))
        for parameter, total in zip(optimizer.params, sums, strict=True):
            parameter.summed_grad = total * factor

    if run.unclipped_layer:
        optimizer.clip_and_accumulate = unclipped_layer
    if run.clips_average:
        optimizer.clip_and_accumulate = clips_average


def expected_sum(model: Any, images: TensorDataset) -> torch.Tensor:
    """Return what the clipped gradients of the images are expected to add up to in a step."""
    pixels, labels, _ = images.tensors
    weights = {name: one.detach() for name, one in model.named_parameters()}

    def loss(weights: Any, image: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        logits = torch.func.functional_call(model, weights, (image[None],))
        return torch.nn.functional.cross_entropy(logits, label[None])

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weights, pixels, labels)
    flat = torch.cat([one.flatten(1) for one in each.values()], dim=1)
    return RATE * (flat * (CLIP / flat.norm(dim=1, keepdim=True)).clamp(max=1.0)).sum(dim=0)


def train(run: Run, canaries: Canaries, seed: int) -> tuple[np.ndarray, Any]:
    """Train, and return the scores of all canaries and the history of Opacus' accountant."""
    images, gradients = records()
    plain, twin, engine = network(seed), network(seed), PrivacyEngine()
    data = canaries.dataset(gradients, base=images)
    loader = DataLoader(data, batch_size=math.ceil(RATE * len(data)), shuffle=True)
    model, optimizer, loader = engine.make_private(
        module=plain, optimizer=torch.optim.SGD(plain.parameters(), lr=LEARNING_RATE),
        data_loader=loader, noise_multiplier=run.noise, max_grad_norm=CLIP,
        poisson_sampling=not run.shuffles,
        noise_generator=torch.Generator().manual_seed(seed + 1),
    )  # fmt: skip
    spoil(optimizer, run)
    expected, scores, steps = optimizer.expected_batch_size, torch.zeros(PARAMETERS), 0
    while steps < STEPS:
        for pixels, labels, number in loader:
            if steps == STEPS:
                break
            twin.load_state_dict(plain.state_dict())
            scores -= expected_sum(twin, images)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(pixels), labels).backward()
            set_canaries(optimizer, number)
            size = len(number) if run.divides_by_batch else expected
            optimizer.expected_batch_size = size
            optimizer.step()
            released = torch.cat([one.grad.ravel() for one in optimizer.params])
            scores += released * expected  # the trainer knows no other size
            steps += 1
    return scores.double().numpy(), copy.deepcopy(engine.accountant.history)


def audit_run(run: Run, seed: int = 0) -> tuple[OneRunFinding, float]:
    """Flip the coins, train once, and audit what is declared: also its epsilon by `Tight`."""
    canaries = Canaries.flip(PARAMETERS, rng=seed)
    scores, history = train(run, canaries, seed + 1_000_000)
    # the claim is that of Opacus' accountant, which counts Poisson samples whatever the loader does
    claimed = [(digits_sgd.NOISE, rate, steps) for _, rate, steps in history]
    declared = from_opacus(claimed, assume="poisson")
    found = canaries.audit(scores, declared, digits_sgd.DELTA)
    return found, Tight().epsilon(declared, digits_sgd.DELTA)


def main() -> None:
    """Print the table, and write it to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore", module="opacus|torch")
    lines = []
    for run in digits_sgd.RUNS:
        found, claimed = audit_run(run, chosen.seed)
        lines.append(row(run.name, found, claimed))
        print(lines[-1], flush=True)
    if chosen.write:
        chosen.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
