"""Whom an object can be sealed to while KMS is away, and how often it is asked then."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest
from local_kms import ARN, BUNDLE, SECOND, LocalKms, identities, recipient

from archiver import age
from archiver.age import DataKeys, data_keys
from archiver.errors import (
    ArchiverError,
    KmsDeniedError,
    KmsExpiredError,
    KmsKeyDisabledError,
    KmsUnreachableError,
)

ANNA = age.generate()
RECORD = replace(BUNDLE, object="record")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service() -> LocalKms:
    return LocalKms()


@pytest.fixture
def keys(service: LocalKms, clock: Clock) -> DataKeys:
    return DataKeys(service, clock=clock)


def down(service: LocalKms, *arns: age.KeyArn) -> None:
    service.fail = {arn.text: KmsUnreachableError("no answer", remedy="wait") for arn in arns}


def sealed(found: age.Reached) -> bytes:
    pieces: list[bytes] = []
    age.seal(found.recipients, pieces.append).close()
    return b"".join(pieces)


def opens(by: list[age.Identity], data: bytes) -> bool:
    with age.unseal(by, BytesIO(data)) as opened:
        return opened.read() == b""


def test_all_that_are_there_are_sealed_to(service: LocalKms, keys: DataKeys) -> None:
    found = age.reached([recipient(keys), ANNA.recipient])
    assert found.missing == ()
    assert found.fingerprints == (ARN.fingerprint, ANNA.fingerprint)
    data = sealed(found)
    assert opens([ANNA], data)
    assert opens(identities(service), data)
    assert service.calls["generate"] == 1


def test_the_others_are_sealed_to_while_kms_is_away(service: LocalKms, keys: DataKeys) -> None:
    down(service, ARN)
    found = age.reached([recipient(keys), ANNA.recipient, recipient(keys, SECOND)])
    assert found.missing == (ARN.fingerprint,)
    assert found.fingerprints == (ANNA.fingerprint, SECOND.fingerprint)
    data = sealed(found)
    assert age.hint(age.read_header(BytesIO(data))) == found.fingerprints
    assert opens([ANNA], data)
    assert opens(identities(service, (SECOND,)), data)


def test_nobody_else(service: LocalKms, keys: DataKeys) -> None:
    down(service, ARN, SECOND)
    with pytest.raises(KmsUnreachableError) as caught:
        age.reached([recipient(keys), recipient(keys, SECOND)])
    assert str(caught.value) == "no answer"


@pytest.mark.parametrize("answer", [KmsDeniedError, KmsKeyDisabledError])
def test_an_answer_is_no_absence(service: LocalKms, keys: DataKeys, answer: type[ArchiverError]) -> None:
    service.fail = {ARN.text: answer("KMS said so")}
    for _ in range(2):
        with pytest.raises(answer):
            age.reached([recipient(keys), ANNA.recipient])
    assert service.calls["generate"] == 2  # a permission that is given counts at once


def test_expired_credentials_are_an_absence(service: LocalKms, keys: DataKeys, clock: Clock) -> None:
    service.fail = {ARN.text: KmsExpiredError("expired", remedy="log in")}
    for _ in range(2):
        assert age.reached([recipient(keys), ANNA.recipient]).missing == (ARN.fingerprint,)
    with pytest.raises(KmsExpiredError, match="expired; it was not asked again"):
        age.reached([recipient(keys)])
    assert service.calls["generate"] == 1
    service.fail = {}
    clock.now += data_keys.SECONDS_AWAY
    assert age.reached([recipient(keys), ANNA.recipient]).missing == ()


def test_once_asked_it_goes_on_whatever_becomes_of_kms(
    service: LocalKms, keys: DataKeys, clock: Clock
) -> None:
    found = age.reached([recipient(keys), ANNA.recipient])
    down(service, ARN)
    clock.now += data_keys.SECONDS_PER_KEY
    data = sealed(found)
    service.fail = {}
    assert opens(identities(service), data)


def test_a_data_key_in_memory_is_there(service: LocalKms, clock: Clock) -> None:
    keys = DataKeys(service, files=2, clock=clock)
    age.reached([recipient(keys)])
    down(service, ARN)
    assert age.reached([recipient(keys), ANNA.recipient]).missing == ()
    assert age.reached([recipient(keys), ANNA.recipient]).missing == (ARN.fingerprint,)


def test_kms_is_not_asked_again_for_a_while(service: LocalKms, keys: DataKeys, clock: Clock) -> None:
    down(service, ARN)
    for context in (BUNDLE, RECORD, replace(BUNDLE, object="effect"), replace(BUNDLE, run="another")):
        assert age.reached([recipient(keys, context=context), ANNA.recipient]).missing == (ARN.fingerprint,)
    assert service.calls["generate"] == 1
    with pytest.raises(KmsUnreachableError, match="no answer; it was not asked again") as caught:
        age.reached([recipient(keys)])
    assert caught.value.remedy == "wait"
    assert age.reached([recipient(keys, SECOND)]).missing == ()  # another key is another matter
    service.fail = {}
    clock.now += data_keys.SECONDS_AWAY - 1
    assert age.reached([recipient(keys), ANNA.recipient]).missing == (ARN.fingerprint,)
    clock.now += 1
    assert age.reached([recipient(keys), ANNA.recipient]).missing == ()


def test_who_cannot_do_without_it_asks_all_the_same(service: LocalKms, keys: DataKeys) -> None:
    down(service, ARN)
    assert age.reached([recipient(keys), ANNA.recipient]).missing == (ARN.fingerprint,)
    service.fail = {}
    assert keys.to_seal(ARN, BUNDLE).arn == ARN.text
    assert age.reached([recipient(keys), ANNA.recipient]).missing == ()
