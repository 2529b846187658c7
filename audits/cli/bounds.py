"""``dp-attest audit bounds``: the least error of private algorithms, and the project's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from accountant.cli.vocabulary import option
from audits.cli.options import Options, takes

if TYPE_CHECKING:
    from audits.minimax.performance.answers import ProblemReport

FAILED = 1  # exit status if an inequality does not hold in the enumeration
QUICK, THOROUGH = (4, 3), (6, 4)  # largest p and n of the enumeration


def _option(help_text: str, metavar: str = "X") -> Any:
    """A command-line option with this help text."""
    return typer.Option(metavar=metavar, help=help_text)


@takes("seed", "json", "out", seed="0")
def bounds(
    problem: Annotated[
        str | None,
        typer.Argument(metavar="[PROBLEM]", help="One of the problems below; all of them if none."),
    ] = None,
    n: Annotated[str | None, _option("Number of users, or of records.", "N")] = None,
    p: Annotated[str | None, _option("Number of features.", "N")] = None,
    s: Annotated[str | None, _option("Non-zero coefficients.", "N")] = None,
    k: Annotated[str | None, _option("Number of labels, or of candidates.", "N")] = None,
    dimension: Annotated[str | None, _option("Coordinates of a vector.", "N")] = None,
    epsilon: Annotated[str | None, option("epsilon", "The privacy of each user or record.")] = None,
    delta: Annotated[str | None, option("delta", "The delta of the central model.")] = None,
    rho: Annotated[str | None, _option("The rho of (xi, rho)-zCDP.", "R")] = None,
    xi: Annotated[str | None, _option("The xi of (xi, rho)-zCDP.", "X")] = None,
    interaction: Annotated[str | None, _option("Of users: none or sequential.", "HOW")] = None,
    loss: Annotated[str | None, _option("The error: squared or sum.", "LOSS")] = None,
    model: Annotated[str | None, _option("Of privacy: local or central.", "MODEL")] = None,
    noise_bound: Annotated[str | None, _option("Largest size of the noise of labels.", "C")] = None,
    rip: Annotated[str | None, _option("Restricted isometry constant of features.", "R")] = None,
    slope: Annotated[str | None, _option("Largest slope of the link function.", "B")] = None,
    lipschitz: Annotated[str | None, _option("Lipschitz constant of the losses.", "L")] = None,
    diameter: Annotated[str | None, _option("Diameter of the set of parameters.", "D")] = None,
    radius: Annotated[str | None, _option("Largest length of a vector.", "R")] = None,
    error: Annotated[
        str | None, _option("Also show how many users this error needs at least.", "E")
    ] = None,
    runs: Annotated[str, option("runs", "Runs of each algorithm.")] = "20",
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Check channels up to p = 6, n = 4: some 20 s.")
    ] = False,
    *,
    options: Options,
) -> None:
    """Compute the least error of any private algorithm, and run ours on the hardest data.

    Problems: sparse_regression, sparse_regression_zcdp, sparse_regression_rdp, label_regression,
    label_optimisation (labels alone are private), central_regression, private_lasso, private_mean,
    private_histogram, private_selection. Each has a default setting, which options change. "bound"
    is the sharpest proved bound, "published" the papers' with explicit constants. Below them are
    the inequalities that they rest on, checked against channels that can be enumerated.

    Examples: dp-attest audit bounds;
    dp-attest audit bounds sparse_regression --n 1000000 --p 100 --epsilon 0.5 --error 0.01;
    dp-attest audit bounds private_mean --model central --delta 1e-6 --out bounds.html

    Exit status: 0 answered, 1 an inequality failed, 2 bad usage, 130 interrupted.
    """
    from accountant.cli.exit_status import parse_number
    from accountant.domains import POSITIVE, IntegerRange, OneOf
    from accountant.errors import ParameterError
    from audits.minimax.problems import PROBLEMS

    texts = {
        "n": n, "p": p, "s": s, "k": k, "dimension": dimension, "epsilon": epsilon, "delta": delta,
        "rho": rho, "xi": xi, "interaction": interaction, "loss": loss, "model": model,
        "noise_bound": noise_bound, "rip": rip, "slope": slope, "lipschitz": lipschitz,
        "diameter": diameter, "radius": radius,
    }  # fmt: skip
    parameters = {name: parse_number(text) for name, text in texts.items() if text is not None}
    chosen = [OneOf(tuple(PROBLEMS)).check("PROBLEM", problem)] if problem else list(PROBLEMS)
    if problem is None and (parameters or error is not None):
        name, value = next(iter(parameters.items()), ("error", error))
        raise ParameterError(f"--{name}", value, "given together with a PROBLEM")
    target_error = None if error is None else POSITIVE.check("--error", parse_number(error))
    often = IntegerRange(2, 100_000).check("--runs", parse_number(runs))
    start = IntegerRange(0).check("--seed", parse_number(options.seed or "0"))
    answers, checks = _problem_reports(
        chosen, parameters, target_error, often, start, THOROUGH if thorough else QUICK
    )
    command = _repeat_command(problem, texts, error, often, start)
    _write_bounds(answers, checks, start, command, options)
    raise typer.Exit(0 if all(check.holds for check in checks) else FAILED)


def _write_bounds(
    answers: list[ProblemReport], checks: list[Any], seed: int, command: str, options: Options
) -> None:
    """Print the tables, and write the files of ``--json`` and ``--out``."""
    import json
    from pathlib import Path

    from accountant.files import write_atomically, write_text
    from audits.report.bounds import as_document, print_bounds, to_html

    print_bounds(answers, checks, options.console())
    if options.json is not None:
        document = as_document(answers, checks, seed)
        write_text(options.json, json.dumps(document, indent=2, allow_nan=False) + "\n")
    if options.out is not None:
        write_atomically(Path(options.out), to_html(answers, checks, command))


def _problem_reports(
    problems: list[str],
    parameters: dict[str, object],
    error: float | None,
    runs: int,
    seed: int,
    largest: tuple[int, int],
) -> tuple[list[ProblemReport], list[Any]]:
    """The reports and the checks; progress on stderr if it is a terminal.

    ``largest`` has the largest p and n of the checks.
    """
    import numpy as np
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    from accountant.cli.progress import terminal_progress
    from audits.minimax.checks.enumeration import enumerate_checks
    from audits.minimax.performance.answers import report_problem

    streams = np.random.default_rng(seed).spawn(len(problems))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    answers = []
    with terminal_progress(*columns) as bar:
        task = bar.add_task("bounds", total=len(problems) + 1)
        for problem, stream in zip(problems, streams, strict=True):

            def show(words: str) -> None:
                bar.update(task, description=words)

            answers.append(report_problem(problem, parameters, error, runs, stream, show))
            bar.advance(task)
        bar.update(task, description="enumerating")
        return answers, enumerate_checks(0, *largest)


def _repeat_command(
    problem: str | None, texts: dict[str, str | None], error: str | None, runs: int, seed: int
) -> str:
    """The command line that repeats these bounds."""
    options = [f"--{name.replace('_', '-')} {text}" for name, text in texts.items() if text]
    options += [f"--error {error}"] if error else []
    start = ["dp-attest audit bounds", *([problem] if problem else [])]
    return " ".join([*start, *options, f"--runs {runs} --seed {seed}"])
