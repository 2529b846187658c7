"""Files of wanted releases, to and from TOML and JSON, and hostile ones."""

import pytest
from hypothesis import given

from accountant import Budget, Deviation, Maximum, ParameterError, Selection, Wanted
from accountant.formats.plan_file import PlanFile, plan_file_of_document
from accountant.formats.plan_toml import PlanSyntaxError, file_from_toml, read_plan
from accountant.formats.request_tables import Template
from accountant.formats.toml_writer import file_to_json, file_to_toml
from accountant.serialisation.plan_json import PlanFileError, parse_document
from accountant.serialisation.registry import plan_kinds
from mechanisms import Gaussian, Laplace, NoisyMax
from tests.accountant.example_files import WANTED
from tests.strategies import plan_files, printable_names


def test_a_file_of_requests_is_read():
    file = file_from_toml(WANTED)
    assert file.budget == Budget(1.0, 1e-6)
    ages, top, sampled, fixed = file.releases
    assert ages == Wanted(Laplace, Deviation(), sensitivity=2.0, count=12, weight=1.0, name="ages")
    assert top == Wanted(NoisyMax, Selection(100), count=4, target=120.0, name="top diagnosis")
    assert isinstance(sampled.family, Template)
    assert sampled.plan(3.0).part == Gaussian(3.0)
    assert sampled.error_at(3.0) == Gaussian(3.0).deviation
    assert fixed == Wanted(Gaussian(60.0), Maximum(30))


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"),
    [
        ("epsilon = 1.0", "epsilon = nan", 3, 1, "budget.epsilon must be a number"),
        ("epsilon = 1.0", "", 2, 2, "given with epsilon"),
        ("delta = 1e-6", "detla = 1e-6", 4, 1, "absent: a budget has epsilon, delta"),
        ("[budget]", "[bugdet]", 2, 2, "unknown key 'bugdet'"),
        ("weight = 1.0", "weight = 0", 11, 1, "weight must be a number"),
        ("weight = 1.0", "weight = 1.0\ntarget = 3", 6, 3, "given one of scale, target and weight"),
        ("weight = 1.0", "weight = 1.0\nscale = 3", 6, 3, "absent where the noise is given"),
        ("weight = 1.0", "", 6, 3, "given with scale"),
        ("weight = 1.0", "wieght = 1.0", 11, 1, "absent: Laplace has scale"),
        ("{ selection = 100 }", "{ selection = 0 }", 17, 1, "error must be a whole number"),
        ("{ selection = 100 }", '"deviation"', 17, 1, "that NoisyMax declares"),
        ("{ selection = 100 }", '"least"', 17, 1, "deviation"),
        ('"ages"', '"top diagnosis"', 14, 1, "a name of its own"),
        ('"ages"', r'"a\u001b[2J"', 7, 1, "printable text"),
        ('"ages"', "3", 7, 1, "printable text"),
        ('"Gaussian" }', '"Gaussian", sensitivity = -1 }', 24, 29, "sensitivity must be"),
        ("count = 12", "count = 0", 10, 1, "count must be a whole number from 1"),
    ],
    ids=range(17),
)  # fmt: skip
def test_errors_say_line_and_column(old, new, line, column, words):
    with pytest.raises(PlanSyntaxError, match=words) as caught:
        file_from_toml(WANTED.replace(old, new, 1))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_byte_order_mark_in_front_is_no_fault(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_bytes(b"\xef\xbb\xbf" + b'[[release]]\nkind = "Laplace"\nscale = 2.0\n')
    assert read_plan(str(path)) == Laplace(2.0)


@given(plan_files)
def test_files_come_back_from_toml_and_json(file):
    text = file_to_toml(file)
    assert file_from_toml(text) == file
    assert plan_file_of_document(parse_document(file_to_json(file))) == file
    assert file_to_toml(plan_file_of_document(parse_document(file_to_json(file)))) == text


@given(printable_names)
def test_names_come_back(name):
    file = PlanFile((Wanted(Laplace(1.0), name=name),)) if name.isprintable() else None
    if file is None:
        with pytest.raises(ParameterError, match="printable"):
            Wanted(Laplace(1.0), name=name)
    else:
        assert file_from_toml(file_to_toml(file)) == file


def test_no_kind_has_a_field_that_files_mean_otherwise():
    from accountant.serialisation.registry import constructor_fields

    for name, kind in plan_kinds().items():
        assert not {"kind", "name", "error", "weight", "target"} & set(constructor_fields(kind)), (
            name
        )


def test_a_function_is_not_written():
    file = PlanFile((Wanted(lambda s: Laplace(2 * s), Deviation(), weight=1.0),))
    with pytest.raises(ParameterError, match="a file holds no function"):
        file_to_toml(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": 1, "release": []}', "there are no"),
        ('{"schema": 1, "release": [3]}', "a table with a 'kind'"),
        ('{"schema": 1, "budget": 3, "release": [{"kind": "PureLoss"}]}', "a table with an"),
        ('{"schema": 1, "plan": {"kind": "PureLoss", "epsilon": 1}, "release": []}', "unknown key"),
        ('{"schema": 1, "release": [{"kind": ["x"], "weight": 1}]}', "a table with a 'kind'"),
    ],
    ids=range(5),
)  # fmt: skip
def test_bad_json_is_refused(text, words):
    with pytest.raises(PlanFileError, match=words):
        plan_file_of_document(parse_document(text))


def test_from_toml_still_reads_what_it_always_read():
    assert file_from_toml(
        '[[release]]\nkind = "Laplace"\nscale = 2.0\ncount = 3'
    ).plan == 3 * Laplace(2.0)
