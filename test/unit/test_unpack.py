"""Unpacking and packing: exact inverses, over what JAX lowers and odd configurations, and every refusal's place."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pallas_programs as programs
import pytest
from jaxlib.mlir import ir
from releases import needs_0_12

from mosaic_grid.context import create_context
from mosaic_grid.diagnostics import place_of
from mosaic_grid.program import BACKEND_CONFIG, KERNEL, Program, ProgramError, custom_calls
from mosaic_grid.unpack import is_serialized, pack, unique_symbol, unpack
from mosaic_grid.write import write_text


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    """The tool's context, current."""
    with create_context() as current, ir.Location.unknown():
        yield current


def read(text: str) -> ir.Operation:
    """A program from its text."""
    return ir.Operation.parse(text, source_name="in.mlir").operation


def full(program: ir.Operation) -> str:
    """The program with its locations."""
    return write_text(program, debuginfo=True)


def check_round_trip(program: ir.Operation) -> ir.Operation:
    """Unpacks `program`, checks that packing and unpacking again change nothing, and returns it unpacked."""
    before = full(program)
    unpack(program)
    program.verify()
    unpacked = full(program)
    pack(program)
    program.verify()
    assert full(program) == before
    unpack(program)
    assert full(program) == unpacked
    return program


def edited(text: str, edit: Callable[[str], str]) -> ir.Operation:
    """The program after the first launch's backend_config was edited."""
    program = read(text)
    call = custom_calls(program)[0]
    config = ir.StringAttr(call.attributes[BACKEND_CONFIG]).value
    call.attributes[BACKEND_CONFIG] = ir.StringAttr.get(edit(config))
    return program


def with_section(change: Callable[[dict[str, Any]], None]) -> Callable[[str], str]:
    """An edit of the dictionary that describes the kernel."""

    def edit(config: str) -> str:
        parsed = json.loads(config)
        change(parsed["custom_call_config"])
        return json.dumps(parsed)

    return edit


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda f: f.__name__)
def test_round_trip(program: Callable[[Any, Any], Any]) -> None:
    """What JAX lowers comes back to the last character, locations included."""
    check_round_trip(read(programs.text_of(program)))


@pytest.mark.parametrize(
    ("program", "kernels", "launches"),
    [
        (programs.identical, ["double"], ["double", "double", "double"]),
        (programs.same_name, ["scale", "scale_0", "scale_1"], ["scale", "scale_0", "scale_1"]),
        (programs.named_like_a_function, ["main_0"], ["main_0"]),
        (programs.in_regions, ["looped", "left", "right", "inner"], ["looped", "left", "right", "inner"]),
    ],
)
def test_symbols(program: Callable[[Any, Any], Any], kernels: list[str], launches: list[str]) -> None:
    """Equal kernels are stored once, a taken name gets a number, launches are found in regions and functions."""
    module = read(programs.text_of(program))
    unpack(module)
    view = Program(module)
    assert sorted(view.kernels) == sorted(kernels)
    assert sorted(launch.kernel.symbol for launch in view.launches) == sorted(launches)


def test_names_come_back() -> None:
    """A kernel whose symbol had to change keeps the name its author gave it, and is packed under its own."""
    module = read(programs.text_of(programs.named_like_a_function))
    unpack(module)
    (kernel,) = Program(module).kernels.values()
    assert (kernel.symbol, kernel.name) == ("main_0", "main")


def test_locations_are_the_users() -> None:
    """Inside the kernel, with several regions too, ops say where they come from in the user's file."""
    module = read(programs.text_of(programs.with_regions))
    unpack(module)
    (kernel,) = Program(module).kernels.values()
    places: dict[str, Any] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        places.setdefault(op.name, place_of(op.location))
        return ir.WalkResult.ADVANCE

    kernel.module.walk(visit, ir.WalkOrder.PRE_ORDER)
    for name in ("scf.while", "scf.condition", "scf.if"):
        assert places[name].file.endswith("pallas_programs.py"), name


@needs_0_12("gives the arguments of a kernel no names")
def test_arguments_have_the_users_names() -> None:
    """What the user calls the kernel's arguments is in their locations."""
    module = read(programs.text_of(programs.with_regions))
    unpack(module)
    (kernel,) = Program(module).kernels.values()
    assert [str(argument.location).split('"')[1] for argument in kernel.arguments[2:]] == ["x_ref", "o_ref"]


@pytest.mark.parametrize(
    "edit",
    [
        with_section(lambda section: section.pop("debug_locations", None)),
        with_section(lambda section: section.update(unheard_of={"a": [1, 2.50, None]}, body=section.pop("body"))),
        lambda config: config.replace('": ', '"  :\n\t'),
        lambda config: config.replace(": ", ":").replace(", ", ","),
        lambda config: config[:-1] + ', "another_field": "\u00e9 \\u00e9 \\/ {\\"body\\": \\"\\"}"}',
    ],
    ids=["no-debug-locations", "unknown-fields", "wide", "narrow", "other-strings"],
)
def test_odd_configurations(edit: Callable[[str], str]) -> None:
    """Whatever the JSON looks like, and whether the locations are in it or not, it survives as it was."""
    check_round_trip(edited(programs.text_of(programs.one), edit))


def test_escapes_in_the_body() -> None:
    """A body that spells base64 with escapes of JSON is read; packed again it is plain, and the rest as it was."""

    def escape(config: str) -> str:
        return config.replace("=", "\\u003d").replace(", ", "  ,")

    program = edited(programs.text_of(programs.one), escape)
    unpack(program)
    pack(program)
    plain = edited(programs.text_of(programs.one), lambda config: config.replace(", ", "  ,"))
    assert full(program) == full(plain)


def test_mhlo() -> None:
    """Launches in the dialect before StableHLO are launches."""
    text = programs.text_of(programs.identical).replace("stablehlo.custom_call", "mhlo.custom_call")
    assert len(Program(check_round_trip(read(text))).launches) == 3


@needs_0_12("keeps the locations in the kernel")
def test_differing_only_in_locations() -> None:
    """Kernels whose locations differ are not the same: packing would give one of them the other's."""
    text = programs.text_of(programs.one)
    program = read(text)
    call = custom_calls(program)[0]
    twin = call.clone(ip=ir.InsertionPoint(call)).operation
    config = ir.StringAttr(call.attributes[BACKEND_CONFIG]).value
    twin.attributes[BACKEND_CONFIG] = ir.StringAttr.get(with_section(lambda s: s.pop("debug_locations"))(config))
    assert len(Program(check_round_trip(program)).kernels) == 2


def test_bare_kernel() -> None:
    """A bare kernel changes its form in place, and back."""
    program = read(programs.text_of(programs.one))
    unpack(program)
    (kernel,) = Program(program).kernels.values()
    bare = kernel.module.clone(ip=False).operation
    unpacked = full(bare)
    pack(bare)
    assert is_serialized(bare)
    check_round_trip(bare)
    assert full(bare) == unpacked


def test_unlaunched_kernel_stays() -> None:
    """Packing leaves a kernel that nothing launches where it is, and other custom calls alone."""
    program = read(programs.text_of(programs.one))
    unpack(program)
    call = Program(program).launches[0].op
    del call.attributes[KERNEL]
    call.attributes["call_target_name"] = ir.StringAttr.get("annotate")
    before = full(program)
    pack(program)
    assert full(program) == before


def test_unpacking_twice() -> None:
    """An unpacked program has nothing left to unpack; a half unpacked one gets the rest."""
    program = read(programs.text_of(programs.same_name))
    unpack(program)
    before = full(program)
    unpack(program)
    assert full(program) == before


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytecode(text: str) -> str:
    """The text as bytecode in base64."""
    from mosaic_grid.write import write_bytecode

    return _base64(write_bytecode(ir.Module.parse(text).operation))


def _set(key: str, value: Any) -> Callable[[str], str]:
    return with_section(lambda section: section.update({key: value}))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda config: config[:-1], "backend_config is not JSON: Expecting ',' delimiter"),
        (lambda config: "[" * 100_000, "backend_config is not JSON: "),
        (lambda config: "[]", "backend_config has no 'custom_call_config' object"),
        (lambda config: '{"custom_call_config": 1}', "backend_config has no 'custom_call_config' object"),
        (with_section(lambda s: s.pop("body")), "backend_config has no 'custom_call_config.body' string: there is no "),
        (_set("body", 1), "backend_config has no 'custom_call_config.body' string"),
        (_set("body", "TUz!"), "'custom_call_config.body' is not base64: "),
        (_set("body", "TU\u00e9"), "'custom_call_config.body' is not base64: "),
        (_set("debug_locations", 5), "'custom_call_config.debug_locations' is not base64: "),
        (_set("body", _base64(b"ML\xefRxx")), "the kernel of this call can't be read: "),
        (_set("body", ""), "the kernel of this call can't be read: "),
        (
            lambda config: _set("debug_locations", _bytecode("module {}"))(config),
            "the kernel of this call can't be read: debug_locations has no 'tpu.locs' list",
        ),
        (
            lambda config: _set("debug_locations", _bytecode("module attributes {tpu.locs = [loc(unknown)]} {}"))(
                config
            ),
            "the kernel of this call can't be read: debug_locations lists fewer locations than the kernel has",
        ),
        (
            lambda config: _set("debug_locations", _bytecode("module attributes {tpu.locs = [1 : i32]} {}"))(config),
            "the kernel of this call can't be read: debug_locations has something else than locations",
        ),
    ],
)
def test_refused_configurations(edit: Callable[[str], str], message: str) -> None:
    """A launch that can't be unpacked is an error at the user's line of that launch, in words of its own."""
    program = edited(programs.text_of(programs.one), edit)
    place = place_of(custom_calls(program)[0].location)
    with pytest.raises(ProgramError, match=f"error: {re.escape(message)}") as caught:
        unpack(program)
    assert place is not None
    assert caught.value.place == place
    assert place.file.endswith("pallas_programs.py")


def test_more_locations_than_ops() -> None:
    """A list of locations that goes on after the last op belongs to another kernel."""
    listed = ", ".join(["loc(unknown)"] * 1000)
    text = _bytecode(f"module attributes {{tpu.locs = [{listed}]}} {{}}")
    with pytest.raises(ProgramError, match="debug_locations lists more locations than the kernel has"):
        unpack(edited(programs.text_of(programs.one), _set("debug_locations", text)))


def test_newer_version() -> None:
    """A kernel of a version that this jaxlib doesn't read is refused at its launch, and names the version."""
    program = read(programs.text_of(programs.one))
    unpack(program)
    (kernel,) = Program(program).kernels.values()
    pack(bare := kernel.module.clone(ip=False).operation)
    bare.attributes["stable_mosaic.version"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 9999)
    with pytest.raises(ProgramError, match=r"this kernel can't be read: .*9999"):
        unpack(bare)


def test_no_config() -> None:
    """A launch without a configuration, or with one that is no string, is refused."""
    program = read(programs.text_of(programs.one))
    call = custom_calls(program)[0]
    del call.attributes[BACKEND_CONFIG]
    with pytest.raises(ProgramError, match="this tpu_custom_call has no backend_config string"):
        unpack(program)
    call.attributes[BACKEND_CONFIG] = ir.DictAttr.get({})
    with pytest.raises(ProgramError, match=r"'backend_config' is not what it should be: \{\}"):
        unpack(program)


def _unpacked() -> ir.Operation:
    program = read(programs.text_of(programs.one))
    unpack(program)
    return program


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        (lambda launch: launch.attributes.__delitem__(BACKEND_CONFIG), "this launch has no backend_config string"),
        (
            lambda launch: launch.attributes.__setitem__(BACKEND_CONFIG, ir.StringAttr.get("{")),
            "backend_config is not JSON",
        ),
        (
            lambda launch: launch.attributes.__setitem__(KERNEL, ir.FlatSymbolRefAttr.get("none")),
            "this launch names the kernel @none, which is not in the program\nnote: the kernels are @double",
        ),
        (
            lambda launch: launch.attributes.__setitem__(KERNEL, ir.StringAttr.get("double")),
            "'mosaic.kernel' is not what it should be: \"double\"",
        ),
    ],
)
def test_refused_launches(breaks: Callable[[ir.Operation], None], message: str) -> None:
    """A launch that can't be packed is an error at its place, and says what is wrong with it."""
    program = _unpacked()
    launch = Program(program).launches[0].op
    breaks(launch)
    with pytest.raises(ProgramError, match=re.escape(message)) as caught:
        pack(program)
    assert caught.value.place == place_of(launch.location)


def test_kernel_without_version() -> None:
    """A kernel that doesn't say its version can't be packed, in a program and by itself."""
    program = _unpacked()
    (kernel,) = Program(program).kernels.values()
    del kernel.module.attributes["stable_mosaic.version"]
    said = r"(the kernel @double|this kernel) has no stable_mosaic\.version, so it can't be packed"
    for module in (program, kernel.module.clone(ip=False).operation):
        with pytest.raises(ProgramError, match=said):
            pack(module)


def test_unique_symbol() -> None:
    """A free name is kept, and a taken one gets the first number that is free."""
    assert unique_symbol("a", set()) == "a"
    assert unique_symbol("a", {"a"}) == "a_0"
    assert unique_symbol("a", {"a", "a_0", "a_2"}) == "a_1"
