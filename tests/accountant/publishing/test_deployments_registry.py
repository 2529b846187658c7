"""Records for the public registry: they fit its schema, and nothing in them is guessed."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from accountant import Book, Budget, ParameterError, PoissonSampled, dp_sgd
from accountant.__main__ import main
from accountant.publishing.deployments_registry import (
    FIELDS,
    LIST,
    record_of_book,
    record_of_training,
)
from mechanisms import Gaussian, Laplace
from tests.schema_check import errors

SNAPSHOT = Path(__file__).parents[2] / "snapshots" / "deployments-schema.json"
SCHEMA = json.loads(SNAPSHOT.read_text())["schema"]
# Fields that the schema lists under a tier and says are useful at most.
USEFUL = {
    "data_product_sector",
    "data_source_type_details",
    "access_type_details",
    "sources",
    "notes",
}
WORDS = """
tier = 3
[basic]
name = "Visits: a \\"survey\\""
data_curators = ["The City", "A University"]
description = "Counts of visits."
intended_use = "Planning."
data_product_type = "Summary statistics"
data_product_region = "France"
publication_date = 2026-11-30
[dp_variant]
data_domain = "All visits."
unprotected_quantities = "None."
[deployment_model]
model_name = "Central"
actors = "The curator is trusted."
release_type = "One release"
data_source_type = "Static"
access_type = "Non-interactive"
[accounting]
post_processing = "Rounded to tens."
[implementation]
preprocessing_and_hyperparameter_tuning = "None."
justification = "The board decided."
[administrative]
registry_authors = ["Ada"]
"""


def test_the_validator_sees_faults():
    assert len(list(errors({"status": "New", "tier": "3", "surprise": 1}, SCHEMA))) == 6


def test_the_fields_are_those_of_the_schema():
    sections = SCHEMA["properties"]["deployment"]["properties"]
    assert list(FIELDS) == list(sections)
    for section, fields in FIELDS.items():
        properties = sections[section]["properties"]
        assert set(fields) == set(properties)
        for name, field in fields.items():
            schema = properties[name]
            if isinstance(field.kind, tuple):
                assert list(field.kind) == schema["enum"]
            assert (field.kind == LIST) == (schema.get("type") == "array")
            if name != "registry_authors" and name not in USEFUL:
                assert field.tier == schema.get("tier"), name


@pytest.fixture
def book(tmp_path):
    with Book.create(f"sqlite:///{tmp_path}/book.db") as book:
        book.dataset("survey", Budget(1.0, 1e-6), unit="one person")
        with book.ledger("survey", np.ones(9)) as ledger:
            ledger.release(PoissonSampled(Gaussian(20.0), 0.01), np.sum)
            ledger.release(PoissonSampled(Gaussian(20.0), 0.01), np.sum)
        with book.ledger("survey", np.ones(9), 2 * Gaussian(100.0)) as ledger:
            ledger.release(Gaussian(100.0), np.sum)
        yield book


def record(book, words=WORDS, name="survey", relation=None):
    return yaml.safe_load(record_of_book(book.status(name), book.history(name), relation, words))


def test_the_record_of_a_book_fits_the_schema(book):
    deployment = record(book)
    assert list(errors(deployment, SCHEMA)) == []
    assert deployment["url_slug"] == "visits-a-survey--the-city-a-university-2026"
    assert deployment["status"] == "Draft"
    fields = deployment["deployment"]
    assert fields["basic"]["publication_date"] == "2026-11-30"
    assert fields["dp_variant"]["variant_name"] == "Approximate DP"
    loss = fields["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert loss["privacy_unit"] == "one person"
    assert "differ by one record more or less" in loss["privacy_unit_details"]
    mechanisms = fields["implementation"]["mechanisms"]
    assert "- 2 x PoissonSampled(" in mechanisms
    assert "- 1 x Gaussian(scale=100.0, sensitivity=1.0" in mechanisms
    assert fields["accounting"]["composition"].startswith("sum of the epsilons, or of the diverg")


def test_a_pure_budget_states_no_delta(book):
    book.dataset("pure", Budget(1.0))
    deployment = record(book, name="pure", relation="replace-one")["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert "nothing was released yet" in deployment["implementation"]["mechanisms"]


def test_the_record_of_a_training_run_fits_the_schema():
    statement = dp_sgd(
        examples=100, batch=100, epochs=1, noise=20.0, delta=1e-4, loader="fixed_order"
    )
    words = WORDS.replace("Summary statistics", "Machine learning model")
    deployment = yaml.safe_load(record_of_training(statement, words))
    assert list(errors(deployment, SCHEMA)) == []
    parameters = deployment["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters == {"epsilon": statement.epsilon, "delta": 1e-4}


STATED = [name for name in re.findall(r"^(\w+) = ", WORDS, re.MULTILINE) if name != "tier"]


@pytest.mark.parametrize("name", STATED)
def test_nothing_is_guessed(book, name):
    words = re.sub(rf"^{name} = .*\n", "", WORDS, flags=re.MULTILINE)
    with pytest.raises(ParameterError, match=f"cannot know: [a-z_]*.{name}, got 'tier 3'"):
        record(book, words)


def test_a_relation_that_nobody_stated_is_asked_for(book):
    book.dataset("pure", Budget(1.0))
    with pytest.raises(ParameterError, match=r"cannot know: privacy_loss\.privacy_unit_details"):
        record(book, name="pure")
    stated = WORDS + '[privacy_loss]\nprivacy_unit_details = "One visit more or less."\n'
    loss = record(book, stated, "pure")["deployment"]["privacy_loss"]
    assert loss["privacy_unit_details"] == "One visit more or less."


def test_the_example_of_the_page_is_a_record(book):
    page = (SNAPSHOT.parents[2] / "docs" / "receipts.md").read_text(encoding="utf-8")
    words = page.split("```toml\n")[1].split("```")[0]
    deployment = record(book, words)
    assert list(errors(deployment, SCHEMA)) == []
    assert deployment["tier"] == 1


def test_a_lower_tier_asks_for_less(book):
    words = re.sub(r"tier = 3", "tier = 1", WORDS)
    words = re.sub(r"\[deployment_model\][^\[]*", "", words)
    assert list(errors(record(book, words), SCHEMA)) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("tier = 3", "tier = 4", "tier must be"),
        ("tier = 3", "", "tier must be"),
        ("tier = 3", "tier = true", "tier must be"),
        ("[basic]", "[basics]", "basic"),
        ("intended_use", "intended_usage", "intended_use"),
        ('"Central"', '"Centre"', "deployment_model.model_name must be one of"),
        ('["Ada"]', "[]", "registry_authors must be a list of texts"),
        ('"Planning."', '" "', "intended_use must be a text"),
        ("2026-11-30", '"30/11/2026"', "publication_date must be a date"),
        ("[accounting]", '[accounting]\ncomposition = "sum"', "left out: it is computed"),
        ("[basic]", "basic = 3\n[x]", "basic must be a table"),
        ("[basic]", "[basic", "TOML"),
    ],
)
def test_words_that_do_not_fit_are_refused(book, old, new, says):
    with pytest.raises(ParameterError, match=re.escape(says)):
        record(book, WORDS.replace(old, new, 1))


def test_the_command_writes_the_record(book, tmp_path, capsys):
    words, out = tmp_path / "registry.toml", tmp_path / "survey_2026.yaml"
    words.write_text(WORDS)
    command = ["ledger", "export", f"{tmp_path}/book.db", "survey", "--registry", f"{words}"]
    assert main([*command, "--out", f"{out}"]) == 0
    assert list(errors(yaml.safe_load(out.read_text()), SCHEMA)) == []
    assert main([*command, "--out", "-"]) == 0
    assert capsys.readouterr().out == out.read_text()
    for name in ("Survey.yaml", "survey.json"):
        assert main([*command, "--out", f"{tmp_path}/{name}"]) == 2
    assert main([*command[:-1], f"{tmp_path}/gone.toml", "--out", "-"]) == 2
    assert main([*command, "--relation", "sideways", "--out", "-"]) == 2
    for option in ("--since", "--until", "--author", "--run"):
        assert main([*command, option, "2", "--out", "-"]) == 2
        assert f"{option} must be absent" in " ".join(capsys.readouterr().err.split())


def test_the_command_of_training_prints_the_record(tmp_path, capsys):
    words = tmp_path / "registry.toml"
    words.write_text(WORDS)
    run = "training --examples 100 --batch 100 --epochs 1 --noise 20 --loader fixed_order"
    assert main([*run.split(), "--registry", f"{words}"]) == 0
    assert list(errors(yaml.safe_load(capsys.readouterr().out), SCHEMA)) == []


def test_texts_stay_what_they_are(book):
    hostile = "a: b # c\n- 'd' \\\\(x) \u202e \x07 \x85 \ufeff {{ }} %é 𝜀"
    text = WORDS.replace('"Planning."', json.dumps(hostile, ensure_ascii=False))
    read = record(book, text)["deployment"]["basic"]["intended_use"]
    assert read == hostile


def test_one_laplace_release_is_pure(tmp_path):
    with Book.create(f"sqlite:///{tmp_path}/book.db") as book:
        book.dataset("d", Budget(1.0))
        with book.ledger("d", np.ones(3)) as ledger:
            ledger.release(Laplace(2.0), np.sum)
        fields = record(book, name="d", relation="add-remove")["deployment"]
        assert "Spent by 20" in fields["privacy_loss"]["privacy_parameters_details"]
