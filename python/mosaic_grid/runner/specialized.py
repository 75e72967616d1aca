"""`mosaic_grid.specialize`: a function whose kernels have static variants for the bounds that matter."""

from __future__ import annotations

import dataclasses
import operator
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from jaxlib.mlir import ir

from mosaic_grid.context import create_context, unknown_location
from mosaic_grid.diagnostics import Diagnostic
from mosaic_grid.errors import UserError
from mosaic_grid.pass_options import pass_to_text
from mosaic_grid.passes.specialize_grid import SpecializeGrid
from mosaic_grid.runner.api import run
from mosaic_grid.runner.bounds_seen import Counted, Seen, count_bounds
from mosaic_grid.runner.programs import Source, open_source
from mosaic_grid.session import Session
from mosaic_grid.targets import parse_target
from mosaic_grid.unpack import pack
from mosaic_grid.write import write_text

Values: TypeAlias = int | Iterable[int]
Bucket: TypeAlias = Literal["exact", "round-up"]
Keep: TypeAlias = Literal["all", "profitable"]
Bounds: TypeAlias = Mapping[Any, Values | Mapping[Any, Values]] | Values | str | Path


def specialize(
    fn: Callable[..., Any],
    bounds: Bounds = (),
    *,
    ladder: str = "",
    bucket: Bucket = "exact",
    budget: int = 8,
    keep: Keep = "all",
    min_gain: int = 2,
    code_budget: int | None = None,
    compile_budget: int | None = None,
    target: str | None = None,
    contracts: str | Iterable[str] = (),
    record: str | Path | None = None,
) -> Specialized:
    """A function with static variants of its Pallas kernels, one of which is picked when it runs.

        gmm = mosaic_grid.specialize(gmm, bounds={"n": (1024, 2048)})
        gmm(n, x, y)

    Args:
        fn: A function of arrays that launches Pallas TPU kernels with dynamic grids.
        bounds: The values to specialize for. A mapping from the number of a grid dimension, or the name of an argument
            that bounds are computed from, to a number or several; from the name of a kernel to such a mapping; numbers
            alone, for each dynamic bound; or the path of a file with values, as `values=@FILE` takes it. With neither
            this nor `ladder` all bounds that are proved to be possible, if those are few.
        ladder, bucket, budget, keep, min_gain: As the options of the pass `specialize-grid`.
        code_budget, compile_budget: So too: with `keep="profitable"` the most bytes of code that all variants may have
            together, and the most seconds that compiling them may take.
        target: The chip that the program is made for: `"v5p"`.
        contracts: Promises about the arguments, as `mosaic-opt --contracts` takes them: `"n <= 64"`.
        record: A file that is told which bounds kernels are launched with, the most frequent first, as `bounds` and
            `values=@FILE` take it. While that is recorded the original kernels run.

    Returns:
        A `Specialized`, to be called like `fn`.

    Raises `mosaic_grid.UserError` for options that can't be read; that no kernel has a bound it is given values for is
    one when it is called.
    """
    if not callable(fn):
        raise UserError(f"a {type(fn).__name__} can't be specialized", notes=["give a function of arrays"])
    _check("bucket", bucket, get_args(Bucket))
    _check("keep", keep, get_args(Keep))
    integers: dict[str, object] = {"budget": budget, "min_gain": min_gain}
    optional = {"code_budget": code_budget, "compile_budget": compile_budget}
    integers.update((name, number) for name, number in optional.items() if number is not None)
    for name, number in integers.items():
        if not isinstance(number, int):
            raise UserError(f"{name}: expects an integer, got {number!r}")
    try:
        options = SpecializeGrid(
            values=tuple(_elements(bounds)),
            ladder=ladder,
            bucket=bucket,
            budget=budget,
            keep=keep,
            min_gain=min_gain,
            code_budget=code_budget,
            compile_budget=compile_budget,
            target="" if target is None else target,
        )
    except (ValueError, TypeError) as refusal:
        raise UserError(f"mosaic_grid.specialize: {refusal}") from None
    promises = (contracts,) if isinstance(contracts, str) else tuple(contracts)
    return Specialized(fn, options, promises, None if record is None else Seen(Path(record)))


@dataclasses.dataclass(frozen=True)
class _Made:
    """A specialized program: what JAX lowered, the module, unpacked, and what the pass said of it.

    `original` is the program before it, which counts its bounds, where these are recorded.
    """

    lowered: Any
    module: ir.Operation
    said: tuple[Diagnostic, ...]
    original: ir.Operation | None
    counted: tuple[Counted, ...]


class Specialized:
    """A function with static variants of its kernels. Where it is called with arrays it runs on the CPU, as
    `mosaic_grid.run` does, and may be called in functions that `jax.jit` compiles for the CPU.

    `pipeline` is the pass with its options, as `mosaic-opt -p` takes it. A program is made for each combination of
    shapes and types, once.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        options: SpecializeGrid,
        contracts: tuple[str, ...] = (),
        seen: Seen | None = None,
    ) -> None:
        """Nothing is lowered yet."""
        self._seen = seen
        self._fn = fn
        self._options = options
        self._contracts = contracts
        self._made: dict[Any, _Made] = {}
        self._lock = threading.Lock()
        self.pipeline = pass_to_text(options)

    def __call__(self, *args: Any) -> Any:
        """What the function returns for these arguments; the arrays are NumPy's, or traced where the arguments are.

        Raises `mosaic_grid.UserError` for what can't be lowered, specialized or run.
        """
        import jax

        from mosaic_grid.jax_hook import call

        made = self._make(args)
        flat = call.flat_arguments(made.lowered, args)
        assert flat is not None, "what JAX has lowered has arguments"
        if self._seen is None or made.original is None:
            return jax.tree.unflatten(made.lowered.out_tree, run(made.module, *flat))
        if any(map(call.is_traced, flat)):
            raise UserError("bounds can't be recorded in a function that JAX traces", notes=["call it with arrays"])
        results = run(made.original, *flat)
        count = len(results) - len(made.counted)
        self._seen.add(made.counted, results[count:])
        return jax.tree.unflatten(made.lowered.out_tree, results[:count])

    def as_text(self, *args: Any) -> str:
        """The specialized program for arguments like these, packed: StableHLO text as a client of a TPU takes it."""
        made = self._make(args)
        with made.module.context, unknown_location():
            copy = made.module.clone(ip=False).operation
            pack(copy)
            return write_text(copy, debuginfo=True)

    def report(self, *args: Any) -> str:
        """What there is to say of the kernels for arguments like these: what is left alone, what is kept and why."""
        return "".join(f"{line}\n" for each in self._make(args).said for line in each.lines())

    def _make(self, args: tuple[Any, ...]) -> _Made:
        import jax
        import jax.numpy as jnp

        leaves, tree = jax.tree.flatten(args)
        kinds = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
        with self._lock:
            if (tree, kinds) not in self._made:
                shapes = jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*kind) for kind in kinds])
                lowered = jax.jit(self._fn).trace(*shapes).lower(lowering_platforms=("tpu",))
                self._made[tree, kinds] = self._specialized(lowered)
            return self._made[tree, kinds]

    def _specialized(self, lowered: Any) -> _Made:
        from mosaic_grid.jax_hook import call

        data = call.bytes_of(lowered)
        assert data is not None, "what JAX has lowered has bytes"
        target = parse_target(self._options.target) if self._options.target else None
        session = Session(target, contracts=self._contracts)
        with create_context() as context, unknown_location():
            module = open_source(Source("<lowered>", data, trusted=True), context).module
            original = module.clone(ip=False).operation if self._seen else None
            counted = tuple(count_bounds(original)) if original else ()
            self._options.run(module, session)
        for said in session.diagnostics:
            if said.name == "no-such-bound":
                raise UserError(said.message, said.place, [each.message for each in said.notes])
        return _Made(lowered, module, tuple(session.diagnostics), original, counted)


def _elements(bounds: Bounds, prefix: str = "") -> Iterable[str]:
    """The bounds as elements of the option `values`."""
    if isinstance(bounds, str | Path):
        yield f"@{str(bounds).removeprefix('@')}"
    elif isinstance(bounds, Mapping):
        for key, values in bounds.items():
            if isinstance(values, Mapping):
                yield from _elements(values, f"{prefix}{key}:")
            else:
                yield from (f"{prefix}{key}={value}" for value in _numbers(values))
    else:
        yield from map(str, _numbers(bounds))


def _numbers(values: Values) -> Iterable[int]:
    """One number or several, NumPy's too. Raises `TypeError` for anything else."""
    return map(operator.index, values if isinstance(values, Iterable) else [values])


def _check(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"{name}: expects {' or '.join(map(repr, choices))}, got {value!r}")
