"""Notebooks of docs/notebooks: run from the first cell to the last, and shown as pages."""

import html
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

SECONDS = 120  # for one cell


def notebook_page(path: Path) -> tuple[str, str]:
    """Return a notebook as Markdown and as a notebook file, both with the outputs of this run.

    A cell that fails, or writes to stderr, ends the build.
    """
    notebook = jupytext.read(path)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3",
                                       "language": "python"}  # fmt: skip
    where = {"metadata": {"path": str(path.parent)}}
    with TemporaryDirectory() as folder:
        # sockets of the file system: TCP would be open to other users of the machine
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
        NotebookClient(notebook, km=kernel, timeout=SECONDS, resources=where).execute()
    download = f"[Download this notebook]({path.stem}.ipynb)"
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            if len(parts) == 1:
                parts.append(download)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown(output, path) for output in cell.outputs]
    return "\n\n".join(parts) + "\n", nbformat.writes(notebook)


def shown(output: Any, path: Path) -> str:
    """Return an output of a cell as HTML."""
    if output.output_type == "stream":
        if output.name == "stderr":
            raise ValueError(f"{path.name} warns: {output.text}")
        return preformatted(output.text)
    data = output.data
    if "text/html" in data:
        # a blank line would end the block for Markdown
        inner = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        return (
            f'<div class="output" tabindex="0" role="group" aria-label="output">\n{inner}\n</div>'
        )
    if "image/png" in data:
        picture = "".join(data["image/png"].split())
        words = html.escape(data.get("text/plain", "figure"), quote=True)
        return f'<img class="output" alt="{words}" src="data:image/png;base64,{picture}">'
    return preformatted(data["text/plain"])


def preformatted(text: str) -> str:
    """Return text as it is, as a block that Markdown leaves alone."""
    return f"```text\n{text.rstrip()}\n```"
