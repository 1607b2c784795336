"""The complete example, applied on an emulator once for all test processes, and who uses it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from servers.ministack import REGION, Ministack

from archiver import age
from terraform.tool import Terraform, copied

SERVICES = "iam,kms,s3,sts"
USERS = ("archiving", "running", "sweeping", "restoring", "administering")

# What differs from the example: where AWS is, and what an emulator cannot do.
_OVERRIDE = """
provider "aws" {{
  region                      = "{region}"
  s3_use_path_style           = true
  skip_metadata_api_check     = true

  endpoints {{
    iam       = "{endpoint}"
    kms       = "{endpoint}"
    s3        = "{endpoint}"
    s3control = "{endpoint}"
    sts       = "{endpoint}"
  }}
}}

module "store" {{
  emulator_endpoint = var.emulator_endpoint
  force_destroy     = true

  # A lock would keep the objects of these tests; no session of the emulator has MFA.
  object_lock       = var.emulator_endpoint == null ? {{ mode = "GOVERNANCE", days = 7 }} : null
  administrator_mfa = var.emulator_endpoint == null
}}
"""
_VARIABLE = 'variable "emulator_endpoint" {\n  type    = string\n  default = null\n}\n'
_EMULATED = "-var=emulator_endpoint={}"


@dataclass(frozen=True)
class Applied:
    """What was applied; the same for all processes."""

    folder: str
    """The example's, with its state."""
    endpoint: str
    environment: dict[str, str]
    """Of the account's root."""
    users: dict[str, tuple[str, str]]
    """The keys of users that may do nothing but become the role that they are named for."""
    outputs: dict[str, Any]

    @property
    def terraform(self) -> Terraform:
        return Terraform(Path(self.folder), self.environment)

    @property
    def emulated(self) -> str:
        """The flag with which it was applied."""
        return _EMULATED.format(self.endpoint)

    @property
    def bucket(self) -> str:
        return str(self.outputs["bucket"])

    @property
    def url(self) -> str:
        """The address of the store."""
        return f"s3://{self.bucket}/team/archive"

    def client(self, service: str, environment: dict[str, str] | None = None) -> Any:
        """A plain boto3 client, of the root unless another's environment is given."""
        keys = self.environment if environment is None else environment
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return _client(service, self.endpoint, *(keys.get(name) for name in names))

    def user(self, name: str) -> dict[str, str]:
        """The environment of a user as such, before it becomes a role."""
        key, secret = self.users[name]
        return self.environment | {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}

    def session(self, role: str, user: str | None = None) -> dict[str, str]:
        """The environment of a session of the role, which its user has asked for."""
        names = dict(zip(("archiver", "runner", "sweeper", "restorer", "administrator"), USERS, strict=True))
        sts = self.client("sts", self.user(user or names[role]))
        got = sts.assume_role(RoleArn=self.outputs["role_arns"][role], RoleSessionName="test")["Credentials"]
        return self.environment | {
            "AWS_ACCESS_KEY_ID": got["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": got["SecretAccessKey"],
            "AWS_SESSION_TOKEN": got["SessionToken"],
        }


@cache
def _boto() -> Any:
    """One for all clients: it reads the models of the services, which takes a second, once."""
    return boto3.session.Session(region_name=REGION)


@cache
def _client(service: str, endpoint: str, key: str, secret: str, token: str | None) -> Any:
    return _boto().client(
        service,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        endpoint_url=endpoint,
        config=Config(retries={"total_max_attempts": 1}),
    )


@contextmanager
def shared(folder: Path) -> Iterator[Applied]:
    """What was applied, by this process or by another; who applied it destroys it when nobody uses it more.

    Everybody holds a shared lock for as long as they use it, which the system takes from who dies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "applied.json"
    with (folder / "users").open("w") as users:
        server = None
        with locked(folder / "making"):
            if not state.exists():
                server = _apply(folder, state)
            fcntl.flock(users, fcntl.LOCK_SH)
        applied = Applied(**json.loads(state.read_text()))
        try:
            yield applied
        finally:
            if server is None:
                fcntl.flock(users, fcntl.LOCK_UN)
            else:
                try:
                    _wait_and_close(folder, state, users)
                    _destroy(applied)
                finally:
                    server.kill()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def once(folder: Path, name: str, make: Callable[[], str]) -> str:
    """What `make` gives, asked for by the first process alone."""
    path = folder / name
    with locked(folder / f"{name}.making"):
        if not path.exists():
            path.write_text(make())
        return path.read_text()


def _wait_and_close(folder: Path, state: Path, users: Any) -> None:
    while True:
        with locked(folder / "making"):
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                state.unlink()
                return
        time.sleep(0.2)


def _apply(folder: Path, done: Path) -> Ministack:
    place = folder / secrets.token_hex(4)
    server = Ministack(place / "server", services=SERVICES).start()
    try:
        example = copied(place / "terraform") / "examples" / "complete"
        endpoint = server.endpoint
        (example / "emulator_override.tf").write_text(_OVERRIDE.format(endpoint=endpoint, region=REGION))
        (example / "emulator.tf").write_text(_VARIABLE)
        arns, users = _users(server)
        given = {
            "bucket": f"runs-{secrets.token_hex(6)}",
            "break_glass_recipients": [str(age.generate().recipient)],
            "people": arns,
        }
        (example / "terraform.tfvars.json").write_text(json.dumps(given))
        tool = Terraform(example, server.environment()).init()
        tool.run("apply", "-auto-approve", "-input=false", "-parallelism=20", _EMULATED.format(endpoint))
        state = json.loads(
            (example / "terraform.tfstate").read_text()
        )  # without another start of the program
        outputs = {name: found["value"] for name, found in state["outputs"].items()}
        applied = Applied(str(example), endpoint, server.environment(), users, outputs)
        _set_up(applied, place)
        done.write_text(json.dumps(asdict(applied)))
    except BaseException:
        server.kill()
        raise
    return server


def _users(server: Ministack) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Users that the roles trust, and their keys."""
    iam, arns, keys = server.client("iam"), {}, {}
    assume = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}
    for name in USERS:
        arns[name] = iam.create_user(UserName=name)["User"]["Arn"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [assume]})
        iam.put_user_policy(UserName=name, PolicyName="assume", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        keys[name] = (key["AccessKeyId"], key["SecretAccessKey"])
    return arns, keys


def _set_up(applied: Applied, place: Path) -> None:
    """`archiver init` by the administrator: the store has a name before anybody uses it."""
    home = place / "administrator"
    home.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ARCHIVER_KEYS__KMS_ENDPOINT_URL": applied.endpoint,
        **applied.session("administrator"),
    }
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("archiver"), "init", applied.url, "--region", REGION),
            *("--endpoint-url", applied.endpoint, "--recipient", applied.outputs["archive_key_arn"]),
            *("--config", home / "archiver.toml"),
        ],
        capture_output=True,
        text=True,
        cwd=home,
        env=environment,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _destroy(applied: Applied) -> None:
    """Nothing stays: neither in the state nor, but for keys that wait for their deletion, in the account."""
    tool = applied.terraform
    tool.run(
        "destroy", "-auto-approve", "-input=false", "-refresh=false", "-parallelism=20", applied.emulated
    )
    assert json.loads((Path(applied.folder) / "terraform.tfstate").read_text())["resources"] == []
    assert applied.client("s3").list_buckets()["Buckets"] == []
    assert applied.client("iam").list_roles()["Roles"] == []
    for name in ("archive_key_arn", "storage_key_arn"):
        key = applied.client("kms").describe_key(KeyId=applied.outputs[name])["KeyMetadata"]
        assert key["KeyState"] == "PendingDeletion"
