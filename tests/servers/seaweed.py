"""A real S3 server, SeaweedFS, on this machine: started, killed and started again on the same data."""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

REGION = "us-east-1"
WARM = "warm-up"
"""The bucket of the first put, which makes the server get all its parts ready."""

# Run the server so that it dies with the test run, however that ends; the process number stays the same.
_DIE_WITH_PARENT = (
    "import ctypes,os,sys\n"
    "prctl=getattr(ctypes.CDLL(None),'prctl',None)\n"
    "prctl and prctl(1,9)\n"
    "os.execv(sys.argv[1],sys.argv[1:])"
)

# "Write" in the server's own words includes deleting, so the narrow identities have policies.
_OBJECT_READ = ("s3:GetObject", "s3:GetObjectTagging", "s3:GetObjectVersion", "s3:HeadObject")
_LIST = ("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
_PUT = ("s3:PutObject", "s3:PutObjectTagging", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
ACTIONS: dict[str, tuple[str, ...]] = {
    "admin": (),
    "writer": (*_OBJECT_READ, *_LIST, *_PUT),
    "creator": _PUT,
    "reader": (*_OBJECT_READ, *_LIST),
    "stranger": (),
}
"""Identities: `writer` cannot delete, `creator` can only put, `stranger` may nothing."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """One identity's keys, made for this server only."""

    access_key: str = field(default_factory=lambda: "AK" + secrets.token_hex(9).upper())
    secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(30))


def binary() -> str | None:
    """The server's program: that of this environment, or one on the path; None where there is none."""
    here = Path(sys.executable).parent / "weed"
    return str(here) if here.exists() else shutil.which("weed")


class Seaweed:
    """One server; `start`, `kill`, `restart`. Its data lies in `data_dir`."""

    def __init__(self, data_dir: Path, *, volume_mb: int = 1024, volumes: int = 500) -> None:
        self.data_dir = data_dir
        self.credentials = {name: Credentials() for name in ACTIONS}
        self._size = (volume_mb, volumes)
        self._ports: list[int] = []
        self._boto = boto3.session.Session()  # one for all clients: it reads the model of the service once
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """The port of S3."""
        return self._ports[3]

    @property
    def endpoint(self) -> str:
        """The URL of S3."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process that runs now."""
        assert self._process is not None
        return self._process.pid

    def start(self, *, within: float = 60.0) -> Seaweed:
        """Start on free ports, and wait until a put has gone through."""
        for attempt in range(5):
            self._ports = free_ports(4)
            self._found(within)
            self._launch()
            if self._ready(within):
                return self
            self.kill()
            assert attempt < 4, f"SeaweedFS does not start:\n{self.log()[-3000:]}"
        return self

    def restart(self, *, within: float = 60.0) -> None:
        """Start again, after `kill`, on the same ports and data, and wait until it answers."""
        assert self._process is None, "kill it first"
        self._launch()
        assert self._ready(within), f"SeaweedFS does not start again:\n{self.log()[-3000:]}"

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is said."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for port in self._ports:
            for left in Path("/tmp").glob(f"seaweedfs-*-{port + 10000}.sock"):
                left.unlink(missing_ok=True)

    def log(self) -> str:
        """What the server wrote."""
        return (self.data_dir / "output").read_text(errors="replace")

    def client(self, identity: str = "admin", *, endpoint: str | None = None, **settings: Any) -> Any:
        """A plain boto3 client of that identity; `endpoint` leads through a proxy."""
        keys = self.credentials[identity]
        return self._boto.client(
            "s3",
            region_name=REGION,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            endpoint_url=endpoint or self.endpoint,
            config=Config(s3={"addressing_style": "path"}, **settings),
        )

    def make_bucket(self, name: str | None = None, **settings: Any) -> str:
        """A new bucket, `settings` as `create_bucket` takes them (such as Object Lock)."""
        name = name or f"b-{secrets.token_hex(6)}"
        self.client().create_bucket(Bucket=name, **settings)
        return name

    def environment(self, identity: str = "admin") -> dict[str, str]:
        """What a process needs to be that identity and nobody else: no file and no machine's role is read."""
        keys = self.credentials[identity]
        return {
            "AWS_ACCESS_KEY_ID": keys.access_key,
            "AWS_SECRET_ACCESS_KEY": keys.secret_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _found(self, within: float) -> None:
        """Let a new cluster elect its leader, which is itself, and no more.

        The volume server asks for the leader before there is one, and again only 5 seconds later; started
        on a cluster that has been founded, the server is ready in half the time.
        """
        self._launch()
        assert self._process is not None
        end = time.monotonic() + within
        while time.monotonic() < end and self._process.poll() is None and not self._leads():
            time.sleep(0.02)
        self.kill()

    def _leads(self) -> bool:
        master = http.client.HTTPConnection("127.0.0.1", self._ports[0], timeout=1)
        with closing(master), suppress(OSError, http.client.HTTPException, ValueError):
            master.request("GET", "/cluster/status")
            return bool(json.load(master.getresponse()).get("IsLeader"))
        return False

    def _launch(self) -> None:
        weed = binary()
        assert weed is not None
        self.data_dir.mkdir(parents=True, exist_ok=True)
        config = self.data_dir / "identities.json"
        config.write_text(json.dumps(_identities(self.credentials)))
        with (self.data_dir / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-c", _DIE_WITH_PARENT, weed, *self._arguments(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.data_dir,
                env={
                    "HOME": str(self.data_dir),
                    "TMPDIR": str(self.data_dir),
                    "PATH": os.defpath,
                    "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1",
                },
            )

    def _arguments(self, config: Path) -> list[str]:
        master, volume, filer, s3 = map(str, self._ports)
        volume_mb, volumes = map(str, self._size)
        data = self.data_dir / "w"
        data.mkdir(exist_ok=True)
        return [
            "-logtostderr=true",
            "server",
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            f"-master.port={master}",
            "-master.telemetry=false",
            "-master.raftHashicorp",
            "-master.raftBootstrap",
            f"-master.volumeSizeLimitMB={volume_mb}",
            f"-volume.port={volume}",
            f"-volume.max={volumes}",
            "-filer",
            f"-filer.port={filer}",
            f"-filer.localSocket={self.data_dir / 'f.sock'}",
            "-s3",
            f"-s3.port={s3}",
            f"-s3.localSocket={self.data_dir / 's.sock'}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.config={config}",
        ]

    def _ready(self, within: float) -> bool:
        end = time.monotonic() + within
        client = self.client(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=10)
        while time.monotonic() < end:
            assert self._process is not None
            if self._process.poll() is not None:
                return False
            try:
                client.create_bucket(Bucket=WARM)
            except ClientError as error:
                if "BucketAlready" not in error.response["Error"]["Code"]:
                    time.sleep(0.1)
                    continue
            except BotoCoreError:
                time.sleep(0.1)
                continue
            try:
                client.put_object(Bucket=WARM, Key="warm", Body=b"up")
                return client.get_object(Bucket=WARM, Key="warm")["Body"].read() == b"up"
            except (BotoCoreError, ClientError):
                time.sleep(0.1)
        return False


def _identities(credentials: dict[str, Credentials]) -> dict[str, Any]:
    identities: list[dict[str, Any]] = []
    policies = []
    for name, actions in ACTIONS.items():
        keys = credentials[name]
        identity = {
            "name": name,
            "credentials": [{"accessKey": keys.access_key, "secretKey": keys.secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"] if name == "admin" else [],
        }
        if actions:
            identity["policyNames"] = [name]
            policies.append({"name": name, "content": json.dumps(_policy(actions))})
        identities.append(identity)
    return {"identities": identities, "policies": policies}


def _policy(actions: tuple[str, ...]) -> dict[str, Any]:
    allow = {"Effect": "Allow", "Action": list(actions), "Resource": ["arn:aws:s3:::*"]}
    return {"Version": "2012-10-17", "Statement": [allow]}


def free_ports(count: int) -> list[int]:
    """Free ports, with those 10000 above them free too, all below those that the system gives to clients."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(12000, 22700)
        if port not in found and _is_free(port) and _is_free(port + 10000):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
