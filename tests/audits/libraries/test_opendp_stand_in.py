"""The checks of OpenDP on a stand-in for it, sound or with the fault that a check looks for."""

import importlib
import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import audits.libraries
from audits.results.rows import Settings
from mechanisms import Gaussian, Laplace

NAME = "audits.libraries.opendp_checks"
SETTINGS = Settings(2000, 0.95, 7)


class Measurement:
    """A function, and the privacy loss that it states at a distance."""

    def __init__(self, function, loss=math.nan):
        self.function, self.map = function, lambda distance: loss

    def __call__(self, value):
        return self.function(value)


class StandIn:
    """The part of OpenDP that the checks use; ``noise`` multiplies the scale of all noise."""

    def __init__(self):
        self.noise, self.rng = 1.0, np.random.default_rng(3)
        self.last_bit_flips, self.keeps_length, self.released_share = True, True, 1e-7

    def module(self):
        prelude = ModuleType("opendp.prelude")
        prelude.enable_features = lambda name: None
        for kind in ("atom_domain", "bitvector_domain"):
            setattr(prelude, kind, lambda **facts: facts)
        prelude.vector_domain = lambda atoms, size=None: {**atoms, "size": size, "is_vector": True}
        for kind in ("l1", "l2", "absolute"):
            setattr(prelude, f"{kind}_distance", lambda T, kind=kind: (kind, T))
        for kind in ("symmetric", "discrete"):
            setattr(prelude, f"{kind}_distance", lambda kind=kind: (kind, None))
        prelude.m = SimpleNamespace(
            make_laplace=self.make_laplace,
            make_gaussian=self.make_gaussian,
            make_randomized_response_bitvec=self.make_bits,
            then_laplace_threshold=lambda scale, threshold: (scale, threshold),
        )
        prelude.t = SimpleNamespace(
            make_count_by=lambda domain, metric: self,
            make_sum_of_squared_deviations=self.make_squares,
        )
        return prelude

    def make_laplace(self, domain, metric, scale):
        number = domain["T"]
        assert metric == (("l1", float) if domain.get("is_vector") else ("absolute", int))
        assert number is metric[1]
        return self.additive(Laplace(self.noise * scale))

    def make_gaussian(self, domain, metric, scale):
        assert (domain["is_vector"], metric) == (True, ("l2", float))
        return self.additive(Gaussian(self.noise * scale))

    def additive(self, mechanism):
        return Measurement(lambda value: mechanism.release(np.asarray(value, float), self.rng))

    def make_bits(self, domain, metric, f):
        assert (domain, metric, f) == ({"max_weight": 1}, ("discrete", None), 0.5)

        def release(value):
            bits = np.unpackbits(np.frombuffer(value, np.uint8))
            flips = self.rng.random(bits.size) < f / 2
            if not self.last_bit_flips:
                flips[:] = False
            packed = np.packbits(bits ^ flips).tobytes()
            return packed if self.keeps_length else packed[:1]

        return Measurement(release, 2 * math.log((1 - f / 2) / (f / 2)))

    def make_squares(self, domain, metric):
        assert metric == ("symmetric", None)
        low, high = domain["bounds"]
        assert domain["size"] == 1024
        moves = self.noise  # a sum that moves by as much as is stated, or by more
        return Measurement(lambda rows: np.sum(np.array(rows) > low + 0.25) / moves, high - low)

    def __rshift__(self, measurement):
        assert measurement == (1.0, 5)

        def release(users):
            assert len(set(users)) == len(users)
            return users[: round(self.released_share * len(users))]

        return Measurement(release, (1.0, 1e-3))


@pytest.fixture
def opendp(monkeypatch):
    """The stand-in and the checks by their names, with the adapter imported anew."""
    library = StandIn()
    monkeypatch.setitem(sys.modules, "opendp", ModuleType("opendp"))
    monkeypatch.setitem(sys.modules, "opendp.prelude", library.module())
    kept = sys.modules.pop(NAME, None)
    adapter = importlib.import_module(NAME)
    yield library, {check.name: check.function for check in adapter.CHECKS}, adapter
    del sys.modules[NAME]
    del audits.libraries.opendp_checks
    if kept is not None:
        sys.modules[NAME] = audits.libraries.opendp_checks = kept


@pytest.mark.parametrize(
    ("name", "noise", "falsified"),
    [
        ("Laplace, values", 1.0, False), ("Laplace, values", 0.25, True),
        ("Laplace, bits", 1.0, False),
        ("Gaussian, values", 1.0, False), ("Gaussian, values", 0.05, True),
        ("Gaussian, bits", 1.0, False),
        ("sum of squared deviations (#2923)", 1.0, False),
        ("sum of squared deviations (#2923)", 0.5, True),
    ],
)  # fmt: skip
def test_noise_and_sums_are_falsified_where_the_stand_in_is_wrong(name, noise, falsified, opendp):
    library, checks, _ = opendp
    library.noise = noise
    result = checks[name](SETTINGS, np.random.default_rng(1))
    assert result.falsified is falsified, result.witness
    assert result.runs >= 1


@pytest.mark.parametrize(
    ("fault", "never_flips", "shows_its_length"),
    [({}, False, True), ({"last_bit_flips": False}, True, True),
     ({"keeps_length": False}, False, False)],
)  # fmt: skip
def test_bits_that_never_flip_and_lengths_are_told_apart(
    fault, never_flips, shows_its_length, opendp
):
    library, checks, _ = opendp
    for name, value in fault.items():
        setattr(library, name, value)
    for name, falsified in (
        ("bit vector, last bit (#2707)", never_flips),
        ("bit vector, length (#2930)", shows_its_length),
    ):
        result = checks[name](Settings(300, 0.95, 7), np.random.default_rng(1))
        assert result.falsified is falsified, result.witness


@pytest.mark.parametrize(("share", "falsified"), [(0.0, False), (1e-3, False), (5e-3, True)])
def test_the_share_of_released_keys_is_compared_with_delta(share, falsified, opendp):
    library, checks, _ = opendp
    library.released_share = share
    result = checks["Laplace threshold (#2922)"](SETTINGS, np.random.default_rng(1))
    assert result.falsified is falsified
    assert (result.runs, result.claim) == (10_000, (1.0, 1e-3))
    assert result.witness.startswith(f"{round(share * 10_000):,} of 10,000 keys")


def test_many_releases_of_one_number_are_a_vector(opendp):
    _, _, adapter = opendp
    release = adapter.vector_release(lambda values: [2 * value for value in values])
    assert release(1.5, None, 3).tolist() == [3.0, 3.0, 3.0]
    assert release(1.5, None, 0).shape == (0,)


@pytest.mark.parametrize(("p", "falsified"), [(0.5, False), (0.1, False), (1e-3, True), (0, True)])
def test_time_is_compared_in_every_round(p, falsified, opendp, monkeypatch):
    _, checks, adapter = opendp
    rounds = []

    def timing(release, pair, pairs, batch, confidence, rng):
        assert (pair, batch) == ((0, 1), 1)
        assert np.shape(release(0, rng)) == ()
        rounds.append(pairs)
        return SimpleNamespace(noise_p=p, noise_correlation=0.3)

    monkeypatch.setattr(adapter, "audit_timing", timing)
    result = checks["integer Laplace, time"](SETTINGS, np.random.default_rng(1))
    assert result.falsified is falsified
    assert result.runs == 2 * adapter.TIMED_PAIRS * adapter.ROUNDS
    assert "rank correlation 0.30" in result.witness
    assert rounds == [adapter.TIMED_PAIRS] * adapter.ROUNDS
