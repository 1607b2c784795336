"""Bech32: the strings of BIP 173, and one text for each key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.age import bech32
from archiver.errors import InvalidKeyError

PREFIXES = st.sampled_from(["age", "AGE-SECRET-KEY-", "split1", "AGE-PLUGIN-X-"])


@given(PREFIXES, st.binary(max_size=80))
def test_round_trip(prefix: str, data: bytes) -> None:
    assert bech32.decode(bech32.encode(prefix, data)) == (prefix, data)


@given(PREFIXES, st.binary(max_size=40), st.data())
def test_one_wrong_character_is_found(prefix: str, data: bytes, draw: st.DataObject) -> None:
    text = bech32.encode(prefix, data)
    place = draw.draw(st.integers(0, len(text) - 1))
    other = draw.draw(
        st.characters(min_codepoint=0x20, max_codepoint=0x17F).filter(lambda c: c != text[place])
    )
    with pytest.raises(InvalidKeyError):
        bech32.decode(text[:place] + other + text[place + 1 :])


@given(st.text(max_size=90))
def test_what_decodes_encodes_to_itself(text: str) -> None:
    try:
        prefix, data = bech32.decode(text)
    except InvalidKeyError:
        return
    assert bech32.encode(prefix, data) == text


@pytest.mark.parametrize(
    ("text", "prefix", "size"),
    [
        ("A12UEL5L", "A", 0),
        ("abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw", "abcdef", 20),
        ("split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w", "split", 30),
        ("?1ezyfcl", "?", 0),
        ("11" + "q" * 82 + "c8247j", "1", 51),
    ],
)
def test_bip173_valid(text: str, prefix: str, size: int) -> None:
    found, data = bech32.decode(text)
    assert (found, len(data)) == (prefix, size)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "form"),
        ("pzry9x0s0muk", "form"),
        ("1pzry9x0s0muk", "form"),
        ("\x201nwldj5", "form"),
        ("\x7f1axkwrx", "form"),
        ("x1b4n0q5v", "character"),
        ("li1dgmt3", "checksum"),
        ("A1G7SGD8", "checksum"),
        ("a12UEL5L", "case"),
    ],
)
def test_invalid(text: str, reason: str) -> None:
    with pytest.raises(InvalidKeyError, match=reason):
        bech32.decode(text)


def with_checksum(prefix: str, values: list[int]) -> str:
    check = bech32._polymod((*bech32._expand(prefix), *values, *([0] * 6))) ^ 1
    values = values + [check >> 5 * (5 - place) & 31 for place in range(6)]
    return prefix + "1" + "".join(bech32._ALPHABET[value] for value in values)


def test_eight_bits_take_two_groups_and_leave_two_spare() -> None:
    assert with_checksum("age", [13, 12]) == bech32.encode("age", b"k")


@pytest.mark.parametrize("values", [[13, 13], [13, 14], [13, 12, 0], [0]])
def test_spare_bits_are_zero_and_fewer_than_a_group(values: list[int]) -> None:
    with pytest.raises(InvalidKeyError, match="canonical"):
        bech32.decode(with_checksum("age", values))
