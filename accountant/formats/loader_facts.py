"""The facts of a loader about the batches that it draws, read from a PyTorch loader.

`LoaderFacts` is what a loader says; `loader_facts` reads it from names and attributes.  PyTorch is
not imported.  A sampler is known by the name of its class: a class that draws in its own way, also
one derived from a known class, is "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, final

from accountant.domains import BOOLEAN, RECORDS, Interval, OneOf, OrNone
from accountant.errors import ParameterError

RATE = Interval(0.0, 1.0, "(]")
# The ways in which records are drawn, and what each is called in messages.
ORDERS: Final = (
    "poisson",
    "fixed_size",
    "shuffled",
    "fixed_order",
    "part_of_shuffle",
    "repeated",
    "weighted",
    "unknown",
)
WORDS = {
    "poisson": "Poisson samples",
    "fixed_size": "samples of fixed size",
    "shuffled": "a shuffle of all records an epoch",
    "fixed_order": "the records in a fixed order",
    "part_of_shuffle": "a random part of the records an epoch, in batches",
    "repeated": "draws that can repeat a record within an epoch",
    "weighted": "draws by weights, which can repeat a record",
    "unknown": "draws that are not known",
}
# Opacus' classes of Poisson samplers: of one process, and of several that share the records.
POISSON = ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler")
# The sampler that Opacus' BatchMemoryManager puts into a loader.
SPLITTING = "BatchSplittingSampler"
# what a refused loader should have been
LIVE = "a DataLoader over a data set of known length, or what loader_facts returned of one"


@final
@dataclass(frozen=True, slots=True)
class LoaderFacts:
    """What a loader says of its batches.

    Parameters
    ----------
    order : str
        How records are drawn: "poisson", "fixed_size", "shuffled", "fixed_order",
        "part_of_shuffle", "repeated", "weighted" or "unknown".
    sampler : str
        The class that draws.
    records : int
        Records that can be drawn.
    batches : int
        Batches of an epoch, each followed by one step; those before a split by memory.
    batch : int, optional
        Records of a batch; of Poisson samples None, or what the loader says it aims at.
    rate : float, optional
        The probability of each record, of Poisson samples.
    drop_last : bool
        Whether a last batch that is not full is left out.
    dataset : int
        Length of the data set.
    physical : int, optional
        The largest part of a batch that is in memory at once, under `BatchMemoryManager`.
    replicas : int
        Processes that share the records.

    Examples
    --------
    >>> from accountant.formats.loader_facts import LoaderFacts
    >>> print(LoaderFacts("shuffled", "RandomSampler", 1000, 16, 64, None, False, 1000))
    RandomSampler: a shuffle of all records an epoch, 16 batches of 64 of 1,000 records
    """

    order: str
    sampler: str
    records: int
    batches: int
    batch: int | None
    rate: float | None
    drop_last: bool
    dataset: int
    physical: int | None = None
    replicas: int = 1

    def __post_init__(self) -> None:
        OneOf(ORDERS).check("order", self.order)
        if not isinstance(self.sampler, str):
            raise ParameterError("sampler", self.sampler, "the name of a class")
        for name in ("records", "batches", "dataset", "replicas"):
            object.__setattr__(self, name, RECORDS.check(name, getattr(self, name)))
        for name in ("batch", "physical"):
            object.__setattr__(self, name, OrNone(RECORDS).check(name, getattr(self, name)))
        object.__setattr__(self, "rate", OrNone(RATE).check("rate", self.rate))
        object.__setattr__(self, "drop_last", BOOLEAN.check("drop_last", self.drop_last))
        if (self.rate is None) == (self.order == "poisson"):
            raise ParameterError("rate", self.rate, "given for Poisson samples, and for them only")

    def __str__(self) -> str:
        start = f"{self.sampler}: {WORDS[self.order]}"
        if self.rate is not None:
            return f"{start}, rate {self.rate:.6g} of {self.records:,} records"
        tail = ", the last left out if it is not full" * self.drop_last
        sizes = f"{self.batches:,} batches of {self.batch or 0:,} of {self.dataset:,} records"
        return f"{start}, {sizes}{tail}"

    @property
    def drawn(self) -> float:
        """Records of a batch; for Poisson samples, the expected number."""
        return float(self.batch or 0) if self.rate is None else self.rate * self.records

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dictionary that JSON can hold."""
        return asdict(self)


def loader_facts(loader: Any) -> LoaderFacts:
    """Return what a loader says of its batches.

    Parameters
    ----------
    loader : torch.utils.data.DataLoader
        The loader that was trained on: what `make_private` returned, not what it was given; also
        one of `BatchMemoryManager`, or a dictionary of the facts.

    Returns
    -------
    LoaderFacts
        The facts.

    Raises
    ------
    ParameterError
        If it is no loader over a data set of known length.

    Examples
    --------
    >>> from accountant.formats.loader_facts import loader_facts
    >>> facts = dict(order="poisson", sampler="UniformWithReplacementSampler", records=1000,
    ...              batches=16, batch=None, rate=0.0625, drop_last=False, dataset=1000)
    >>> loader_facts(facts).rate
    0.0625
    """
    if isinstance(loader, LoaderFacts):
        return loader
    if isinstance(loader, Mapping):
        names = {field.name for field in fields(LoaderFacts)}
        unknown = sorted(map(str, set(loader) - names))
        if unknown:
            raise ParameterError("loader", unknown[0], f"described by {', '.join(sorted(names))}")
        try:
            return LoaderFacts(**loader)
        except TypeError:
            missing = "order, sampler, records, batches, batch, rate, drop_last and dataset"
            raise ParameterError("loader", dict(loader), f"described by {missing}") from None
    try:
        return _live_facts(loader)
    except AttributeError:
        raise ParameterError("loader", type(loader).__name__, LIVE) from None


def _live_facts(loader: Any) -> LoaderFacts:
    """Return the facts of a loader by its attributes."""
    inner = getattr(loader, "data_loader", None)  # of a BatchMemoryManager
    if inner is not None:
        return replace(_live_facts(inner), physical=loader.max_physical_batch_size)
    dataset = _length(loader.dataset)
    sampler = getattr(loader, "batch_sampler", None)
    sampler = loader.sampler if sampler is None else sampler
    if dataset is None or sampler is None:
        raise ParameterError("loader", type(loader).__name__, LIVE)
    physical = None
    if _class(sampler) == SPLITTING:
        physical, sampler = sampler.max_batch_size, sampler.sampler
    if _class(sampler) in POISSON:
        return _poisson(loader, sampler, dataset, physical)
    # a sampler of records, in batches of the batch sampler or else of the loader itself
    holds_batches = _class(sampler) == "BatchSampler"
    batcher, record_sampler = (sampler, sampler.sampler) if holds_batches else (loader, sampler)
    batch = getattr(batcher, "batch_size", None)
    replicas = RECORDS.check("num_replicas", getattr(record_sampler, "num_replicas", 1))
    order, drawn, records = _order(record_sampler, dataset, batch)
    if batch is None:  # the sampler gives lists itself, or the loader gives single records
        order, batch = "unknown", 1
    batch = RECORDS.check("batch_size", batch)
    drop_last = bool(getattr(batcher, "drop_last", False))
    batches = drawn // batch if drop_last else -(-drawn // batch)
    if not batches:
        raise ParameterError("loader", type(loader).__name__, "one that gives at least one batch")
    return LoaderFacts(
        order=order,
        sampler=type(record_sampler).__name__,
        records=records,
        batches=batches,
        batch=min(batch, drawn) * replicas,
        rate=None,
        drop_last=drop_last,
        dataset=dataset,
        physical=physical,
        replicas=replicas,
    )


def _class(sampler: Any) -> str:
    """Return the name of the first class, from the sampler's own up, that says how it draws."""
    classes = type(sampler).__mro__
    return next((base for base in classes if "__iter__" in vars(base)), classes[0]).__name__


def _length(values: Any) -> int | None:
    """Return the length of a data set; None if it has none."""
    try:
        return len(values)
    except (TypeError, NotImplementedError):
        return None


def _poisson(loader: Any, sampler: Any, dataset: int, physical: int | None) -> LoaderFacts:
    """Return the facts of a Poisson sampler of Opacus."""
    is_distributed = _class(sampler) == POISSON[1]
    rate = RATE.check("sample_rate", getattr(sampler, "sample_rate", None))
    steps = getattr(sampler, "num_batches" if is_distributed else "steps", None)
    return LoaderFacts(
        order="poisson",
        sampler=type(sampler).__name__,
        records=getattr(sampler, "total_size" if is_distributed else "num_samples", dataset),
        batches=int(1 / rate) if steps is None else steps,
        batch=getattr(loader, "batch_size", None),
        rate=rate,
        drop_last=bool(getattr(loader, "drop_last", False)),
        dataset=dataset,
        physical=physical,
        replicas=getattr(sampler, "num_replicas", 1),
    )


def _order(sampler: Any, dataset: int, batch: int | None) -> tuple[str, int, int]:
    """Return how a sampler draws records, how many in an epoch, and from how many."""
    name, drawn = _class(sampler), _length(sampler)
    drawn = dataset if drawn is None else drawn
    if name == "SequentialSampler":
        return "fixed_order", drawn, dataset
    if name == "SubsetRandomSampler":
        indices = list(sampler.indices)
        is_distinct = len(set(map(int, indices))) == len(indices)
        return ("shuffled" if is_distinct else "repeated"), len(indices), len(indices)
    if name == "WeightedRandomSampler":
        return "weighted", drawn, dataset
    if name == "DistributedSampler":
        divides_evenly = dataset % sampler.num_replicas == 0 or sampler.drop_last
        order = "shuffled" if sampler.shuffle else "fixed_order"
        return (order if divides_evenly else "repeated"), drawn, dataset
    if name == "RandomSampler":
        if getattr(sampler, "replacement", False) or drawn > dataset:
            return "repeated", drawn, dataset
        if drawn == dataset:
            return "shuffled", drawn, dataset
        is_one_batch = batch is not None and batch >= drawn
        return ("fixed_size" if is_one_batch else "part_of_shuffle"), drawn, dataset
    return "unknown", drawn, dataset
