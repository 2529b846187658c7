"""What is installed: the version, and whether all packages are this distribution's own.

The command ``dp-attest`` is in ``__main__``.  Every package of the distribution imports this one.
"""

import sys
from pathlib import Path

from dp_attest.installation import check_packages

__version__ = "0.1.0"
__all__ = ["__version__"]

try:
    check_packages()
except ImportError as error:
    # a command, also one of `python -m`, ends with the words alone
    if Path(sys.argv[0]).name in {"dp-attest", "-m"}:
        sys.exit(f"dp-attest: {error}")
    raise
