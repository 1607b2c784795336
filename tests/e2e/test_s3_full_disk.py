"""The disk under the server is full: it is said, what was saved comes back, and nothing is half there."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from servers.seaweed import Seaweed

from archiver.errors import StoreFullError, StoreUnreachableError
from e2e.s3 import check_whole, opened, place, restored, save, uploads


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(server: Seaweed, bucket: str) -> None:
    """Put until nothing goes in any more, ever smaller things."""
    client = server.client(retries={"total_max_attempts": 1})
    for size in (1 << 20, 1 << 16, 1 << 12):
        with suppress(ClientError):
            for number in range(1000):
                client.put_object(Bucket=bucket, Key=f"fill/{size}-{number}", Body=secrets.token_bytes(size))


def test_a_full_disk_under_the_server(
    small_disk: Path,
    own_seaweed: Callable[..., Seaweed],
    make_s3_config: Callable[[Seaweed, str], Path],
    tmp_path: Path,
    note: Path,
) -> None:
    server = own_seaweed(small_disk / "data")
    url = f"s3://{server.make_bucket()}/store"
    config = make_s3_config(server, url)
    setup = opened(config, attempts=1, timeout=timedelta(seconds=5))
    big = tmp_path / "big.txt"
    big.write_text("\n".join(f"{n} {n * n:x}" for n in range(40000)), encoding="utf-8")
    acknowledged = ["before"]
    save(setup, note, "before")
    fill(server, place(url)[0])
    with pytest.raises((StoreFullError, StoreUnreachableError)) as caught:
        save(setup, big, "too big")
    assert caught.value.remedy
    for number in range(3):  # Small ones may still find room; if not, it is said.
        with suppress(StoreFullError, StoreUnreachableError):
            save(setup, note, f"small {number}")
            acknowledged.append(f"small {number}")
    check_whole(setup, acknowledged)
    assert restored(setup, at=1) == "before"
    assert not uploads(server.client(), url)
    subprocess.run(["mount", "-o", "remount,size=96m", small_disk], check=True)
    save(setup, big, "room again")
    check_whole(setup, [*acknowledged, "room again"])
