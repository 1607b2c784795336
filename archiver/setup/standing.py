"""What stays true of a configuration until somebody changes it, and is said at every save."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from archiver.age import Identity, Recipient
from archiver.age.context import BindableRecipient
from archiver.config import Settings
from archiver.setup.remote import is_remote
from archiver.store import ObjectStore

UNFENCED = (
    "store.fencing is false: two writers of one run can both win, and then a checkpoint of one of them is "
    "lost without an error"
)


def standing_warnings(
    settings: Settings, store: ObjectStore, recipients: Iterable[Recipient], identities: Iterable[Identity]
) -> Iterator[str]:
    """Each in one sentence."""
    if not settings.store.fencing:
        yield UNFENCED
    if is_remote(store):
        warning = one_way_in(recipients, identities)
        if warning is not None:
            yield warning


def one_way_in(recipients: Iterable[Recipient], identities: Iterable[Identity]) -> str | None:
    """The warning where losing one thing loses everything that is saved; None where two ways lead in.

    All keys of KMS count as one way, because one account goes with all of them; and so do all identities of
    this machine. Each other recipient is a way of its own.
    """
    ways = ways_in(recipients, identities)
    if len(ways) > 1:
        return None
    by = f"in one way only, by {ways[0]}" if ways else "by nobody"
    if ways == [KMS]:
        second = "the recipient (age1…) of a key that is kept offline"
    else:
        second = "the ARN of a KMS key, or the recipient (age1…) of a key that is kept offline,"
    return f"what is saved can be opened {by}; for a second way in add {second} to keys.recipients"


KMS = "KMS"
HERE = "the identity on this machine"


def ways_in(recipients: Iterable[Recipient], identities: Iterable[Identity]) -> list[str]:
    """What opens the objects that are saved, as ways that are not lost together."""
    own = {identity.fingerprint for identity in identities}
    ways: dict[str, None] = {}
    for recipient in recipients:
        if isinstance(recipient, BindableRecipient):
            ways[KMS] = None
        elif recipient.fingerprint in own:
            ways[HERE] = None
        else:
            ways[f"the key with the fingerprint {recipient.fingerprint}"] = None
    return list(ways)
