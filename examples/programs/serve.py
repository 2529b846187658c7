"""Answers the requests of an audit; copy this file beside your program (docs/programs.md).

It needs no package, so that it runs under any interpreter, with any versions of others.
"""

import json
import random
import sys
import time
from typing import Any, Callable  # noqa: UP035  # an older interpreter may run it


def serve(release: Callable[[Any, random.Random], Any]) -> None:
    """Call ``release(value, rng)`` for each run; rng is a `random.Random` of the request's seed."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what the release prints is no answer
    for line in sys.stdin:
        request = json.loads(line)
        rng, outputs, errors = random.Random(request["seed"]), [], []
        begin = time.perf_counter()
        for _ in range(request["runs"]):
            output = error = None
            try:
                output = release(request["value"], rng)
            except Exception as failure:  # an outcome like others
                error = f"{type(failure).__name__}: {failure}"
            outputs.append(output)
            errors.append(error)
        seconds = time.perf_counter() - begin
        answer = {"outputs": outputs, "errors": errors, "seconds": seconds}
        print(json.dumps(answer), file=answers, flush=True)
