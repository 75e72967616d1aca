"""Kernels on any grid, written as MLIR text: what they compute shows which steps ran, in which order, on what."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from mosaic_grid.cpu.arrays import Array

Semantics: TypeAlias = Literal["parallel", "arbitrary", "core_parallel"]
Fact: TypeAlias = Literal["unknown", "clamped", "multiple"]
Access: TypeAlias = Literal["same", "half", "reversed", "table"]

WIDTH = 4
"""Elements of a block in its last dimension; operands have one less, so that every block is cut at the edge."""


@dataclasses.dataclass(frozen=True)
class Dim:
    """A grid dimension, its bound (the most that its arrays have room for), and what is shown of a dynamic one.

    In the outer function `clamped` is a clamp to [floor, bound + 2], `multiple` a clamped number times `factor`, which
    divides the bound.
    """

    bound: int
    semantics: Semantics = "arbitrary"
    dynamic: bool = False
    fact: Fact = "unknown"
    floor: int = 0
    factor: int = 1


@dataclasses.dataclass(frozen=True)
class Term:
    """One block index of a map: a grid index as it is, halved, counted from the end, or looked up in a table."""

    axis: int
    access: Access = "same"


@dataclasses.dataclass(frozen=True)
class Sample:
    """A kernel and its launch.

    `output` are the axes in the output's index map. The output's block starts at zero in the first step of the axes
    behind the last of them, and each step makes it `3 * block + inputs + a code of the step + the steps since then`.
    `asked` are the axes whose bound the kernel asks for. With `in_place` an input with the output's map is overwritten.
    """

    grid: tuple[Dim, ...]
    output: tuple[int, ...]
    inputs: tuple[tuple[Term, ...], ...] = ()
    asked: tuple[int, ...] = ()
    in_place: bool = False

    @property
    def maps(self) -> list[tuple[Term, ...]]:
        """The index maps of the inputs, then the output's."""
        output = tuple(Term(axis) for axis in self.output)
        return [*([output] if self.in_place else []), *self.inputs, output]

    @property
    def revisits(self) -> tuple[int, ...]:
        """The axes over which the output's block stays."""
        return tuple(range(max(self.output, default=-1) + 1, len(self.grid)))

    @property
    def tables(self) -> tuple[int, ...]:
        """The axes whose index is looked up, each in a prefetch operand of its own."""
        return tuple(sorted({term.axis for terms in self.maps for term in terms if term.access == "table"}))

    def operand(self, terms: Sequence[Term]) -> tuple[int, ...]:
        """The shape of the operand with this index map."""
        return (*(max(1, self.grid[term.axis].bound) for term in terms), WIDTH - 1)

    def text(self) -> str:
        """The unpacked program."""
        return "\n".join(["module {", *_outer(self), *_kernel(self), "}"])

    def arguments(self, bounds: Sequence[int] = (), seed: int = 0) -> list[Array]:
        """Inputs for the outer function: a scalar for each dynamic dimension, tables, inputs.

        `bounds` are those of the dynamic dimensions, in order, where they are not as large as they can be.
        """
        dice = np.random.default_rng(seed)
        dynamic = [dim for dim in self.grid if dim.dynamic]
        pairs = zip(dynamic, bounds or [dim.bound for dim in dynamic], strict=True)
        scalars = [
            np.asarray(bound // dim.factor if dim.fact == "multiple" else bound, np.int32) for dim, bound in pairs
        ]
        tables = [dice.permutation(max(1, self.grid[axis].bound)).astype(np.int32) for axis in self.tables]
        shapes = [self.operand(terms) for terms in self.maps[:-1]]
        return [*scalars, *tables, *(dice.integers(-100, 100, shape, np.int32) for shape in shapes)]


def _outer(sample: Sample) -> list[str]:
    dynamic = [axis for axis, dim in enumerate(sample.grid) if dim.dynamic]
    scalars = {f"%n{axis}": "tensor<i32>" for axis in dynamic}
    tables = {f"%t{axis}": f"tensor<{max(1, sample.grid[axis].bound)}xi32>" for axis in sample.tables}
    inputs = {f"%x{i}": _tensor(sample.operand(terms)) for i, terms in enumerate(sample.maps[:-1])}
    arguments = scalars | tables | inputs
    result = _tensor(sample.operand(sample.maps[-1]))
    operands = [*(f"%b{axis}" for axis in dynamic), *tables, *inputs]
    layouts = [_layout(kind) for kind in arguments.values()]
    alias = "output_tuple_indices = [], operand_index = {}, operand_tuple_indices = []"
    first_input = len(scalars) + len(tables)
    aliases = f"#stablehlo.output_operand_alias<{alias.format(first_input)}>" if sample.in_place else ""
    return [
        f"func.func public @main({', '.join(f'{name}: {kind}' for name, kind in arguments.items())}) -> {result} {{",
        *(line for axis in dynamic for line in _bound(axis, sample.grid[axis])),
        f"%r = stablehlo.custom_call @tpu_custom_call({', '.join(operands)}) {{mosaic.kernel = @kernel,",
        r'backend_config = "{\22custom_call_config\22: {\22body\22: \22\22}}",',
        f"output_operand_aliases = [{aliases}], operand_layouts = [{', '.join(layouts)}],",
        f"result_layouts = [{_layout(result)}]}} : ({', '.join(arguments.values())}) -> {result}",
        f"return %r : {result}",
        "}",
    ]


def _bound(axis: int, dim: Dim) -> list[str]:
    """Computes `%b` from `%n`; an unknown one is passed through a reshape, which says nothing."""
    if dim.fact == "unknown":
        return [f"%b{axis} = stablehlo.reshape %n{axis} : (tensor<i32>) -> tensor<i32>"]
    low, high = (dim.floor, dim.bound + 2) if dim.fact == "clamped" else (0, max(0, dim.bound) + 2)
    clamped = f"%b{axis}" if dim.fact == "clamped" else f"%m{axis}"
    lines = [
        f"%lo{axis} = stablehlo.constant dense<{low}> : tensor<i32>",
        f"%hi{axis} = stablehlo.constant dense<{high}> : tensor<i32>",
        f"{clamped} = stablehlo.clamp %lo{axis}, %n{axis}, %hi{axis} : tensor<i32>",
    ]
    if dim.fact == "multiple":
        lines.append(f"%f{axis} = stablehlo.constant dense<{dim.factor}> : tensor<i32>")
        lines.append(f"%b{axis} = stablehlo.multiply %m{axis}, %f{axis} : tensor<i32>")
    return lines


def _kernel(sample: Sample) -> list[str]:
    bounds = ", ".join(str(-(2**63) if dim.dynamic else dim.bound) for dim in sample.grid)
    semantics = ", ".join(f"#tpu.dimension_semantics<{dim.semantics}>" for dim in sample.grid)
    windows = ", ".join(
        f"{{transform_indices = @map{i}, window_bounds = array<i64: {', '.join(map(str, _block(terms)))}>}}"
        for i, terms in enumerate(sample.maps)
    )
    attributes = [
        f"dimension_semantics = [{semantics}], iteration_bounds = array<i64: {bounds}>",
        f"scalar_prefetch = {len(sample.tables)} : i64, scratch_operands = 1 : i64, tpu.core_type = #tpu.core_type<tc>",
        f"window_params = [{windows}]",
    ]
    blocks = [f"%w{i}: {_memref(terms)}" for i, terms in enumerate(sample.maps)]
    arguments = [*_indices(sample), *blocks, "%s: memref<1xi32, #tpu.memory_space<smem>>"]
    return [
        "module @kernel attributes {stable_mosaic.version = 15 : i64} {",
        f"func.func @kernel({', '.join(arguments)}) attributes {{{', '.join(attributes)}}} {{",
        *_body(sample),
        "return",
        "}",
        *(line for number, terms in enumerate(sample.maps) for line in _map(sample, number, terms)),
        "}",
    ]


def _body(sample: Sample) -> list[str]:
    vector = f"vector<{WIDTH}xi32>"
    lines = [
        "%c0 = arith.constant 0 : index",
        "%zero = arith.constant 0 : i32",
        "%one = arith.constant 1 : i32",
        "%first0 = arith.constant true",
        f"%zeros = arith.constant dense<0> : {vector}",
        f"%three = arith.constant dense<3> : {vector}",
    ]
    first = "%first0"
    for axis in sample.revisits:
        lines += [f"%at{axis} = arith.cmpi eq, %i{axis}, %zero : i32"]
        lines += [f"%and{axis} = arith.andi {first}, %at{axis} : i1"]
        first = f"%and{axis}"
    output = len(sample.maps) - 1
    scratch = "%s[%c0] : memref<1xi32, #tpu.memory_space<smem>>"
    lines += [f"scf.if {first} {{", *_write(sample, output, "%zeros", "z"), f"memref.store %zero, {scratch}", "}"]
    lines += [
        f"%old = memref.load {scratch}",
        "%count = arith.addi %old, %one : i32",
        f"memref.store %count, {scratch}",
    ]
    code = "%count"
    for axis in range(len(sample.grid)):
        lines += [f"%k{axis} = arith.constant {10 + 7**axis} : i32", f"%p{axis} = arith.muli %i{axis}, %k{axis} : i32"]
        lines += [f"%code{axis} = arith.addi {code}, %p{axis} : i32"]
        code = f"%code{axis}"
    for axis in sample.asked:
        lines += [f"%q{axis} = tpu.iteration_bound {axis} : i32", f"%r{axis} = arith.shli %q{axis}, %i{axis} : i32"]
        lines += [f"%sum{axis} = arith.addi {code}, %r{axis} : i32"]
        code = f"%sum{axis}"
    lines += [f"%v = vector.broadcast {code} : i32 to {vector}", *_read(sample, output, "o")]
    lines += [f"%tripled = arith.muli %flat_o, %three : {vector}", f"%total = arith.addi %tripled, %v : {vector}"]
    total = "%total"
    for i in range(output):
        lines += [*_read(sample, i, str(i)), f"%total{i} = arith.addi {total}, %flat_{i} : {vector}"]
        total = f"%total{i}"
    return [*lines, *_write(sample, output, total, "t")]


def _read(sample: Sample, window: int, suffix: str) -> list[str]:
    """Loads a window's block as `%flat_suffix`."""
    terms = sample.maps[window]
    kind, at = _vector(terms), ", ".join(["%c0"] * (len(terms) + 1))
    return [
        f"%block_{suffix} = vector.load %w{window}[{at}] : {_memref(terms)}, {kind}",
        f"%flat_{suffix} = vector.shape_cast %block_{suffix} : {kind} to vector<{WIDTH}xi32>",
    ]


def _write(sample: Sample, window: int, value: str, suffix: str) -> list[str]:
    terms = sample.maps[window]
    kind, at = _vector(terms), ", ".join(["%c0"] * (len(terms) + 1))
    return [
        f"%shaped_{suffix} = vector.shape_cast {value} : vector<{WIDTH}xi32> to {kind}",
        f"tpu.vector_store %w{window}[{at}], %shaped_{suffix} {{strides = array<i32>}} : {_memref(terms)}, {kind},",
    ]


def _map(sample: Sample, number: int, terms: Sequence[Term]) -> list[str]:
    results = ", ".join(["i32"] * (len(terms) + 1))
    lines = [
        f"func.func @map{number}({', '.join(_indices(sample))}) -> ({results}) {{",
        "%zero = arith.constant 0 : i32",
    ]
    lines += ["%one = arith.constant 1 : i32"]
    for i, term in enumerate(terms):
        lines += _index(sample, i, term)
    values = ", ".join([*(f"%v{i}" for i in range(len(terms))), "%zero"])
    return [*lines, f"return {values} : {results}", "}"]


def _index(sample: Sample, number: int, term: Term) -> list[str]:
    """Computes the block index `%v`."""
    axis, value = term.axis, f"%v{number}"
    match term.access:
        case "same":
            return [f"{value} = arith.addi %i{axis}, %zero : i32"]
        case "half":
            return [f"{value} = arith.shrsi %i{axis}, %one : i32"]
        case "reversed":
            bound, last = f"%b{number}", f"%l{number}"
            lines = [f"{bound} = tpu.iteration_bound {axis} : i32", f"{last} = arith.subi {bound}, %one : i32"]
            return [*lines, f"{value} = arith.subi {last}, %i{axis} : i32"]
        case "table":
            lines = [f"%x{number} = arith.index_cast %i{axis} : i32 to index"]
            return [*lines, f"{value} = memref.load %t{axis}[%x{number}] : {_table(sample, axis)}"]


def _indices(sample: Sample) -> list[str]:
    tables = [f"%t{axis}: {_table(sample, axis)}" for axis in sample.tables]
    return [*(f"%i{axis}: i32" for axis in range(len(sample.grid))), *tables]


def _table(sample: Sample, axis: int) -> str:
    return f"memref<{max(1, sample.grid[axis].bound)}xi32, #tpu.memory_space<smem>>"


def _block(terms: Sequence[Term]) -> tuple[int, ...]:
    return (*(1 for _ in terms), WIDTH)


def _memref(terms: Sequence[Term]) -> str:
    return f"memref<{'x'.join(map(str, _block(terms)))}xi32, #tpu.memory_space<vmem>>"


def _vector(terms: Sequence[Term]) -> str:
    return f"vector<{'x'.join(map(str, _block(terms)))}xi32>"


def _tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xi32>"


def _layout(kind: str) -> str:
    rank = kind.count("x")
    return (
        f"dense<[{', '.join(map(str, reversed(range(rank))))}]> : tensor<{rank}xindex>"
        if rank
        else "dense<> : tensor<0xindex>"
    )
