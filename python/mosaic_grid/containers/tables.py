"""The one table of MLIR bytecode that MLIR's reader is known to believe without checking.

The section of attribute and type offsets announces how many of each there are, then lists them in groups, one for each
dialect. `AttrTypeReader::initialize` (LLVM, `mlir/lib/Bytecode/Reader/BytecodeReader.cpp`) writes past its arrays where
a group is larger than what is left of the announced number: the heap is damaged, and the process dies later or never.
The format: https://mlir.llvm.org/docs/BytecodeFormat/
"""

from __future__ import annotations

_HEADER = 4
_ATTR_TYPE_OFFSET = 3
_ALIGNED = 0x80
_CUSTOM_ENCODING = 1


def overflow(data: bytes | bytearray) -> bool:
    """Whether reading bytecode would write past an array. What ends too early is no overflow: MLIR refuses it."""
    try:
        section = _section(data, _ATTR_TYPE_OFFSET)
        return section is not None and _groups_overflow(data, *section)
    except IndexError:
        return False


def _groups_overflow(data: bytes | bytearray, position: int, end: int) -> bool:
    attributes, position = _varint(data, position)
    types, position = _varint(data, position)
    for announced in (attributes, types):
        left = announced
        while left > 0 and position < end:
            _, position = _varint(data, position)
            count, position = _varint(data, position)
            if count > left:
                return True
            left -= count
            for _ in range(min(count, end - position)):
                _, position = _varint(data, position)
    return False


def _section(data: bytes | bytearray, wanted: int) -> tuple[int, int] | None:
    """Start and end of a section; after version and producer, each is (id, length, [alignment, padding], data)."""
    _, position = _varint(data, _HEADER)
    position = data.find(b"\0", position) + 1 or len(data)
    while position < len(data):
        identifier = data[position]
        length, position = _varint(data, position + 1)
        if identifier & _ALIGNED:
            alignment, position = _varint(data, position)
            position += -position % max(1, alignment)
        if identifier & ~_ALIGNED == wanted:
            return position, position + length
        position += length
    return None


def _varint(data: bytes | bytearray, position: int) -> tuple[int, int]:
    """A number and the position after it: as many zero bits as bytes follow, a one, then the number (little-endian)."""
    first = data[position]
    extra = 8 if first == 0 else (first & -first).bit_length() - 1
    end = position + 1 + extra
    if end > len(data):
        raise IndexError
    bits = int.from_bytes(data[position:end], "little")
    return (bits >> 8 if first == 0 else bits >> (extra + 1)), end
