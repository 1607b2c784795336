"""What is known of the git repository of a workspace."""

from __future__ import annotations

from archiver.model.base import Frozen


class GitDocument(Frozen):
    """The state of one repository; `head` is the commit that HEAD names, null before the first one."""

    head: str | None = None
