"""``dp-attest audit target``: a function or a program of your own, in any language."""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.exit_status import USAGE, CommandFailed
from accountant.cli.vocabulary import option
from audits.cli.options import LIMITS, REPORTS, AllowImport, Options, takes


@takes(*REPORTS[1:], *LIMITS, jobs="1")
def target(
    epsilon: Annotated[str, option("epsilon", "The epsilon that is claimed.")],
    pair: Annotated[
        tuple[str, str],
        option(
            "pair",
            "Two neighbouring values: numbers or files (.npy, .npz, .csv, .json, .parquet).",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="PKG.MODULE:FUNCTION",
            help="The function that is audited; with --sql a query, or a .sql file.",
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="A program in any language, such as 'node a.mjs'."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A database, on which a query is audited."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Start the program of --command anew for each run.")
    ] = False,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="S", help="Seconds in which the program must answer; 60 if not given."
        ),
    ] = None,
    delta: Annotated[str, option("delta", "The delta that is claimed.")] = "0",
    allow_import: AllowImport = False,
    bits: Annotated[
        bool, typer.Option("--bits", help="Also look at the low-order bits of its numbers.")
    ] = False,
    timing: Annotated[
        bool, typer.Option("--timing", help="Also test whether the time depends on the value.")
    ] = False,
    early: Annotated[
        bool, typer.Option("--early", help="Stop when the claim is disproved; N is the most runs.")
    ] = False,
    evidence: Annotated[
        str | None,
        typer.Option(
            metavar="BOOK", help="Add what is found to the evidence on a claim of the ledger BOOK."
        ),
    ] = None,
    claim: Annotated[
        str | None,
        option("claim", "Name the claim of BOOK; by default as the function."),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            metavar="V", help="State the version of the code; by default its file's SHA-256."
        ),
    ] = None,
    key: Annotated[str | None, option("key", "Sign in BOOK with the key in FILE.")] = None,
    *,
    options: Options,
) -> None:
    """Audit a function or a program of yours against a claim, on a pair of neighbouring values.

    FUNCTION is called as function(value, rng, size) and returns `size` outputs along the first
    axis, or as function(value, rng) in a loop; rng is a numpy Generator. A function(value) draws by
    itself, and a seed does not repeat it. Each call has its own copy of the value.

    The two values may differ in kind and length: one record more or less is a pair too. A .npz
    file with several arrays is a dictionary, a .csv or .parquet file a pandas data frame.

    With --command it is a program in any language. It reads a line of JSON for each request,
    {"value": V, "runs": N, "seed": S}, and answers {"outputs": [...]} with N outputs, in a line
    that it flushes. With --once it is started for each run, and may fail: that is an outcome. With
    --sql it is a query whose parameter :value is the value; URL is sqlite:///FILE,
    duckdb:///FILE, postgresql://USER@HOST/DATABASE or MODULE://... of a DB-API module, with
    ${NAME} for a password. The protocol, with helpers to copy, is docs/programs.md.

    The function runs in processes of its own, J of them with --jobs J, which only send outputs:
    what it prints is dropped, a crash does not affect the report, and the verdict is computed
    elsewhere. Code that exceeds a limit ends with exit status 2, and so do processes that it
    started. --dask is refused, for the code stays on this machine. For code that you do not trust,
    use a container as well.

    Long runs are estimated on stderr first. Ctrl-C keeps the outputs that were drawn beside --json
    FILE, up to 1 GiB in a file that you alone can read, and --resume goes on from them.

    With --evidence BOOK the audits of all versions add up to one test of the claim, whose false
    alarm has one probability for the life of the program; an alarm ends with exit status 1.
    `dp-attest ledger claim` opens the claim. Few runs of each version add up soonest
    with --early.

    Examples, for a file mycode.py in this folder:

    \b
    A count that is 0 or 1:
      dp-attest audit target mycode:count --epsilon 1 --pair 0 1 --allow-import
    One record more or less, with a delta:
      dp-attest audit target mycode:mean --epsilon 1 --delta 1e-5 \\
        --pair all.npy without_one.npy --allow-import
    Two tables, fewer runs, the same report again with the seed:
      dp-attest audit target mycode:report --epsilon 1 --pair a.csv b.csv \\
        --runs 20000 --seed 7 --allow-import
    One version of many, in CI:
      dp-attest audit target mycode:count --epsilon 1 --pair 0 1 --allow-import \\
        --runs 1000 --early --evidence book.db --version "$(git describe --always)"

    \b
    A program in JavaScript, in the shell, a query:
      dp-attest audit target --command "node release.mjs" --epsilon 1 --pair 0 1
      dp-attest audit target --command "sh count.sh" --once --epsilon 1 --pair 0 1
      dp-attest audit target count.sql --sql sqlite:///people.db --epsilon 1 --pair 0 1

    Exit status: 0 survived, 1 falsified, 2 bad usage or a target that cannot be audited,
    3 inconclusive under --strict, 130 interrupted.
    """  # fmt: skip  # \b keeps typer from filling the lines
    import functools
    from contextlib import AbstractContextManager, nullcontext
    from pathlib import Path

    from accountant.errors import ParameterError
    from audits.cli.perform import parse_limits, parse_request, run_and_report
    from audits.cli.resume import KEPT_SUFFIX
    from audits.results.result_file import request_digest
    from audits.runner.evidence import EvidenceBook, evidence_book
    from audits.runner.kept_outputs import KeptOutputs
    from audits.runner.target import TargetRequest, target_cases
    from dp_attest.installation import hidden_by

    is_program = command is not None or sql is not None
    if not is_program and name is None:
        allowed = "given: a function, or a program by --command, or a query with --sql"
        raise ParameterError("PKG.MODULE:FUNCTION", name, allowed)
    if not is_program and not allow_import:
        raise ParameterError("--allow-import", name, "given, for the target's code will run")
    if hidden := hidden_by(Path.cwd()):
        raise CommandFailed(hidden, USAGE)
    if options.dask is not None:
        raise ParameterError(
            "--dask",
            options.dask,
            "left out: a target stays on this machine, where --jobs gives it processes",
        )
    flags = {"allow-import": not is_program, "early": early, "timing": timing, "once": once}
    texts = {"command": command, "sql": sql, "timeout": timeout}
    extra_options = {
        "epsilon": epsilon,
        "delta": delta,
        "pair": [str(Path(path)) for path in pair],
        "bits": bits,
        **{flag: True for flag, is_given in flags.items() if is_given},
        **{option: text for option, text in texts.items() if text is not None},
    }
    limits = parse_limits(options)
    request, threads = parse_request("target", [name] if name else [], options, extra_options)
    kept_outputs = (
        None if options.json in {None, "-"} else KeptOutputs(f"{options.json}{KEPT_SUFFIX}")
    )
    target_request = TargetRequest.from_request(request)
    if evidence is None and (claim, version, key) != (None, None, None):
        raise ParameterError(
            "--claim, --version, --key", claim or version or key, "given with --evidence"
        )
    book: AbstractContextManager[EvidenceBook | None] = nullcontext()
    if evidence is not None:
        code_version = version or request_digest(request).removeprefix("SHA-256 ")[:12]
        claimed = target_request.epsilon, target_request.delta
        book = evidence_book(evidence, claim or target_request.name, code_version, key, claimed)
    with book as evidence_of_claim:
        say = functools.partial(typer.echo, err=True)
        todo = target_cases(target_request, limits, kept_outputs, say, evidence_of_claim)
        run_and_report(
            "target", todo, request, threads, options, kept_outputs, evidence=evidence_of_claim
        )
