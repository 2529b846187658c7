"""A changed digit anywhere in a proof is found, or harmless: what is still proved is true.

Whether it is true `Tight` says, of the changed plan and delta: it shares no code with the checker.
"""

import copy
import json
import string
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("flint", reason="python-flint is not installed")

from accountant import ParameterError, Tight, UnsupportedPlan
from accountant.serialisation.plan_json import from_dict
from accountant.verifier import ProofError, verify
from tests.accountant.verifier.written_proofs import PLANS, document, proof_of

HEXADECIMAL, DECIMAL = "0123456789abcdef", string.digits


def digits(text):
    """Places of digits, and what may stand there: those of hexadecimal floats are sixteen."""
    inside = False
    for place, letter in enumerate(text):
        if letter == '"':
            inside = text.startswith('"0x', place)
        elif letter in HEXADECIMAL and (inside or letter in DECIMAL):
            yield place, HEXADECIMAL if inside else DECIMAL


def refuse_false_claims(road, place, other):
    """Fail if the checker proves what is not so after a digit was changed; whether it proves."""
    text = proof_of(road).decode()
    changed = f"{text[:place]}{other}{text[place + 1 :]}"
    return refuse_false_proof(changed.encode(), f"...{changed[max(place - 40, 0) : place + 20]}...")


def refuse_false_proof(raw, where):
    """Fail if the checker proves what is not so; whether it proves."""
    try:
        found = verify(raw)
    except ProofError:
        return False
    if found.word == "NOT PROVED":
        return False
    try:
        truth = Tight().certify(from_dict(found.plan), found.delta)
    except (ParameterError, UnsupportedPlan):  # no plan of this package
        return False
    assert found.upper >= truth.lower, where
    if found.word == "PROVED":
        assert found.lower <= truth.upper, where
    return True


@pytest.mark.parametrize("road", PLANS)
def test_a_changed_digit_is_found_or_harmless(road):
    rng = np.random.default_rng(25)
    known = list(digits(proof_of(road).decode()))
    for k in rng.choice(len(known), 6 if road == "allocation" else 12, replace=False):
        place, allowed = known[k]
        was = proof_of(road).decode()[place]
        refuse_false_claims(road, place, rng.choice([one for one in allowed if one != was]))


FACTORS = (0.0, 0.5, 0.999, 1.001, 2.0)
ENTRY, RULE = ("a", "h", "slack", "size", "bits"), ("first", "step", "count")


@pytest.mark.parametrize("name", [*ENTRY, *RULE])
@pytest.mark.parametrize("road", ["sampled Laplaces", "without replacement"])
def test_a_changed_parameter_of_a_lattice_is_found_or_harmless(road, name):
    """Of both ends: each parameter a little and much smaller and larger."""
    text, said = proof_of(road).decode(), Counter()
    whole = json.loads(text)
    for factor in FACTORS:
        changed = copy.deepcopy(whole)
        for entry in [*changed["above"], changed["below"]]:
            for holder in [entry] if name in ENTRY else entry.get("rules", []):
                if name in holder:
                    holder[name] = scaled(holder[name], factor)
        said[refuse_false_proof(document(changed), f"{name} x {factor}")] += 1
    assert said.total() == len(FACTORS)
    assert said[False] or name in ("a", "slack", "bits", "first", "step")


# Of proofs whose check takes a second, so many digits are drawn; of the others all are changed.
DRAWN_DIGITS = {"lattice": 80, "without replacement": 80}


def scaled(value, factor):
    """A whole number, or one as hexadecimal digits, times a factor."""
    return round(value * factor) if isinstance(value, int) else (
        float.fromhex(value) * factor).hex()  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("road", PLANS)
def test_changed_digits_are_found_or_harmless(road):
    rng = np.random.default_rng(26)
    every = list(digits(proof_of(road).decode()))
    count = min(len(every), DRAWN_DIGITS.get(road, len(every)))
    drawn = rng.choice(len(every), count, replace=False)
    for place, allowed in [every[i] for i in sorted(drawn)]:
        was = proof_of(road).decode()[place]
        for other in rng.choice([one for one in allowed if one != was], 3, replace=False):
            refuse_false_claims(road, place, other)


@pytest.mark.parametrize("road", PLANS)
@pytest.mark.parametrize(("end", "wrong"), [("upper", -1), ("lower", 1)])
def test_a_false_end_is_found(road, end, wrong):
    """An end moved beyond the truth by a part in 10^6 is not proved."""
    text = proof_of(road).decode()
    truth = verify(text.encode())
    assert truth.word == "PROVED"
    value = getattr(truth, end)
    false = value * (1 + wrong * 1e-6)
    # both ends must stay in order
    other = {"upper": "lower", "lower": "upper"}[end]
    changed = text.replace(f'"{end}":"{value.hex()}"', f'"{end}":"{false.hex()}"').replace(
        f'"{other}":"{getattr(truth, other).hex()}"',
        f'"{other}":"{(getattr(truth, other) * (1 + wrong * 1e-5)).hex()}"',
    )
    assert changed != text
    found = verify(changed.encode())
    assert found.word == ("NOT PROVED" if end == "upper" else "PROVED UPPER")
    assert found.reason
