"""The units, cron lines and the CronJob of `examples/schedule/`: checked by their own tools, and run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.conftest import home as home
from inside import command

FOLDER = Path(__file__).parents[1] / "examples" / "schedule"
SERVICES = sorted(FOLDER.rglob("*.service"))
UNITS = [*SERVICES, *sorted(FOLDER.rglob("*.timer"))]
_FIELD = r"(?:\*|\d{1,2}(?:-\d{1,2})?)(?:/\d{1,2})?"
_CRON = re.compile(rf"({_FIELD}(?:,{_FIELD})*(?: {_FIELD}(?:,{_FIELD})*){{4}}) (\S.*)")
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def job() -> dict[str, Any]:
    documents = list(yaml.safe_load_all((FOLDER / "cronjob.yaml").read_text()))
    found: dict[str, Any] = next(one for one in documents if one["kind"] == "CronJob")
    return found


def container() -> dict[str, Any]:
    found: dict[str, Any] = job()["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    return found


def cron_lines() -> list[tuple[str, str]]:
    """Times and command of each line; anything that is no comment, variable or job fails."""
    jobs = []
    for line in (FOLDER / "crontab").read_text().splitlines():
        if not line.strip() or line.startswith("#") or re.fullmatch(r"[A-Z_]+=\S+", line):
            continue
        match = _CRON.fullmatch(line)
        assert match, line
        jobs.append((match[1], match[2]))
    return jobs


def service_commands() -> list[str]:
    return [
        line[10:]
        for path in SERVICES
        for line in path.read_text().splitlines()
        if line.startswith("ExecStart=")
    ]


def commands() -> list[list[str]]:
    """Every command of every file, as the words behind `archiver`."""
    lines = [*service_commands(), *(command for _, command in cron_lines())]
    words = [shlex.split(line.partition(">")[0]) for line in lines]
    found = [one[one.index("archiver") + 1 :] for one in [*words, container()["args"]]]
    return [list(one) for one in dict.fromkeys(map(tuple, found))]


def test_the_files_are_there() -> None:
    names = {str(path.relative_to(FOLDER)) for path in UNITS}
    jobs = {f"archiver-{what}.{kind}" for what in ("sweep", "expire") for kind in ("service", "timer")}
    assert names == jobs | {f"system/{name}" for name in jobs}
    assert len(service_commands()) == len(SERVICES)


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_command_is_one_of_the_program(words: list[str], home: Path) -> None:
    assert command("init").code == 0
    done = command(*(word for word in words if word != "--yes"), "--dry-run")
    assert done.code == 0, done.err
    assert command(*words, "--help").code == 0
    done = command(*words)
    assert done.code == 0, done.err


@pytest.mark.parametrize(("where", "option"), [("", "--user"), ("system", "--system")])
def test_systemd_finds_nothing_to_complain_of(
    where: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    units = [str(path) for path in UNITS if path.parent == FOLDER / where]
    assert len(units) == 4
    done = subprocess.run([program, option, "verify", "--man=no", *units], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_systemd_would_find_what_is_wrong(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    bad = tmp_path / "bad.service"
    bad.write_text((FOLDER / "system" / "archiver-sweep.service").read_text() + "ProtectEverything=yes\n")
    done = subprocess.run([program, "verify", "--man=no", str(bad)], capture_output=True, text=True)
    assert "ProtectEverything" in done.stderr


def test_cron_lines() -> None:
    jobs = cron_lines()
    assert [shlex.split(command)[:2] for _, command in jobs] == [
        ["archiver", "sweep"],
        ["archiver", "expire"],
    ]
    for times, line in jobs:
        for field, (low, high) in zip(times.split(), RANGES, strict=True):
            assert all(low <= int(number) <= high for number in re.findall(r"(?<!/)\b\d+", field)), field
        assert "%" not in line  # a line end for cron


def test_the_cronjob_is_valid_and_may_do_little() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    documents = list(yaml.safe_load_all((FOLDER / "cronjob.yaml").read_text()))
    assert [one["kind"] for one in documents] == ["ServiceAccount", "ConfigMap", "CronJob"]
    for one in documents:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    spec = job()["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    security = container()["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert {"cpu", "memory"} <= container()["resources"]["limits"].keys()
    account = documents[0]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]


def test_what_the_cronjob_mounts_is_there_and_what_is_written_can_be() -> None:
    pod = job()["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount for mount in container()["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert mounts.keys() == volumes.keys()
    writable = {mount["mountPath"] for name, mount in mounts.items() if "emptyDir" in volumes[name]}
    assert all(mount.get("readOnly") for name, mount in mounts.items() if "emptyDir" not in volumes[name])
    environment = {one["name"]: one["value"] for one in container()["env"]}
    assert {environment[name] for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TMPDIR")} <= writable


def test_the_configuration_of_the_cronjob_is_read(tmp_path: Path, home: Path) -> None:
    from archiver.config import load

    documents = list(yaml.safe_load_all((FOLDER / "cronjob.yaml").read_text()))
    text = next(one["data"]["archiver.toml"] for one in documents if one["kind"] == "ConfigMap")
    file = tmp_path / "archiver.toml"
    file.write_text(text)
    settings = load(file)
    assert settings.store.url == "s3://agent-runs/prod"
    assert {source.kind for source in settings.sweep.sources} == {"folder", "claude-code"}
