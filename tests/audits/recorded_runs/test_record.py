"""Recorded runs: faults of each kind are found, and correct functions raise no alarm."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import sys
import threading
import types
from dataclasses import replace

import numpy as np
import pytest

from accountant import ApproxLoss, GaussianLoss, LaplaceLoss, PairLoss, ParameterError, Tight
from audits import Outcome, Primitive, record
from audits.recorded_runs import call_sites
from audits.recorded_runs.draws.declared_calls import loss_of, recording_call, sensitivity_of
from audits.recorded_runs.draws.numpy_draws import RecordingGenerator
from audits.recorded_runs.record import Explanation, best
from audits.recorded_runs.records import missing_record, other_data, parts_of, rows_of
from audits.recorded_runs.tape import Tape, running
from tests.audits.recorded_runs import correct_functions as correct
from tests.audits.recorded_runs import faulty_functions as faulty

DATA = np.random.default_rng(5).uniform(size=40)
FEWER = np.delete(DATA, 7)
OTHER = np.where(np.arange(40) == 7, 1 - DATA, DATA)
ONES = np.ones(4)
COINS = PairLoss((0.5, 0.5), (0.25, 0.75))


def two_sums_of_one_noise(data, rng, *, scores=()):
    """Release two sums of the same two noises; further noisy numbers are only compared with 0."""
    total, noise = data.sum(), rng.normal(size=2)
    is_positive = [total + rng.normal(size=2).sum() > 0 for _ in scores]
    return total + noise.sum(), 2 * total + noise.sum(), is_positive


def test_an_unrelated_comparison_leaves_an_infinite_loss_infinite():
    alone = record(two_sums_of_one_noise, DATA, FEWER, claim=(1.0, 1e-5))
    beside_comparisons = record(
        lambda data, rng: two_sums_of_one_noise(data, rng, scores=(1, 2)), DATA, FEWER,
        claim=(1.0, 1e-5),
    )  # fmt: skip
    for recorded in (alone, beside_comparisons):
        (finding,) = recorded.findings
        assert (
            finding.sentence == "the loss is infinite: no move of the noise keeps what was released"
        )


def released_in_two_lines(data, rng):
    noise = rng.normal(size=2)
    first = data.sum() + noise.sum()
    second = 2 * data.sum() + noise.sum()
    return first, second


def released_in_one_line(data, rng):
    noise, factors = rng.normal(size=2), np.array([1.0, 2.0])
    return factors * data.sum() + noise.sum()


@pytest.mark.parametrize(
    ("function", "line"), [(released_in_two_lines, 2), (released_in_one_line, 2)]
)
def test_an_infinite_loss_of_several_sums_is_where_the_first_of_them_is(function, line):
    (finding,) = record(function, DATA, FEWER, claim=(1.0, 1e-5)).findings
    assert finding.sentence == "the loss is infinite: no move of the noise keeps what was released"
    number = function.__code__.co_firstlineno + line
    assert finding.site.endswith(f"test_record.py:{number}"), finding


def compares_and_releases_two_noises(data, rng):
    total, noise = data.sum(), rng.normal(size=2)
    is_positive = noise[0] + 3 * total > 0
    return total + noise[0] + noise[1], 5 * total + 2 * noise[0] + noise[1], is_positive


def compares_one_noise_with_two_moves(data, rng):
    total, noise = data.sum(), rng.normal()
    return total + noise > 0, 3 * total + noise > 0


@pytest.mark.parametrize(
    "function", [compares_and_releases_two_noises, compares_one_noise_with_two_moves]
)
def test_a_comparison_makes_no_loss_surely_infinite(function):
    """If the comparisons were releases, no moves of the noise would keep them."""
    recorded = record(function, DATA, FEWER, claim=(1.0, 1e-5))
    assert not recorded.findings
    assert recorded.cost is None
    assert any("Gaussian noise compared at" in text for text in recorded.unchecked)


@pytest.mark.parametrize("function", correct.ADD_OR_REMOVE, ids=lambda f: f.__name__)
def test_correct_functions_raise_no_alarm(function):
    claim = (1.0, 1e-5) if "gauss" in function.__name__ or "descent" in function.__name__ else 1.0
    found = record(function, DATA, FEWER, claim=claim)
    assert found.sound, found


@pytest.mark.parametrize(("function", "primitives"), correct.REPLACE)
def test_correct_estimators_raise_no_alarm(function, primitives):
    found = record(function, DATA, OTHER, primitives, claim=1.0)
    assert found.sound, found
    assert found.draws > 0


@pytest.mark.slow
@pytest.mark.parametrize("function", correct.ADD_OR_REMOVE, ids=lambda f: f.__name__)
def test_no_alarm_in_2660_sessions(function):
    claim = (1.0, 1e-5) if "gauss" in function.__name__ or "descent" in function.__name__ else 1.0
    for session in range(140):
        rng = np.random.default_rng(session)
        data = rng.uniform(-0.2, 1.2, size=int(rng.integers(5, 60))).clip(0, 0.999)
        fewer = np.delete(data, rng.integers(len(data)))
        first, second = (data, fewer) if session % 2 else (fewer, data)
        found = record(function, first, second, claim=claim, seed=session)
        # The law of a product of two draws is not known: that is said, and is no alarm.
        is_product = function is correct.gaussian_by_box_and_muller
        assert found.sound or (is_product and not found.findings), (session, found)


def kinds(function, data, neighbour, **options):
    found = record(function, data, neighbour, **options)
    assert not found.sound
    assert all("test" in f.site or "faulty" in f.site or not f.site for f in found.findings)
    return {finding.kind for finding in found.findings}


# data of the public examples of the recorder that this audit follows
LABELS, FEWER_LABELS = np.array([0, 1, 2, 0]), np.array([0, 1, 0])
FAULTS = [
    (faulty.mean_by_the_private_size, np.full(3, 0.5), np.full(2, 0.5), "input"),
    (faulty.domain_of_the_data, LABELS, FEWER_LABELS, "control flow"),
    (faulty.spent_twice, np.zeros(100), np.append(np.zeros(100), 1.0), "cost"),
    (faulty.clipped_with_nan, np.array([1.0, 2.0]), np.array([1.0, np.nan]), "cost"),
    (faulty.scale_of_zero, np.array([1.0, 1.0]), np.array([1.0]), "cost"),
    (faulty.clipped_in_vain, np.array([1.0, -2, 3]), np.array([1.0, -2, 100]), "cost"),
    (faulty.domain_by_maximum, LABELS, FEWER_LABELS, "input"),
    (faulty.scores_of_two_errors, np.repeat([0, 1], [6, 1]), np.repeat([0, 1], [5, 2]), "cost"),
    (faulty.covariance_not_clipped, np.eye(4, 2), np.diag([9.0, 1, 0, 0])[:, :2], "cost"),
    (faulty.same_noise_twice, DATA, OTHER, "reused noise"),
    (faulty.value_beside_its_noise, DATA, FEWER, "reused noise"),
    (faulty.tells_without_noise, DATA, np.append(DATA, 3.0), "no noise"),
    (faulty.branches_on_data, np.full(3, 0.5), np.array([0.5, 0.5, 1.0]), "control flow"),
    (faulty.stops_with_the_data, np.full(3, 0.5), np.array([1.0, 0.5, 0.5]), "control flow"),
    (faulty.keeps_the_data, DATA, OTHER, "result"),
    (faulty.seeded_by_the_data, DATA, OTHER, "input"),
    (faulty.all_thresholds, np.zeros(9), np.ones(9) * (np.arange(9) == 2), "cost"),
    (faulty.randomness_out_of_sight, DATA, OTHER, "randomness"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "data", "neighbour", "kind"), FAULTS)
def test_each_fault_is_found(function, data, neighbour, kind):
    assert kind in kinds(function, data, neighbour, claim=1.0)


def test_a_declared_selection_moves_farther_than_its_sensitivity():
    data, neighbour = np.repeat([0, 1], [6, 1]), np.repeat([0, 1], [5, 2])
    options = {"primitives": faulty.SELECTION}
    assert kinds(faulty.scores_of_two_errors, data, neighbour, **options) == {"sensitivity"}
    by_name = {"tests.audits.recorded_runs.faulty_functions:selected": faulty.SELECTION[
        faulty.selected
    ]}  # fmt: skip
    found = record(faulty.scores_of_two_errors, data, neighbour, by_name)
    assert "2 times its declared sensitivity 2" in found.findings[0].sentence


def test_a_declared_draw_moves_farther_than_its_sensitivity():
    data, neighbour = np.array([1.0, -2, 3]), np.array([1.0, -2, 100])
    declared = {"numpy.random.laplace": 5.0}
    assert kinds(faulty.clipped_in_vain, data, neighbour, primitives=declared) == {"sensitivity"}
    found = record(faulty.clipped_in_vain, data, np.array([1.0, -2, 4]), declared, claim=1.0)
    assert (found.sound, found.cost, found.declared_cost) == (True, 0.2, 1.0)


def test_an_odometer_that_reports_too_little_is_found():
    record_and_read = {"claim": lambda result: result[1]}
    found = record(
        faulty.queries_by_an_odometer, np.zeros(4), np.eye(4)[0],
        primitives={faulty.approximate_count: ApproxLoss(0.1, 1e-3)}, **record_and_read,
    )  # fmt: skip
    assert found.delta == pytest.approx(0.19256, abs=1e-5)  # 1 - (1 - 1e-3)^300 is .2593
    assert [finding.kind for finding in found.findings] == ["cost"]


def cells_of(uniform, x):
    """In which of three cells a uniform number lies; the upper level is private."""
    return bool(uniform < 0.25), bool(uniform < 0.5 + x[0] / 4)


@pytest.mark.parametrize(
    ("draw", "loss"),
    [
        (lambda rng, x: x + rng.laplace(scale=2.0, size=2), 2 * LaplaceLoss(0.5)),
        (lambda rng, x: rng.normal(x, 2.0), GaussianLoss(np.sqrt(0.5))),
        (lambda rng, x: x + 2 * rng.standard_normal(2), GaussianLoss(np.sqrt(0.5))),
        (lambda rng, x: x + rng.normal(size=2) + rng.normal(size=2), GaussianLoss(1.0)),
        (lambda rng, x: int(rng.random() < 0.5 + x[0] / 4), COINS),
        (lambda rng, x: (rng.random(3) < 0.5 + x[0] / 4).tolist(), 3 * COINS),
        (lambda rng, x: cells_of(rng.random(), x), PairLoss((0.25, 0.25, 0.5), (0.25, 0.5, 0.25))),
        (lambda rng, x: rng.binomial(1, 0.5 + x[0] / 4), COINS),
        (lambda rng, x: rng.multivariate_normal(x, 4 * np.eye(2)), GaussianLoss(np.sqrt(0.5))),
        (lambda rng, x: x + rng.standard_normal(out=np.empty(2)), GaussianLoss(np.sqrt(2))),
    ],
)
def test_costs_are_those_of_textbook_mechanisms(draw, loss):
    delta = 1e-5
    found = record(lambda x, rng: draw(rng, x), np.zeros(2), np.ones(2), delta=delta)
    assert found.sound, found
    # of the two coins .5 and .75 the loss lies between log(3 / 2) and log 2
    assert found.cost == pytest.approx(Tight().epsilon(loss, delta), rel=1e-6)


def scores_of(x):
    return np.array([x.sum(), 9.0, 1.5, 9.5])


# The noise is `g`, Gumbel noise of scale 1; the scores are `s`.  All choose with softmax(s / 2).
SELECTIONS = [
    "np.argmax(s + 2 * g)", "(s + 2 * g).argmax()", "np.argmin(-s - 2 * g)",
    "(-s - 2 * g).argmin()", "np.argmax((s + 2 * g) * 3)", "np.argmin((s + 2 * g) * -3)",
    "np.argmax(s - 2 * -g)", "np.argmax((s / 2 + g)[::-1])",
]  # fmt: skip
# The noise has the wrong sign, or several scales or laws, or there is more to see of it.
NO_SELECTIONS = [
    "np.argmin(s + 2 * g)", "np.argmax(s - 2 * g)", "np.argmax(s + np.array([2, 1, 2, 2]) * g)",
    "np.argmax(s + rng.gumbel(scale=[2, 2, 2, 1]))",
    "np.argmax(np.concatenate([s[1:] + 2 * g[1:], s[:1] + rng.laplace(size=1)]))",
    "np.argmax(np.concatenate([s[1:] + 2 * g[1:], s[:1]]))",
    "np.argmax(s + 2 * (g + rng.gumbel(size=4)))", "np.argmax(s + 2 * np.repeat(g[:2], 2))",
    "(np.argmax(s + 2 * g), np.argmax(2 * s + 2 * g))", "(np.argmax(s + 2 * g), s[1] + 2 * g[1])",
]  # fmt: skip


def record_of_expression(expression, neighbour=ONES[:3]):
    def released(x, rng):
        names = {"np": np, "s": scores_of(x), "g": rng.gumbel(size=4), "rng": rng}
        return eval(expression, names)

    return record(released, ONES, neighbour, delta=1e-5)


@pytest.mark.parametrize("expression", SELECTIONS)
def test_the_place_of_an_extreme_with_gumbel_noise_is_the_exponential_mechanism(expression):
    found = record_of_expression(expression)
    laws = [np.exp(scores_of(x) / 2) for x in (ONES, ONES[:3])]
    loss = PairLoss(*(law / law.sum() for law in laws))
    assert found.sound, found
    assert found.cost == pytest.approx(Tight().epsilon(loss, 1e-5), rel=1e-9)


@pytest.mark.parametrize("expression", NO_SELECTIONS)
def test_the_place_of_an_extreme_with_other_noise_has_no_known_cost(expression):
    found = record_of_expression(expression)
    assert (found.sound, found.cost) == (False, None)
    assert "the loss of gumbel noise compared" in found.unchecked[0]
    assert record_of_expression(expression, ONES).cost == 0.0


def test_the_place_of_an_extreme_among_infinite_scores_costs_all():
    def place(x, rng):
        with np.errstate(divide="ignore"):
            return np.argmax(1 / x + rng.gumbel(size=4))

    found = record(place, ONES, np.array([1.0, 1.0, 1.0, 0.0]), delta=1e-5)
    assert (found.sound, found.cost) == (False, np.inf)
    assert "a score is no number" in found.findings[0].sentence


@pytest.mark.parametrize("law", ["laplace", "exponential", "logistic"])
@pytest.mark.parametrize("scores", [[3.0, 0.0], [0.0, 3.0], [9.0, 9.5]])
def test_the_place_of_an_extreme_costs_the_move_over_the_scale(law, scores):
    def noisy_scores(x, rng):
        return np.array([x.sum(), *scores]) + getattr(rng, law)(scale=2.0, size=3)

    places = (
        lambda x, rng: np.argmax(noisy_scores(x, rng)),
        lambda x, rng: (-noisy_scores(x, rng)).argmin(),
    )
    for place in places:
        found = record(place, ONES, ONES[:3], claim=0.5)
        assert (found.sound, found.cost) == (True, pytest.approx(0.5))


CHOICES = {
    "reshape": (4,), "ravel": (), "transpose": (), "squeeze": (), "take": ([0, 3],), "repeat": (1,),
    "swapaxes": (0, 1), "diagonal": (), "astype": (float,),
}  # fmt: skip


@pytest.mark.parametrize("method", CHOICES)
def test_of_what_a_method_chooses_only_what_is_released_costs(method):
    def first(x, rng):
        noisy = x + rng.normal(size=(2, 2))
        chosen = getattr(noisy, method)(*CHOICES[method])[0]
        return chosen if np.ndim(chosen) == 0 else chosen[0]

    found = record(first, np.zeros((2, 2)), np.ones((2, 2)), delta=1e-5)
    assert found.sound, found
    assert found.cost == pytest.approx(Tight().epsilon(GaussianLoss(1.0), 1e-5), rel=1e-6)


def test_another_type_is_what_code_gets_that_asks_for_it():
    seen = []

    def narrow(x, rng):
        noisy = (x + rng.normal(size=2)).astype(np.float32)
        seen.append(noisy.dtype)
        return noisy

    assert record(narrow, np.zeros(2), np.ones(2), delta=1e-5).sound
    assert set(seen) == {np.dtype(np.float32)}


def whole_noise(rng):
    return rng.geometric(0.5) - rng.geometric(0.5)


@pytest.mark.parametrize(
    ("function", "cost"),
    [
        (lambda data, rng: data.sum() + whole_noise(rng), np.log(2)),
        (lambda data, rng: data.sum() / 2 + whole_noise(rng), np.inf),
        (lambda data, rng: data.sum() / 2 + whole_noise(rng) > 1.2, np.log(2)),
        (lambda data, rng: data.sum() + 2 * whole_noise(rng), np.inf),
        (lambda data, rng: data.sum() + whole_noise(rng) + rng.laplace(scale=4.0), 0.25),
        # No whole moves are found, and the search for them ends.
        (lambda data, rng: data.sum() + np.pi * whole_noise(rng) + np.e * whole_noise(rng), None),
    ],
)
def test_whole_noise_moves_by_whole_numbers(function, cost):
    assert record(function, ONES, ONES[:3]).cost == (cost and pytest.approx(cost))


def test_a_sum_of_gaussian_noise_is_gaussian_noise():
    found = record(lambda x, rng: x + np.add.reduce(rng.normal(size=(2, 4)), axis=1), np.zeros(2),
                   np.ones(2), delta=1e-5)  # fmt: skip
    assert found.cost == pytest.approx(Tight().epsilon(GaussianLoss(np.sqrt(0.5)), 1e-5), rel=1e-6)


def test_the_logarithm_of_a_uniform_number_is_noise_of_one_side():
    pair = np.zeros(2), np.ones(2)
    # alone it rules out an answer below it; beside Laplace noise it need not move
    assert record(lambda x, rng: x - np.log(rng.random(2)), *pair).cost == np.inf
    found = record(lambda x, rng: x - 9 * np.log(rng.random(2)) + rng.laplace(size=2), *pair)
    assert found.cost == pytest.approx(2.0)


def test_what_a_module_draws_while_it_is_imported_is_no_part_of_a_run(tmp_path, monkeypatch):
    (tmp_path / "drawn_at_import.py").write_text("import random\nfirst = random.random()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def late(x, rng):
        importlib.import_module("drawn_at_import")
        return x + rng.normal(size=2)

    found = record(late, np.zeros(2), np.ones(2), delta=1e-5)
    sys.modules.pop("drawn_at_import")
    assert found.sound, found
    assert found.draws == 1


def noise_in_a_private_place(data, rng):
    return data.sum() + rng.laplace(size=2)[len(data) % 2]


def noises_in_a_private_order(data, rng):
    return data.sum() + rng.laplace(size=2)[[0, 1] if len(data) % 2 else [1, 0]]


def noise_times_a_private_number(data, rng):
    return data.sum() + len(data) * rng.laplace()


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (noise_in_a_private_place, "which noise is in which number depends on the data"),
        (noises_in_a_private_order, "which noise is in which number depends on the data"),
        (
            noise_times_a_private_number,
            "the number that noise is multiplied by in multiply depends on the data",
        ),
    ],
)
def test_noise_that_the_data_choose_or_multiply_is_named(function, sentence):
    finding = record(function, ONES, ONES[:3], claim=1.0).findings[0]
    assert (finding.kind, finding.sentence) == ("input", sentence)
    assert "test_record" in finding.site


def same_number(value, scale):
    return value


@pytest.mark.parametrize("size", [0, 10**16, 2**62])
@pytest.mark.parametrize("as_array", [False, True])
def test_a_whole_number_moves_by_what_it_moves_however_large_it_is(size, as_array):
    declared = recording_call(same_number, Primitive(sensitivity=1.0, loss=LaplaceLoss(1.0)))

    def released(data):
        total = size + len(data)
        return declared(np.array([total]) if as_array else total, 1.0)

    found = record(released, ONES, ONES[:1], claim=1.0)
    assert [one.kind for one in found.findings] == ["sensitivity"]
    assert "moved 3 times its declared sensitivity" in found.findings[0].sentence
    assert record(released, ONES, ONES[:3], claim=1.0).cost == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("scale", "other_scale", "is_same"),
    [
        (2, 2.0, True),
        (np.int64(2), 2, True),
        (np.float32(2.0), 2, True),
        (2, 2.5, False),
        (np.int64(2), 3.0, False),
        (True, 1, False),
        (np.True_, 1.0, False),
        ("2", 2, False),
        (None, 0.0, False),
    ],
)
def test_an_argument_is_the_same_where_its_number_is_whatever_the_type(scale, other_scale, is_same):
    declared = recording_call(same_number, Primitive(sensitivity=1.0, loss=LaplaceLoss(1.0)))
    found = record(
        lambda x: declared(x.sum(), scale if len(x) == 4 else other_scale), ONES, ONES[:3],
        claim=1.0,
    )  # fmt: skip
    sentences = [one.sentence for one in found.findings]
    assert sentences == ([] if is_same else ["scale of same_number depends on the data"])


def test_a_draw_with_a_private_chance_that_costs_more_than_claimed_is_found():
    found = record(lambda x, rng: rng.binomial(1, 0.5 + x[0] / 4), np.zeros(1), np.ones(1),
                   claim=0.1)  # fmt: skip
    assert [finding.kind for finding in found.findings] == ["cost"]
    assert found.unchecked == ()


def test_of_verdicts_without_findings_one_of_known_cost_is_reported():
    known = record(lambda x, rng: x + rng.normal(size=2), np.zeros(2), np.ones(2), delta=1e-5)
    unknown = replace(known, cost=None, unchecked=())
    known = replace(known, unchecked=("something",))
    none = frozenset()
    tried = [Explanation(verdict, none, none, has_right_cost=True) for verdict in (unknown, known)]
    assert best(tried).verdict == best(tried[::-1]).verdict == known


def drawn(data):
    return np.random.laplace() + float(np.random.default_rng().normal())


def test_everything_is_put_back_after_an_exception_and_random_states_are_not_advanced():
    before = {name: getattr(np.random, name) for name in ("laplace", "default_rng", "Generator")}
    state, kept = np.random.get_state()[1].copy(), correct.bits
    place = kept.bit_generator.state

    def fails(data):
        drawn(data)
        correct.bits.normal()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(fails, DATA, FEWER)
    assert all(getattr(np.random, name) is old for name, old in before.items())
    assert np.array_equal(np.random.get_state()[1], state)
    assert correct.bits is kept
    assert kept.bit_generator.state == place
    assert type(np.random.laplace()) is float
    assert record(drawn, DATA, DATA).sound  # and the next run is not refused


def test_runs_within_runs_are_refused():
    def nested(data):
        record(drawn, DATA, FEWER)

    def in_a_thread(data):
        refused = []
        thread = threading.Thread(target=lambda: refused.append(_refusal()))
        thread.start()
        thread.join()
        assert "under way" in refused[0]

    found = record(nested, DATA, FEWER)
    assert found.unchecked == ("what follows the RuntimeError that ended the run",)
    assert (found.outcome, found.cost) == (Outcome.INCONCLUSIVE, None)
    assert record(in_a_thread, DATA, FEWER).unchecked == ()


def _refusal():
    with pytest.raises(RuntimeError) as refused:
        record(drawn, DATA, FEWER)
    return str(refused.value)


def test_other_threads_draw_as_ever():
    kinds_of_numbers = []

    def starts_a_thread(data):
        thread = threading.Thread(target=lambda: kinds_of_numbers.append(type(np.random.laplace())))
        thread.start()
        thread.join()
        return 0

    assert record(starts_a_thread, DATA, FEWER).draws == 0
    assert set(kinds_of_numbers) == {float}


def test_a_result_is_printed_and_written_without_a_value_of_the_data():
    data, neighbour = np.array([1.0, -2, 3]), np.array([1.0, -2, 77.125])
    found = record(faulty.keeps_the_data, data, neighbour, claim=1.0)
    text = f"{found} {found.to_json()}"
    assert "77" not in text
    assert "3.0" not in text
    assert json.loads(found.to_json())["sound"] is False
    assert str(found).startswith("2 findings in 1 draw; the cost of this pair is not known")


def test_runs_repeat():
    once, again = (record(faulty.clipped_in_vain, ONES, 9 * ONES, claim=1.0) for _ in "ab")
    assert once == again


SEEDED = {
    "the argument": lambda rng: rng.permutation(30).tolist(),
    "a generator": lambda _: np.random.default_rng().permutation(30).tolist(),
    "a child of one": lambda _: np.random.default_rng().spawn(1)[0].permutation(30).tolist(),
    "the global state": lambda _: np.random.permutation(30).tolist(),
    "Python's module": lambda _: random.sample(range(99), 30),
    "Python's generator": lambda _: random.Random().sample(range(99), 30),
    "the operating system": lambda _: random.SystemRandom().sample(range(99), 30),
}


@pytest.mark.parametrize("source", SEEDED)
def test_the_seed_of_a_record_seeds_what_the_function_does_not(source):
    def numbers(seed):
        seen = []
        record(lambda data, rng: seen.append(SEEDED[source](rng)), ONES, ONES[:3], seed=seed)
        return seen

    assert numbers(3) == numbers(3) != numbers(4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"claim": "1"}, "claim must be"),
        ({"primitives": {"no.such:function": 1.0}}, "can be imported"),
        ({"primitives": {"laplace": "1"}}, "primitives must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(ParameterError, match=words):
        record(drawn, DATA, FEWER, **arguments)


def test_primitives_are_checked():
    with pytest.raises(ParameterError, match="one of 'l1'"):
        Primitive(norm="l3")
    declared = {faulty.selected: Primitive("scores", "no such argument")}
    found = record(faulty.scores_of_two_errors, np.array([0, 1]), np.array([1, 1]), declared)
    assert "ParameterError" in found.unchecked[0]


@pytest.mark.parametrize("sensitivity", [-1.0, float("nan"), "1"])
def test_a_declared_sensitivity_is_a_number_that_is_not_negative(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity must be"):
        sensitivity_of(Primitive(sensitivity=sensitivity), {})


def test_a_declared_function_of_the_arguments_returns_a_loss():
    with pytest.raises(ParameterError, match="a function that returns a Loss"):
        loss_of(Primitive(loss=lambda arguments: arguments["epsilon"]), {"epsilon": 1.0})


def test_a_claim_that_is_a_function_is_not_asked_of_a_run_without_a_result():
    def fails(data, rng):
        raise ValueError(data.sum() + rng.laplace())

    found = record(fails, ONES, ONES[:3], claim=lambda result: result.epsilon)
    assert (found.outcome, found.claimed) == (Outcome.INCONCLUSIVE, None)


def test_an_exception_of_one_run_alone_is_a_parting():
    def fails_on_large(data):
        if data.max() > 2:
            raise ValueError(str(data))
        return 0

    found = record(fails_on_large, np.ones(3), 3 * np.ones(3))
    assert [finding.kind for finding in found.findings] == ["control flow"]
    assert found.findings[0].sentence.endswith("a result, the second with ValueError")


def test_lost_noise_is_named_and_is_no_result():
    def hides(data, rng):
        hidden = 0 * data[:1]  # no array that was made to be written
        hidden[0] = rng.laplace()
        return data.sum() + hidden

    found = record(hides, DATA, FEWER, claim=1.0)
    assert [finding.kind for finding in found.findings] == ["lost noise"]
    assert "primitives" in found.findings[0].sentence


def test_a_noisy_array_that_was_used_and_written_is_computed_with():
    def centres(data):
        found = np.random.default_rng(5).uniform(-0.5, 0.5, (2, 3))
        for _ in range(2):
            nearest = ((data[:, None] - found) ** 2).sum(2).argmin(1)
            for k in range(2):
                total = data[nearest == k].sum(0) + np.random.laplace(scale=40.0, size=3)
                found[k] = np.clip(total, -1, 1)
        return found

    data = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 3))
    found = record(centres, data, data[::-1], claim=8.0)
    assert not any("RecursionError" in one for one in found.unchecked)


def test_other_data_keep_all_values_of_columns_of_names():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        data = rng.integers(0, 6, size=(20, 3)).astype(float)
        data[data == 5] = np.nan
        others = other_data(data, data[1:])
        for column, other in zip(data.T, others.T, strict=True):
            np.testing.assert_array_equal(np.unique(column), np.unique(other))


ROWS = np.random.default_rng(3).normal(size=(30, 2))
NAMES = [f"name {k}" for k in range(30)]
CHANGED = np.where(np.arange(30)[:, None] == 4, 9.0, ROWS)


def without(parts, *places):
    """The parts without the records at these places."""
    return tuple(
        np.delete(part, places, 0)
        if isinstance(part, np.ndarray)
        else [row for k, row in enumerate(part) if k not in places]
        for part in parts
    )


NEIGHBOURS = {
    "one row differs": (ROWS, CHANGED),
    "one row of one part differs": ((ROWS, NAMES), (CHANGED, NAMES)),
    "one row of a dict differs": ({"x": ROWS}, {"x": CHANGED}),
    "three records": (ROWS[:3], ROWS[:2]),
    **{f"record {k} is missing": ((ROWS, NAMES), without((ROWS, NAMES), k)) for k in (0, 7, 29)},
}
NO_NEIGHBOURS = {
    "no length": (3.0, 4.0),
    "two records": (ROWS[:2], ROWS[:1]),
    "no row differs": (ROWS, ROWS.copy()),
    "two rows differ": (ROWS, np.where(np.arange(30)[:, None] % 20 == 4, 9.0, ROWS)),
    "a part that is no records": ((ROWS, [0.5, 1.5]), (CHANGED, [0.5, 1.5])),
    "a part with more rows": ((ROWS, [*NAMES, "name"]), (CHANGED, [*NAMES, "name"])),
    "two records are missing": ((ROWS, NAMES), without((ROWS, NAMES), 7, 8)),
    "one record is missing, another differs": (ROWS, np.delete(CHANGED, 7, 0)),
    "a set, of unknown order": (set(NAMES), set(NAMES[1:])),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_other_data_are_of_as_many_records_of_the_same_data(name):
    data, neighbour = NEIGHBOURS[name]
    others = other_data(data, neighbour)
    assert type(others) is type(data)
    parts, other_parts = parts_of(data), parts_of(others)
    assert [len(part) for part in other_parts] == [len(part) for part in parts]
    records = [str(record_) for record_ in zip(*parts, strict=True)]
    assert {str(record_) for record_ in zip(*other_parts, strict=True)} <= set(records)
    # The greatest and the least number of the first column are left out.
    column = rows_of(parts[0])[:, 0]
    other_column = rows_of(other_parts[0])[:, 0]
    assert not {column.min(), column.max()} & set(other_column) or len(column) == 3


@pytest.mark.parametrize("name", NO_NEIGHBOURS)
def test_of_data_that_are_no_neighbours_in_one_record_there_are_no_other_data(name):
    assert other_data(*NO_NEIGHBOURS[name]) is None


@pytest.mark.parametrize(
    ("data", "neighbour", "missing"),
    [
        (ROWS, ROWS[1:], 0), (ROWS[1:], ROWS, 0), (ROWS, np.delete(ROWS, 7, 0), 7),
        (ROWS, ROWS[:-1], 29), (NAMES, NAMES[:-1], 29), (ROWS, CHANGED, None), (ROWS, ROWS, None),
        (ROWS, ROWS[2:], None), (NAMES, 3.0, None), (3.0, NAMES, None), (3.0, 4.0, None),
    ],
)  # fmt: skip
def test_the_missing_record_is_the_first_row_that_differs(data, neighbour, missing):
    assert missing_record(data, neighbour) == missing


def test_a_column_of_few_values_may_have_gaps():
    data = np.array([0.0, 1, 0, 1, np.nan, 0, 1, 1])
    found = record(lambda x, rng: np.nansum(x) + rng.laplace(), data, data[1:], claim=1.0)
    assert found.sound, found


@pytest.mark.parametrize(
    ("claim", "noise", "delta"),
    [  # Each costs less than is claimed at delta = 1e-5.
        (GaussianLoss(0.3), "laplace", 0.1),
        ((1.1, 1e-13), "gaussian", 1e-13),
    ],
)
def test_a_claim_is_compared_at_its_own_delta_and_a_curve_at_several(claim, noise, delta):
    def noisy_sum(data, rng):
        return data.sum() + (rng.laplace() if noise == "laplace" else rng.normal(scale=4.0))

    found = record(noisy_sum, ONES, ONES[1:], claim=claim)
    assert (found.outcome, found.delta) == (Outcome.FALSIFIED, delta)
    assert record(noisy_sum, ONES, ONES[1:], claim=claim, delta=1e-5).sound
    if noise == "gaussian":
        assert record(noisy_sum, ONES, ONES[1:], claim=GaussianLoss(0.25)).sound


def test_uniform_noise_smaller_than_a_move_hides_nothing():
    def shifted(data):
        return data.sum() + np.random.default_rng(0).uniform(-0.5, 0.5)

    found = record(shifted, np.ones(5), np.array([1.0, 1, 1, 1, 9]), claim=1.0)
    assert found.cost == float("inf")


def reciprocals(data, rng):
    return np.sum(1 / data) + rng.laplace()


def reciprocals_with_the_noise_of_the_sum(data, rng):
    return np.array([np.sum(data), np.sum(1 / data)]) + rng.laplace(scale=100.0)


def reciprocals_of_a_forced_noise(data, rng):
    first, second = rng.laplace(size=2)
    return np.array([np.sum(1 / data) + first, np.sum(data) + first + second])


@pytest.mark.parametrize("neighbour", [[1.0, 0.0], [1.0, -0.0], [1.0, np.nan]])
@pytest.mark.parametrize(
    "function",
    [reciprocals, reciprocals_with_the_noise_of_the_sum, reciprocals_of_a_forced_noise],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_no_noise_hides_an_infinite_value(function, neighbour):
    pair = np.array([1.0, 2.0]), np.array(neighbour)
    for data, other in (pair, pair[::-1]):
        found = record(function, data, other, claim=1.0)
        assert (found.sound, found.cost) == (False, np.inf)


def test_a_value_of_a_call_that_becomes_infinite_moved_too_far():
    with np.errstate(divide="ignore"):
        found = record(
            lambda data: faulty.selected(1 / data, 1.0, 2.0),
            *(np.array([1.0, 2.0]), np.array([1.0, 0.0])),
            faulty.SELECTION,
        )
    assert {finding.kind for finding in found.findings} == {"sensitivity"}


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 4.0), (-3.0, -1.0)])
def test_a_draw_by_inversion_costs_what_its_probabilities_differ(low, high):
    def selection(data, rng):
        scores = np.array([np.sum(data == label) for label in range(3)])
        weights = np.append(np.exp(scores / 2), 0.0)  # the last label never occurs
        levels = np.cumsum(weights / weights.sum())
        return np.sum(rng.uniform(low, high) > low + (high - low) * levels)

    labels, fewer_labels = np.array([0, 1, 0, 2]), np.array([0, 1, 0])
    before, after = (np.exp(np.array(counts) / 2) for counts in ([2, 1, 1], [2, 1, 0]))
    ratios = (before / before.sum()) / (after / after.sum())
    found = record(selection, labels, fewer_labels, claim=1.0)
    assert found.sound
    assert any(found.cost == pytest.approx(abs(np.log(ratio)), rel=1e-9) for ratio in ratios)


@pytest.mark.parametrize(
    "draw",
    [
        lambda data, rng: rng.uniform(0, 1 + data.sum(), size=len(data)),
        lambda data, rng: rng.uniform(0, 1 + data.sum() * np.ones(len(data)), size=len(data)),
        lambda data, rng: rng.standard_t(1 + data.sum(), size=len(data)),
    ],
)
def test_coins_of_records_whose_law_depends_on_other_records_are_found(draw):
    data = np.array([0.2, 0.5, 0.9, 0.3])
    verdict = record(lambda data, rng: draw(data, rng)[:2], data, data[:-1])
    assert "input" in {finding.kind for finding in verdict.findings}


def test_coins_of_records_in_a_number_that_depends_on_the_data_are_found():
    data = np.array([0.1, 0.9, 0.4, 0.3, 0.2, 0.8])
    for draw in ("uniform", "integers"):
        verdict = record(
            lambda data, rng, draw=draw: getattr(rng, draw)(
                0, 1 if draw == "uniform" else len(data), size=(len(data), 1 + int(10 * data.max()))
            ).shape[1],
            data,
            np.delete(data, 1),
        )
        assert "input" in {finding.kind for finding in verdict.findings}


COINS_OF_SIZES = {
    "permuted": lambda rng, n: rng.permuted(np.arange(n)),
    "permuted columns": lambda rng, n: rng.permuted(np.zeros((2, n)), axis=0),
    "permutation": lambda rng, n: rng.permutation(n),
    "shuffle": lambda rng, n: rng.shuffle(np.arange(n)),
    "integers": lambda rng, n: rng.integers(0, 9, size=n),
    "high": lambda rng, n: rng.integers(0, n),
    "choice": lambda rng, n: rng.choice(9, size=n),
    "binomial": lambda rng, n: rng.binomial(3, 0.5, size=n),
    "poisson": lambda rng, n: rng.poisson(3.0, size=n),
    "beta": lambda rng, n: rng.beta(2.0, 3.0, size=n),
    "laplace": lambda rng, n: rng.laplace(size=n),
}


@pytest.mark.parametrize("name", COINS_OF_SIZES)
def test_draws_in_a_number_that_depends_on_the_data_are_found(name):
    def draws(data, rng):
        COINS_OF_SIZES[name](rng, 20 + int(data.sum()))
        return data.sum() + rng.laplace()

    assert record(draws, ONES, ONES, claim=1.0).sound
    verdict = record(draws, ONES, 2 * ONES, claim=9.0)
    assert "input" in {finding.kind for finding in verdict.findings}


def test_coins_of_records_may_depend_on_their_own_record():
    data = np.array([0.1, 0.9, 0.4, 0.3, 0.2, 0.8])

    def noisy_sum(data, rng):
        return np.clip(rng.uniform(0, data, size=len(data)), 0, 1).sum() + rng.laplace(0, 1)

    assert record(noisy_sum, data, np.delete(data, 1)).sound


@pytest.mark.parametrize("high", [lambda n: 1.0, lambda n: np.full(n, 2.0), lambda n: [1.0] * n])
def test_coins_of_records_with_a_public_law_are_no_finding(high):
    data = np.array([0.2, 0.5, 0.9, 0.3])
    coins = record(
        lambda data, rng: rng.uniform(0, high(len(data)), size=len(data))[:2], data, data[:-1]
    )
    assert coins.sound


def test_the_loss_of_several_uniform_draws_is_not_known():
    def triangular_noise(data, rng):
        return data.sum() + rng.uniform(-5, 5) + rng.uniform(-5, 5)

    found = record(triangular_noise, DATA, FEWER, claim=1.0)
    assert found.cost is None
    assert "the loss of uniform noise compared" in found.unchecked[0]


def test_a_generator_that_is_wrapped_again_goes_on_from_where_it_was():
    is_same = []

    def two_names_of_one_generator(data):
        generator = np.random.default_rng(3)
        is_same.append(np.random.default_rng(generator) is generator)
        return data.sum() + generator.laplace(scale=4.0)

    assert record(two_names_of_one_generator, DATA, FEWER, claim=1.0).sound
    assert is_same
    assert all(is_same)


DRAWS = {
    "permutation of a number": lambda rng: rng.permutation(9),
    "permutation of rows": lambda rng: rng.permutation(np.arange(12).reshape(6, 2)),
    "permutation of columns": lambda rng: rng.permutation(np.arange(12).reshape(2, 6), axis=1),
    "permuted": lambda rng: rng.permuted(np.arange(12).reshape(2, 6), axis=1),
    "choice": lambda rng: rng.choice(np.arange(20), 5, replace=False),
    "laplace": lambda rng: rng.laplace(1.0, 2.0, 3),
    "uniform": lambda rng: rng.uniform(-1.0, 4.0, 3),
    "integers": lambda rng: rng.integers(100, size=4),
}


def shuffled(rng):
    rows = np.arange(12).reshape(6, 2)
    rng.shuffle(rows)
    return rows


@pytest.mark.parametrize("draw", [*DRAWS.values(), shuffled], ids=[*DRAWS, "shuffle"])
def test_outside_of_a_run_a_recording_generator_draws_what_a_plain_one_draws(draw):
    recording, plain = RecordingGenerator(np.random.PCG64(5)), np.random.default_rng(5)
    for _ in range(2):
        assert np.array_equal(draw(recording), draw(plain))


@pytest.mark.parametrize("name", ["zz_helper", "random_helper", "system_helper", "numpy_helper"])
def test_a_function_that_a_module_imported_by_name_is_followed_too(name, monkeypatch):
    # the last of all modules: those that are left alone come before it
    helper = types.ModuleType(name)
    exec("from numpy.random import laplace\ndef noisy(x): return x.sum() + laplace()", vars(helper))
    monkeypatch.setitem(sys.modules, name, helper)

    def noisy_by_the_module(x):
        return helper.noisy(x)

    found = record(noisy_by_the_module, ONES, ONES[:3], claim=1.0)
    assert (found.sound, found.draws, found.cost) == (True, 1, pytest.approx(1.0))


@pytest.mark.parametrize("library", ["numpy", "torch", "random", "secrets", "audits.recorded_runs"])
def test_modules_of_a_library_of_draws_keep_what_they_imported(library, monkeypatch):
    inner = types.ModuleType(f"{library}.of_this_test")
    inner.laplace = np.random.laplace
    monkeypatch.setitem(sys.modules, inner.__name__, inner)
    during_the_run = []

    def noisy(x):
        during_the_run.extend([id(inner.laplace), id(np.random.laplace)])
        return x.sum() + np.random.laplace()

    record(noisy, ONES, ONES[:3], claim=1.0)
    original = id(np.random.laplace)
    assert during_the_run[0] == original != during_the_run[1]


def test_a_call_that_no_code_of_the_user_makes_is_at_an_unknown_place(monkeypatch):
    assert call_sites.call_site().startswith(os.path.join("tests", "audits", "recorded_runs"))
    monkeypatch.setattr(call_sites, "PASSED_OVER", ["", *call_sites.PASSED_OVER])
    assert call_sites.call_site() == "unknown place"
    assert call_sites.draw_site() == ()


def test_lost_noise_names_its_line_and_the_remedy():
    def lost(x, rng):
        return float(str(rng.laplace())) + x.sum()

    (finding,) = record(lost, ONES, ONES[:3], claim=1.0).findings
    assert finding.kind == "lost noise"
    assert re.fullmatch(r"tests.*test_record.py:\d+", finding.site)
    assert re.search(r"noise drawn at .*test_record.* was lost .* `primitives`", finding.sentence)


def test_a_primitive_names_one_of_its_arguments():
    call = recording_call(faulty.selected, Primitive(value="y"))
    with running(Tape(0, None, None)), pytest.raises(ParameterError, match="'scores'"):
        call([1.0, 2.0], 1.0, 1.0)


def test_a_bound_that_depends_on_the_data_makes_a_comparison_count_as_released():
    # the draws before the comparison are other events than the question that is withdrawn
    def above_its_own_mean(x, rng):
        first, second = x.sum() + rng.laplace(), x.sum() + rng.laplace(scale=2.0)
        return first, second > x.sum() / 2

    found = record(above_its_own_mean, ONES, ONES[:3], claim=1.5)
    assert (found.sound, found.cost) == (True, pytest.approx(1.5))


def test_a_coin_that_is_charged_may_come_after_one_that_is_not():
    def two_coins(x, rng):
        return [bool(rng.random() < 0.3), bool(rng.random() < x)]

    found = record(two_coins, 0.5, 0.75)
    assert found.sound, found
    assert found.cost == pytest.approx(np.log(2), rel=1e-9)
