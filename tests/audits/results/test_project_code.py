"""The code that a function can run is known without an import, and all of it is digested."""

import json
import subprocess
import sys
import textwrap
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.results.project_code import (
    Place,
    ProjectCode,
    find_module,
    place_of,
    place_of_name,
    shown_path,
)
from mechanisms import Laplace


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A function that writes files, and empties the folder's place among earlier imports."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()

    def write(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__init__", "/__init__").replace("_dot_", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return tmp_path

    return write


# every way in which a module may come to run another one of its project
FORMS = {
    "releases.py": """
        import plain
        import pack.deep.leaf
        import renamed as other
        from named import NAME
        from pack2 import module_of_package
        from pack3 import *
        import spaces.inner
        if len("ab") == 2:
            import conditional
        try:
            import absent_module
        except ImportError:
            import instead
        class Holder:
            import in_class
        def release(value, rng):
            import in_function
            from pack4.relative import VALUE
            return value
        def lazily():
            import later
        release(1, None)
        """,
    "plain.py": "import of_plain",
    "of_plain.py": "",
    "pack/__init__.py": "from .sibling import X",
    "pack/sibling.py": "X = 1",
    "pack/deep/__init__.py": "",
    "pack/deep/leaf.py": "from .. import aunt\nfrom ..cousin import Y\nfrom ..uncle import *",
    "pack/cousin.py": "Y = 1",
    "pack/aunt.py": "",
    "pack/uncle.py": "",
    "renamed.py": "",
    "named.py": "from behind import NAME",
    "behind.py": "NAME = 1",
    "pack2/__init__.py": "",
    "pack2/module_of_package.py": "",
    "pack3/__init__.py": "__all__ = ['starred', 'folder']",
    "pack3/starred.py": "",
    "pack3/folder/__init__.py": "",
    "spaces/inner.py": "",  # a package without a file of its own
    "conditional.py": "",
    "instead.py": "",
    "in_class.py": "",
    "in_function.py": "",
    "later.py": "",
    "pack4/__init__.py": "",
    "pack4/relative.py": "from .value import VALUE",
    "pack4/value.py": "VALUE = 1",
    "unrelated.py": "import plain",
}


def test_whatever_python_loads_is_digested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FORMS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).strip())
    (tmp_path / "pack3" / "kept").mkdir()  # a package without a file, as __pycache__ is one
    loading = (
        "import json, sys; sys.path.insert(0, ''); import releases; releases.lazily();"
        "files = [getattr(m, '__file__', None) for m in list(sys.modules.values())];"
        "print(json.dumps([file for file in files if file]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", loading], capture_output=True, text=True, check=True
    )
    loaded = {Path(file).resolve() for file in json.loads(done.stdout)}
    loaded = {path for path in loaded if path.is_relative_to(tmp_path.resolve())}
    assert {path.relative_to(tmp_path.resolve()).as_posix() for path in loaded} == set(FORMS) - {
        "unrelated.py"
    }
    before = ProjectCode("releases")
    assert before.reads == []
    for path in loaded:
        text = path.read_text()
        path.write_text(text + "\n# changed")
        assert ProjectCode("releases").digest != before.digest, path
        path.write_text(text)
    assert ProjectCode("releases").digest == before.digest
    # what it does not run may change, and another folder is the same code
    (tmp_path / "unrelated.py").write_text("x = 1")
    (tmp_path / "report.json").write_text("{}")
    assert ProjectCode("releases").digest == before.digest
    # a module that was not there, and one that hides another
    for name in ("absent_module.py", "plain/__init__.py", "numpy.py", "sitecustomize.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if name == "numpy.py":
            (tmp_path / "renamed.py").write_text("import numpy")
            before = ProjectCode("releases")
        path.write_text("x = 1")
        assert ProjectCode("releases").digest != before.digest, name
        path.unlink()
        if path.parent != tmp_path:
            path.parent.rmdir()
        assert ProjectCode("releases").digest == before.digest, name


IMPORTS = ("import {0}", "import {0} as other", "from {0} import x", "def f():\n    import {0}",
           "if x:\n    from {0} import x as y", "class B:\n    def f(self):\n        import {0}",
           "class A:\n    import {0}", "from {0} import *")  # fmt: skip


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_change_is_seen_exactly_where_it_is_reached(tmp_path_factory, data):
    count = data.draw(st.integers(2, 6))
    folder = tmp_path_factory.mktemp("graph")
    names = [f"node_{k}_of_{folder.name.replace('-', '_')}" for k in range(count)]
    edges = {
        name: data.draw(st.lists(st.sampled_from(names), max_size=3), label="imports")
        for name in names
    }
    for name in names:
        lines = ["x = 1"]
        lines += [data.draw(st.sampled_from(IMPORTS)).format(other) for other in edges[name]]
        (folder / f"{name}.py").write_text("\n".join(lines) + "\n")
    reached, waiting = set(), [names[0]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += edges[name]
    changed = data.draw(st.sampled_from(names))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        before = ProjectCode(names[0])
        with (folder / f"{changed}.py").open("a") as file:
            file.write(data.draw(st.sampled_from(["x = 2\n", "# words\n", "\n"])))
        after = ProjectCode(names[0])
    assert before.reads == after.reads == []
    assert (after.digest != before.digest) is (changed in reached)


READS = [
    "open('scale.txt')", "from pathlib import Path\nPath('a').read_text()", "import os\nos.environ",
    "import os\nos.getenv('SCALE')", "import numpy as np\nnp.load('a.npy')", "exec('x')",
    "import numpy as np\nnp.genfromtxt('a')", "import importlib", "import pickle", "eval('1')",
    "from importlib import import_module", "__import__('os')", "import subprocess", "x = open",
    "from os import environ as harmless", "import sys\nsys.path.append('lib')",
    "from sys import path", "import sys as harmless", "import sys\nsys.modules", "import ctypes",
    "import pandas as pd\npd.read_csv('a.csv')", "from builtins import open as harmless",
    "import io\nio.open('a')", "import sqlite3", "import urllib.request", "import runpy",
    "import lazy_loader as lazy\n__getattr__, __dir__, __all__ = lazy.attach(__name__)",
    "import os\nos.path.exists('a')", "__path__.append('x')", "import pkgutil",
    "import yaml\nyaml.safe_load(x)", "import h5py\nh5py.File('x')",
    "import zipfile\nzipfile.ZipFile('x')", "import polars\npolars.scan_parquet('x')",
    "import pyximport",
    "import duckdb\nduckdb.sql('select 1')", "from sys import modules as harmless",
    "from torchvision import datasets", "import joblib\njoblib.load('model')", "def f(:",
]  # fmt: skip


@pytest.mark.parametrize("text", READS)
def test_code_that_reads_what_no_digest_stands_for_is_named(project, text):
    project(reader=text, releases="import numpy as np\nfrom reader import *\n")
    (read,) = {line.partition(":")[0].partition(" ")[0] for line in ProjectCode("releases").reads}
    assert read == "reader.py"
    project(reader="x = 1")
    assert ProjectCode("releases").reads == []


def test_code_that_reads_nothing_is_not_named(project):
    project(
        releases="""
        import json, math, os.path, re, sys
        import numpy as np
        from scipy import stats
        WORD = re.compile("a")
        def release(value, rng, size):
            json.loads("[1]")
            profile = {}.get(sys.maxsize)
            stats.norm.logpdf(value).readonly.spread.already.payload.threads.overloaded
            return np.clip(value, 0, sys.maxsize) + rng.laplace(size=size)
        """
    )
    assert ProjectCode("releases").reads == []


def test_compiled_code_of_the_project_is_not_known(project):
    folder = project(releases="import fast")
    suffix = EXTENSION_SUFFIXES[0]
    (folder / f"fast{suffix}").write_bytes(b"\x7fELF\x00")
    assert ProjectCode("releases").reads == [f"fast{suffix} is no source that can be read"]


def test_a_package_of_the_project_that_is_installed_is_digested(project, monkeypatch):
    import audits.results.project_code as module

    folder = project(**{"mypack__init__": "from mypack.part import x", "mypack_dot_part": "x = 1"})
    monkeypatch.setattr(module, "is_installed", lambda path: path.is_relative_to(folder))
    before = ProjectCode("mypack").digest
    project(mypack_dot_part="x = 2")
    assert ProjectCode("mypack").digest != before


def test_a_folder_with_the_name_of_one_of_ours_is_the_projects(project):
    project(mechanisms="x = 1", releases="import mechanisms")
    before = ProjectCode("releases").digest
    project(mechanisms="x = 2")
    assert ProjectCode("releases").digest != before


def test_a_name_is_found_where_it_is_defined(project):
    folder = project(
        releases="""
        from pack.noise import laplace as renamed
        import functools

        @functools.lru_cache
        def decorated(value):
            return value

        class Group:
            rate = 1
            @staticmethod
            def release(value):
                return value

        made = functools.partial(decorated)
        from nowhere import missing
        """,
        pack__init__="",
        pack_dot_noise="""

        async def laplace(value):
            return value
        """,
    )
    lines = {"decorated": 6, "Group": 9, "Group.release": 12, "made": 15, "missing": 16, "no": 1}
    for name, line in lines.items():
        assert place_of_name(f"releases:{name}") == Place("releases.py", line), name
    assert place_of_name("releases:renamed") == Place("pack/noise.py", 3)
    assert place_of_name("no_such_module:f") is None
    assert place_of_name("") is place_of_name("select 1") is place_of_name("./pack") is None
    assert place_of_name("node pack/noise.py --fast") == Place("pack/noise.py", 1)
    inner = folder / "pack"
    # from the folder of the repository, wherever one stands in it
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(inner)
        assert place_of_name("noise:laplace") == Place("pack/noise.py", 3)


def test_two_modules_that_import_from_each_other_end(project):
    project(one="from two import f", two="from one import f")
    assert place_of_name("one:f").line == 1
    assert ProjectCode("one").digest


def test_a_class_and_an_object_of_it_are_at_the_class():
    place = place_of(Laplace)
    assert place == place_of(Laplace(scale=1.0))
    line = Path(place.path).read_text().splitlines()[place.line - 1]
    assert place.path.startswith("mechanisms/")
    assert "class Laplace" in line or line.startswith("@")
    assert place_of(len) is None
    assert str(Place("a/b.py", 3)) == "a/b.py:3"


def test_nothing_is_imported_to_know_it(project):
    project(releases="raise SystemExit", pack__init__="raise SystemExit", pack_dot_part="x = 1")
    assert find_module("pack.part").origin.endswith("part.py")
    assert ProjectCode("releases").reads == []
    assert {"releases", "pack", "pack.part"}.isdisjoint(sys.modules)


def test_a_path_of_no_known_folder_is_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown_path(Path("/nowhere/else/file.py")) == "file.py"
