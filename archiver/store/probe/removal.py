"""Remove probes for good: in a bucket with versions a plain delete would only hide them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from archiver.errors import ArchiverError
from archiver.store.probe.answer import ask
from archiver.store.s3.client import S3


def remove(s3: S3, names: Iterable[str]) -> Iterator[str]:
    """Remove the objects with all their versions; yields the names of those of which something stays."""
    for name in names:
        if not _remove(s3, name):
            yield name


def _remove(s3: S3, name: str) -> bool:
    bodies, markers = _versions(s3, name)
    if not bodies and not markers:
        return ask(s3, "delete_object", name).done
    if not _delete(s3, name, bodies):
        # Locked, or not for these credentials: at least it is hidden. Without its markers it would come back.
        if not markers:
            ask(s3, "delete_object", name)
        return False
    return _delete(s3, name, markers)


def _delete(s3: S3, name: str, versions: list[str]) -> bool:
    return all([ask(s3, "delete_object", name, VersionId=version).done for version in versions])  # noqa: C419


def _versions(s3: S3, name: str) -> tuple[list[str], list[str]]:
    """The versions and the markers of an object; none where it has no versions, or they may not be seen."""
    bodies: list[str] = []
    markers: list[str] = []
    try:
        for page in s3.pages("list_object_versions", Prefix=s3.address.key(name)):
            bodies += [str(entry["VersionId"]) for entry in page.get("Versions", ())]
            markers += [str(entry["VersionId"]) for entry in page.get("DeleteMarkers", ())]
    except ArchiverError:
        return [], []
    return ([], []) if set(bodies) <= {"null"} and not markers else (bodies, markers)
