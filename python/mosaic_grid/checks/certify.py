"""The certificate of each kernel: how much of it is proved to stay within memory, under which contracts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from jaxlib.mlir import ir

from mosaic_grid import backend_config
from mosaic_grid.checks.certificate import Claim, claims_of
from mosaic_grid.checks.finding import Finding
from mosaic_grid.checks.subject import Subject, subjects_of
from mosaic_grid.diagnostics import Diagnostic, Severity, note
from mosaic_grid.session import Session

CERTIFICATE, NOT_CERTIFIED = "memory-certificate", "not-certified"


def certify(module: ir.Operation, session: Session) -> Iterator[Diagnostic]:
    """For each launch a remark, and before it what of the launch isn't proved."""
    found = list(_certificates(module, session, session.contracts))
    needed = _needed(module, session, found)
    for subject, launches in found:
        if not launches:
            yield subject.say(NOT_CERTIFIED, Severity.WARNING, f"nothing is proved: {_obstacle(subject)}", "kernel")
        for claims in launches:
            for claim in claims:
                if not claim.proved:
                    yield _unproved(subject, claim)
            yield _certificate(subject, claims, needed)


Found = list[tuple[Subject, list[list[Claim]]]]


def _certificates(
    module: ir.Operation, session: Session, contracts: tuple[str, ...]
) -> Iterator[tuple[Subject, list[list[Claim]]]]:
    """The claims of each launch of each kernel, none where a kernel can't be looked at."""
    for subject in subjects_of(module, dataclasses.replace(session, contracts=contracts)):
        launches = () if _obstacle(subject) else subject.launches
        yield subject, [list(claims_of(subject, launch)) for launch in launches]


def _needed(module: ir.Operation, session: Session, found: Found) -> tuple[str, ...]:
    """Contracts without which less is proved, and with which nothing else is needed."""

    def proved(certificates: Found) -> list[bool]:
        return [claim.proved for _, launches in certificates for claims in launches for claim in claims]

    needed = session.contracts
    for contract in session.contracts:
        rest = tuple(each for each in needed if each != contract)
        if proved(list(_certificates(module, session, rest))) == proved(found):
            needed = rest
    return needed


def _obstacle(subject: Subject) -> str:
    """Why nothing can be said of a kernel; empty where something can."""
    if not subject.kernel.on_tensor_core:
        return "the kernel runs on the SparseCores"
    if len(subject.kernel.body.regions[0].blocks) != 1:
        return "the kernel's body has branches of its own"
    return "" if subject.launches else "nothing launches the kernel"


def _unproved(subject: Subject, claim: Claim) -> Diagnostic:
    severity, notes = Severity.WARNING, [claim.fact] if claim.fact else []
    if isinstance(claim.answer, Finding):
        severity = Severity.ERROR if claim.hopeless else claim.answer.severity
        if claim.hopeless:
            notes = ["whatever the arguments are, some step, or some iteration, is outside: no contract helps"]
        elif otherwise := claim.answer.otherwise(subject.ways):
            notes.append(otherwise)
    told = [note(text) for text in notes]
    return subject.say(NOT_CERTIFIED, severity, claim.message, claim.about, at=claim.location, notes=told)


def _certificate(subject: Subject, claims: list[Claim], needed: tuple[str, ...]) -> Diagnostic:
    counts = []
    for is_window, one, many in ((True, "window", "windows"), (False, "access", "accesses")):
        which = [claim for claim in claims if claim.is_window == is_window]
        proved = sum(claim.proved for claim in which)
        counts.append(f"{proved} of {len(which)} {one if len(which) == 1 else many}")
    all_proved = all(claim.proved for claim in claims)
    message = f"the kernel '{subject.kernel.name}' stays within memory: {' and '.join(counts)} proved"
    if not all_proved:
        message = f"the kernel '{subject.kernel.name}' isn't proved to stay within memory: {' and '.join(counts)} are"
    notes = [f"under the contracts {', '.join(needed)}" if needed else "whatever the arguments are"]
    if _unchecked(subject):
        notes.append("it is compiled with disable_bounds_checks: nothing looks at its indices while it runs")
    return subject.say(CERTIFICATE, Severity.REMARK, message, "kernel", notes=[note(text) for text in notes])


def _unchecked(subject: Subject) -> bool:
    """Whether some launch is compiled without bounds checks."""
    for launch in subject.launches:
        try:
            custom = backend_config.parse(launch.config).get("custom_call_config")
        except backend_config.ConfigError:
            continue
        if isinstance(custom, dict) and custom.get("disable_bounds_checks") is True:
            return True
    return False
