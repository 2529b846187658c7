"""Digests of code: of a module's file, without an import."""

import hashlib

from audits.results.result_file import NOT_FOUND, code_digest


def test_the_digest_is_that_of_the_file_which_is_not_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit")
    file = package / "mine.py"
    file.write_text("raise SystemExit")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    assert code_digest("pack.mine:f") == f"SHA-256 {found} of pack.mine"
    file.write_text("changed")
    assert found not in code_digest("pack.mine:f")
    assert code_digest("no.such:f") == f"no.such: {NOT_FOUND}"


def test_the_digest_of_a_program_is_that_of_its_words_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.mjs").write_text("first")
    first, other_words = code_digest(program=["sh", "a.mjs"]), code_digest(program=["ls", "a.mjs"])
    assert first.endswith(" of a.mjs")
    (tmp_path / "a.mjs").write_text("second")
    assert len({first, other_words, code_digest(program=["sh", "a.mjs"])}) == 3
    assert code_digest(program=["sh", "-c", "x" * 9999]).endswith(" of sh")
    query = code_digest(program=["sql", "SELECT :value"])
    assert query.endswith(" of the words of the command line")
    assert query != code_digest(program=["sql", "SELECT 2 * :value"])


def test_the_digest_of_the_package_counts_its_modules():
    assert code_digest() == code_digest()
    assert code_digest().endswith(" modules of dp-attest")
