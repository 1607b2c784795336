"""Can what is saved be opened again, by whom, and whose signatures are believed?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO

from archiver import age, layout
from archiver.age import Context, Identity, Recipient
from archiver.age.context import BindableIdentity, BindableRecipient
from archiver.config import Settings
from archiver.doctor.check import Check, failed, failure, ok, unknown, warning
from archiver.errors import ArchiverError, KeyUnavailableError, KmsDeniedError
from archiver.setup import keys
from archiver.setup.standing import one_way_in, ways_in
from archiver.sign import SigningKey
from archiver.writers import Writers


@dataclass(slots=True)
class Held:
    """The keys of a configuration, as far as they could be read."""

    identities: tuple[Identity, ...] = ()
    recipients: tuple[Recipient, ...] = ()
    signing_key: SigningKey | None = None
    problems: list[Check] = field(default_factory=list)


def hold(settings: Settings) -> Held:
    """Read all keys; each that cannot be read is a failure, and the others go on."""
    held = Held()
    try:
        held.identities = keys.load_identities(settings)
    except ArchiverError as error:
        held.problems.append(failed("identities", error))
    try:
        held.signing_key = keys.load_signing_key(settings)
    except ArchiverError as error:
        held.problems.append(failed("signing key", error))
    try:
        held.recipients = keys.recipients(settings, held.identities)
    except ArchiverError as error:
        held.problems.append(failed("recipients", error))
    return held


def examine(settings: Settings, held: Held, *, remote: bool) -> Iterator[Check]:
    """A line for each kind of key."""
    yield from held.problems
    yield from _recipients(settings, held, remote)
    yield from _each(settings, held)
    yield from _break_glass(settings, held)
    yield from _opening(settings, held)
    yield from _kms(settings, held)
    yield from _signing(settings, held)


def _recipients(settings: Settings, held: Held, remote: bool) -> Iterator[Check]:
    name = "recipients"
    if not held.recipients:
        if not any(check.name == name for check in held.problems):
            yield unknown(name, "none: this configuration saves nothing")
        return
    files = [each for each in held.recipients if not isinstance(each, BindableRecipient)]
    try:
        if files:
            _sealed(files, settings)
    except ArchiverError as error:
        yield failed(name, error)  # such as kinds that do not share a file
        return
    one = one_way_in(held.recipients, held.identities) if remote else None
    if one is not None:
        yield warning(name, one, "only a drill proves that an offline key opens: restore with it once")
        return
    ways = ways_in(held.recipients, held.identities)
    yield ok(name, f"what is saved can be opened by {' or '.join(ways)}")


def own_identities(held: Held) -> list[Identity]:
    """Identities of files: those of KMS lie in no file, and everybody can name one."""
    return [identity for identity in held.identities if not isinstance(identity, BindableIdentity)]


def regions(held: Held) -> dict[str, str]:
    """The regions of the keys of KMS among the recipients, by ARN."""
    return {
        str(recipient): recipient.arn.region
        for recipient in held.recipients
        if isinstance(recipient, age.KmsRecipient)
    }


def opens_by_kms(held: Held, settings: Settings) -> bool | None:
    """Whether these credentials open what is sealed to KMS; None where that cannot be seen or matters not."""
    mine = [recipient for recipient in held.recipients if isinstance(recipient, BindableRecipient)]
    if not mine:
        return None
    error = _round_trip(mine[:1], held.identities, settings)
    if error is None:
        return True
    return False if isinstance(error, _UnopenedError) else None


def _each(settings: Settings, held: Held) -> Iterator[Check]:
    """Each recipient alone: that all of them together open says nothing of one."""
    name = "each recipient"
    own = own_identities(held)
    known = {identity.fingerprint for identity in own}
    proven, away = [], []
    for recipient in held.recipients:
        if isinstance(recipient, BindableRecipient):
            continue  # the check `kms` proves it
        if recipient.fingerprint not in known:
            away.append(recipient)
            continue
        error = _round_trip([recipient], own, settings)
        if error is not None:
            yield failed(name, error)
        else:
            proven.append(recipient.fingerprint)
    if proven:
        yield ok(name, f"proven to open, each alone: {', '.join(proven)}")
    for recipient in away:
        yield unknown(
            name,
            f"{recipient.fingerprint} ({recipient.kind}) has no identity here: only a drill proves that it "
            "opens",
            "where its identity is: `archiver drill --break-glass FILE`",
        )


def _break_glass(settings: Settings, held: Held) -> Iterator[Check]:
    """The keys for emergencies: an alarm for a key that nothing is sealed to never rings."""
    name = "break-glass"
    try:
        named = keys.break_glass(settings)
    except ArchiverError as error:
        yield failed(name, error)
        return
    known = {recipient.fingerprint for recipient in held.recipients}
    for fingerprint, text in named.items():
        if fingerprint in known:
            yield ok(name, f"{text} is for emergencies, and what is saved is sealed to it")
        else:
            yield warning(
                name,
                f"keys.break_glass names {text}, which is no recipient of what is saved",
                "add its recipient to keys.recipients, or correct keys.break_glass",
            )


def _opening(settings: Settings, held: Held) -> Iterator[Check]:
    """What the identity files open; keys of KMS have a line of their own."""
    name = "identities"
    if any(check.name == name for check in held.problems):
        return
    own = own_identities(held)
    known = {identity.fingerprint for identity in own}
    mine = [recipient for recipient in held.recipients if recipient.fingerprint in known]
    if not own:
        yield ok(name, "no identity file here, so no key on this machine opens what is saved")
    elif not mine:
        yield warning(
            name,
            "no identity here belongs to a recipient, so what is saved from now on does not open here",
            "add the recipient of an identity to keys.recipients, or leave keys.identities empty on purpose",
        )
    else:
        error = _round_trip(mine, own, settings)
        yield failed(name, error) if error else ok(name, "open what is sealed to their recipients")


def _kms(settings: Settings, held: Held) -> Iterator[Check]:
    for recipient in held.recipients:
        if not isinstance(recipient, BindableRecipient):
            continue
        error = _round_trip([recipient], held.identities, settings)
        if error is None:
            yield ok("kms", f"{recipient} seals and opens")
        elif isinstance(error, _UnopenedError):
            yield warning(
                "kms",
                f"{recipient} seals, and does not open here: {error}",
                "right for a writer that never reads; else allow kms:Decrypt, and name the key in keys.kms",
            )
        elif _saves_nothing(settings, held) and type(error) is KmsDeniedError:
            yield unknown(
                "kms",
                f"{recipient} does not seal here, which is right for who saves nothing; whether it opens "
                "could not be tried",
                "`archiver verify RUN --deep` of a run of one's own tasks tries it",
            )
        else:
            yield failed("kms", error)


def _saves_nothing(settings: Settings, held: Held) -> bool:
    """Whether no signing key is here, and none is meant to be; or it is that of a sweeper without sources."""
    if settings.retention.sweeper and not (own_identities(held) or settings.sweep.sources):
        return True
    return held.signing_key is None and not any(check.name == "signing key" for check in held.problems)


class _UnopenedError(KeyUnavailableError):
    """Sealing worked, opening did not."""


def _round_trip(
    recipients: Sequence[Recipient], identities: Sequence[Identity], settings: Settings
) -> ArchiverError | None:
    """Seal a few bytes and open them; nothing is stored."""
    try:
        sealed = _sealed(recipients, settings)
    except ArchiverError as error:
        return error
    try:
        with age.unseal(age.bind_identities(identities, _context(settings)), BytesIO(sealed)) as opened:
            opened.read()
    except ArchiverError as error:
        return _UnopenedError(str(error), remedy=error.remedy)
    return None


def _sealed(recipients: Sequence[Recipient], settings: Settings) -> bytes:
    pieces: list[bytes] = []
    sealer = age.seal(age.bind_recipients(recipients, _context(settings)), pieces.append)
    sealer.write(b"probe")
    sealer.close()
    return b"".join(pieces)


def _context(settings: Settings) -> Context:
    return Context(settings.keys.application, layout.DOCTOR_PROBES, layout.DOCTOR_PROBES, "effect")


def _signing(settings: Settings, held: Held) -> Iterator[Check]:
    own = held.signing_key.public if held.signing_key else None
    if own is not None:
        yield ok("signing key", f"{own} signs what is saved")
    elif not any(check.name == "signing key" for check in held.problems):
        yield ok("signing key", "none here: this configuration saves nothing")
    try:
        writers = Writers.load(settings.keys.writers, own=own)
    except ArchiverError as error:
        yield failed("writers", error)
        return
    yield _writers(writers, own, any(check.name == "signing key" for check in held.problems))


def _writers(writers: Writers, own: str | None, broken: bool) -> Check:
    name = "writers"
    if not writers.trusted and broken:
        return unknown(name, "no list of writers, and the signing key cannot be read: nobody is believed yet")
    if not writers.trusted:
        return failure(
            name,
            "nobody is trusted: there is no list of writers and no signing key, so nothing can be restored",
            "name the list of trusted writers as keys.writers, or restore your backup of the signing key",
            KeyUnavailableError,
        )
    if writers.source is None:
        return ok(name, "the own signing key alone is believed")
    names = ", ".join(dict.fromkeys(writer.name for writer in writers.trusted))
    if own is not None and own not in {writer.key for writer in writers.trusted}:
        return warning(
            name,
            f"{writers.source} does not list the own signing key, so what is saved here is refused here",
            "add the entry of the own key to the list",
        )
    return ok(name, f"{len(writers.trusted)} in {writers.source}: {names}")
