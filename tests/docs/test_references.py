"""README and docs name only what exists in the repository, in plain words, 100 columns wide."""

import ast
import importlib
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import accountant.__main__
import audits.__main__
from experiments.catalogue import FIGURES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED = re.compile(r"`([^`]+)`")
AVOIDED = re.compile(
    r"\b(told|somebody|someone|whoever|nobody|anybody|everybody|things?|houses?|floors?(?!\()"
    r"|rungs?|knobs?|tilts|(?<!connect-the-)dots|methods\.md|shared/|/work/)(?!\w)",
    re.IGNORECASE,
)
# names in backticks that are no part of the code
FOREIGN = {"AssertionError", "TestCase", "GaussianDpEvent", "S", "P", "Q", "PATH", "ADDRESS",
           "async", "test_"}  # fmt: skip

CHANGELOG = ROOT / "CHANGELOG.md"  # it names what is gone, too; only its prose is checked

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def parts(page):
    """Yield each line of a page with its number, and whether it is code."""
    fenced, indented, before = False, False, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = line.lstrip().startswith("```")
        indented = line.startswith("    ") and (indented or not before.strip())
        yield number, line, fenced or fence or indented
        fenced ^= fence
        before = line


def prose(page):
    return [(number, line) for number, line, code in parts(page) if not code]


def text_of(page):
    """Return the prose of a page with its line breaks taken out, so that no name is cut."""
    return " ".join(line.strip() for _, line in prose(page))


def code_of(page):
    return [line for _, line, code in parts(page) if code]


def quoted(page):
    return QUOTED.findall(text_of(page))


@cache
def anchors(page):
    """Return the anchors of a page, as GitHub makes them from headings, and its explicit ids."""
    text = "\n".join(line for _, line in prose(page))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in headings}
    return slugs | set(re.findall(r'id="([^"]+)"', text))


@cache
def sources():
    """Return the text of every Python file of the repository."""
    folders = (*PACKAGES, "tests", "experiments", "benchmarks")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path: path.read_text(encoding="utf-8") for path in files}


@cache
def package_words():
    texts = (
        text for path, text in sources().items() if path.relative_to(ROOT).parts[0] in PACKAGES
    )
    return {word for text in texts for word in re.findall(r"\w+", text)}


@cache
def defined_names():
    """Return what the code defines: modules, classes, functions, parameters, fields, attributes."""
    names = {path.stem for path in sources()} | {path.stem for path in DOCS.rglob("figures/*")}
    for text in sources().values():
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    names.add(name)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.add(name)
                case ast.Assign(targets=targets):
                    names |= {one.attr for one in targets if isinstance(one, ast.Attribute)}
    return names


@each_page
def test_links_and_anchors_resolve(page):
    for link in LINK.findall(text_of(page)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@each_page
def test_files_exist(page):
    words = [word for name in quoted(page) for word in name.split()]
    words += [word for line in code_of(page) for word in line.split()]
    for word in words:
        path = word.strip("'\"(),;:")
        inside = re.fullmatch(r"([\w.-]+)(/[\w.$*-]+)+/?", path)
        if inside and (ROOT / inside[1]).exists() and not path.startswith(".venv"):
            pattern = re.sub(r"\$\w", "*", path.rstrip("/"))  # $i of a loop in the shell
            assert list(ROOT.glob(pattern)), path
    for name in quoted(page):
        if re.fullmatch(r"\w+\.py", name):
            assert any(path.name == name for path in sources()), name
        if re.fullmatch(r"(\w+/)+\w+(\.\w+)*/?", name):  # a path alone: also one that went away
            assert (ROOT / name).exists() or (page.parent / name).exists(), name


@each_page
def test_dotted_names_resolve(page):
    for name in quoted(page):
        dotted = re.match(rf"({'|'.join(PACKAGES)})(\.\w+)+(?=$|\()", name)
        if dotted is None or name.endswith(".md"):
            continue
        words = dotted[0].split(".")
        found = importlib.import_module(words[0])
        for k, word in enumerate(words[1:], 1):
            if hasattr(found, word):
                found = getattr(found, word)
            else:
                found = importlib.import_module(".".join(words[: k + 1]))


@each_page
def test_commands_exist(page):
    text = text_of(page) + "\n" + "\n".join(code_of(page))
    known = {
        "accountant": {*accountant.__main__.COMMANDS, "ledger", "receipt"},
        "audits": {*audits.__main__.COMMANDS, "low"},  # "low bits" is the name of a row
    }
    for group, word in re.findall(r"dp-attest (account|audit) ([a-z]+)(?=[\s`\"|]|$)", text):
        assert word in known["accountant" if group == "account" else "audits"], word
    for program, word in re.findall(r"python -m (\w+)((?: +\"?[a-z]+(?=[\s`\"|]|$))?)", text):
        programs = (
            *PACKAGES,
            "verifier",
            "pytest",
            "experiments",
            "benchmarks",
            "examples",
            "tests",
        )
        assert program in programs, program
        if word.strip() and program in known:
            assert word.strip(' "') in known[program], word
    for name in re.findall(r"python -m experiments ([\w$-]+)", text):
        assert any(re.fullmatch(re.sub(r"\$\w", r"\\w+", name), figure) for figure in FIGURES), name
    for name in re.findall(r"python -m examples\.(\w+)", text):
        assert (ROOT / "examples" / f"{name}.py").is_file(), name
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = set(re.findall(r"(?:`|\$ )make (\w+)", text))
    assert wanted <= targets


@each_page
def test_names_of_classes_are_in_the_code(page):
    for name in quoted(page):
        for word in re.findall(r"(?<![\w.])[A-Z][a-z]+(?:[A-Z]+[a-z]*)+\b", name):
            if word not in FOREIGN:
                assert any(word in text for text in sources().values()), word


@each_page
def test_plain_names_are_defined(page):
    own = set(re.findall(r"\w+", "\n".join(code_of(page))))
    for name in quoted(page):
        if re.fullmatch(r"[a-z]\w+(\(\))?", name) and name not in FOREIGN:
            assert name.removesuffix("()") in defined_names() | own, name


def test_the_glossary_speaks_of_the_code():
    words = [re.findall(r"[A-Za-z_]\w+", name) for name in quoted(DOCS / "glossary.md")]
    relations = {"add", "remove", "replace", "one", "label", "local", "machine"}
    commands = {"python", "zoo", "strict"}
    names = {word for each in words for word in each} - relations - commands
    assert len(names) > 80
    assert names - package_words() == set()


def test_the_start_page_and_the_page_of_proofs_link_every_page():
    starts = (DOCS / "index.md", DOCS / "proofs" / "index.md")
    linked = {(start.parent / link.partition("#")[0]).resolve()
              for start in starts for link in LINK.findall(text_of(start))}  # fmt: skip
    assert set(PAGES) - {DOCS / "index.md"} <= linked


@each_page
def test_codes_of_errata_are_links(page):
    if page.name == "errata.md":
        return
    text = re.sub(r"\[[^]]*\]\([^)]*\)", "", text_of(page))
    allowed = re.compile(r"[Cc]odes such as E\d+")
    assert re.findall(r"\bE\d+[a-e]?\b", allowed.sub("", text)) == []
    assert re.findall(r"\bE\d\d?[a-e]?\b", " ".join(code_of(page))) == []


@pytest.mark.parametrize("page", [*PAGES, CHANGELOG], ids=lambda page: page.name)
def test_lines_of_prose_end_at_100_characters(page):
    for number, line in prose(page):
        if not line.startswith(("|", "![")) and "://" not in line:
            assert len(line) <= 100, f"{page.name}:{number}"


@pytest.mark.parametrize("page", [*PAGES, CHANGELOG], ids=lambda page: page.name)
def test_avoided_words_are_absent(page):
    found = [(number, word[0]) for number, line in prose(page) for word in AVOIDED.finditer(line)]
    assert found == []


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        assert len(re.findall(r"^(?:>>>|\.\.\.)", example, re.MULTILINE)) <= 10
    # the first result is an epsilon
    first = re.search(r"^>>> (.*)\n([^>.].*)$", examples[0], re.MULTILINE)
    assert "epsilon(" in first[1]
    assert 0 < float(first[2]) < 10


def test_the_meaning_of_plans_is_one_short_page():
    assert len((DOCS / "plans.md").read_text(encoding="utf-8").split()) <= 1350


def rooms_of(container):
    """Return the rooms that docs/why.md lists for a package, with all rooms each may import."""
    rows = re.findall(rf"^\| `{container}\.(\w+)` \| .* \| (.*) \|$",
                      (DOCS / "why.md").read_text(encoding="utf-8"), re.MULTILINE)  # fmt: skip
    direct = {
        room: set(re.findall(r"\w+", QUOTED.sub("", allowed))) - {"no", "room"}
        for room, allowed in rows
    }

    def below(room):
        return direct[room].union(*(below(one) for one in direct[room]))

    return {room: below(room) for room in direct}


@pytest.mark.parametrize("container", ["accountant", "algorithms", "audits", "audits.minimax"])
def test_the_tree_of_rooms_is_that_of_the_contracts(container):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("containers") == [container]]
    folder = ROOT / container.replace(".", "/")
    allowed, below = {}, set()
    for layer in reversed(layers):
        rooms = {name for name in layer.split(" | ") if (folder / name).is_dir()}
        allowed |= {room: set(below) for room in rooms}
        below |= rooms
    assert rooms_of(container) == allowed
