"""The generator of random bits: a seeded stand-in, since that of the TPU isn't documented.

Its state is a key and a counter, from which Threefry makes the bits (`stablehlo.rng_bit_generator`): the same seeds
give the same bits in the same order of draws, on any machine. They are not the TPU's. All cores of a launch draw from
one state, one after the other, and a launch that sets no seed starts from the key 0.
"""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from mosaic_grid.cpu import build
from mosaic_grid.cpu.lowering import Lowering, Rule
from mosaic_grid.cpu.roots import Kind, Root
from mosaic_grid.cpu.types import lowered
from mosaic_grid.ir_types import Value

STATE_NAME = "the state of the random number generator"


def start(low: Lowering, body: ir.Operation) -> None:
    """Makes the generator's state, with seed 0, if a kernel uses it; to be called before its first step.

    Each core has one.
    """
    if _draws(body):
        low.memory.state[Root(STATE_NAME, (2,), _word(), Kind.REGISTER)] = build.constant(0, (2,), _word())


def state_root(low: Lowering) -> Root:
    """The root that `start` made."""
    found = [root for root in low.memory.state if root.name == STATE_NAME]
    assert found, "start was not called"
    return found[0]


def _draws(op: ir.Operation) -> bool:
    if op.name in RULES:
        return True
    blocks = [block for region in op.regions for block in region.blocks]
    return any(_draws(inner.operation) for block in blocks for inner in block.operations)


def _set_seed(low: Lowering, op: ir.Operation) -> None:
    """Mixes the seeds, two at a time, into a new key; the counter starts at 0."""
    word = _word()
    seeds = [build.reshape(_unsigned(value), (1,)) for value in low.operands(op)]
    if len(seeds) % 2:
        seeds.append(build.constant(0, (1,), seeds[0].type.element_type))
    key = build.constant(0, (1,), word)
    zero = build.constant(0, (1,), word)
    for first, second in zip(seeds[::2], seeds[1::2], strict=True):
        high = hlo.shift_left(build.convert(second, word), build.constant(32, (1,), word))
        mixed = hlo.xor(key, hlo.or_(build.convert(first, word), high))
        _, key = _draw(build.concatenate([mixed, zero], 0), build.tensor((1,), word))
    low.memory.state[state_root(low)] = build.concatenate([key, zero], 0)


def _random_bits(low: Lowering, op: ir.Operation) -> Value:
    kind = lowered(op.results[0].type)
    root = state_root(low)
    bits_kind = build.tensor(kind.shape, ir.IntegerType.get_unsigned(32))
    low.memory.state[root], bits = _draw(low.memory.state[root], bits_kind)
    return build.bitcast(bits, kind.element_type)


def _draw(state: Value, kind: ir.RankedTensorType) -> tuple[Value, Value]:
    """The state afterwards, and random bits."""
    algorithm = ir.Attribute.parse("#stablehlo<rng_algorithm THREE_FRY>")
    after, bits = hlo.rng_bit_generator(state.type, kind, algorithm, state)
    return after, bits


def _unsigned(value: Value) -> Value:
    return build.bitcast(value, ir.IntegerType.get_unsigned(32))


def _word() -> ir.Type:
    return ir.IntegerType.get_unsigned(64)


RULES: dict[str, Rule] = {
    "tpu.prng_random_bits": _random_bits,
    "tpu.prng_set_seed_32": _set_seed,
}
