"""Loading this module loads every module of mechanisms: their classes are declared then.

Files may name any declared class, so this is the project's entry point for kinds of plans.
"""

import importlib
import pkgutil

import mechanisms

for _module in pkgutil.iter_modules(mechanisms.__path__):
    importlib.import_module(f"mechanisms.{_module.name}")
