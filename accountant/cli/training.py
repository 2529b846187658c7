"""``dp-attest account training``: what a training run costs, under the loader that it had."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.exit_status import CommandLineError, parse_number, print_error
from accountant.cli.options import Force, Json, print_report
from accountant.cli.progress import progress_bar
from accountant.cli.vocabulary import option

if TYPE_CHECKING:
    from accountant.training.rows import Tick
    from accountant.training.statement import TrainingStatement

PROGRAM = "dp-attest account training"
DIFFERS = 1  # exit status if a statement has a number that the run does not have
# Options that may be given with --opacus: they check what the file says, or ask for more numbers.
OPTIONS_OF_OPACUS = ("epochs", "batch", "delta", "relation", "examples_per_user")
OPACUS_RECORD = (
    "a JSON file of json.dump(opacus_record(engine, loader), file), by accountant.formats.opacus"
)
Examples = Annotated[
    str | None, typer.Option(metavar="N", help="State that the training set has N records.")
]
Batch = Annotated[
    str | None,
    option(
        "batch",
        "State that a batch has B records, or has them on average if records are drawn by coins.",
    ),
]
Epochs = Annotated[
    str | None, typer.Option(metavar="E", help="State that the run went through the data E times.")
]
Steps = Annotated[
    str | None,
    option("steps", "State that the run had T steps in all, instead of --epochs."),
]
Noise = Annotated[str | None, option("noise")]
Target = Annotated[
    str | None,
    option(
        "epsilon",
        "Set a target: the noise, or the number of epochs, that is not given is then found.",
    ),
]
AtDelta = Annotated[
    str | None,
    option(
        "delta",
        "Print epsilon at the delta D; by default examples^-1.1, rounded down to one digit.",
    ),
]
PerUser = Annotated[
    str | None, typer.Option(metavar="K", help="State that one user has at most K records.")
]
MaxBatch = Annotated[
    str | None,
    typer.Option(
        metavar="B",
        help="State that truncated_poisson cuts a batch to B records; by default those of --batch.",
    ),
]
Rate = Annotated[
    str | None, option("rate", "State the sampling rate, if it is not batch / examples.")
]


def training(
    examples: Examples = None,
    batch: Batch = None,
    epochs: Epochs = None,
    steps: Steps = None,
    noise: Noise = None,
    epsilon: Target = None,
    delta: AtDelta = None,
    loader: Annotated[
        str | None,
        typer.Option(
            help="State how batches were made, by a word of the list above; by default poisson."
        ),
    ] = None,
    relation: Annotated[
        str | None,
        option(
            "relation",
            "State how neighbouring data differ: add-remove (default), zero-out or replace-one.",
        ),
    ] = None,
    microbatching: Annotated[
        bool,
        typer.Option(
            "--microbatching",
            help="State that means of several gradients were clipped, not each gradient.",
        ),
    ] = False,
    examples_per_user: PerUser = None,
    drop_last: Annotated[
        bool,
        typer.Option("--drop-last", help="State that a last batch that is too short was left out."),
    ] = False,
    max_batch: MaxBatch = None,
    rate: Rate = None,
    all_loaders: Annotated[
        bool,
        typer.Option(
            "--all-loaders",
            help="Print the whole statement: what must be true of the code, and what all loaders "
            "cost, which takes seconds; --json and --out have it.",
        ),
    ] = False,
    json: Json = None,
    out: Annotated[
        str | None,
        option("out", "Write the statement as a page, HTML, to FILE.", value="FILE"),
    ] = None,
    registry: Annotated[
        str | None,
        option(
            "registry",
            "Print the record for the public registry of deployments (YAML) instead, with what a "
            "machine cannot know from the file WORDS, registry.toml.",
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Compute again the statement that --json wrote to FILE, and compare.",
        ),
    ] = None,
    opacus: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read the run from the JSON of opacus_record in FILE, as explained above.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """State what a run of DP-SGD costs, under the loader that it had and under others.

    The number that an accountant prints holds for one way to make batches. Say which one yours
    is, by --loader:

    \b
      poisson            each record by its own coin (Opacus with poisson_sampling=True)
      truncated_poisson  the same, cut to --max-batch records
      fixed_size         a fixed number of different records, drawn anew in every step
      random_allocation  each record draws one step of the pass by itself (balls in bins)
      shuffled           DataLoader(shuffle=True): one random order a pass
      fixed_order        the same batches in every pass

    The statement has epsilon for it, for one record more or less, blanked or replaced, and for
    users with --examples-per-user; with --all-loaders also what must be true of the code, and what
    every other loader would cost at the same noise, with and without microbatches. With --epsilon
    and no --noise the least noise is found; with --epsilon, --noise and no --epochs, the longest
    run.

    --opacus reads what accountant.formats.opacus.opacus_record(engine, loader) returned, written
    by json.dump: the loader is that of the run, and --epochs and --batch only check it.

    Examples: dp-attest account training --examples 60000 --batch 512 --epochs 20 --noise 1.1
    --loader shuffled; dp-attest account training --examples 60000 --batch 512 --epochs 20
    --epsilon 3 --loader poisson --out statement.html --json statement.json;
    dp-attest account training --replay statement.json;
    dp-attest account training --opacus run.json --epochs 20;
    dp-attest account training --replay statement.json --registry registry.toml > model.yaml

    Exit status: 0 answered, 1 a replayed statement says other numbers, 2 bad usage,
    130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    from accountant.files import write_text
    from accountant.publishing.deployments_registry import read_stated, record_of_training
    from accountant.training.rows import MOST_ROWS

    options = {
        "examples": examples, "batch": batch, "epochs": epochs, "steps": steps, "noise": noise,
        "epsilon": epsilon, "delta": delta, "examples_per_user": examples_per_user,
        "max_batch": max_batch, "rate": rate, "loader": loader, "relation": relation,
        "microbatching": microbatching or None, "drop_last": drop_last or None,
    }  # fmt: skip
    given_options = {name: value for name, value in options.items() if value is not None}
    stated = None if registry is None else read_stated(registry, "-")
    if replay is not None and (given_options or opacus is not None):
        raise CommandLineError("--replay is given alone: the file says what the run was")
    with progress_bar(MOST_ROWS) as tick:
        if replay is not None:
            statement = _replayed(replay)
        elif opacus is not None:
            statement = _of_opacus(opacus, given_options, tick)
        else:
            statement = _of_options(given_options, tick)
        report = statement.text(all_loaders)
        if stated is not None:
            report = record_of_training(statement, stated)
        document = "" if json is None else statement.to_json()
        page = ""
        if out is not None:
            from accountant.reports.training_page import training_page

            page_options = given_options if opacus is None else {"opacus": opacus, **given_options}
            page = training_page(statement, _command_line(page_options))
    print_report(report, json)
    write_text(json, document)
    write_text(out, page)


def _of_options(given_options: dict[str, Any], tick: Tick) -> TrainingStatement:
    """Return the statement of the run that options describe."""
    from accountant.errors import ParameterError
    from accountant.training.dp_sgd import dp_sgd

    facts = _with_numbers(given_options)
    for name in ("examples", "batch"):
        if name not in facts:
            raise CommandLineError(f"give --{name}; {PROGRAM} --help explains it")
    try:
        return dp_sgd(**facts, on_row=tick)
    except ParameterError as error:
        option = f"--{error.argument.replace('_', '-')}"
        raise ParameterError(option, error.value, error.allowed) from None


def _of_opacus(name: str, given_options: dict[str, Any], tick: Tick) -> TrainingStatement:
    """Return the statement of the run whose history and loader a file of `opacus_record` holds."""
    import json

    from accountant.errors import ParameterError
    from accountant.files import read_text
    from accountant.formats.opacus_statement import statement_of_opacus

    for name_of_option in given_options:
        if name_of_option not in OPTIONS_OF_OPACUS:
            option_name = name_of_option.replace("_", "-")
            raise CommandLineError(f"--{option_name} is left out with --opacus, whose file says it")
    try:
        record = json.loads(read_text(Path(name)))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ParameterError("--opacus", name, OPACUS_RECORD)
    return statement_of_opacus(record, on_row=tick, **_with_numbers(given_options))


def _with_numbers(given_options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with text parsed as numbers, but for names."""
    return {
        name: parse_number(value)
        if isinstance(value, str) and name not in {"loader", "relation"}
        else value
        for name, value in given_options.items()
    }


def _replayed(name: str) -> TrainingStatement:
    """Return the statement of a file, computed again; another number is exit status 1."""
    from accountant.errors import ParameterError
    from accountant.files import read_text
    from accountant.training.document import StatementDiffers
    from accountant.training.statement import TrainingStatement

    try:
        text = read_text(Path(name))
    except (OSError, UnicodeDecodeError):
        raise ParameterError("--replay", name, "a file that can be read") from None
    try:
        return TrainingStatement.from_json(text)
    except StatementDiffers as error:
        print_error(PROGRAM, f"{name} says another number: {error}")
        raise typer.Exit(DIFFERS) from None


def _command_line(given_options: dict[str, Any]) -> str:
    """Return the command that makes the page again."""
    import shlex

    arguments = PROGRAM.split()
    for name, value in given_options.items():
        arguments.append(f"--{name.replace('_', '-')}")
        arguments += [] if value is True else [value]
    return shlex.join([*arguments, "--out", "FILE"]) if given_options else ""
