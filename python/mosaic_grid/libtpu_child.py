"""The process that talks to libtpu: compiles one program for one target and writes what happened to a file.

It is started by `mosaic_grid.libtpu`, which survives whatever libtpu does here. JAX is not imported: jaxlib alone takes
a third of the time. Everything private to jaxlib that compiling needs is in this module, reached through `_corner`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from mosaic_grid import backend_config
from mosaic_grid.branches import branches_text
from mosaic_grid.context import create_context
from mosaic_grid.program import CUSTOM_CALLS, TARGET

# XLA carries frontend attributes through inlining, cloning and fusion, and ignores them when it looks for equal
# instructions. So this one tells which launch an instruction of the compiled program came from and changes nothing.
TAG = "mosaic_grid_launch"

# Where the unpacked form names a launch's kernel.
UNPACKED = "mosaic.kernel"

_FRONTEND_ATTRIBUTES = "mhlo.frontend_attributes"


class MovedError(Exception):
    """A private part of jaxlib is not where it was when this was written."""


@dataclasses.dataclass(frozen=True)
class Job:
    """What to compile, for what, and where to write: paths, and names in libtpu's notation."""

    program: str
    topology: str
    chip_config: str
    dump: str
    result: str
    hlo: str


@dataclasses.dataclass(frozen=True)
class KernelCall:
    """A launch as the program states it. `key` is equal for launches of the same kernel; `core` is `tc` or `sc`.

    `branch` is the branch it is in, in words, where the program chooses at run time.
    """

    kernel: str
    core: str
    key: str
    branch: str = ""


@dataclasses.dataclass(frozen=True)
class Instruction:
    """An instruction of the compiled program that runs a launch; equal `shapes` are the same shapes and layouts."""

    launch: int
    name: str
    shapes: str


@dataclasses.dataclass
class Outcome:
    """What is known so far; `stage` says how far the process came: it may die in the next one.

    `error` is what went wrong in that stage, with the words of whoever refused.
    """

    stage: str = "read"
    error: str = ""
    launches: list[KernelCall] = dataclasses.field(default_factory=list[KernelCall])
    instructions: list[Instruction] = dataclasses.field(default_factory=list[Instruction])
    code_bytes: int | None = None

    def write(self, path: str) -> None:
        """Replaces the file at once, so that a reader never sees half of it."""
        Path(f"{path}.part").write_text(json.dumps(dataclasses.asdict(self)))
        os.replace(f"{path}.part", path)

    @classmethod
    def read(cls, path: Path) -> Outcome:
        """What the process last wrote; nothing at all if it died before that."""
        if not path.exists():
            return cls(stage="start")
        data = json.loads(path.read_text())
        data["launches"] = [KernelCall(**launch) for launch in data["launches"]]
        data["instructions"] = [Instruction(**instruction) for instruction in data["instructions"]]
        return cls(**data)


def main() -> None:
    """Reads a `Job` as JSON from standard input and does it."""
    # An aborting libtpu would write an image of gigabytes.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Ctrl-C reaches this process too; Python's handler would wait for libtpu to come back.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    job = Job(**json.load(sys.stdin))
    outcome = Outcome()
    try:
        _work(job, outcome)
    except MovedError as error:
        outcome.stage, outcome.error = "moved", str(error)
    outcome.write(job.result)
    # libtpu's own threads and destructors have nothing to add.
    sys.stdout.flush()
    os._exit(0)


def _work(job: Job, outcome: Outcome) -> None:
    with create_context():
        try:
            module = ir.Module.parse(Path(job.program).read_bytes())
        except ir.MLIRError as error:
            reason = next((d.message for d in error.error_diagnostics), "no reason given")
            outcome.error = f"not a StableHLO program: {reason}"
            return
        ops, dynamic = _survey(module)
        outcome.launches = [
            dataclasses.replace(_tag(op, index), branch=branches_text(op)) for index, op in enumerate(ops)
        ]
        if any(UNPACKED in op.attributes for op in ops):
            outcome.error = "the program is unpacked; libtpu takes it packed, as pack-kernels makes it"
            return
        outcome.stage = "compile"
        if dynamic:
            outcome.error = f"{dynamic} has a dynamic shape; libtpu compiles for static shapes, so fix them first"
            return
        outcome.write(job.result)
        try:
            executable = _compile(job, module)
        except _corner("jaxlib._jax", "JaxRuntimeError") as error:
            outcome.error = str(error)
            outcome.instructions = _instructions(_dumped_hlo(Path(job.dump)))
            return
    (hlo,) = executable.hlo_modules()
    Path(job.hlo).write_text(hlo.to_string())
    outcome.instructions = _instructions(hlo)
    outcome.code_bytes = executable.get_compiled_memory_stats().generated_code_size_in_bytes
    outcome.stage = "done"


def _survey(module: ir.Module) -> tuple[list[ir.Operation], str]:
    """The launches, and the first type with a dynamic dimension, empty if there is none: libtpu aborts on these."""
    launches: list[ir.Operation] = []
    dynamic: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in CUSTOM_CALLS and ir.StringAttr(op.attributes["call_target_name"]).value == TARGET:
            launches.append(op)
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.arguments]
        dynamic.extend(str(value.type) for value in (*op.results, *arguments) if _is_dynamic(value.type))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return launches, dynamic[0] if dynamic else ""


def _is_dynamic(of: ir.Type) -> bool:
    return isinstance(of, ir.RankedTensorType) and not of.has_static_shape


def _tag(op: ir.Operation, index: int) -> KernelCall:
    """Marks the launch with its index in the program, and says what it launches."""
    attributes: dict[str, ir.Attribute] = {TAG: ir.StringAttr.get(str(index))}
    if _FRONTEND_ATTRIBUTES in op.attributes:
        found = ir.DictAttr(op.attributes[_FRONTEND_ATTRIBUTES])
        attributes |= {found[i].name: found[i].attr for i in range(len(found))}
    op.attributes[_FRONTEND_ATTRIBUTES] = ir.DictAttr.get(attributes)
    text = ir.StringAttr(op.attributes["backend_config"]).value if "backend_config" in op.attributes else ""
    try:
        _, payload = backend_config.split(text)
        function = ir.Module.parse(payload.body).body.operations[0]
    except (backend_config.ConfigError, ir.MLIRError, IndexError):
        # Whether it is a kernel at all is for libtpu to say.
        return KernelCall(_string(op, "kernel_name") or TARGET, "tc", text)
    name = _string(op, "kernel_name") or _string(function.operation, "sym_name") or TARGET
    core = str(function.attributes["tpu.core_type"]) if "tpu.core_type" in function.attributes else "tc"
    config = backend_config.parse(text)
    # libtpu stores equal code once wherever it was written.
    config[backend_config.SECTION].pop(backend_config.DEBUG_LOCATIONS, None)
    key = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    return KernelCall(name, "sc" if "sc_" in core else "tc", key)


def _string(op: ir.Operation, name: str) -> str:
    return ir.StringAttr(op.attributes[name]).value if name in op.attributes else ""


def _compile(job: Job, module: ir.Module) -> Any:
    """The executable; raises `JaxRuntimeError` with libtpu's message."""
    replicas, partitions = (_count(module, name) for name in ("mhlo.num_replicas", "mhlo.num_partitions"))
    devices = _devices(job.topology, job.chip_config, replicas * partitions)
    options = _corner("jaxlib._jax", "CompileOptions")()
    options.num_replicas = replicas
    options.num_partitions = partitions
    import numpy as np

    ids = np.array([device.id for device in devices]).reshape(replicas, partitions)
    options.device_assignment = _corner("jaxlib._jax", "DeviceAssignment").create(ids)
    # What JAX sets for every program of its own.
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    try:
        return devices[0].client.compile(module, _corner("jaxlib._jax", "DeviceList")(tuple(devices)), options)
    except (AttributeError, TypeError) as error:
        raise MovedError(f"jaxlib {_version()} compiles in another way: {error}") from error


def _count(module: ir.Module, name: str) -> int:
    attributes = module.operation.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else 1


def _devices(topology: str, chip_config: str, count: int) -> list[Any]:
    """As many compile-only devices as the program runs on, from the smallest topology that has them."""
    client = importlib.import_module("jaxlib.xla_client")
    if not client.pjrt_plugin_loaded("tpu"):
        client.load_pjrt_plugin_dynamically("tpu", _library())
    if not client.pjrt_plugin_initialized("tpu"):
        client.initialize_pjrt_plugin("tpu")
    make = _corner("jaxlib._jax", "get_default_c_api_topology")
    options = {"chip_config_name": chip_config} if chip_config else {}
    chip, _, size = topology.partition(":")
    shape = [int(extent) for extent in size.split("x")]
    while len(devices := make("tpu", f"{chip}:{_by(shape)}", options)._make_compile_only_devices()) < count:
        # 2x2x1, 2x2x2, 2x2x4, 2x4x4, ...: libtpu refuses a slice that doesn't exist, which ends this.
        smallest = max(i for i, extent in enumerate(shape) if extent == min(shape))
        shape[smallest] *= 2
    return list(devices[:count])


def _by(shape: list[int]) -> str:
    return "x".join(map(str, shape))


def _library() -> str:
    """Where JAX looks for it: `TPU_LIBRARY_PATH`, else the installed package."""
    if path := os.environ.get("TPU_LIBRARY_PATH"):
        return path
    spec = importlib.util.find_spec("libtpu")
    if spec is None or spec.origin is None:
        raise MovedError("the package libtpu can't be found")
    return str(Path(spec.origin).with_name("libtpu.so"))


def _dumped_hlo(dump: Path) -> Any | None:
    """The program as libtpu wrote it down before it stopped; it is the last one where it tried several times."""
    texts = sorted(dump.glob("*-TLP-hlo.txt"))
    return _corner("jaxlib._hlo", "hlo_module_from_text")(texts[-1].read_text()) if texts else None


def _instructions(hlo: Any | None) -> list[Instruction]:
    """The instructions that run launches, in the program's order.

    A launch that was fused with its operands, or with what takes its result, is run by the fusion. It carries the tag
    of the call inside in the first case only.
    """
    if hlo is None:
        return []
    tags = {
        computation.name: [tag for part in computation.instructions() if _is_call(part) and (tag := _tag_of(part))]
        for computation in hlo.computations()
    }
    runs = {computation.name for computation in hlo.make_nonfusion_computations()}
    return [
        Instruction(int(tag), instruction.name, " ".join(map(_shape_of, (instruction, *operands))))
        for computation in hlo.computations()
        if computation.name in runs
        for instruction in computation.instructions()
        if _is_call(instruction)
        for tag in _tags_of(instruction, tags)
        for operands in [instruction.operands()]
    ]


def _tags_of(instruction: Any, tags: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The tags of the launches that an instruction runs; `tags` are those inside each computation."""
    if tag := _tag_of(instruction):
        return [tag]
    called = re.search(r"\bcalls=%?([\w.-]+)", instruction.to_string())
    return tags.get(called[1], []) if called else []


# What an instruction calls, its attributes and its shape stand in its text: not every jaxlib has functions for them.
def _tag_of(instruction: Any) -> str:
    found = re.search(rf'\b{TAG}="(\d+)"', instruction.to_string())
    return found[1] if found else ""


def _shape_of(instruction: Any) -> str:
    found = re.match(r"[^=]* = (.+?) [\w-]+\(", instruction.to_string())
    return found[1] if found else ""


def _is_call(instruction: Any) -> bool:
    # The start and the end of an asynchronous launch are tagged too, but the call they wrap is what was compiled.
    opcode = _corner("jaxlib._hlo", "HloOpcode")
    return instruction.opcode in (opcode.kCustomCall, opcode.kFusion)


def _corner(module: str, name: str) -> Any:
    """A private name of jaxlib; raises `MovedError` where this jaxlib has none."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        message = f"jaxlib {_version()} has no {module}.{name}; compiling was written for jaxlib 0.10.2 and 0.12"
        raise MovedError(message) from None


def _version() -> str:
    return str(importlib.import_module("jaxlib.version").__version__)


if __name__ == "__main__":
    main()
