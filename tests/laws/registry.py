"""Every law, with the mutants that it must catch; `tests/mutants/test_mutants.py` tries them all.

A law is a function of what it judges: where it fails, "" where it holds.  A mutant stands beside
the right one, on which the law must hold.  Where a law has a tolerance, a mutant may be registered
with a wider one: it must fail by that much, while the right one holds within the law's own.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from accountant import (
    GDP,
    Budget,
    Ledger,
    LedgerCorrupt,
    OffPlan,
    PrivateValueError,
    Statistic,
    Tight,
    calibrate,
)
from accountant.numerics import search
from algorithms.label_privacy.report_decoders import RotatedGradientDecoder, SupportSetDecoder
from algorithms.voting.vote_collection import VoteCollector
from mechanisms import Laplace, piecewise_uniform
from mechanisms.exact_noise import integer_directions
from tests.accountant.book import test_verify_sentences
from tests.accountant.formats import test_written_plans
from tests.accountant.numerics import test_search
from tests.laws import (
    algorithms,
    test_accountants,
    test_adaptive_adversaries,
    test_agreement,
    test_audit_arguments,
    test_book_clocks,
    test_book_quotas,
    test_book_roles,
    test_book_terms,
    test_books,
    test_calibration,
    test_cells,
    test_certificates,
    test_composition_notions,
    test_correlated_noise,
    test_declared_shapes,
    test_decoders,
    test_directions,
    test_early_stops,
    test_error_bounds,
    test_exact,
    test_exact_selection,
    test_false_claims,
    test_false_files,
    test_fits,
    test_frames,
    test_gate,
    test_hockey_stick,
    test_joined_frames,
    test_lattices,
    test_ledger,
    test_lower_bounds,
    test_mixtures,
    test_neighbour_chains,
    test_neighbours,
    test_normalised,
    test_parameters,
    test_passes,
    test_power_cuts,
    test_ranked_frames,
    test_recorded_noise,
    test_refusals,
    test_repeated,
    test_replays,
    test_sampled_renyi,
    test_sampled_steps,
    test_sampler,
    test_summed_noise,
    test_values,
)
from tests.mutants import (
    accountants,
    adaptive_filters,
    additive,
    agreement,
    audit_arguments,
    book_roles,
    books,
    calibrations,
    cells,
    certificates,
    correlated_noise,
    declarations,
    declared_shapes,
    directions,
    early_stops,
    error_bounds,
    exact_selection,
    false_claims,
    fits,
    frames,
    frank_wolfe,
    gates,
    joined_frames,
    label_sgd,
    lasso,
    lattices,
    ledgers,
    local,
    logistic_regression,
    lower_bounds,
    mixtures,
    neighbour_chains,
    notions,
    passes,
    power_cuts,
    private_searches,
    ranked_frames,
    recorded_noise,
    refusals,
    regressions,
    repeated,
    replays,
    sampled_renyi,
    sampled_steps,
    searches,
    selection,
    sign_vote,
    specimens,
    summed_noise,
    vectors,
    verification,
    wrappers,
    written_plans,
)


class MutantCase(NamedTuple):
    """What the law must catch, what it must pass, how its words on the mutant begin.

    A tolerance, where there is one, is what the mutant must fail by.
    """

    wrong: Any
    right: Any
    words: str = ""
    tolerance: float | None = None


class Law(NamedTuple):
    """A law and its mutants by name."""

    violation: Callable[..., str]
    mutants: dict[str, MutantCase]


LAWS: dict[str, Law] = {}
CELL_MUTANTS: dict[str, Any] = {}


def register(name: str, violation: Callable[..., str], mutants: dict[str, Any]) -> None:
    """Add a law; a mutant is ``(wrong, right)``, and may have words and a tolerance behind it."""
    LAWS[name] = Law(violation, {key: MutantCase(*given) for key, given in mutants.items()})


# --- mechanisms: every mutant names its law

MECHANISM_LAWS = {
    "batch": test_sampler.batch_violation,
    "decoders": test_decoders.violation,
    "each": test_sampler.each_violation,
    "equality": test_values.equality_violation,
    "change": test_values.change_violation,
    "description": test_values.description_violation,
    "drawn": test_parameters.drawn_violation,
    "exact": test_exact.violation,
    "grid": test_exact.grid_violation,
    "hockey_stick": lambda mechanism: test_hockey_stick.violation(mechanism, 10),
    "mean": test_decoders.mean_violation,
    "neighbours": test_neighbours.violation,
    "normalised": test_normalised.violation,
    "seed": test_values.seed_violation,
    "shown": test_parameters.shown_violation,
}  # fmt: skip
WRONG_MECHANISMS = specimens.Mutant.__subclasses__()
MUTANT_FAMILIES = {
    specimens: 10, additive: 10, selection: 10, local: 10, vectors: 10, wrappers: 5,
    declarations: 8,
}  # fmt: skip


def mechanism_mutants(law: str) -> Iterable[type[specimens.Mutant]]:
    """The wrong mechanisms that name a law."""
    return [cls for cls in WRONG_MECHANISMS if cls.caught_by == law]


for _name, _violation in MECHANISM_LAWS.items():
    register(
        _name, _violation, {cls.__name__: (cls(), cls.honest) for cls in mechanism_mutants(_name)}
    )
register(
    "sampler", lambda drawn: test_sampler.violation(*drawn),
    {cls.__name__: ((cls(), cls.draws), (cls.honest, cls.draws))
     for cls in mechanism_mutants("sampler")},
)  # fmt: skip
register(
    "nonsense", lambda given: test_parameters.nonsense_violation(Laplace, *given),
    {"without_the_sign": ((-1.0, declarations.without_the_sign), (-1.0, Laplace)),
     "refuses_without_a_name": ((True, declarations.refuses_without_a_name), (True, Laplace))},
)  # fmt: skip
register(
    "number types", lambda make: test_parameters.type_violation(Laplace, make),
    {"decimals_are_percent": (declarations.decimals_are_percent, Laplace),
     "up_to_single_precision": (declarations.up_to_single_precision, Laplace)},
)  # fmt: skip

# --- exact samplers of cells

for _drawn, _right in (
    (cells.zero_has_one_cell, test_cells.truncated(3.7, 20)),
    (cells.cell_beyond_the_reach, test_cells.truncated(3.7, 20)),
    (cells.clipped_to_the_reach, test_cells.truncated(3.7, 7)),
    (cells.lower_part_first, test_cells.staircase(5, 2, 1.0)),
    (cells.first_level_as_wide_as_a_stair, test_cells.staircase(5, 2, 1.0)),
    (cells.negative_cells_moved, test_cells.staircase(5, 2, 1.0)),
):
    CELL_MUTANTS[_drawn.__name__] = (replace(_right, draw=_drawn), _right)
register("cells", test_cells.violation, CELL_MUTANTS)
register(
    "pieces", test_cells.piece_violation,
    {"piece_rounded_down": (cells.piece_rounded_down, piecewise_uniform.piece_cells)},
)  # fmt: skip
register(
    "caps", test_cells.cap_violation,
    {"floats_decide": (cells.floats_decide, integer_directions.in_cap)},
)  # fmt: skip
register(
    "tilts", test_cells.tilt_violation,
    {made.__name__: ((name, made), ())
     for name, made in (
         ("tilt_coins", cells.coin_forgotten), ("tilt_coins", cells.bound_beyond_the_least),
         ("tilt_coins", cells.coin_without_the_shift), ("long_enough", cells.short_vectors_too),
         ("sides", cells.another_side),
     )},
)  # fmt: skip

# --- accountants, certificates, calibration


def beside_its_base(*mutants: type) -> dict[str, tuple[Any, Any]]:
    """Wrong subclasses, each beside the class it was made of."""
    return {cls.__name__: (cls(), cls.__mro__[1]()) for cls in mutants}


register(
    "enumerated", test_accountants.epsilon_violation,
    beside_its_base(
        accountants.CountForgotten, accountants.ConversionWithoutPenalty, accountants.HalfTheRho,
        accountants.DeltaSpentTwice, accountants.DriftForgotten,
    ),
)  # fmt: skip
register(
    "enumerated delta", test_accountants.delta_violation,
    beside_its_base(accountants.DeltaHalved, accountants.EpsilonInsteadOfItsPower),
)  # fmt: skip
register(
    "agreement", test_agreement.violation,
    beside_its_base(
        agreement.DeltaOfAnotherLattice, agreement.DeltaOfASharperBound,
        agreement.EpsilonOfHalfTheDelta,
    ),
)  # fmt: skip
register("order", test_accountants.order_violation, beside_its_base(accountants.DeltaUpsideDown))


def under(patched: Callable[[Any], Any] | None, violation: Callable[[], str]) -> str:
    """What a law says while something is patched."""
    with pytest.MonkeyPatch.context() as patch:
        if patched is not None:
            patched(patch)
        return violation()


CERTIFICATE_MUTANTS = [
    found for name, found in vars(certificates).items()
    if inspect.isfunction(found) and list(inspect.signature(found).parameters) == ["patch"]
]  # fmt: skip
register(
    "certificates", lambda patched: under(patched, test_certificates.violation),
    {patched.__name__: (patched, None) for patched in CERTIFICATE_MUTANTS},
)  # fmt: skip

register(
    "mixtures", lambda patched: under(patched, test_mixtures.violation),
    {patched.__name__: (patched, None) for patched in mixtures.MUTANTS},
)  # fmt: skip

register(
    "passes", lambda patched: under(patched, test_passes.violation),
    {patched.__name__: (patched, None) for patched in passes.MUTANTS},
)  # fmt: skip

register(
    "repeated", lambda patched: under(patched, test_repeated.violation),
    {patched.__name__: (patched, None) for patched in (
        repeated.one_run_alone, repeated.the_number_is_free, repeated.the_mean_is_free,
        repeated.poisson_is_free, repeated.one_run_is_as_likely_on_both,
    repeated.the_greatest_ratio_is_halved, repeated.the_polygon_is_below,
    repeated.the_last_shift_is_left_out,
    )},
)  # fmt: skip

register(
    "sums of clients", lambda patched: under(patched, test_summed_noise.violation),
    {patched.__name__: (patched, None) for patched in summed_noise.BOUNDS},
)  # fmt: skip

register(
    "vectors of clients", lambda patched: under(patched, test_summed_noise.wrap_violation),
    {patched.__name__: (patched, None) for patched in summed_noise.VECTORS},
)  # fmt: skip

register(
    "sampled_renyi", lambda patched: under(patched, test_sampled_renyi.violation),
    {patched.__name__: (patched, None) for patched in sampled_renyi.MUTANTS},
)  # fmt: skip

register(
    "written plans", lambda patched: under(patched, test_written_plans.violation),
    {patched.__name__: (patched, None) for patched in written_plans.MUTANTS},
)  # fmt: skip

register(
    "lattices", lambda patched: under(patched, test_lattices.violation),
    {patched.__name__: (patched, None) for patched in lattices.MUTANTS},
)  # fmt: skip

register(
    "sensitivities of strategies",
    lambda patched: under(patched, test_correlated_noise.violation),
    {patched.__name__: (patched, None) for patched in correlated_noise.MUTANTS},
)  # fmt: skip
register(
    "runs of random steps", lambda patched: under(patched, test_sampled_steps.violation),
    {patched.__name__: (patched, None) for patched in sampled_steps.MUTANTS},
)  # fmt: skip
register(
    "noise of strategies", lambda patched: under(patched, test_correlated_noise.grid_violation),
    {patched.__name__: (patched, None) for patched in correlated_noise.GRID_MUTANTS},
)  # fmt: skip

for _name, _violation in test_error_bounds.LAWS.items():
    register(
        f"error bounds: {_name}", functools.partial(under, violation=_violation),
        {name: (term, None) for name, term in error_bounds.TERMS[_name].items()},
    )  # fmt: skip

for _name, _violation, _mutants in (
    ("false claims", test_false_claims.violation, false_claims.MUTANTS),
    ("false claims from below", test_false_claims.excess_violation, false_claims.FROM_BELOW),
    ("false files", test_false_files.violation, false_claims.FILES),
):
    register(
        _name,
        lambda given, violation=_violation: under(
            given[0], functools.partial(violation, given[1])
        ),
        {name: ((wrong, (case,)), (None, (case,))) for name, (case, wrong) in _mutants.items()},
    )  # fmt: skip

for _name, _violation in test_exact_selection.VIOLATIONS.items():
    register(
        f"exact {_name}", functools.partial(under, violation=_violation),
        {patched.__name__: (patched, None) for patched in exact_selection.MUTANTS[_name]},
    )  # fmt: skip

register(
    "declared shapes", lambda patched: under(patched, test_declared_shapes.violation),
    {patched.__name__: (patched, None) for patched in declared_shapes.MUTANTS},
)  # fmt: skip

for _name, _violation in test_recorded_noise.VIOLATIONS.items():
    register(
        _name, functools.partial(under, violation=_violation),
        {patched.__name__: (patched, None) for patched in recorded_noise.MUTANTS[_name]},
    )  # fmt: skip

MADE, TARGET = Laplace(1.0, 2.0), (1.0, 1e-6)
register(
    "calibration", lambda by: test_calibration.violation(MADE, *TARGET, by),
    {by.__name__: (by, calibrate) for by in (
        calibrations.a_thousandth_past, calibrations.far_from_the_target,
        calibrations.with_more_delta, calibrations.another_sensitivity,
    )},
)  # fmt: skip
register(
    "targets", lambda given: test_calibration.refusal_violation(MADE, *given),
    {"target_without_its_sign": ((-1.0, calibrations.target_without_its_sign), (-1.0, calibrate)),
     "truth_for_one": ((True, calibrations.truth_for_one), (True, calibrate))},
)  # fmt: skip

# --- searches

BISECTIONS = (
    searches.unchecked_midpoint, searches.failing_end, searches.exchanged, searches.evaluated_end,
)  # fmt: skip


def search_violation(check: Callable[..., None], bisection: Callable[..., float]) -> str:
    """What a search promises and does not keep with another bisection."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_bisect", bisection)
        try:
            check(0.0, 1.0, 0.3)
        except (AssertionError, KeyError) as error:
            return repr(error)
    return ""


for _check in (test_search.check_least, test_search.check_greatest):
    register(
        f"search: {_check.__name__}", functools.partial(search_violation, _check),
        {wrong.__name__: (wrong, search._bisect) for wrong in BISECTIONS},
    )  # fmt: skip

# --- ledgers: every test of tests/laws/test_ledger.py is a law

LEDGER_MUTANTS = {
    test_ledger.test_off_plan_is_refused_before_looking_or_drawing: [
        ledgers.QueriesBeforeCharging, ledgers.DrawsBeforeCharging, ledgers.NeverCharges,
    ],
    test_ledger.test_an_equal_mechanism_is_the_same_and_a_loss_leaf_takes_any_of_that_loss: [
        ledgers.WantsTheSameObject,
    ],
    test_ledger.test_what_is_no_mechanism_is_refused: [ledgers.TakesAnything],
    test_ledger.test_a_label_is_refused_where_no_answers_are_stored: [ledgers.IgnoresLabels],
    test_ledger.test_a_failing_query_is_charged_and_recorded: [ledgers.FailedQueryNotCharged],
    test_ledger.test_a_value_that_is_none_is_charged_too: [ledgers.RefundsBadValues],
    test_ledger.test_outputs_are_read_only_and_the_transcript_keeps_them: [
        ledgers.ReturnsTranscriptArray,
    ],
    test_ledger.test_a_query_may_look_and_not_touch: [ledgers.HandsOutWritableData],
    test_ledger.test_a_digest_keeps_no_answer: [ledgers.KeepsAnswersForDigests],
    test_ledger.test_parallel_users_open_parts_and_continue_them: [ledgers.AnswersAnyway],
    test_ledger.test_a_third_group_has_no_part: [ledgers.AnswersAnyway],
    test_ledger.test_a_query_of_each_user_sees_their_rows_only: [ledgers.ShowsEveryRow],
    test_ledger.test_releases_after_a_parallel_belong_to_the_next_node: [
        ledgers.LeavesAParallelEarly,
    ],
    test_ledger.test_one_charge_pays_for_one_value: [ledgers.ChargesABatchOnce],
    test_ledger.test_a_query_may_not_ask_the_ledger: [ledgers.AllowsNestedReleases],
    test_ledger.test_parallels_within_parallels_end_with_their_group: [
        ledgers.parts_that_wait_for_every_user,
    ],
    test_ledger.test_a_long_plan_is_not_unrolled: [ledgers.UnrollsOneRelease],
    test_ledger.test_coins_are_public_and_apart_from_the_noise: [ledgers.CoinsFromNoiseSeed],
    test_ledger.test_same_seed_same_answers_and_no_seed_other_answers: [ledgers.IgnoresTheSeed],
    test_ledger.test_shape_is_that_of_the_public_array_or_the_first: [ledgers.ShapeOfTheData],
    test_ledger.test_data_that_is_none_is_refused: [ledgers.TakesMissingNumbers],
    test_ledger.test_an_rng_that_is_none_is_refused: [ledgers.TakesNegativeSeeds],
    test_ledger.test_threads_never_spend_more_than_the_plan: [ledgers.LooksBeforeItLocks],
}  # fmt: skip
LEDGER_LAWS = [found for name, found in vars(test_ledger).items() if name.startswith("test_")]
# of the laws that are asked about several values: the one that the mutant gets wrong
LEDGER_VALUES = {
    test_ledger.test_what_is_no_mechanism_is_refused: test_ledger.A.loss,
    test_ledger.test_data_that_is_none_is_refused: [1.0, float("nan")],
    test_ledger.test_an_rng_that_is_none_is_refused: -1,
}


def ledger_violation(law: Callable[..., None]) -> Callable[[Any], str]:
    """A test of ledgers as a law: what it says of another class, or under a patch."""
    given = [LEDGER_VALUES[law]] if law in LEDGER_VALUES else []

    def violation(wrong: Any) -> str:
        with pytest.MonkeyPatch.context() as patch:
            if isinstance(wrong, type):
                patch.setattr(test_ledger, "Ledger", wrong)
            else:
                wrong(patch)
            try:
                law(*given)
            except (AssertionError, pytest.fail.Exception, OffPlan, PrivateValueError) as error:
                return repr(error)
        return ""

    return violation


for _law in LEDGER_LAWS:
    register(
        f"ledger: {_law.__name__.removeprefix('test_')}", ledger_violation(_law),
        {wrong.__name__: (wrong, Ledger) for wrong in LEDGER_MUTANTS.get(_law, [])},
    )  # fmt: skip

# --- gates: every test of tests/laws/test_gate.py is a law

GATE_MUTANTS = {
    test_gate.test_a_declared_class_is_final: {gates.subclasses_override: ()},
    test_gate.test_a_class_that_is_not_declared_is_refused: {gates.takes_what_it_calls_itself: ()},
    test_gate.test_what_is_not_declared_is_shown: {gates.names_no_class: ()},
    test_gate.test_what_an_undeclared_mechanism_says_of_itself_changes_no_other_cost: {
        gates.remembers_costs_by_equality: (),
    },
    test_gate.test_a_query_cannot_change_what_is_drawn: {
        gates.draws_from_what_was_asked: (Laplace,), gates.hands_out_its_own_copies: (Laplace,),
    },
    test_gate.test_an_answer_never_changes: {
        gates.sets_a_flag: (), gates.hands_out_the_recorded_answer: (),
    },
    test_gate.test_query_data_never_change: {gates.sets_a_flag: ("array",)},
    test_gate.test_workers_hand_in_what_the_mechanism_can_release: {
        gates.takes_any_output: ("rows",),
    },
    test_gate.test_workers_hand_in_an_output_for_each_user_of_an_undeclared_mechanism: {
        gates.asks_the_mechanism_alone: ((4,),),
    },
    test_gate.test_workers_cannot_change_what_the_gate_draws: {
        gates.hands_its_copy_to_workers: (),
    },
    test_gate.test_workers_of_others_are_shown: {gates.names_no_workers: ()},
    test_gate.test_masked_arrays_are_refused_with_the_remedy: {gates.ignores_masks: ()},
    test_gate.test_missing_entries_of_any_type_are_refused: {
        gates.looks_at_floats_alone: ("date",),
    },
    test_gate.test_data_are_known_by_their_class: {gates.trusts_an_attribute: ()},
    test_gate.test_no_message_shows_what_was_passed_for_the_query: {gates.shows_the_query: ()},
    test_gate.test_replay_compares_all_that_code_can_read: {
        gates.ignores_attributes: ("attribute",), gates.compares_numbers: ("sign",),
        gates.ignores_order_and_masks: ("order",),
    },
    test_gate.test_sound_says_what_it_rests_on: {
        gates.forgets_the_loss: (), gates.compares_one_array_with_itself: (),
    },
}  # fmt: skip
GATE_LAWS = [found for name, found in vars(test_gate).items() if name.startswith("test_")]


FAILURES = (AssertionError, pytest.fail.Exception)


def gate_violation(law: Callable[..., None]) -> Callable[[Any], str]:
    """A test of gates as a law: what it says under a patch, on the case that the patch breaks."""

    def violation(wrong: tuple[Callable[[Any], None], tuple[Any, ...]]) -> str:
        patched, case = wrong
        with pytest.MonkeyPatch.context() as patch:
            patched(patch)
            try:
                law(*case)
            except (*FAILURES, OffPlan, PrivateValueError, LedgerCorrupt) as error:
                return repr(error)
        return ""

    return violation


for _law in GATE_LAWS:
    register(
        f"gate: {_law.__name__.removeprefix('test_')}", gate_violation(_law),
        {wrong.__name__: ((wrong, case), (lambda patch: None, case))
         for wrong, case in GATE_MUTANTS.get(_law, {}).items()},
    )  # fmt: skip

# --- tests that are laws, each on the case that a patch breaks

PATCHED = {
    test_books.test_a_parallel_costs_the_dearest_part_in_each_coordinate: {
        books.largest_tuple: ("book", 1),
    },
    test_books.test_users_of_a_book_pay_each_for_themselves_and_the_total_is_the_worst_of_each: {
        books.worst_user_by_tuple: (1,),
    },
    test_books.test_a_chain_over_the_limit_in_one_coordinate_does_not_verify: {
        books.verifies_one_coordinate: ("pure, delta",),
        books.verifies_no_limit: ("zcdp",),
    },
    test_books.test_neighbours_of_two_kinds_do_not_mix_in_one_total: {
        books.mixes_neighbours: ("filter", "sampled, then replaced"),
        books.forgets_the_neighbours: ("book", "added, then replaced"),
    },
    test_books.test_rho_is_another_name_of_the_divergence_at_an_explicit_order: {
        books.two_limits: (8.0, Budget(4.0, 1e-6)),
    },
    test_books.test_a_long_log_is_read_once_and_in_order_however_it_is_paged: {
        books.loses_a_line_between_pages: (2,), books.stops_at_a_full_page: (7,),
        books.reads_a_line_twice: (7,),
    },
    test_books.test_what_was_rolled_back_is_forgotten: {
        books.remembers_what_was_rolled_back: (),
    },
    test_books.test_a_run_that_was_taken_meanwhile_is_no_proof_for_another: {
        books.proves_by_a_run_that_was_free: (), books.sets_one_run_aside_as_many: (),
    },
    test_book_terms.test_after_its_end_nothing_is_spent_in_any_process: {
        books.spends_after_the_end: ("closed",), books.keeps_the_terms_it_knew: ("closed",),
        books.trusts_the_clock: ("set back",),
    },
    test_book_terms.test_a_budget_never_falls_below_what_was_spent: {
        books.lowers_below_what_was_spent: ("zcdp",),
    },
    test_book_terms.test_terms_that_were_not_kept_do_not_verify: {
        books.verifies_no_end: ("after the end",), books.verifies_no_least_budget: ("too low",),
        books.verifies_any_delta: ("less delta",), books.verifies_no_time: ("back in time",),
        books.verifies_no_quota: ("quota",),
    },
    test_book_terms.test_an_author_never_spends_more_than_the_quota: {
        books.spends_over_the_quota: ("quota",), books.forgets_the_last_charge: ("quota",),
        books.forgets_what_was_before_quotas: ("spend",),
    },
    test_book_terms.test_no_window_holds_more_than_its_budget: {
        books.trusts_the_clock_in_windows: ("month", 0),
        books.counts_shorter_windows: ("30 days", 0), books.forgets_a_month: ("month", 2),
        books.carries_for_ever: ("month", 2),
        books.carries_from_before_the_opening: ("30 days", 2),
    },
    test_book_clocks.test_windows_count_by_the_definition_whatever_clocks_say: {
        books.believes_every_clock: ("month", 0),
        books.believes_a_step_of_two_days: ("day", 1),
        books.spends_by_a_clock_that_is_ahead: ("month", 0),
        books.corrects_what_was_reached_step_by_step: ("day", 0),
        books.corrects_by_a_clock_that_is_ahead: ("month", 0),
        books.gives_back_what_a_wrong_clock_spent: ("7 days", 0),
        books.corrects_what_the_last_charge_states: ("month", 0),
    },
    test_book_quotas.test_a_book_keeps_quotas_as_a_dictionary_does: {
        books.forgets_the_last_charge: ("plain", 0),
        books.forgets_what_was_before_quotas: ("users", 0),
        books.forgets_quotas_at_the_change_over: ("listed quota", 0),
        books.counts_quotas_by_a_wrong_clock: ("month", 1),
        books.counts_users_of_a_quota_together: ("users", 1),
    },
    test_book_terms.test_each_bucket_pays_for_what_touches_it_and_for_nothing_else: {
        books.charges_one_bucket: (0,), books.adds_up_buckets: (0,),
        books.forgets_what_a_bucket_spent: (1,),
    },
    test_book_terms.test_limits_that_were_not_kept_do_not_verify: {
        books.verifies_no_parts: ("parts",), books.verifies_no_buckets: ("buckets",),
        books.verifies_no_runs: ("runs",),
    },
    test_book_roles.test_the_log_refuses_what_verify_finds_and_no_more: {
        book_roles.lets_analysts_raise: ("analyst",),
        book_roles.lets_analysts_set_aside: ("analyst",),
        book_roles.writes_whatever_the_role: ("auditor",),
        book_roles.verifies_no_role: ("curator",),
    },
    test_book_roles.test_one_curator_gives_nothing_more_alone: {
        book_roles.verifies_one_curator: (test_book_roles.no_proposal,),
        book_roles.approves_its_own_proposal: (test_book_roles.the_same_curator_twice,),
        book_roles.approves_another_change: (test_book_roles.another_change,),
        book_roles.approves_twice: (test_book_roles.a_proposal_that_was_used,),
        book_roles.verifies_other_roles_of_one: (test_book_roles.roles_alone,),
        book_roles.verifies_a_later_end_of_one: (test_book_roles.a_later_end,),
        book_roles.spends_what_one_curator_gave: (test_book_roles.no_proposal,),
        book_roles.spends_by_the_last_terms_alone: (test_book_roles.a_raise_that_a_quota_hides,),
    },
    test_book_roles.test_one_curator_gives_nothing_more_where_the_data_set_asks_for_two: {
        book_roles.spends_what_one_curator_of_a_data_set_gave: (test_book_roles.no_proposal,),
    },
    test_book_roles.test_a_data_set_that_asks_for_two_curators_goes_on_asking: {
        book_roles.asks_no_more_by_new_terms: (test_book_roles.terms_that_ask_no_more,),
        book_roles.lets_one_curator_be_two: (test_book_roles.one_key_more,),
    },
    test_book_roles.test_a_data_set_asks_for_two_curators_by_itself: {
        book_roles.raises_for_one_where_the_data_set_asks_for_two: (),
    },
    test_book_roles.test_earlier_versions_only_read_where_a_data_set_asks_for_two: {
        book_roles.lets_earlier_versions_write: (),
    },
    test_book_roles.test_what_one_curator_gave_is_not_hidden_by_older_roles: {
        book_roles.spends_by_the_roles_that_are_stated: (),
    },
    test_book_roles.test_one_curator_closes_what_one_curator_raised: {
        book_roles.changes_what_one_curator_gave: (),
    },
    test_book_roles.test_a_step_after_an_end_that_one_curator_moved_is_refused: {
        book_roles.makes_steps_after_an_end_that_one_curator_moved: (),
    },
    test_book_roles.test_the_log_raises_a_budget_for_as_many_curators_as_it_needs: {
        book_roles.raises_for_one: (2,),
    },
    test_book_roles.test_nobody_writes_with_a_key_that_the_roles_in_force_do_not_name: {
        book_roles.verifies_no_signature: (test_book_roles.a_key_that_signs_as_another,),
        book_roles.verifies_by_any_roles: (test_book_roles.a_removed_key_by_old_roles,),
    },
    test_lower_bounds.test_information_is_bounded_and_nearly_attained: {
        lower_bounds.halves_the_energy: (0.3, 0.01), lower_bounds.halves_the_data: (0.3, 40.0),
    },
    test_lower_bounds.test_distances_bound_what_randomised_response_says: {
        lower_bounds.halves_bhatia_and_davis: (2, 1.0),
        lower_bounds.halves_the_distances: (2, 1.0),
    },
    test_lower_bounds.test_chi_squared_bounds_hold_and_are_those_of_the_proof: {
        lower_bounds.halves_chi_squared: (0.3, 0.1),
    },
    test_lower_bounds.test_correlations_of_an_estimate_hold_and_are_those_of_the_proof: {
        lower_bounds.halves_the_correlation: (2, 0.3, 0.0),
        lower_bounds.halves_the_leak: (2, 0.3, 1e-3),
    },
    test_lower_bounds.test_the_overlap_of_a_pair_is_that_of_randomised_response: {
        lower_bounds.doubles_the_overlap: (1, 0.01, 0.0),
    },
    test_lower_bounds.test_the_chance_of_a_group_is_the_iterated_one_of_its_people: {
        lower_bounds.moves_one_person_less: (0,),
    },
    test_lower_bounds.test_one_count_has_the_epsilon_of_the_discrete_laplace_distribution: {
        lower_bounds.only_reaches_the_error: (3, 0.95),
    },
    test_lower_bounds.test_a_trace_is_that_of_noise_at_the_ends_of_its_errors: {
        lower_bounds.cuts_at_the_error: (4.0,), lower_bounds.counts_failures_as_moves: (4.0,),
    },
    test_lower_bounds.test_values_that_exact_answers_tell_apart_are_counted: {
        lower_bounds.counts_one_value_more: (Statistic("count", 2.0),),
    },
    test_lower_bounds.test_the_chance_of_matches_is_above_the_exact_one: {
        lower_bounds.guesses_one_more: (0,),
    },
    test_lower_bounds.test_so_many_people_move_an_answer_from_below_its_error_to_above_it: {
        lower_bounds.only_reaches_the_error: (Statistic("sum", 3.0), 7),
    },
    test_lower_bounds.test_so_many_wrong_answers_are_seldom_exceeded: {
        lower_bounds.counts_one_wrong_answer_more: (),
    },
    test_lower_bounds.test_a_trace_is_refuted_where_its_mean_is_above_the_integral: {
        lower_bounds.takes_the_right_ends: (1.0, 1e-6, 1.0),
    },
    test_early_stops.test_an_honest_one_sided_release_is_seldom_convicted: {
        early_stops.first_values_first: (6000,),
    },
    test_directions.test_epsilon_of_a_pair_is_the_enumerated_one: {
        directions.epsilon_of_the_better_direction: ("two outcomes", 1e-3),
    },
    test_directions.test_facts_are_the_same_in_both_directions: {
        directions.epsilon_of_one_direction: ("two outcomes",),
        directions.delta_of_one_direction: ("two outcomes",),
    },
    test_directions.test_a_mass_on_one_side_alone_counts_in_both_directions: {
        directions.one_sided_masses: (),
    },
    test_directions.test_an_accountant_asks_for_both_directions: {
        directions.one_direction_of_a_plan: ("two outcomes", Tight()),
    },
    test_directions.test_no_accountant_claims_a_smaller_delta_than_there_is: {
        directions.deltas_of_no_noise: (GDP(),),
    },
    test_directions.test_a_filter_charges_the_worse_direction: {
        directions.one_direction_in_sums: ("two outcomes", "rdp"),
        directions.one_direction_of_epsilons: ("sampled pair", "pure"),
    },
    test_directions.test_running_totals_are_the_same_in_both_directions: {
        directions.one_direction_of_divergences: ("steep",),
    },
    test_directions.test_divergences_of_a_sampled_pair_are_the_sums_over_its_outcomes: {
        directions.weighs_a_sample_with_the_other_side: ("sampled pair", 2.0),
    },
    test_directions.test_a_cap_on_a_sampled_divergence_is_that_of_the_worse_direction: {
        directions.one_direction_caps_a_sample: (8.0,),
    },
    test_directions.test_a_sampled_divergence_is_above_that_of_a_part_whose_laws_hardly_meet: {
        directions.a_part_caps_a_sample_that_has_more: (2.0,),
    },
    test_audit_arguments.test_every_audit_is_in_the_table: {
        audit_arguments.has_another_audit: (),
    },
    test_audit_arguments.test_a_confidence_is_between_0_and_1: {
        audit_arguments.takes_confidences_at_the_ends: ("watch",),
        audit_arguments.takes_any_confidence_of_a_sensitivity: ("audit of a sensitivity",),
    },
    test_audit_arguments.test_a_type_one_error_is_between_0_and_1: {
        audit_arguments.errors_below_0: (), audit_arguments.errors_above_1: (),
    },
    test_audit_arguments.test_an_error_that_is_none_proves_nothing: {
        audit_arguments.proves_without_an_error: (-0.1, 0.01),
    },
    test_audit_arguments.test_an_option_that_would_be_passed_over_is_refused: {
        audit_arguments.passes_over_an_executor: ("an executor",),
        audit_arguments.passes_over_a_delta: ("a delta",),
        audit_arguments.passes_over_an_early_stop: ("an early stop",),
        audit_arguments.passes_over_a_score: ("a score",),
    },
    test_audit_arguments.test_a_sensitivity_is_of_records_that_are_replaced: {
        audit_arguments.adds_and_removes: ("histogram",),
    },
    test_audit_arguments.test_neighbours_differ_in_one_record_unless_others_are_asked_for: {
        audit_arguments.compares_others_by_default: ("probe_sensitivity",),
    },
    test_audit_arguments.test_all_that_take_a_relation_are_in_the_table: {
        audit_arguments.has_another_relation: (),
    },
    test_audit_arguments.test_a_sensitivity_is_1_in_the_sum_of_all_changes_unless_it_is_declared: {
        audit_arguments.takes_more_for_1: (),
    },
    test_audit_arguments.test_a_pair_is_compared_as_it_is_and_in_its_norm: {
        audit_arguments.compares_in_one_norm: (),
    },
    test_neighbour_chains.test_all_that_is_compared_are_neighbours: {
        neighbour_chains.replaces_the_only_record: ("one record", "add-remove"),
        neighbour_chains.removes_a_replaced_record: ("numbers", "replace-one"),
        neighbour_chains.moves_out_of_the_box: ("around 0", "each"),
        neighbour_chains.moves_by_two: ("around 0", "each"),
        neighbour_chains.adds_a_hostile_record_twice: ("rows", "replace-one"),
        neighbour_chains.exchanges_a_hostile_record: ("numbers", "add-remove"),
        neighbour_chains.takes_two_stairs_at_once: ("whole", "replace-one"),
        neighbour_chains.reorders_what_has_an_order: ("numbers", "replace-one"),
    },
    test_neighbour_chains.test_every_kind_of_neighbour_is_tried_where_it_belongs: {
        neighbour_chains.keeps_every_order: ("replace-one",),
        neighbour_chains.never_empties_the_data: ("add-remove",),
    },
    test_neighbour_chains.test_whole_numbers_have_no_hostile_records: {
        neighbour_chains.hostile_whole_numbers: (),
    },
    test_neighbour_chains.test_a_single_record_is_removed_and_not_replaced: {
        neighbour_chains.replaces_the_only_record: (),
    },
    test_neighbour_chains.test_what_is_no_data_set_of_numbers_has_no_box: {
        neighbour_chains.box_of_nothing: ("no records",),
    },
    test_neighbour_chains.test_neighbours_of_one_number: {
        neighbour_chains.moves_out_of_the_box: ("each",),
    },
    test_neighbour_chains.test_a_box_has_a_size: {neighbour_chains.box_of_any_size: ((0,),)},
    test_neighbour_chains.test_a_data_set_lies_in_its_box: {
        neighbour_chains.box_of_twice_the_width: ("equal",),
    },
    test_refusals.test_every_gate_and_every_entrance_is_in_the_table: {
        refusals.has_another_entrance: (),
    },
    test_refusals.test_what_is_refused_spends_draws_and_sees_nothing: {
        refusals.releases_what_is_closed: ("BookLedger",),
    },
    test_refusals.test_nothing_is_asked_from_inside_of_a_request: {
        refusals.blocks_within_a_query: ("Ledger",), refusals.releases_within_a_query: ("Ledger",),
        refusals.labels_within_a_query: ("BookLedger",),
        refusals.spends_of_a_book_within_a_query: ("BookLedger of users",),
        refusals.spends_of_a_filter_within_a_query: ("Filter",),
        refusals.plans_of_a_filter_within_a_query: ("Filter",),
        refusals.plans_of_a_book_within_a_query: ("BookLedger",),
        refusals.checks_within_a_query: ("Filter",),
        refusals.forgets_that_it_answers: ("Odometer",),
    },
    test_refusals.test_workers_that_fail_are_not_passed_over: {
        refusals.passes_over_failed_work: (2, 1, "raises", "array"),
        refusals.passes_over_failed_work_in_the_middle: (20, 1, "raises", "array"),
        refusals.passes_over_lost_pieces: (2, 1, "is cancelled", "held by workers"),
        refusals.takes_nothing_for_answers: (2, 1, "returns nothing", "array"),
    },
    test_power_cuts.test_every_way_to_write_to_a_book_is_in_the_table: {
        power_cuts.has_another_way_to_write: (),
    },
    test_power_cuts.test_nothing_is_seen_or_answered_before_it_is_on_disk: {
        power_cuts.flushes_nothing: ("release",), power_cuts.forgets_to_flush: ("spend",),
        power_cuts.flushes_too_early: ("release",), power_cuts.flushes_another_file: ("spend",),
        power_cuts.flushes_twice: ("spend",), power_cuts.pins_in_memory: ("release",),
        power_cuts.pins_nothing: ("dataset",),
        books.forgets_the_users_of_a_step: ("release_blocks",),
    },
    test_power_cuts.test_what_was_committed_to_a_log_that_was_removed_is_not_answered: {
        power_cuts.writes_to_a_log_that_was_removed: ("spend", 1),
    },
    test_power_cuts.test_what_each_object_of_a_book_writes_is_on_disk: {
        power_cuts.flushes_for_one_object_alone: (True,), power_cuts.pins_nothing: (True,),
        power_cuts.flushes_too_early: (False,),
    },
    test_power_cuts.test_an_end_that_is_pinned_or_noted_is_on_disk: {
        power_cuts.notes_what_is_not_flushed: ("verify",),
    },
    test_power_cuts.test_a_cut_within_a_flush_loses_nothing_that_was_known: {
        power_cuts.flushes_too_early: (0,), power_cuts.flushes_another_file: (0,),
    },
    test_power_cuts.test_the_file_itself_is_flushed_by_sqlite_before_its_log_is_used_anew: {
        power_cuts.checkpoints_unflushed: (),
    },
    test_replays.test_a_refusal_that_the_data_decide_is_off_plan: {
        replays.forgives_refusals: ("no mechanism",),
        replays.forgives_refusals_of_the_plan: ("a release past the plan",),
        replays.forgives_refusals_that_are_missing: ("a release past the plan",),
    },
    test_replays.test_a_refusal_on_all_data_is_on_plan: {
        replays.calls_every_refusal_another: ("a release past the plan",),
    },
    test_replays.test_what_was_refused_is_compared_too: {
        replays.compares_places_of_refusals_alone: ("another mechanism",),
    },
    test_replays.test_two_users_whose_values_change_are_too_many: {
        replays.forgives_two_users: (2, 20), replays.counts_users_of_one_release: (2, 1),
    },
    test_replays.test_the_loss_of_a_sampled_release_is_that_of_its_mixture: {
        replays.takes_a_sample_for_public: ("removed",),
    },
    test_replays.test_too_little_noise_under_a_sample_is_seen: {
        replays.leaves_samples_unknown: (),
    },
    test_replays.test_a_record_that_is_replaced_in_a_sample_is_not_checked: {
        replays.takes_a_replaced_record_for_an_added_one: (),
    },
}  # fmt: skip
PATCHED_LAWS = [
    found for module in (
        test_audit_arguments, test_book_clocks, test_book_quotas, test_book_roles, test_book_terms,
        test_books,
        test_directions, test_early_stops,
        test_lower_bounds, test_neighbour_chains, test_power_cuts, test_refusals, test_replays,
    )
    for name, found in vars(module).items() if name.startswith("test_")
]  # fmt: skip
for _law, _mutants in PATCHED.items():
    _room, _name = (one.rpartition("test_")[2] for one in (_law.__module__, _law.__name__))
    register(
        f"{_room}: {_name}", gate_violation(_law),
        {wrong.__name__: ((wrong, case), (lambda patch: None, case))
         for wrong, case in _mutants.items()},
    )  # fmt: skip

# of the table of refusals, the gate and the rows that a mutant gets wrong
REFUSAL_MUTANTS = {
    refusals.samples_of_each_user: ("Filter", "a secret sample"),
    refusals.samples_of_blocks: ("Ledger", "a secret sample"),
    refusals.releases_in_two_processes: ("Odometer", "another process"),
    refusals.spends_of_a_filter_in_two_processes: ("Filter", "another process"),
    refusals.plans_of_a_filter_in_two_processes: ("Filter", "another process"),
    refusals.plans_of_a_book_in_two_processes: ("BookLedger", "another process"),
    refusals.checks_in_two_processes: ("Ledger", "another process"),
    refusals.checks_what_is_not_declared: ("Filter", "what is not declared"),
    refusals.plans_of_a_closed_book: ("BookLedger", "a closed gate"),
    refusals.checks_what_is_closed: ("BookLedger of a plan", "a closed gate"),
    refusals.takes_any_executor: ("Ledger", "executor that"),
    refusals.takes_any_reduction: ("Filter", "reduce that"),
    refusals.takes_any_query: ("Ledger", "a query"),
    refusals.checks_no_plan_of_a_book: ("BookLedger of a plan", "off the plan"),
    refusals.users_below_the_first: ("Ledger", "who that"),
    refusals.users_beyond_the_last: ("Filter", "who that"),
    refusals.users_twice: ("Odometer", "who that"),
    refusals.masks_of_any_length: ("Ledger", "who that"),
    refusals.steps_along_any_plan: ("CoupledGate", "off the plan"),
    refusals.takes_what_is_not_declared: ("Ledger", "what is not declared"),
}
register(
    "refusals: some of the table", gate_violation(test_refusals.refuses_all),
    {wrong.__name__: ((wrong, case), (lambda patch: None, case))
     for wrong, case in REFUSAL_MUTANTS.items()},
)  # fmt: skip

register(
    "sentences of verify",
    lambda given: under(given[0], lambda: test_verify_sentences.violation(given[1])),
    # what is right is held against every case by its own tests
    {f"says nothing: {name}: {words}": ((patched, words), (None, ""))
     for (_, name, words), patched in verification.SILENT.items()
     if any(case.says in words for case in test_verify_sentences.CASES)}
    | {patched.__name__: ((patched, words), (None, ""))
       for patched, words in verification.PARTIAL.items()},
)  # fmt: skip

# --- notions of composition: every test of tests/laws/test_composition_notions.py is a law

NOTION_MUTANTS = {
    test_composition_notions.test_a_sum_is_never_below_the_exact_one: {
        notions.rounds_sums_to_nearest: "zcdp", notions.forgets_masses_at_infinity: "pure",
    },
    test_composition_notions.test_a_product_is_never_below_the_exact_one: {
        notions.rounds_products_to_nearest: "zcdp", notions.counts_one_more: "pure",
    },
    test_composition_notions.test_the_largest_is_no_less_than_any_in_either_coordinate: {
        notions.takes_the_last_part: "pure", notions.compares_what_was_spent_alone: "gdp",
    },
    test_composition_notions.test_the_limit_is_one_of_both_coordinates: {
        notions.limits_what_was_spent_alone: "pure",
        notions.limits_masses_at_infinity_alone: "rdp",
    },
    test_composition_notions.test_a_total_within_the_limit_is_within_the_budget: {
        notions.takes_a_tenth_more_delta: "zcdp",
    },
    test_composition_notions.test_a_total_comes_back_from_its_words_to_the_last_bit: {
        notions.writes_six_digits: "pure", notions.drops_the_last_bits: "gdp",
    },
    test_composition_notions.test_a_loss_costs_the_same_in_both_directions: {
        notions.looks_at_one_direction: "rdp",
    },
    test_composition_notions.test_a_notion_holds_no_total: {
        notions.goes_on_from_the_last_total: "zcdp",
    },
    test_composition_notions.test_a_plan_costs_its_parts_and_a_parallel_its_largest: {
        notions.adds_parts_up: "rdp",
    },
}  # fmt: skip
NOTION_LAWS = [
    found for name, found in vars(test_composition_notions).items() if name.startswith("test_")
]


def notion_violation(law: Callable[..., None]) -> Callable[[Any], str]:
    """A test of notions as a law: what it says of one notion, under a patch or none."""
    given = {"count": 7} if "count" in inspect.signature(law).parameters else {}

    def violation(case: tuple[str, Callable[[Any], Any] | None]) -> str:
        name, patched = case
        with pytest.MonkeyPatch.context() as patch:
            if patched is not None:
                patched(patch)
            try:
                law(name=name, **given)
            except (AssertionError, pytest.fail.Exception) as error:
                return repr(error)
        return ""

    return violation


for _law in NOTION_LAWS:
    register(
        f"notions: {_law.__name__.removeprefix('test_')}", notion_violation(_law),
        {wrong.__name__: ((name, wrong), (name, None))
         for wrong, name in NOTION_MUTANTS.get(_law, {}).items()},
    )  # fmt: skip

register(
    "adaptive adversaries", test_adaptive_adversaries.violation,
    {wrong.__name__: (wrong, test_adaptive_adversaries.honest)
     for wrong in adaptive_filters.MUTANTS},
)  # fmt: skip

# --- algorithms

register(
    "privacy losses", algorithms.losses_violation,
    {f"{module.__name__.rsplit('.', 1)[-1]}.{name}": pair
     for module in (lasso, frank_wolfe, label_sgd, sign_vote)
     for name, pair in module.LOSSES.items()},
)  # fmt: skip
register(
    "no leak", algorithms.leak_violation,
    lasso.LEAKS | frank_wolfe.LEAKS | label_sgd.LEAKS | sign_vote.LEAKS | regressions.LEAKS
    | logistic_regression.LEAKS,
)  # fmt: skip
register(
    "on plan", algorithms.plan_violation,
    lasso.PLANS | frank_wolfe.PLANS | label_sgd.PLANS | sign_vote.PLANS | logistic_regression.PLANS,
)  # fmt: skip
register("audited", algorithms.audit_violation, regressions.REFUTED | logistic_regression.REFUTED)
register("declared sensitivities", algorithms.sensitivity_violation, regressions.SENSITIVITIES)
register("searches replay", algorithms.search_violation, private_searches.SEARCHES)
register("fits replay", test_fits.replay_violation, fits.REPLAYED)
register("kinds of fits", test_fits.kinds_violation, fits.KINDS)
register("within budget", algorithms.budget_violation, label_sgd.BUDGETS)
register(
    "noise of blocks", algorithms.blocks_violation,
    {"SameNoiseInEveryBlock": (
        regressions.SameNoiseInEveryBlock, Ledger, "1 kinds of noise in 6 blocks")},
)  # fmt: skip
register(
    "one vote a machine", algorithms.votes_violation,
    {"AddsSecondVote": (sign_vote.AddsSecondVote, VoteCollector)},
)  # fmt: skip
register(
    "selected vertices", lambda make, *by: algorithms.selection_violation(make(), *by),
    {"StaleMargins": (
        frank_wolfe.stale_margins, frank_wolfe.right_margins, "total variation", 0.1)},
)  # fmt: skip
register(
    "bounds of scores", lambda make: algorithms.score_bound_violation(make()),
    {"NoSlack": (
        frank_wolfe.no_slack, frank_wolfe.right_slack, "value must be scores that do not exceed")},
)  # fmt: skip
register(
    "unbiased coefficients", algorithms.coefficient_violation,
    {"OffsetForgotten": (
        label_sgd.OffsetForgotten(label_sgd.UNARY), SupportSetDecoder(label_sgd.UNARY),
        "a bias of", 0.1),
     "DecodesAsRappor": (
        label_sgd.DecodesAsRappor(label_sgd.UNARY),
        SupportSetDecoder(label_sgd.UNARY, centred=True), "a bias of", 0.1)},
)  # fmt: skip
register(
    "unbiased gradients", algorithms.rotated_violation,
    {"WithoutCentre": (
        label_sgd.WithoutCentre(label_sgd.DUCHI), RotatedGradientDecoder(label_sgd.DUCHI),
        "a bias of", 0.15)},
)  # fmt: skip
register(
    "second moments", algorithms.second_moment_violation,
    {"lost_second_moment": (
        label_sgd.lost_second_moment,
        lambda: SupportSetDecoder(label_sgd.UNARY).second_moment,
        "", 1.0)},  # less than half of the exact one
)  # fmt: skip
register(
    "moves of frames", test_frames.violation,
    {wrong.__name__: (test_frames.Asking(**{name: wrong}), test_frames.Asking())
     for name, wrong in frames.WRONG},
)  # fmt: skip
register(
    "moves of joined frames", test_joined_frames.violation,
    {wrong.__name__: (test_joined_frames.Asking(**{name: wrong}), test_joined_frames.Asking())
     for name, wrong in joined_frames.WRONG},
)  # fmt: skip
register(
    "moves of ranks and keys", test_ranked_frames.violation,
    {wrong.__name__: (test_ranked_frames.Asking(**{name: wrong}), test_ranked_frames.Asking())
     for name, wrong in ranked_frames.WRONG},
)  # fmt: skip
