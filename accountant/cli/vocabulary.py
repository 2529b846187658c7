"""The vocabulary of the command line: each option that two commands have, with what it means.

Commands take their options from here by `option`.  So an option has one spelling and one kind of
value everywhere, and a file that would be overwritten is refused before a command begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer


class Word(NamedTuple):
    """An option: the value after it, None for a flag, and what it means."""

    value: str | None
    means: str
    writes: bool = False  # its value names a file that is written


VOCABULARY = {
    # what every command has that writes, spends or draws
    "json": Word(
        "FILE|-", "Write the answer as JSON to FILE; to standard output for - or no word.", True
    ),
    "out": Word("FILE|-", "Write what the command makes to FILE.", True),
    "force": Word(None, "Overwrite files that exist."),
    "epsilon": Word("E", "State the epsilon: of the budget, or that is claimed."),
    "delta": Word("D", "State the delta: of the budget, or that is claimed."),
    "runs": Word("N", "State how many times: runs of an audit, or of a plan."),
    "seed": Word("S", "Seed, which repeats a report exactly."),
    # other files of audits
    "junit": Word("FILE", "Write JUnit XML, one case per row.", True),
    "sarif": Word("FILE", "Write SARIF, for code scanning: file and line.", True),
    "faults": Word("FILE", "Write the page of the faults, as Markdown.", True),
    "markdown": Word("FILE", "Write Markdown, for the summary of a CI job.", True),
    # of audits
    "confidence": Word("C", "Confidence of the bounds shown."),
    "jobs": Word("J", "Threads; the rows do not change."),
    "dask": Word("ADDRESS", "Run on a Dask cluster; the same rows."),
    "baseline": Word(
        "FILE", "An earlier --json FILE: unchanged rows are kept, and only others fail."
    ),
    "resume": Word(None, "Continue from the rows kept at Ctrl-C; needs --json."),
    "strict": Word(None, "Exit 3 where runs are too few to see half the noise."),
    "max-seconds": Word("S", "Wall time of the code, in seconds, for each row."),
    "max-memory": Word("GIB", "Memory of the code: all its processes together."),
    "max-processes": Word("P", "Processes that the code may start."),
    "allow-import": Word(None, "Yes, import that module and run its code."),
    "pair": Word("A B", "Two neighbouring values: numbers, or files of data."),
    # of plans and training
    "plan": Word("PLAN", "The plan file, .toml or .json, or - for standard input."),
    "proof": Word(
        "FILE",
        "Take the plan's cost from the proof in FILE, which `certify` wrote; it is checked first.",
    ),
    "relation": Word(
        "R", "State how neighbours differ: R is for example add-remove or replace-one."
    ),
    "noise": Word(
        "Z", "State the noise multiplier: the noise's standard deviation over the clipping norm."
    ),
    "rate": Word("Q", "State the probability with which a step uses a record."),
    "steps": Word("T", "State the number of steps."),
    "batch": Word("B", "State the number of records of a batch."),
    "registry": Word(
        "WORDS",
        "Write the record for the public registry of deployments, with what a machine cannot know "
        "from the file WORDS, registry.toml.",
    ),
    # of books
    "ledger": Word("BOOK", "The ledger BOOK, a file or a URL."),
    "dataset": Word("NAME", "The data set NAME of the ledger."),
    "claim": Word("CLAIM", "The claim CLAIM of the ledger."),
    "new": Word(None, "Make the book BOOK, which may not be there yet."),
    "pin": Word(
        "FILE",
        "Compare the end of the log with the one that FILE holds, and note the new end there.",
    ),
    "key": Word(
        "FILE",
        "Sign, and check, with the key in FILE: the Ed25519 private key of a person, or the secret "
        "of the book. The passphrase of a private key is asked for, or taken from the variable "
        "DP_ATTEST_PASSPHRASE.",
    ),
    "accept-unsigned": Word(
        None,
        "Sign from now on, with the secret of --key, a book that was begun without one; verify it "
        "first.",
    ),
    "clock": Word(
        "TIME|trusted",
        "Confirm that the clock is right up to the day or time TIME (UTC), or 'trusted': always.",
    ),
    "reason": Word("WORDS", "Say why; the text stays in the log."),
    "set": Word("WHO=E|FILE", "State terms anew."),
    "author": Word("WHO", "Show only what the author WHO wrote."),
    "run": Word("RUN", "Show only the run of a plan that is named RUN."),
    "since": Word("N|TIME", "Show only entries after number N, or from TIME (UTC) on."),
    "until": Word("N|TIME", "Show only entries up to number N, or up to TIME (UTC)."),
}
STANDARD_STREAM = "-"  # as a file: standard output, or standard input of a plan


def table_of_options(names: Iterable[str]) -> Iterator[str]:
    """Yield a line for each option: its spelling, its value, and what it means."""
    for name in names:
        word = VOCABULARY[name]
        yield f"{f'--{name} {word.value or str()}':<16}{word.means}"


def option(name: str, means: str = "", old: str = "", value: str = "") -> Any:
    """Return the option of the vocabulary, as typer takes it.

    ``means`` replaces what the vocabulary says where a command can say it more exactly; ``old`` is
    an earlier spelling, which stays; ``value`` is one of the kinds of value that the vocabulary
    has.
    """
    word = VOCABULARY[name]
    return typer.Option(
        *[f"--{spelling}" for spelling in (name, old) if spelling],
        metavar=value or word.value,
        help=means or word.means,
        callback=refused_if_there if word.writes else None,
        is_eager=name == "force",  # which decides whether files may be written
    )


def refused_if_there(
    context: typer.Context, option_of_file: typer.CallbackParam, name: str | None
) -> str | None:
    """Refuse a file that cannot be written, or exists, before the command begins."""
    from accountant.errors import ParameterError
    from accountant.files import check_writable

    kinds = str(option_of_file.metavar).split("|")
    if name is None or (name == STANDARD_STREAM and STANDARD_STREAM in kinds):
        return name
    files = context.meta.setdefault("dp_attest.files", {})
    option_name = option_of_file.opts[0]
    files[option_name] = name
    check_writable(files)
    path = Path(name)
    is_kept = path.is_file() and path.stat().st_size > 0
    if is_kept and not context.params.get("force"):
        raise ParameterError(option_name, name, "a file that is not there yet, or --force given")
    return name
