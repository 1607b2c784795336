"""The probes `runtime` and `platform`: real files and variables that change."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from archiver.freshness import machine
from archiver.freshness.machine import PlatformProbe, RuntimeProbe
from archiver.model import Environment, JsonValue

from .repos import context

RUNTIME, PLATFORM = RuntimeProbe(), PlatformProbe()
HERE = platform.python_version()


def with_python(folder: Path, version: str) -> Path:
    (folder / ".venv").mkdir(parents=True, exist_ok=True)
    (folder / ".venv" / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")
    return folder


def with_node(folder: Path, version: str) -> dict[str, str]:
    """A Node as its archive lays it out; gives the variables that find it."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "bin" / "node").write_text("")
    header = folder / "include" / "node" / "node_version.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    parts = zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True)
    header.write_text("".join(f"#define NODE_{part}_VERSION {number}\n" for part, number in parts))
    return {"PATH": f"relative:{folder / 'bin'}"}


def test_the_python_of_the_workspace(tmp_path: Path) -> None:
    world = context(with_python(tmp_path, "3.12.1"))
    captured = RUNTIME.capture(world)
    assert captured == {"python": {"of": "workspace", "version": "3.12.1"}, "node": None}
    assert RUNTIME.judge(captured, world).state == "FRESH"
    with_python(tmp_path, "3.13.0")
    verdict = RUNTIME.judge(captured, world)
    assert (verdict.state, verdict.evidence) == ("STALE", "Python of the workspace: 3.12.1 then, 3.13.0 now")
    (tmp_path / ".venv" / "pyvenv.cfg").unlink()
    assert RUNTIME.judge(captured, world).evidence == "Python of the workspace: 3.12.1 then, none now"


def test_the_python_of_the_whole_repository_counts_for_a_part(tmp_path: Path) -> None:
    part = tmp_path / "packages" / "api"
    part.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    with_python(tmp_path, "3.12.1.final.0")  # as `virtualenv` writes it
    captured = RUNTIME.capture(context(part))
    with_python(tmp_path, "3.12.1")
    assert RUNTIME.judge(captured, context(part)).state == "FRESH"
    with_python(tmp_path, "3.13.0")
    assert RUNTIME.judge(captured, context(part)).evidence == (
        "Python of the workspace: 3.12.1 then, 3.13.0 now"
    )


def test_the_python_that_the_run_states() -> None:
    assert RUNTIME.judge(RUNTIME.capture(context()), context()).state == "FRESH"
    captured = RUNTIME.capture(context(environment=Environment(python="3.9.2")))
    verdict = RUNTIME.judge(captured, context())
    assert (verdict.state, verdict.evidence) == ("STALE", f"Python: 3.9.2 then, {HERE} now")


def test_node_is_read_and_not_started(tmp_path: Path) -> None:
    then, now = with_node(tmp_path / "a", "20.1.0"), with_node(tmp_path / "b", "22.3.1")
    captured = RUNTIME.capture(context(environ=then))
    assert isinstance(captured, dict)
    assert captured["node"] == "20.1.0"
    assert RUNTIME.judge(captured, context(environ=then)).state == "FRESH"
    verdict = RUNTIME.judge(captured, context(environ=now))
    assert (verdict.state, "Node: 20.1.0 then, 22.3.1 now" in verdict.evidence) == ("STALE", True)
    assert "Node: 20.1.0 then, none now" in RUNTIME.judge(captured, context()).evidence


def test_a_node_of_the_current_folder_is_not_the_one_in_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_node(tmp_path, "20.1.0")
    monkeypatch.chdir(tmp_path)
    for path in ("bin", "", ".", "./bin::bin"):
        captured = RUNTIME.capture(context(environ={"PATH": path}))
        assert isinstance(captured, dict)
        assert captured["node"] is None


def test_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = PLATFORM.capture(context())
    assert PLATFORM.judge(captured, context()).state == "FRESH"
    release = tmp_path / "os-release"
    release.write_text('ID="other"\nVERSION_ID=1\n')
    monkeypatch.setattr(machine, "_RELEASES", (release,))
    verdict = PLATFORM.judge(captured, context())
    assert verdict.state == "STALE"
    assert "other 1 now" in verdict.evidence


def test_another_machine_or_libc() -> None:
    captured = PLATFORM.capture(context())
    assert isinstance(captured, dict)
    for key, value in (("machine", "sparc64"), ("libc", "musl 1.2"), ("system", "Plan9 4")):
        verdict = PLATFORM.judge({**captured, key: value}, context())
        assert (verdict.state, f"{key}: {value} then" in verdict.evidence) == ("STALE", True)


def test_the_digest_of_a_container_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = "a" * 64, "b" * 64
    captured = PLATFORM.capture(context(environ={"IMAGE_DIGEST": f"registry/x@sha256:{one}"}))
    assert isinstance(captured, dict)
    assert captured["image"] == f"sha256:{one}"
    verdict = PLATFORM.judge(captured, context(environ={"CONTAINER_IMAGE_DIGEST": two}))
    assert (verdict.state, f"image: sha256:{one} then" in verdict.evidence) == ("STALE", True)
    assert PLATFORM.judge(captured, context()).state == "STALE"
    stated = tmp_path / ".containerenv"
    stated.write_text(f'engine="podman-5"\nimageid="{one}"\n')
    monkeypatch.setattr(machine, "_CONTAINER", stated)
    assert PLATFORM.judge(captured, context()).state == "FRESH"
    secret = PLATFORM.capture(context(environ={"IMAGE_DIGEST": "no digest"}))
    assert "no digest" not in str(secret)


def test_a_platform_that_the_run_states() -> None:
    elsewhere = PLATFORM.capture(context(environment=Environment(platform="Darwin-23.0-arm64")))
    assert elsewhere == {"stated": "Darwin-23.0-arm64"}
    assert PLATFORM.judge(elsewhere, context()).state == "STALE"
    vague = PLATFORM.capture(context(environment=Environment(platform="a container")))
    assert PLATFORM.judge(vague, context()).state == "UNKNOWN"
    assert PLATFORM.judge({"stated": platform.platform()}, context()).state == "FRESH"
    here = PLATFORM.capture(context(environment=Environment(platform=platform.platform())))
    assert isinstance(here, dict)
    assert "machine" in here


@pytest.mark.parametrize("captured", [None, 1, {}, {"python": 1}, {"python": {"version": 3}}])
def test_a_record_that_says_nothing_is_refused(captured: JsonValue) -> None:
    with pytest.raises(TypeError):
        RUNTIME.judge(captured, context())


@pytest.mark.parametrize("captured", [None, 1, {}, {"machine": "x86_64"}, {"system": "Linux"}])
def test_a_record_without_a_platform_is_refused(captured: JsonValue) -> None:
    with pytest.raises(TypeError):
        PLATFORM.judge(captured, context())
