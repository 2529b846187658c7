"""The code that a function can run, and where it is defined; nothing is imported to know it.

`project_code` follows the imports of a module through the files of its project, in the syntax of
each: those inside of functions too.  Modules of Python and of installed packages are left out, as
their versions stand for them.  A file of the project may read what is in none of these files: other
files, the environment, modules whose names are computed.  Then no digest of code stands for what it
does, and the places where it reads are named.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import inspect
import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, NamedTuple, final

OWN_FOLDER = Path(__file__).resolve().parents[2]  # it holds the packages of dp-attest
PACKAGES = ("accountant", "mechanisms", "algorithms", "audits")  # these, of which all is digested
# Builtins that read files or make code, and words in names of functions and of fields that do.
READING_BUILTINS = {
    "open", "exec", "eval", "compile", "__import__", "__loader__", "__builtins__", "__path__",
}  # fmt: skip
READING_WORDS = {
    "addsitedir", "argv", "cdll", "connect", "csv", "datasets", "download", "environ",
    "environb", "exec", "exists", "feather", "fetch", "file", "files", "fromfile", "fromregex",
    "genfromtxt", "getenv", "getmtime", "getsize", "glob", "import", "isdir", "isfile", "iterdir",
    "lexists", "listdir", "load", "loadmat", "loadtxt", "lstat", "memmap", "open", "parquet",
    "pickle", "popen", "pretrained", "pydll", "read", "readlines", "rglob", "scandir", "sql",
    "stat", "system", "urlopen", "urlretrieve", "wavfile",
}  # fmt: skip
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # of a name such as read_csv or ZipFile
SYSTEM_FIELDS = {"path", "modules", "meta_path", "path_hooks", "argv", "_getframe"}  # of `sys`
# Modules by which code reaches what is in no file of the project.
READING_MODULES = {
    "builtins", "cffi", "configparser", "cppimport", "ctypes", "dbm", "fileinput", "glob", "http",
    "httpx", "imp", "importlib", "jpype", "juliacall", "linecache", "matlab", "mmap", "oct2py",
    "pickle", "pkgutil", "py4j", "pyximport", "requests", "rpy2", "runpy", "shelve", "site",
    "socket", "sqlite3", "subprocess", "urllib", "zipimport",
}  # fmt: skip


class Place(NamedTuple):
    """A line of code: its file from the folder of the repository, and what was seen there."""

    path: str
    line: int
    sentence: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@final
class ProjectCode:
    """The modules of a project that a module can run, as ``digest``, and what they read besides.

    ``reads`` are the places where code reads what is in none of the files.
    """

    def __init__(self, module: str) -> None:
        importlib.invalidate_caches()
        self.reads: list[str] = []
        self._files: dict[str, str] = {}  # the digest of the file of each module
        own_package = module.partition(".")[0]
        # Python runs the last two before any module, where they are there.
        waiting = [*with_parents(module), "sitecustomize", "usercustomize"]
        while waiting:
            name = waiting.pop()
            if name in self._files:
                continue
            spec = find_module(name)
            if spec is None or not spec.has_location or spec.origin is None:
                self._files[name] = "not found, or no file"
                continue
            path = Path(spec.origin)
            is_own = name.partition(".")[0] == own_package
            try:
                content = path.read_bytes()
                self._files[name] = hashlib.sha256(content).hexdigest()
                if is_of_dp_attest(path) or (is_installed(path) and not is_own):
                    continue  # what it imports is installed too
                tree = ast.parse(content)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                self._files.setdefault(name, "not read")
                self.reads.append(f"{shown_path(path)} is no source that can be read")
                continue
            self.reads += [
                f"{shown_path(path)}:{line} uses {word}" for line, word in reading_lines(tree)
            ]
            is_package = spec.submodule_search_locations is not None
            waiting += imported_modules(tree, name, is_package=is_package)

    @property
    def digest(self) -> str:
        """SHA-256 of the names and the files of all modules."""
        lines = [f"{digest}  {name}" for name, digest in sorted(self._files.items())]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def with_parents(module: str) -> list[str]:
    """A module and the packages that it is in, all of which an import runs."""
    name_parts = module.split(".")
    return [".".join(name_parts[:count]) for count in range(1, len(name_parts) + 1)]


def find_module(module: str) -> ModuleSpec | None:
    """What an import would find, in the current folder first; no code of a package is run.

    `importlib.util.find_spec` would import the packages that the module is in.
    """
    spec: ModuleSpec | None = None
    for name in with_parents(module):
        if not name.rpartition(".")[2].isidentifier():
            return None
        if "." not in name:
            spec = PathFinder.find_spec(name, ["", *sys.path])
            # Editable installations bring finders of their own.
            for finder in sys.meta_path if spec is None else ():
                spec = spec or finder.find_spec(name, None)
        elif spec is not None and spec.submodule_search_locations is not None:
            folders = list(spec.submodule_search_locations)
            try:
                spec = PathFinder.find_spec(name, folders)
            except KeyError:  # a folder without __init__.py in a package that is not imported
                spec = ModuleSpec(name, None, is_package=True)
                within = [Path(folder, name.rpartition(".")[2]) for folder in folders]
                spec.submodule_search_locations = [str(path) for path in within if path.is_dir()]
        else:
            return None
    return spec


def is_installed(path: Path) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    names = [*site.getsitepackages(), site.getusersitepackages()]
    names += [sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")]
    return any(path.resolve().is_relative_to(Path(name).resolve()) for name in names)


def is_of_dp_attest(path: Path) -> bool:
    """Whether a file belongs to the packages of dp-attest."""
    resolved = path.resolve()
    return any(resolved.is_relative_to(OWN_FOLDER / package) for package in PACKAGES)


def imported_modules(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    """The modules that the imports of a module name, with the packages that they are in.

    A name that is imported from a package may be a module of it; with a star all of them may be.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom) and (base := source_of(node, module, is_package)):
            yield from with_parents(base)
            for alias in node.names:
                if alias.name != "*":
                    yield f"{base}.{alias.name}"
                    continue
                spec = find_module(base)
                folders = None if spec is None else spec.submodule_search_locations
                for path in (path for folder in folders or () for path in Path(folder).glob("*")):
                    yield f"{base}.{path.name.partition('.')[0]}"


def source_of(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The module that ``from ... import`` names, as ``module`` means it; "" above all packages."""
    own_parts = module.split(".") if node.level else []
    parents = own_parts[: len(own_parts) - node.level + is_package] if node.level else []
    return ".".join([*parents, *([node.module] if node.module else [])])


def reading_lines(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines that may read what is in no module: files, the environment, other code."""
    for node in ast.walk(tree):
        suspects: list[str] = []
        if isinstance(node, ast.Import):
            suspects += [
                alias.name
                for alias in node.names
                if alias.name.partition(".")[0] in READING_MODULES
                or (alias.name == "sys" and alias.asname)
            ]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            is_reading = node.module.partition(".")[0] in READING_MODULES
            suspects += [
                alias.name
                for alias in node.names
                if is_reading or reads(alias.name) or node.module == "sys"
            ]
        elif isinstance(node, ast.Name):
            # A module's own `__getattr__` that is no function comes from a loader of modules.
            is_loader = isinstance(node.ctx, ast.Store) and node.id == "__getattr__"
            suspects += [node.id] if node.id in READING_BUILTINS or is_loader else []
        elif isinstance(node, ast.Attribute):
            is_system = isinstance(node.value, ast.Name) and node.value.id == "sys"
            is_field = is_system and node.attr in SYSTEM_FIELDS
            suspects += [node.attr] if is_field or reads(node.attr) else []
        for name in suspects[:1]:
            yield getattr(node, "lineno", 1), name


def reads(name: str) -> bool:
    """Whether a function or a field of this name may read a file, the environment or code."""
    return any(word.lower() in READING_WORDS for word in WORD.findall(name))


def place_of_name(name: str, re_exports: int = 10) -> Place | None:
    """Where ``package.module:function`` is defined; the module's first line if that is not seen.

    An import of the function from another module is followed, so many times.  A command line is at
    the first of its words that is a file.
    """
    importlib.invalidate_caches()
    module, _, function = name.partition(":")
    spec = find_module(module)
    if spec is None or spec.origin is None or not spec.has_location:
        files = (Path(word) for word in name.split() if Path(word).is_file())
        return next((Place(shown_path(file), 1) for file in files), None)
    path, line, imported_name = Path(spec.origin), 1, ""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        body = []
    for count, word in enumerate(name_parts := function.split(".")):
        inner: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if node.name == word:
                    line, inner, imported_name = node.lineno, node.body, ""
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == word for target in targets):
                    line, inner, imported_name = node.lineno, [], ""
            elif isinstance(node, ast.ImportFrom):
                is_package = spec.submodule_search_locations is not None
                for alias in node.names:
                    if word == (alias.asname or alias.name):
                        line, inner = node.lineno, []
                        source = source_of(node, module, is_package)
                        imported_name = (
                            f"{source}:{'.'.join([alias.name, *name_parts[count + 1 :]])}"
                        )
        body = inner
    here = Place(shown_path(path), line)
    return (
        place_of_name(imported_name, re_exports - 1) if imported_name and re_exports else None
    ) or here


def place_of(definition: Any) -> Place | None:
    """Where a class, a function, or the class of an object is defined; None if not known."""
    while isinstance(definition, functools.partial):
        definition = definition.func
    if not inspect.isroutine(definition):
        definition = definition if isinstance(definition, type) else type(definition)
    try:
        definition = inspect.unwrap(definition)
        path = inspect.getsourcefile(definition)
        _, line = inspect.getsourcelines(definition)
    except (TypeError, OSError, ValueError):
        return None
    return None if path is None else Place(shown_path(Path(path)), max(line, 1))


def shown_path(path: Path) -> str:
    """A path as reports show it: from the folder of the repository, if the file is in it.

    Else it is from the folder where Python finds the module, so that it is the same elsewhere.
    """
    path = path.resolve()
    for folder in (repository(), *map(Path, sys.path)):
        if path.is_relative_to(folder.resolve()):
            return path.relative_to(folder.resolve()).as_posix()
    return path.name


def repository() -> Path:
    """The folder of the repository that the current folder is in; without one the current one."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
