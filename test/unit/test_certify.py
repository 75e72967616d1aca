"""Certificates: what `certify` proves of accesses is what happens in every step, and what it refutes happens."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.checks.certificate import Claim, claims_of
from mosaic_grid.checks.finding import Finding
from mosaic_grid.checks.subject import subjects_of
from mosaic_grid.context import create_context
from mosaic_grid.diagnostics import Severity
from mosaic_grid.passes.certify import Certify
from mosaic_grid.session import Session

SMEM, ARBITRARY = "#tpu.memory_space<smem>", "#tpu.dimension_semantics<arbitrary>"
CONFIG = '"{\\22custom_call_config\\22: {\\22body\\22: \\22\\22, \\22disable_bounds_checks\\22: true}}"'


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    with create_context(), ir.Location.unknown():
        yield


@dataclasses.dataclass(frozen=True)
class Access:
    """A loop where `lower <= i` and `i < upper`: iteration `k`, of `first` to `last` by `step`, reads an element.

    It is `a*i + b*k + c + d*table[i]` of `size`, on a grid of `steps`.
    """

    steps: int
    size: int
    a: int
    b: int
    c: int
    d: int = 0
    lower: int = 0
    upper: int = 8
    first: int = 0
    last: int = 2
    step: int = 1

    def text(self) -> str:
        """The program, with a table of 8 numbers that is its only argument."""
        constants = {
            **{name: getattr(self, name) for name in "abcd"},
            **{name: getattr(self, name) for name in ("lower", "upper", "first", "last", "step")},
        }
        listed = "\n      ".join(f"%{name} = arith.constant {value} : i32" for name, value in constants.items())
        table, array = f"memref<8xi32, {SMEM}>", f"memref<{self.size}xf32, {SMEM}>"
        return f"""
module {{
  func.func public @main(%t: tensor<8xi32>) {{
    stablehlo.custom_call @tpu_custom_call(%t) {{
        mosaic.kernel = @kernel, has_side_effect = true, backend_config = {CONFIG}}} : (tensor<8xi32>) -> ()
    return
  }}
  module @kernel attributes {{stable_mosaic.version = 18 : i64}} {{
    func.func @kernel(%i: i32, %t: {table}, %x: {array}) attributes {{
        iteration_bounds = array<i64: {self.steps}>, dimension_semantics = [{ARBITRARY}], scalar_prefetch = 1 : i64,
        scratch_operands = 1 : i64, window_params = []}} {{
      {listed}
      %from = arith.cmpi sge, %i, %lower : i32
      %to = arith.cmpi slt, %i, %upper : i32
      %both = arith.andi %from, %to : i1
      scf.if %both {{
        %at = arith.index_cast %i : i32 to index
        %entry = memref.load %t[%at] : {table}
        scf.for %k = %first to %last step %step : i32 {{
          %0 = arith.muli %i, %a : i32
          %1 = arith.muli %k, %b : i32
          %2 = arith.muli %entry, %d : i32
          %3 = arith.addi %0, %1 : i32
          %4 = arith.addi %3, %2 : i32
          %5 = arith.addi %4, %c : i32
          %index = arith.index_cast %5 : i32 to index
          %read = memref.load %x[%index] : {array}
          memref.store %read, %x[%index] : {array}
        }}
      }}
      return
    }}
  }}
}}
"""

    def indices(self, table: int = 0) -> list[int]:
        """Every index that the kernel reads, with a table of this number."""
        return [
            self.a * i + self.b * k + self.c + self.d * table
            for i in range(self.steps)
            if self.lower <= i < self.upper
            for k in range(self.first, self.last, self.step)
        ]

    def claims(self, *contracts: str) -> list[Claim]:
        """What is said of the accesses to the array: a load and a store."""
        module = ir.Operation.parse(self.text()).operation
        (subject,) = subjects_of(module, Session(contracts=contracts))
        (launch,) = subject.launches
        return list(claims_of(subject, launch))[1:]


SMALL = st.integers(-3, 3)
ACCESSES = st.builds(
    Access,
    steps=st.integers(1, 5),
    size=st.integers(1, 12),
    a=SMALL,
    b=SMALL,
    c=st.integers(-4, 8),
    lower=st.integers(0, 3),
    upper=st.integers(0, 5),
    first=st.integers(0, 2),
    # some loops are walked iteration by iteration, and some once for all
    last=st.sampled_from([1, 3, 40]),
    step=st.sampled_from([1, 2, 13]),
)


@settings(max_examples=80, deadline=None)
@given(ACCESSES)
def test_static_accesses_are_decided(access: Access) -> None:
    """An access without unknowns is proved if every index is within the array, else refuted."""
    inside = all(0 <= index < access.size for index in access.indices())
    with create_context(), ir.Location.unknown():
        claims = access.claims()
        # what never runs isn't there
        assert len(claims) == 2 or not access.indices()
        assert {claim.proved for claim in claims} <= {inside}
        assert inside or {type(claim.answer) for claim in claims} == {Finding}


@settings(max_examples=40, deadline=None)
@given(ACCESSES, SMALL, st.integers(-2, 2), st.integers(0, 3))
def test_tables_within_contracts(access: Access, factor: int, low: int, more: int) -> None:
    """With a table whose entries are in a range all of its values are tried: each may be at the step that fails."""
    access = dataclasses.replace(access, d=factor)
    entries = range(low, low + more + 1)
    inside = all(0 <= index < access.size for entry in entries for index in access.indices(entry))
    with create_context(), ir.Location.unknown():
        claims = access.claims(f"{low} <= %arg0[*] <= {low + more}")
        assert {claim.proved for claim in claims} <= {inside}
        assert inside or {type(claim.answer) for claim in claims} == {Finding}


def fits(access: Access, step: int, entry: int) -> bool:
    """Whether a step stays within the array with this number in the table."""
    turns = range(access.first, access.last, access.step) if access.lower <= step < access.upper else ()
    return all(0 <= access.a * step + access.b * k + access.c + access.d * entry < access.size for k in turns)


@settings(max_examples=60, deadline=None)
@given(ACCESSES, SMALL.filter(bool), st.integers(-4, 2), st.integers(0, 9))
def test_what_no_contract_helps(access: Access, factor: int, low: int, more: int) -> None:
    """It is said where a step is outside in some iteration, another one for another number in the table."""
    access = dataclasses.replace(access, d=factor)
    entries = range(low, low + more + 1)
    hopeless = any(not any(fits(access, step, entry) for entry in entries) for step in range(access.steps))
    with create_context(), ir.Location.unknown():
        for claim in access.claims(f"{low} <= %arg0[*] <= {low + more}"):
            always = isinstance(claim.answer, Finding) and claim.answer.always
            assert (always or claim.hopeless) is hopeless


@pytest.mark.parametrize("last", [10, 40])
def test_a_loop_longer_than_the_array(last: int) -> None:
    """A loop that no table makes fit is an error, and no contract is asked for."""
    session = Session()
    Certify().run(ir.Operation.parse(Access(steps=2, size=8, a=0, b=1, c=0, d=1, last=last).text()).operation, session)
    first, *_ = session.diagnostics
    assert first.severity is Severity.ERROR
    assert [each.message for each in first.notes] == [
        "whatever the arguments are, some step, or some iteration, is outside: no contract helps"
    ]


def said(access: Access, *contracts: str) -> list[tuple[Severity, str]]:
    """What the pass says: severities and messages."""
    session = Session(contracts=contracts)
    Certify().run(ir.Operation.parse(access.text()).operation, session)
    return [(each.severity, each.message) for each in session.diagnostics]


def test_what_is_missing() -> None:
    """Without a contract there are arguments that show the fault; with one that is too weak there are others."""
    access = Access(steps=4, size=12, a=0, b=1, c=0, d=1)
    (severity, message), *_, certificate = said(access)
    assert (severity, message) == (
        Severity.WARNING,
        "with %arg0[0] = -2 step (0) reads scratch 0 ('scratch0') outside of it: from -2 on, 1 of 12 in dimension 0",
    )
    assert certificate == (
        Severity.REMARK,
        "the kernel 'kernel' isn't proved to stay within memory: 0 of 0 windows and 1 of 3 accesses are",
    )
    (_, message), *_ = said(access, "0 <= %arg0[*] <= 11")
    assert message.startswith("with %arg0[0] = 11 step (0) reads scratch 0 ('scratch0') outside of it: from 12 on")


def test_the_contracts_that_it_takes() -> None:
    """A certificate names the contracts without which it doesn't hold, and no other."""
    access = Access(steps=4, size=12, a=0, b=1, c=0, d=1)
    session = Session(contracts=("%arg0[*] <= 10", "mod(%arg0[0], 2) == 0", "%arg0[*] >= 0"))
    Certify().run(ir.Operation.parse(access.text()).operation, session)
    (certificate,) = session.diagnostics
    assert certificate.message.endswith("0 of 0 windows and 3 of 3 accesses proved")
    assert [each.message for each in certificate.notes] == [
        "under the contracts %arg0[*] <= 10, %arg0[*] >= 0",
        "it is compiled with disable_bounds_checks: nothing looks at its indices while it runs",
    ]


def test_a_fault_of_every_run_is_an_error() -> None:
    """Where it fails whatever the arguments are, that isn't a warning."""
    (severity, message), *_ = said(Access(steps=4, size=12, a=4, b=1, c=0))
    assert severity is Severity.ERROR
    assert message == "step (3) reads scratch 0 ('scratch0') outside of it: from 12 on, 1 of 12 in dimension 0"


def test_a_kernel_that_nothing_launches() -> None:
    """Of a bare kernel nothing is proved, and that is said."""
    program = ir.Operation.parse(Access(steps=4, size=12, a=1, b=1, c=0).text())
    _, kernel = program.regions[0].blocks[0].operations
    session = Session()
    Certify().run(kernel.operation.clone(ip=False).operation, session)
    assert [each.message for each in session.diagnostics] == ["nothing is proved: nothing launches the kernel"]


def test_reshaped_buffers() -> None:
    """A slice of a buffer in another shape is within it, and the buffer within the first one."""
    text = Access(steps=4, size=12, a=1, b=1, c=0).text()
    array, matrix = f"memref<12xf32, {SMEM}>", f"memref<3x4xf32, {SMEM}>"
    body = f"""
          %row = arith.index_cast %i : i32 to index
          %matrix = tpu.memref_reshape %x : {array} -> {matrix}
          %read = memref.load %matrix[%row, %at] : {matrix}
          memref.store %read, %x[%index] : {array}
"""
    before, _, rest = text.partition("          %read =")
    _, _, after = rest.partition("}\n")
    session = Session()
    Certify().run(ir.Operation.parse(f"{before}{body}        }}\n{after}").operation, session)
    (message, *_), *_ = [(each.message,) for each in session.diagnostics]
    assert message == "step (3) reads scratch 0 ('scratch0') outside of it: from 3 on, 1 of 3 in dimension 0"
