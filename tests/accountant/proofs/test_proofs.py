"""Proofs of certificates, and the checker that trusts nothing of the project."""

import itertools
import json
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from flint import ctx

import accountant.verifier
from accountant import (
    ApproxLoss,
    GaussianLoss,
    Grouped,
    LaplaceLoss,
    MixtureOfGaussians,
    PairLoss,
    Parallel,
    PoissonSampled,
    PureLoss,
    RandomAllocation,
    Sequential,
    Tight,
    UnsupportedPlan,
)
from accountant.proofs import allocation_parameters
from accountant.proofs.allocation_parameters import allocation_entry
from accountant.proofs.claimed_losses import proof_plan
from accountant.proofs.float_pairs import FloatMixture
from accountant.proofs.paths import float_epsilon
from accountant.proofs.writer import (
    BRACKET,
    FIRST_DISTANCE,
    NoMethod,
    Search,
    Shown,
    _nearest,
    write_proof,
)
from accountant.serialisation.plan_json import from_dict
from accountant.verifier import ProofError, verify
from accountant.verifier.bounding_pairs import bounding_pair
from accountant.verifier.choices import alternatives
from mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomizedResponse,
)
from tests.references.arb.families import FAMILIES
from tests.references.arb.stored import rows

SCALES = np.linspace(50, 150, 50)
PLANS = {  # the plan, delta, and the road
    "Gaussians": (1000 * GaussianLoss(0.01), 1e-6, "contour"),
    "training": (15_000 * PoissonSampled(Gaussian(0.8), rate=0.004), 1e-5, "contour"),
    "many kinds of noise": (
        Sequential([10 * loss(1 / s) for loss in (LaplaceLoss, GaussianLoss) for s in SCALES]),
        1e-6, "contour"),
    "responses": (200 * PureLoss(0.1), 1e-6, "enumeration"),
    "Laplaces": (64 * LaplaceLoss(1 / 20), 1e-6, "lattice"),
    "replaced": (PoissonSampled(GaussianLoss(0.5), 0.8, "replace-one"), 0.058, "contour"),
    "allocation": (RandomAllocation(GaussianLoss(1.0), 200), 1e-5, "allocation"),
    "mixture": (9 * MixtureOfGaussians(1.0, (0, 1, 2), (0.2, 0.6, 0.2)), 1e-6, "contour"),
    "discrete noise": (
        Sequential([3 * DiscreteGaussian(3.75), DiscreteLaplace(2.7, 3)]), 1e-6, "enumeration"),
    "reports": (20 * RandomizedResponse(10, 0.25), 1e-3, "enumeration"),
    "pairs": (
        3 * PoissonSampled(PairLoss((0.75, 0.25), (0.25, 0.75)), 0.1), 1e-4, "enumeration"),
    "approximate": (Sequential([2 * ApproxLoss(0.1, 1e-7), Gaussian(3.0)]), 1e-6, "contour"),
    "groups of users": (
        Sequential([GaussianLoss(0.3), Parallel([3 * Gaussian(2.0), 2 * Laplace(1.0)])]),
        1e-5, "lattice"),
    "delta of 0": (10 * PureLoss(0.1), 0.0, "largest losses"),
}  # fmt: skip


SLOW = {"allocation", "mixture", "groups of users", "approximate", "discrete noise",
        "many kinds of noise"}  # fmt: skip
EACH = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in PLANS]
# a wrong end is looked for with more and more nodes
BESIDE = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW | {"training"}))
          for name in PLANS]  # fmt: skip


@cache
def proof_of(name, change=0.0):
    plan, delta, _ = PLANS[name]
    found = Tight().certify(plan, delta)
    # both ends moved by a share, away from the truth
    low, high = found.lower * (1 + change), found.upper * (1 + change)
    return write_proof(plan, delta, min(low, high), high)


def canonical(document):
    return (json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n").encode()


@pytest.mark.parametrize("name", EACH)
def test_a_certificate_is_proved_at_both_ends_by_a_short_file(name):
    document = proof_of(name)
    found = verify(document)
    assert (found.word, found.reason) == ("PROVED", "")
    assert len(document) <= 2**14
    assert PLANS[name][2] in {one["road"] for one in json.loads(document)["above"]}
    assert from_dict(found.plan) == PLANS[name][0]
    assert document == proof_of.__wrapped__(name)


@pytest.mark.parametrize("name", BESIDE)
def test_an_interval_beside_the_truth_is_not_proved(name):
    too_low, too_high = verify(proof_of(name, -1e-5)), verify(proof_of(name, 1e-5))
    if PLANS[name][2] == "lattice":  # it proves the end beside the wrong one
        truth = verify(proof_of(name))
        for found in (too_low, too_high):
            assert found.word == "PROVED"
            assert found.lower <= truth.lower * (1 + 1e-6)
            assert found.upper >= truth.upper * (1 - 1e-6)
        return
    assert too_low.word == "NOT PROVED"
    assert too_low.reason
    assert too_high.word == "PROVED UPPER"


@pytest.mark.slow
@pytest.mark.parametrize("row", rows()[::9], ids=lambda row: f"{row['family']}-{row['number']}")
def test_an_epsilon_that_another_road_knows_to_twelve_digits_is_proved(row):
    low, high = row["epsilon"]
    plan = FAMILIES[row["family"]].build(row["plan"])
    try:
        document = write_proof(plan, row["delta"], low, high)
    except UnsupportedPlan:
        pytest.skip("no road to a proof")
    assert verify(document).word == "PROVED"


HARD = {  # plans whose first parameters would be too long to check
    "far beyond all losses": (2 * MixtureOfGaussians(0.375, (0, 2, 4), (0.1, 0.75, 0.15)), 1e-6),
    "tiny rates": (50 * PoissonSampled(GaussianLoss(0.4), 1e-4), 1e-10),
    "a part that hardly decays": (
        Sequential([60_000 * PoissonSampled(GaussianLoss(0.15), 0.5),
                    20_000 * PoissonSampled(GaussianLoss(8.5), 1e-6)]), 1e-5),
    "epsilon is 0": (2 * PoissonSampled(GaussianLoss(0.4), 1e-5), 4e-5),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_parameters_are_short_enough_to_check(name):
    plan, delta = HARD[name]
    found = Tight().certify(plan, delta)
    assert verify(write_proof(plan, delta, found.lower, found.upper)).word == "PROVED"


def test_the_decay_of_a_mixture_is_bounded_at_the_last_node_of_its_contour(monkeypatch):
    heights, decay_height = [], FloatMixture.decay_height

    def noted(pair, abscissa, height, *options):
        heights.append((abscissa, height))
        return decay_height(pair, abscissa, height, *options)

    monkeypatch.setattr(FloatMixture, "decay_height", noted)
    plan = 100 * PoissonSampled(GaussianLoss(1.0), 0.05)
    interval = Tight().certify(plan, 1e-6)
    document = json.loads(write_proof(plan, 1e-6, interval.lower, interval.upper))
    contours = [one for one in (*document["above"], document["below"]) if one["nodes"] > 1]
    assert contours
    for entry in contours:
        abscissa, step = map(float.fromhex, (entry["a"], entry["h"]))
        assert (abscissa, (entry["nodes"] - 1) * step) in heights


def test_a_line_of_an_allocation_has_few_nodes():
    assert allocation_entry(2.1, 40, False, 3.5355, 2.8e-6)["nodes"] < 10_000  # not 52,982


def test_a_line_of_an_allocation_is_the_shortest_of_those_that_are_tried(monkeypatch):
    most, given = 400, (1.0, 40, False, 1.0, 2.8e-6)
    monkeypatch.setattr(allocation_parameters, "MAX_LAST_INDEX", most)
    monkeypatch.setattr(allocation_parameters, "MULTIPLES", [4.0, 8.0, 16.0])
    nodes = []
    for multiple in allocation_parameters.MULTIPLES:
        with suppress(NoMethod):  # some are too long to check
            nodes.append(allocation_entry(*given, multiple)["nodes"])
    assert 1 < len(nodes) < len(allocation_parameters.MULTIPLES)
    assert max(nodes) <= most + 1
    assert allocation_entry(*given)["nodes"] == min(nodes)
    monkeypatch.setattr(allocation_parameters, "MAX_LAST_INDEX", min(nodes) - 2)
    with pytest.raises(NoMethod, match="so many nodes"):
        allocation_entry(*given)


def test_a_changed_digit_is_found_or_harmless():
    document = proof_of("responses")
    for i, digit in enumerate(document):
        if chr(digit) not in "0123456789abcdef":
            continue
        changed = bytearray(document)
        changed[i] = ord("7") if digit != ord("7") else ord("3")
        try:
            found = verify(bytes(changed))
        except ProofError:
            continue
        if found.word == "PROVED":  # then it is another statement that holds
            truth = Tight().certify(from_dict(found.plan), found.delta)
            assert found.lower <= truth.upper
            assert truth.lower <= found.upper


def test_a_direction_that_is_left_out_is_missed():
    document = json.loads(proof_of("training"))
    for one in document["above"]:
        changed = {**document, "above": [one]}
        assert verify(canonical(changed)).word == "NOT PROVED"
    document["below"] = None
    assert verify(canonical(document)).word == "PROVED UPPER"


WRONG = ([], {}, None, "x", -1, 10**40, "nan", "inf", "0x1.8p+5000", True, 1e308)
PLACES = (["delta"], ["upper"], ["above"], ["plan"], ["plan", "count"], ["above", 0],
          ["above", 0, "nodes"], ["above", 0, "bits"], ["above", 0, "a"], ["above", 0, "rules"],
          ["above", 0, "rules", 0, "line"], ["above", 0, "rules", 0, "line", "far"],
          ["above", 0, "road"], ["above", 0, "way"], ["above", 0, "direction"])  # fmt: skip


def test_a_wrong_field_is_refused_or_proves_nothing():
    document = proof_of("training")
    for path, value in itertools.product(PLACES, WRONG):
        changed = json.loads(document)
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        with suppress(ProofError):
            assert verify(canonical(changed)).word == "NOT PROVED"


@pytest.mark.parametrize(
    "document",
    [b"", b"[]\n", b"[" * 10**5, b'{"a":' * 10**4 + b"1" + b"}" * 10**4 + b"\n", b"\xff",
     b" " * 2**21, b'{"proof": NaN}\n', b'{"proof":1}\n'],
)  # fmt: skip
def test_what_is_no_proof_is_refused(document):
    with pytest.raises(ProofError):
        verify(document)


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize(
    "plan",
    [
        5 * GaussianLoss(0.5), 30 * PureLoss(0.3), 3 * LaplaceLoss(1.0),
        20 * PoissonSampled(GaussianLoss(1.0), 0.1), 7 * PairLoss([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
        Sequential([2 * GaussianLoss(1.0), LaplaceLoss(0.5)]), 2 * GaussianLoss(0.01),
    ],
    ids=repr,
)  # fmt: skip
def test_the_estimate_of_a_path_is_near_its_epsilon(plan, delta):
    with ctx.workprec(128):
        (releases,) = alternatives(proof_plan(plan, decimal=False), decimal=False)
        items = [(bounding_pair(release, above=False), n) for release, n in releases.items()]
    for back in (False, True):
        direction = plan.reversed if back else plan
        exact = Tight().certify_one_way(direction, delta).upper
        assert float_epsilon(items, back, delta) == pytest.approx(exact, rel=2e-4)


def test_what_would_take_too_long_is_refused_before_it_starts():
    document = json.loads(proof_of("training"))
    document["above"][0].update(nodes=2**20, bits=4096)
    found = verify(canonical(document))
    assert (found.word, found.reason) == ("NOT PROVED", "the check would take too long")


def test_a_plan_without_a_road_says_why():
    plan = Grouped(ApproxLoss(0.1, 1e-7), 2)
    with pytest.raises(UnsupportedPlan, match="a group of the kind ApproxLoss has no proof here; "):
        write_proof(plan, 1e-6, 0.1, 0.2)


@pytest.mark.parametrize("holds", [True, False])
def test_entries_of_all_directions_are_of_the_greatest_end(holds):
    class EndOfEach(Search):
        """A search whose directions show unlike ends, which hold at the greatest one or do not."""

        def _above(self, direction):
            end = max(self._upper, 3.0 if direction.back else 2.0)
            return Shown({"back": direction.back, "end": end}, end)

        def _holds(self, entry, *, lower):
            assert not lower
            assert self._upper == 3.0
            return holds

    plan = proof_plan(PoissonSampled(GaussianLoss(1.0), 0.1), decimal=False)
    fields = EndOfEach(alternatives(plan, decimal=False), 1e-6, 0.0, 1.0).entries()
    first_end = 2.0 if holds else 3.0
    assert fields["above"] == [{"back": False, "end": first_end}, {"back": True, "end": 3.0}]
    assert (fields["upper"], fields["below"]) == ((3.0).hex(), None)


@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("distance", [0.0, 1e-12, 3e-8, 2e-3, 0.07, 0.9])
@pytest.mark.parametrize("claimed", [1e-6, 1.0, 40.0])
def test_the_nearest_end_that_is_shown_is_near(claimed, distance, upwards):
    truth = claimed * (1 + distance if upwards else 1 - distance)

    def is_shown(end):
        return end >= truth if upwards else end <= truth

    end = _nearest(is_shown, claimed, upwards=upwards)
    assert is_shown(end)
    assert abs(end - truth) <= FIRST_DISTANCE * claimed + BRACKET * abs(end - claimed)
    with pytest.raises(NoMethod, match="no end is shown"):
        _nearest(lambda end: False, claimed, upwards=upwards)


def test_an_end_above_0_is_found():
    assert 0 < _nearest(lambda end: end > 0, 0.0, upwards=True) <= FIRST_DISTANCE


def test_the_folder_runs_alone(tmp_path):
    shutil.copytree(Path(accountant.verifier.__file__).parent, tmp_path / "verifier",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    (tmp_path / "cost.proof.json").write_bytes(proof_of("training"))
    (tmp_path / "wrong.json").write_bytes(b"{}")
    code = "import sys, runpy; sys.modules['numpy'] = None; "
    code += "runpy.run_module('verifier', run_name='__main__')"
    for name, status in (("cost.proof.json", 0), ("wrong.json", 2), ("absent.json", 2)):
        done = subprocess.run([sys.executable, "-c", code, name], cwd=tmp_path,
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == status, done.stderr
        assert (done.stdout + done.stderr).count("\n") == 1
