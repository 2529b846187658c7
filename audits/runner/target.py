"""The audit of a user's own function or program, which runs in other processes.

An imported module can print, exit, hang, crash, or write what it likes; none of this is a verdict,
which is made in this process from the outputs.
`target_supervisor` holds the limits of the processes, `target_sampler` calls the function there, or
starts the program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from accountant.cli.exit_status import parse_number
from accountant.domains import DELTA, EPSILON
from accountant.errors import ParameterError
from accountant.losses.loss import Loss
from accountant.losses.pure_and_approximate import ApproxLoss, PureLoss
from audits.claims.arguments import checked_pair
from audits.claims.findings import OTHER_PAIRS, NotTested, Outcome
from audits.results.result_file import Request
from audits.results.rows import FAMILY_ERROR, AuditCase, ReportRow, Settings, no_progress
from audits.runner.evidence import EvidenceBook
from audits.runner.kept_outputs import KeptOutputs
from audits.runner.target_processes import (
    COMMAND_OPTION,
    SQL_OPTION,
    TARGET_METAVAR,
    TargetLimits,
    TargetProcesses,
)
from audits.runner.target_values import load_value
from audits.runs.command import TIMEOUT, Command
from audits.runs.release_functions import Draw

MAX_WITNESS = 4000  # characters of the witness in a row: an output may be a long text
# To estimate the time, calls of 1, 2, 4, ... runs are made until a call takes LONG_CALL seconds or
# the next would have more than MAX_CALL_RUNS runs, or than 1 / RUNS_PER_TRIAL of the audit's runs.
# So all these calls together have less than 1/16 of the audit's runs, or are two calls of one run.
LONG_CALL, MAX_CALL_RUNS = 0.1, 1 << 10
RUNS_PER_TRIAL = 32
# A test of time has one pair of calls for so many runs of a guess test, within these numbers.
RUNS_PER_PAIR, MIN_PAIRS, MAX_PAIRS = 200, 50, 1000
TIMING_PREFIX = "timing of "  # before the name of a target, where its time is tested
MIN_SECONDS_SAID = 10  # no estimate of fewer seconds is shown


@final
@dataclass(frozen=True, slots=True)
class TargetRequest:
    """The audit of a function or a program that the command line asks for, checked."""

    name: str  # the function, as package.module:function; of a program what reports call it
    epsilon: float  # the claim, with delta
    delta: float
    pair: tuple[str, str]  # the arguments that name the two values
    bits: bool  # whether the low-order bits of outputs are tested too
    early: bool = False  # whether the audit stops as soon as the claim is refuted
    timing: bool = False  # whether it is tested that time depends on neither value nor noise
    command: Command | None = None  # the program, if it is no function
    argument: str = TARGET_METAVAR  # what messages call the argument that names it

    @classmethod
    def from_request(cls, request: Request) -> TargetRequest:
        """Check a request; raises `ParameterError` before any code is imported or started."""
        options = request.options
        name = request.names[0] if len(request.names) == 1 else ""
        command, argument = requested_command(name, options), TARGET_METAVAR
        if command is not None:
            argument = COMMAND_OPTION if "command" in options else SQL_OPTION
            name = command.__name__
        else:
            module, colon, function = name.partition(":")
            identifiers = [*module.split("."), *function.split(".")]
            is_file = module.endswith(".py") and Path(module).is_file()
            if not colon or is_file or not all(word.isidentifier() for word in identifiers):
                raise ParameterError(
                    TARGET_METAVAR, name, "written package.module:function" + _likely_name(name)
                )
        epsilon = EPSILON.check("--epsilon", parse_number(str(options.get("epsilon"))))
        delta = DELTA.check("--delta", parse_number(str(options.get("delta", 0))))
        pair = options.get("pair")
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ParameterError("--pair", type(pair).__name__, "two numbers or files")
        values = str(pair[0]), str(pair[1])
        bits, early, timing = (options.get(word) is True for word in ("bits", "early", "timing"))
        target = cls(name, epsilon, delta, values, bits, early, timing, command, argument)
        try:
            checked_pair(tuple(map(load_value, target.pair)))
        except ParameterError as error:
            raise ParameterError("--pair", error.value, error.allowed) from None
        return target

    @property
    def claim(self) -> Loss:
        """The claim as a loss."""
        return ApproxLoss(self.epsilon, self.delta) if self.delta > 0 else PureLoss(self.epsilon)

    @property
    def kinds(self) -> list[str]:
        """What is tested: the outputs, and on request their low-order bits and the time."""
        return ["outputs", *["bits"] * self.bits, *["timing"] * self.timing]


def requested_command(name: str, options: dict[str, Any]) -> Command | None:
    """The program of a request, or its query of a database; None if it names a function."""
    words, url, once = options.get("command"), options.get("sql"), options.get("once") is True
    if words is None and url is None:
        if once or "timeout" in options:
            option = "--once" if once else "--timeout"
            raise ParameterError(option, name, "left out without a --command")
        return None
    timeout = TIMEOUT.check("--timeout", parse_number(str(options.get("timeout", 60))))
    try:
        if words is not None and url is None and not name:
            return Command(str(words), once=once, timeout=timeout)
        if words is None and name and not once:
            query = Path(name).read_text("utf-8") if name.endswith(".sql") else name
            command = Command.sql(str(url), query, timeout=timeout)
            command.__name__ = name if name.endswith(".sql") else command.__name__
            return command
    except ParameterError as error:
        option = {"command": COMMAND_OPTION, "url": SQL_OPTION}.get(error.argument, "QUERY")
        raise ParameterError(option, error.value, error.allowed) from None
    except (OSError, ValueError) as error:  # no file, or none of text
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ParameterError("QUERY", name, f"a file to read ({reason})") from None
    allowed = "given alone; with --sql URL a query or a file of one stands in the place of FUNCTION"
    raise ParameterError(COMMAND_OPTION, words, allowed)


def _likely_name(name: str) -> str:
    """A hint to write mycode:release, where the name is folder/mycode.py:release or mycode.py."""
    path, _, function = name.partition(":")
    if not path.endswith(".py"):
        return ""
    *folders, module = path.removesuffix(".py").replace("\\", "/").split("/")
    likely_name = f"{module}:{function or 'release'}"
    if not all(word.isidentifier() for word in likely_name.split(":")):
        return ""
    folder_hint = f", in the folder {'/'.join(folders) or '/'}" if folders else ""
    return f", not as a file: {likely_name}{folder_hint}"


def target_cases(
    target: TargetRequest,
    limits: TargetLimits,
    kept_outputs: KeptOutputs | None = None,
    say: Callable[[str], None] = no_progress,
    evidence: EvidenceBook | None = None,
) -> list[AuditCase]:
    """The guess test of the outputs, and on request of their low-order bits, and a test of time.

    In a guess test an adversary guesses from each output which of the two values it came from.
    ``kept_outputs`` has the outputs of an audit that was interrupted; ``say`` is called with an
    estimate of the time in words; what is found is added to the ``evidence``.
    """
    verdict = 1 - FAMILY_ERROR / len(target.kinds)
    audits = [
        TargetAudit(target, kind, verdict, limits, kept_outputs, say, evidence)
        for kind in target.kinds
    ]
    about = "a function of yours" if target.command is None else "a program of yours"
    return [
        AuditCase(audit.subject, "target", about, Outcome.SURVIVED, audit.row, target.name)
        for audit in audits
    ]


@final
@dataclass(frozen=True, slots=True)
class TargetAudit:
    """An audit of what a function returns, whose verdict holds at the confidence ``verdict``.

    ``kind`` says what is tested: the "outputs" themselves, the low-order "bits" of them, or the
    "timing".
    """

    target: TargetRequest
    kind: str
    verdict: float
    limits: TargetLimits
    kept_outputs: KeptOutputs | None
    say: Callable[[str], None]
    evidence: EvidenceBook | None

    @property
    def subject(self) -> str:
        """The name of the row."""
        prefix = {"outputs": "", "bits": "low bits of ", "timing": TIMING_PREFIX}[self.kind]
        return f"{prefix}{self.target.name}"

    def row(self, settings: Settings, rng: np.random.Generator) -> ReportRow:
        """The row of outputs that other processes sent; they have no part in the verdict."""
        target, of_outputs = self.target, self.kind == "outputs"
        if self.evidence is not None:
            self.evidence.refuse_same_runs(rng)
        pair = (load_value(target.pair[0]), load_value(target.pair[1]))
        processes = settings.jobs if of_outputs else 1
        with TargetProcesses(
            target.name,
            target.pair,
            pair,
            self.limits,
            processes,
            self.kept_outputs,
            target.command,
            target.argument,
        ) as release:
            if self.kind == "timing":
                return timing_row(self, release, settings, rng)
            from audits.attacks.floating_point import audit_bits
            from audits.attacks.front import audit
            from audits.runner.cases import guess_test_row

            early = target.early and of_outputs
            # an early stop is a proof at one confidence alone, which must be the verdict's
            confidence = self.verdict if early else settings.confidence
            arguments = (release, pair, target.claim, settings.samples, confidence)
            try:
                if of_outputs:
                    self._say_estimate(release, pair, settings)
                    with settings.workers() as pool:
                        finding = audit(*arguments, rng=rng, early=early, executor=pool)
                else:
                    finding = audit_bits(*arguments, rng=rng)
                finding = replace(finding, notes=release.notes(finding.runs))
            except ParameterError as error:
                allowed = f"a release that can be audited: {error}"
                failure = ParameterError(target.argument, target.name, allowed)
                raise release.failure or failure from None
        if self.evidence is not None:
            self.evidence.add(finding)
        row = guess_test_row(
            self.subject,
            "target",
            target.claim,
            finding,
            Outcome.SURVIVED,
            exact=None,
            confidence_of_verdict=self.verdict,
        )
        if early:  # the bets and the last bound share the error
            row = replace(
                row,
                outcome=finding.outcome,
                needed_runs=finding.needed_runs,
                verdict_lower=finding.epsilon_lower,
            )
        if finding.stopped is not None:
            row = replace(row, evidence=f"stopped at the first proof: {finding.witness}")
        return replace(row, witness=row.witness[:MAX_WITNESS])

    def _say_estimate(
        self, release: TargetProcesses, pair: tuple[Any, Any], settings: Settings
    ) -> None:
        """Say how long the runs will take, if that is long; these calls are not kept."""
        remaining_runs = max(settings.samples - (release.kept.runs if release.kept else 0), 1)
        with release.without_keeping():
            seconds = estimate_seconds(release, pair, remaining_runs, settings.jobs)
        message = advice(seconds, self.limits.seconds, early=self.target.early)
        if message is not None:
            self.say(message)


def timing_row(
    audit: TargetAudit, release: TargetProcesses, settings: Settings, rng: np.random.Generator
) -> ReportRow:
    """The row of a test that time depends on neither the value nor the noise."""
    from audits.attacks.timing import judged_times

    pairs = min(max(settings.samples // RUNS_PER_PAIR, MIN_PAIRS), MAX_PAIRS)
    timing = judged_times(*release.times(pairs, 1, rng), 1, audit.verdict)
    return ReportRow(
        subject=audit.subject,
        kind="target",
        claim=(audit.target.epsilon, audit.target.delta),
        exact_epsilon=None,
        epsilon_lower=None,
        confidence=audit.verdict,
        runs=2 * pairs,
        outcome=timing.outcome,
        expected=Outcome.SURVIVED,
        witness=timing.witness,
        evidence=timing.witness,
        seconds=round(timing.seconds, 6),
        facts=(
            ("p-value, time against the value", f"{timing.value_p:.3g}"),
            ("p-value, time against the noise", f"{timing.noise_p:.3g}"),
        ),
        not_tested=(NotTested(OTHER_PAIRS, "one pair of values was tried"),),
    )


def estimate_seconds(
    draw: Draw,
    pair: tuple[Any, Any],
    runs: int,
    workers: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """About how many seconds ``runs`` runs take on the workers; 0 if the function fails.

    It makes calls of 1, 2, 4, ... runs until one is long, with a seed of their own, so that no
    number of the audit depends on them.  The first call, which loads the code, is left out.
    """
    rng, size = np.random.default_rng(0), 1
    try:
        draw(pair[0], rng, 1)
        while True:
            begin = clock()
            draw(pair[size.bit_length() % 2], rng, size)
            spent = clock() - begin
            if spent >= LONG_CALL or 2 * size > min(MAX_CALL_RUNS, runs // RUNS_PER_TRIAL):
                return spent / size * runs / workers
            size *= 2
    except ParameterError:  # the audit itself will fail in the same way, and reports it
        return 0.0


def advice(seconds: float, limit: float, *, early: bool) -> str | None:
    """The estimate in words, with what ends sooner; None where it is short."""
    if seconds < MIN_SECONDS_SAID:
        return None
    shown = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    sooner = "fewer --runs" if early else "fewer --runs or --early"
    past = f", more than --max-seconds {limit:g}" if seconds > limit else ""
    at_most = "at most " if early else ""
    return f"{at_most}about {shown} left{past}; {sooner} end sooner"
