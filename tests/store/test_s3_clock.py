"""A clock that is wrong, in a process of its own: boto3 does not mend it, so the error has to say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from servers.seaweed import Seaweed

CLOCK = """
import datetime, json, sys, botocore.auth, botocore.compat, botocore.crt.auth
shift = datetime.timedelta(seconds=float(sys.argv[3]))
real = botocore.compat.get_current_datetime
for signer in (botocore.auth, botocore.crt.auth):
    signer.get_current_datetime = lambda *args, **named: real(*args, **named) + shift
from archiver.aws.options import AwsOptions
from archiver.errors import ClockSkewError
from archiver.store import S3Options
from archiver.store.s3 import S3Store, answers
class Wrong(datetime.datetime):
    @classmethod
    def now(cls, zone=None):
        return super().now(zone) + shift
answers.datetime = Wrong
store = S3Store.at(sys.argv[1], S3Options(AwsOptions(endpoint_url=sys.argv[2], attempts=2)))
said = []
for call in (lambda: store.read("a", limit=1), lambda: store.head("a"), lambda: list(store.list()),
             lambda: store.create("a", [b"x"], retention="live")):
    try:
        call()
    except ClockSkewError as error:
        said.append([error.seconds, str(error)])
print(json.dumps(said))
"""


@pytest.mark.parametrize("ahead", [7200, -7200])
def test_a_wrong_clock_is_named_by_how_much_it_is_wrong(seaweed: Seaweed, s3_url: str, ahead: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLOCK, s3_url, seaweed.endpoint, str(ahead)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**seaweed.environment(), "PATH": os.environ["PATH"], "HOME": os.devnull},
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said) == 4
    for seconds, text in said:
        assert abs(seconds - ahead) < 10
        assert f" {abs(seconds):.0f} s {'ahead of' if ahead > 0 else 'behind'} the server's" in text
