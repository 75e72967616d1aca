"""Index maps as expressions: the rules one by one, and what JAX lowers against the function it was lowered from."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AbstractMesh, AxisType
from jaxlib.mlir import ir

from mosaic_grid import symbolic as sym
from mosaic_grid.context import create_context
from mosaic_grid.dataflow.kernel import grid_indices, index_map, moves, prefetch_names
from mosaic_grid.program import Kernel, Program, ProgramError
from mosaic_grid.unpack import unpack

TABLE = "memref<8xi32, #tpu.memory_space<smem>>"
BLOCK = "memref<8x128xf32, #tpu.memory_space<vmem>>"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """Every test has an MLIR context of its own."""
    with create_context():
        yield


def kernel(body: str, bounds: str = "8, 4", results: str = "i32", table: str = TABLE, named: str = "table") -> Kernel:
    """A kernel with two grid dimensions, one prefetch operand and one window, whose index map has this body."""
    source = f"""
    module @k attributes {{stable_mosaic.version = 18 : i64}} {{
      func.func @k(%a: i32, %b: i32, %t: {table} loc("{named}"), %x: {BLOCK}) attributes {{
          iteration_bounds = array<i64: {bounds}>, scalar_prefetch = 1 : i64, scratch_operands = 0 : i64,
          window_params = [{{transform_indices = @map, window_bounds = array<i64: 8, 128>}}]}} {{
        return
      }}
      func.func @map(%i: i32, %j: i32, %t: {table}) -> ({results}) {{
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c4 = arith.constant 4 : i32
        {body}
      }}
    }}"""
    return Kernel(ir.Operation.parse(source, source_name="k.mlir").operation)


def indices_of(k: Kernel) -> list[str]:
    """The texts of the index map of the only window."""
    blocks = index_map(k, k.windows[0])
    assert blocks is not None
    return [str(block) for block in blocks]


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        ("%r = arith.addi %i, %c4 : i32", "i + 4"),
        ("%r = arith.subi %c4, %j : i32", "4 - j"),
        ("%r = arith.muli %i, %c4 : i32", "4*i"),
        ("%r = arith.divsi %i, %c4 : i32", "i // 4"),
        ("%r = arith.divui %i, %c4 : i32", "i // 4"),
        ("%r = arith.floordivsi %i, %c4 : i32", "i // 4"),
        ("%r = arith.ceildivsi %i, %c4 : i32", "ceildiv(i, 4)"),
        ("%r = arith.remsi %i, %c4 : i32", "i % 4"),
        ("%r = arith.remui %i, %c4 : i32", "i % 4"),
        ("%r = arith.minsi %i, %j : i32", "min(i, j)"),
        ("%r = arith.maxsi %i, %c4 : i32", "max(4, i)"),
        ("%r = arith.shli %i, %c1 : i32", "2*i"),
        ("%r = arith.shrsi %i, %c1 : i32", "i // 2"),
        ("%r = arith.shrui %i, %c1 : i32", "i // 2"),
        ("%c3 = arith.constant 3 : i32\n%r = arith.andi %i, %c3 : i32", "i % 4"),
        ("%m = arith.constant -1 : i32\n%r = arith.xori %i, %m : i32", "-i - 1"),
        ("%r = tpu.assume_multiple %i, 4 : i32", "i"),
        ("%r = tpu.iteration_bound 1 : i32", "4"),
        ("%x = arith.index_cast %i : i32 to index\n%r = arith.index_cast %x : index to i32", "i"),
        ("%x = arith.extsi %i : i32 to i64\n%r = arith.trunci %x : i64 to i32", "i"),
        ("%x = arith.trunci %i : i32 to i1\n%r = arith.extui %x : i1 to i32", "i % 2"),
        ("%x = arith.trunci %i : i32 to i1\n%r = arith.extsi %x : i1 to i32", "-(i % 2)"),
        ("%p = arith.cmpi slt, %i, %c4 : i32\n%r = arith.select %p, %i, %c0 : i32", "where(i < 4, i, 0)"),
        ("%p = arith.cmpi ult, %i, %c4 : i32\n%r = arith.select %p, %i, %c0 : i32", "where(i < 4, i, 0)"),
        (
            "%p = arith.cmpi eq, %i, %c4 : i32\n%q = arith.cmpi ne, %j, %c1 : i32\n"
            "%b = arith.ori %p, %q : i1\n%r = arith.select %b, %i, %c0 : i32",
            "where(i == 4 or j != 1, i, 0)",
        ),
        ("%x = arith.index_cast %j : i32 to index\n%r = memref.load %t[%x] : " + TABLE, "table[j]"),
        (
            "%p = arith.cmpi slt, %i, %c4 : i32\n"
            "%r = scf.if %p -> (i32) { scf.yield %j : i32 } else { %s = arith.addi %j, %c4 : i32\nscf.yield %s : i32 }",
            "where(i < 4, j, j + 4)",
        ),
    ],
)
def test_rule(ops: str, text: str) -> None:
    """Each operation reads as what it computes."""
    assert indices_of(kernel(f"{ops}\nreturn %r : i32")) == [text]


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        ("%r = arith.divsi %i, %j : i32", "divsi[i, j]"),
        ("%r = arith.shrsi %i, %j : i32", "shrsi[i, j]"),
        ("%r = arith.ori %i, %j : i32", "ori[i, j]"),
        (
            "%f = arith.sitofp %i : i32 to f32\n%r = arith.fptosi %f : f32 to i32",
            "fptosi{f32 -> i32}[sitofp{i32 -> f32}[i]]",
        ),
        (
            "%p = arith.trunci %i : i32 to i1\n%q = arith.trunci %j : i32 to i1\n%s = arith.cmpi slt, %p, %q : i1\n"
            "%r = arith.extui %s : i1 to i32",
            "cmpi{predicate = 2 : i64, i1 -> i1 -> i1}[i % 2, j % 2]",
        ),
        (
            "%u = arith.index_cast %j : i32 to index\n%z = arith.constant 0 : index\n%o = arith.constant 1 : index\n"
            "%r = scf.for %k = %z to %u step %o iter_args(%acc = %c0) -> (i32) "
            "{ %s = arith.addi %acc, %i : i32\nscf.yield %s : i32 }",
            "for@map.1[i, j, table]",
        ),
    ],
)
def test_no_rule(ops: str, text: str) -> None:
    """An operation without a rule, or with a result that is undefined for some operands, is opaque and names them."""
    assert indices_of(kernel(f"{ops}\nreturn %r : i32")) == [text]


def values_of(ops: str, operands: str) -> dict[tuple[int, int], int] | None:
    """What the i32 %r is for i in 0..7 and j in 0..3; None where that isn't known."""
    k = kernel(f"{operands}\n{ops}\nreturn %r : i32")
    blocks = index_map(k, k.windows[0])
    assert blocks is not None
    i, j = grid_indices(k)
    if {leaf.text for leaf in sym.leaves_of(blocks[0])} - {"i", "j"}:
        return None
    return {(x, y): sym.value_of(blocks[0], {i: x, j: y}) for x in range(8) for y in range(4)}


# on truth values that are their only bit, so that true is -1 where a sign is read
ON_BITS: dict[str, Callable[[int, int], int]] = {
    "addi %p, %q": lambda p, q: (p + q) % 2,
    "subi %p, %q": lambda p, q: (p - q) % 2,
    "muli %p, %q": lambda p, q: p * q,
    "andi %p, %q": lambda p, q: p & q,
    "ori %p, %q": lambda p, q: p | q,
    "xori %p, %q": lambda p, q: p ^ q,
    "minsi %p, %q": lambda p, q: -min(-p, -q),
    "maxsi %p, %q": lambda p, q: -max(-p, -q),
    "cmpi eq, %p, %q": lambda p, q: int(p == q),
    "cmpi slt, %p, %q": lambda p, q: int(-p < -q),
    "cmpi sge, %p, %q": lambda p, q: int(-p >= -q),
    "cmpi ult, %p, %q": lambda p, q: int(p < q),
    "shli %p, %q": lambda p, q: 0 if q else p,
    "shrsi %p, %q": lambda p, q: p,
    "shrui %p, %q": lambda p, q: 0 if q else p,
    "select %p, %q, %p": lambda p, q: q if p else p,
}
BITS = (
    "%p = arith.trunci %i : i32 to i1\n%q = arith.trunci %j : i32 to i1",
    "%p = arith.cmpi sgt, %i, %c1 : i32\n%q = arith.cmpi slt, %i, %c1 : i32",
    "%x = arith.subi %i, %c4 : i32\n%p = arith.cmpi sgt, %x, %c0 : i32\n%q = arith.cmpi slt, %x, %c0 : i32",
    "%p = arith.trunci %i : i32 to i1\n%q = arith.constant true",
)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("op", ON_BITS)
def test_arithmetic_on_truth_values(op: str, bits: str) -> None:
    """What is computed of two bits is what the machine computes, or unknown, never the integers' result."""
    widen = {"extui": 1, "extsi": -1}
    sides = {name: values_of(f"%r = arith.extui %{name} : i1 to i32", bits) for name in "pq"}
    assert sides["p"] is not None
    assert sides["q"] is not None
    for extend, sign in widen.items():
        found = values_of(f"%b = arith.{op} : i1\n%r = arith.{extend} %b : i1 to i32", bits)
        expected = {at: sign * ON_BITS[op](p, sides["q"][at]) for at, p in sides["p"].items()}
        assert found in (None, expected)


def test_index_of_a_truth_value_is_negative() -> None:
    """`index_cast` extends the sign, which is an i1's only bit, and cuts what is wider."""
    bit = "%b = arith.trunci %i : i32 to i1\n"
    back = "%r = arith.index_cast %x : index to i32"
    found = values_of(bit + "%x = arith.index_cast %b : i1 to index\n" + back, "")
    assert found == {(i, j): -(i % 2) for i in range(8) for j in range(4)}
    wide = "%f = arith.constant 4294967295 : i64\n%w = arith.extsi %i : i32 to i64\n%s = arith.addi %w, %f : i64\n"
    found = values_of(wide + "%x = arith.index_cast %s : i64 to index\n" + back, "")
    assert found == {(i, j): i - 1 for i in range(8) for j in range(4)}


@pytest.mark.parametrize("mask", [0, 1, 2, 3, 5, 6, 7, 8, 127, 0x55, -1, -2, -4, -5, -8, -128, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize(("op", "meaning"), [("andi", operator.and_), ("ori", operator.or_), ("xori", operator.xor)])
def test_bits_of_a_constant(op: str, meaning: Callable[[int, int], int], mask: int) -> None:
    """Bits set, cleared and flipped are the machine's, of negative numbers too."""
    given = f"%m = arith.constant {mask} : i32\n%s = arith.subi %i, %c4 : i32"
    expected = {(i, j): meaning(i - 4, mask) for i in range(8) for j in range(4)}
    unknown = mask == 0x55
    for operands in ("%s, %m", "%m, %s"):
        assert values_of(f"%r = arith.{op} {operands} : i32", given) == (None if unknown else expected)


def test_division_by_a_negative_is_rounded_as_the_machine_does() -> None:
    """Where the dividend may be negative, `divsi` is not `//`."""
    assert indices_of(kernel("%s = arith.subi %i, %c4 : i32\n%r = arith.divsi %s, %c4 : i32\nreturn %r : i32")) == [
        "div(i - 4, 4)"
    ]


def test_unsigned_reading_of_a_negative() -> None:
    """An unsigned operation on what may be negative says so."""
    k = kernel("%s = arith.subi %i, %c4 : i32\n%r = arith.shrui %s, %c1 : i32\nreturn %r : i32")
    assert indices_of(k) == ["ui32(i - 4) // 2"]


def test_different_attributes_are_different_functions() -> None:
    """Two opaque results are equal only where the operation, its attributes and its operands are."""
    body = """%f = arith.sitofp %i : i32 to f32
        %one = arith.constant 1.0 : f32
        %two = arith.constant 2.0 : f32
        %x = arith.mulf %f, %one : f32
        %y = arith.mulf %f, %two : f32
        %z = arith.mulf %f, %two : f32
        %a = arith.fptosi %x : f32 to i32
        %b = arith.fptosi %y : f32 to i32
        %c = arith.fptosi %z : f32 to i32
        return %a, %b, %c : i32, i32, i32"""
    first, second, third = indices_of(kernel(body, results="i32, i32, i32"))
    assert first != second == third


def test_different_types_are_different_functions() -> None:
    """Rounding to bf16 is another function than rounding to f32: their difference is not zero."""
    ops = "%a = arith.sitofp %i : i32 to f32\n%b = arith.fptosi %a : f32 to i32\n"
    ops += "%c = arith.sitofp %i : i32 to bf16\n%d = arith.fptosi %c : bf16 to i32\n%r = arith.subi %b, %d : i32"
    (index,) = indices_of(kernel(f"{ops}\nreturn %r : i32"))
    assert index != "0"
    assert "bf16" in index


def test_expression_too_large_is_a_function_of_everything() -> None:
    """A value that doubles at every step stays small."""
    steps = ["%x0 = arith.muli %i, %j : i32"]
    steps += [f"%x{n + 1} = arith.muli %x{n}, %x{n} : i32" for n in range(40)]
    blocks = index_map(k := kernel("\n".join([*steps, "return %x40 : i32"])), k.windows[0])
    assert blocks is not None
    assert blocks[0].size <= 200
    assert {leaf.text for leaf in sym.leaves_of(blocks[0])} >= {"i", "j"}


def test_several_blocks_are_a_function_of_everything() -> None:
    """What a map of several blocks gives may depend on the tables, too."""
    assert indices_of(kernel("cf.br ^next\n^next:\nreturn %i : i32")) == ["func@map.1[i, j, table]"]


def test_narrow_table() -> None:
    """An i8 table is read with its sign, and the sign goes where it is taken off."""
    table = "memref<8xi8, #tpu.memory_space<smem>>"
    load = f"%x = arith.index_cast %j : i32 to index\n%v = memref.load %t[%x] : {table}\n"
    assert indices_of(kernel(load + "%r = arith.extsi %v : i8 to i32\nreturn %r : i32", table=table)) == ["table[j]"]
    assert indices_of(kernel(load + "%r = arith.extui %v : i8 to i32\nreturn %r : i32", table=table)) == [
        "ui8(table[j])"
    ]


def test_names_do_not_clash() -> None:
    """A grid index leaves its letter to a prefetch operand of that name."""
    k = kernel(
        f"%x = arith.index_cast %j : i32 to index\n%v = memref.load %t[%x] : {TABLE}\nreturn %v : i32", named="i"
    )
    assert [str(index) for index in grid_indices(k)] == ["j", "k"]
    assert indices_of(k) == ["i[k]"]


def test_unnamed_prefetch_operand() -> None:
    """Without a name in the dump, a prefetch operand is numbered."""
    k = kernel("return %i : i32")
    k.prefetch[0].set_location(ir.Location.unknown())
    assert prefetch_names(k) == ("prefetch0",)


def test_dynamic_bound() -> None:
    """The number of steps of a dynamic dimension has a name of its own."""
    bounds = "-9223372036854775808, 4"
    k = kernel("%n = tpu.iteration_bound 0 : i32\n%r = arith.subi %n, %i : i32\nreturn %r : i32", bounds=bounds)
    assert indices_of(k) == ["num_programs(0) - i"]


def test_exact_indices() -> None:
    """An exact index of a dimension with one step is 0; the others read as written."""
    k = kernel("return %i, %j : i32, i32", bounds="1, 4", results="i32, i32")
    assert indices_of(k) == ["0", "j"]
    blocks = index_map(k, k.windows[0], grid_indices(k, exact=False))
    assert blocks is not None
    assert [str(block) for block in blocks] == ["i", "j"]


@pytest.mark.parametrize(
    ("body", "bounds", "moving"),
    [
        ("return %c0 : i32", "8, 4", False),
        ("return %i : i32", "8, 4", True),
        ("return %i : i32", "1, 4", False),
        ("%r = arith.muli %i, %c0 : i32\nreturn %r : i32", "8, 4", False),
        # always 0, but libtpu doesn't fold it
        ("%e = arith.constant 8 : i32\n%r = arith.divsi %i, %e : i32\nreturn %r : i32", "8, 4", True),
        (
            f"%x = arith.index_cast %c0 : i32 to index\n%v = memref.load %t[%x] : {TABLE}\nreturn %v : i32",
            "8, 4",
            False,
        ),
        (f"%x = arith.index_cast %j : i32 to index\n%v = memref.load %t[%x] : {TABLE}\nreturn %v : i32", "8, 4", True),
    ],
)
def test_moves(body: str, bounds: str, moving: bool) -> None:
    """A window moves where its map mentions a dimension of several steps; libtpu then gives it two buffers."""
    k = kernel(body, bounds=bounds)
    assert moves(k, k.windows[0]) is moving


def test_affine_map() -> None:
    """An index map may be an attribute."""
    k = kernel("return %i : i32")
    attribute = ir.Attribute.parse("affine_map<(d0, d1) -> (0, d0 * 4 + d1 mod 3, d1 floordiv 2)>")
    k.body.attributes["window_params"] = ir.ArrayAttr.get([ir.DictAttr.get({"transform_indices": attribute})])
    assert indices_of(k) == ["0", "4*i + j % 3", "j // 2"]


def test_no_index_map() -> None:
    """A window that is handed over whole has none."""
    k = kernel("return %i : i32")
    k.body.attributes["window_params"] = ir.ArrayAttr.get([ir.DictAttr.get({})])
    assert index_map(k, k.windows[0]) is None


def test_an_argument_without_an_operand() -> None:
    """What an index map takes beyond what the kernel has may be anything at each step."""
    k = kernel("return %i : i32")
    body = k.functions["map"].regions[0].blocks[0]
    argument = body.add_argument(ir.IntegerType.get_signless(32, k.module.context), k.body.location)
    body.operations[-1].operation.operands[0] = argument
    assert indices_of(k) == ["%arg3[i, j, table]"]


def test_two_steps_of_one_map() -> None:
    """A map that was read for some indices says the same of others as one that is read for them."""
    body = "%r = arith.muli %i, %c4 : i32\nreturn %r, %j, %c1 : i32, i32, i32"
    k, fresh = (kernel(body, results="i32, i32, i32") for _ in range(2))
    exact, whole = (grid_indices(k, exact) for exact in (True, False))
    assert index_map(k, k.windows[0], exact) != index_map(k, k.windows[0], whole)
    assert index_map(k, k.windows[0], whole) == index_map(fresh, fresh.windows[0], whole)


def test_missing_index_map() -> None:
    """A kernel that names an index map it doesn't have is refused."""
    k = kernel("return %i : i32")
    k.functions["map"].attributes["sym_name"] = ir.StringAttr.get("other")
    k = Kernel(k.module)
    with pytest.raises(ProgramError, match="index map @map is missing"):
        index_map(k, k.windows[0])


def test_index_map_without_a_body() -> None:
    """A kernel that only declares an index map is refused, at the declaration."""
    k = kernel("return %i : i32")
    declared = ir.Operation.parse("func.func private @map(i32, i32) -> i32", source_name="map.mlir").operation
    k.functions["map"] = declared
    with pytest.raises(ProgramError, match="index map @map has no body") as error:
        index_map(k, k.windows[0])
    assert error.value.op == declared


def from_jax(transform: Callable[..., tuple[Any, ...]]) -> Program:
    """A kernel that JAX lowers with this index map over a grid of 8 x 4 steps and a table of 8, in its program."""

    def body(t: Any, x: Any, o: Any) -> None:
        o[...] = x[...]

    def call(t: Any, x: Any) -> Any:
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(8, 4),
            in_specs=[pl.BlockSpec((8, 128), transform)],
            out_specs=pl.BlockSpec((8, 128), lambda i, j, t: (i, j)),
        )
        return pl.pallas_call(body, grid_spec=spec, out_shape=x)(t, x)

    device = jax._src.mesh.AbstractDevice("TPU v5", 2, "tpu")
    mesh = AbstractMesh((1,), ("d",), axis_types=(AxisType.Auto,), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        text = (
            jax.jit(call)
            .trace(jnp.zeros(8, jnp.int32), jnp.zeros((64, 512)))
            .lower(lowering_platforms=("tpu",))
            .as_text()
        )
    program = ir.Operation.parse(text, source_name="jax.mlir").operation
    unpack(program)
    return Program(program)


@pytest.mark.parametrize(
    ("transform", "texts"),
    [
        (lambda i, j, t: (i // 4, i % 4), ["i // 4", "i % 4"]),
        (lambda i, j, t: ((4 * i + j) // 3, (i + j) % 3), ["(4*i + j) // 3", "(i + j) % 3"]),
        (lambda i, j, t: ((i - 3) // 2, (i - 3) % 2), ["ceildiv(i, 2) - 2", "(i + 1) % 2"]),
        (lambda i, j, t: (t[i], t[(i + j) % 8] + 1), ["t[i]", "t[(i + j) % 8] + 1"]),
        (lambda i, j, t: (jnp.minimum(i, 5), 7 - i), ["min(5, i)", "7 - i"]),
        (lambda i, j, t: (jnp.where(i > j, j, 0), pl.cdiv(i, 2)), None),
        (lambda i, j, t: (jax.lax.cond(i < 4, lambda: j, lambda: j + 4), jnp.clip(i + j, 1, 6)), None),
        (lambda i, j, t: (jax.lax.div(i, 2), jax.lax.rem(i * 5, 4)), ["i // 2", "5*i % 4"]),
    ],
)
def test_what_jax_lowers(transform: Callable[..., tuple[Any, ...]], texts: list[str] | None) -> None:
    """The expressions have the value of the Python function at every step, and `//` and `%` read as written."""
    program = from_jax(transform)
    (k,) = program.kernels.values()
    blocks = index_map(k, k.windows[0])
    assert blocks is not None
    if texts is not None:
        assert [str(block) for block in blocks] == texts
    table = [3, 1, 4, 1, 5, 2, 6, 0]
    i, j = grid_indices(k)
    steps = list(itertools.product(range(8), range(4)))
    expected = jax.vmap(lambda step: transform(*step, jnp.array(table)))(jnp.array(steps))
    for block, values in zip(blocks, expected, strict=True):
        assert [value_at(block, {i: x, j: y}, table) for x, y in steps] == values.tolist()


def value_at(expr: sym.Expr, step: dict[sym.Expr, int], table: list[int]) -> int:
    """The value at a step, the table read innermost load first."""
    point = dict(step)
    for leaf in reversed(sym.leaves_of(expr)):
        if isinstance(leaf, sym.Load):
            point[leaf] = table[sym.value_of(leaf.index[0], point)]
    return sym.value_of(expr, point)
