"""The probe `installed`: folders of a real virtual environment and of npm that change."""

from __future__ import annotations

import json
import os
import venv
from pathlib import Path

import pytest

from archiver import jsonio
from archiver.freshness import Verdict, judge_all
from archiver.freshness.installed import MAX_LIST, InstalledProbe
from archiver.freshness.registry import MAX_CAPTURE
from archiver.model import JsonValue

from .repos import context

PROBE = InstalledProbe()


def judge(captured: JsonValue, folder: Path | None) -> Verdict:
    return judge_all({"installed": captured}, context(folder), probes=[PROBE]).verdicts[0]


def packages(work: Path) -> Path:
    """The folder that Python installs into, in an environment made by Python itself."""
    if not (work / ".venv").exists():
        venv.create(work / ".venv")
    (found,) = (work / ".venv" / "lib").glob("python*/site-packages")
    return found


def install(work: Path, name: str, version: str) -> Path:
    folder = packages(work) / f"{name}-{version}.dist-info"
    folder.mkdir()
    return folder


def npm(work: Path, **versions: str) -> None:
    (work / "node_modules").mkdir(exist_ok=True)
    listed = {f"node_modules/{name}": {"version": version} for name, version in versions.items()}
    (work / "node_modules" / ".package-lock.json").write_text(json.dumps({"packages": listed}))


def test_an_upgrade_is_named(tmp_path: Path) -> None:
    before = install(tmp_path, "Requests", "2.31.0")
    install(tmp_path, "typing_extensions", "4.9.0")
    captured = PROBE.capture(context(tmp_path))
    assert isinstance(captured, dict)
    assert captured["python"] == {
        "names": ["requests", "typing-extensions"],
        "versions": ["2.31.0", "4.9.0"],
    }
    assert judge(captured, tmp_path).state == "FRESH"
    before.rename(before.with_name("Requests-2.32.1.dist-info"))
    verdict = judge(captured, tmp_path)
    assert verdict.state == "STALE"
    assert verdict.evidence == "Python packages: requests 2.31.0 then, 2.32.1 now"
    assert "uv sync" in str(verdict.remedy)
    before.with_name("Requests-2.32.1.dist-info").rmdir()
    install(tmp_path, "httpx", "0.27.0")
    assert judge(captured, tmp_path).evidence == "Python packages: httpx 0.27.0 came; requests 2.31.0 went"


def test_node_packages(tmp_path: Path) -> None:
    npm(tmp_path, react="18.2.0", left="1.0.0")
    captured = PROBE.capture(context(tmp_path))
    assert judge(captured, tmp_path).state == "FRESH"
    npm(tmp_path, react="19.0.0", left="1.0.0")
    verdict = judge(captured, tmp_path)
    assert (verdict.state, verdict.evidence) == ("STALE", "Node packages: react 18.2.0 then, 19.0.0 now")
    assert "npm ci" in str(verdict.remedy)


def test_nothing_installed_is_an_answer(tmp_path: Path) -> None:
    captured = PROBE.capture(context(tmp_path))
    assert judge(captured, tmp_path).state == "FRESH"
    install(tmp_path, "httpx", "0.27.0")
    verdict = judge(captured, tmp_path)
    assert (verdict.state, verdict.evidence) == ("STALE", "Python packages: none then, 1 now")
    captured = PROBE.capture(context(tmp_path))
    (tmp_path / ".venv").rename(tmp_path / "moved")
    assert judge(captured, tmp_path).evidence == "Python packages: none are installed any more"


def test_a_folder_that_may_be_no_work_tree_is_unknown(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    other.mkdir()
    install(work, "httpx", "0.27.0")
    captured = PROBE.capture(context(work))
    assert judge(captured, other).state == "UNKNOWN"
    assert judge(PROBE.capture(context(tmp_path)), other).state == "UNKNOWN"  # nothing, but elsewhere
    assert judge(captured, None).state == "UNKNOWN"
    npm(other, react="19.0.0")
    assert judge(captured, other).state == "STALE"


def test_a_long_list_becomes_a_digest(tmp_path: Path) -> None:
    for number in range(600):
        install(tmp_path, f"package{number}", "1.0")
    npm(tmp_path, **{f"a-module-{number}": "1.0" for number in range(600)})
    captured = PROBE.capture(context(tmp_path))
    assert isinstance(captured, dict)
    assert captured["python"].keys() == captured["node"].keys() == {"count", "digest"}
    assert len(jsonio.dumps(captured)) < MAX_LIST
    assert judge(captured, tmp_path).state == "FRESH"
    install(tmp_path, "another", "1.0")
    verdict = judge(captured, tmp_path)
    assert (verdict.state, verdict.evidence.split(";")[1]) == ("STALE", " 600 then, 601 now")


def test_two_lists_that_are_just_short_enough_fit(tmp_path: Path) -> None:
    for number in range(300):
        install(tmp_path, f"package{number:06}", "1.0.0")
    npm(tmp_path, **{f"package{number:06}": "1.0.0" for number in range(300)})
    captured = PROBE.capture(context(tmp_path))
    assert isinstance(captured, dict)
    assert "names" in captured["python"]
    assert len(jsonio.dumps(captured)) < MAX_CAPTURE


def test_an_environment_of_the_whole_repository_counts_for_a_part(tmp_path: Path) -> None:
    part = tmp_path / "packages" / "api"
    part.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    install(tmp_path, "httpx", "0.27.0")
    npm(tmp_path, react="18.0.0")
    captured = PROBE.capture(context(part))
    install(tmp_path, "attrs", "1.0")
    assert "attrs 1.0 came" in judge(captured, part).evidence
    npm(tmp_path, react="19.0.0")
    assert "../../react 18.0.0 then, 19.0.0 now" in judge(captured, part).evidence


def put(modules: Path, name: str, version: str) -> None:
    (modules / name).mkdir(parents=True, exist_ok=True)
    (modules / name / "package.json").write_text(json.dumps({"name": name, "version": version}))


@pytest.mark.parametrize("name", ["react", "@scope/part"])
def test_node_packages_without_a_list(tmp_path: Path, name: str) -> None:
    """As yarn installs them."""
    nothing = PROBE.capture(context(tmp_path))
    put(tmp_path / "node_modules", name, "18.0.0")
    assert judge(nothing, tmp_path).state == "STALE"
    captured = PROBE.capture(context(tmp_path))
    assert judge(captured, tmp_path).state == "FRESH"
    put(tmp_path / "node_modules", name, "19.0.0")
    assert f"{name} 18.0.0 then, 19.0.0 now" in judge(captured, tmp_path).evidence


def test_node_packages_of_pnpm(tmp_path: Path) -> None:
    store = tmp_path / "node_modules" / ".pnpm"
    (store / "react@18.0.0").mkdir(parents=True)
    captured = PROBE.capture(context(tmp_path))
    assert judge(captured, tmp_path).state == "FRESH"
    (store / "react@18.0.0").rename(store / "react@19.0.0")
    assert judge(captured, tmp_path).evidence == "Node packages: react@18.0.0 went; react@19.0.0 came"


def test_a_list_that_is_not_true_any_more(tmp_path: Path) -> None:
    npm(tmp_path, react="18.0.0", vue="3.0.0")
    for name, version in (("react", "18.0.0"), ("vue", "3.0.0")):
        put(tmp_path / "node_modules", name, version)
    captured = PROBE.capture(context(tmp_path))
    put(tmp_path / "node_modules", "react", "19.0.0")
    assert "react 18.0.0 then, 19.0.0 now" in judge(captured, tmp_path).evidence
    (tmp_path / "node_modules" / "vue" / "package.json").unlink()
    assert "vue 3.0.0 then, not there now" in judge(captured, tmp_path).evidence


def test_parts_of_the_project_are_no_packages(tmp_path: Path) -> None:
    put(tmp_path / "node_modules", "react", "18.0.0")
    listed = {
        "node_modules/react": {"version": "18.0.0"},
        "node_modules/part": {"resolved": "packages/part", "link": True},
        "packages/part": {"version": "0.1.0"},
    }
    (tmp_path / "node_modules" / ".package-lock.json").write_text(json.dumps({"packages": listed}))
    captured = PROBE.capture(context(tmp_path))
    assert isinstance(captured, dict)
    assert captured["node"] == {"names": ["react"], "versions": ["18.0.0"]}


def test_a_list_leads_nowhere_else(tmp_path: Path) -> None:
    put(tmp_path, "outside", "1.0.0")
    put(tmp_path / "node_modules", "react", "18.0.0")
    npm(tmp_path, **{"../outside": "2.0.0", "react": "18.0.0"})
    captured = PROBE.capture(context(tmp_path))
    assert isinstance(captured, dict)
    assert captured["node"] == {"names": ["../outside", "react"], "versions": ["2.0.0", "18.0.0"]}


@pytest.mark.parametrize(
    "origin",
    [
        {"dir_info": {"editable": True}},
        {"dir_info": {}},
        {"vcs_info": {"vcs": "git", "commit_id": "a" * 40}},
        {"archive_info": {"hash": "sha256=" + "b" * 64}},
        [],
    ],
)
def test_one_version_from_elsewhere_is_another(tmp_path: Path, origin: JsonValue) -> None:
    folder = install(tmp_path, "httpx", "0.27.0")
    captured = PROBE.capture(context(tmp_path))
    (folder / "direct_url.json").write_text(json.dumps(origin))
    verdict = judge(captured, tmp_path)
    assert (verdict.state, "httpx 0.27.0 then, 0.27.0 " in verdict.evidence) == ("STALE", True)
    assert judge(PROBE.capture(context(tmp_path)), tmp_path).state == "FRESH"


@pytest.mark.parametrize("name", ["old-1.0.egg-info", "old-1.0-py3.11.egg-info"])
def test_packages_of_setuptools_count(tmp_path: Path, name: str) -> None:
    packages(tmp_path)
    captured = PROBE.capture(context(tmp_path))
    (packages(tmp_path) / name).mkdir()
    assert judge(captured, tmp_path).evidence.endswith("old 1.0 came")


def test_modules_that_are_a_link_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    captured = PROBE.capture(context(tmp_path))
    (tmp_path / "node_modules").symlink_to(tmp_path / "elsewhere")
    put(tmp_path / "elsewhere", "react", "18.0.0")
    assert judge(captured, tmp_path).state in {"STALE", "UNKNOWN"}


def test_hostile_folders(tmp_path: Path) -> None:
    install(tmp_path, "httpx", "0.27.0")
    npm(tmp_path, react="19.0.0")
    captured = PROBE.capture(context(tmp_path))
    place = packages(tmp_path)
    (place / "evil\x1b[31m-1.0.dist-info").mkdir()
    (place / "a\nb-1.0.dist-info").mkdir()
    (place / "linked-1.0.dist-info").symlink_to(place)
    (place / "file-1.0.dist-info").write_text("")
    assert judge(captured, tmp_path).state == "FRESH"  # none of these is an installed package
    listing = tmp_path / "node_modules" / ".package-lock.json"
    for make in (
        lambda: os.mkfifo(listing),
        lambda: listing.symlink_to("/dev/zero"),
        lambda: listing.write_text("[" * 100_000),
        lambda: listing.write_text("[]"),
        lambda: listing.write_text('{"packages": []}'),
        listing.mkdir,
    ):
        listing.unlink()
        make()
        assert judge(captured, tmp_path).state == "UNKNOWN"


def test_versions_that_steer_terminals_are_inert(tmp_path: Path) -> None:
    npm(tmp_path, react="1\x1b[31m\n")
    captured = PROBE.capture(context(tmp_path))
    npm(tmp_path, react="2\x1b]0;x\x07")
    verdict = judge(captured, tmp_path)
    assert verdict.state == "STALE"
    assert verdict.evidence.isprintable()


def test_a_version_that_redaction_took_is_unknown(tmp_path: Path) -> None:
    install(tmp_path, "httpx", "0.27.0")
    captured = {"path": str(tmp_path), "python": {"names": ["httpx"], "versions": ["[REDACTED:secret:0a1b]"]}}
    assert judge(captured, tmp_path).state == "UNKNOWN"


@pytest.mark.parametrize(
    "captured",
    [None, 1, [], {"python": 1}, {"python": {"count": 1, "digest": {}}}]
    + [{"python": {"names": ["httpx"], "versions": found}} for found in (None, [], ["1", "2"], {"a": "b"})],
)
def test_a_record_without_a_list_is_unknown(tmp_path: Path, captured: JsonValue) -> None:
    install(tmp_path, "httpx", "0.27.0")
    assert judge(captured, tmp_path).state == "UNKNOWN"
