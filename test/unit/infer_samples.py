"""Small kernels whose steps depend on one another in every way that `infer-parallel` looks at, or in none.

A kernel is a list of actions on two outputs, a scratch of two rows and a counter in SMEM, each under a condition. Index
maps are formulas in Python, which give the MLIR text and the blocks of a step alike.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from hypothesis import strategies as st

from mosaic_grid.cpu.arrays import Array

WIDTH = 4
VECTOR = f"vector<{WIDTH}xi32>"
SCRATCH = f"memref<2x{WIDTH}xi32, #tpu.memory_space<vmem>>"
COUNTER = "memref<1xi32, #tpu.memory_space<smem>>"

Form: TypeAlias = Literal["zero", "same", "half", "parity", "reversed", "sum", "table"]
Act: TypeAlias = Literal["set", "add", "store", "accumulate", "count", "show count"]
Step: TypeAlias = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Index:
    """A block index: a formula over one grid index, or the sum of two."""

    form: Form
    axis: int = 0
    other: int = 0

    def at(self, step: Step, bounds: Step) -> int:
        """Its value at a step; a table is unknown and may be anything, here 0."""
        i = step[self.axis]
        return {
            "zero": 0,
            "same": i,
            "half": i // 2,
            "parity": i % 2,
            "reversed": bounds[self.axis] - 1 - i,
            "sum": i + step[self.other],
            "table": 0,
        }[self.form]


@dataclasses.dataclass(frozen=True)
class Action:
    """What a step does where all of the grid indices `first` are 0; `row` is scratch's: 0, 1 or a grid index mod 2.

    `set` and `add` change the scratch, `store` and `accumulate` output `output` (from scratch and the input); `count`
    adds to the counter, and starts it anew with `fresh`; `show count` puts it into the scratch.
    """

    act: Act
    first: tuple[int, ...] = ()
    row: int | Index = 0
    output: int = 0
    fresh: bool = False


@dataclasses.dataclass(frozen=True)
class Sample:
    """A kernel and its launch; with `in_place` output 0 is written over the input, which has a map of its own."""

    bounds: Step
    outputs: tuple[tuple[Index, ...], ...]
    given: tuple[Index, ...]
    actions: tuple[Action, ...]
    in_place: bool = False

    @property
    def steps(self) -> list[Step]:
        """The steps in order."""
        return list(itertools.product(*map(range, self.bounds)))

    def shape(self, number: int) -> tuple[int, ...]:
        """The shape of the array behind a window: 0 is the input, 1 and on are outputs."""
        maps = [self.given, *self.outputs]
        alike = [0, 1] if self.in_place and number < 2 else [number]
        sizes = [[1 + max(index.at(step, self.bounds) for step in self.steps) for index in maps[k]] for k in alike]
        return (*(max(column) for column in zip(*sizes, strict=True)), WIDTH)

    def arguments(self, seed: int) -> list[Array]:
        """A table of zeros, and a random input."""
        table = np.zeros(max(self.bounds), np.int32)
        return [table, np.random.default_rng(seed).integers(-99, 99, self.shape(0), np.int32)]

    def text(self, semantics: Sequence[str], dynamic: Sequence[int] = ()) -> str:
        """The unpacked program; the bounds of `dynamic` dimensions are arguments."""
        return "\n".join(["module {", *_outer(self, dynamic), *_kernel(self, semantics, dynamic), "}"])

    def clashing(self, axis: int) -> bool:
        """Whether two steps that differ in a dimension have the same block of an output."""
        return any(
            one[axis] != other[axis] and all(i.at(one, self.bounds) == i.at(other, self.bounds) for i in indices)
            for indices in self.outputs
            for one, other in itertools.combinations(self.steps, 2)
        )


def _outer(sample: Sample, dynamic: Sequence[int]) -> list[str]:
    table = f"tensor<{max(sample.bounds)}xi32>"
    kinds = [_tensor(sample.shape(k)) for k in range(len(sample.outputs) + 1)]
    scalars = {f"%n{axis}": "tensor<i32>" for axis in dynamic}
    arguments = scalars | {"%t": table, "%x": kinds[0]}
    alias = f"output_tuple_indices = [{0 if len(kinds) > 2 else ''}], operand_index = {len(scalars) + 1}"
    aliases = f"#stablehlo.output_operand_alias<{alias}, operand_tuple_indices = []>" if sample.in_place else ""
    results = kinds[1:]
    layouts = ", ".join(_layout(kind) for kind in arguments.values())
    names = [f"%r#{k}" for k in range(len(results))] if len(results) > 1 else ["%r"]
    return [
        f"func.func public @main({', '.join(f'{k}: {v}' for k, v in arguments.items())}) -> ({', '.join(results)}) {{",
        f"%r{':2' if len(results) > 1 else ''} = stablehlo.custom_call @tpu_custom_call({', '.join(arguments)})",
        r'{mosaic.kernel = @kernel, backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}",',
        f"output_operand_aliases = [{aliases}], operand_layouts = [{layouts}],",
        f"result_layouts = [{', '.join(map(_layout, results))}]}}",
        f": ({', '.join(arguments.values())}) -> ({', '.join(results)})",
        f"return {', '.join(names)} : {', '.join(results)}",
        "}",
    ]


def _kernel(sample: Sample, semantics: Sequence[str], dynamic: Sequence[int]) -> list[str]:
    bounds = ", ".join(str(-(2**63) if axis in dynamic else bound) for axis, bound in enumerate(sample.bounds))
    words = ", ".join(f"#tpu.dimension_semantics<{word}>" for word in semantics)
    maps = [sample.given, *sample.outputs]
    sizes = [", ".join(["1"] * len(indices) + [str(WIDTH)]) for indices in maps]
    windows = ", ".join(
        f"{{transform_indices = @map{k}, window_bounds = array<i64: {size}>}}" for k, size in enumerate(sizes)
    )
    table = f"memref<{max(sample.bounds)}xi32, #tpu.memory_space<smem>>"
    indices = ", ".join([*(f"%i{axis}: i32" for axis in range(len(sample.bounds))), f"%t: {table}"])
    blocks = ", ".join(f"%w{k}: {_block(indices)}" for k, indices in enumerate(maps))
    return [
        "module @kernel attributes {stable_mosaic.version = 15 : i64} {",
        f"func.func @kernel({indices}, {blocks}, %s: {SCRATCH}, %c: {COUNTER}) attributes {{",
        f"dimension_semantics = [{words}], iteration_bounds = array<i64: {bounds}>, scalar_prefetch = 1 : i64,",
        f"scratch_operands = 2 : i64, tpu.core_type = #tpu.core_type<tc>, window_params = [{windows}]}} {{",
        "%c0 = arith.constant 0 : index",
        "%zero = arith.constant 0 : i32",
        "%two = arith.constant 2 : i32",
        "%three = arith.constant 3 : i32",
        *_code(sample),
        *(line for k, action in enumerate(sample.actions) for line in _action(sample, k, action)),
        "return",
        "}",
        *(line for k, each in enumerate(maps) for line in _map(sample, k, each, indices, table)),
        "}",
    ]


def _code(sample: Sample) -> list[str]:
    """`%code` tells the steps apart, `%x` is the input's block."""
    lines = ["%sum0 = arith.constant 5 : i32"]
    for axis in range(len(sample.bounds)):
        lines += [f"%k{axis} = arith.constant {10 + 7**axis} : i32", f"%p{axis} = arith.muli %i{axis}, %k{axis} : i32"]
        lines += [f"%sum{axis + 1} = arith.addi %sum{axis}, %p{axis} : i32"]
    lines += [f"%code = vector.broadcast %sum{len(sample.bounds)} : i32 to {VECTOR}"]
    return [*lines, *_load(0, sample.given, "%x")]


def _action(sample: Sample, number: int, action: Action) -> list[str]:
    """One action; its values are named after its number."""
    name = f"%a{number}"
    lines = [f"{name}at0 = arith.constant true"]
    for k, axis in enumerate(action.first):
        lines += [f"{name}is{k} = arith.cmpi eq, %i{axis}, %zero : i32"]
        lines += [f"{name}at{k + 1} = arith.andi {name}at{k}, {name}is{k} : i1"]
    row, before = _row(name, action)
    body = before
    match action.act:
        case "set":
            body += _store_row(name, row, "%code")
        case "add":
            body += [*_load_row(name, row), f"{name}v = arith.addi {name}r, %x : {VECTOR}"]
            body += [f"{name}u = arith.addi {name}v, %code : {VECTOR}", *_store_row(name, row, f"{name}u")]
        case "store" | "accumulate":
            indices = sample.outputs[action.output % len(sample.outputs)]
            window = 1 + action.output % len(sample.outputs)
            body += [*_load_row(name, row), f"{name}t = vector.broadcast %three : i32 to {VECTOR}"]
            body += [
                f"{name}m = arith.muli {name}r, {name}t : {VECTOR}",
                f"{name}p = arith.addi {name}m, %x : {VECTOR}",
            ]
            body += [f"{name}v = arith.addi {name}p, %code : {VECTOR}"]
            if action.act == "accumulate":
                body += [*_load(window, indices, f"{name}o"), f"{name}w = arith.addi {name}v, {name}o : {VECTOR}"]
            value = f"{name}w" if action.act == "accumulate" else f"{name}v"
            body += _store(window, indices, value, name)
        case "count":
            old = "%zero" if action.fresh else f"{name}n"
            body += [f"{name}n = memref.load %c[%c0] : {COUNTER}", f"{name}d = arith.addi {old}, %sum1 : i32"]
            body += [f"memref.store {name}d, %c[%c0] : {COUNTER}"]
        case "show count":
            body += [
                f"{name}n = memref.load %c[%c0] : {COUNTER}",
                f"{name}v = vector.broadcast {name}n : i32 to {VECTOR}",
            ]
            body += _store_row(name, row, f"{name}v")
    return [*lines, f"scf.if {name}at{len(action.first)} {{", *body, "}"]


def _row(name: str, action: Action) -> tuple[str, list[str]]:
    """The row of scratch, as an index, and the lines that compute it."""
    if isinstance(action.row, int):
        return f"{name}row", [f"{name}row = arith.constant {action.row} : index"]
    lines = [f"{name}q = arith.remsi %i{action.row.axis}, %two : i32"]
    return f"{name}row", [*lines, f"{name}row = arith.index_cast {name}q : i32 to index"]


def _load_row(name: str, row: str) -> list[str]:
    kind = f"vector<1x{WIDTH}xi32>"
    loaded = f"{name}l = vector.load %s[{row}, %c0] : {SCRATCH}, {kind}"
    return [loaded, f"{name}r = vector.shape_cast {name}l : {kind} to {VECTOR}"]


def _store_row(name: str, row: str, value: str) -> list[str]:
    kind = f"vector<1x{WIDTH}xi32>"
    shaped = f"{name}z = vector.shape_cast {value} : {VECTOR} to {kind}"
    return [shaped, f"tpu.vector_store %s[{row}, %c0], {name}z {{strides = array<i32>}} : {SCRATCH}, {kind},"]


def _load(window: int, indices: Sequence[Index], name: str) -> list[str]:
    kind, at = _block_vector(indices), ", ".join(["%c0"] * (len(indices) + 1))
    return [
        f"{name}_b = vector.load %w{window}[{at}] : {_block(indices)}, {kind}",
        f"{name} = vector.shape_cast {name}_b : {kind} to {VECTOR}",
    ]


def _store(window: int, indices: Sequence[Index], value: str, name: str) -> list[str]:
    kind, at = _block_vector(indices), ", ".join(["%c0"] * (len(indices) + 1))
    return [
        f"{name}s = vector.shape_cast {value} : {VECTOR} to {kind}",
        f"tpu.vector_store %w{window}[{at}], {name}s {{strides = array<i32>}} : {_block(indices)}, {kind},",
    ]


def _map(sample: Sample, number: int, indices: Sequence[Index], arguments: str, table: str) -> list[str]:
    lines = [f"func.func @map{number}({arguments}) -> ({', '.join(['i32'] * (len(indices) + 1))}) {{"]
    lines += ["%zero = arith.constant 0 : i32", "%one = arith.constant 1 : i32"]
    for k, index in enumerate(indices):
        lines += _index(f"%v{k}", index)
    values = ", ".join([*(f"%v{k}" for k in range(len(indices))), "%zero"])
    text = [*lines, f"return {values} : {', '.join(['i32'] * (len(indices) + 1))}", "}"]
    return [line.replace("TABLE", table) for line in text]


def _index(value: str, index: Index) -> list[str]:
    i = f"%i{index.axis}"
    match index.form:
        case "zero":
            return [f"{value} = arith.constant 0 : i32"]
        case "same":
            return [f"{value} = arith.addi {i}, %zero : i32"]
        case "half":
            return [f"{value} = arith.shrsi {i}, %one : i32"]
        case "parity":
            return [f"{value} = arith.andi {i}, %one : i32"]
        case "reversed":
            lines = [
                f"{value}n = tpu.iteration_bound {index.axis} : i32",
                f"{value}m = arith.subi {value}n, %one : i32",
            ]
            return [*lines, f"{value} = arith.subi {value}m, {i} : i32"]
        case "sum":
            return [f"{value} = arith.addi {i}, %i{index.other} : i32"]
        case "table":
            return [f"{value}x = arith.index_cast {i} : i32 to index", f"{value} = memref.load %t[{value}x] : TABLE"]


def _block(indices: Sequence[Index]) -> str:
    return f"memref<{'1x' * len(indices)}{WIDTH}xi32, #tpu.memory_space<vmem>>"


def _block_vector(indices: Sequence[Index]) -> str:
    return f"vector<{'1x' * len(indices)}{WIDTH}xi32>"


def _tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xi32>"


def _layout(kind: str) -> str:
    rank = kind.count("x")
    order = ", ".join(map(str, reversed(range(rank))))
    return f"dense<[{order}]> : tensor<{rank}xindex>" if rank else "dense<> : tensor<0xindex>"


@st.composite
def indices(draw: st.DrawFn, rank: int, forms: Sequence[Form], count: int | None = None) -> tuple[Index, ...]:
    """An index map of one to three components, or of `count`."""
    many = draw(st.integers(1, 3)) if count is None else count
    axes = st.integers(0, rank - 1)
    return tuple(draw(st.builds(Index, st.sampled_from(forms), axes, axes)) for _ in range(many))


@st.composite
def spread(draw: st.DrawFn, rank: int) -> tuple[Index, ...]:
    """An index map that gives most steps a block of their own."""
    axes = draw(st.permutations(range(rank)))
    kept = axes[: draw(st.integers(max(1, rank - 1), rank))]
    return tuple(Index(draw(st.sampled_from(("same", "same", "reversed", "sum"))), axis) for axis in kept)


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """A kernel that may carry anything from any step to any other."""
    rank = draw(st.integers(1, 3))
    bounds = tuple(draw(st.integers(1, 4 if rank < 3 else 3)) for _ in range(rank))
    forms: tuple[Form, ...] = ("zero", "same", "same", "half", "parity", "reversed", "sum", "table")
    outputs = tuple(draw(spread(rank) | indices(rank, forms)) for _ in range(draw(st.integers(1, 2))))
    in_place = draw(st.booleans())
    given = outputs[0] if in_place and draw(st.booleans()) else draw(indices(rank, forms, len(outputs[0])))
    return Sample(bounds, outputs, given, tuple(draw(actions(rank, len(outputs)))), in_place)


@st.composite
def actions(draw: st.DrawFn, rank: int, outputs: int) -> list[Action]:
    """First what prepares scratch, as kernels do where their last indices are 0, then anything, then every output."""
    last = st.integers(0, rank).map(lambda k: tuple(range(k, rank)))
    axes = st.lists(st.integers(0, rank - 1), max_size=rank, unique=True).map(tuple)
    rows: st.SearchStrategy[int | Index] = st.integers(0, 1)
    rows = rows | st.builds(Index, st.just("parity"), st.integers(0, rank - 1))
    begins: tuple[Act, ...] = ("set", "set", "count")
    acts: tuple[Act, ...] = ("set", "add", "add", "count", "show count", "store")
    ends: tuple[Act, ...] = ("store", "store", "accumulate")
    chosen = [
        *draw(st.lists(st.builds(Action, st.sampled_from(begins), last, rows, fresh=st.just(True)), max_size=2)),
        *draw(st.lists(st.builds(Action, st.sampled_from(acts), axes | last, rows, fresh=st.booleans()), max_size=3)),
    ]
    for output in range(outputs):
        where = draw(st.just(()) | st.just(()) | last)
        chosen.append(Action(draw(st.sampled_from(ends)), where, draw(rows), output))
    return chosen


@st.composite
def copies(draw: st.DrawFn) -> Sample:
    """A kernel whose steps only meet in the blocks of its outputs, which are affine."""
    rank = draw(st.integers(1, 3))
    bounds = tuple(draw(st.integers(1, 5 if rank < 3 else 4)) for _ in range(rank))
    forms: tuple[Form, ...] = ("zero", "same", "same", "half", "parity", "reversed", "sum")
    outputs = tuple(draw(spread(rank) | indices(rank, forms)) for _ in range(draw(st.integers(1, 2))))
    stores = [Action("set"), *(Action("store", output=k) for k in range(len(outputs)))]
    return Sample(bounds, outputs, draw(indices(rank, forms)), tuple(stores))
