"""The KMS stanza: who opens it, what KMS is asked for, and what is said of one that was touched."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest
from local_kms import ARN, BUNDLE, SECOND, LocalKms, identities, recipient

from archiver import age
from archiver.age import DataKey, DataKeys, header, kms
from archiver.age.header import Header, Stanza
from archiver.errors import (
    ArchiverError,
    ContextMismatchError,
    ForeignKeyError,
    HeaderError,
    HeaderMacError,
    KeyUnavailableError,
    KmsDeniedError,
    KmsKeyDisabledError,
    KmsUnreachableError,
    MovedKeyError,
    PayloadError,
    UnsupportedSchemaError,
    UsageError,
    WrappedKeyError,
)

ANNA, QUENTIN = age.generate(), age.HybridIdentity.generate()
FILE_KEY = b"0123456789abcdef"


@pytest.fixture
def service() -> LocalKms:
    return LocalKms()


def raised(keys: list[age.Identity], data: bytes) -> ArchiverError:
    with pytest.raises(ArchiverError) as caught:
        age.unseal(keys, BytesIO(data), name="bundle 7")
    assert "bundle 7" in str(caught.value)
    return caught.value


def split(data: bytes) -> tuple[Header, bytes]:
    parsed = age.read_header(BytesIO(data))
    return parsed, data[len(parsed.marshal()) :]


def with_stanza(data: bytes, new: Stanza) -> bytes:
    """The file with another KMS stanza and the MAC it had: whoever has no key can do this."""
    parsed, payload = split(data)
    stanzas = tuple(new if stanza.type == kms.TYPE else stanza for stanza in parsed.stanzas)
    return Header(stanzas, parsed.mac).marshal() + payload


def stanza_of(data: bytes) -> Stanza:
    return next(stanza for stanza in split(data)[0].stanzas if stanza.type == kms.TYPE)


def test_it_opens_what_it_seals(service: LocalKms, sealed, released) -> None:
    data = sealed([recipient(service)], b"state")
    assert released(identities(service), data) == (b"state", None)
    stanza = stanza_of(data)
    assert stanza.arguments == ("v1", ARN.text, BUNDLE.text())
    blob = int.from_bytes(stanza.body[:2], "big")
    assert len(stanza.body) == 2 + blob + 32 + 32
    assert age.hint(split(data)[0]) == (ARN.fingerprint,)


def test_the_authentic_header_says_what_the_object_is(service: LocalKms, sealed) -> None:
    data = sealed([recipient(service), ANNA.recipient], b"")
    with age.unseal([ANNA], BytesIO(data), name="bundle 7") as opened:
        assert opened.contexts == (BUNDLE,)
        opened.demand_context("run-1", "task 1", "bundle")
        with pytest.raises(ContextMismatchError, match="bundle 7: it was sealed for run 'run-1', not for"):
            opened.demand_context("run-2", "task 1", "bundle")
    with age.unseal([ANNA], BytesIO(sealed([ANNA.recipient], b""))) as opened:
        assert opened.contexts == ()
        opened.demand_context("any", "thing", "record")


@pytest.mark.parametrize(
    "other",
    [
        replace(BUNDLE, application="another"),
        replace(BUNDLE, run="run-2"),
        replace(BUNDLE, task="task 2"),
        replace(BUNDLE, object="record"),
    ],
)
def test_another_context_is_refused_before_kms_is_asked(service: LocalKms, sealed, other) -> None:
    data = sealed([recipient(service)], b"")
    error = raised(identities(service, context=other), data)
    assert type(error) is ContextMismatchError
    assert "KMS was not asked" in str(error)
    assert service.calls["decrypt"] == 0


def test_the_task_need_not_be_known(service: LocalKms, sealed, released) -> None:
    data = sealed([recipient(service)], b"state")
    assert released(identities(service, context=replace(BUNDLE, task=None)), data) == (b"state", None)


def test_a_forged_context_does_not_open(service: LocalKms, sealed) -> None:
    """Moved into another run's place and relabelled so that it fits there: KMS refuses."""
    data, other = sealed([recipient(service)], b""), replace(BUNDLE, run="run-2")
    stanza = stanza_of(data)
    forged = with_stanza(data, replace(stanza, arguments=(*stanza.arguments[:2], other.text())))
    assert type(raised(identities(service, context=other), forged)) is WrappedKeyError
    assert service.calls["decrypt"] == 1


def test_a_foreign_key_is_refused_before_kms_is_asked(service: LocalKms, sealed) -> None:
    data = sealed([recipient(service, SECOND)], b"")
    for keys in (identities(service), [], [ANNA]):
        error = raised(keys, data)
        assert type(error) is ForeignKeyError
        assert SECOND.text in str(error)
        assert "keys.kms" in (error.remedy or "")
        assert isinstance(error, KeyUnavailableError)
        assert error.fingerprints == (SECOND.fingerprint,)
    assert service.calls["decrypt"] == 0


def test_an_identity_file_that_fits_comes_before_kms(service: LocalKms, sealed, released) -> None:
    data = sealed([recipient(service), ANNA.recipient], b"state")
    assert released([*identities(service), ANNA], data) == (b"state", None)
    assert service.calls["decrypt"] == 0
    service.fail[ARN.text] = KmsUnreachableError("down")
    assert released([*identities(service), ANNA], data) == (b"state", None)


def test_a_failing_key_does_not_keep_another_from_opening(service: LocalKms, sealed, released) -> None:
    data = sealed([recipient(service), recipient(service, SECOND)], b"state")
    service.fail[ARN.text] = KmsKeyDisabledError("disabled")
    assert released(identities(service, (ARN, SECOND)), data) == (b"state", None)
    service.fail[SECOND.text] = KmsUnreachableError("down")
    assert type(raised(identities(service, (ARN, SECOND)), data)) is KmsKeyDisabledError


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (WrappedKeyError, KmsDeniedError),
        (KmsDeniedError, KmsKeyDisabledError),
        (KmsKeyDisabledError, KmsUnreachableError),
        (ContextMismatchError, WrappedKeyError),
        (UnsupportedSchemaError, KeyUnavailableError),
    ],
)
def test_the_error_is_the_most_telling_one(service: LocalKms, sealed, one, two) -> None:
    data = sealed([recipient(service), recipient(service, SECOND)], b"")
    for first, second in ((ARN, SECOND), (SECOND, ARN)):
        service.fail = {first.text: one("said by the first", remedy="do this"), second.text: two("other")}
        error = raised(identities(service, (ARN, SECOND)), data)
        assert type(error) is one
        assert str(error) == "bundle 7: said by the first"
        assert error.remedy == "do this"


@pytest.mark.parametrize("part", ["blob", "salt", "wrapped"])
def test_a_tampered_key(service: LocalKms, sealed, part: str) -> None:
    data = sealed([recipient(service)], b"")
    stanza = stanza_of(data)
    at = {"blob": 20, "salt": -40, "wrapped": -1}[part]
    body = bytearray(stanza.body)
    body[at] ^= 1
    assert type(raised(identities(service), with_stanza(data, replace(stanza, body=bytes(body))))) is (
        WrappedKeyError
    )


def test_a_blob_of_another_file_under_the_same_data_key(service: LocalKms, sealed) -> None:
    """The wrap key hangs on ARN, context and blob: one of two files that share a data key tells nothing."""
    one, two = (sealed([recipient(service)], b"") for _ in range(2))
    first, second = stanza_of(one), stanza_of(two)
    size = int.from_bytes(first.body[:2], "big")
    mixed = replace(first, body=second.body[: 2 + size] + first.body[2 + size :])
    assert type(raised(identities(service), with_stanza(one, mixed))) is WrappedKeyError


def test_a_stanza_moved_from_another_file(service: LocalKms, sealed) -> None:
    """Same run, same task, same kind: the context fits, KMS opens it, and the file key is not this file's."""
    keys = DataKeys(service)
    one, two = (sealed([recipient(keys)], b"state") for _ in range(2))
    error = raised(identities(service), with_stanza(one, stanza_of(two)))
    assert type(error) is MovedKeyError
    assert isinstance(error, WrappedKeyError)
    assert "moved there from another file" in str(error)
    whole = split(two)[0].marshal() + split(one)[1]
    with (
        age.unseal(identities(service), BytesIO(whole)) as opened,
        pytest.raises(PayloadError, match="chunk 0"),  # a whole header moved: its MAC fits
    ):
        opened.read()


def test_a_stanza_moved_beside_the_own_one(service: LocalKms, sealed) -> None:
    one, two = sealed([ANNA.recipient], b"state"), sealed([recipient(service)], b"state")
    parsed, payload = split(one)
    both = Header((*parsed.stanzas, stanza_of(two)), parsed.mac).marshal() + payload
    assert type(raised(identities(service), both)) is MovedKeyError
    assert type(raised([ANNA], both)) is HeaderMacError


def test_a_changed_header_around_a_whole_stanza(service: LocalKms, sealed) -> None:
    data = sealed([recipient(service)], b"state")
    changed = data.replace(ARN.fingerprint.encode(), b"f" * 32)
    assert changed != data
    assert type(raised(identities(service), changed)) is HeaderMacError


def malformed(stanza: Stanza) -> dict[str, Stanza]:
    version, arn, context = stanza.arguments
    body = stanza.body

    def arguments(*words: str) -> Stanza:
        return Stanza(kms.TYPE, words, body)

    def bodied(new: bytes) -> Stanza:
        return Stanza(kms.TYPE, stanza.arguments, new)

    return {
        "no arguments": arguments(),
        "no version": arguments(arn, context),
        "too many": arguments(version, arn, context, "x"),
        "version zero": arguments("v0", arn, context),
        "version of two spellings": arguments("v01", arn, context),
        "version without v": arguments("1", arn, context),
        "alias": arguments(version, "arn:aws:kms:eu-central-1:111122223333:alias/x", context),
        "other spelling of the key": arguments(version, arn.upper(), context),
        "context": arguments(version, arn, context.replace("object=bundle", "object=folder")),
        "context of two spellings": arguments(version, arn, context.replace("run-1", "%72un-1")),
        "no body": bodied(b""),
        "half a length": bodied(body[:1]),
        "no blob": bodied(b"\0\0" + body[-64:]),
        "blob too long": bodied((6145).to_bytes(2, "big") + bytes(6145) + body[-64:]),
        "one byte short": bodied(body[:-1]),
        "one byte more": bodied(body + b"\0"),
        "length one less": bodied((int.from_bytes(body[:2], "big") - 1).to_bytes(2, "big") + body[2:]),
        "length one more": bodied((int.from_bytes(body[:2], "big") + 1).to_bytes(2, "big") + body[2:]),
    }


@pytest.mark.parametrize("name", malformed(Stanza(kms.TYPE, ("v1", "a", "c"), b"\1" * 400)))
def test_a_malformed_stanza(service: LocalKms, name: str) -> None:
    """Whoever opens it: what a file is does not depend on the key at hand, so the MAC is made to fit here."""
    wrong = malformed(recipient(service).wrap(FILE_KEY)[0])[name]
    raw = header.make((*ANNA.recipient.wrap(FILE_KEY), wrong), FILE_KEY).marshal() + bytes(100)
    for keys in (identities(service), [ANNA]):
        assert type(raised(keys, raw)) is HeaderError
    assert service.calls["decrypt"] == 0


def test_a_stanza_of_a_later_version(service: LocalKms, sealed, released) -> None:
    """It keeps nobody from opening by another key; whoever has KMS only hears what is missing."""
    later = Stanza(kms.TYPE, ("v2", "any", "thing"), b"?")
    made = header.make((*ANNA.recipient.wrap(FILE_KEY), later), FILE_KEY).marshal()
    with pytest.raises(UnsupportedSchemaError, match="version v2") as caught:
        age.unseal(identities(service), BytesIO(made + bytes(100)), name="bundle 7")
    assert "release" in (caught.value.remedy or "")
    with age.unseal([ANNA], BytesIO(made + bytes(100))) as opened:
        assert opened.contexts == ()


def test_every_bit_of_the_stanza_flipped(service: LocalKms, sealed) -> None:
    keys, data = DataKeys(service), sealed([recipient(service)], b"state")
    begin = data.index(b"-> " + kms.TYPE.encode())
    end = data.index(b"\n---") + 1
    expected = {
        *(HeaderError, ContextMismatchError, ForeignKeyError, WrappedKeyError),
        *(KeyUnavailableError, UnsupportedSchemaError),  # another type of stanza, another version
    }
    seen = set()
    for place in range(begin, end):
        for bit in range(8):
            broken = bytearray(data)
            broken[place] ^= 1 << bit
            seen.add(type(raised(identities(keys), bytes(broken))))
    assert seen == expected  # none gets as far as the MAC: the wrap key hangs on all of the stanza


def test_who_stands_beside_whom(service: LocalKms, sealed, released) -> None:
    cloud = recipient(service)
    for other in (ANNA, QUENTIN):
        for recipients in ([cloud, other.recipient], [other.recipient, cloud]):
            data = sealed(recipients, b"state")
            assert released([other], data) == released(identities(service), data) == (b"state", None)
            assert age.hint(split(data)[0]) == tuple(each.fingerprint for each in recipients)
    phrase = age.ScryptRecipient("three small words", age.WorkFactor.TEST_ONLY)
    for wrong in ([cloud, phrase], [cloud, QUENTIN.recipient, ANNA.recipient]):
        with pytest.raises(UsageError, match="may not share a file") as caught:
            sealed(wrong, b"")
        assert f"AWS KMS {ARN.fingerprint}" in str(caught.value)
    assert service.calls["generate"] == 1


def test_sealing_fails_before_a_byte_is_written(service: LocalKms) -> None:
    service.fail[ARN.text] = KmsUnreachableError("down")
    out: list[bytes] = []
    with pytest.raises(KmsUnreachableError):
        age.seal([ANNA.recipient, recipient(service)], out.append)
    assert out == []


@pytest.mark.parametrize(
    "lie",
    [
        lambda key: replace(key, arn=SECOND.text),
        lambda key: replace(key, plaintext=bytes(31)),
        lambda key: replace(key, plaintext=b""),
        lambda key: replace(key, arn=""),
    ],
)
def test_an_answer_that_is_not_what_was_asked(service: LocalKms, sealed, lie) -> None:
    data = sealed([recipient(service)], b"")
    service.lie = lie
    assert type(raised(identities(service), data)) is WrappedKeyError
    with pytest.raises(KmsUnreachableError, match="something else than a data key"):
        sealed([recipient(service)], b"")


def test_a_blob_that_could_not_be_read_again_is_not_written(service: LocalKms, sealed) -> None:
    for blob in (b"", bytes(6145)):
        service.lie = lambda key, blob=blob: replace(key, blob=blob)
        with pytest.raises(KmsUnreachableError):
            sealed([recipient(service)], b"")


def test_nothing_shows_a_data_key(service: LocalKms) -> None:
    key = DataKey(b"a secret of thirty-two bytes....", b"blob", ARN.text)
    shown = repr(key) + repr(recipient(service)) + repr(identities(service)) + repr(DataKeys(service))
    assert "secret" not in shown
    assert ARN.text in shown


def test_an_identity_without_a_context_asks_nothing(service: LocalKms, sealed) -> None:
    data = sealed([recipient(service)], b"")
    with pytest.raises(UsageError, match="without the context"):
        age.unseal([age.KmsIdentity(ARN, DataKeys(service))], BytesIO(data))
    bound = age.bind_identities([age.KmsIdentity(ARN, DataKeys(service)), ANNA], BUNDLE)
    assert bound[1] is ANNA
    age.unseal(bound, BytesIO(data)).close()


def test_one_object_costs_few_calls(service: LocalKms, sealed) -> None:
    data = sealed([recipient(service)], b"x")
    stanza = stanza_of(data)
    garbage = [
        replace(stanza, body=stanza.body[:2] + bytes([number]) * (len(stanza.body) - 2))
        for number in range(kms.MAX_STANZAS + 1)
    ]
    forged = header.make(tuple(garbage), bytes(16)).marshal() + bytes(64)
    before = service.calls.copy()
    assert isinstance(raised(identities(service), forged), HeaderError)
    assert service.calls == before
