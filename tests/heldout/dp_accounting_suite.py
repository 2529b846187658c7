"""dp-accounting's own test classes with our accountant in them, as rows.

The classes are those of `tests/accountant/formats/test_peer_accountant_test.py`, which run in the
suite too.  Where we differ, a test of ours replaces the library's, and says why.
"""

from __future__ import annotations

import unittest
from collections.abc import Iterator

from tests.heldout.peer_rows import BETTER, DISAGREES, PASSED, PeerRow


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """The cases of a suite of suites."""
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases(one)
        else:
            yield one


def rows() -> Iterator[PeerRow]:
    """A row for each of the library's cases."""
    from tests.accountant.formats import test_peer_accountant_test as peer

    for classes in (peer.TestOfAnyAccountant, peer.TestOfItsOwnAccountant):
        for case in cases(unittest.defaultTestLoader.loadTestsFromTestCase(classes)):
            result = unittest.TestResult()
            case.run(result)
            broken = [text for _, text in (*result.failures, *result.errors)]
            reason = getattr(getattr(case, case._testMethodName), "reason", "")
            verdict = DISAGREES if broken else BETTER if reason else PASSED
            why = broken[0].strip().splitlines()[-1] if broken else reason
            yield PeerRow("dp-accounting, its accountant's tests", case.id(), verdict, why)
