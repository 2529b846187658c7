"""What every command line of this project does with errors, interruptions and closed pipes.

Commands raise; `run_app` turns what they raise into one line on stderr and an exit status.  Modules
that are slow to import are imported where they are needed, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from itertools import zip_longest
from typing import Any, cast

import typer

# The class ClickException, which typer.BadParameter inherits from.  It is taken from there because
# some versions of typer bring a copy of click, whose class is another than click's own.
CommandLineError = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[2])
USAGE, INTERRUPTED = 2, 130  # exit statuses: bad usage or input, and Ctrl-C


class CommandFailed(Exception):
    """A command ends here: one line for stderr, and the exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def parse_number(text: str) -> Any:
    """Return the number that the text stands for; else the text itself.

    The caller checks the result against the numbers that it allows, and so refuses a text.
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def print_error(program: str, message: str) -> None:
    """Print one line on stderr, with control characters escaped: a file may supply the text."""
    from accountant.formatting import escape_control

    print(f"{program}: {escape_control(message)}", file=sys.stderr)


def usage_words(error: Any) -> str:
    """Return what is wrong with a command line, and which command may have been meant."""
    from dp_attest.public_names import nearest_name

    message: str = error.format_message()
    commands = getattr(getattr(error, "ctx", None), "command", None)
    wrong = re.fullmatch(r"No such command '(.*)'\.", message)  # later versions say more
    meant = nearest_name(wrong[1], getattr(commands, "commands", ())) if wrong else None
    return message if meant is None else f"{message} Did you mean {meant!r}?"


def run_app(app: typer.Typer, program: str, arguments: list[str]) -> int:
    """Run the command line and return its exit status; errors are one line on stderr."""
    # A stream that was closed before the program began has no reader.  What stands in for it stays
    # open until the program ends.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if arguments == ["--version"]:
        from dp_attest import __version__

        print(f"{program} {__version__}")
        return 0
    # --json without a file is standard output
    arguments = [
        spelled
        for word, following in zip_longest(arguments, arguments[1:], fillvalue="--")
        for spelled in ([word, "-"] if word == "--json" and following[:2] == "--" else [word])
    ]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print_error(program, f"warning: {message}")
            status = int(app(args=arguments, prog_name=program, standalone_mode=False) or 0)
    except typer.Exit as stop:
        status = int(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except CommandFailed as error:
        print_error(program, str(error))
        return error.status
    except CommandLineError as error:
        group = getattr(error, "ctx", None)
        if group is not None and error.format_message().startswith("Missing command"):
            print(group.get_help())  # a group alone says what is in it
            return 0
        print_error(program, usage_words(error))
        return USAGE
    except SystemExit:  # rich raises it when the reader of its output is gone
        return USAGE
    except OSError as error:
        print_error(program, f"could not read or write: {error.strerror or error}")
        return USAGE
    except (RuntimeError, ValueError) as error:
        from accountant.errors import ParameterError, UnsupportedPlan

        if not isinstance(error, ParameterError | UnsupportedPlan):
            raise
        print_error(program, str(error))
        return USAGE
    if status == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return status


def exit_process(program: str, status: int) -> None:
    """End the process at once, even with running threads; a closed reader is an error."""
    try:
        sys.stdout.flush()
    except OSError as error:
        print_error(program, f"could not write: {error.strerror}")
        status = USAGE
    sys.stderr.flush()
    os._exit(status)
