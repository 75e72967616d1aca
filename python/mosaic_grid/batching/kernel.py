"""Giving a kernel the batch: a dimension of its grid, and of the arrays and tables that differ between elements.

Where no bound differs the batch is a dimension of its own, the outermost one. Where one does, the steps of all elements
are counted by one dimension, and the step's element is found in the prefix sums of their numbers of steps.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import cast

from jaxlib.mlir import ir

from mosaic_grid.batching.ragged import Elements, Table
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.ir_types import Value
from mosaic_grid.kernel_edit import drop_arguments, insert_argument, iteration_bounds, set_grid
from mosaic_grid.partition import kernel_scalars as scalars
from mosaic_grid.program import Kernel, Window
from mosaic_grid.unpack import unique_symbol


@dataclasses.dataclass(frozen=True)
class Form:
    """What gets the batch of `size` elements: `prefetch` operands and `windows` by their numbers.

    The first `fused` dimensions of the grid are counted together with it; none means that the batch is a dimension of
    its own. `asked` are the dimensions whose bounds the kernel asks for. A table has the element of each of `steps`
    steps, where that isn't 0: there are no more then.

    An array of one dimension stays one, with the elements behind each other, since the compiler lays out the last two
    dimensions in tiles: `rows` has these windows, and how many of its blocks an element has, 1 if it is handed over
    whole.
    """

    size: int
    fused: int
    prefetch: frozenset[int]
    windows: frozenset[int]
    asked: frozenset[int]
    rows: tuple[tuple[int, int], ...] = ()
    steps: int = 0
    parallel: bool = False

    def grid(self, grid: Sequence[Dimension]) -> tuple[Dimension, ...]:
        """The grid of the batched kernel."""
        word = Semantics.PARALLEL if self.parallel else Semantics.ARBITRARY
        return (Dimension(None if self.fused else self.size, word), *grid[self.fused :])

    def table(self, grid: Sequence[Dimension]) -> Table | None:
        """What the kernel takes as its last prefetch operand; a batch that is a dimension needs nothing."""
        if not self.fused:
            return None
        needed = (axis for axis in range(self.fused) if axis or 0 in self.asked)
        return Table(self.size, self.steps, tuple(axis for axis in needed if grid[axis].bound is None))


def batched_shape(size: int, shape: Sequence[int]) -> list[int]:
    """The shape of the arrays of `size` elements that have this shape."""
    return [size * shape[0]] if len(shape) == 1 else [size, *shape]


def batch_kernel(module: ir.Operation, form: Form) -> None:
    """Rewrites a kernel module in place. The caller has made sure that it can be; nothing is checked here."""
    kernel = Kernel(module)
    body, grid, prefetch, windows = kernel.body, kernel.grid, kernel.prefetch_count, kernel.windows
    table = form.table(grid)
    maps = _own_maps(kernel, form)
    rows = dict(form.rows)
    batched = {maps[number]: rows.get(number, 0) for number in form.windows if number in maps}
    whole = [len(grid) + prefetch + number for number in form.windows if number not in maps]
    _write_windows(body, windows, maps, form, len(form.grid(grid)))
    functions = Kernel(module).functions
    for symbol in sorted({*maps.values()}):
        function = functions[symbol]
        element = _rewrite_function(function, form, grid, prefetch, table, ())
        if symbol in batched:
            _return_element(function, element, batched[symbol])
    _rewrite_function(body, form, grid, prefetch, table, whole)
    set_grid(body, form.grid(grid))
    if table is not None:
        body.attributes["scalar_prefetch"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), prefetch + 1)


def _own_maps(kernel: Kernel, form: Form) -> dict[int, str]:
    """The index map of each window that has one; a map whose windows get the batch in different ways is doubled."""
    rows, taken = dict(form.rows), set(kernel.functions)
    made: dict[tuple[str, int | None], str] = {}
    maps: dict[int, str] = {}
    for number, window in enumerate(kernel.windows):
        symbol = window.transform
        if symbol is None:
            continue
        way = (symbol, rows.get(number, 0) if number in form.windows else None)
        if way not in made and all(name != symbol for name in made.values()):
            made[way] = symbol
        elif way not in made:
            function = kernel.functions[symbol]
            clone = function.clone(ip=ir.InsertionPoint(function)).operation
            clone.move_after(function)
            made[way] = unique_symbol(f"{symbol}_batched", taken)
            taken.add(made[way])
            clone.attributes["sym_name"] = ir.StringAttr.get(made[way])
        maps[number] = made[way]
    return maps


def _write_windows(body: ir.Operation, windows: Sequence[Window], maps: dict[int, str], form: Form, rank: int) -> None:
    """The windows' descriptions with a block of one element in front; constant maps get the new grid's rank."""
    if "window_params" not in body.attributes:
        return
    written: list[ir.Attribute] = []
    for number, window in enumerate(windows):
        entries = {attribute.name: attribute.attr for attribute in cast(Iterable[ir.NamedAttribute], window.params)}
        if window.affine_map is not None:
            constant = ir.AffineMap.get(rank, 0, list(window.affine_map.results))
            entries["transform_indices"] = ir.AffineMapAttr.get(constant)
        if number in maps:
            entries["transform_indices"] = ir.FlatSymbolRefAttr.get(maps[number])
        if number in maps and number in form.windows and number not in dict(form.rows):
            entries["window_bounds"] = ir.DenseI64ArrayAttr.get([1, *(window.shape or ())])
            if window.kind is not None:
                # `#tpu.element_window<[low], [high]>`: no padding before or behind an element of the batch
                entries["window_kind"] = ir.Attribute.parse(str(window.kind).replace("[", "[0, "))
        written.append(ir.DictAttr.get(entries))
    body.attributes["window_params"] = ir.ArrayAttr.get(written)


def _rewrite_function(
    function: ir.Operation,
    form: Form,
    grid: Sequence[Dimension],
    prefetch: int,
    table: Table | None,
    whole: Sequence[int],
) -> Value:
    """Gives one function the new grid, computes the old indices from it, and returns which element a step is of.

    `whole` are the arguments that are arrays handed over whole, of which the function sees the element's part.
    """
    block = function.regions[0].blocks[0]
    asked = iteration_bounds(function)
    with function.location, ir.InsertionPoint.at_block_begin(block):
        place = ir.Location.name("batch")
        step = insert_argument(function, 0, scalars.i32(), place)
        element: Value = step
        if table is not None:
            entries = insert_argument(function, 1 + len(grid) + prefetch, table.type, place)
            elements = Elements(table, grid[: form.fused], step, entries)
            element = elements.element
            old = list(block.arguments)[1 : 1 + form.fused]
            needed = frozenset(axis for axis, argument in enumerate(old) if any(True for _ in argument.uses))
            for axis, index in elements.indices(needed).items():
                old[axis].replace_all_uses_with(index)
            drop_arguments(function, 1, form.fused)
            for op, axis in asked:
                if axis < form.fused:
                    op.results[0].replace_all_uses_with(elements.bound(axis))
        for number in sorted(form.prefetch):
            _batch_table(function, 1 + len(grid) - form.fused + number, form.size, element)
        for number in whole:
            moved = number + 1 - form.fused + (1 if table is not None else 0)
            _slice_whole(function, moved, form.size, element)
    for op, axis in asked:
        if axis < form.fused:
            op.erase()
        else:
            op.attributes["dim"] = ir.IntegerAttr.get(scalars.i32(), axis + 1 - form.fused)
    return element


def _return_element(index_map: ir.Operation, element: Value, blocks: int) -> None:
    """Makes an index map give the element in front of what it gives; or the block of an array of one dimension, of
    which an element has `blocks`, where that isn't 0.
    """
    end = index_map.regions[0].blocks[0].operations[-1].operation
    results: list[Value] = [element, *end.operands]
    with end.location, ir.InsertionPoint(end):
        if blocks:
            results = [scalars.add(scalars.multiply(element, scalars.constant(blocks)), end.operands[0])]
        ir.Operation.create("func.return", operands=results)
    end.erase()
    kind = ir.FunctionType(ir.TypeAttr(index_map.attributes["function_type"]).value)
    batched = ir.FunctionType.get(list(kind.inputs), [each.type for each in results])
    index_map.attributes["function_type"] = ir.TypeAttr.get(batched)
    if "res_attrs" in index_map.attributes:
        given = list(ir.ArrayAttr(index_map.attributes["res_attrs"]))
        new = [ir.DictAttr.get({})] * (len(results) - len(given))
        index_map.attributes["res_attrs"] = ir.ArrayAttr.get([*new, *given])


def _batch_table(function: ir.Operation, number: int, size: int, element: Value) -> None:
    """Makes a prefetch operand the tables of all elements behind each other, of which loads take the element's.

    One dimension, because a row of a two-dimensional table takes up a multiple of 128 words of SMEM.
    """
    block = function.regions[0].blocks[0]
    one = ir.MemRefType(block.arguments[number].type)
    shape, length = list(one.shape), math.prod(one.shape)
    kind = ir.MemRefType.get([size * length], one.element_type, memory_space=one.memory_space)
    table = insert_argument(function, number, kind, block.arguments[number].location)
    old = block.arguments[number + 1]
    loads = [use.owner.operation for use in old.uses]
    if loads:
        first = scalars.multiply(scalars.to_index(element), scalars.index(length))
    for load in loads:
        with load.location, ir.InsertionPoint(load):
            place = first
            for axis, index in enumerate(list(load.operands)[1:]):
                stride = math.prod(shape[axis + 1 :])
                place = scalars.add(place, index if stride == 1 else scalars.multiply(index, scalars.index(stride)))
            new = ir.Operation.create("memref.load", results=[load.results[0].type], operands=[table, place])
        load.results[0].replace_all_uses_with(new.result)
        load.erase()
    drop_arguments(function, number + 1, 1)


def _slice_whole(function: ir.Operation, number: int, size: int, element: Value) -> None:
    """Makes an array that is handed over whole that of all elements, of which the function sees the element's part."""
    block = function.regions[0].blocks[0]
    one = ir.MemRefType(block.arguments[number].type)
    shape, space = list(one.shape), one.memory_space
    every = ir.MemRefType.get(batched_shape(size, shape), one.element_type, memory_space=space)
    array = insert_argument(function, number, every, block.arguments[number].location)
    flat = len(shape) == 1
    first = scalars.multiply(element, scalars.constant(shape[0])) if flat else element
    rest = [] if flat else [scalars.constant(0) for _ in shape]
    part: Value = ir.Operation.create(
        "tpu.memref_slice",
        results=[one if flat else ir.MemRefType.get([1, *shape], one.element_type, memory_space=space)],
        operands=[array, first, *rest],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1 + len(rest), 0])},
    ).result
    if not flat:
        part = ir.Operation.create("tpu.memref_squeeze", results=[one], operands=[part]).result
    block.arguments[number + 1].replace_all_uses_with(part)
    drop_arguments(function, number + 1, 1)
