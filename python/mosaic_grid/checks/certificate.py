"""Whether a launch stays within memory: each window, load, store and copy of it as a claim with its answer."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.checks.finding import EFFORT, Finding, ask
from mosaic_grid.checks.in_launch import InLaunch
from mosaic_grid.checks.subject import Subject, location_of_map, name_of
from mosaic_grid.dataflow.accesses import Accesses, Touch, accesses_of
from mosaic_grid.dataflow.memory import Box, Root
from mosaic_grid.legality.sharing import has_blocks, listed
from mosaic_grid.program import Launch
from mosaic_grid.summary.windows import with_operands
from mosaic_grid.symbolic import obvious
from mosaic_grid.symbolic.problem import Window

_UNKNOWN = re.compile(r"\?\d+")


@dataclasses.dataclass(frozen=True)
class Claim:
    """One window or access of a launch, at a location; `what` it is goes on in `about`, words that last.

    `answer` is None where it is proved to stay within memory. Otherwise `message` says what happens, or what isn't
    known, and `fact` what would prove it. `hopeless` says that it leaves memory somewhere with other arguments, too.
    """

    about: str
    is_window: bool
    location: ir.Location | None
    answer: Finding | sym.Unknown | None = None
    message: str = ""
    fact: str = ""
    hopeless: bool = False

    @property
    def proved(self) -> bool:
        """Whether it surely stays within memory."""
        return self.answer is None


def claims_of(subject: Subject, launch: Launch) -> Iterator[Claim]:
    """What has to hold of one launch of a kernel on the TensorCore whose body is one block."""
    seen = InLaunch(subject, launch)
    told = with_operands(subject.summaries[0].windows, launch)
    for number, window in enumerate(subject.windows):
        if not has_blocks(window):
            continue
        about, shown = f"{told[number].role} {told[number].number}", name_of(told[number])
        location = location_of_map(subject.kernel, window)
        answer = _meets(seen, seen.geometry.windows[number])
        message = fact = ""
        if isinstance(answer, Finding):
            step = listed(answer.witness.points[0][1])
            message = f"{answer.where}step {step} shows block {answer.block} of {shown}, wholly outside of its array"
        elif answer is not None:
            message = f"can't tell whether each block of {shown} meets its array: {answer.reason}"
        if answer is not None:
            fact = f"each block has to begin within {told[number].operand}, a block is {told[number].block}"
        yield Claim(about, True, location, answer, message, fact)
    accesses = accesses_of(subject.kernel)
    groups: dict[tuple[ir.Operation, bool], list[Touch]] = {}
    for touch in accesses.touches:
        groups.setdefault((touch.op, touch.writes), []).append(touch)
    for (op, writes), touches in groups.items():
        yield _Access(seen, accesses, op, writes).claim(touches)
    for op in accesses.unknown:
        reason = f"{op.name} can't be followed"
        yield Claim(op.name, False, op.location, sym.Unknown(reason), f"can't tell what it touches: {reason}")


def _meets(seen: InLaunch, window: Window | None) -> Finding | sym.Unknown | None:
    if window is None:
        return sym.Unknown("its index map, or its array, can't be read")
    if obvious.meets_array(seen.geometry.grid, window):
        return None
    from mosaic_grid.symbolic import proofs  # isl is loaded only where it isn't obvious

    return ask(seen.geometry, lambda grid: proofs.meets_array(grid, window, EFFORT))


@dataclasses.dataclass(frozen=True)
class _Access:
    """What one operation reads or writes, each time a step runs it."""

    seen: InLaunch
    accesses: Accesses
    op: ir.Operation
    writes: bool

    def claim(self, touches: Iterable[Touch]) -> Claim:
        """Whether it stays within its buffer, every time."""
        told = Claim(f"{self.op.name} {'to' if self.writes else 'from'}", False, self.op.location)
        touches = list(touches)
        for touch in touches:
            claim = self._of(touch, touch.root, touch.box, told)
            root = touch.root
            while claim.proved and root in self.accesses.inside:
                root, box = self.accesses.inside[root]
                claim = self._of(touch, root, box, told)
            if not claim.proved:
                # each of several runs may be within memory with some arguments, and all of them with none
                some = isinstance(claim.answer, Finding) and not claim.answer.always
                return dataclasses.replace(claim, hopeless=some and self._is_hopeless(touches))
        return told

    def _is_hopeless(self, touches: Iterable[Touch]) -> bool:
        """Whether some run is outside of its buffer whatever the arguments are."""
        bad = [
            sym.conjunction(truth, *(self.seen.read(guard) for guard in touch.guards))
            for touch in touches
            if touch.box is not None and not touch.masked
            for span, size in zip(touch.box, touch.root.shape, strict=True)
            for truth in _outside(self.seen.read(span.start), self.seen.read(span.size), size)
        ]
        return self.seen.is_unavoidable(bad)

    def _of(self, touch: Touch, root: Root, box: Box | None, told: Claim) -> Claim:
        name = "a buffer of its own" if root.argument is None else self._name(root.argument)
        what = f"{'writes' if self.writes else 'reads'} {name}"
        if box is None:
            unknown = sym.Unknown("its indices can't be followed")
            return self._unproved(told, unknown, f"can't tell where it {what}: {unknown.reason}", "")
        guards = [self.seen.read(guard) for guard in touch.guards]
        for axis, (span, size) in enumerate(zip(box, root.shape, strict=True)):
            start, count = self.seen.read(span.start), self.seen.read(span.size)
            end = sym.add(start, count)
            low, high = _outside(start, count, size)
            if sym.constant_of(low) == 0 == sym.constant_of(high):
                continue
            answer = self.seen.never((low, high), guards, (start, count))
            if answer is None:
                continue
            facts = [f"0 <= {start}"] if sym.constant_of(low) is None else []
            facts += [f"{end} <= {size}"] if sym.constant_of(high) is None else []
            fact = f"what would prove it: {' and '.join(facts)}" if facts else ""
            if isinstance(answer, Finding) and not touch.masked:
                first, extent = answer.witness.block or ("", "")
                step = listed(answer.witness.points[0][1])
                place = f"from {first} on, {extent} of {size} in dimension {axis}"
                message = f"{answer.where}step {step} {what} outside of it: {place}"
                return self._unproved(told, answer, message, fact)
            reason = answer.reason if isinstance(answer, sym.Unknown) else "a mask may leave out what is beyond"
            message = f"can't tell whether it {what} within dimension {axis}, {size} long: {reason}"
            return self._unproved(told, sym.Unknown(reason), message, fact)
        return told

    def _name(self, argument: int) -> str:
        return self.seen.subject.operand(argument)

    def _unproved(self, told: Claim, answer: Finding | sym.Unknown, message: str, fact: str) -> Claim:
        return dataclasses.replace(told, answer=answer, message=self._named(message), fact=self._named(fact))

    def _named(self, text: str) -> str:
        """The text with unknowns called by where they come from."""

        def named(found: re.Match[str]) -> str:
            origin = self.accesses.origins.get(found[0])
            if origin is None:
                return "(a number that isn't known)"
            return f"({origin.what}{f', line {origin.line}' if origin.line else ''})"

        return _UNKNOWN.sub(named, text)


def _outside(start: sym.Expr, count: sym.Expr, size: int) -> tuple[sym.Expr, sym.Expr]:
    """How a span can leave a dimension of this size: at its beginning, and at its end."""
    return sym.comparison("<", start, sym.constant(0)), sym.comparison(">", sym.add(start, count), sym.constant(size))
