"""A program as a release: what it is asked, what it may answer, and how it may fail."""

import concurrent.futures
import gc
import json
import os
import pickle
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from accountant import ParameterError
from audits import Command, assert_private, audit, audit_bits, audit_command, audit_timing
from audits.runs import command as command_file
from audits.runs.release_functions import RaisedOutcome

PYTHON = (sys.executable, "-S", "-E", "-c")
LOOP = """
import json, math, os, random, sys, time
def answer(**parts):
    print(json.dumps(parts), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    value, runs, seed = request.values()
"""


def program(body, *, once=False, timeout=20.0):
    """A `Command` of Python code that is run for each request."""
    return Command([*PYTHON, LOOP + "".join(f"    {row}\n" for row in body.split("\n"))],
                   once=once, timeout=timeout)  # fmt: skip


def drawn(body, size=2, value=3.0, **options):
    with program(body, **options) as release:
        return release(value, np.random.default_rng(0), size)


def test_a_request_has_the_value_the_number_of_runs_and_a_seed():
    with program("answer(outputs=[line] * runs)") as release:
        asked = [
            json.loads(line) for _ in range(2) for line in release(5, np.random.default_rng(0), 1)
        ]
    assert [list(request) for request in asked] == [["value", "runs", "seed"]] * 2
    assert {(request["value"], request["runs"]) for request in asked} == {(5, 1)}
    seeds = [request["seed"] for request in asked]
    assert seeds[0] == seeds[1] == int(np.random.default_rng(0).integers(1 << 53))


def test_the_order_of_the_keys_stays_whatever_the_value_has():
    value = {"seed": [1, None], "runs": "x", "value": {"a": 0.1}}
    assert drawn("answer(outputs=[value] * runs)", 1, value) == [value]


def test_one_process_answers_many_requests_of_at_most_1000_runs():
    with program("answer(outputs=[[os.getpid(), runs]] * runs)") as release:
        rng = np.random.default_rng(0)
        asked = np.concatenate([release(0, rng, 2500), release(1, rng, 2)])
    assert len(np.unique(asked[:, 0])) == 1
    assert [list(asked[:, 1]).count(runs) for runs in (10, 1000, 490, 2)] == [10, 2000, 490, 2]


def test_requests_of_long_outputs_have_fewer_runs(monkeypatch):
    monkeypatch.setattr(command_file, "ANSWER_BYTES", 10_000)
    body = "answer(outputs=[[runs] + [1] * 400] * runs)"  # 1,200 bytes each
    assert drawn(body, 26)[:, 0].tolist() == [10] * 10 + [8] * 16


def test_once_is_a_process_a_run_with_a_closed_input():
    body = "rest = sys.stdin.read(); answer(outputs=[[os.getpid(), runs, len(rest)]])"
    asked = drawn(body, 3, once=True)
    assert len(np.unique(asked[:, 0])) == 3
    assert asked[:, 1:].tolist() == [[1, 0]] * 3


def test_a_seed_repeats_a_program_that_draws_from_it():
    body = "random.seed(seed); answer(outputs=[random.random() for _ in range(runs)])"
    first, second = drawn(body, 1500), drawn(body, 1500)
    assert np.array_equal(first, second)
    assert len(np.unique(first)) == 1500


def test_threads_have_processes_of_their_own():
    with (
        program("time.sleep(0.01); answer(outputs=[os.getpid()] * runs)") as release,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        tasks = [pool.submit(release, 0, np.random.default_rng(k), 1) for k in range(8)]
        processes = {int(task.result()[0]) for task in tasks}
    assert len(processes) == 2


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ("[1, 2.5]", np.array([1.0, 2.5])),
        ("[2, 3]", np.array([2, 3])),
        ("[[1, 2.5], [3, 4]]", np.array([[1.0, 2.5], [3.0, 4.0]])),
        ("[True, 2.5]", [True, 2.5]),
        ("[[1], [1, 2]]", [[1], [1, 2]]),
        ("['a', None]", ["a", None]),
        ("[10**400, 2**53 + 1]", [10**400, 2**53 + 1]),
        ("[2**60, 0.5]", [2**60, 0.5]),
        ("[math.nan, math.inf]", np.array([np.nan, np.inf])),
        ("[{'a': [1]}, '\\ud800']", [{"a": [1]}, "\ud800"]),
    ],
)
def test_outputs_are_what_json_says_and_keep_their_digits(outputs, expected):
    found = drawn(f"answer(outputs={outputs})")
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def test_a_run_that_failed_is_an_outcome():
    errors = '[None, "ValueError: of a record", "just text: of it"]'
    found = drawn(f"answer(outputs=[1, None, None], errors={errors})", 3)
    assert found == [
        1, RaisedOutcome("ValueError", "of a record"), RaisedOutcome("error", "just text: of it"),
    ]  # fmt: skip


def test_how_a_program_ends_is_an_outcome_of_once():
    body = (
        "print('Error: of a record', file=sys.stderr)\n"
        "if value: os.kill(os.getpid(), 9) if value > 1 else sys.exit(7)\n"
        "sys.exit(0)"
    )
    assert [drawn(body, 1, value, once=True)[0] for value in (0, 1, 2)] == [
        RaisedOutcome("exit status 0 without an answer", "Error: of a record"),
        RaisedOutcome("exit status 7", "Error: of a record"),
        RaisedOutcome("signal SIGKILL", "Error: of a record"),
    ]
    found = drawn("print('{\"outputs\": [4]}', end=''); sys.exit(value)", 1, 3, once=True)
    assert found == [RaisedOutcome("exit status 3")]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(3)", "it ended with exit status 3"),
        ("answer(outputs=[1]); sys.exit(0)", "one that makes one run and ends needs once"),
        ("raise KeyError('x')", r"exit status 1 \(KeyError: 'x'\), got"),
        ("os.kill(os.getpid(), 11)", "signal SIGSEGV"),
        ("os.close(1); os.close(2); time.sleep(60)", "within the timeout of 0.4 s"),
        ("time.sleep(60)", "within the timeout of 0.4 s: it must flush each answer"),
        ("print('hm', flush=True); time.sleep(60)", r"\(it wrote 1 lines that are no answers\)"),
        ("answer(outputs=[1, 2])", "not 2 outputs and 2 errors"),
        ("answer(outputs=[1], errors=[])", "not 1 outputs and 0 errors"),
        ("answer(outputs=3)", "whose answers are lines such as"),
        ("answer(outputs=[1], seconds=-1)", "this one was no such line"),
        ("answer(output=[1])", "this one was no such line"),
        ("print('{garbage', flush=True)", "this one was no such line"),
        ("print('{\"outputs\": ' + 100000 * '[', flush=True)", "this one was no such line"),
        ("print('{\"outputs\": [' + 5000 * '9' + ']}', flush=True)", "this one was no such line"),
        ("os.write(1, b'{\"\\xff\": 1}\\n')", "this one was no such line"),
        ("answer(outputs=[1]); answer(outputs=[1])", "one answer for each"),
    ],
)  # fmt: skip
def test_a_program_that_fails_is_named_with_a_remedy(body, message):
    timeout = 0.4 if "timeout" in message or "wrote" in message else 20.0

    def requests():
        for _ in range(2000):  # an answer too many is seen when it has come
            release(1, np.random.default_rng(0), 1)

    with program(body, timeout=timeout) as release, pytest.raises(ParameterError, match=message):
        requests()


@pytest.mark.parametrize("garbage", ["'y' * 1000", "'y' * 1000 + '\\n'"])
@pytest.mark.parametrize("once", [False, True])
def test_endless_output_is_stopped(garbage, once, monkeypatch):
    monkeypatch.setattr(command_file, "MAX_ANSWER_BYTES", 1 << 20)
    with pytest.raises(ParameterError, match="in lines of at most 1 MiB"):
        drawn(f"while True: sys.stdout.write({garbage})", once=once)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_after_an_answer_is_stopped(stream, monkeypatch):
    monkeypatch.setattr(command_file, "MAX_ANSWER_BYTES", 1 << 20)
    body = f"answer(outputs=[1] * runs)\nwhile True: sys.{stream}.write('y' * 1000)"
    with pytest.raises(ParameterError, match=r"at most 1 MiB|within the timeout of 0\.5 s"):
        drawn(body, 20, timeout=0.5)


def test_a_program_that_answers_what_it_has_not_read_is_refused():
    with (
        Command(
            ["sh", "-c", "sleep 0.1; echo '{\"outputs\": [1,1,1,1,1,1,1,1,1,1]}'; sleep 60"]
        ) as release,
        pytest.raises(ParameterError, match="reads a whole request before it answers"),
    ):
        release("v" * 300_000, np.random.default_rng(0), 11)


def test_what_is_no_answer_is_dropped_and_no_pipe_blocks():
    body = (
        "sys.stderr.write('x' * 300_000)\n"
        "print('loading\\n' * 100)\n"
        "answer(outputs=[len(value)] * runs)\n"
        "sys.stderr.write('y' * 300_000)"
    )
    with program(body) as release:
        found = [release("v" * 300_000, np.random.default_rng(0), 2) for _ in range(2)]
    assert [array.tolist() for array in found] == [[300_000] * 2] * 2


def test_a_byte_order_mark_and_the_ends_of_lines_of_windows_are_read():
    body = "sys.stdout.write('\\ufeff{\"outputs\": [%d]}\\r\\n' % value); sys.stdout.flush()"
    assert drawn(body, 1, 3).tolist() == [3]


def test_a_program_that_reads_no_request_may_answer():
    with Command(["sh", "-c", "echo '{\"outputs\": [2.5]}'"], once=True) as release:
        assert release("v" * 300_000, np.random.default_rng(0), 2).tolist() == [2.5, 2.5]


def test_a_program_with_a_child_ends_with_it(tmp_path):
    body = f"sleep 60 & echo $! > {tmp_path}/pid; read line; echo '{{\"outputs\": [1]}}'; wait"
    with Command(["sh", "-c", body]) as release:
        release(0, np.random.default_rng(0), 1)
    child = int((tmp_path / "pid").read_text())
    for _ in range(200):
        try:
            state = Path(f"/proc/{child}/stat").read_text().split()[2]
        except OSError:
            state = "gone"
        if state in {"gone", "Z"}:
            break
        time.sleep(0.01)
    assert state in {"gone", "Z"}


def test_processes_end_with_the_object_that_started_them():
    release = program("answer(outputs=[os.getpid()] * runs)")
    process = int(release(0, np.random.default_rng(0), 1)[0])
    os.kill(process, 0)
    del release
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_copy_for_another_process_starts_its_own():
    with program("answer(outputs=[1] * runs)", once=True, timeout=9.0) as release:
        copied = pickle.loads(pickle.dumps(release))
    assert (copied.words, copied.once, copied.timeout) == (release.words, True, 9.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "a program and its arguments"), (("'x",), "a program and its arguments"),
        (((1,),), "a program and its arguments"), (("a\0b",), "a program and its arguments"),
        (("/no/such/program x",), r"can be started \(No such file or directory\)"),
        (("/",), r"can be started \(Permission denied\)"),
    ],
)  # fmt: skip
def test_a_command_that_is_none_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Command(*arguments)(0, np.random.default_rng(0), 1)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "soon", True])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(ParameterError, match="timeout must be"):
        Command("true", timeout=timeout)


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}, {(1, 2): 3}, b"x"])
def test_a_value_that_json_does_not_hold_is_refused_unseen(value):
    with pytest.raises(ParameterError, match="values that JSON holds") as refused:
        Command("true")(value, np.random.default_rng(0), 1)
    assert repr(value) not in str(refused.value)


def test_arrays_and_tables_are_lists_and_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2], "b": [0.5, None], "c": ["x", None]})
    table["d"] = pandas.to_datetime(["2026-01-01 00:00", "2026-01-02 12:00"])
    value = {"x": np.arange(2), "y": np.float64(0.5), "z": table}
    found = drawn("answer(outputs=[value] * runs)", 1, value)
    columns = {"a": [1, 2], "b": [0.5, None], "c": ["x", None],
               "d": ["2026-01-01T00:00:00", "2026-01-02T12:00:00"]}  # fmt: skip
    assert found == [{"x": [0, 1], "y": 0.5, "z": columns}]


HALF = "random.seed(seed); answer(outputs=[value + random.gauss(0, 0.5) for _ in range(runs)])"


def test_every_audit_takes_a_program():
    body = (
        "random.seed(seed)\n"
        "outputs = [value + random.gauss(0, 0.5) for _ in range(runs)]\n"
        "answer(outputs=outputs, seconds=value + random.random())"
    )
    with program(body) as release:
        found = audit(release, (0, 1), (1.0, 1e-5), runs=3000, rng=0, early=True)
        assert (found.outcome.name, found.notes) == ("FALSIFIED", ())
        assert found.stopped < 2000
        assert ("arguments never varied", command_file.FIXED) in found.not_tested
        low_bits = audit_bits(release, (0.0, 1.0), 1.0, runs=1000, rng=0)
        timed = audit_timing(release, (0, 1), pairs=40, rng=0, confidence=1 - 1e-6)
        with pytest.raises(AssertionError, match=r"-c .* leaks epsilon"):
            assert_private(release, (0, 1), (1.0, 1e-5), runs=3000)
    assert low_bits.outcome.name == timed.outcome.name == "FALSIFIED"
    assert timed.value_p < 1e-6


def test_the_clock_of_a_program_is_its_own_or_how_long_answers_took():
    with program("answer(outputs=[0] * runs, seconds=1.5)") as release:
        timed = audit_timing(release, (0, 1), pairs=20, rng=0)
        assert release.clock() == 1.5 * 2 * 21  # one pair before the others is not counted
    assert (timed.value_p, timed.outcome.name) == (1.0, "SURVIVED")
    with program("time.sleep(0.02); answer(outputs=[0] * runs)") as release:
        release(0, np.random.default_rng(0), 1500)
        assert release.clock() >= 0.04


def test_audit_command_audits_and_ends_the_program():
    found = audit_command([*PYTHON, LOOP + f"    {HALF}"], (0, 1), (1.0, 1e-5),
                          runs=3000, rng=0)  # fmt: skip
    assert found.outcome.name == "FALSIFIED"
    again = audit_command([*PYTHON, LOOP + f"    {HALF}"], (0, 1), (1.0, 1e-5),
                          runs=3000, rng=0)  # fmt: skip
    assert again.guesses == found.guesses


def test_a_program_that_fails_in_every_run_of_once_is_refused():
    with pytest.raises(ParameterError, match="got 'exit status 3 in every run'"):
        audit_command(["sh", "-c", "exit 3"], (0, 1), 1.0, runs=20, rng=0, once=True)
