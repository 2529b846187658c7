"""``dp-attest audit record``: run a function on data and on a neighbour with the same noise."""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.vocabulary import option
from audits.cli.options import FILES, AllowImport, Options, takes

FOUND, INCONCLUSIVE = 1, 3  # exit statuses: a claim was falsified, or nothing could be decided


@takes(*FILES, seed="0")
def record(
    name: Annotated[
        str, typer.Argument(metavar="PKG.MODULE:FUNCTION", help="The function that is recorded.")
    ],
    pair: Annotated[
        tuple[str, str], option("pair", "Two neighbouring data sets: files, as of `target`.")
    ],
    epsilon: Annotated[str | None, option("epsilon", "The epsilon that is claimed.")] = None,
    delta: Annotated[
        str | None,
        option("delta", "The delta of the claim, by default 0; or, without a claim, of the cost."),
    ] = None,
    primitive: Annotated[
        list[str] | None,
        typer.Option(metavar="PKG.MODULE:FUNCTION", help="A function that adds noise."),
    ] = None,
    allow_import: AllowImport = False,
    *,
    options: Options,
) -> None:
    """Record the draws of a function, and run it on a neighbour with every drawn number frozen.

    FUNCTION is called as function(data) or function(data, rng), in this process. Nothing in it
    needs to be written for it: draws of numpy, random and secrets, of diffprivlib and OpenDP, and
    of every --primitive, are recorded where they are made.

    Example: dp-attest audit record mycode.noise:release --epsilon 1 --pair a.npy b.npy
    --allow-import

    Each finding has its line. What cannot be judged has too: noise that went out of sight, as by
    float(noise); parts of the result that differ on the same data; branches on numbers without
    noise.

    Exit status: 0 nothing found, 1 something found, 2 bad usage, 3 inconclusive (noise went out of
    sight, or the cost is not known, or is above the claim for who sees more), 130 interrupted.
    """
    import sys
    import time
    from pathlib import Path

    from accountant.cli.exit_status import USAGE, CommandFailed, parse_number
    from accountant.domains import DELTA, POSITIVE, IntegerRange
    from accountant.errors import ParameterError
    from audits.claims.findings import Outcome
    from audits.formats.report_format import write_files
    from audits.recorded_runs.patches import named_function
    from audits.recorded_runs.record import record as recorded_run
    from audits.results.result_file import Request, new_result
    from audits.runner.recorded_row import recorded_row
    from audits.runner.target_values import load_value
    from dp_attest.installation import hidden_by

    if not allow_import:
        raise ParameterError("--allow-import", name, "given, for the function's code will run")
    claim: float | tuple[float, float] | None = None
    checked_delta = None if delta is None else DELTA.check("--delta", parse_number(delta))
    if epsilon is not None:
        claim = POSITIVE.check("--epsilon", parse_number(epsilon))
        claim = (claim, checked_delta) if checked_delta else claim
    seed = IntegerRange(0).check("--seed", parse_number(options.seed or "0"))
    if hidden := hidden_by(Path.cwd()):
        raise CommandFailed(hidden, USAGE)
    sys.path.insert(0, "")
    _, _, function = named_function(name)
    data, neighbour = map(load_value, pair)
    start = time.perf_counter()
    recorded = recorded_run(function, data, neighbour, primitive or (), claim, checked_delta, seed)
    row = recorded_row(recorded, name, function, round(time.perf_counter() - start, 6))
    stated = {"epsilon": epsilon, "delta": delta, "pair": list(pair), "primitive": primitive}
    request = Request(
        "record", (name,), row.runs, 0.95, seed, options={**stated, "allow-import": True}
    )
    write_files(new_result(request, [row]), options.files, recorded.to_json() + "\n")
    if options.json != "-":
        typer.echo(str(recorded))
    if not recorded.sound:
        raise typer.Exit(FOUND if recorded.outcome is Outcome.FALSIFIED else INCONCLUSIVE)
