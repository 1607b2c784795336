"""The units, cron lines and the CronJob of `examples/schedule/`: checked by their own tools, and run."""

from __future__ import annotations

import functools
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


JOBS = {"archiver-sweep": "archiver", "archiver-retention": "sweeper"}
"""The role of the Terraform module that each CronJob has."""


@functools.cache
def documents(kind: str) -> dict[str, dict[str, Any]]:
    """The documents of that kind in cronjob.yaml, by name."""
    found = list(yaml.safe_load_all((FOLDER / "cronjob.yaml").read_text()))
    return {one["metadata"]["name"]: one for one in found if one["kind"] == kind}


def pod(job: str) -> dict[str, Any]:
    found: dict[str, Any] = documents("CronJob")[job]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return found


def container(job: str) -> dict[str, Any]:
    (found,) = pod(job)["containers"]
    return dict(found)


def environment(job: str) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container(job)["env"]}


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
    found = [one[one.index("archiver") + 1 :] for one in [*words, *(container(job)["args"] for job in JOBS)]]
    return [list(one) for one in dict.fromkeys(map(tuple, found))]


def test_the_files_are_there() -> None:
    names = {str(path.relative_to(FOLDER)) for path in UNITS}
    jobs = {f"archiver-{what}.{kind}" for what in ("sweep", "expire") for kind in ("service", "timer")}
    jobs.add("archiver-watch.service")
    assert names == jobs | {f"system/{name}" for name in jobs}
    assert len(service_commands()) == len(SERVICES)


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_command_is_one_of_the_program(words: list[str], home: Path) -> None:
    if "--watch" in words:  # it has no end; that it is a flag of its command shows as well
        assert "exclude" in command(*words, "--dry-run").err
        return
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
    assert len(units) == 5
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
    assert [shlex.split(line)[1:3] for _, line in jobs] == [["archiver", "sweep"], ["archiver", "expire"]]
    for times, line in jobs:
        for field, (low, high) in zip(times.split(), RANGES, strict=True):
            assert all(low <= int(number) <= high for number in re.findall(r"(?<!/)\b\d+", field)), field
        assert "%" not in line  # a line end for cron


def test_cron_finds_a_program_of_the_user(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "bin"
    program(folder / "archiver", 'echo "$@" >> "$HOME/called"')
    for _, line in cron_lines():
        done = subprocess.run(["/bin/sh", "-c", line], env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
        assert done.returncode == 0
    assert (tmp_path / "called").read_text() == "sweep --if-free\nexpire --yes\n"


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_the_crontab_is_put_in_once(tmp_path: Path) -> None:
    """The line of the README, with a `crontab` that keeps its table in a file."""
    (line,) = re.findall(r"^    (.*\| crontab -)$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    table = '[ "$1" = -l ] && exec cat "$HOME/table"; cat > "$HOME/new" && mv "$HOME/new" "$HOME/table"'
    program(tmp_path / "bin" / "crontab", table)
    variables = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    jobs = (FOLDER / "crontab").read_text()
    for before in ("", "MAILTO=ops\n0 1 * * * backup\n"):
        (tmp_path / "table").write_text(before)
        for _ in range(2):
            subprocess.run(["/bin/sh", "-c", line], cwd=FOLDER, env=variables, check=True)
            assert (tmp_path / "table").read_text() == before + jobs


def test_the_cronjobs_are_valid_and_may_do_little() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for one in yaml.safe_load_all((FOLDER / "cronjob.yaml").read_text()):
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    assert documents("CronJob").keys() == JOBS.keys()
    for job in JOBS:
        assert documents("CronJob")[job]["spec"]["concurrencyPolicy"] == "Forbid"
        assert pod(job)["securityContext"]["runAsNonRoot"] is True
        security = container(job)["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert {"cpu", "memory"} <= container(job)["resources"]["limits"].keys()


@pytest.mark.parametrize("job", JOBS)
def test_each_cronjob_has_a_role_of_the_module(job: str) -> None:
    module = FOLDER.parents[1] / "terraform"
    name = re.search(
        r'variable "name" {.*?default += "(.*?)"', (module / "variables.tf").read_text(), re.DOTALL
    )
    assert name is not None
    account = documents("ServiceAccount")[pod(job)["serviceAccountName"]]
    role = account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"].rpartition(":role/")[2]
    assert role == f"{name[1]}-{JOBS[job]}"
    readme = (FOLDER / "README.md").read_text()
    assert f'{JOBS[job]} = ["system:serviceaccount:agents:{account["metadata"]["name"]}"]' in re.sub(
        " +=", " =", readme
    )


@pytest.mark.parametrize("job", JOBS)
def test_what_a_cronjob_mounts_is_there_and_what_it_writes_can_be(job: str) -> None:
    mounts = {mount["name"]: mount for mount in container(job)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod(job)["volumes"]}
    assert mounts.keys() == volumes.keys()
    written = {name for name, mount in mounts.items() if not mount.get("readOnly")}
    assert written == {"state", "scratch"}
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] in documents("PersistentVolumeClaim")
    assert volumes["configuration"]["configMap"]["name"] in documents("ConfigMap")
    assert ("runs" in mounts) is (JOBS[job] == "archiver")
    lasting, scratch = (mounts[name]["mountPath"] for name in ("state", "scratch"))
    assert [environment(job)[name] for name in ("HOME", "XDG_STATE_HOME")] == [lasting] * 2
    assert [environment(job)[name] for name in ("XDG_CACHE_HOME", "TMPDIR")] == [scratch] * 2


def mounted(job: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files and variables of a CronJob below `folder`; its configuration is returned."""
    for mount in container(job)["volumeMounts"]:
        (folder / mount["mountPath"].strip("/")).mkdir(parents=True)
    configuration = documents("ConfigMap")[pod(job)["volumes"][0]["configMap"]["name"]]
    for name, text in configuration["data"].items():
        (folder / "etc" / "archiver" / name).write_text(re.sub('"(/(?:runs|state))', rf'"{folder}\1', text))
    for name, value in environment(job).items():
        monkeypatch.setenv(name, f"{folder}{value}")
    return folder / "etc" / "archiver" / "archiver.toml"


@pytest.mark.parametrize("job", JOBS)
def test_the_configuration_of_a_cronjob_is_that_of_its_role(
    job: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archiver.config import load
    from archiver.sources import configured

    settings = load(mounted(job, tmp_path / "pod", monkeypatch))
    assert settings.store.url == "s3://agent-runs/prod"
    assert settings.store.id is not None
    assert settings.keys.kms == settings.keys.recipients[:1]
    assert settings.keys.kms[0].startswith("arn:aws:kms:eu-central-1:111122223333:key/")
    assert settings.keys.break_glass == settings.keys.recipients[1:]
    assert settings.keys.identities == ()
    assert settings.audit.store is False
    assert settings.retention.sweeper is (JOBS[job] == "sweeper")
    kinds = {source.kind for source in configured(settings)}
    assert kinds == ({"folder", "claude-code"} if JOBS[job] == "archiver" else set())


@pytest.mark.parametrize("job", JOBS)
def test_a_cronjob_does_its_part(
    job: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a store in a folder: one archives a run, the other changes the class of an older save."""
    made = command("init", "--json").json
    keys = home / ".config" / "checkpoint-archiver" / "keys"
    chat = home / "work" / "chat.json"
    with monkeypatch.context() as writer:
        writer.setenv("ARCHIVER_RETENTION__SWEEPER", "false")
        for said, outcome in (("a", "running"), ("b", "succeeded")):
            chat.write_text(f'{{"messages": [{{"role": "user", "content": "{said}"}}]}}')
            assert command("archive", chat, "--run-id", "r", "--outcome", outcome).code == 0
    mounted(job, tmp_path / "pod", monkeypatch)
    monkeypatch.setenv("ARCHIVER_STORE__URL", made["store"])
    monkeypatch.setenv("ARCHIVER_STORE__ID", made["store_id"])
    monkeypatch.setenv("ARCHIVER_KEYS__RECIPIENTS", made["recipient"])
    monkeypatch.setenv("ARCHIVER_KEYS__BREAK_GLASS", "0" * 32)
    secret = tmp_path / "pod" / "etc" / "archiver-keys"
    (secret / "..data").mkdir()
    (secret / "..data" / "signing.pem").write_bytes((keys / "signing.pem").read_bytes())
    (secret / "..data" / "signing.pem").chmod(0o400)
    (secret / "signing.pem").symlink_to("..data/signing.pem")
    if JOBS[job] == "archiver":
        run = tmp_path / "pod" / "runs" / "one"
        run.mkdir()
        chat.rename(run / "chat.json")
        (run / "archiver-run.json").write_text(
            '{"format": 1, "run": "s", "transcript": ["chat.json"], "outcome": "succeeded"}'
        )
        (tmp_path / "pod" / "runs" / "claude-code").mkdir()
    else:
        monkeypatch.setenv("ARCHIVER_KEYS__IDENTITIES", str(keys / "identity.txt"))
        (tmp_path / "pod" / "etc" / "archiver" / "writers.toml").write_bytes(
            (keys / "writers.toml").read_bytes()
        )
    done = command(*container(job)["args"][1:], "--json")
    assert done.code == 0, done.err
    archives = JOBS[job] == "archiver"
    assert [row["run"] for row in done.json["runs"]] == (["s"] if archives else [])
    assert done.json["total"]["archived"] == int(archives)
    assert done.json["retention"] == {"sweeper": not archives, "changed": 0 if archives else 1}
