"""A real KMS with IAM, ministack, on this machine: it enforces policies, contexts and the state of keys.

Where asked for, it has an S3 as well.

It runs from a virtual environment of its own (`make .ministack/.installed`): beside a newer boto3, pip picks
an old version of it that enforces nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from servers.seaweed import free_ports

REGION = "eu-central-1"
HOME = Path(__file__).parents[2] / ".ministack"

# Run the server so that it dies with the test run, however that ends; the process number stays the same.
_DIE_WITH_PARENT = (
    "import ctypes,os,sys\n"
    "prctl=getattr(ctypes.CDLL(None),'prctl',None)\n"
    "prctl and prctl(1,9)\n"
    "os.execv(sys.argv[1],sys.argv[1:])"
)


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller's keys, made for this server only."""

    access_key: str = field(default_factory=lambda: "AK" + secrets.token_hex(9).upper())
    secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(30))


def binary() -> Path | None:
    """The server's program; None where its environment was not made."""
    program = HOME / "bin" / "ministack"
    return program if program.exists() else None


class Ministack:
    """One server, which keeps nothing; `start`, `kill`. `services` are those it has, with commas between."""

    def __init__(self, folder: Path, root: Caller | None = None, services: str = "kms,iam,sts") -> None:
        self.folder = folder
        self.services = services
        self.root = root or Caller()
        self._port = 0
        self._boto = boto3.session.Session()  # one for all clients: it reads the models of the services once
        self._clients: dict[tuple[str, Caller, str], Any] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """The URL of KMS and IAM."""
        return f"http://127.0.0.1:{self._port}"

    def start(self, *, within: float = 60.0) -> Ministack:
        """Start on a free port and wait until it answers; a server that believes any secret is refused."""
        for attempt in range(5):
            (self._port,) = free_ports(1)
            self._clients.clear()
            self._launch()
            if self._ready(within):
                break
            self.kill()
            assert attempt < 4, f"ministack does not start:\n{self.log()[-3000:]}"
        self._assert_secrets_count()
        return self

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def log(self) -> str:
        """What the server wrote."""
        return (self.folder / "output").read_text(errors="replace")

    def client(self, service: str = "kms", caller: Caller | None = None, region: str = REGION) -> Any:
        """A plain boto3 client, of the root unless another caller is named."""
        keys = caller or self.root
        place = (service, keys, region)
        if place not in self._clients:
            self._clients[place] = self._client(service, keys, region)
        return self._clients[place]

    def _client(self, service: str, keys: Caller, region: str) -> Any:
        return self._boto.client(
            service,
            region_name=region,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            endpoint_url=self.endpoint,
            config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=10),
        )

    def make_key(self, region: str = REGION, **settings: Any) -> str:
        """The ARN of a new key, `settings` as `create_key` takes them."""
        return str(self.client(region=region).create_key(**settings)["KeyMetadata"]["Arn"])

    def make_user(self, *actions: str, arn: str = "*") -> Caller:
        """A user that may do these actions with that key, and nothing else."""
        return self.make_user_of(
            [{"Effect": "Allow", "Action": list(actions), "Resource": arn}] if actions else []
        )

    def make_user_of(self, statements: list[dict[str, Any]]) -> Caller:
        """A user with a policy of these statements."""
        iam, name = self.client("iam"), f"u-{secrets.token_hex(6)}"
        iam.create_user(UserName=name)
        if statements:
            policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
            iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return Caller(key["AccessKeyId"], key["SecretAccessKey"])

    def environment(self, caller: Caller | None = None) -> dict[str, str]:
        """What a process needs to be that caller and nobody else: no file and no machine's role is read."""
        keys = caller or self.root
        return {
            "AWS_ACCESS_KEY_ID": keys.access_key,
            "AWS_SECRET_ACCESS_KEY": keys.secret_key,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _launch(self) -> None:
        program = binary()
        assert program is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-c", _DIE_WITH_PARENT, str(program)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env={
                    "HOME": str(self.folder),
                    "TMPDIR": str(self.folder),
                    "PATH": os.defpath,
                    "BIND_HOST": "127.0.0.1",  # else it listens on every interface
                    "IOT_MTLS_ENABLED": "0",  # else it opens a port of its own besides
                    "SFTP_ENABLED": "0",
                    "DOCKER_HOST": "unix:///nonexistent",
                    "GATEWAY_PORT": str(self._port),
                    "SERVICES": self.services,
                    "AUTH": "true",
                    "AWS_ACCESS_KEY_ID": self.root.access_key,
                    "AWS_SECRET_ACCESS_KEY": self.root.secret_key,
                },
            )

    def _ready(self, within: float) -> bool:
        end = time.monotonic() + within
        client = self.client()
        while time.monotonic() < end:
            assert self._process is not None
            if self._process.poll() is not None:
                return False
            try:
                client.list_keys()
            except (BotoCoreError, ClientError):
                time.sleep(0.1)
            else:
                return True
        return False

    def _assert_secrets_count(self) -> None:
        """The root is believed without its secret, so an ordinary user tries."""
        user = self.make_user("kms:ListKeys")
        self.client(caller=user).list_keys()
        liar = Caller(user.access_key, secrets.token_urlsafe(30))
        try:
            self.client(caller=liar).list_keys()
        except ClientError as error:
            assert error.response["Error"]["Code"] == "InvalidSignatureException"
            return
        raise AssertionError("this ministack believes any secret, so it proves nothing about permissions")
