"""``python -m audits target``: a function of your own, named ``package.module:function``."""

from __future__ import annotations

from typing import Annotated

import typer

from audits.cli.options import LIMITS, REPORTS, Options, takes


@takes(*REPORTS[1:], *LIMITS, jobs="1")
def target(
    name: Annotated[str, typer.Argument(metavar="PKG.MODULE:FUNCTION", help="What to audit.")],
    epsilon: Annotated[str, typer.Option(metavar="E", help="The claim.")],
    pair: Annotated[
        tuple[str, str], typer.Option(metavar="A.npy B.npy", help="Two neighbouring values.")
    ],
    delta: Annotated[str, typer.Option(metavar="D", help="The claim.")] = "0",
    allow_import: Annotated[
        bool, typer.Option("--allow-import", help="Yes, import that module and run its code.")
    ] = False,
    bits: Annotated[
        bool, typer.Option("--bits", help="Also look at the low-order bits of its numbers.")
    ] = False,
    *,
    options: Options,
) -> None:
    """Audit a function of your own against a claim, on a pair of neighbouring values.

    FUNCTION is called as function(value, rng, size) and returns `size` outputs along the first
    axis, or as function(value, rng) in a loop; rng is a numpy Generator. It runs in processes of
    its own, J of them with --jobs J, which only send outputs: what it prints is dropped, a crash
    does not affect the report, and the verdict is computed elsewhere. Code that exceeds a limit
    ends with exit status 2, and so do processes that it started. --dask is refused, for the code
    stays on this machine. For code that you do not trust, use a container as well.

    Example: python -m audits target mycode.noise:release --epsilon 1 --pair a.npy b.npy
    --allow-import

    Exit status: 0 survived, 1 falsified, 2 bad usage or a target that cannot be audited,
    3 inconclusive under --strict, 130 interrupted.
    """  # fmt: skip
    from pathlib import Path

    from accountant.errors import ParameterError
    from audits.cli.perform import parse_limits, parse_request, run_and_report
    from audits.runner.target import TargetRequest, target_cases

    if not allow_import:
        raise ParameterError("--allow-import", name, "given, for the target's code will run")
    if options.dask is not None:
        raise ParameterError("--dask", options.dask, "left out: a target stays on this machine, "
                             "where --jobs gives it processes")  # fmt: skip
    more = {
        "epsilon": epsilon, "delta": delta, "pair": [str(Path(one)) for one in pair],
        "bits": bits, "allow-import": True,
    }  # fmt: skip
    limits = parse_limits(options)
    request, threads = parse_request("target", [name], options, more)
    todo = target_cases(TargetRequest.from_request(request), limits)
    run_and_report("target", todo, request, threads, options)
