"""Hooks in real settings files: what is shown and asked, links, modes, others who write at the same time."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inside import Outcome, command

from archiver.hooks import installing
from hooks.sessions import PROGRAM

EVENTS = {"Stop", "PreCompact", "SubagentStop", "SessionEnd"}
OLD = '{\n    "model": "opus",\n    "permissions": {"allow": ["Bash(ls:*)"]}\n}\n'


@pytest.fixture
def user(home: Path) -> Path:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    return path


def hook(action: str, *arguments: object, terminal: bool = False) -> Outcome:
    return command("hook", "claude-code", action, *arguments, terminal=terminal)


def commands(path: Path) -> dict[str, list[str]]:
    hooks = json.loads(path.read_text())["hooks"]
    return {
        name: [entry["command"] for group in found for entry in group["hooks"]]
        for name, found in hooks.items()
    }


def test_install_and_remove_in_the_users_settings(user: Path) -> None:
    user.write_text(OLD)
    done = hook("install", "--yes")
    assert (done.code, done.rows) == (0, [["user", str(user), "installed"]])
    assert '+    "hooks": {' in done.err
    expected = f"{PROGRAM} hook claude-code run"
    assert commands(user) == {name: [expected] for name in EVENTS}
    assert hook("install", "--yes").rows == [["user", str(user), "unchanged"]]
    assert hook("install").rows == [["user", str(user), "unchanged"]]  # nothing to be asked
    assert hook("remove", "--yes").rows == [["user", str(user), "removed"]]
    assert user.read_text() == OLD
    assert hook("remove").rows == [["user", str(user), "unchanged"]]


def test_nothing_is_written_before_somebody_has_agreed(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user.write_text(OLD)
    refused = hook("install")
    assert refused.code == 2
    assert "--yes" in refused.err
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> bool:
        asked.append(text)
        assert user.read_text() == OLD
        return False

    monkeypatch.setattr("typer.confirm", confirm)
    left = hook("install", terminal=True)
    assert left.code == 0
    assert f"--- {user}" in left.out
    assert "Nothing was changed" in left.out
    assert asked
    assert user.read_text() == OLD
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    assert hook("install", terminal=True).code == 0
    assert set(commands(user)) == EVENTS


def test_a_dry_run_prints_a_patch_that_makes_what_install_writes(user: Path, tmp_path: Path) -> None:
    user.write_text(OLD)
    shown = hook("install", "--dry-run")
    assert user.read_text() == OLD
    copy = tmp_path / "copy.json"
    copy.write_text(OLD)
    subprocess.run(["patch", "-s", str(copy)], input=shown.out, text=True, check=True)
    hook("install", "--yes")
    assert copy.read_text() == user.read_text()
    as_json = hook("remove", "--dry-run", "--json").json
    assert (as_json["state"], as_json["path"]) == ("planned", str(user))
    assert as_json["diff"]


def test_credentials_of_the_file_are_not_shown_and_stay_in_it(user: Path) -> None:
    secret = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN5"
    ours = f"/opt/{secret}/archiver hook claude-code run"
    old = {"Notification": [{"hooks": [{"type": "command", "command": ours}]}]}
    texts = (f'{{"env":{{"X":"{secret}"}}}}', f'{{\n "y": "{secret}"\n}}\n', json.dumps({"hooks": old}))
    for text in texts:
        user.write_text(text)
        calls = [("status",), ("install", "--dry-run"), ("install", "--dry-run", "--json")]
        said = [hook(*one) for one in (*calls, ("status", "--json"), ("install", "--yes"))]
        if text != texts[-1]:
            assert secret in user.read_text()
        said.append(hook("remove", "--yes"))
        assert [one.code for one in said] == [0] * 6
        assert secret not in "".join(one.out + one.err for one in said)
        assert "[REDACTED:" in said[1].out


def test_a_folder_and_a_file_that_are_not_there(home: Path) -> None:
    assert hook("install", "--yes").code == 0
    path = home / ".claude" / "settings.json"
    assert set(commands(path)) == EVENTS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert hook("remove", "--settings", home / "none.json", "--yes").rows[0][2] == "unchanged"
    assert not (home / "none.json").exists()


def test_which_file_is_meant(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = home / "work" / ".claude"
    assert hook("install", "--project", "--yes").rows[0][:2] == ["project", str(work / "settings.json")]
    assert hook("install", "--local", "--yes").rows[0][:2] == ["local", str(work / "settings.local.json")]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    assert hook("install", "--yes").rows[0][1] == str(home / "elsewhere" / "settings.json")
    assert hook("install", "--local", "--project").code == 2
    states = {row[1]: row[3] for row in hook("status").rows if row[0] == "hooks"}
    assert states == {"user": "installed", "project": "installed", "local": "installed"}


def test_the_configuration_in_force_is_carried(home: Path) -> None:
    assert command("init").code == 0  # in the config home, where a hook finds it by itself
    hook("install", "--yes")
    path = home / ".claude" / "settings.json"
    assert "--config" not in commands(path)["Stop"][0]
    other = home / "a 'quoted' folder" / "archiver.toml"
    other.parent.mkdir()
    other.write_text("[run]\nfloor = '5s'\n")
    os.chdir(other.parent)
    for arguments in (("--config", "archiver.toml"), ()):  # named, and found in this folder
        hook("install", "--yes", *arguments)
        assert shlex.split(commands(path)["Stop"][0])[4:] == ["--config", str(other)]
        assert len(commands(path)["Stop"]) == 1
    hook("remove", "--yes")
    assert path.read_text() == "{}\n"


def test_a_configuration_that_no_hook_could_read_is_said_at_once(home: Path) -> None:
    bad = home / "bad.toml"
    bad.write_text("[run]\nfloor = 'soon'\n")
    assert hook("install", "--yes", "--config", bad).code == 2
    assert not (home / ".claude").exists()


def test_a_link_stays_and_its_target_is_written_with_its_mode(user: Path, home: Path) -> None:
    target = home / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text(OLD)
    target.chmod(0o640)
    user.symlink_to(os.path.relpath(target, user.parent))
    assert hook("install", "--yes").code == 0
    assert user.is_symlink()
    assert set(commands(target)) == EVENTS
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [path.name for path in target.parent.iterdir()] == ["claude.json"]
    assert [path.name for path in user.parent.iterdir()] == ["settings.json"]


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff\xfe{}", b'{"hooks": 1}', b'{"a": 1,}'])
def test_a_file_that_cannot_be_changed_safely_is_left(user: Path, data: bytes) -> None:
    user.write_bytes(data)
    done = hook("install", "--yes")
    assert done.code == 3
    assert "mend" in done.err
    assert user.read_bytes() == data
    assert next(row for row in hook("status").rows if row[:2] == ["hooks", "user"])[3] == "unreadable"


def test_what_is_no_plain_file_is_not_touched(user: Path) -> None:
    os.mkfifo(user)
    assert hook("install", "--yes").code == 3
    assert stat.S_ISFIFO(user.stat().st_mode)
    user.unlink()
    user.mkdir()
    assert hook("install", "--yes").code in (2, 3)


def test_a_change_in_between_is_not_lost(user: Path) -> None:
    user.write_text(OLD)
    change = installing.install("user", user, "/bin/archiver hook claude-code run")
    user.write_text('{"by": "somebody else"}')
    with pytest.raises(installing.RefusedError, match="changed by somebody else"):
        change.make()
    assert user.read_text() == '{"by": "somebody else"}'
    assert [path.name for path in user.parent.iterdir()] == ["settings.json"]
    user.unlink()
    with pytest.raises(installing.RefusedError):
        change.make()
    assert not user.exists()


def test_a_full_or_closed_folder_leaves_the_old_file(user: Path) -> None:
    user.write_text(OLD)
    change = installing.install("user", user, "/bin/archiver hook claude-code run")
    user.parent.chmod(0o500)
    try:
        if os.access(user.parent, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(installing.RefusedError, match="cannot be written"):
            change.make()
    finally:
        user.parent.chmod(0o700)
    assert user.read_text() == OLD


def test_many_at_once_install_it_once(user: Path) -> None:
    user.write_text(OLD)
    running = [
        subprocess.Popen(
            [PROGRAM, "hook", "claude-code", "install", "--yes"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    codes = []
    for one in running:
        one.communicate(timeout=120)
        codes.append(one.returncode)
    assert codes.count(0) >= 1
    assert set(codes) <= {0, 3}
    assert all(len(found) == 1 for found in commands(user).values())
    assert [path.name for path in user.parent.iterdir()] == ["settings.json"]


KILLED = """
import os, signal, sys
from pathlib import Path
from archiver.hooks import installing, settings_file
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
places = {"fsync": os, "fchmod": os, "replace": Path, "fsync_folder": settings_file}
for file in map(Path, sys.argv[1:]):
    name = file.parent.name
    if not (child := os.fork()):
        setattr(places[name], name, die)
        installing.install("user", file, "/bin/archiver hook claude-code run").make()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, name
"""


def test_killed_anywhere_the_file_is_the_old_or_the_new_one(home: Path) -> None:
    names = ("fsync", "fchmod", "replace", "fsync_folder")
    files = [home / name / "settings.json" for name in names]
    for file in files:
        file.parent.mkdir()
        file.write_text(OLD)
    subprocess.run([sys.executable, "-c", KILLED, *files], check=True)
    for name, file in zip(names, files, strict=True):
        if name == "fsync_folder":
            assert set(commands(file)) == EVENTS
        else:
            assert file.read_text() == OLD
        assert hook("install", "--settings", file, "--yes").code == 0
        assert set(commands(file)) == EVENTS
        assert [path.name for path in file.parent.iterdir()] == ["settings.json"]


def test_an_owner_stays_the_owner(user: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only an administrator can give a file away")
    user.write_text(OLD)
    os.chown(user, 12345, 23456)
    assert hook("install", "--yes").code == 0
    assert (user.stat().st_uid, user.stat().st_gid) == (12345, 23456)
    assert set(commands(user)) == EVENTS


def test_a_disk_that_is_full_leaves_the_old_file(user: Path) -> None:
    user.write_text(OLD)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))"
    change = "from archiver.hooks import installing; from pathlib import Path; import sys"
    make = "installing.install('user', Path(sys.argv[1]), '/bin/archiver hook claude-code run').make()"
    program = f"{change}; {limited}; {make}"
    done = subprocess.run([sys.executable, "-c", program, user], capture_output=True, text=True)
    assert "StoreFullError" in done.stderr
    assert user.read_text() == OLD
    assert [path.name for path in user.parent.iterdir()] == ["settings.json"]


def test_a_name_that_no_settings_file_can_hold_is_said(home: Path) -> None:
    file = home / os.fsdecode(b"caf\xe9.toml")
    file.write_text("")
    done = hook("install", "--yes", "--config", file)
    assert done.code == 2
    assert "UTF-8" in done.err
    assert not (home / ".claude").exists()
