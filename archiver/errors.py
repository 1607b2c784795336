"""One tree of errors, grouped by what the caller should do; each group has one exit code.

Every message says what happened, to which object; `remedy` says what to do next. Foreign exceptions are
translated where they enter, so a caller that handles `ArchiverError` has handled them all.
"""

from __future__ import annotations

from typing import Final


class ArchiverError(Exception):
    """Base of every error this package raises on purpose."""

    exit_code = 1
    usual_remedy: str | None = None
    """What helps against errors of this kind where the place that raises knows nothing better."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self._remedy: str | None = None
        self.remedy = remedy or self.usual_remedy
        self.details: dict[str, object] = {}
        """The same as data, for programs that decide what to do: values that JSON has."""

    @property
    def remedy(self) -> str | None:
        """What to do next; a traceback shows it too."""
        return self._remedy

    @remedy.setter
    def remedy(self, remedy: str | None) -> None:
        notes: list[str] = getattr(self, "__notes__", [])
        if self._remedy is not None and (old := _note(self._remedy)) in notes:
            notes.remove(old)
        self._remedy = remedy
        if remedy is not None:
            self.add_note(_note(remedy))


def _note(remedy: str) -> str:
    return f"next: {remedy}"


# --- 2: the call or its input has to change -----------------------------------------------------------------


class UsageError(ArchiverError):
    """The call cannot be carried out as it was made."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file, variable or flag is missing or wrong."""


class InvalidNameError(UsageError):
    """A run id, object name or prefix cannot be used as a name."""


class InputNotFoundError(UsageError):
    """A file or folder named by the caller does not exist or cannot be read."""


class NotSerialisableError(UsageError):
    """A value has no JSON form; `path` says where it sits."""

    def __init__(self, message: str, *, path: str, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.path = path


class InvalidDocumentError(UsageError):
    """A document does not have the shape of the schema version it claims."""


# --- 3: stale, or refused for safety ------------------------------------------------------------------------


class RefusedError(ArchiverError):
    """Going on would not be safe; nothing was changed."""

    exit_code = 3


class StaleCheckpointError(RefusedError):
    """The world no longer matches the checkpoint."""


class StaleWriterError(RefusedError):
    """Another writer committed this sequence number first, or took the run over."""


class LimitExceededError(RefusedError):
    """A size or a count passed its limit, on write or on read."""


class AlreadyExistsError(RefusedError):
    """A key, folder or object that must be new exists already."""


class RedactionUnavailableError(RefusedError):
    """The redaction engine or a rule file did not load, so nothing may be sealed."""


class RedactedValueError(RefusedError):
    """A value holds the placeholder of a credential, so it cannot be used as a value."""


class AuditError(RefusedError):
    """The audit line of an action cannot be written, so the action is not carried out."""


class WitnessError(RefusedError):
    """What is remembered outside the store cannot be read or written, so a step back would not be noticed."""


class UntrustedWriterError(RefusedError):
    """A valid signature by a key that the restorer does not accept for this run."""


class EffectNotRecordedError(RefusedError):
    """The intent of an effect that cannot be done again cannot be recorded in the store: it is not done."""


class EffectDoneError(RefusedError):
    """An effect happened before, and the block of its `with` cannot be left out here.

    `result` is what was recorded of it.
    """

    def __init__(self, message: str, *, result: object, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.result = result


class RunFinishedError(RefusedError):
    """A run that has succeeded does nothing new under its id."""


class RunHeldError(RefusedError):
    """The run is on hold, so nothing of it may be removed."""


class SweepRunningError(RefusedError):
    """Another sweep of the same store is at work on this machine; `pid` is its process, 0 where unknown."""

    def __init__(self, message: str, *, pid: int = 0, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.pid = pid


class UnsafeLifecycleError(RefusedError):
    """Rules of the bucket delete what is promised to be there longer."""


class BundleTooOldError(RefusedError):
    """A record may only commit a bundle put less than 24 hours ago."""


# --- 4: damaged or incomplete -------------------------------------------------------------------------------


class DamagedError(ArchiverError):
    """Bytes are not what was written, or some are missing."""

    exit_code = 4
    usual_remedy = "bring the object back from another copy of the store"


class MalformedTranscriptError(DamagedError):
    """A transcript is damaged in its middle; `line` and `column` (1-based) say where."""

    def __init__(self, message: str, *, line: int, column: int, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.line = line
        self.column = column


class ContainerError(DamagedError):
    """An age file is not well formed or not authentic."""


class HeaderError(ContainerError):
    """The header of an age file is not canonical or not well formed."""


class HeaderMacError(ContainerError):
    """The header of an age file was changed after it was written."""


class WrappedKeyError(ContainerError):
    """A wrapped key in the header of an age file was changed."""


class MovedKeyError(WrappedKeyError):
    """A wrapped key in the header of an age file is whole, and was made for another file."""


class PayloadError(ContainerError):
    """The payload of an age file was changed, truncated or extended."""


class SignatureError(DamagedError):
    """A record's signature does not fit its body."""


class RecordError(DamagedError):
    """A record is authentic but does not say what its place demands (name, run, number, form)."""


class ChainError(DamagedError):
    """The records of a run do not form one unbroken chain."""


class MissingRecordError(ChainError):
    """A record inside the chain is gone."""


class RolledBackError(ChainError):
    """The store is behind what the witness has seen of a run: it was rolled back, or its end was removed."""


class ForkError(ChainError):
    """A number of a run has another record than the one that the witness has seen under it."""


class BundleMissingError(DamagedError):
    """A committed bundle is not in the store."""


class DigestMismatchError(DamagedError):
    """A bundle or one of its members does not have the digest that was signed."""


class ContextMismatchError(DamagedError):
    """An object belongs to another store, run, task or number than the place it lies in."""


class RecipientMismatchError(DamagedError):
    """A header lets other keys open an object than were signed, and no administrator's note explains it."""


class ArchiveFormatError(DamagedError):
    """The inside of a bundle (zstd, tar, manifest) does not follow the format."""


# --- 5: made by a newer version -----------------------------------------------------------------------------


class UnsupportedSchemaError(ArchiverError):
    """A schema or format version that this release does not know; the message names the version needed."""

    exit_code = 5


# --- 6: the key is not here ---------------------------------------------------------------------------------


class KeyUnavailableError(ArchiverError):
    """No identity at hand opens the object; `fingerprints` names those that would, when the file says so."""

    exit_code = 6

    def __init__(
        self, message: str, *, fingerprints: tuple[str, ...] = (), remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.fingerprints = fingerprints


class InvalidKeyError(KeyUnavailableError):
    """A key file or key string is not well formed."""


class ForeignKeyError(KeyUnavailableError):
    """An object names a KMS key that is not in the own list, so KMS was not asked."""


class KmsDeniedError(KeyUnavailableError):
    """KMS refused: the caller lacks a permission, or the key's policy forbids it."""


class KmsExpiredError(KmsDeniedError):
    """The credentials for KMS have expired: nobody decided that the caller may not use the key."""


class KmsKeyDisabledError(KeyUnavailableError):
    """The KMS key is disabled, waits for its deletion, or is not there."""


class KmsUnreachableError(KeyUnavailableError):
    """KMS cannot be reached, throttles, or failed."""


KMS_AWAY: Final = (KmsUnreachableError, KmsExpiredError)
"""What may be over later without anybody having changed a policy or a key."""


# --- 7: a person must decide --------------------------------------------------------------------------------


class NeedsDecisionError(ArchiverError):
    """Only a person can say whether going on is right."""

    exit_code = 7


class BudgetExhaustedError(NeedsDecisionError):
    """The run has used what it may use: a person says whether it may use more."""


# --- 8: the store -------------------------------------------------------------------------------------------


class StoreError(ArchiverError):
    """The store did not do what was asked of it."""

    exit_code = 8


class StoreUnreachableError(StoreError):
    """The store cannot be reached or failed half-way."""


class StoreMissingError(StoreUnreachableError):
    """The folder or bucket of the store is not there: waiting does not help."""


class StoreDeniedError(StoreError):
    """The store refused access."""


class StoreFullError(StoreError):
    """The store has no room left."""


class ObjectNotFoundError(StoreError):
    """An object is not in the store."""


AWAY: Final = (StoreUnreachableError, StoreDeniedError, StoreFullError)
"""What may be over when it is tried again later: no network, credentials that expired, a full disk."""


class ClockSkewError(StoreError):
    """The clocks of this machine and of the store differ too much; `seconds` is how far this one is ahead."""

    def __init__(self, message: str, *, seconds: float, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.seconds = seconds


class UnconfirmedError(StoreError):
    """A create was answered with "exists already", and whether it is the own object cannot be read.

    What was put may be there: a writer without read permission cannot tell.
    """


class UnfencedStoreError(StoreError):
    """The store ignores conditions, so two writers of one number can both win."""


# --- 9: nothing there ---------------------------------------------------------------------------------------


class NoSuchRunError(ArchiverError):
    """The store has no run, or no checkpoint of it, by that name."""

    exit_code = 9


class NoSuchArtifactError(NoSuchRunError):
    """A checkpoint has no artifact by that name, or does not carry its content."""


class RunErasedError(NoSuchRunError):
    """An administrator has erased the run, every version of it; only a signed tombstone is left."""


class BundleRemovedError(NoSuchRunError):
    """An administrator has removed the bundles of the run, and signed why."""


class BundleExpiredError(NoSuchRunError):
    """A committed bundle is gone, as its retention class says that it may be by now."""
