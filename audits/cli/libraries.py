"""``python -m audits libraries``: known faults and sound controls of other libraries."""

from __future__ import annotations

from audits.cli.options import REPORTS, Options, takes


@takes(*REPORTS, samples="20000", jobs="1")
def libraries(options: Options) -> None:
    """Audit other libraries: pinned faults must be found, sound mechanisms must survive.

    A library that is not installed is reported and skipped; `pip install 'dp-attest[libraries]'`
    installs all. Most of them draw their own randomness, so numbers differ from run to run. The
    chance that any verdict is wrong is at most one in a million.

    Examples: python -m audits libraries; python -m audits libraries opendp --junit opendp.xml

    Exit status: 0 all as known, 1 a fault was missed or a sound control was falsified, 2 bad
    usage, 3 inconclusive under --strict, 130 interrupted.
    """  # fmt: skip
    from audits.cli.perform import parse_request, run_and_report
    from audits.libraries import LIBRARIES, available_cases
    from audits.runner.execution import select_cases

    request, threads = parse_request("libraries", options.names, options)
    every, missing = available_cases(list(request.names))
    # a library that is not there is no misspelt name
    left = [one for one in request.names if not any(one.strip().lower() in m for m in missing)]
    todo = select_cases(left, every) if left or not request.names else []
    run_and_report("libraries", todo, request, threads, options, missing, tuple(LIBRARIES))
