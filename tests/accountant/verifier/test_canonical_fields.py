"""Numbers in other letters, and fields without sense: each is no proof, in one line."""

import copy
import json

import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant.__main__ import main
from accountant.verifier import ProofError, verify
from tests.accountant.verifier.written_proofs import document

GAUSSIAN = {"kind": "Gaussian", "scale": 2.0}
PURE = {"kind": "PureLoss", "epsilon": 0.5}
CLAIMED = {"kind": "Claimed", "mechanism": {"kind": "Exponential", "scale": 4.0}, "loss": PURE}
SAMPLED = {"kind": "PoissonSampled", "part": GAUSSIAN, "rate": 0.5}
MOMENT = {
    "way": 0, "direction": "forward", "road": "contour", "bits": 128, "nodes": 1, "rules": [],
    "a": (8.0).hex(), "b": (0.0).hex(), "h": (1.0).hex(), "smooth": (0.0).hex(),
}  # fmt: skip


def file_of(plan, **changes):
    """A proof of a wide upper end of a plan without mixtures."""
    numbers = {"delta": (1e-5).hex(), "lower": (0.0).hex(), "upper": (50.0).hex()}
    fields = {"proof": 1, "plan": plan, "above": [MOMENT], "below": None, **numbers}
    return document(fields | changes)


@pytest.mark.parametrize("plan", [GAUSSIAN, {**GAUSSIAN, "sensitivity": 0.5},
    {**GAUSSIAN, "dimension": 3}, {**GAUSSIAN, "arithmetic": "idealised"}, CLAIMED,
    {"kind": "Repeat", "part": PURE, "count": 2}, {**PURE, "count": 2},
    {"kind": "OnePass", "part": GAUSSIAN, "batches": 1},
    {"kind": "Stated", "part": PURE, "relation": "zero-out"},
    {"kind": "DiscreteLaplace", "scale": 4.0, "sensitivity": 2},
    {"kind": "ZCDPLoss", "rho": 0.1},
], ids=json.dumps)  # fmt: skip
def test_the_file_is_a_proof_before_it_is_changed(plan):
    assert verify(file_of(plan)).word == "PROVED"


NUMBERS = (
    "-0x0.0p+0", "0x0.0p+7", "0x0.0p-1", "0x1p+3", "0x1.8p+1", "0x1.80000000000000p+1", "0x2.0p+0",
    "0X1.8000000000000P+1", " 0x1.8000000000000p+1", "0x1.8000000000000p1", "0x1.8000000000000p+01",
    "-0x1.8000000000000p+1", "+0x1.8000000000000p+1", "0x1.8000000000000p+5000", "nan", "inf", "1",
    "0x0.0000000000001p-1022", 3, 3.0, True, None, [],
)  # fmt: skip


@pytest.mark.parametrize(("levels", "is_read"), [(197, True), (198, False), (210, False)])
def test_a_mechanism_of_tables_in_tables_is_read_to_200_levels(levels, is_read):
    tables = {}
    for _ in range(levels):  # the plan, the mechanism and the last table are three more
        tables = {"table": tables}
    claimed = CLAIMED | {"mechanism": CLAIMED["mechanism"] | {"table": tables}}
    if is_read:
        assert verify(file_of(claimed)).word == "PROVED"
        return
    with pytest.raises(ProofError, match="nested at most 50 deep"):
        verify(file_of(claimed))


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_a_number_of_the_file_in_other_letters_is_refused(value):
    for field in ("delta", "upper", "lower"):
        with pytest.raises(ProofError):
            verify(file_of(GAUSSIAN, **{field: value}))
    for field in ("a", "b", "h", "smooth"):
        with pytest.raises(ProofError):
            verify(file_of(GAUSSIAN, above=[MOMENT | {field: value}]))


SENSELESS = [
    (GAUSSIAN, "scale", (2, True, "2.0", None, -2.0, 0.0, -0.0, 1e301, [2.0], {})),
    (GAUSSIAN, "sensitivity", (1, True, -1.0, -0.0, "1.0", None)),
    (GAUSSIAN, "dimension", (-5, 0, True, 2.0, "3", [], 10**30)),
    (GAUSSIAN, "arithmetic", ("", "Idealised", "floats", True, None, 1)),
    (GAUSSIAN, "kind", ("", 1, None, [], {})),
    (GAUSSIAN, "count", (-1, 1.0, True, "1", None, 10**16)),
    (GAUSSIAN, "relation", ("add-remove",)),
    ({"kind": "GaussianLoss", "mu": 0.5}, "mu", (1, True, -0.5, 0.0)),
    ({"kind": "LaplaceLoss", "shift": 0.5}, "shift", (1, True, -0.5, 0.0)),
    (PURE, "epsilon", (1, True, -0.5, -0.0)),
    ({"kind": "ApproxLoss", "epsilon": 0.5, "delta": 0.1}, "delta", (0, 1, True, -0.0, 1.5)),
    ({"kind": "ZCDPLoss", "rho": 0.1, "xi": 0.1}, "xi", (0, True, -0.0, "0")),
    ({"kind": "RandomizedResponse", "k": 3, "keep": 0.6}, "k", (1, 3.0, True, -3)),
    ({"kind": "RandomizedResponse", "k": 3, "keep": 0.6}, "keep", (1, True, 1.5, -0.0)),
    ({"kind": "PairLoss", "p": [0.5, 0.5], "q": [0.25, 0.75]}, "p",
     ([1, 0], [True, False], [0.5], [0.5, 0.6], [1.5, -0.5], [1.0, -0.0], "p", {})),
    ({"kind": "DiscreteLaplace", "scale": 4.0}, "sensitivity", (0, 1.0, 1.5, True, -1)),
    ({"kind": "DiscreteLaplace", "scale": 4.0}, "dimension", (-5, 0, True, 1.0)),
    ({"kind": "DiscreteGaussianLoss", "scale": 4.0, "shift": 1}, "shift", (0, 1.0, True, -1)),
    (SAMPLED, "rate", (0, 1, True, -0.0, 1.5)),
    (SAMPLED, "relation", ("", "replace", "local-replace", True, None)),
    ({"kind": "Stated", "part": PURE, "relation": "replace-one"}, "relation",
     ("", "replace", "add/remove", "nobody", True, None, 1)),
    ({"kind": "OnePass", "part": PURE, "batches": 4}, "batches", (0, -5, 4.0, True, None)),
    ({"kind": "Grouped", "part": PURE, "size": 2}, "size", (0, -5, 2.0, True, None)),
    ({"kind": "Repeat", "part": PURE, "count": 2}, "count", (-1, 2.0, True, None)),
    ({"kind": "Parallel", "parts": [PURE]}, "by", ("", "person", True, None, 1)),
    ({"kind": "Parallel", "parts": [PURE]}, "moves", ("", True, None, {})),
    ({"kind": "Parallel", "parts": [PURE]}, "parts", ("", True, None, {})),
    (CLAIMED, "relation", ("", "nobody", None, True)),
    (CLAIMED, "mechanism", ("", "Exponential", None, True, {}, {"kind": ""}, {"kind": 1})),
    ({"kind": "ShuffledEpoch", "part": GAUSSIAN, "batches": 4}, "batches", (0, 4.0, True)),
    ({"kind": "RandomAllocation", "part": GAUSSIAN, "steps": 9}, "steps", (0, 9.0, True)),
    ({"kind": "TruncatedPoisson", "part": GAUSSIAN, "rate": 0.5, "records": 9, "batch": 5},
     "records", (0, 9.0, True)),
    ({"kind": "SampledWithoutReplacement", "part": GAUSSIAN, "sample": 1, "population": 8},
     "sample", (9, 1.0, True, -1)),
    ({"kind": "SampledWithoutReplacement", "part": GAUSSIAN, "sample": 1, "population": 8},
     "relation", ("add-remove", "", True, None, 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "field", "values"),
    SENSELESS,
    ids=[f"{plan['kind']}.{field}" for plan, field, _ in SENSELESS],
)
def test_a_field_of_a_plan_without_sense_is_refused(plan, field, values):
    for value in values:
        changed = copy.deepcopy(plan) | {field: value}
        with pytest.raises(ProofError) as refused:
            verify(file_of(changed))
        assert "\n" not in str(refused.value), value


@pytest.mark.parametrize("text", [b"NaN", b"Infinity", b"2e0", b"2.00", b"20e-1", b"1e400", b"2."])
def test_a_number_of_a_plan_in_other_letters_is_refused(text, tmp_path, capsys):
    raw = file_of(GAUSSIAN)
    changed = raw.replace(b'"scale":2.0', b'"scale":' + text)
    assert changed != raw
    with pytest.raises(ProofError):
        verify(changed)
    path = tmp_path / "cost.proof.json"
    path.write_bytes(changed)
    assert main(["verify", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
