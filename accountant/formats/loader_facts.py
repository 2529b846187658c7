"""The facts of a loader about the batches that it draws, and their names."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, final

from accountant.domains import RECORDS, Interval, OneOf, OrNone
from accountant.errors import ParameterError

RATE = Interval(0.0, 1.0, "(]")
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
        if not isinstance(self.drop_last, bool):
            raise ParameterError("drop_last", self.drop_last, "True or False")
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
