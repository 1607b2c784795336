"""Bech32 as age uses it: BIP 173 without its limit of 90 characters, and nothing that is not canonical."""

from __future__ import annotations

from collections.abc import Iterable

from archiver.errors import InvalidKeyError

_ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECKSUM = 6


def encode(prefix: str, data: bytes) -> str:
    """`prefix`, `1`, the data and its checksum, in the case of the prefix."""
    low = prefix.lower()
    values = _regroup(data)
    check = _polymod((*_expand(low), *values, *([0] * _CHECKSUM))) ^ 1
    values += [(check >> 5 * (_CHECKSUM - 1 - place)) & 31 for place in range(_CHECKSUM)]
    text = low + "1" + "".join(_ALPHABET[value] for value in values)
    return text.upper() if prefix.isupper() else text


def decode(text: str) -> tuple[str, bytes]:
    """Prefix (in the case it was written in) and data; `InvalidKeyError`, which never shows the text."""
    low = text.lower()
    if text not in (low, text.upper()):
        raise InvalidKeyError("the key mixes upper and lower case")
    prefix, separator, tail = low.rpartition("1")
    if not separator or not prefix or not all("!" <= character <= "~" for character in prefix):
        raise InvalidKeyError("the key does not have the form of a Bech32 string")
    try:
        values = [_VALUES[character] for character in tail]
    except KeyError:
        raise InvalidKeyError("the key holds a character that Bech32 does not have") from None
    if len(values) < _CHECKSUM or _polymod((*_expand(prefix), *values)) != 1:
        raise InvalidKeyError("the checksum of the key does not fit: a character is wrong or missing")
    return text[: len(prefix)], _ungroup(values[:-_CHECKSUM])


def _expand(prefix: str) -> Iterable[int]:
    codes = prefix.encode("ascii")
    return (*(code >> 5 for code in codes), 0, *(code & 31 for code in codes))


def _polymod(values: Iterable[int]) -> int:
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, term in enumerate(_GENERATOR):
            if top >> bit & 1:
                check ^= term
    return check


def _regroup(data: bytes) -> list[int]:
    """Bytes as groups of five bits, the last one filled up with zeros."""
    spare = -len(data) * 8 % 5
    number = int.from_bytes(data, "big") << spare
    count = (len(data) * 8 + spare) // 5
    return [number >> 5 * (count - 1 - place) & 31 for place in range(count)]


def _ungroup(values: list[int]) -> bytes:
    spare = len(values) * 5 % 8
    number = 0
    for value in values:
        number = number << 5 | value
    if spare >= 5 or number & (1 << spare) - 1:  # a whole spare group, or bits that no encoder writes
        raise InvalidKeyError("the key is not written in its one canonical form")
    return (number >> spare).to_bytes(len(values) * 5 // 8, "big")
