"""What the real compiler makes of a kernel's variants and of the original: each compiled by itself, in a program of one
launch.

The launch stands in a branch that is chosen at run time, as variants do. Established with libtpu: the same kernel has
another schedule where XLA may place its operands, as it may around a launch that is always carried out.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import time
from collections.abc import Iterable

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from mosaic_grid.ir_types import Value
from mosaic_grid.libtpu import compile_for
from mosaic_grid.partition import scalars
from mosaic_grid.program import Launch, Program
from mosaic_grid.targets import Target
from mosaic_grid.unpack import pack
from mosaic_grid.variants.build import Kernels
from mosaic_grid.variants.launch import carry_out
from mosaic_grid.variants.plan import Plan, Variant
from mosaic_grid.write import write_bytecode


@dataclasses.dataclass(frozen=True)
class Measured:
    """A compiled kernel: the bundles of its schedule, the cores that run it, bytes of code, seconds of compiling.

    `step` are the bundles of one step of the grid, as `llo_step` counts them. It, `bundles` and `cores` are `None`
    where libtpu doesn't say, `error` is why it doesn't compile. The code is that of a whole program of this one launch,
    the time that of a whole run of the compiler, its start included.
    """

    bundles: int | None
    cores: int | None
    code_bytes: int | None
    seconds: float
    error: str = ""
    step: int | None = None

    @property
    def cost(self) -> float | None:
        """Bundles of the whole schedule for each core."""
        return self.bundles / self.cores if self.bundles and self.cores else None

    @property
    def step_cost(self) -> float | None:
        """Bundles of a step for each core."""
        return self.step / self.cores if self.step and self.cores else None


def cost_ratio(measured: Measured, reference: Measured) -> float | None:
    """What a kernel costs beside another, below one where it is less; `None` where that isn't known.

    Steps are compared, divided by the cores that share them. Where a grid of one step has no loop, so that the step is
    the whole schedule, whole schedules are: the other kernel sets its loop up as well.
    """
    whole = any(one.step is None or one.step == one.bundles for one in (measured, reference))
    cost, other = ((one.cost if whole else one.step_cost) for one in (measured, reference))
    return None if cost is None or other is None else cost / other


def measure(launch: Launch, variants: Iterable[Variant | None], target: Target) -> list[Measured]:
    """Compiles a launch with each of the variants, `None` being the original. The program stays as it is."""
    programs = [_alone(launch, variant) for variant in variants]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda program: _compiled(program, target), programs))


def _compiled(program: bytes, target: Target) -> Measured:
    start = time.monotonic()
    report = compile_for(program, target)
    seconds = time.monotonic() - start
    compiled = report.launches[0]
    error = compiled.diagnostic.message if compiled.diagnostic else compiled.remark if compiled.failed else ""
    return Measured(compiled.bundles, compiled.cores_used, report.code_bytes, seconds, error, compiled.step_bundles)


def _alone(launch: Launch, variant: Variant | None) -> bytes:
    """A program of nothing but this launch or zeros in its place, packed: its operands are the arguments."""
    op = launch.op
    unknown = ir.Location.unknown()
    with unknown:
        module = ir.Module.create().operation
    outer = _program_of(op)
    for name in outer.attributes:
        if name.startswith("mhlo."):
            module.attributes[name] = outer.attributes[name]
    types = [operand.type for operand in op.operands] + [scalars.tensor()]
    results = [result.type for result in op.results]
    block = module.regions[0].blocks[0]
    with op.location, ir.InsertionPoint(block):
        main = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, results)),
            },
        )
        entry = main.regions[0].blocks.append(*types, arg_locs=[unknown] * len(types))
        with ir.InsertionPoint(entry):
            *operands, index = entry.arguments
            case = ir.Operation.create("stablehlo.case", results=results, operands=[index], regions=2)
            ir.Operation.create("func.return", operands=list(case.results))
        attributes = {name: op.attributes[name] for name in op.attributes}
        with ir.InsertionPoint(ir.Block.create_at_start(case.regions[0], [])):
            call = ir.Operation.create(op.name, results=results, operands=operands, attributes=attributes)
            stablehlo.return_(list(call.results))
        with ir.InsertionPoint(ir.Block.create_at_start(case.regions[1], [])):
            stablehlo.return_([_zeros(kind) for kind in results])
        launch.kernel.module.clone(ip=ir.InsertionPoint(block))
        if variant is not None:
            program = Program(module)
            carry_out(program, [Plan(program.launches[0], (variant,), complete=True)], Kernels(program))
        pack(module)
    return write_bytecode(module)


def _zeros(kind: ir.Type) -> Value:
    element = ir.RankedTensorType(kind).element_type
    zero = ir.FloatAttr.get(element, 0.0) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, 0)
    result: Value = stablehlo.constant(ir.DenseElementsAttr.get_splat(kind, zero))
    return result


def _program_of(op: ir.Operation) -> ir.Operation:
    """The outermost module around an operation."""
    while op.parent is not None:
        op = op.parent.operation
    return op
