"""Short trainings by the real Opacus, each with a loader of its own."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.data_loader import DPDataLoader
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

RECORDS, BATCH, EPOCHS = 1000, 64, 2


def data(records: int = RECORDS) -> TensorDataset:
    """Return so many records."""
    torch.manual_seed(0)
    return TensorDataset(torch.randn(records, 4), torch.randint(0, 2, (records,)))


def train(
    loader: DataLoader[Any],
    accountant: str = "prv",
    epochs: int = EPOCHS,
    added: int = 1,
    split: int | None = None,
    noise: float = 1.0,
    **options: Any,
) -> tuple[PrivacyEngine, Any, Any, Any]:
    """Train, and return the privacy engine, the model, the optimizer and the loader trained on."""
    warnings.simplefilter("ignore")  # Opacus says that its randomness is not secure
    plain = torch.nn.Linear(4, 2)
    engine = PrivacyEngine(accountant=accountant)
    if "target_epsilon" in options:
        make, more = engine.make_private_with_epsilon, {"epochs": epochs}
    else:
        make, more = engine.make_private, {"noise_multiplier": noise}
    allowed = options.pop("allow_accumulation", False)
    model, optimizer, loader = make(
        module=plain, optimizer=torch.optim.SGD(plain.parameters(), lr=0.01), data_loader=loader,
        max_grad_norm=1.0, **more, **options,
    )  # fmt: skip
    if allowed:
        model.allow_grad_accumulation()
    parts = loader
    for _ in range(epochs):
        with contextlib.ExitStack() as stack:
            if split:
                parts = stack.enter_context(BatchMemoryManager(
                    data_loader=loader, max_physical_batch_size=split, optimizer=optimizer
                ))  # fmt: skip
            for i, (x, y) in enumerate(parts, 1):
                torch.nn.functional.cross_entropy(model(x), y).backward()
                if i % added == 0:
                    optimizer.step()
                    optimizer.zero_grad()
    return engine, model, optimizer, parts


def weighted(records: int = RECORDS) -> WeightedRandomSampler:
    """Return a sampler of 128 records an epoch, which are drawn by weights."""
    return WeightedRandomSampler(torch.ones(records), 128, replacement=True)


def runs() -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Yield name, batch that was meant, and a training, of each kind of loader."""

    def of(
        batch: int = BATCH,
        records: int = RECORDS,
        sampler: Any = None,
        *,
        shuffle: bool = True,
        drop_last: bool = False,
        **options: Any,
    ) -> tuple[int, Callable[[], Any]]:
        drawn: dict[str, Any] = {"shuffle": shuffle} if sampler is None else {"sampler": sampler}
        made = DataLoader(data(records), batch, drop_last=drop_last, **drawn)
        return batch, partial(train, made, **options)

    plain: dict[str, Any] = {"poisson_sampling": False}
    yield "poisson", *of()
    yield "poisson of drop_last", *of(drop_last=True)
    yield "poisson, split by memory", *of(split=16)
    yield "poisson, 93 batches", *of(batch=11, records=1013)
    yield "four Poisson samples added", *of(added=4, allow_accumulation=True, epochs=1)
    yield "shuffled", *of(**plain)
    yield "shuffled, split by memory", *of(split=16, **plain)
    yield "shuffled, drop_last", *of(drop_last=True, **plain)
    yield "shuffled, two batches added", *of(added=2, **plain)
    yield "fixed order", *of(shuffle=False, **plain)
    yield "fixed size", *of(sampler=RandomSampler(range(RECORDS), num_samples=BATCH), **plain)
    yield "with replacement", *of(sampler=RandomSampler(range(RECORDS), replacement=True), **plain)
    yield "subset", *of(sampler=SubsetRandomSampler(range(500)), **plain)
    yield "weighted", *of(batch=16, sampler=weighted(), **plain)
    yield "weighted, made private", *of(batch=16, sampler=weighted(), epochs=1)


def distributed_loader() -> Any:
    """Return the Poisson loader of one process of a group."""
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{Path(folder, 'group')}", rank=0, world_size=1
        )
        try:
            return DPDataLoader(data(), sample_rate=1 / 16, distributed=True)
        finally:
            torch.distributed.destroy_process_group()
