"""Opening dumps: every container, told by its content; every refusal, in its own words."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dump_samples as samples
import pytest
from jaxlib.mlir import ir
from releases import OLD

from mosaic_grid.containers import failures, text, untrusted
from mosaic_grid.context import create_context
from mosaic_grid.dump import Dump, Kind, read_dump, read_inputs
from mosaic_grid.errors import UserError
from mosaic_grid.program import custom_calls, is_kernel, symbol_of

CONTAINERS: dict[Kind, Callable[[], bytes]] = {
    Kind.TEXT: lambda: samples.text().encode(),
    Kind.BYTECODE: samples.bytecode,
    Kind.PORTABLE: samples.portable,
    Kind.EXPORTED: samples.exported,
}


@pytest.fixture(scope="module")
def context() -> ir.Context:
    """For tests that read something several times."""
    return create_context()


def opened(data: bytes | str, name: str = "dump") -> Dump:
    """A dump of one input."""
    return read_dump(data.encode() if isinstance(data, str) else data, name, create_context())


def refused(data: bytes | str) -> UserError:
    """The refusal of one input."""
    with pytest.raises(UserError) as caught:
        opened(data)
    return caught.value


def top(module: ir.Operation) -> list[str]:
    """The symbols of the ops in a module."""
    return [symbol_of(op.operation) or "" for op in module.regions[0].blocks[0]]


# --- every container ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONTAINERS, ids=lambda kind: kind.name.lower())
def test_an_outer_program_opens_from_every_container(kind: Kind) -> None:
    """The kind is told, and the launch with its packed kernel is in the module."""
    dump = opened(CONTAINERS[kind]())
    assert dump.kind is kind
    assert dump.module.name == "builtin.module"
    assert len(custom_calls(dump.module)) == 1
    assert (dump.text is not None) == (kind is Kind.TEXT)
    assert dump.notes == ()


@pytest.mark.parametrize("kind", CONTAINERS, ids=lambda kind: kind.name.lower())
def test_gzip_of_any_container_opens(kind: Kind) -> None:
    """Compressed once or twice, a dump is what it was."""
    once = gzip.compress(CONTAINERS[kind]())
    assert opened(once).kind is kind
    assert opened(gzip.compress(once, mtime=0)).kind is kind


@pytest.mark.skipif(not importlib.util.find_spec("flatbuffers"), reason="jax.export serializes with flatbuffers only")
def test_what_jax_export_serializes_opens() -> None:
    """The real artifact, with all its other fields."""
    import jax

    exported = jax.export.export(jax.jit(samples._double()), platforms=["tpu"])(*samples._avals())
    assert opened(bytes(exported.serialize())).kind is Kind.EXPORTED


def test_a_bare_kernel_opens_from_bytecode_and_from_text() -> None:
    """A Mosaic module needs no program around it; its `stable_mosaic` form stays as it is."""
    dump = opened(samples.body())
    assert dump.kind is Kind.BYTECODE
    assert is_kernel(dump.module)
    again = opened(str(dump.module))
    assert again.kind is Kind.TEXT
    assert is_kernel(again.module)


def test_opening_an_export_needs_no_jax() -> None:
    """Neither JAX nor flatbuffers is imported for a serialized artifact."""
    code = (
        "import sys; from mosaic_grid.context import create_context; from mosaic_grid.dump import read_dump\n"
        "print(read_dump(sys.stdin.buffer.read(), 'x', create_context()).kind.name)\n"
        "assert not {'jax', 'flatbuffers'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], input=samples.exported(), capture_output=True, env=environment, check=True
    )
    assert ran.stdout == b"EXPORTED\n"


# --- MLIR text ---------------------------------------------------------------------------------------------------


def test_several_ops_get_a_module_and_keep_their_places() -> None:
    """As in mlir-opt; locations say the user's file, on the lines and columns where the ops stand."""
    module = opened("func.func @f(%a: i32) { return }\n  func.func @g() { return }\n", "user.mlir").module
    assert top(module) == ["f", "g"]
    first, second = (op.operation for op in module.regions[0].blocks[0])
    assert str(second.location) == 'loc("user.mlir":2:3)'
    assert str(first.regions[0].blocks[0].arguments[0].location) == 'loc("user.mlir":1:14)'


def test_a_location_that_the_text_gives_stays_in_an_implicit_module() -> None:
    """Only what MLIR filled in is renamed."""
    module = opened('func.func @f() { return } loc("a.py":7:8)\nfunc.func @g() { return }', "user.mlir").module
    assert str(module.regions[0].blocks[0].operations[0].location) == 'loc("a.py":7:8)'


def test_one_op_that_is_no_module_gets_one() -> None:
    """The op keeps its place."""
    module = opened("\nfunc.func @f() { return }", "user.mlir").module
    assert module.name == "builtin.module"
    assert str(module.regions[0].blocks[0].operations[0].location) == 'loc("user.mlir":2:1)'


def test_text_of_comments_is_an_empty_program() -> None:
    """As in mlir-opt: a test file may hold nothing else."""
    assert top(opened("// RUN: true\n").module) == []


@pytest.mark.parametrize("change", [lambda s: s.replace("\n", "\r\n"), lambda s: "\ufeff" + s], ids=["crlf", "bom"])
def test_text_from_other_systems_opens(change: Callable[[str], str]) -> None:
    """Windows line ends and a byte order mark change nothing."""
    assert top(opened(change("module {\n  func.func @f() {\n    return\n  }\n}\n")).module) == ["f"]


def test_a_syntax_error_points_into_the_users_file() -> None:
    """MLIR's message at the file's name, line and column."""
    with pytest.raises(UserError, match="custom op 'retun' is unknown") as caught:
        opened("module {\n  func.func @f() {\n    retun\n  }\n}\n", "user.mlir")
    assert str(caught.value.place) == "user.mlir:3:5"


def test_an_invalid_op_in_an_implicit_module_points_into_the_users_file() -> None:
    """The second way of parsing must not lose the name, and its note is the op."""
    source = 'func.func @f() { return }\nfunc.func @g() -> i32 {\n  "func.return"() : () -> ()\n}\n'
    with pytest.raises(UserError) as caught:
        opened(source, "user.mlir")
    assert str(caught.value.place) == "user.mlir:3:3"
    assert caught.value.message == "'func.return' op has 0 operands, but enclosing function (@g) returns 1"
    assert caught.value.notes[0].startswith("see current operation")


def test_deep_nesting_is_refused_before_it_overflows_the_stack() -> None:
    """The deepest allowed nesting of the costliest construct is parsed; one more is refused."""
    deepest = text.MAX_NESTING
    assert opened("module {" * deepest + "}" * deepest).module.name == "builtin.module"
    error = refused("module {" * (deepest + 1) + "}" * (deepest + 1))
    assert error.message == "brackets nest more than 1000 deep, which MLIR's parser does not survive"


def test_brackets_in_strings_and_comments_do_not_nest() -> None:
    """Two thousand open brackets that open nothing; nor does the minus in `<-1>` keep one open."""
    opened(f'module attributes {{a.b = "{"[(" * 1000}"}} {{}} // {"{<" * 1000}\n')
    opened(f"module attributes {{a.b = [{', '.join(['array<i64: -1>', 'dense<-1> : tensor<i8>'] * 1000)}]}} {{}}")


def test_a_closed_dialect_is_named() -> None:
    """libtpu's last stages print ops in a syntax that only libtpu parses."""
    error = refused("module {\n  %0 = llo.constant {value = 0 : i32} : i32\n}")
    assert error.message == (
        "this is a libtpu stage dump in the dialect 'llo', which is not open: "
        "take one of an earlier stage, before 'relayout' and 'lower-to'"
    )
    assert str(error.place) == "dump:2:8"


def test_a_closed_dialect_in_generic_form_is_named_too() -> None:
    """Such text parses, but a function without a terminator that is known is refused for a misleading reason."""
    error = refused('func.func @f() {\n  "memref.alloca_scope"() ({\n "sc_tpu.x"() : () -> () }) : () -> ()\n return }')
    assert "in the dialect 'sc_tpu', which is not open" in error.message


def test_a_closed_attribute_alone_is_no_obstacle() -> None:
    """The stages in between carry `#mosaic_tc.vpad` attributes and are read."""
    assert top(opened('func.func @f() attributes {in_layout = #mosaic_tc.vpad<"none">} { return }').module) == ["f"]


def test_a_foreign_dialect_in_its_own_syntax_is_explained() -> None:
    """Not libtpu's, but as unreadable: the generic form helps."""
    assert refused("module {\n  toy.print %0\n}").message == (
        "'toy.print' is of the dialect 'toy', which is not known here, and is printed in its own syntax: "
        "print the dump with --mlir-print-op-generic"
    )


def test_unregistered_ops_are_refused_by_default(context: ir.Context) -> None:
    """As in mlir-opt, at the op."""
    module = read_dump(b'module {\n  "toy.print"() : () -> ()\n}', "user.mlir", context).module
    with pytest.raises(UserError) as caught:
        untrusted.check_registered(module, "user.mlir")
    assert str(caught.value) == (
        "user.mlir:2:3: error: 'toy.print' is of an unregistered dialect; "
        "if that is intended, pass --allow-unregistered-dialect"
    )


def test_portable_kernels_and_our_attributes_are_not_unregistered(context: ir.Context) -> None:
    """`stable_mosaic` is known by name only, `mosaic.*` attributes are ours."""
    source = b'module attributes {mosaic.x = 1 : i32} {\n  "stable_mosaic.func.return"() : () -> ()\n}'
    assert untrusted.first_unregistered_op(read_dump(source, "x", context).module) is None


# --- what is no dump ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the input is empty"),
        (b" \n\t", "the input is blank"),
        ("module {}".encode("utf-16"), "this is UTF-16 text: convert it to UTF-8"),
        ("module {}".encode("utf-32"), "this is UTF-32 text: convert it to UTF-8"),
        (b"PK\x03\x04rest", "this looks like a zip archive, not like a dump of a program"),
        (b"\x80\x04\x95", "this looks like a Python pickle, not like a dump of a program"),
        (bytes(range(256)), "this is binary data of an unknown kind, or damaged"),
        (b"# Title\ntext", "this is text, but neither MLIR nor HLO: it begins with '# Title'"),
        (b"module { // caf\xe9", "byte 0xe9 is not UTF-8 text: the input is damaged, or in another encoding"),
        (b"\x1f\x8b\x08\x00", "this gzip data is truncated or corrupted: "),
        (gzip.compress(b"module {}", mtime=0)[:-6], "this gzip data is truncated or corrupted: "),
        (gzip.compress(b"", mtime=0), "the input is empty"),
    ],
)
def test_what_is_no_dump_is_refused_in_words(data: bytes, message: str) -> None:
    """What it looks like, at the input's name."""
    error = refused(data)
    assert error.message.startswith(message)
    assert error.place is not None
    assert error.place.file == "dump"


def test_a_refusal_lists_what_is_accepted() -> None:
    """The next step for a user who gave the wrong file."""
    assert refused(b"").notes == (
        "accepted are MLIR text and bytecode, StableHLO portable artifacts, serialized jax.export artifacts, HLO text, "
        "and any of these in gzip",
    )


def test_the_first_bad_byte_is_located() -> None:
    """Line and column count from 1."""
    assert str(refused(b"module {\n  \xff\n}").place) == "dump:2:3"


def test_truncated_bytecode_is_refused() -> None:
    """With MLIR's reason."""
    assert refused(samples.bytecode()[:500]).message.startswith("this MLIR bytecode can't be read: attempting to parse")


def test_truncated_portable_artifact_is_refused() -> None:
    """With MLIR's reason, which the bindings themselves keep to the error stream."""
    error = refused(samples.portable()[:500])
    assert error.message.startswith("this StableHLO portable artifact can't be read: attempting to parse")


def test_an_unreadable_portable_artifact_names_both_versions() -> None:
    """A newer JAX may have written it."""
    (versions,) = refused(samples.portable().replace(b"StableHLO_v1", b"StableHLO_v9")[:500]).notes
    assert re.fullmatch(r"it was written by StableHLO_v9\.\d+\.\d+, and jaxlib reads up to v\d+\.\d+\.\d+", versions)


def test_a_portable_artifact_of_another_producer_is_told_by_its_ops() -> None:
    """The producer's name is no proof: what holds VHLO is converted."""
    dump = opened(samples.portable().replace(b"StableHLO_v", b"SomeoneElse"))
    assert len(custom_calls(dump.module)) == 1


def test_truncated_export_is_refused() -> None:
    """Told from its table, which stands in front."""
    error = refused(samples.exported()[:200])
    assert error.message == "this jax.export artifact is truncated: a part of its program is missing"


def test_a_string_that_is_no_text_is_a_damaged_dump() -> None:
    """The bindings raise a bare RuntimeError for it."""
    module = opened(r'"stablehlo.custom_call"() {call_target_name = "tpu\FF"} : () -> ()').module
    with pytest.raises(UserError, match="a name or string in this program is not UTF-8 text: the dump is damaged"):
        untrusted.check_kernels(module, "dump")
    with pytest.raises(RuntimeError, match="ours"), failures.readable_strings("dump"):
        raise RuntimeError("ours")


def test_an_op_whose_name_is_no_text_is_found_in_a_child() -> None:
    """The bindings abort when asked for such a name."""
    buffer = io.BytesIO()
    opened('"stable_mosaic.abc"() : () -> ()').module.write_bytecode(buffer)
    error = refused(buffer.getvalue().replace(b"abc", b"a\xffc"))
    assert error.message == "the bytecode crashes MLIR's reader: truncated or corrupted"


def test_an_op_whose_name_is_spelt_in_odd_escapes_is_refused() -> None:
    """Text can do it as well; in a string attribute the same bytes are fine."""
    message = "the name of an op in this text is not UTF-8, as its escapes (\\XX) spell it"
    assert refused(r'"stable_mosaic.a\FF"() : () -> ()').message == message
    opened(r'"stable_mosaic.a"() {proto = "\0A\FF"} : () -> ()')


# --- inputs ------------------------------------------------------------------------------------------------------


def test_inputs_are_files_standard_input_and_directories(tmp_path: Path, context: ir.Context) -> None:
    """Extensions mean nothing; a directory is read in the order of its names, without hidden files."""
    (tmp_path / "b.png").write_bytes(samples.bytecode())
    (tmp_path / "a.txt").write_text("module @a {}")
    (tmp_path / ".hidden").write_text("module @hidden {}")
    (tmp_path / "sub").mkdir()
    dumps = read_inputs(["-", str(tmp_path), str(tmp_path / "b.png")], io.BytesIO(b"module @in {}"), context)
    assert [(os.path.basename(d.name), d.kind) for d in dumps] == [
        ("<stdin>", Kind.TEXT),
        ("a.txt", Kind.TEXT),
        ("b.png", Kind.BYTECODE),
        ("b.png", Kind.BYTECODE),
    ]


def test_a_directory_skips_what_is_no_dump_and_says_so(tmp_path: Path, context: ir.Context) -> None:
    """A README, and a stage that only libtpu reads."""
    (tmp_path / "README.md").write_text("# Dumps\n")
    (tmp_path / "a.mlir").write_text("module {}")
    (tmp_path / "llo.txt").write_text("module {\n %0 = llo.constant {value = 0 : i32} : i32\n}")
    (dump,) = read_inputs([str(tmp_path)], io.BytesIO(), context)
    notes = [line for note in dump.notes for line in note.lines()]
    assert notes[0] == (
        f"{tmp_path}/README.md:1:1: note: skipped: this is text, but neither MLIR nor HLO: it begins with '# Dumps'"
    )
    assert "llo.txt:2:7: note: skipped: this is a libtpu stage dump in the dialect 'llo'" in notes[1]


def test_a_broken_dump_in_a_directory_is_an_error(tmp_path: Path, context: ir.Context) -> None:
    """It is a dump, so leaving it out would hide something."""
    (tmp_path / "a.mlir").write_text("module {}")
    (tmp_path / "b.mlir").write_text("module {")
    with pytest.raises(UserError, match=r"custom op|expected"):
        read_inputs([str(tmp_path)], io.BytesIO(), context)


def test_a_directory_without_dumps_is_an_error(tmp_path: Path, context: ir.Context) -> None:
    """With the reason for each file."""
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(UserError) as caught:
        read_inputs([str(tmp_path)], io.BytesIO(), context)
    assert caught.value.message == "no file in this directory is a dump that can be read"
    assert caught.value.notes == (f"{tmp_path}/x: the input is empty",)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.mlir", "can't read the input: no such file or directory"),
        ("a\0b", "can't read the input: no file can have this name"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(path: str, message: str, context: ir.Context) -> None:
    """The system's reason."""
    with pytest.raises(UserError) as caught:
        read_inputs([path], io.BytesIO(), context)
    assert caught.value.message == message


# --- HLO text ----------------------------------------------------------------------------------------------------


def test_the_kernels_of_hlo_text_are_read() -> None:
    """A module of kernels, and a note that the rest is not there."""
    dump = opened(samples.hlo(), "user.hlo")
    assert dump.kind is Kind.HLO
    assert symbol_of(dump.module) == "jit_f"
    assert top(dump.module) == ["double"]
    kernel = dump.module.regions[0].blocks[0].operations[0].operation
    assert "stable_mosaic.version" in kernel.attributes
    assert kernel.regions[0].blocks[0].operations[0].operation.name == "func.func"
    assert [line for note in dump.notes for line in note.lines()] == [
        "user.hlo: note: HLO text: 1 kernel read; the computation around is not turned back into StableHLO"
    ]


@pytest.mark.parametrize("separator", [":", ": "])
def test_both_spellings_of_the_configuration_are_read(separator: str) -> None:
    """XLA prints it in one way before, and in another after compilation."""
    assert top(opened(samples.hlo_of(samples.hlo_config(separator))).module) == ["double"]


def test_a_configuration_in_a_quoted_string_is_read() -> None:
    """Older printers escape it."""
    quoted = json.dumps(samples.hlo_config())
    assert top(opened(samples.hlo_of(quoted)).module) == ["double"]


def test_strings_in_hlo_may_hold_anything() -> None:
    """Line breaks, brackets, escaped quotes, even something that looks like a launch."""
    metadata = 'op_name="a\n  %x = f32[] custom-call(), custom_call_target=\\"tpu_custom_call\\" {(["'
    assert top(opened(samples.hlo_of(samples.hlo_config(), metadata)).module) == ["double"]


def test_a_kernel_launched_twice_is_read_once() -> None:
    """In two computations, with one body."""
    launch = samples.hlo_of(samples.hlo_config()).split("ENTRY")[1]
    source = samples.hlo_of(samples.hlo_config()) + f"\n%other{launch.removeprefix(' %main')}"
    assert top(opened(source).module) == ["double"]


def test_kernels_of_one_name_are_told_apart() -> None:
    """Another body with the same name gets another symbol."""
    module = opened(samples.body()).module
    with module.context:
        module.attributes["user.mark"] = ir.UnitAttr.get()
    buffer = io.BytesIO()
    module.write_bytecode(buffer, desired_version=0)
    other = base64.b64encode(buffer.getvalue()).decode("ascii")
    launch = samples.hlo_of(f'{{"custom_call_config":{{"body":"{other}"}}}}').split("ENTRY")[1]
    assert top(opened(samples.hlo() + f"\n%other{launch.removeprefix(' %main')}").module) == ["double", "double_0"]


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        (
            "HloModule f\n\nENTRY %m (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n",
            "this HLO module launches no Mosaic kernel: it has no tpu_custom_call",
            0,
        ),
        (
            samples.hlo_of("{}").replace(", backend_config={}", ""),
            "the tpu_custom_call %call.1 has no backend_config, so there is no kernel in it",
            5,
        ),
        (
            samples.hlo_of("{}"),
            "the kernel of %call.1 can't be read: backend_config has no 'custom_call_config' object",
            5,
        ),
        (
            samples.hlo_of('{"custom_call_config": {"body": "%%"}}'),
            "the kernel of %call.1 can't be read: 'custom_call_config.body' is not base64: Only base64 data is allowed",
            5,
        ),
        (
            samples.hlo_of('{"custom_call_config": {"body": ""}}'),
            "the kernel of %call.1 can't be read: it is not MLIR bytecode",
            5,
        ),
        (
            samples.hlo_of('{"custom_call_config": {"body": "TUzvUg=="}}'),
            "the kernel of %call.1 can't be read: attempting to parse",
            5,
        ),
        (samples.hlo_of("{}")[:-3], "this HLO text is truncated: it ends inside a computation", 5),
        (samples.hlo_of('{"a'), "this HLO text is truncated: a string never ends", 5),
        ("HloModule f\n}\n", "this HLO text is damaged: a bracket closes nothing", 2),
    ],
)
def test_damaged_hlo_is_refused_where_it_is_damaged(source: str, message: str, line: int) -> None:
    """The instruction, its line and the reason."""
    error = refused(source)
    assert error.message.startswith(message)
    assert error.place is not None
    assert error.place.line == line


# --- what libtpu itself writes -----------------------------------------------------------------------------------

COMPILE = """
import sys
import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
import dump_samples

topology = topologies.get_topology_desc(platform="tpu", topology_name="v5p:2x2x1")
sharding = SingleDeviceSharding(topology.devices[0])
avals = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in dump_samples._avals()]
compiled = jax.jit(dump_samples._double()).lower(*avals).compile()
open(sys.argv[1], "w").write(compiled.as_text())
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the compiled program's HLO, and libtpu's dumps of its stages beside it."""
    directory = tmp_path_factory.mktemp("libtpu")
    stages = directory / "stages"
    stages.mkdir()
    environment = {
        **os.environ,
        "LIBTPU_INIT_ARGS": f"--xla_mosaic_dump_to={stages}",
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
    }
    command = [sys.executable, "-c", COMPILE, str(directory / "compiled.hlo")]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    return directory


@pytest.mark.libtpu
def test_the_hlo_of_a_compiled_program_is_read(compiled: Path, context: ir.Context) -> None:
    """`compiled.as_text()`: the kernel with its source locations."""
    (dump,) = read_inputs([str(compiled / "compiled.hlo")], io.BytesIO(), context)
    assert top(dump.module) == ["double"]
    assert "dump_samples.py" in str(dump.module.get_asm(enable_debug_info=True))


@pytest.mark.libtpu
def test_libtpu_stage_dumps_are_read_as_far_as_they_are_open(compiled: Path, context: ir.Context) -> None:
    """A directory of them: the first thirteen stages at least are kernels, and the closed ones are named in notes."""
    stages = compiled / "stages"
    dumps = read_inputs([str(stages)], io.BytesIO(), context)
    read = {int(re.findall(r"-(\d{4})-", d.name)[0]) for d in dumps}
    assert set(range(13)) <= read
    assert all(is_kernel(d.module) for d in dumps)
    skipped = " ".join(note.message for note in dumps[0].notes)
    for dialect in ("llo",) if OLD else ("llo", "mosaic_tc"):
        assert f"dialect '{dialect}', which is not open" in skipped
    assert len(dumps) + len(dumps[0].notes) == len(list(stages.iterdir()))
