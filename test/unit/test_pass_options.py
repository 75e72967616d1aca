"""Pass options: text to dataclass and back, and every message a bad option can give."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir

from mosaic_grid.errors import Place, UserError
from mosaic_grid.pass_options import option_type, options_to_text, parse_options, pass_to_text
from mosaic_grid.passbase import Kind, Pass, option
from mosaic_grid.session import Session


@dataclasses.dataclass(frozen=True)
class Sample(Pass):
    """Has an option of every type."""

    name: ClassVar[str] = "sample"
    kind: ClassVar[Kind] = "rewrite"

    fast: bool = option(False, "a flag")
    safe: bool = option(True, "a flag that is on")
    cores: int = dataclasses.field(default=2, metadata={"help": "how many", "expects": "an integer >= 1"})
    min_share: int | None = option(None, "the least share")
    label: str = option("x", "a text")
    mode: Literal["split", "join"] = option("split", "what to do")
    sizes: tuple[int, ...] = option((1, 2), "some numbers")
    names: tuple[str, ...] = option((), "some texts")

    def __post_init__(self) -> None:
        if self.cores < 1:
            raise ValueError(f"cores must be at least 1, got {self.cores}")

    def run(self, program: ir.Operation, session: Session) -> None:
        """Does nothing."""


@dataclasses.dataclass(frozen=True)
class NoOptions(Pass):
    """A pass without options."""

    name: ClassVar[str] = "no-options"
    kind: ClassVar[Kind] = "check"

    def run(self, program: ir.Operation, session: Session) -> None:
        """Does nothing."""


def at(offset: int) -> Place:
    """A place that shows the offset."""
    return Place("options", 1, offset + 1)


def parse(text: str) -> Pass:
    """The sample pass with these options."""
    return parse_options(Sample, text, at)


samples = st.builds(
    Sample,
    fast=st.booleans(),
    safe=st.booleans(),
    cores=st.integers(min_value=1),
    min_share=st.none() | st.integers(),
    label=st.text(),
    mode=st.sampled_from(("split", "join")),
    sizes=st.lists(st.integers()).map(tuple),
    names=st.lists(st.text()).map(tuple),
)


@given(samples)
def test_round_trip(sample: Sample) -> None:
    """A pass printed and parsed is the same pass, whatever its texts hold."""
    assert parse(options_to_text(sample)) == sample


def test_defaults_are_not_printed() -> None:
    """Only what differs from the defaults is printed, and nothing at all gives no braces."""
    assert pass_to_text(Sample()) == "sample"
    assert pass_to_text(Sample(cores=4, sizes=(), names=("a", "b c", ""))) == 'sample{cores=4 sizes= names=a,"b c",""}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Sample()),
        ("fast", Sample(fast=True)),
        ("fast safe=false", Sample(fast=True, safe=False)),
        ("  cores=3\n min-share=7 ", Sample(cores=3, min_share=7)),
        ("min-share=none", Sample()),
        ("cores='3' fast=\"1\"", Sample(cores=3, fast=True)),
        ("sizes=1,-2,+3", Sample(sizes=(1, -2, 3))),
        ("label='a \"b' names='x,y',z", Sample(label='a "b', names=("x,y", "z"))),
        (r'label="say \"hi\" \\"', Sample(label='say "hi" \\')),
        ("label=a=b,c", Sample(label="a=b,c")),
        ("mode=join", Sample(mode="join")),
    ],
)
def test_spellings(text: str, expected: Sample) -> None:
    """Each way of writing options that is documented is read."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("coers=2", 1, "pass 'sample' has no option 'coers'; did you mean 'cores'?"),
        ("fast zzz=2", 6, "pass 'sample' has no option 'zzz'"),
        ("min_share=2", 1, "pass 'sample' has no option 'min_share'; did you mean 'min-share'?"),
        ("cores=two", 1, "option 'cores' of pass 'sample' expects an integer >= 1, got 'two'"),
        ("cores=", 1, "option 'cores' of pass 'sample' expects an integer >= 1, got ''"),
        ("cores=1_0", 1, "option 'cores' of pass 'sample' expects an integer >= 1, got '1_0'"),
        ("cores=٣", 1, "option 'cores' of pass 'sample' expects an integer >= 1, got '٣'"),
        ("cores", 1, "option 'cores' of pass 'sample' needs a value: cores=..., an integer >= 1"),
        ("min-share=all", 1, "option 'min-share' of pass 'sample' expects an integer or none, got 'all'"),
        ("fast=maybe", 1, "option 'fast' of pass 'sample' expects true or false, got 'maybe'"),
        ("mode=halve", 1, "option 'mode' of pass 'sample' expects one of 'split', 'join', got 'halve'"),
        ("sizes=1,x", 1, "option 'sizes' of pass 'sample' expects integers separated by commas, got '1,x'"),
        ("sizes=1,", 1, "option 'sizes' of pass 'sample' expects integers separated by commas, got '1,'"),
        ("fast cores=2 cores=3", 14, "option 'cores' of pass 'sample' is given twice"),
        ("cores=0", 1, "pass 'sample': cores must be at least 1, got 0"),
        ("label='a", 1, "expected an option of pass 'sample' as name=value, got 'label='a'"),
        ("fast =true", 6, "expected an option of pass 'sample' as name=value, got '=true'"),
    ],
)
def test_messages(text: str, column: int, message: str) -> None:
    """Every mistake in an option is one exact message at its column."""
    with pytest.raises(UserError) as caught:
        parse(text)
    assert (caught.value.message, caught.value.place) == (message, at(column - 1))


def test_unknown_option_lists_the_options() -> None:
    """An unknown option is answered with those that there are."""
    with pytest.raises(UserError) as caught:
        parse("zzz")
    assert caught.value.notes == ("its options are fast, safe, cores, min-share, label, mode, sizes, names",)
    with pytest.raises(UserError, match="pass 'no-options' has no option 'zzz'") as caught:
        parse_options(NoOptions, "zzz", at)
    assert caught.value.notes == ("it has no options",)


def test_option_types_in_words() -> None:
    """The words for `--help` are those of the messages, the pass's own first."""
    fields = {field.name: field for field in dataclasses.fields(Sample)}
    assert option_type(Sample, fields["cores"]) == "an integer >= 1"
    assert option_type(Sample, fields["mode"]) == "one of 'split', 'join'"


def test_option_of_a_type_that_is_not_supported() -> None:
    """A pass with an option of another type is a mistake in that pass."""

    @dataclasses.dataclass(frozen=True)
    class Odd(NoOptions):
        ratio: float = option(0.5, "a number")

    with pytest.raises(TypeError, match="an option cannot be of type <class 'float'>"):
        parse_options(Odd, "ratio=1", at)


@given(st.text())
def test_any_text_gives_a_pass_or_a_user_error(text: str) -> None:
    """No text makes the parser fail in another way."""
    try:
        result: Pass | str = parse(text)
    except UserError as error:
        result = error.message
    assert result
