r"""`--verify-diagnostics`: comments that say which diagnostics a text must produce, and no others.

The comments are MLIR's, with clang's repeat counts:

    expected-error {{text}}                 on this line; also -warning, -remark, -note
    expected-error@+1 {{text}}              @-N, @above and @below: the nearest line without such comments
    expected-error@unknown {{text}}         a diagnostic without a place
    expected-note@"kernel.py":31 {{text}}   in another file, by its name or the end of its path (an extension)
    expected-warning 2 {{text}}             twice; 2+ at least twice
    expected-error {{at {{[0-9]+}} of 9}}   inner braces hold a Python regular expression; -re may say so, as in MLIR

The text is a part of the message, whose end is the diagnostic's name: `on 1 of its 2 cores [idle-cores]`.
A note without a place of its own is expected at its diagnostic's, as MLIR has it. Every diagnostic, notes included, is
matched by exactly one comment.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from mosaic_grid.diagnostics import Diagnostic, Severity
from mosaic_grid.errors import Place

_HEADER = re.compile(
    r"""(?<![\w-])expected-(?P<severity>error|warning|remark|note)(?:-re)?\ *
        (?:@(?:(?P<offset>[+-][0-9]+)|(?P<near>above|below|unknown)|"(?P<file>[^"]+)":(?P<line>[0-9]+)))?\ *
        (?:(?P<count>[0-9]+)(?P<more>\+)?)?\ *\{\{""",
    re.VERBOSE,
)
_WORD = re.compile(r"(?<![\w-])([A-Za-z]+[-_][A-Za-z]+)(?:-re)?(?![\w-])( *(?:@|[0-9]+\+? *\{\{|\{\{))?")
_VALID = tuple(f"expected-{severity.value}" for severity in Severity)
_USAGE = 'write name {{text}}, with @+N, @-N, @above, @below, @unknown or @"file":N before the braces if need be'


@dataclasses.dataclass(frozen=True)
class Expected:
    """One comment. `at` is where its diagnostics must be, `None` for no place at all; `place` is its own."""

    severity: Severity
    text: str
    pattern: re.Pattern[str]
    at: Place | None
    place: Place
    count: int = 1
    or_more: bool = False


@dataclasses.dataclass(frozen=True)
class _Seen:
    """One diagnostic or note, at the place that counts for matching."""

    diagnostic: Diagnostic
    place: Place | None

    @property
    def text(self) -> str:
        name = self.diagnostic.name
        return f"{self.diagnostic.message} [{name}]" if name else self.diagnostic.message


def check(source_text: str, source_name: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The errors by which `diagnostics` differ from what the comments in the source expect; none if they agree.

    `source_name` is the file name that places in this source carry. Comments that cannot be read are errors too.
    """
    expected, errors = scan(source_text, source_name)
    seen = [each for diagnostic in diagnostics for each in _flatten(diagnostic)]
    owners, unmatched = _assign(seen, expected)
    for each in unmatched:
        message = f"unexpected {each.diagnostic.severity.value}: {each.diagnostic.message}"
        errors.append(Diagnostic(Severity.ERROR, message, each.place, each.diagnostic.name))
    for index, wanted in enumerate(expected):
        got = owners.count(index)
        if got < wanted.count:
            how = f"produced {got} of {wanted.count} times" if got else "not produced"
            message = f'expected {wanted.severity.value} "{wanted.text}" was {how}'
            errors.append(Diagnostic(Severity.ERROR, message, wanted.place))
    return errors


def scan(source_text: str, source_name: str) -> tuple[list[Expected], list[Diagnostic]]:
    """The comments in a text, and an error for each that is malformed or misspelt."""
    lines = source_text.split("\n")
    plain = [number for number, line in enumerate(lines, 1) if not _HEADER.search(line)]
    expected: list[Expected] = []
    errors: list[Diagnostic] = []
    for number, line in enumerate(lines, 1):
        position = 0
        headers = list(_HEADER.finditer(line))
        ends = [*(header.start() for header in headers[1:]), len(line)]
        for header, end in zip(headers, ends, strict=False):
            place = Place(source_name, number, header.start() + 1)
            errors.extend(_suspicious(line, position, header.start(), source_name, number))
            close = line.rfind("}}", header.end(), end)
            position = close + 2 if close >= 0 else end
            try:
                if close < 0:
                    raise ValueError("has no closing '}}'")
                expected.append(_expected(header, line[header.end() : close], place, plain))
            except ValueError as problem:
                name = header[0].split("{")[0].strip()
                errors.append(Diagnostic(Severity.ERROR, f"'{name}' {problem}", place))
        errors.extend(_suspicious(line, position, len(line), source_name, number))
    return expected, errors


def _expected(header: re.Match[str], text: str, place: Place, plain: Sequence[int]) -> Expected:
    """Raises `ValueError` with what is wrong with the comment."""
    return Expected(
        Severity(header["severity"]),
        text,
        _pattern(text),
        _target(header, place, plain),
        place,
        int(header["count"] or 1),
        bool(header["more"]),
    )


def _target(header: re.Match[str], place: Place, plain: Sequence[int]) -> Place | None:
    if header["file"]:
        return Place(header["file"], int(header["line"]))
    match header["near"]:
        case "unknown":
            return None
        case "above":
            lines = [line for line in plain if line < place.line][-1:]
        case "below":
            lines = [line for line in plain if line > place.line][:1]
        case _:
            lines = [place.line + int(header["offset"] or 0)]
    if not lines:
        raise ValueError(f"has no line {header['near']} it")
    return Place(place.file, lines[0])


def _pattern(text: str) -> re.Pattern[str]:
    parts, position = [], 0
    while (start := text.find("{{", position)) >= 0:
        end = text.find("}}", start)
        if end < 0:
            raise ValueError("opens a regular expression with '{{' and does not close it")
        expression = text[start + 2 : end]
        try:
            re.compile(expression)
        except re.error as problem:
            raise ValueError(f"has a bad regular expression '{expression}': {problem}") from None
        parts += [re.escape(text[position:start]), f"(?:{expression})"]
        position = end + 2
    return re.compile("".join([*parts, re.escape(text[position:])]), re.DOTALL)


def _suspicious(line: str, start: int, end: int, source_name: str, number: int) -> Iterator[Diagnostic]:
    """Errors for words outside any comment's text that look like the name of one."""
    for match in _WORD.finditer(line, start, end):
        word, follows = match.groups()
        place = Place(source_name, number, match.start() + 1)
        if word in _VALID:
            yield Diagnostic(Severity.ERROR, f"malformed '{word}': {_USAGE}", place)
        elif follows or word.startswith("expect"):
            for near in difflib.get_close_matches(word, _VALID, n=1, cutoff=0.8):
                yield Diagnostic(Severity.ERROR, f"unknown comment '{word}'; did you mean '{near}'?", place)


def _flatten(diagnostic: Diagnostic, around: Place | None = None) -> Iterator[_Seen]:
    place = diagnostic.place or around
    yield _Seen(diagnostic, place)
    for note in diagnostic.notes:
        yield from _flatten(note, place)


def _fits(seen: _Seen, expected: Expected) -> bool:
    return (
        seen.diagnostic.severity is expected.severity
        and _same_line(seen.place, expected.at)
        and expected.pattern.search(seen.text) is not None
    )


def _same_line(place: Place | None, at: Place | None) -> bool:
    if place is None or not place.line or at is None:
        return at is None and (place is None or not place.line)
    return place.line == at.line and (place.file == at.file or place.file.endswith(f"/{at.file}"))


def _assign(seen: Sequence[_Seen], expected: Sequence[Expected]) -> tuple[list[int], list[_Seen]]:
    """For each matched diagnostic the index of its comment, and the diagnostics that remain.

    As many as possible are matched (augmenting paths): of `{{bound}}` and `{{bound is 5}}` on one line the first must
    not take the diagnostic that is the only one for the second.
    """
    fits = [[index for index, wanted in enumerate(expected) if _fits(each, wanted)] for each in seen]
    slots = [(index, copy) for index, wanted in enumerate(expected) for copy in range(wanted.count)]
    owner: dict[tuple[int, int], int] = {}

    def augment(diagnostic: int, tried: set[tuple[int, int]]) -> bool:
        for slot in slots:
            if slot[0] not in fits[diagnostic] or slot in tried:
                continue
            tried.add(slot)
            if slot not in owner or augment(owner[slot], tried):
                owner[slot] = diagnostic
                return True
        return False

    rest = [diagnostic for diagnostic in range(len(seen)) if not augment(diagnostic, set())]
    surplus = [diagnostic for diagnostic in rest if not any(expected[index].or_more for index in fits[diagnostic])]
    return [index for index, _ in owner], [seen[diagnostic] for diagnostic in surplus]
