"""What the operations of a kernel's body do beyond computing values: one table, an operation's name to its effect.

The operations are those of jaxlib's `tpu` dialect and of the upstream dialects that Pallas lowers to. What is not
listed is unknown: nothing may be concluded about a kernel that has it.
"""

from __future__ import annotations

import enum

from jaxlib.mlir import ir

from mosaic_grid.ir_types import Value


class Effect(enum.Enum):
    """What an operation does to memory, to semaphores and to other cores."""

    PURE = "computes values, or asks for a buffer's shape or place"
    HINT = "is for people and profilers"
    CONTROL = "runs its regions"
    END = "ends a block"
    PRIVATE = "makes a buffer or semaphores that end with the step"
    VIEW = "shows a buffer in another shape"
    READ = "reads a box of the buffer that is its first operand"
    READ_SCATTERED = "reads somewhere in the buffer that is its first operand"
    WRITE = "writes a box of the buffer that is its second operand"
    WRITE_SCATTERED = "writes somewhere in the buffer that is its second operand"
    COPY_START = "starts a copy"
    COPY_WAIT = "waits for a copy"
    SIGNAL = "adds to a semaphore"
    SEM_WAIT = "waits for a semaphore and takes from it"
    SEM_READ = "looks at a semaphore"
    SEED = "sets the state of the random number generator"
    RANDOM = "reads and advances the state of the random number generator"
    CORES = "knows of other cores or synchronises with them"
    HARDWARE = "uses registers of the matrix unit that outlive it"
    UNKNOWN = "does something unknown"

    # members are few and never copied; `Enum` hashes their names, in Python
    __hash__ = object.__hash__


def _table(**names: str) -> dict[str, Effect]:
    return {name: Effect[effect] for effect, listed in names.items() for name in listed.split()}


EFFECTS: dict[str, Effect] = _table(
    PURE="""
        memref.dim
        tpu.all_reduce tpu.assume_multiple tpu.bitcast tpu.bitcast_vreg tpu.broadcast_in_sublanes tpu.concatenate
        tpu.conv tpu.create_mask tpu.create_subelement_mask tpu.device_id tpu.dynamic_gather tpu.dynamic_rotate tpu.extf
        tpu.fptosi tpu.fptoui tpu.gather tpu.iota tpu.iteration_bound tpu.logistic tpu.mask_cast tpu.matmul
        tpu.memref_memory_space_is tpu.pack_elementwise tpu.pack_subelements tpu.pack_vmsk tpu.reciprocal tpu.reduce
        tpu.reduce_index tpu.reduce_precision tpu.repeat tpu.reshape tpu.roll_vectors tpu.scan tpu.scan_count tpu.sitofp
        tpu.sort tpu.stochastic_convert tpu.stochastic_convert_elementwise tpu.sublane_shuffle tpu.tile_size
        tpu.transpose tpu.truncf tpu.uitofp tpu.unpack_elementwise tpu.unpack_subelements tpu.unroll_vectors tpu.weird
    """,
    HINT="tpu.delay tpu.log tpu.trace_start tpu.trace_stop tpu.trace_value",
    CONTROL="scf.execute_region scf.for scf.if scf.while tpu.region tpu.trace",
    END="func.return scf.condition scf.yield tpu.yield",
    PRIVATE="memref.alloca tpu.internal_scratch tpu.sem_alloc",
    VIEW="""
        memref.cast memref.memory_space_cast tpu.annotate tpu.assume_layout tpu.erase_memref_layout tpu.memref_bitcast
        tpu.memref_reshape tpu.memref_slice tpu.memref_squeeze tpu.reinterpret_cast
    """,
    READ="memref.load tpu.strided_load tpu.vector_load vector.load",
    READ_SCATTERED="""
        tpu.expand_load_vreg tpu.load tpu.log_buffer tpu.shuffled_load tpu.vector_expand_load tpu.vector_load_idx
    """,
    WRITE="memref.store tpu.strided_store tpu.vector_store vector.store",
    WRITE_SCATTERED="""
        tpu.compress_store_vreg tpu.shuffled_store tpu.store tpu.vector_compress_store tpu.vector_store_idx
    """,
    COPY_START="tpu.enqueue_dma tpu.enqueue_indirect_dma",
    COPY_WAIT="tpu.wait_dma tpu.wait_dma2 tpu.wait_indirect_dma",
    SIGNAL="tpu.sem_signal",
    SEM_WAIT="tpu.sem_wait",
    SEM_READ="tpu.sem_read",
    SEED="tpu.prng_set_seed_32",
    RANDOM="tpu.prng_random_bits",
    CORES="""
        tpu.barrier tpu.core_id tpu.fetch_and_add_sync tpu.sem_barrier tpu.shared_memref_slice tpu.subcore_id
    """,
    HARDWARE="tpu.matmul_acc_lhs tpu.matmul_lhs_fifo tpu.matmul_pop tpu.matmul_pop_fifo tpu.matmul_push_rhs",
)

# dialects whose operations compute values from values; those that touch memory are listed above or are unknown
_PURE_DIALECTS = frozenset({"arith", "math", "vector"})
_MEMORY_DIALECTS = frozenset({"vector"})
# operations of these that take no memory and have no regions, whatever their operands
_VECTORS_ONLY = """
    vector.bitcast vector.broadcast vector.contract vector.create_mask vector.extract vector.extract_strided_slice
    vector.insert vector.insert_strided_slice vector.multi_reduction vector.reduction vector.shape_cast vector.shuffle
    vector.transpose
"""

_OF_A_NAME = {**EFFECTS, **dict.fromkeys(_VECTORS_ONLY.split(), Effect.PURE)}
"""The effects that the name alone decides, as they are found."""

effect_of_name = _OF_A_NAME.get
"""The effect of an operation of this name; None where that takes more than the name."""

_VALUES = (ir.VectorType, ir.IntegerType, ir.IndexType, ir.FloatType)

# operands that name another device or another core, and so make a copy or a signal leave this one
_ELSEWHERE = ("device_id", "core_id", "subcore_id")


def effect_of(op: ir.Operation) -> Effect:
    """The effect of an operation; one that is not listed is pure only where it can't reach any memory."""
    name = op.name
    known = _OF_A_NAME.get(name)
    if known is not None:
        return known
    dialect = name.partition(".")[0]
    if dialect not in _PURE_DIALECTS or (dialect in _MEMORY_DIALECTS and any(map(is_memory, op.operands))):
        return Effect.UNKNOWN
    if len(op.regions):
        return Effect.UNKNOWN
    if dialect not in _MEMORY_DIALECTS:
        # no operation of these has regions at times: it is the same for all of the name
        _OF_A_NAME[name] = Effect.PURE
    return Effect.PURE


def is_memory(value: Value) -> bool:
    """Whether a value is a buffer or a semaphore."""
    kind = value.type
    if isinstance(kind, _VALUES):
        # most are; the text of a type takes long
        return False
    return isinstance(kind, ir.MemRefType | ir.UnrankedMemRefType) or "semaphore" in str(kind)


def leaves_the_core(op: ir.Operation) -> bool:
    """Whether a copy, a wait or a signal is with another device or another core."""
    return any(named(op, name) is not None for name in _ELSEWHERE)


def named(op: ir.Operation, name: str) -> Value | None:
    """The operand that an operation's declaration calls `name`; None where it is left out or there is none."""
    value: Value | None = getattr(op.opview, name, None)
    return value
