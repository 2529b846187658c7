"""What is installed: the version, and whether all packages are this distribution's own.

The command ``dp-attest`` is in ``__main__``.  Every package of the distribution imports this one.
"""

from dp_attest.installation import check_packages

__version__ = "0.1.0"
__all__ = ["__version__"]

check_packages()
