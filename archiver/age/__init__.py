"""The age v1 container (https://age-encryption.org/v1): seal to recipients, open with identities."""

from archiver.age.arn import KeyArn, parse_arn
from archiver.age.container import Sealed, Sealer, payload_digest, read_header, seal, unseal
from archiver.age.context import Context, ObjectKind, bind_identities, bind_recipients, demand_context
from archiver.age.data_keys import DataKey, DataKeys, KeyService
from archiver.age.hints import LABEL, hint
from archiver.age.hybrid import HybridIdentity, HybridRecipient
from archiver.age.keys import generate, parse_identity, parse_recipient, read_identities, write_identity
from archiver.age.kms import KmsIdentity, KmsRecipient
from archiver.age.kms_client import KmsClient
from archiver.age.parts import Parts, open_parts
from archiver.age.protocols import Identity, Recipient, SecretIdentity
from archiver.age.reached import Reached, reached
from archiver.age.rewrap import Rewrapped, rewrap
from archiver.age.scrypt import ScryptIdentity, ScryptRecipient, WorkFactor
from archiver.age.stream import Unsealer
from archiver.age.x25519 import X25519Identity, X25519Recipient

__all__ = [
    "LABEL",
    "Context",
    "DataKey",
    "DataKeys",
    "HybridIdentity",
    "HybridRecipient",
    "Identity",
    "KeyArn",
    "KeyService",
    "KmsClient",
    "KmsIdentity",
    "KmsRecipient",
    "ObjectKind",
    "Parts",
    "Reached",
    "Recipient",
    "Rewrapped",
    "ScryptIdentity",
    "ScryptRecipient",
    "Sealed",
    "Sealer",
    "SecretIdentity",
    "Unsealer",
    "WorkFactor",
    "X25519Identity",
    "X25519Recipient",
    "bind_identities",
    "bind_recipients",
    "demand_context",
    "generate",
    "hint",
    "open_parts",
    "parse_arn",
    "parse_identity",
    "parse_recipient",
    "payload_digest",
    "reached",
    "read_header",
    "read_identities",
    "rewrap",
    "seal",
    "unseal",
    "write_identity",
]
