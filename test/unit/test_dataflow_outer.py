"""Outer scalars through IR: an operation's attribute `expect` is what must be found for its first result.

`n + 1 in i32` means that nothing but the type's range is known; a constant is written without a range.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest
from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.context import create_context
from mosaic_grid.dataflow import elementwise, outer
from mosaic_grid.dataflow.outer import OuterScalars
from mosaic_grid.dataflow.tensors import IntType, int_type
from mosaic_grid.ir_types import Value
from mosaic_grid.symbolic.evaluate import wrapped
from mosaic_grid.symbolic.quotients import truncated_quotient


def describe(scalars: OuterScalars, value: Value) -> str:
    """The facts of a value in the notation of `expect`."""
    exprs = scalars.elements(value)
    kind = int_type(value.type)
    if exprs is None or kind is None:
        return "unknown"
    if len(exprs) > 1:
        return f"[{', '.join(map(str, exprs))}]"
    (expr,) = exprs
    if sym.constant_of(expr) is not None:
        return str(expr)
    ends, divisor = sym.range_of(expr), sym.divisor_of(expr)
    full = f"{'i' if kind.signed or kind.is_bool else 'ui'}{kind.bits}"
    multiple = f", multiple of {divisor}" if divisor > 1 else ""
    return f"{expr} in {full if ends == kind.range else ends}{multiple}"


def parsed(text: str) -> ir.Operation:
    """The module of a text."""
    return ir.Module.parse(text).operation


def check(text: str) -> None:
    """Compares every `expect` in a program with what is found."""
    with create_context():
        program = parsed(text)
        scalars, expected, found = OuterScalars(program), [], []

        def visit(op: ir.Operation) -> ir.WalkResult:
            if "expect" in op.attributes:
                expected.append(ir.StringAttr(op.attributes["expect"]).value)
                found.append(describe(scalars, op.results[0]))
            return ir.WalkResult.ADVANCE

        program.walk(visit, ir.WalkOrder.PRE_ORDER)
        assert expected
        assert found == expected


def check_body(body: str, arguments: str = '%n: tensor<i32> loc("n"), %m: tensor<i32> loc("m")') -> None:
    """The same for the operations of one function, after a few constants of i32."""
    constants = {"0": 0, "1": 1, "5": 5, "7": 7, "128": 128, "m1": -1, "min": -(2**31), "max": 2**31 - 1}
    lines = [f"%c{name} = stablehlo.constant dense<{value}> : tensor<i32>" for name, value in constants.items()]
    check(f"func.func public @main({arguments}) {{\n" + "\n".join(lines) + body + "\nreturn\n}")


ELEMENTWISE = {
    "a sum that may wrap has the type's range": """
      %0 = stablehlo.add %n, %c1 {expect = "n + 1 in i32"} : tensor<i32>
      %1 = stablehlo.subtract %0, %c1 {expect = "n in i32"} : tensor<i32>
      %2 = stablehlo.maximum %0, %n {expect = "max(n, n + 1) in i32"} : tensor<i32>""",
    "a sum that can't wrap keeps its facts": """
      %0 = stablehlo.clamp %c0, %n, %c5 {expect = "min(5, max(0, n)) in [0, 5]"} : tensor<i32>
      %1 = stablehlo.add %0, %c1 {expect = "min(5, max(0, n)) + 1 in [1, 6]"} : tensor<i32>
      %2 = stablehlo.multiply %1, %c128 {expect = "128*min(5, max(0, n)) + 128 in [128, 768], multiple of 128"}
        : tensor<i32>""",
    "products wrap, powers of two that divide them stay": """
      %0 = stablehlo.multiply %n, %c128 {expect = "128*n in [-2147483648, 2147483520], multiple of 128"} : tensor<i32>
      %1 = stablehlo.multiply %n, %c7 {expect = "7*n in i32"} : tensor<i32>
      %2 = stablehlo.multiply %n, %m {expect = "m*n in i32"} : tensor<i32>""",
    "constants wrap as the machine does": """
      %0 = stablehlo.add %cmax, %c1 {expect = "-2147483648"} : tensor<i32>
      %1 = stablehlo.negate %cmin {expect = "-2147483648"} : tensor<i32>
      %2 = stablehlo.abs %cmin {expect = "-2147483648"} : tensor<i32>
      %3 = stablehlo.abs %n {expect = "abs(n) in i32"} : tensor<i32>""",
    "division is truncated": """
      %0 = stablehlo.divide %n, %c128 {expect = "div(n, 128) in [-16777216, 16777215]"} : tensor<i32>
      %1 = stablehlo.remainder %n, %c128 {expect = "rem(n, 128) in [-127, 127]"} : tensor<i32>
      %2 = stablehlo.divide %cm1, %c128 {expect = "0"} : tensor<i32>
      %3 = stablehlo.remainder %cm1, %c128 {expect = "-1"} : tensor<i32>
      %4 = stablehlo.maximum %n, %c0 : tensor<i32>
      %5 = stablehlo.divide %4, %c128 {expect = "max(0, n) // 128 in [0, 16777215]"} : tensor<i32>""",
    "nothing is said of a division by what may be 0": """
      %0 = stablehlo.divide %n, %c0 {expect = "%divide in i32"} : tensor<i32>
      %1 = stablehlo.divide %n, %m {expect = "%divide_1 in i32"} : tensor<i32>
      %2 = stablehlo.remainder %n, %m {expect = "%remainder in i32"} : tensor<i32>""",
    "nothing is said of the lowest integer divided by -1": """
      %0 = stablehlo.divide %cmin, %cm1 {expect = "%divide in i32"} : tensor<i32>
      %1 = stablehlo.divide %n, %cm1 {expect = "%divide_1 in i32"} : tensor<i32>
      %2 = stablehlo.divide %c7, %cm1 {expect = "-7"} : tensor<i32>""",
    "selections are minima and maxima where they can be": """
      %0 = stablehlo.compare LT, %n, %m, SIGNED {expect = "n < m in i1"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %1 = stablehlo.select %0, %n, %m {expect = "min(m, n) in i32"} : tensor<i1>, tensor<i32>
      %2 = stablehlo.select %0, %c5, %c7 {expect = "where(n < m, 5, 7) in [5, 7]"} : tensor<i1>, tensor<i32>
      %3 = stablehlo.not %0 {expect = "n >= m in i1"} : tensor<i1>
      %4 = stablehlo.and %0, %3 {expect = "0"} : tensor<i1>
      %5 = stablehlo.or %0, %3 {expect = "1"} : tensor<i1>
      %6 = stablehlo.xor %0, %0 {expect = "0"} : tensor<i1>
      %7 = stablehlo.convert %0 {expect = "n < m in [0, 1]"} : (tensor<i1>) -> tensor<i32>""",
    "masks and shifts are divisions": """
      %0 = stablehlo.and %n, %c7 {expect = "n % 8 in [0, 7]"} : tensor<i32>
      %m8 = stablehlo.constant dense<-8> : tensor<i32>
      %1 = stablehlo.and %n, %m8 {expect = "8*(n // 8) in [-2147483648, 2147483640], multiple of 8"} : tensor<i32>
      %2 = stablehlo.shift_right_arithmetic %n, %c7 {expect = "n // 128 in [-16777216, 16777215]"} : tensor<i32>
      %3 = stablehlo.shift_right_logical %n, %c7 {expect = "%shift_right_logical in i32"} : tensor<i32>
      %4 = stablehlo.shift_left %0, %c1 {expect = "2*(n % 8) in [0, 14], multiple of 2"} : tensor<i32>
      %5 = stablehlo.shift_left %0, %m {expect = "%shift_left in i32"} : tensor<i32>
      %6 = stablehlo.shift_left %0, %c128 {expect = "%shift_left_1 in i32"} : tensor<i32>
      %7 = stablehlo.not %0 {expect = "-(n % 8) - 1 in [-8, -1]"} : tensor<i32>
      %8 = stablehlo.xor %c5, %c7 {expect = "2"} : tensor<i32>
      %9 = stablehlo.or %n, %c7 {expect = "%or in i32"} : tensor<i32>""",
    "an operation without a rule is an unknown": """
      %0 = stablehlo.popcnt %n {expect = "%popcnt in i32"} : tensor<i32>
      %1 = stablehlo.popcnt %n {expect = "%popcnt_1 in i32"} : tensor<i32>
      %2 = stablehlo.custom_call @mystery(%n) {expect = "%mystery in i32"} : (tensor<i32>) -> tensor<i32>
      %3 = "other.dialect"(%n) {expect = "%dialect in i32"} : (tensor<i32>) -> tensor<i32>""",
}


@pytest.mark.parametrize("body", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_elementwise(body: str) -> None:
    """Arithmetic on i32 scalars."""
    check_body(body)


# what the machine computes on integers of `kind` by the StableHLO specification; `None` is left to the implementation
MEANINGS: dict[str, Callable[[IntType, int, int], int | None]] = {
    "add": lambda _, x, y: x + y,
    "subtract": lambda _, x, y: x - y,
    "multiply": lambda _, x, y: x * y,
    "minimum": lambda _, x, y: min(x, y),
    "maximum": lambda _, x, y: max(x, y),
    "divide": lambda kind, x, y: divided(kind, x, y),
    "remainder": lambda kind, x, y: None if divided(kind, x, y) is None else x - y * (divided(kind, x, y) or 0),
    "and": lambda _, x, y: x & y,
    "or": lambda _, x, y: x | y,
    "xor": lambda _, x, y: x ^ y,
    "shift_left": lambda kind, x, y: x << y if 0 <= y < kind.bits else None,
    "shift_right_arithmetic": lambda kind, x, y: wrapped(x, 4, True) >> y if 0 <= y < kind.bits else None,
    "shift_right_logical": lambda kind, x, y: (x % 16) >> y if 0 <= y < kind.bits else None,
}


def divided(kind: IntType, x: int, y: int) -> int | None:
    """The truncated quotient where it is defined."""
    if y == 0 or (kind.signed and (x, y) == (-8, -1)):
        return None
    return truncated_quotient(x, y)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("name", MEANINGS)
def test_every_pair_of_four_bits(name: str, signed: bool) -> None:
    """A binary rule on unknowns and on constants agrees with the machine wherever it says anything."""
    kind = IntType(4, signed)
    every = range(kind.range.lo, kind.range.hi + 1)
    with create_context(), ir.Location.unknown():
        rule = elementwise.rule_of(ir.Operation.create(f"stablehlo.{name}", operands=[], results=[]))
    assert rule is not None
    x, y = sym.parameter("x", kind.range), sym.parameter("y", kind.range)
    said = 0
    for a, b in itertools.product(every, every):
        meant = MEANINGS[name](kind, a, b)
        for left, right in itertools.product((x, sym.constant(a)), (y, sym.constant(b))):
            expr = rule(kind, (left, right))
            if expr is None:
                continue
            said += 1
            assert meant is not None, (expr, a, b)
            assert sym.value_of(expr, {x: a, y: b}) == wrapped(meant, 4, signed), (expr, a, b)
            assert sym.range_of(expr).within(kind.range), expr
    assert said >= 16


def test_narrow_sums_stay_narrow_when_widened() -> None:
    """A sum that wraps in i8 isn't undone by a sum in i32."""
    check_body(
        """
      %b = stablehlo.constant dense<100> : tensor<i8>
      %w = stablehlo.constant dense<-100> : tensor<i32>
      %0 = stablehlo.add %a, %b {expect = "a + 100 in i8"} : tensor<i8>
      %1 = stablehlo.convert %0 {expect = "a + 100 in [-128, 127]"} : (tensor<i8>) -> tensor<i32>
      %2 = stablehlo.multiply %1, %n : tensor<i32>
      %3 = stablehlo.add %1, %n : tensor<i32>
      %4 = stablehlo.subtract %3, %n {expect = "a + 100 in [-128, 127]"} : tensor<i32>
      %5 = stablehlo.add %4, %w {expect = "(a + 100) - 100 in [-228, 27]"} : tensor<i32>
      %6 = stablehlo.add %5, %n {expect = "(a + 100) + n - 100 in i32"} : tensor<i32>""",
        '%n: tensor<i32> loc("n"), %a: tensor<i8> loc("a")',
    )


def test_other_types() -> None:
    """Unsigned integers never go below 0, narrowing is written out, and floats say nothing."""
    check_body(
        """
      %u1 = stablehlo.constant dense<1> : tensor<ui32>
      %0 = stablehlo.subtract %u, %u1 {expect = "u - 1 in ui32"} : tensor<ui32>
      %1 = stablehlo.convert %l {expect = "i32(l) in i32"} : (tensor<i64>) -> tensor<i32>
      %2 = stablehlo.convert %n {expect = "n in [-2147483648, 2147483647]"} : (tensor<i32>) -> tensor<i64>
      %3 = stablehlo.add %2, %2 {expect = "2*n in [-4294967296, 4294967294], multiple of 2"} : tensor<i64>
      %4 = stablehlo.convert %n {expect = "ui32(n) in ui32"} : (tensor<i32>) -> tensor<ui32>
      %5 = stablehlo.convert %n {expect = "n != 0 in i1"} : (tensor<i32>) -> tensor<i1>
      %big = stablehlo.constant dense<4294967301> : tensor<i64>
      %6 = stablehlo.convert %big {expect = "5"} : (tensor<i64>) -> tensor<i32>
      %7 = stablehlo.convert %f {expect = "%convert in i32"} : (tensor<f32>) -> tensor<i32>
      %8 = stablehlo.compare GT, %f, %f, FLOAT {expect = "%compare in i1"} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %u8 = stablehlo.constant dense<200> : tensor<ui8>
      %9 = stablehlo.add %u8, %u8 {expect = "144"} : tensor<ui8>
      %10 = stablehlo.convert %u8 {expect = "-56"} : (tensor<ui8>) -> tensor<i8>
      %11 = stablehlo.shift_right_arithmetic %u, %u1 {expect = "%shift_right_arithmetic in ui32"} : tensor<ui32>
      %12 = stablehlo.shift_right_logical %u, %u1 {expect = "u // 2 in [0, 2147483647]"} : tensor<ui32>
      %13 = stablehlo.not %u {expect = "4294967295 - u in ui32"} : tensor<ui32>""",
        '%n: tensor<i32> loc("n"), %u: tensor<ui32> loc("u"), %l: tensor<i64> loc("l"), %f: tensor<f32>',
    )


def test_structural() -> None:
    """Elements are followed through operations that move them; an unknown array is read by name."""
    check_body(
        """
      %t = stablehlo.constant dense<[3, 1, 2]> : tensor<3xi32>
      %h = stablehlo.constant {expect = "[1, 2, -1]"} dense<"0x0100000002000000FFFFFFFF"> : tensor<3xi32>
      %b = stablehlo.constant {expect = "[1, 0]"} dense<[true, false]> : tensor<2xi1>
      %i4 = stablehlo.constant {expect = "[%constant[0], %constant[1]]"} dense<[1, -2]> : tensor<2xi4>
      %0 = stablehlo.slice %t [1:2] {expect = "1"} : (tensor<3xi32>) -> tensor<1xi32>
      %1 = stablehlo.reshape %0 {expect = "1"} : (tensor<1xi32>) -> tensor<i32>
      %2 = stablehlo.slice %v [3:4] {expect = "v[3] in i32"} : (tensor<64xi32>) -> tensor<1xi32>
      %3 = stablehlo.dynamic_slice %v, %n, sizes = [1] {expect = "v[n] in i32"}
        : (tensor<64xi32>, tensor<i32>) -> tensor<1xi32>
      %4 = stablehlo.dynamic_slice %v, %c128, sizes = [1] {expect = "v[63] in i32"}
        : (tensor<64xi32>, tensor<i32>) -> tensor<1xi32>
      %5 = stablehlo.dynamic_slice %t, %n, sizes = [1] {expect = "%dynamic_slice[0] in [1, 3]"}
        : (tensor<3xi32>, tensor<i32>) -> tensor<1xi32>
      %6 = stablehlo.concatenate %t, %0, dim = 0 {expect = "[3, 1, 2, 1]"}
        : (tensor<3xi32>, tensor<1xi32>) -> tensor<4xi32>
      %7 = stablehlo.iota dim = 1 {expect = "[0, 1, 2, 0, 1, 2]"} : tensor<2x3xi32>
      %8 = stablehlo.transpose %7, dims = [1, 0] {expect = "[0, 0, 1, 1, 2, 2]"} : (tensor<2x3xi32>) -> tensor<3x2xi32>
      %9 = stablehlo.broadcast_in_dim %t, dims = [1] {expect = "[3, 1, 2, 3, 1, 2]"}
        : (tensor<3xi32>) -> tensor<2x3xi32>
      %10 = stablehlo.add %7, %9 {expect = "[3, 2, 4, 3, 2, 4]"} : tensor<2x3xi32>
      %11 = stablehlo.reverse %t, dims = [0] {expect = "[2, 1, 3]"} : tensor<3xi32>
      %12 = stablehlo.slice %7 [1:2, 0:3:2] {expect = "[0, 2]"} : (tensor<2x3xi32>) -> tensor<1x2xi32>
      %13 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<64xi32>
      %14 = stablehlo.minimum %v, %13 : tensor<64xi32>
      %15 = stablehlo.slice %14 [5:6] {expect = "min(n, v[5]) in i32"} : (tensor<64xi32>) -> tensor<1xi32>
      %16 = stablehlo.get_dimension_size %v, dim = 0 {expect = "64"} : (tensor<64xi32>) -> tensor<i32>
      %17 = stablehlo.get_dimension_size %d, dim = 1 {expect = "d.shape[1] in [0, 2147483647]"}
        : (tensor<4x?xf32>) -> tensor<i32>
      %big = stablehlo.constant dense<9> : tensor<100000xi32>
      %18 = stablehlo.slice %big [77:78] {expect = "9"} : (tensor<100000xi32>) -> tensor<1xi32>""",
        '%n: tensor<i32> loc("n"), %v: tensor<64xi32> loc("v"), %d: tensor<4x?xf32> loc("d")',
    )


def test_reductions() -> None:
    """Constants are reduced, few elements written out, many become an unknown within the elements' bounds."""
    check_body(
        """
      %t = stablehlo.constant dense<[3, 1, 2]> : tensor<3xi32>
      %0 = stablehlo.reduce(%t init: %cmin) applies stablehlo.maximum across dimensions = [0] {expect = "3"}
        : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
      %1 = stablehlo.reduce(%t init: %c0) applies stablehlo.add across dimensions = [0] {expect = "6"}
        : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
      %2 = stablehlo.reduce(%v init: %cmin) applies stablehlo.maximum across dimensions = [0] {expect = "max(v) in i32"}
        : (tensor<64xi32>, tensor<i32>) -> tensor<i32>
      %3 = stablehlo.broadcast_in_dim %c5, dims = [] : (tensor<i32>) -> tensor<64xi32>
      %4 = stablehlo.clamp %c0, %v, %c5 : (tensor<i32>, tensor<64xi32>, tensor<i32>) -> tensor<64xi32>
      %5 = stablehlo.reduce(%4 init: %c0) applies stablehlo.add across dimensions = [0]
        {expect = "sum(min(5, max(0, v))) in [0, 320]"} : (tensor<64xi32>, tensor<i32>) -> tensor<i32>
      %6 = stablehlo.reduce(%4 init: %cmin) applies stablehlo.maximum across dimensions = [0]
        {expect = "max(min(5, max(0, v))) in [0, 5]"} : (tensor<64xi32>, tensor<i32>) -> tensor<i32>
      %7 = stablehlo.reduce(%v init: %c0) applies stablehlo.add across dimensions = [0] {expect = "sum(v) in i32"}
        : (tensor<64xi32>, tensor<i32>) -> tensor<i32>
      %8 = stablehlo.reduce(%p init: %cmax) applies stablehlo.minimum across dimensions = [0]
        {expect = "min(p[0], p[1]) in i32"} : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %9 = stablehlo.reduce(%p init: %cm1) applies stablehlo.and across dimensions = [0] {expect = "%reduce in i32"}
        : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %10 = stablehlo.reduce(%v init: %c1) applies stablehlo.multiply across dimensions = [0]
        {expect = "%reduce_1 in i32"} : (tensor<64xi32>, tensor<i32>) -> tensor<i32>""",
        '%v: tensor<64xi32> loc("v"), %p: tensor<2xi32> loc("p")',
    )


def test_control_flow() -> None:
    """Loop invariants keep their value, loop variables don't; a branch is picked or joined; barriers pass values on."""
    check_body("""
      %0:2 = stablehlo.while(%a = %n, %b = %c5) : tensor<i32>, tensor<i32> attributes {expect = "%while in i32"}
        cond {
          %q = stablehlo.add %b, %c0 {expect = "5"} : tensor<i32>
          %r = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %r : tensor<i1>
        } do {
          %s = stablehlo.add %a, %b {expect = "%iter0 + 5 in i32"} : tensor<i32>
          stablehlo.return %s, %b : tensor<i32>, tensor<i32>
        }
      %1 = stablehlo.add %0#1, %c1 {expect = "6"} : tensor<i32>
      %2 = "stablehlo.case"(%c1) ({
        stablehlo.return %c7 : tensor<i32>
      }, {
        stablehlo.return %n : tensor<i32>
      }) {expect = "n in i32"} : (tensor<i32>) -> tensor<i32>
      %3 = "stablehlo.case"(%m) ({
        stablehlo.return %c7 : tensor<i32>
      }, {
        stablehlo.return %c5 : tensor<i32>
      }) {expect = "where(m == 0, 7, 5) in [5, 7]"} : (tensor<i32>) -> tensor<i32>
      %4 = "stablehlo.case"(%cm1) ({
        stablehlo.return %c7 : tensor<i32>
      }, {
        stablehlo.return %c5 : tensor<i32>
      }, {
        stablehlo.return %c1 : tensor<i32>
      }) {expect = "1"} : (tensor<i32>) -> tensor<i32>
      %5 = "stablehlo.case"(%m) ({
        stablehlo.return %c7 : tensor<i32>
      }, {
        stablehlo.return %c5 : tensor<i32>
      }, {
        stablehlo.return %c1 : tensor<i32>
      }) {expect = "%case in [1, 7]"} : (tensor<i32>) -> tensor<i32>
      %6 = stablehlo.compare GT, %n, %c5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = "stablehlo.if"(%6) ({
        stablehlo.return %n : tensor<i32>
      }, {
        stablehlo.return %c5 : tensor<i32>
      }) {expect = "max(5, n) in [5, 2147483647]"} : (tensor<i1>) -> tensor<i32>
      %8:2 = stablehlo.optimization_barrier {expect = "m in i32"} %m, %n : tensor<i32>, tensor<i32>
      %9 = stablehlo.add %8#1, %c0 {expect = "n in i32"} : tensor<i32>
      %10 = stablehlo.custom_call @Sharding(%n) {expect = "n in i32"} : (tensor<i32>) -> tensor<i32>""")


def test_calls() -> None:
    """A call's result is computed for its arguments; an argument is what all calls pass, if nobody else may call."""
    check("""
      func.func public @main(%n: tensor<i32> loc("n"), %m: tensor<i32> loc("m")) {
        %c5 = stablehlo.constant dense<5> : tensor<i32>
        %0 = call @inc(%n) {expect = "n + 1 in i32"} : (tensor<i32>) -> tensor<i32>
        %1 = call @inc(%c5) {expect = "6"} : (tensor<i32>) -> tensor<i32>
        %2 = call @once(%c5) {expect = "10"} : (tensor<i32>) -> tensor<i32>
        %3 = call @same(%c5, %n) {expect = "n + 5 in i32"} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %4 = call @same(%c5, %m) {expect = "m + 5 in i32"} : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %5 = call @loop(%n) {expect = "%loop in i32"} : (tensor<i32>) -> tensor<i32>
        %6 = call @extern(%n) {expect = "%extern in i32"} : (tensor<i32>) -> tensor<i32>
        %7 = stablehlo.composite "a.b" %n {decomposition = @named, expect = "%composite in i32"}
          : (tensor<i32>) -> tensor<i32>
        %8 = call @named(%c5) {expect = "5"} : (tensor<i32>) -> tensor<i32>
        %9 = call @public(%c5) {expect = "5"} : (tensor<i32>) -> tensor<i32>
        return
      }
      func.func private @inc(%x: tensor<i32> loc("x")) -> tensor<i32> {
        %c = stablehlo.constant dense<1> : tensor<i32>
        %0 = stablehlo.add %x, %c {expect = "x + 1 in i32"} : tensor<i32>
        return %0 : tensor<i32>
      }
      func.func private @once(%x: tensor<i32>) -> tensor<i32> {
        %0 = stablehlo.add %x, %x {expect = "10"} : tensor<i32>
        return %0 : tensor<i32>
      }
      func.func private @same(%x: tensor<i32>, %y: tensor<i32> loc("y")) -> tensor<i32> {
        %0 = stablehlo.add %x, %y {expect = "y + 5 in i32"} : tensor<i32>
        return %0 : tensor<i32>
      }
      func.func private @loop(%x: tensor<i32>) -> tensor<i32> {
        %0 = call @loop(%x) {expect = "%loop_1 in i32"} : (tensor<i32>) -> tensor<i32>
        return %0 : tensor<i32>
      }
      func.func private @extern(tensor<i32>) -> tensor<i32>
      func.func private @named(%x: tensor<i32> loc("z")) -> tensor<i32> {
        %0 = stablehlo.optimization_barrier {expect = "z in i32"} %x : tensor<i32>
        return %x : tensor<i32>
      }
      func.func public @public(%x: tensor<i32> loc("w")) -> tensor<i32> {
        %0 = stablehlo.optimization_barrier {expect = "w in i32"} %x : tensor<i32>
        return %x : tensor<i32>
      }""")


def test_a_name_is_no_proof() -> None:
    """A private function that merely calls itself floor_divide gives what its body says."""
    check("""
      func.func public @main(%n: tensor<i32> loc("n")) {
        %c = stablehlo.constant dense<128> : tensor<i32>
        %0 = call @floor_divide(%n, %c) {expect = "div(n, 128) in [-16777216, 16777215]"}
          : (tensor<i32>, tensor<i32>) -> tensor<i32>
        return
      }
      func.func private @floor_divide(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i32> {
        %0 = stablehlo.divide %x, %y : tensor<i32>
        return %0 : tensor<i32>
      }""")


def test_an_unknown_carries_its_place() -> None:
    """The origin of an unknown names the operation and the user's line."""
    text = """
      func.func public @main(%n: tensor<i32>) -> tensor<i32> {
        %0 = stablehlo.popcnt %n : tensor<i32> loc(callsite("f"("model.py":31:12) at "main.py":7:3))
        return %0 : tensor<i32>
      }"""
    with create_context():
        program = parsed(text)
        (leaf,) = sym.leaves_of(OuterScalars(program).evaluate(returned(program)[0]))
    assert leaf.origin == sym.Origin("result of stablehlo.popcnt", "model.py", 31, 12)


def test_another_type_is_refused() -> None:
    """`evaluate` is for integer scalars."""
    text = "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    with create_context():
        program = parsed(text)
        with pytest.raises(ValueError, match="expected an integer scalar, got tensor<f32>"):
            OuterScalars(program).evaluate(returned(program)[0])


@pytest.mark.parametrize(
    "attribute",
    [
        "@f",
        "[@f]",
        "[[1, [@f]]]",
        "{callee = @f}",
        "[{a = {b = [@f]}}]",
        "@f::@inner",
        "@outer::@f",
        "#vendor.callback<@f>",
        '#vendor.callback<[@"f"]>',
    ],
)
def test_a_function_named_anywhere_may_be_called_with_anything(attribute: str) -> None:
    """A private function is known by its calls only where no attribute names it, however deep."""
    program = """
      func.func public @main() {{
        %c = stablehlo.constant dense<4> : tensor<i32>
        func.call @f(%c) : (tensor<i32>) -> ()
        stablehlo.custom_call @callback() {{about = {attribute}}} : () -> ()
        return
      }}
      func.func private @f(%n: tensor<i32> loc("n")) {{
        %0 = stablehlo.add %n, %n {{expect = "{expected}"}} : tensor<i32>
        return
      }}"""
    check(program.format(attribute=attribute, expected="2*n in [-2147483648, 2147483646], multiple of 2"))
    check(program.format(attribute=attribute.replace("f", "other"), expected="8"))


def returned(program: ir.Operation) -> list[Value]:
    """What the first function returns."""
    return list(program.regions[0].blocks[0].operations[0].regions[0].blocks[0].operations[-1].operands)


def facts_of(f: Callable[..., Any], *names: str) -> list[str]:
    """The facts of the results of a function of i32 scalars, and of `lengths`, as JAX lowers it."""
    jax: Any = pytest.importorskip("jax")
    avals = [jax.ShapeDtypeStruct((64,) if name == "lengths" else (), "int32") for name in names]
    text = jax.jit(f).trace(*avals).lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
    with create_context():
        program = parsed(text)
        scalars = OuterScalars(program)
        return [describe(scalars, value) for value in returned(program)]


def test_what_jax_makes_of_division() -> None:
    """`//`, `%` and both ways to round up are recognised, with ranges that allow for wrap-around."""
    assert facts_of(lambda n: (n // 128, n % 128, (n + 127) // 128, -(-n // 128)), "n") == [
        "n // 128 in [-16777216, 16777215]",
        "n % 128 in [0, 127]",
        "ceildiv(n, 128) in [-16777216, 16777215]",
        "ceildiv(n, 128) in [-16777215, 16777216]",
    ]


def test_what_jax_makes_of_choices() -> None:
    """`where`, `clip`, `minimum` and constants through private functions, in numpy's functions and in lax's."""
    import jax.numpy as jnp
    from jax import lax

    def f(n: Any, m: Any) -> Any:
        five = jnp.clip(jnp.minimum(n, 5), 5, 5)
        limit = jnp.minimum(jnp.int32(5), jnp.clip(n, 0, 1000) // 128)
        return jnp.where(n > 16, 32, 16), jnp.clip(n, 0, 5), five, limit, lax.div(jnp.maximum(m, 0), 8), five * 2

    assert facts_of(f, "n", "m") == [
        "where(n > 16, 32, 16) in [16, 32], multiple of 16",
        "min(5, max(0, n)) in [0, 5]",
        "5",
        "min(5, min(1000, max(0, n)) // 128) in [0, 5]",
        "max(0, m) // 8 in [0, 268435455]",
        "10",
    ]


def test_what_jax_makes_of_lengths() -> None:
    """Reductions over an argument and elements of it are named as in the user's function."""
    import jax.numpy as jnp

    def f(lengths: Any) -> Any:
        tiles = (jnp.clip(lengths, 0, 1000) + 127) // 128
        return jnp.max(lengths), jnp.max(tiles), jnp.sum(tiles), lengths[3], (lengths[4] - lengths[3]) // 8

    assert facts_of(f, "lengths") == [
        "max(lengths) in i32",
        "max(ceildiv(min(1000, max(0, lengths)), 128)) in [0, 8]",
        "sum(ceildiv(min(1000, max(0, lengths)), 128)) in [0, 512]",
        "lengths[3] in i32",
        "(lengths[4] - lengths[3]) // 8 in [-268435456, 268435455]",
    ]


def test_what_jax_makes_of_a_scan() -> None:
    """A bound read from a scanned array is an element of the argument, at an unknown step."""
    jax: Any = pytest.importorskip("jax")

    def f(lengths: Any) -> Any:
        def step(carry: Any, length: Any) -> Any:
            return carry + jax.lax.optimization_barrier(length), None

        return jax.lax.scan(step, jax.numpy.int32(0), lengths)[0]

    text = jax.jit(f).trace(jax.ShapeDtypeStruct((8,), "int32")).lower(lowering_platforms=("tpu",))
    found: list[str] = []
    with create_context():
        program = parsed(text.as_text(debug_info=True))
        scalars = OuterScalars(program)

        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name == "stablehlo.optimization_barrier":
                found.append(describe(scalars, op.results[0]))
            return ir.WalkResult.ADVANCE

        program.walk(visit, ir.WalkOrder.PRE_ORDER)
    assert len(found) == 1
    assert found[0].startswith("lengths[%iter")


def test_long_chains_are_no_recursion() -> None:
    """Three thousand operations in a row, and as many that can't be simplified, are evaluated on a flat stack."""
    steps = 3_000
    lines = [f"%a{k + 1} = stablehlo.add %a{k}, %one : tensor<i32>" for k in range(steps)]
    lines += [f"%b{k + 1} = stablehlo.multiply %b{k}, %b{k} : tensor<i32>" for k in range(steps)]
    text = f"""func.func public @main(%a0: tensor<i32> loc("n"), %b0: tensor<i32>) -> (tensor<i32>, tensor<i32>) {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      {chr(10).join(lines)}
      return %a{steps}, %b{steps} : tensor<i32>, tensor<i32>
    }}"""
    with create_context():
        program = parsed(text)
        scalars = OuterScalars(program)
        first, second = map(scalars.evaluate, returned(program))
        assert str(first) == "n + 3000"
        assert sym.range_of(second) == sym.type_range(32, True)


def work_for(launches: int) -> int:
    """How many functions run to evaluate the bounds of so many launches, each computed by calls of shared functions."""
    lines = [f"%{k} = call @cdiv(%n) : (tensor<i32>) -> tensor<i32>" for k in range(launches)]
    text = f"""
      func.func public @main(%n: tensor<i32> loc("n")) {{
        {chr(10).join(lines)}
        return
      }}
      func.func private @cdiv(%n: tensor<i32>) -> tensor<i32> {{
        %c127 = stablehlo.constant dense<127> : tensor<i32>
        %c128 = stablehlo.constant dense<128> : tensor<i32>
        %0 = stablehlo.add %n, %c127 : tensor<i32>
        %1 = call @div(%0, %c128) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        return %1 : tensor<i32>
      }}
      func.func private @div(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {{
        %0 = stablehlo.divide %a, %b : tensor<i32>
        return %0 : tensor<i32>
      }}"""
    ran = itertools.count()
    with create_context():
        program = parsed(text)
        values = [
            op.results[0]
            for op in program.regions[0].blocks[0].operations[0].regions[0].blocks[0].operations
            if len(op.results) == 1
        ]
        sys.setprofile(lambda *_: next(ran))
        try:
            scalars = OuterScalars(program)
            bounds = [scalars.evaluate(value) for value in values]
        finally:
            sys.setprofile(None)
    assert list(map(str, bounds)) == ["div(n + 127, 128)"] * launches
    return next(ran)


def test_many_launches_stay_linear() -> None:
    """Eight times the launches take about eight times the work, far from sixty-four."""
    assert work_for(2000) < 9 * work_for(250)


def test_no_chain_is_too_long() -> None:
    """A value that 21,000 operations lead to is known, and the next question about it takes no time."""
    steps = 21_000
    lines = [f"%a{k + 1} = stablehlo.add %a{k}, %n : tensor<i32>" for k in range(steps)]
    with create_context():
        program = parsed(f"""func.func public @main(%n: tensor<i32> loc("n")) -> (tensor<i32>, tensor<i32>) {{
          %a0 = stablehlo.constant dense<1> : tensor<i32>
          {chr(10).join(lines)}
          return %a{steps}, %a{steps - 1} : tensor<i32>, tensor<i32>
        }}""")
        scalars = OuterScalars(program)
        assert [str(scalars.evaluate(v)) for v in returned(program)] == [f"{steps}*n + 1", f"{steps - 1}*n + 1"]


def calls_within_calls(body: str, questions: int = 1) -> str:
    """Thirty functions that call the next one twice, with a billion calls of the last, and questions about the first.

    `body` computes `%0` of the integer `%x`.
    """
    functions = [
        f"""func.func private @f{k}(%x: tensor<i32>) -> tensor<i32> {{
          %0 = call @f{k + 1}(%x) : (tensor<i32>) -> tensor<i32>
          %1 = call @f{k + 1}(%0) : (tensor<i32>) -> tensor<i32>
          return %1 : tensor<i32>
        }}"""
        for k in range(30)
    ]
    calls = [f"%q{k} = call @f0(%n) : (tensor<i32>) -> tensor<i32>" for k in range(questions)]
    return f"""
      func.func public @main(%n: tensor<i32> loc("n")) -> ({", ".join(["tensor<i32>"] * questions)}) {{
        {chr(10).join(calls)}
        return {", ".join(f"%q{k}" for k in range(questions))} : {", ".join(["tensor<i32>"] * questions)}
      }}
      {chr(10).join(functions)}
      func.func private @f30(%x: tensor<i32>) -> tensor<i32> {{
        {body}
        return %0 : tensor<i32>
      }}"""


def test_a_call_with_the_same_arguments_is_evaluated_once() -> None:
    """What a billion calls compute is known where few of them differ: doubled so often, nothing is left of i32."""
    bodies = {
        "0": "%0 = stablehlo.add %x, %x : tensor<i32>",
        "max(5, n)": "%c = stablehlo.constant dense<5> : tensor<i32>\n%0 = stablehlo.maximum %x, %c : tensor<i32>",
    }
    with create_context():
        for expected, body in bodies.items():
            program = parsed(calls_within_calls(body))
            assert [str(OuterScalars(program).evaluate(v)) for v in returned(program)] == [expected]


def test_calls_within_calls_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no two calls agree the answer is an unknown, and fifty questions take no longer than one."""
    monkeypatch.setattr(outer, "_BUDGET", 2000)
    monkeypatch.setattr(outer, "_BUDGET_OF_A_CALL", 10)
    body = """
      %square = stablehlo.multiply %x, %x : tensor<i32>
      %0 = stablehlo.add %square, %x : tensor<i32>"""
    with create_context():
        program = parsed(calls_within_calls(body, questions=50))
        scalars = OuterScalars(program)
        answers = [scalars.evaluate(v) for v in returned(program)]
        assert {sym.range_of(answer) for answer in answers} == {sym.type_range(32, True)}
        assert len(set(answers)) == 50
        assert len(scalars._known) < 4000


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("budget", [0, 1, 5, 20, 50, 200])
def test_the_order_of_questions_makes_nothing_wrong(
    monkeypatch: pytest.MonkeyPatch, budget: int, backwards: bool
) -> None:
    """With whatever budget and in whatever order, an answer is the true one or an unknown that includes it."""
    monkeypatch.setattr(outer, "_BUDGET", budget)
    monkeypatch.setattr(outer, "_BUDGET_OF_A_CALL", 0)
    calls = [
        f"""%c{k} = stablehlo.constant dense<{k}> : tensor<i32>
        %q{k} = call @twice(%c{k}) : (tensor<i32>) -> tensor<i32>"""
        for k in range(8)
    ]
    with create_context():
        program = parsed(f"""
          func.func public @main() -> ({", ".join(["tensor<i32>"] * 8)}) {{
            {chr(10).join(calls)}
            return {", ".join(f"%q{k}" for k in range(8))} : {", ".join(["tensor<i32>"] * 8)}
          }}
          func.func private @twice(%x: tensor<i32>) -> tensor<i32> {{
            %0 = call @next(%x) : (tensor<i32>) -> tensor<i32>
            %1 = call @next(%0) : (tensor<i32>) -> tensor<i32>
            %2 = stablehlo.subtract %1, %0 : tensor<i32>
            %3 = stablehlo.add %2, %x : tensor<i32>
            return %3 : tensor<i32>
          }}
          func.func private @next(%x: tensor<i32>) -> tensor<i32> {{
            %two = stablehlo.constant dense<2> : tensor<i32>
            %0 = stablehlo.multiply %x, %two : tensor<i32>
            %1 = stablehlo.add %0, %two : tensor<i32>
            return %1 : tensor<i32>
          }}""")
        scalars = OuterScalars(program)
        questions = list(enumerate(returned(program)))
        for k, value in reversed(questions) if backwards else questions:
            first = 2 * k + 2
            assert 2 * first + 2 - first + k in sym.range_of(scalars.evaluate(value))
        known = [sym.constant_of(scalars.evaluate(value)) for _, value in questions]
        assert (None in known) == (budget < 200)


def test_what_a_body_draws_is_not_the_same_in_two_calls() -> None:
    """Neither a random number nor what is read off a float argument is remembered for another call of the function."""
    check("""
      func.func public @main(%n: tensor<i32> loc("n"), %x: tensor<f32>, %y: tensor<f32>) {
        %0 = call @draw(%n, %x) : (tensor<i32>, tensor<f32>) -> tensor<i32>
        %1 = call @draw(%n, %x) : (tensor<i32>, tensor<f32>) -> tensor<i32>
        %2 = stablehlo.subtract %0, %1 {expect = "%dice_1 - %dice in i32"} : tensor<i32>
        %3 = call @read(%n, %x) : (tensor<i32>, tensor<f32>) -> tensor<i32>
        %4 = call @read(%n, %y) : (tensor<i32>, tensor<f32>) -> tensor<i32>
        %5 = stablehlo.subtract %3, %4 {expect = "%convert_1 - %convert in i32"} : tensor<i32>
        return
      }
      func.func private @draw(%n: tensor<i32>, %x: tensor<f32>) -> tensor<i32> {
        %0 = stablehlo.custom_call @dice() {has_side_effect = true} : () -> tensor<i32>
        %1 = stablehlo.add %0, %n : tensor<i32>
        return %1 : tensor<i32>
      }
      func.func private @read(%n: tensor<i32>, %x: tensor<f32>) -> tensor<i32> {
        %0 = stablehlo.convert %x : (tensor<f32>) -> tensor<i32>
        return %0 : tensor<i32>
      }""")
