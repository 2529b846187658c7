"""``dp-attest index``: plans, ledgers and audits of a folder on one page."""

from __future__ import annotations

from typing import Annotated

import typer

from accountant.cli.options import Force
from accountant.cli.vocabulary import option

PROGRAM = "dp-attest index"


def index(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="It is read with the folders in it.")
    ],
    out: Annotated[
        str,
        option("out", "Write the page to FILE; its links work if it is in FOLDER.", value="FILE"),
    ],
    force: Force = False,
) -> None:
    """Write one page over the plans, ledgers and audits of a folder.

    It says of each plan what it costs and whether that fits, of each data set what was spent, of
    each claim how strong the evidence against it is, and of each audit its verdict. A name is a
    link where a page lies beside it: plan.html beside plan.toml.

    Example: dp-attest index work --out work/index.html

    Exit status: 0 written, 2 bad usage or no such folder, 130 interrupted.
    """
    import shlex
    from pathlib import Path

    from rich.progress import TextColumn

    from accountant.cli.progress import terminal_progress
    from accountant.errors import ParameterError
    from accountant.files import write_atomically
    from audits.report.folder_page import folder_page, index_of

    directory = Path(folder)
    if not directory.is_dir():
        raise ParameterError("FOLDER", folder, "a folder that exists")
    with terminal_progress(TextColumn("reading {task.description}")) as bar:
        task = bar.add_task("", total=None)
        contents = index_of(directory, lambda name: bar.update(task, description=name))
    command = shlex.join([*PROGRAM.split(), folder, "--out", out])
    write_atomically(Path(out), folder_page(contents, directory.resolve().name, command))
