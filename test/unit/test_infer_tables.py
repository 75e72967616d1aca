"""Kernels that set scratch to zero where a table says so: parallel where the outer program shows its first entry."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from cpu_programs import assert_same, compiled
from jaxlib.mlir import ir
from test_legality import ACCUMULATE, COPY, TABLE, VMEM, Source, launched, store, when

from mosaic_grid.context import create_context
from mosaic_grid.cpu.options import Options
from mosaic_grid.grid import Dimension, Semantics
from mosaic_grid.kernel_edit import set_grid
from mosaic_grid.passes.infer_parallel import InferParallel
from mosaic_grid.program import Program
from mosaic_grid.session import Session

FLAG = f"""%at = arith.index_cast %i1 : i32 to index
  %flag = memref.load %t0[%at] : {TABLE}
  %set = arith.cmpi ne, %flag, %c0 : i32
  """
LISTED = Source(
    FLAG + when("%set", store("%s0")) + ACCUMULATE,
    semantics=("arbitrary", "arbitrary"),
    output_map="%i0, %c0",
    scratch=(VMEM,),
    prefetch=(TABLE,),
)
"""A sum in scratch that starts anew where an entry of the table, one for each inner step, isn't 0."""


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    with create_context():
        yield


def replaced(place: int, entry: int, body: str = "return %new", *, table: str = "%arg0", into: str = "%table") -> str:
    """`into = table.at[place].set(entry)`, as JAX lowers it; `body` says what becomes of the old and the new entry."""
    lines = body.replace("return", "stablehlo.return")
    return f"""{into}_at = stablehlo.constant dense<{place}> : tensor<1xi32>
      {into}_entry = stablehlo.constant dense<{entry}> : tensor<i32>
      {into} = "stablehlo.scatter"({table}, {into}_at, {into}_entry) <{{
        scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>,
        indices_are_sorted = true, unique_indices = true}}> ({{
      ^bb0(%old: tensor<i32>, %new: tensor<i32>):
        {lines} : tensor<i32>
      }}) : (tensor<16xi32>, tensor<1xi32>, tensor<i32>) -> tensor<16xi32>
      """


def program_of(source: Source, outer: str, second: str = "") -> Program:
    """A launch whose table the outer function computes as `%table`, and maybe another one with `%other`."""
    lines = str(launched(source).module).splitlines()
    number = next(k for k, line in enumerate(lines) if "custom_call" in line)
    call = lines[number].replace("%arg0", "%table")
    assert call != lines[number]
    again = call.replace("%0 =", "%1 =").replace("%table", "%other") if second else ""
    lines[number : number + 1] = [outer, second, call, again]
    return Program(ir.Operation.parse("\n".join(lines)).operation)


def words(program: Program) -> str:
    """The words on the dimensions after the pass, by their first letters; the table's loads are left as they were."""
    before = str(program.kernels["kernel"].body).count("memref.load")
    InferParallel().run(program.module, Session())
    assert program.module.verify()
    kernel = Program(program.module).kernels["kernel"]
    assert str(kernel.body).count("memref.load") == before
    assert "arith.select" not in str(kernel.body)
    return "".join(dimension.semantics.value[0] for dimension in kernel.grid)


CONSTANT = "%table = stablehlo.constant dense<[1, {}]> : tensor<16xi32>".format(", ".join("0" * 15))


@pytest.mark.parametrize(
    ("outer", "expected"),
    [
        (replaced(0, 1), "pa"),
        (CONSTANT, "pa"),
        (replaced(0, 0), "aa"),
        (replaced(1, 1), "aa"),
        (replaced(16, 1), "aa"),
        (replaced(0, 1, "%sum = stablehlo.add %old, %new : tensor<i32>\nreturn %sum"), "aa"),
        (replaced(0, 1, "return %old"), "aa"),
        (CONSTANT.replace("[1, 0", "[0, 1"), "aa"),
    ],
)
def test_first_entry(outer: str, expected: str) -> None:
    """The first inner step initialises if the first entry isn't 0 whatever the inputs are, and only then."""
    assert words(program_of(LISTED, outer)) == expected


def test_place_before_the_first_is_kept() -> None:
    """Setting another entry leaves the first one as it was."""
    first = replaced(0, 1, into="%first")
    assert words(program_of(LISTED, first + replaced(3, 0, table="%first"))) == "pa"
    assert words(program_of(LISTED, first + replaced(0, 0, table="%first"))) == "aa"


def test_marked_kernel_runs_in_any_order() -> None:
    """With a core for each outer step that take turns the results are those of the original."""
    program = program_of(LISTED, replaced(0, 1))
    with ir.Location.unknown():
        plain = compiled(program.module)
        kernel = program.kernels["kernel"]
        grid = (Dimension(kernel.grid[0].bound, Semantics.CORE_PARALLEL), kernel.grid[1])
        set_grid(kernel.body, grid)
        turns = compiled(program.module, Options(interleave=3))
    table = np.zeros(16, np.int32)
    x = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    assert_same(turns(table, x), plain(table, x), "cores in turns")


def test_every_launch_has_to_say_so() -> None:
    """A second launch with a table of its own, of which nothing is known, keeps the order."""
    unknown = "%other = stablehlo.reshape %arg0 : (tensor<16xi32>) -> tensor<16xi32>"
    assert words(program_of(LISTED, replaced(0, 1), unknown)) == "aa"
    assert words(program_of(LISTED, replaced(0, 1), replaced(0, 1, into="%other"))) == "pa"
    assert words(program_of(LISTED, replaced(0, 1), replaced(0, 2, into="%other"))) == "aa"


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (FLAG, FLAG.replace("%i1", "%i0")),  # the entry of the outer step, which is the first one only once
        (FLAG, f"memref.store %c0, %t0[%zero] : {TABLE}\n{FLAG}"),  # what the launch gave is gone
    ],
)
def test_other_entries_say_nothing(text: str, other: str) -> None:
    """Entries that the first inner step doesn't read, or not as the launch gave them, prove nothing."""
    source = dataclasses.replace(LISTED, body=LISTED.body.replace(text, other))
    assert words(program_of(source, replaced(0, 1)))[0] == "a"


def test_no_table_in_the_body() -> None:
    """A table that only lies there changes nothing."""
    source = dataclasses.replace(LISTED, body=COPY, output_map="%i0, %i1")
    assert words(program_of(source, replaced(0, 1))) == "pp"
