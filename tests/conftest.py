"""Hypothesis profiles: quick by default, `make thorough` asks for more."""

import os

from hypothesis import HealthCheck, settings

QUIET = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", max_examples=15, **QUIET)
settings.register_profile("thorough", max_examples=300, **QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
