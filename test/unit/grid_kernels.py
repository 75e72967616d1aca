"""Kernels with windows of every kind on any grid, written as MLIR text: what `grid_reference.py` runs by hand.

A step adds one to a counter in scratch that nobody ever sets, so that it shows how many steps its core has done. Then
it makes each output's block `3 * block + inputs + counter + a code of the step`, in those steps in which it writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, TypeAlias

ELEMENTS = 6
"""Elements of every block, so that blocks of different shapes can be added up."""

Semantics: TypeAlias = Literal["parallel", "arbitrary", "core_parallel"]
Rule: TypeAlias = Literal["constant", "index", "sum", "quotient", "rest", "back", "table"]


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension of the grid: at most `bound` steps, exactly that many where it isn't dynamic."""

    bound: int
    semantics: Semantics = "arbitrary"
    dynamic: bool = False


@dataclasses.dataclass(frozen=True)
class Term:
    """A component of an index map, made of the grid's index i along `axis`, and for a sum j along `other`.

    By `rule`: `number`; i; i + 2 * j + `number`; i / `number`; i % `number`; i counted from the end; table[i].
    """

    rule: Rule
    axis: int = 0
    other: int = 0
    number: int = 1


@dataclasses.dataclass(frozen=True)
class Window:
    """A window: its block, which dimensions are squeezed (of size 1), its index map, and the shape of its array.

    `padding` is of a window whose index counts elements: how far it may stick out, before and behind each dimension.
    """

    block: tuple[int, ...]
    terms: tuple[Term, ...]
    array: tuple[int, ...]
    squeezed: tuple[int, ...] = ()
    padding: tuple[tuple[int, int], ...] | None = None
    revisit_any: bool = False

    @property
    def buffer(self) -> tuple[int, ...]:
        """The block's shape as the kernel sees it."""
        return tuple(size for axis, size in enumerate(self.block) if axis not in self.squeezed)

    @property
    def low(self) -> tuple[int, ...]:
        """How far the window may stick out before each dimension."""
        return tuple(before for before, _ in self.padding) if self.padding else (0,) * len(self.block)


@dataclasses.dataclass(frozen=True)
class GridKernel:
    """A kernel and its launch. `tables` are the lengths of the prefetch operands, `%t0` and so on.

    `aliases` maps outputs to the inputs whose array they take over. `skipped` (a divisor and a rest): an output isn't
    written in steps whose indices add up to that rest. With `dirty` a step adds one to the blocks of its inputs before
    it uses them.
    """

    grid: tuple[Dim, ...]
    inputs: tuple[Window, ...]
    outputs: tuple[Window, ...]
    tables: tuple[int, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    skipped: tuple[int, int] | None = None
    dirty: bool = False

    @property
    def windows(self) -> tuple[Window, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    def text(self) -> str:
        """The unpacked program; `@main` takes a count for each dynamic dimension, the tables and the inputs."""
        return "\n".join(["module {", *_main(self), *_kernel(self), "}"])


def _main(kernel: GridKernel) -> list[str]:
    arguments = {f"%n{axis}": "tensor<i32>" for axis, dim in enumerate(kernel.grid) if dim.dynamic}
    arguments |= {f"%t{k}": f"tensor<{length}xi32>" for k, length in enumerate(kernel.tables)}
    first = len(arguments)
    arguments |= {f"%x{k}": _type("tensor", window.array) for k, window in enumerate(kernel.inputs)}
    results = ", ".join(_type("tensor", window.array) for window in kernel.outputs)
    names = [f"%r#{k}" for k in range(len(kernel.outputs))]
    aliases = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{output if len(kernel.outputs) > 1 else ''}], "
        f"operand_index = {first + given}, operand_tuple_indices = []>"
        for output, given in kernel.aliases
    )
    return [
        f"func.func public @main({', '.join(f'{name}: {kind}' for name, kind in arguments.items())}) -> ({results}) {{",
        f"%r:{len(kernel.outputs)} = stablehlo.custom_call @tpu_custom_call({', '.join(arguments)}) {{",
        f'mosaic.kernel = @kernel, backend_config = "{{}}", output_operand_aliases = [{aliases}]',
        f"}} : ({', '.join(arguments.values())}) -> ({results})",
        f"return {', '.join(names)} : {results}",
        "}",
    ]


def _kernel(kernel: GridKernel) -> list[str]:
    bounds = ", ".join(str(-(2**63) if dim.dynamic else dim.bound) for dim in kernel.grid)
    semantics = ", ".join(f"#tpu.dimension_semantics<{dim.semantics}>" for dim in kernel.grid)
    blocks = [f"%w{k}: {_memref(window)}" for k, window in enumerate(kernel.windows)]
    arguments = [*_indices(kernel), *blocks, "%s: memref<1xi32, #tpu.memory_space<smem>>"]
    return [
        "module @kernel attributes {stable_mosaic.version = 15 : i64} {",
        f"func.func @kernel({', '.join(arguments)}) attributes {{",
        f"dimension_semantics = [{semantics}], iteration_bounds = array<i64: {bounds}>,".replace("i64: >", "i64>"),
        f"scalar_prefetch = {len(kernel.tables)} : i64, scratch_operands = 1 : i64,",
        "tpu.core_type = #tpu.core_type<tc>,",
        f"window_params = [{', '.join(_params(k, window) for k, window in enumerate(kernel.windows))}]}} {{",
        *_body(kernel),
        "return",
        "}",
        *(line for k, window in enumerate(kernel.windows) for line in _index_map(kernel, k, window)),
        "}",
    ]


def _params(number: int, window: Window) -> str:
    fields = [f"transform_indices = @map{number}", f"window_bounds = array<i64: {', '.join(map(str, window.block))}>"]
    if window.padding is not None:
        low, high = (str([pair[side] for pair in window.padding]) for side in (0, 1))
        fields.append(f"window_kind = #tpu.element_window<{low}, {high}>")
    if window.revisit_any:
        fields.append("revisit_mode = #tpu.revisit_mode<any>")
    return f"{{{', '.join(fields)}}}"


def _body(kernel: GridKernel) -> list[str]:
    flat = f"vector<{ELEMENTS}xi32>"
    scratch = "%s[%c0] : memref<1xi32, #tpu.memory_space<smem>>"
    lines = [
        "%c0 = arith.constant 0 : index",
        "%one = arith.constant 1 : i32",
        f"%three = arith.constant dense<3> : {flat}",
        f"%ones = arith.constant dense<1> : {flat}",
        f"%before = memref.load {scratch}",
        "%count = arith.addi %before, %one : i32",
        f"memref.store %count, {scratch}",
    ]
    code, total = "%count", "%nothing"
    lines.append("%nothing = arith.constant 0 : i32")
    for axis in range(len(kernel.grid)):
        lines += [f"%k{axis} = arith.constant {10 + 7**axis} : i32", f"%p{axis} = arith.muli %i{axis}, %k{axis} : i32"]
        lines += [f"%code{axis} = arith.addi {code}, %p{axis} : i32"]
        lines += [f"%all{axis} = arith.addi {total}, %i{axis} : i32"]
        code, total = f"%code{axis}", f"%all{axis}"
    lines.append(f"%sum = vector.broadcast {code} : i32 to {flat}")
    value = "%sum"
    for k, window in enumerate(kernel.inputs):
        if kernel.dirty:
            lines += [*_load(k, window, "clean"), f"%more{k} = arith.addi %clean{k}, %ones : {flat}"]
            lines += _store(k, window, f"%more{k}")
        lines += [*_load(k, window), f"%sum{k} = arith.addi {value}, %flat{k} : {flat}"]
        value = f"%sum{k}"
    if kernel.skipped is not None:
        divisor, rest = kernel.skipped
        lines += [f"%d = arith.constant {divisor} : i32", f"%rest = arith.constant {rest} : i32"]
        lines += [f"%r = arith.remsi {total}, %d : i32", "%writes = arith.cmpi ne, %r, %rest : i32", "scf.if %writes {"]
    for k, window in enumerate(kernel.outputs, len(kernel.inputs)):
        lines += [*_load(k, window), f"%tripled{k} = arith.muli %flat{k}, %three : {flat}"]
        lines += [f"%new{k} = arith.addi %tripled{k}, {value} : {flat}"]
        lines += _store(k, window, f"%new{k}")
    return [*lines, *(["}"] if kernel.skipped is not None else [])]


def _load(number: int, window: Window, name: str = "flat") -> list[str]:
    """Loads a window's block, flat, as `%NAME` with the window's number."""
    kind, zeros = _type("vector", window.buffer), ", ".join(["%c0"] * len(window.buffer))
    return [
        f"%{name}_block{number} = vector.load %w{number}[{zeros}] : {_memref(window)}, {kind}",
        f"%{name}{number} = vector.shape_cast %{name}_block{number} : {kind} to vector<{ELEMENTS}xi32>",
    ]


def _store(number: int, window: Window, value: str) -> list[str]:
    kind, zeros = _type("vector", window.buffer), ", ".join(["%c0"] * len(window.buffer))
    shaped = f"%shaped{number}"
    return [
        f"{shaped} = vector.shape_cast {value} : vector<{ELEMENTS}xi32> to {kind}",
        f"tpu.vector_store %w{number}[{zeros}], {shaped} {{strides = array<i32>}} : {_memref(window)}, {kind},",
    ]


def _index_map(kernel: GridKernel, number: int, window: Window) -> list[str]:
    results = ", ".join(["i32"] * len(window.terms))
    lines = [f"func.func @map{number}({', '.join(_indices(kernel))}) -> ({results}) {{"]
    for k, term in enumerate(window.terms):
        lines += _component(kernel, k, term)
    return [*lines, f"return {', '.join(f'%v{k}' for k in range(len(window.terms)))} : {results}", "}"]


def _component(kernel: GridKernel, k: int, term: Term) -> list[str]:
    """Computes `%vK`; where it is an index of the grid as it is, canonicalization leaves nothing but that."""
    i, value = f"%i{term.axis}", f"%v{k}"
    number = f"%n{k} = arith.constant {term.number} : i32"
    match term.rule:
        case "constant":
            return [f"{value} = arith.constant {term.number} : i32"]
        case "index":
            return [f"%n{k} = arith.constant 0 : i32", f"{value} = arith.addi {i}, %n{k} : i32"]
        case "sum":
            lines = [number, f"%d{k} = arith.addi %i{term.other}, %i{term.other} : i32"]
            return [*lines, f"%e{k} = arith.addi {i}, %d{k} : i32", f"{value} = arith.addi %e{k}, %n{k} : i32"]
        case "quotient" | "rest":
            op = "divsi" if term.rule == "quotient" else "remsi"
            return [number, f"{value} = arith.{op} {i}, %n{k} : i32"]
        case "back":
            lines = [f"%n{k} = arith.constant 1 : i32", f"%b{k} = tpu.iteration_bound {term.axis} : i32"]
            return [*lines, f"%l{k} = arith.subi %b{k}, %n{k} : i32", f"{value} = arith.subi %l{k}, {i} : i32"]
        case "table":
            table = f"memref<{kernel.tables[term.number]}xi32, #tpu.memory_space<smem>>"
            lines = [f"%x{k} = arith.index_cast {i} : i32 to index"]
            return [*lines, f"{value} = memref.load %t{term.number}[%x{k}] : {table}"]


def _indices(kernel: GridKernel) -> list[str]:
    tables = [f"%t{k}: memref<{length}xi32, #tpu.memory_space<smem>>" for k, length in enumerate(kernel.tables)]
    return [*(f"%i{axis}: i32" for axis in range(len(kernel.grid))), *tables]


def _memref(window: Window) -> str:
    return f"memref<{'x'.join([*map(str, window.buffer), 'i32'])}, #tpu.memory_space<vmem>>"


def _type(kind: str, shape: Sequence[int]) -> str:
    return f"{kind}<{'x'.join([*map(str, shape), 'i32'])}>"
