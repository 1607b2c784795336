"""Whom the next save seals to, and what of it opens here."""

from __future__ import annotations

from archiver import age
from archiver.age import KmsIdentity, KmsRecipient
from archiver.config import load
from archiver.recipients import configured
from archiver.setup.keys import data_keys

KEY = "mrk-0123456789abcdef0123456789abcdef"
HERE, THERE = (f"arn:aws:kms:{region}:111122223333:key/{KEY}" for region in ("eu-central-1", "us-east-1"))
OTHER = "arn:aws:kms:us-east-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"


def kms(text: str) -> KmsIdentity:
    return KmsIdentity(age.parse_arn(text), data_keys(load(without_file=True)))


def test_whose_identity_opens_what() -> None:
    mine, offline, quantum = age.generate(), age.generate(), age.HybridIdentity.generate()
    recipients = (mine.recipient, offline.recipient, quantum.recipient)
    assert [(one.kind, one.way, one.opens) for one in configured(recipients, (mine, quantum))] == [
        ("X25519", "here", True),
        ("X25519", "offline", False),
        ("post-quantum", "here", True),
    ]
    assert [one.text for one in configured(recipients, ())] == [str(one) for one in recipients]


def test_a_replica_of_a_kms_key_opens_what_the_other_sealed() -> None:
    recipient = KmsRecipient(age.parse_arn(HERE))
    for text, opens in ((HERE, True), (THERE, True), (OTHER, False)):
        (one,) = configured((recipient,), (kms(text),))
        assert (one.kind, one.way, one.opens, one.text) == ("AWS KMS", "kms", opens, HERE)
