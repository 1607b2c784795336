"""The probe `git_branch` on real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.freshness.git_branch import GitBranchProbe
from archiver.model import JsonValue

from .repos import Repo, context

PROBE = GitBranchProbe()


def test_the_same_branch_is_fresh_also_at_another_commit(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    assert captured == {"branch": "main"}
    repo.commit("two")
    assert PROBE.judge(captured, context(repo.folder)).state == "FRESH"


def test_another_branch_at_the_same_commit_is_stale_and_has_a_command(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    repo.git("switch", "-q", "-c", "it's")
    verdict = PROBE.judge(captured, context(repo.folder))
    assert verdict.state == "STALE"
    assert verdict.evidence == "on main then, on it's now"
    assert "`git switch main`" in str(verdict.remedy)
    back = PROBE.judge({"branch": "it's"}, context(repo.folder))
    assert back.state == "FRESH"
    repo.git("switch", "-q", "main")
    assert "git switch 'it'\"'\"'s'" in str(PROBE.judge({"branch": "it's"}, context(repo.folder)).remedy)


def test_no_branch(repo: Repo) -> None:
    on_main = PROBE.capture(context(repo.folder))
    repo.git("checkout", "-q", "--detach")
    detached = PROBE.capture(context(repo.folder))
    assert detached == {"branch": None}
    assert PROBE.judge(detached, context(repo.folder)).state == "FRESH"
    assert PROBE.judge(on_main, context(repo.folder)).evidence == "on main then, on no branch now"
    repo.git("switch", "-q", "main")
    verdict = PROBE.judge(detached, context(repo.folder))
    assert (verdict.state, "git switch --detach" in str(verdict.remedy)) == ("STALE", True)


def test_a_branch_that_was_renamed_is_gone(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    repo.git("branch", "-m", "main", "trunk")
    verdict = PROBE.judge(captured, context(repo.folder))
    assert verdict.state == "STALE"
    assert "there is no branch main any more" in verdict.evidence
    assert "git switch" not in str(verdict.remedy)


def test_what_cannot_be_compared_is_unknown(repo: Repo, tmp_path: Path) -> None:
    captured = PROBE.capture(context(repo.folder))
    for folder in (tmp_path, tmp_path / "gone", None):
        verdict = PROBE.judge(captured, context(folder))
        assert (verdict.state, bool(verdict.remedy)) == ("UNKNOWN", True)
        assert PROBE.capture(context(folder)) is None


@pytest.mark.parametrize("captured", [None, 1, "main", {}, {"branch": 1}, {"branch": ["main"]}])
def test_a_record_without_a_branch_is_refused(repo: Repo, captured: JsonValue) -> None:
    with pytest.raises(TypeError):
        PROBE.judge(captured, context(repo.folder))


@pytest.mark.parametrize("branch", ["--detach", "-d", "a\nb", "../../x", "x" * 5000])
def test_a_hostile_name_is_only_a_name(repo: Repo, branch: str) -> None:
    verdict = PROBE.judge({"branch": branch}, context(repo.folder))
    assert verdict.state == "STALE"
    assert "any more" in verdict.evidence
    assert repo.git("branch", "--show-current") == "main"


def test_a_tag_of_the_same_name_changes_nothing(repo: Repo) -> None:
    captured = PROBE.capture(context(repo.folder))
    repo.git("tag", "main")
    assert PROBE.judge(captured, context(repo.folder)).evidence == "on main, then and now"
