"""A branch of a git repository elsewhere: `git+https://host/repository#branch`, `git+file:///path#branch`.

Repositories behind ssh are not asked: that would start programs and use keys. A repository on this machine is
looked into as the workspace is, with everything overridden that its configuration could make git start.
"""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic
from typing import Final
from urllib.parse import unquote, urlsplit

from archiver.freshness import git_protocol
from archiver.freshness.hosts import AddressError, without_secrets
from archiver.freshness.network import Network, not_asked, place_of
from archiver.freshness.resources import GoneError, Token, World, changed
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding
from archiver.git.repository import GitError, Repository

SCHEMES: Final = ("git+https://", "git+http://", "git+file://")

_REF = re.compile(
    r"(?!.*(?:\.\.|@\{|//|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\-][^\x00-\x20\x7f~^:?*\[\\]{0,254}"
)


class GitResource:
    """The object that a branch stands at; without a branch, the one that HEAD does."""

    def see(self, address: str, world: World) -> Token:
        url, _, branch = address.removeprefix("git+").partition("#")
        return {"head": tip(url, ref_of(branch), world.network)}

    def compare(self, address: str, then: Token, world: World) -> Finding:
        was = then.get("head")
        if not isinstance(was, str):
            raise ValueError("the record holds no head")  # noqa: TRY004 - as for every other bad record
        now = str(self.see(address, world)["head"])
        if now == was:
            return Finding("FRESH", f"{address}: head {now[:12]} as then")
        return changed(address, "head", was[:12], now[:12])


def ref_of(branch: str) -> str:
    """The whole name of a branch, or of a ref that is already whole."""
    if not branch:
        return "HEAD"
    if not _REF.fullmatch(branch) or branch.endswith(("/", ".")):
        raise not_asked(AddressError("the part behind `#` is no name of a branch"))
    return branch if branch.startswith("refs/") else f"refs/heads/{branch}"


def tip(url: str, ref: str, network: Network) -> str:
    """The object id at `ref` of the repository at an address of `http`, `https` or `file`."""
    if url.startswith("file:"):
        return _local(url, ref, network.deadline)
    try:
        place = place_of(without_secrets(url))
    except AddressError as error:
        raise not_asked(error) from error
    if "?" in place.path:
        raise not_asked(AddressError("the address of a repository has no query"))
    return git_protocol.tip(place, ref, network)


def _local(url: str, ref: str, deadline: float) -> str:
    parts = urlsplit(url)
    folder = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not folder.startswith("/") or "\0" in folder:
        raise Unasked("its address names no folder of this machine", "write git+file:///path#branch")
    if not Path(folder).is_dir():
        raise GoneError("there is no such folder")
    try:
        found = Repository(Path(folder), deadline - monotonic(), exactly=True).tip(ref)
    except (GitError, OSError) as error:
        raise Unasked(str(error)) from error
    if found is None:
        raise GoneError(f"the repository has no {ref}")
    return found
