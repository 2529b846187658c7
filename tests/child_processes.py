"""Child processes of the tests: those that they interrupt, and those that share nothing."""

import contextlib
import multiprocessing
import signal
import subprocess

# processes without a thread or an open file of this one; their modules are imported once
FRESH = multiprocessing.get_context("forkserver")
FRESH.set_forkserver_preload(["accountant", "mechanisms", "psycopg", "pytest"])

HANG = 60  # seconds; a child that was interrupted ends in one or two


@contextlib.contextmanager
def interruptible(command):
    """A child that stops at SIGINT also where this process ignores it; killed in the end.

    A shell starts its background jobs with SIGINT ignored, and children inherit that; a handler
    of ours becomes the default one in a child.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        process.kill()


def interrupt(process):
    """What an interrupted child leaves on stdout and stderr."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=HANG)
