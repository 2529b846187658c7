"""What mkdocs is given beside the pages of docs/: pages of the API, of notebooks, of the root.

The pages themselves are written for readers of the repository too; what differs between its
Markdown and that of mkdocs is mended here.
"""

import importlib
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from docs_site.notebook import notebook_page  # noqa: E402

# files outside docs/ that are pages of the site
PAGES = {
    "README.md": "install.md",
    "CHANGELOG.md": "changelog.md",
    "examples/data/california_housing/README.md": "housing-data.md",
}
PACKAGES = ("accountant", "mechanisms", "algorithms", "algorithms.frames", "audits",
            "audits.minimax")  # fmt: skip
# How much a page weighs in the search: guides and words first, the reference after them.
WEIGHTS = {
    "index.md": 0.1, "install.md": 2, "glossary.md": 30, "how-to/": 10, "notebooks/": 1,
    "reference/": 0.0005, "faults.md": 0.02, "published.md": 0.02, "false-alarms.md": 0.02,
    "lower-bounds.md": 0.02, "threat-model.md": 0.02, "matrix-mechanisms.md": 0.02,
    "label-privacy.md": 0.02, "frank-wolfe.md": 0.02, "sparse-regression.md": 0.02,
    "sign-votes.md": 0.02, "receipts.md": 0.2, "recorded-runs.md": 0.2, "testing.md": 1,
    "mechanisms.md": 12, "certificates.md": 7,
}  # fmt: skip
TOPIC_WEIGHT = 2
# what no one who has a question looks for: the search leaves it out
UNSEARCHED = ("proofs/", "records/", "changelog.md", "why.md", "benchmarks.md", "errata.md",
              "housing-data.md")  # fmt: skip
LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=with_links_of(text, source, page)))
    for package in PACKAGES:
        page = f"reference/{package}.md"
        files.append(File.generated(config, page, content=reference_page(package)))
    for path in sorted((ROOT / "docs/notebooks").glob("*.py")):
        source = files.get_file_from_path(f"notebooks/{path.name}")
        if source is not None:
            files.remove(source)
        text, notebook = notebook_page(path)
        name = f"notebooks/{path.stem}"
        files.append(File.generated(config, f"{name}.md", content=text))
        files.append(File.generated(config, f"{name}.ipynb", content=notebook))
    for name in ("site.css", "site.js"):
        text = (ROOT / "docs_site" / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"assets/{name}", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Mend what mkdocs reads otherwise: links out of docs/, prompts, lists within lists."""
    source = f"docs/{page.file.src_uri}"
    page.meta["search"] = search_of(page.file.src_uri)
    if page.file.src_uri not in PAGES.values():
        markdown = with_links_of(markdown, source, page.file.src_uri)
    markdown = re.sub(r"^( *)```python\n(?= *>>>)", r"\1```pycon\n", markdown, flags=re.MULTILINE)
    return with_wide_lists(markdown)


def search_of(page: str) -> dict[str, Any]:
    """Return the settings of a page for the search."""
    if page.startswith(UNSEARCHED):
        return {"exclude": True}
    weights = (weight for start, weight in WEIGHTS.items() if page.startswith(start))
    return {"boost": next(weights, TOPIC_WEIGHT)}


def with_links_of(text: str, source: str, page: str) -> str:
    """Return the text of a file of the repository with its links as they are on the site."""

    def of_site(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["path"]))
        if target in PAGES:
            there = PAGES[target]
        elif target.startswith("docs/notebooks/") and target.endswith(".py"):
            there = target.removeprefix("docs/").removesuffix(".py") + ".md"
        elif target.startswith("docs/"):
            there = target.removeprefix("docs/")
        elif (ROOT / target).exists():  # a file of the repository that is no page
            return f"{found['words']} (`{target}`)"
        else:
            return found[0]
        path = posixpath.relpath(there, posixpath.dirname(page) or ".")
        return f"[{found['words']}]({path}{found['anchor'] or ''})"

    return LINK.sub(of_site, text)


def with_wide_lists(text: str) -> str:
    """Return the text with what belongs to an item of a list indented by 4 columns a level."""
    lines, fenced, inside = [], False, False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        item = re.match(r" *(-|\d+\.) ", line) is not None
        fence = line.lstrip().startswith("```")
        if not fenced and not fence:
            inside = item or (inside and (indent > 0 or not line.strip()))
        wide = line
        if inside and indent and line.strip():
            levels = 1 if indent < 4 else 2
            wide = "  " + line if fenced else "    " * levels + line[indent:]
        fenced ^= fence
        lines.append(wide)
    return "\n".join(lines) + "\n"


def reference_page(package: str) -> str:
    """Return the page of a package: every name of its ``__all__``, from the docstrings."""
    module = importlib.import_module(package)
    values = {name: getattr(module, name) for name in sorted(module.__all__, key=str.lower)}
    lines = [f"# `{package}`", "", (module.__doc__ or "").strip(), ""]
    for name, value in values.items():
        if not hasattr(value, "__qualname__"):
            lines += [f"## `{name}`", "", f"A constant of type `{type(value).__name__}`.", ""]
            continue
        home = f"{value.__module__}.{value.__qualname__}"
        lines += [f"::: {home}", "    options:", f"      heading: {name}",
                  f"      toc_label: {name}", ""]  # fmt: skip
    return "\n".join(lines)
