"""All settings as one frozen model: section, key, default and what it is for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from archiver.config.sweeping import RetentionSettings, SweepSettings
from archiver.config.values import (
    Count,
    Duration,
    Place,
    Places,
    Size,
    StoreUrl,
    Words,
    json_text,
    listed,
)
from archiver.config.workspace import WorkspaceSettings
from archiver.freshness import Policy
from archiver.freshness.hosts import AddressError, read_entry
from archiver.model import Frozen
from archiver.model.limits import MAX_CHAIN, MAX_MEMBER, Limits
from archiver.model.limits import Policy as LimitPolicy

file_values: ContextVar[dict[str, Any]] = ContextVar("file_values")
"""What the configuration file holds, while `load` builds the settings."""
_NAMED_KEY = re.compile(r"(?i:[0-9a-f]{32}|age1[a-z0-9]{50,4000})|arn:[a-z-]+:kms:\S+")


def _emergency(words: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what names no key: it would be loud for none, and nobody would know."""
    for word in words:
        if not _NAMED_KEY.fullmatch(word):
            said = "a secret key" if word.upper().startswith("AGE-SECRET-KEY") else repr(word[:80])
            raise ValueError(f"{said} is no recipient (age1…, or the ARN of a KMS key) and no fingerprint")
    return tuple(word if word.startswith("arn:") else word.lower() for word in words)


class StoreSettings(Frozen):
    """Where bundles and records lie."""

    url: StoreUrl | None = Field(
        None,
        description="A folder, or an address (`file:///srv/archive`, `s3://bucket/prefix`). Unset: a folder "
        "in the data home.",
    )
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = Field(
        None,
        description="The id the store must have; `archiver init` writes it here. Another one is refused.",
    )
    region: str | None = Field(
        None, description="AWS region of the bucket. Unset: what the AWS configuration says."
    )
    endpoint_url: str | None = Field(
        None, description="Address of an S3 server that is not AWS (`https://s3.example.com`)."
    )
    profile: str | None = Field(None, description="Profile of the AWS configuration to use.")
    checksums: Literal["full", "basic", "off"] = Field(
        "full",
        description="Checksums sent to S3: `full` (SHA-256, CRC-64/NVME for parts), `basic` (CRC-32), `off` "
        "for servers that know none.",
    )
    part_size: Annotated[Size, Field(ge=5 << 20, le=1 << 30)] = Field(
        16 << 20, description="Larger objects go to S3 in parts of this size."
    )
    parallel: Annotated[Count, Field(le=64)] = Field(
        8, description="Requests to S3 at the same time, for reads and for parts."
    )
    attempts: Annotated[Count, Field(le=20)] = Field(
        5, description="How often a request is tried before the store counts as unreachable."
    )
    timeout: Duration = Field(
        timedelta(seconds=30), description="How long to wait for an answer of the store."
    )
    fencing: bool = Field(
        True,
        description="Refuse a store that ignores conditional writes. `false`: go on without protection "
        "against two writers of one run.",
    )


class KeySettings(Frozen):
    """Who can open what is saved, and who is believed."""

    identities: Places = Field(
        (), description="age identity files that open bundles. Unset: `keys/identity.txt` in the config home."
    )
    recipients: Words = Field(
        (),
        description="Recipients to seal to: age (`age1…`, post-quantum `age1pq1…`) or the ARN of a KMS key. "
        "Unset: those of the identities.",
    )
    kms: Words = Field(
        (),
        description="ARNs of the KMS keys that may be asked to open something. Unset: those among the "
        "recipients.",
    )
    break_glass: Annotated[Words, AfterValidator(_emergency)] = Field(
        (),
        description="Recipients, or their fingerprints, whose identities are for emergencies only: that one "
        "of them opened something is said loudly and written down.",
    )
    kms_endpoint_url: str | None = Field(None, description="Address of a KMS that is not AWS's own.")
    application: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = Field(
        "checkpoint-archiver", description="The application in the encryption context of KMS."
    )
    signing_key: Place | None = Field(
        None, description="Ed25519 key that signs records. Unset: `keys/signing.pem` in the config home."
    )
    writers: Place | None = Field(
        None, description="`writers.toml`, the trusted signing keys. Unset: the own signing key alone."
    )


class ArchiveSettings(Frozen):
    """How runs are saved."""

    user: str | None = Field(None, description="The user id to write into checkpoints.")
    keep_turns: Annotated[Count, Field(le=1_000_000)] = Field(
        20, description="Newest turns that compaction keeps whole."
    )
    keep_full: bool = Field(False, description="Also archive the whole redacted transcript.")
    secret_environment: Words = Field(
        (), description="Environment variables whose values are secrets, besides those whose names say so."
    )


class LimitSettings(Limits):
    """Sizes and counts that may not be passed, on write and on read."""

    member: Annotated[Size, Field(ge=1, le=MAX_MEMBER)] = Field(
        64 << 20, description="Bytes of one file of a bundle."
    )
    bundle: Size = Field(2 << 30, description="Bytes of one unpacked bundle.")
    run: Size = Field(20 << 30, description="Stored bytes of all bundles of a run.")
    members: Count = Field(100_000, description="Files in one bundle.")
    item: Size = Field(
        16 << 20,
        description="Bytes of one line or message in the file of a transcript; one made of escapes takes 37 "
        "times its size in memory.",
    )
    artifact: Size = Field(16 << 20, description="Bytes of one output or picture that is an artifact.")
    artifact_policy: LimitPolicy = Field(
        "head-and-tail",
        description="What becomes of a larger one: no save, its head and tail, or what the list of artifacts "
        "says of it.",
    )
    bundle_policy: LimitPolicy = Field(
        "head-and-tail",
        description="What becomes of artifacts, the largest first, and of files of unknown formats when a "
        "bundle is too large.",
    )
    run_policy: LimitPolicy = Field(
        "reference",
        description="What becomes of all artifacts of a run that has met its limit; what then has no room is "
        "refused.",
    )


class TrustSettings(Frozen):
    """What is remembered outside the store, so that a store that was rolled back is noticed."""

    witness: Place | None = Field(
        None,
        description="Folder that remembers the newest record seen of each run. Unset: `witness` in the state "
        "home.",
    )
    use_witness: bool = Field(
        True, description="`false`: remember nothing; every restore then says `rollback: unverified`."
    )


class AuditSettings(Frozen):
    """What is written down about who opened, restored, accepted, resolved or rekeyed what."""

    file: Place | None = Field(
        None, description="JSON lines, appended to. Unset: `audit.jsonl` in the state home."
    )
    store: bool = Field(
        True, description="Also put each line, signed and sealed, into the store where this role may write."
    )
    who: str | None = Field(None, description="Who is acting. Unset: user and host.")


def _hosts(entries: tuple[str, ...]) -> tuple[str, ...]:
    """The entries as they are; one that names no host would silently allow none."""
    for entry in entries:
        try:
            read_entry(entry)
        except AddressError as error:
            raise ValueError(
                f"{entry!r} is not a host; write it as example.com, *.example.com or example.com:8443"
            ) from error
    return entries


class FreshnessSettings(Frozen):
    """When a checkpoint counts as stale, and what follows."""

    max_age: Duration = Field(timedelta(days=7), description="An older checkpoint is STALE.")
    policy: Policy = Field(Policy(), description="What STALE and UNKNOWN do to a restore.")
    timeout: Annotated[Duration, Field(gt=timedelta())] = Field(
        timedelta(seconds=10), description="How long one probe may take."
    )
    hosts: Annotated[Words, AfterValidator(_hosts)] = Field(
        (),
        description="Hosts that probes may contact: `example.com`, `*.example.com`, `example.com:8443`. "
        "Others are UNKNOWN, not contacted.",
    )
    watch: Words = Field(
        (),
        description="Resources whose version is captured with each save and compared at restore: "
        "`https://…`, `s3://bucket/key`, `git+https://…#branch`, `file:path`.",
    )
    credentials: Words = Field(
        (),
        description="Credentials whose presence, expiry and identity are compared at restore, never their "
        "values: `env:NAME`, `aws:` or `aws:profile`, `file:~/.netrc`.",
    )
    harness: str | None = Field(
        None, description="The harness that a restored run goes on with, as transcripts write it."
    )
    model: str | None = Field(None, description="The model that a restored run goes on with.")
    prompt_file: Place | None = Field(
        None, description="File with the whole system prompt that a restored run goes on with."
    )
    tools_file: Place | None = Field(
        None, description="JSON file with the tool schemas that a restored run goes on with."
    )


class RunSettings(Frozen):
    """How the library saves a run while it goes on, inside the loop of an agent."""

    profile: Literal["every-step", "milestones", "async"] = Field(
        "milestones",
        description="Which calls are saved: `every-step` each one before it returns, `milestones` those that "
        "bring something worth it, `async` each one in the background.",
    )
    floor: Duration = Field(
        timedelta(seconds=60),
        description="A run is not saved before it is this old or has made `run.floor_calls` calls, except "
        "for effects.",
    )
    floor_calls: Annotated[Count, Field(le=1_000_000)] = Field(
        10, description="Calls after which a run is saved though it is younger than `run.floor`."
    )
    ring: Annotated[Count, Field(ge=1, le=1000)] = Field(
        5, description="Newest checkpoints that a run can be rewound to."
    )
    patience: Duration = Field(
        timedelta(seconds=15),
        description="How long a call that waits for the store waits, before the run goes on with what is in "
        "the spool; also how long one waits for its workspace to be read.",
    )
    queue: Annotated[Count, Field(ge=1, le=1000)] = Field(
        8, description="Checkpoints that wait for the background writer."
    )
    spool: Place | None = Field(
        None,
        description="Folder for sealed checkpoints that are not in the store yet. Unset: `spool` in the "
        "state home.",
    )
    spool_limit: Size = Field(4 << 30, description="Bytes that the spool may hold.")
    full_every: Annotated[Count, Field(ge=1, le=MAX_CHAIN)] = Field(
        200,
        description="Bundles of an epoch: a full one and those after it that hold only what is new. 1: each "
        "is full.",
    )


class PatternSettings(Frozen):
    """A format of the user's own: a pattern in the syntax of RE2, or a form as rule files write it."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    kind: Annotated[str, Field(pattern=r"^([a-z0-9]+(-[a-z0-9]+)*)?$")] = ""
    """What the placeholder says; empty: the id."""
    pattern: str | None = None
    form: str | None = None
    keywords: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_of_two(self) -> PatternSettings:
        if (self.pattern is None) == (self.form is None):
            raise ValueError(f"pattern {self.id!r} needs either `pattern` or `form`")
        return self


class RedactionSettings(Frozen):
    """What is taken out before anything is sealed."""

    secret_files: Places = Field(
        (),
        description="Files whose values are secrets (`.env`, JSON, YAML, TOML, INI, `.netrc`, keys, …), or "
        "patterns such as `conf/*.env`; one that cannot be read stops the save.",
    )
    well_known_files: bool = Field(
        True,
        description="Also take out what stands in the credential files of well-known tools in the home "
        "folder, and in `.env` of the current one.",
    )
    rule_files: Places = Field(
        (),
        description="Files with redaction rules of your own, besides the built-in ones; also gitleaks' form.",
    )
    packs: Annotated[tuple[Literal["emails", "hosts", "identifiers"], ...], BeforeValidator(listed)] = Field(
        (), description="Packs of rules for what is no credential: `emails`, `hosts`, `identifiers`."
    )
    disabled_rules: Words = Field(
        (), description="Ids of built-in rules to leave out; the receipt names them."
    )
    patterns: Annotated[tuple[PatternSettings, ...], BeforeValidator(json_text)] = Field(
        (),
        description="Formats of your own: tables with `id`, `kind`, and `pattern` (RE2) or `form`. In a "
        "variable: JSON.",
    )
    reuse: bool = Field(
        True,
        description="Keep keyed digests of content without findings in the cache folder, so that it is not "
        "scanned again while rules and known values are the same.",
    )


class Settings(BaseSettings):
    """All settings, checked and immutable."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="ARCHIVER_",
        env_nested_delimiter="__",
        enable_decoding=False,
    )

    store: StoreSettings = StoreSettings()
    keys: KeySettings = KeySettings()
    archive: ArchiveSettings = ArchiveSettings()
    limits: LimitSettings = LimitSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    freshness: FreshnessSettings = FreshnessSettings()
    trust: TrustSettings = TrustSettings()
    audit: AuditSettings = AuditSettings()
    redaction: RedactionSettings = RedactionSettings()
    run: RunSettings = RunSettings()
    retention: RetentionSettings = RetentionSettings()
    sweep: SweepSettings = SweepSettings()

    _file: Path | None = PrivateAttr(None)

    @property
    def file(self) -> Path | None:
        """The configuration file that was read."""
        return self._file

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic-settings passes it by name
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, InitSettingsSource(settings_cls, init_kwargs=file_values.get({}))


def leaves(model: Any = Settings, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every key as its path of names, with its pydantic field."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Frozen):
            yield from leaves(field.annotation, (*path, name))
        else:
            yield (*path, name), field


def _holds_paths(annotation: Any) -> bool:
    return annotation is Path or any(map(_holds_paths, get_args(annotation)))


PATHS = frozenset(
    {(key[0], key[1]) for key, field in leaves() if _holds_paths(field.annotation)} | {("store", "url")}
)
"""Sections and keys whose values are paths."""
