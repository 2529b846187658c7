"""Outputs that an interrupted audit of a target finds again."""

import stat

import pytest

from audits.runner.kept_outputs import KeptOutputs, outputs_key

FIRST, SECOND = (outputs_key(["module:function"], [which, 7, 50]) for which in (0, 1))
MESSAGE = {"outputs": [1.5, 2.5], "which": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.outputs"


def kept(path, *, again):
    outputs = KeptOutputs(str(path))
    outputs.begin(again=again)
    return outputs


def test_a_continued_run_finds_what_was_added(path):
    outputs = kept(path, again=False)
    outputs.add(FIRST, 50, MESSAGE)
    assert outputs.find(FIRST) == MESSAGE
    outputs.close(remove=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    continued = kept(path, again=True)
    assert (continued.find(FIRST), continued.runs) == (MESSAGE, 50)
    with pytest.raises(KeyError):
        continued.find(SECOND)
    continued.close(remove=True)
    assert not path.exists()


def test_a_new_run_finds_nothing(path):
    outputs = kept(path, again=False)
    outputs.add(FIRST, 50, MESSAGE)
    outputs.close(remove=False)
    anew = kept(path, again=False)
    assert anew.runs == 0
    with pytest.raises(KeyError):
        anew.find(FIRST)


def test_a_record_that_was_cut_is_left_out_and_written_over(path):
    outputs = kept(path, again=False)
    outputs.add(FIRST, 50, MESSAGE)
    complete = path.stat().st_size
    outputs.add(SECOND, 25, MESSAGE)
    outputs.close(remove=False)
    path.write_bytes(path.read_bytes()[:-1])
    continued = kept(path, again=True)
    assert (continued.runs, path.stat().st_size) == (50, complete)
    continued.add(SECOND, 25, MESSAGE)
    assert (continued.find(SECOND), continued.runs) == (MESSAGE, 75)


def test_outside_of_a_run_nothing_is_kept(path):
    outputs = KeptOutputs(str(path))
    outputs.add(FIRST, 50, MESSAGE)
    with pytest.raises(KeyError):
        outputs.find(FIRST)
    assert not path.exists()
