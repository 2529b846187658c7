"""Mechanisms prove what they claim; a wrong density, claim or weight is found."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from flint import arb, fmpq

import mechanisms
from accountant import GaussianLoss, LaplaceLoss
from accountant.__main__ import main
from accountant.proofs.mechanism_claims import claim_of, declared_mechanisms
from accountant.verifier import mechanisms as checker
from accountant.verifier.claimed_laws import exchanged_law, fraction, is_near

ALL = list(declared_mechanisms())
PROVED = [one for one in ALL if not one.why_no_formula]
UNPROVED = {
    "AboveThreshold", "Clamped", "Mapped", "MatrixMechanism", "PureFromApproximate",
    "RunLengthExponential", "SparseVector",
}  # fmt: skip


def test_every_mechanism_is_proved_or_says_why_not():
    verdicts = {repr(one): checker.check(claim_of(one)) for one in PROVED}
    assert set(verdicts.values()) == {("PROVED", "")}
    proved = {type(one).__name__ for one in PROVED}
    assert {type(one).__name__ for one in ALL} - proved == UNPROVED
    assert {type(one) for one in ALL} == set(mechanisms.registry())


ODD = [
    mechanisms.Gaussian(1e6, sensitivity=3.3),
    mechanisms.Gaussian(1e-3),
    mechanisms.Gaussian(5.0, dimension=1000),
    mechanisms.Gaussian(5.0, dimension=10, arithmetic="idealised"),
    mechanisms.Laplace(0.01),
    mechanisms.Laplace(3.3, sensitivity=0.7),
    mechanisms.DiscreteLaplace(1e9, 1),
    mechanisms.DiscreteGaussian(0.3),
    mechanisms.DiscreteGaussian(20.0, 3.0),
    mechanisms.TruncatedLaplace(1.0, reach=0.6),
    mechanisms.TruncatedLaplace(0.1, reach=30.0, arithmetic="idealised"),
    mechanisms.Staircase(3.3, 0.7, arithmetic="idealised"),
    mechanisms.RandomizedResponse(10**6, 0.9),
    mechanisms.UnaryEncoding.symmetric(300, 2.0),
    mechanisms.SubsetSelection.optimised(50, 1.0),
    mechanisms.LocalHashing(1000, 4, 0.9),
    mechanisms.HadamardResponse(1000, 0.6),
    mechanisms.CubeLinf(50, 1.0, 0.7),
    mechanisms.HemisphereL2(100, 1.0, 0.9),
    mechanisms.PrivUnit(2, 1e-300, 0.9),
    mechanisms.PiecewiseUniform(3.0, 0.99),
    mechanisms.Exponential(0.01),
    mechanisms.PermuteAndFlip(33.0, 0.7),
    mechanisms.PartitionSelection(0.5, 0.01),
]


@pytest.mark.parametrize("one", ODD, ids=repr)
def test_other_parameters_are_proved_too(one):
    assert checker.check(claim_of(one)) == ("PROVED", "")


CORNERS = [  # a step of the grid is more than the sensitivity, or delta is a few words
    mechanisms.Gaussian(1.0, sensitivity=1e-13), mechanisms.Laplace(3.3, sensitivity=1e-14),
    mechanisms.Laplace(3.3, sensitivity=0.7, dimension=5), mechanisms.Exponential(1.0, 1e-14),
    mechanisms.PartitionSelection(10.0, 1e-15),
]  # fmt: skip


@pytest.mark.parametrize("one", CORNERS, ids=repr)
def test_corners_are_proved_from_above(one):
    word, reason = checker.check(claim_of(one))
    assert word == "PROVED" or (word == "PROVED UPPER" and "not shown to be" in reason)


@pytest.mark.parametrize("one", PROVED, ids=repr)
def test_a_claim_that_is_a_millionth_off_is_found(one):
    claim = claim_of(one)
    for factor, word in ((1 - 1e-6, "NOT PROVED"), (1 + 1e-6, "PROVED UPPER")):
        wrong = [[e, delta * factor] for e, delta in claim["profile"]]
        assert checker.check(claim | {"profile": wrong})[0] == word
    nothing = [[e, math.nan] for e, _ in claim["profile"]]
    assert checker.check(claim | {"profile": nothing})[0] == "NOT PROVED"


@pytest.mark.parametrize("one", PROVED, ids=repr)
def test_a_density_that_is_a_millionth_off_is_found(one):
    claim = claim_of(one)
    for row, side in ((0, 1), (-1, 2)):
        wrong = [list(each) for each in claim["densities"]]
        wrong[row][side] += 1e-6
        word, reason = checker.check(claim | {"densities": wrong})
        assert (word, reason[:11]) == ("NOT PROVED", "the density")


@pytest.mark.parametrize(
    ("log", "density", "near"),
    [
        (0.0, 1, True), (2.0**-31, 1, True), (-(2.0**-31), 1, True),
        (-math.log(3), fmpq(1, 3), True),
        (1.5 * 2.0**-30, 1, False), (-1.5 * 2.0**-30, 1, False), (-1.0, 1, False), (1.0, 1, False),
        (-math.inf, 1, False), (math.inf, 1, False), (math.nan, 1, False),
        (-math.inf, 0, True), (-math.inf, arb(0), True), (math.inf, 0, False), (0.0, 0, False),
        (-1e300, 0, False), (math.nan, 0, False),
        (0.0, arb(1, 1e-3), False), (-math.inf, arb(0, 1e-300), False),
    ],
)  # fmt: skip
def test_a_claimed_logarithm_is_that_of_its_density(log, density, near):
    assert is_near(log, density) is near


@pytest.mark.parametrize("epsilon", [-2.0, -0.25, 0.0, 0.5, 2.0])
@pytest.mark.parametrize(("p", "q"), [(1, 3), (3, 1), (2, 2)])
def test_an_exchange_costs_the_sum_over_all_outcomes(p, q, epsilon):
    law = exchanged_law(2, fmpq(p, 16), fmpq(q, 16), fmpq(1, 32))
    first, second = [p, p, q, q], [q, q, p, p]
    exact = sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(first, second, strict=True))
    for end in law.delta(fraction(epsilon)):
        assert float(end) == pytest.approx(exact / 16, rel=1e-14)
    logs = math.log(p / 16), math.log(q / 16), math.log(1 / 32)
    right = {(logs[0], logs[1]), (logs[1], logs[0]), (logs[2], logs[2])}
    for pair in itertools.product(logs, repeat=2):
        assert law.has_density("any", *pair) is (pair in right)


@pytest.mark.parametrize("one", [one for one in PROVED if one.drawn_tables], ids=repr)
def test_a_range_of_words_that_is_too_short_is_found(one):
    claim = claim_of(one)
    for table in claim["tables"]:
        broken = dict(table)
        if "ends" in table:  # the first block gives words to the second
            broken["ends"] = [table["ends"][0] - 2**40, *table["ends"][1:]]
        elif "words" in table:  # a number comes a little more seldom
            broken["words"] = [table["words"][0] - 1, *table["words"][1:]]
        else:
            broken["high"] = broken["low"]
            broken["low"] = [0, 1]
        tables = [broken if each is table else each for each in claim["tables"]]
        word, reason = checker.check(claim | {"tables": tables})
        assert word == "NOT PROVED"
        assert "do not add up" in reason


def test_more_words_than_there_are_is_found():
    claim = claim_of(mechanisms.Laplace(1.0))
    (table,) = claim["tables"]
    table["ends"][-1] = 2**63 + 1
    assert checker.check(claim)[0] == "NOT PROVED"


def verdict(one):
    return checker.check(claim_of(one))[0]


def wrong_density(patch):
    made = mechanisms.Laplace.terms
    patch.setattr(mechanisms.Laplace, "terms", lambda *given: made(*given) * (1 + 1e-6))
    return mechanisms.Laplace(1.0)


def wrong_claim(patch):
    loss = property(lambda self: GaussianLoss(self.sensitivity / self.scale * (1 - 1e-7)))
    patch.setattr(mechanisms.Gaussian, "loss", loss)
    return mechanisms.Gaussian(1.0)


def grid_forgotten(patch):
    grid = mechanisms.exact_noise.rounding_grid
    patch.setattr(grid, "widened_scale", lambda scale, *moves: scale * (1 + 2.0**-50))
    return mechanisms.Laplace(1.0)


def half_the_sensitivity(patch):
    loss = property(lambda self: LaplaceLoss(self.sensitivity / self.scale))
    patch.setattr(mechanisms.PermuteAndFlip, "loss", loss)
    return mechanisms.PermuteAndFlip(1.0)


def sampler_of_a_narrower_noise(patch):
    made = "mechanisms.exact_noise.integer_noise.IntegerNoise.energy"
    patch.setattr(made, lambda self, k: (np.abs(k) / (self.width * 0.999999)) ** 2 / 2)
    return mechanisms.DiscreteGaussian(7.25)


def a_key_is_kept_too_often(patch):
    made = mechanisms.partition_selection.keeping_words(0.5, 0.01)
    more = made.copy()
    more[1] += np.uint64(10**9)
    patch.setattr("mechanisms.partition_selection.keeping_words", lambda *given: more)
    return mechanisms.PartitionSelection(0.5, 0.01)


def a_piece_too_short(patch):
    made = mechanisms.piecewise_uniform.piece_cells
    patch.setattr("mechanisms.piecewise_uniform.piece_cells", lambda keep: made(keep) - 2**20)
    return mechanisms.PiecewiseUniform(1.0, 0.75)


def fewer_hashes_apart(patch):
    shares = property(lambda self: (self.keep / 2, (1 - self.keep) / 2 / (self.buckets - 1)))
    patch.setattr(mechanisms.LocalHashing, "exclusive_support", shares)
    return mechanisms.LocalHashing(5, 3, 0.75)


@pytest.mark.parametrize(
    "broken",
    [wrong_density, wrong_claim, grid_forgotten, half_the_sensitivity, sampler_of_a_narrower_noise,
     a_key_is_kept_too_often, a_piece_too_short, fewer_hashes_apart],
)  # fmt: skip
def test_a_wrong_mechanism_is_found(broken, monkeypatch):
    with monkeypatch.context() as patch:
        one = broken(patch)
        mechanisms.exact_noise.integer_noise.proposal_table.cache_clear()
        wrong = verdict(one)
    mechanisms.exact_noise.integer_noise.proposal_table.cache_clear()
    assert wrong == "NOT PROVED"
    assert verdict(dataclasses.replace(one)) == "PROVED"


def test_a_kind_that_is_not_known_is_not_proved():
    claim = claim_of(mechanisms.Laplace(1.0)) | {"kind": "Uniform"}
    assert checker.check(claim) == ("NOT PROVED", "the kind Uniform has no proof here")


@pytest.mark.parametrize("mechanism", PROVED, ids=lambda mechanism: type(mechanism).__name__)
def test_a_claim_without_a_parameter_is_not_proved(mechanism):
    claim = claim_of(mechanism)
    for name in claim["parameters"]:
        parameters = {key: x for key, x in claim["parameters"].items() if key != name}
        word, reason = checker.check(claim | {"parameters": parameters})
        assert word == "PROVED" or (word == "NOT PROVED" and reason), (name, word)


def test_a_mechanism_of_another_package_is_not_proved(monkeypatch, capsys):
    kinds = {"Laplace": mechanisms.Laplace}
    monkeypatch.setattr("accountant.proofs.mechanism_claims.plan_kinds", lambda: kinds)
    monkeypatch.setattr(mechanisms.Laplace, "worst_pair", lambda self, epsilon: ("no", "number"))
    assert main(["verify", "--mechanisms"]) == 1
    assert "NOT PROVED    Laplace  its claim is not in numbers" in capsys.readouterr().out


def test_the_command_shows_a_table_and_fails_with_a_wrong_mechanism(capsys, tmp_path, monkeypatch):
    file = tmp_path / "found.json"
    assert main(["verify", "--mechanisms", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "PROVED        Gaussian" in shown
    assert "the loss is that of Laplace" in shown
    rows = json.loads(file.read_text())["mechanisms"]
    assert {row["verdict"] for row in rows} == {"PROVED", "no formula"}
    assert main(["verify", "--mechanisms", "cost.proof.json"]) == 2
    assert "without PROOF" in capsys.readouterr().err
    assert main(["verify"]) == 2
    assert "--mechanisms" in capsys.readouterr().err
    wrong_claim(monkeypatch)
    assert main(["verify", "--mechanisms"]) == 1
    assert "NOT PROVED    Gaussian " in capsys.readouterr().out
