"""Pallas kernels that copy their operands by hand. What their steps write is apart, or it isn't."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mosaic_grid.cpu.arrays import Array

ROWS = 64
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


@dataclasses.dataclass(frozen=True)
class Copying:
    """A kernel with tables, an input, an output, a buffer of so many rows, and two semaphores, and how it is called.

    `words` are the first letters of what its dimensions are to be called. `bounds` are those of its grid, of which the
    first one is an argument of the program if it is `dynamic`. Operands without a spec are in HBM as they are.
    """

    kernel: Callable[..., None]
    words: str
    bounds: tuple[int, ...] = (8,)
    tables: tuple[tuple[int, ...], ...] = ()
    in_spec: Any = None
    out_spec: Any = None
    buffer: tuple[int, ...] = (8,)
    dynamic: bool = False
    in_place: bool = False

    def lowered(self) -> str:
        """The program as JAX lowers it for TPU."""
        known = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in self.arguments()]
        text: str = jax.jit(self._call).trace(*known).lower(lowering_platforms=("tpu",)).as_text()
        return text

    def arguments(self) -> list[Array]:
        """A bound if that is one, tables, and a matrix of random numbers."""
        bound = [np.asarray(self.bounds[0], np.int32)] if self.dynamic else []
        matrix = np.random.default_rng(3).normal(size=(ROWS, 128)).astype(np.float32)
        return [*bound, *(np.asarray(table, np.int32) for table in self.tables), matrix]

    def _call(self, *arguments: Any) -> Any:
        first, *others = arguments if self.dynamic else (self.bounds[0], *arguments)
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=len(self.tables),
            grid=(first, *self.bounds[1:]),
            in_specs=[self.in_spec or ANYWHERE],
            out_specs=self.out_spec or ANYWHERE,
            scratch_shapes=[pltpu.VMEM((*self.buffer, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))],
        )
        return pl.pallas_call(
            self.kernel,
            jax.ShapeDtypeStruct((ROWS, 128), jnp.float32),
            grid_spec=spec,
            input_output_aliases={len(self.tables): 0} if self.in_place else {},
            name="copying",
        )(*others)


def copy(source: Any, target: Any, semaphore: Any) -> None:
    """Copies and waits."""
    started = pltpu.make_async_copy(source, target, semaphore)
    started.start()
    started.wait()


def rows(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """Eight rows for each step, in and out."""
    own = pl.ds(pl.program_id(0) * 8, 8)
    copy(x.at[own], buffer, semaphores.at[0])
    buffer[...] = buffer[...] * 2
    copy(buffer, o.at[own], semaphores.at[1])


def updated(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """Eight rows for each step, through the output alone, which is the input if it is in place."""
    rows(o, o, buffer, semaphores)


def halo(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """The rows of the step after it, which that one overwrites if it is in place."""
    i = pl.program_id(0)
    copy(x.at[pl.ds(jnp.minimum(i + 1, 7) * 8, 8)], buffer, semaphores.at[0])
    copy(buffer, o.at[pl.ds(i * 8, 8)], semaphores.at[1])


def overlapping(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """Half of the rows of a step are those of the next one."""
    copy(x.at[pl.ds(0, 8)], o.at[pl.ds(pl.program_id(0) * 4, 8)], semaphores.at[0])


def tiles(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """Row by row of a tile, in a loop."""
    i, j = pl.program_id(0), pl.program_id(1)

    def one(k: Any, _: None) -> None:
        place = (pl.ds((i * 4 + j) * 8 + k, 1), pl.ds(0, 128))
        copy(x.at[place], buffer.at[pl.ds(0, 1)], semaphores.at[0])
        buffer[0:1] = buffer[0:1] + 1
        copy(buffer.at[pl.ds(0, 1)], o.at[place], semaphores.at[0])

    jax.lax.fori_loop(0, 8, one, None)


def counted(counts: Any, x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """As many rows as a table says, eight at most."""
    i = pl.program_id(0)

    def one(k: Any, _: None) -> None:
        place = pl.ds(i * 8 + k, 1)
        copy(x.at[place], o.at[place], semaphores.at[0])

    jax.lax.fori_loop(0, jnp.minimum(counts[i], 8), one, None)


def moved(table: Any, x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """Each step's rows to where a table says."""
    i = pl.program_id(0)
    copy(x.at[pl.ds(i * 8, 8)], o.at[pl.ds(table[i] * 8, 8)], semaphores.at[0])


def shifted(table: Any, x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """Each step's rows from where a table says on."""
    i = pl.program_id(0)
    copy(x.at[pl.ds(i * 8, 8)], o.at[pl.ds(table[0] + i * 8, 8)], semaphores.at[0])


def streamed(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """A block that the pipeline fetched, written to eight rows by hand."""
    buffer[...] = x[...] * 3
    copy(buffer, o.at[pl.ds(pl.program_id(0) * 8, 8)], semaphores.at[0])


def fetched(x: Any, o: Any, buffer: Any, semaphores: Any, ahead: int = 0) -> None:
    """Eight rows copied by hand, those of a step or of one after it, written to a block."""
    row = jnp.minimum(pl.program_id(0) + ahead, 7) * 8
    copy(x.at[pl.ds(row, 8)], buffer, semaphores.at[0])
    o[...] = buffer[...] * 3


def doubled(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """Copies of the loop's next rows are under way while the last ones are used."""
    i = pl.program_id(0)

    def fetch(k: Any, slot: Any) -> Any:
        return pltpu.make_async_copy(x.at[pl.ds(i * 32 + k * 8, 8)], buffer.at[slot], semaphores.at[slot])

    def one(k: Any, _: None) -> None:
        slot = jax.lax.rem(k, 2)

        @pl.when(k + 1 < 4)
        def following() -> None:
            fetch(k + 1, 1 - slot).start()

        fetch(k, slot).wait()
        copy(buffer.at[slot], o.at[pl.ds(i * 32 + k * 8, 8)], semaphores.at[slot])

    fetch(0, 0).start()
    jax.lax.fori_loop(0, 4, one, None)


def doubled_as_told(counts: Any, x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """The same in a loop of as many iterations as a table says."""

    def fetch(k: Any, slot: Any) -> Any:
        return pltpu.make_async_copy(x.at[pl.ds(k * 8, 8)], buffer.at[slot], semaphores.at[slot])

    def one(k: Any, _: None) -> None:
        slot = jax.lax.rem(k, 2)

        @pl.when(k + 1 < counts[0])
        def following() -> None:
            fetch(k + 1, 1 - slot).start()

        fetch(k, slot).wait()
        o[...] = buffer[slot]

    fetch(0, 0).start()
    jax.lax.fori_loop(0, counts[0], one, None)


def prefetched(table: Any, x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """A gather of blocks, each of which the step before has begun to copy."""
    i, steps = pl.program_id(0), pl.num_programs(0)
    slot = jax.lax.rem(i, 2)

    def fetch(k: Any, slot: Any) -> Any:
        return pltpu.make_async_copy(x.at[pl.ds(table[k] * 8, 8)], buffer.at[slot], semaphores.at[slot])

    @pl.when(i == 0)
    def first() -> None:
        fetch(0, 0).start()

    @pl.when(i + 1 < steps)
    def following() -> None:
        fetch(i + 1, 1 - slot).start()

    fetch(i, slot).wait()
    o[...] = buffer[slot]


def ahead(table: Any, x: Any, o: Any, buffer: Any, semaphores: Any, across: bool = False) -> None:
    """A gather of blocks in which copies run ahead, within a row of the grid or `across` rows."""
    i, j = pl.program_id(0), pl.program_id(1)
    k, steps = i * 4 + j, pl.num_programs(0) * 4
    slot = jax.lax.rem(k, 2)

    def fetch(k: Any, slot: Any) -> Any:
        return pltpu.make_async_copy(x.at[pl.ds(table[k] * 8, 8)], buffer.at[slot], semaphores.at[slot])

    @pl.when(k == 0 if across else j == 0)
    def first() -> None:
        fetch(k, slot).start()

    @pl.when(k + 1 < steps if across else j + 1 < 4)
    def following() -> None:
        fetch(k + 1, 1 - slot).start()

    fetch(k, slot).wait()
    o[...] = buffer[slot]


def beyond(table: Any, x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """The last of eight steps looks behind the table, and writes the first one's rows."""
    i = pl.program_id(0)
    source = jnp.where(i < 7, table[i + 1], 0)
    copy(x.at[pl.ds(source * 8, 8)], o.at[pl.ds(jnp.where(i < 7, i, 0) * 8, 8)], semaphores.at[0])


def cut(x: Any, o: Any, buffer: Any, semaphores: Any) -> None:
    """The last of three steps has a view that is larger than what is left, and writes what the second one does."""
    i = pl.program_id(0)
    view = o.at[pl.ds(i * 24, 24)].reshape(3, 8, 128)
    copy(x.at[pl.ds(i * 8, 8)], view.at[0], semaphores.at[0])

    @pl.when(i == 1)
    def second() -> None:
        copy(x.at[pl.ds(i * 8, 8)], o.at[pl.ds(48, 8)], semaphores.at[0])


BLOCK = pl.BlockSpec((8, 128), lambda i, *_: (i, 0))
TILE = pl.BlockSpec((8, 128), lambda i, j, *_: (i * 4 + j, 0))
TABLE = ((3, 1, 0, 2, 7, 5, 4, 6),)
KERNELS = {
    "rows": Copying(rows, "p"),
    "rows in place": Copying(rows, "p", in_place=True),
    "updated in place": Copying(updated, "p", in_place=True),
    "fetched, and written by blocks in place": Copying(fetched, "p", out_spec=BLOCK, in_place=True),
    "neighbour fetched, and written by blocks": Copying(functools.partial(fetched, ahead=1), "p", out_spec=BLOCK),
    "neighbour fetched, and written by blocks in place": Copying(
        functools.partial(fetched, ahead=1), "a", out_spec=BLOCK, in_place=True
    ),
    "rows of a dynamic grid": Copying(rows, "p", dynamic=True),
    "halo": Copying(halo, "p"),
    "halo in place": Copying(halo, "a", in_place=True),
    "overlapping": Copying(overlapping, "a"),
    "tiles": Copying(tiles, "pp", bounds=(2, 4)),
    "counted": Copying(counted, "p", tables=TABLE),
    "moved": Copying(moved, "a", tables=TABLE),
    "shifted": Copying(shifted, "p", tables=((0,),)),
    "streamed": Copying(streamed, "p", in_spec=BLOCK),
    "streamed in place": Copying(streamed, "p", in_spec=BLOCK, in_place=True),
    "doubled": Copying(doubled, "p", bounds=(2,), buffer=(2, 8)),
    "doubled as told": Copying(doubled_as_told, "a", tables=((3,),), out_spec=BLOCK, buffer=(2, 8)),
    "ahead": Copying(ahead, "pa", (2, 4), TABLE, out_spec=TILE, buffer=(2, 8)),
    "ahead across": Copying(functools.partial(ahead, across=True), "aa", (2, 4), TABLE, out_spec=TILE, buffer=(2, 8)),
    "beyond the table": Copying(beyond, "a", tables=TABLE, dynamic=True),
    "cut": Copying(cut, "a", bounds=(3,)),
    "prefetched": Copying(prefetched, "a", tables=TABLE, out_spec=BLOCK, buffer=(2, 8)),
}
