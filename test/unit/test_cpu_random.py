"""The stand-in for the TPU's generator of random bits, and the rounding that uses such bits."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from cpu_harness import context, refusals, run
from jaxlib.mlir import ir

from mosaic_grid.context import unknown_location
from mosaic_grid.cpu import build
from mosaic_grid.cpu.arrays import DTYPES, Array
from mosaic_grid.cpu.execute import compile_program
from mosaic_grid.cpu.lowering import Lowering
from mosaic_grid.cpu.options import Options
from mosaic_grid.cpu.roots import Kind
from mosaic_grid.cpu.rules import RULES, random

BITS = "vector<64x128xi32>"


@functools.cache
def drawn(body: str, results: int) -> tuple[Array, ...]:
    """What a kernel's body draws: `results` vectors called %0, %1, and so on."""
    names = ", ".join(f"%{number}" for number in range(results))
    kinds = ", ".join([BITS] * results)
    text = f"func.func @f() -> ({kinds}) {{ {body} return {names} : {kinds} }}"
    with context(), unknown_location():
        source = ir.Module.parse(text)
        function = source.body.operations[0].operation
        block = function.regions[0].blocks[0]
        module, low = ir.Module.create(), Lowering(RULES, Options())
        with ir.InsertionPoint(module.body):
            main = ir.Operation.create("func.func", regions=1, attributes={"sym_name": ir.StringAttr.get("main")})
        with ir.InsertionPoint(main.regions[0].blocks.append()):
            random.start(low, function)
            values = [value for value in low.block(block) if isinstance(value, ir.Value)]
            ir.Operation.create("func.return", operands=values)
        assert not low.unsupported
        kind = ir.FunctionType.get([], [build.tensor((64, 128), build.i32_type())] * results)
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
        return tuple(compile_program(module.operation)())


def seeded(*seeds: int) -> str:
    """Sets the seed."""
    names = [f"%s{number}" for number in range(len(seeds))]
    constants = " ".join(f"{name} = arith.constant {seed} : i32" for name, seed in zip(names, seeds, strict=True))
    kinds = ", ".join(["i32"] * len(seeds))
    return f'{constants} "tpu.prng_set_seed_32"({", ".join(names)}) : ({kinds}) -> ()'


def draw(name: str) -> str:
    """Draws bits."""
    return f'{name} = "tpu.prng_random_bits"() : () -> {BITS}'


def first(*seeds: int) -> Array:
    """The first bits after a seed."""
    return drawn(f"{seeded(*seeds)} {draw('%0')}", 1)[0]


def test_seeds_determine_the_bits() -> None:
    """The same seeds give the same bits, and then others; so does each change, exchange or addition of a seed."""
    one, two = drawn(f"{seeded(1, 2)} {draw('%0')} {draw('%1')}", 2)
    again, once_more = drawn(f"{draw('%x')} {seeded(1, 2)} {draw('%0')} {draw('%1')}", 2)
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(two, once_more)
    different = [one, two, *(first(*seeds) for seeds in ((1,), (2, 1), (1, 3), (1, 2, 3), (1, 2, 3, 4), (-1, 2)))]
    assert len({array.tobytes() for array in different}) == len(different)


def test_bits_look_random() -> None:
    """Each bit is set about half the time, within four standard deviations, and hardly a number comes twice."""
    bits = first(7).view(np.uint32)
    shares = [float(((bits >> place) & 1).mean()) for place in range(32)]
    assert max(abs(share - 0.5) for share in shares) < 4 * 0.5 / np.sqrt(bits.size)
    assert len(np.unique(bits)) > bits.size - 10


def test_state_goes_through_a_loop() -> None:
    """Draws in a loop go on from one round to the next: the third of a loop is the third without one."""
    loop = f"""%lo = arith.constant 0 : i32 %hi = arith.constant 3 : i32 %by = arith.constant 1 : i32
      {seeded(5)} %z = arith.constant dense<0> : {BITS}
      %0 = scf.for %i = %lo to %hi step %by iter_args(%last = %z) -> ({BITS}) : i32 {{
        {draw("%b")} scf.yield %b : {BITS} }}
      {draw("%1")}"""
    third, fourth = drawn(loop, 2)
    plain = drawn(f"{seeded(5)} {draw('%x')} {draw('%y')} {draw('%0')} {draw('%1')}", 2)
    np.testing.assert_array_equal(third, plain[0])
    np.testing.assert_array_equal(fourth, plain[1])


def test_state_is_made_where_it_is_used() -> None:
    """Only a kernel that draws, be it in a nested region, has a state."""
    texts = ["", f"scf.execute_region {{ {draw('%0')} scf.yield }}"]
    counts = []
    for text in texts:
        with context(), unknown_location():
            source, target = ir.Module.parse(f"func.func @f() {{ {text} return }}"), ir.Module.create()
            low = Lowering(RULES, Options())
            with ir.InsertionPoint(target.body):
                random.start(low, source.body.operations[0].operation)
            counts.append([root.kind for root in low.memory.state])
    assert counts == [[], [Kind.REGISTER]]


def rounded(value: Array, bits: Array, elementwise: bool = False) -> Array:
    """f32 rounded at random to bf16."""
    size = value.size
    kinds = f"vector<{size}xf32>, vector<{size}xi32>"
    target = f"vector<{size}x{'i32' if elementwise else 'bf16'}>"
    name = "tpu.stochastic_convert_elementwise" if elementwise else "tpu.stochastic_convert"
    extra = "<{dst_type = bf16}>" if elementwise else ""
    arguments: list[Any] = [value, bits]
    (result,) = run(f"""func.func @f(%x: vector<{size}xf32>, %r: vector<{size}xi32>) -> {target} {{
      %0 = "{name}"(%x, %r) {extra} : ({kinds}) -> {target}
      return %0 : {target} }}""", *arguments)  # fmt: skip
    return result


def test_random_rounding_takes_a_neighbour() -> None:
    """Each number becomes one of the two next to it, the farther one the more rarely; what fits stays as it is."""
    value = np.full(4096, 1 + 2**-7 * 0.25, np.float32)
    bits = np.random.default_rng(0).integers(-(2**31), 2**31, 4096).astype(np.int32)
    for sign in (1, -1):
        found = rounded(sign * value, bits).astype(np.float32) * sign
        assert set(found.tolist()) == {1.0, 1 + 2**-7}
        assert abs(float((found > 1).mean()) - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4096)
    exact = np.array([1.5, -0.0, np.inf, -np.inf, np.nan, 3.0], np.float32)
    np.testing.assert_array_equal(rounded(exact, bits[:6]).astype(np.float32), exact)


def test_random_rounding_by_element() -> None:
    """The other form leaves the number in the low half of a word."""
    value = np.random.default_rng(1).standard_normal(64).astype(np.float32)
    bits = np.random.default_rng(2).integers(-(2**31), 2**31, 64).astype(np.int32)
    words = rounded(value, bits, elementwise=True)
    assert (words >> 16 == 0).all()
    np.testing.assert_array_equal(words.astype(np.uint16).view(DTYPES["bf16"]), rounded(value, bits))


def test_random_rounding_to_fewer_bits_is_refused() -> None:
    """How the TPU rounds to 8 bits isn't documented."""
    text = """func.func @f(%x: vector<8xf32>, %r: vector<8xi32>) {
      %0 = "tpu.stochastic_convert"(%x, %r) : (vector<8xf32>, vector<8xi32>) -> vector<8xf8E5M2>
      return }"""
    assert refusals(text) == ["tpu.stochastic_convert: random rounding to f8E5M2"]
