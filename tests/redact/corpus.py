"""A corpus that is generated: fifty kinds of secret, each in every encoding in which transcripts hold them.

The values are drawn from a seed, so that no file of the repository holds a credential. Each case is a block
of JSON lines as agents write them, the secret, and how it is written there.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from tests.redact.support import ANSI, expand, strings

KINDS: dict[str, tuple[str, str]] = {
    "github classic": ("GH_TOKEN={}", "ghp_{alnum:36}"),
    "github app": ("token {}", "ghs_{alnum:36}"),
    "gitlab": ("GITLAB_TOKEN: {}", "glpat-{alnum:20}"),
    "aws key id": ("aws_access_key_id={}", "AKIA{b32:16}"),
    "aws secret": ("AWS_SECRET_ACCESS_KEY={}", "{b64:40}"),
    "aws session": ("aws_session_token = {}", "IQoJb3JpZ2luX2Vj{b64:120}"),
    "anthropic": ("ANTHROPIC_API_KEY={}", "sk-ant-api03-{url:93}AA"),
    "openai": ("OPENAI_API_KEY={}", "sk-proj-{alnum:60}T3BlbkFJ{alnum:60}"),
    "slack bot": ("slack: {}", "xoxb-{digit:12}-{digit:12}-{alnum:24}"),
    "slack hook": ("curl {}", "https://hooks.slack.com/services/T{upnum:9}/B{upnum:9}/{alnum:24}"),
    "stripe": ("stripe.api_key = '{}'", "sk_live_{alnum:24}"),
    "google": ("key={}", "AIza{url:35}"),
    "google oauth": ("access token {}", "ya29.{url:100}"),
    "npm": ("//registry.npmjs.org/:_authToken={}", "npm_{alnum:36}"),
    "npm legacy": ("//registry.npmjs.org/:_authToken={}", "{uuid}"),
    "pypi": ("password = {}", "pypi-AgEIcHlwaS5vcmc{url:80}"),
    "hugging face": ("HF_TOKEN={}", "hf_{alpha:34}"),
    "sendgrid": ("SENDGRID={}", "SG.{alnum:22}.{alnum:43}"),
    "vault": ("VAULT_TOKEN={}", "hvs.{alnum:92}"),
    "digitalocean": ("do: {}", "dop_v1_{hex:64}"),
    "telegram": ("https://api.telegram.org/bot{}/getMe", "{digit:10}:AA{url:33}"),
    "age": ("{}", "AGE-SECRET-KEY-1{bech32:58}"),
    "jwt": ("session {}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi{url:40}.{url:43}"),
    "bearer": ("Authorization: Bearer {}", "{alnum:43}"),
    "bearer hex": ("curl -H 'Authorization: Bearer {}' https://h/", "{hex:40}"),
    "x-api-key": ("X-Api-Key: {}", "{lownum:32}"),
    "postgres": ("DATABASE_URL=postgres://app:{}@db.corp:5432/app", "{alnum:18}"),
    "redis": ("redis://:{}@cache.corp:6379/0", "{alnum:24}"),
    "git url": ("origin https://ci:{}@git.corp/a/b.git (fetch)", "{alnum:20}"),
    "netrc": ("machine api.corp login bot password {}", "{alpha:6}{digit:2}#{alnum:8}"),
    "env password": ("DB_PASSWORD={}", "{alpha:6}{digit:2}%{alnum:8}"),
    "yaml password": ('  password: "{}"', "{alpha:6}{digit:2}^{alnum:8}"),
    "flag": ("mysqldump --password={} -h db", "{alpha:6}{digit:2}#{alnum:8}"),
    "spaced flag": ("tool --api-key {} --dry-run", "{alnum:28}"),
    "sshpass": ("sshpass -p '{}' ssh root@10.0.0.4", "{alpha:6}{digit:2}!{alnum:8}"),
    "connection string": (
        "Server=sql,1433;User ID=sa;Password={};Encrypt=True",
        "{alpha:6}{digit:2}!{alnum:8}",
    ),
    "account key": ("AccountName=st;AccountKey={};EndpointSuffix=core", "{b64:86}=="),
    "signed url": ("https://b.corp/k?X-Amz-Date=1&X-Amz-Signature={}", "{hex:64}"),
    "curl user": ("curl -u deploy:{} https://h/", "{alnum:20}"),
    "cookie": ("Cookie: theme=dark; sessionid={}", "{lownum:32}"),
    "docker hub": ("docker login -u ci -p {}", "dckr_pat_{url:27}"),
    "custom": ("ACME_SERVICE_CREDENTIAL={}", "{alnum:32}"),
    "django": ("SECRET_KEY = '{}'", "{lownum:12}&){lownum:10}!#{lownum:10}$%{lownum:12}"),
    "xml": ("<apiKey>{}</apiKey>", "{alnum:32}"),
    "go": ('var apiToken string = "{}"', "{alnum:32}"),
    "php": ("define('AUTH_KEY', '{}');", "{alnum:40}"),
    "linear": ("LINEAR_KEY={}", "lin_api_{alnum:40}"),
    "unseal": ("Unseal Key 1: {}", "{b64:43}8"),
    "password hash": ("root:{}:19000:0:99999:7:::", "$6${alnum:16}${alnum:86}"),
    "pem": (
        "{}",
        "-----BEGIN EC PRIVATE KEY-----\n{b64:64}\n{b64:64}\n{b64:30}==\n-----END EC PRIVATE KEY-----",
    ),
}
"""By kind: the text around the secret, and the template of the secret."""

WRAP = 76
_LOG = "2026-01-02T12:00:01 worker 3 has read the settings of the service and says"
Pieces = tuple[str, ...]
_PIECE = 6
"""Shorter pieces may stand anywhere."""


@dataclass(frozen=True, slots=True)
class Case:
    """One secret in one encoding."""

    kind: str
    encoding: str
    block: bytes
    secret: str
    written: tuple[str, ...]
    """The pieces in which the block writes the secret."""


def _result(content: str) -> str:
    part = {"tool_use_id": "toolu_01", "type": "tool_result", "content": content}
    return json.dumps({"type": "user", "message": {"role": "user", "content": [part]}}, ensure_ascii=False)


def _wrapped(text: str) -> str:
    return "\n".join(text[at : at + WRAP] for at in range(0, len(text), WRAP))


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


def _plain(line: str, secret: str) -> tuple[str, Pieces]:
    return _result(f"$ env | sort\nHOME=/root\n{line}\nSHLVL=1\n"), (secret,)


def _bare(_line: str, secret: str) -> tuple[str, Pieces]:
    return _result(f"value:\n{secret}\ndone"), (secret,)


def _nested(line: str, secret: str) -> tuple[str, Pieces]:
    inner = json.dumps({"output": f"cat .env\n{line}\n", "metadata": {"exit_code": 0}})
    return json.dumps({"type": "function_call_output", "call_id": "c1", "output": inner}), (secret,)


def _nested_twice(line: str, secret: str) -> tuple[str, Pieces]:
    return json.dumps({"p": json.dumps({"q": json.dumps({"r": f"x\n{line}\ny"})})}), (secret,)


def _coloured(line: str, secret: str) -> tuple[str, Pieces]:
    painted = line.replace(secret, f"\x1b[33m{secret}\x1b[0m")
    return _result(f"\x1b[1mconfig\x1b[0m\n\x1b[32m{painted}\x1b[0m\n"), (secret,)


def _numbered(line: str, secret: str) -> tuple[str, Pieces]:
    rows = [f"{at:6}\u2192{row}" for at, row in enumerate(["#config", *line.split("\n")], 1)]
    return _result("\n".join(rows)), (secret,)


def _diff(line: str, secret: str) -> tuple[str, Pieces]:
    added = "\n".join("+" + row for row in line.split("\n"))
    return _result(f"diff --git a/.env b/.env\n@@ -0,0 +1,9 @@\n{added}"), (secret,)


def _input(line: str, secret: str) -> tuple[str, Pieces]:
    call = {
        "type": "tool_use",
        "id": "toolu_01",
        "name": "Bash",
        "input": {"command": f"cat > .env <<EOF\n{line}\nEOF"},
    }
    return json.dumps({"type": "assistant", "message": {"content": [call]}}), (secret,)


def _key(line: str, secret: str) -> tuple[str, Pieces]:
    return json.dumps({"type": "event", "map": {line: True}}), (secret,)


def _unicode(line: str, secret: str) -> tuple[str, Pieces]:
    return f'{{"type":"user","content":"{_escaped("cfg" + chr(10) + line)}"}}', (_escaped(secret),)


def _nul(line: str, secret: str) -> tuple[str, Pieces]:
    return _result(f"a\0b\n{line}"), (secret,)


def _wrap(line: str, secret: str) -> tuple[str, Pieces]:
    """The secret begins 14 columns before the end of a line."""
    lead = _LOG[: WRAP - 15 - line.index(secret) % WRAP] + " "
    text = "\n".join(map(_wrapped, (lead + line).split("\n")))
    rows = tuple(row for row in text.split("\n") if row in secret)
    if "\n" in secret:
        return _result(text + "\n"), rows
    start = len(lead) + line.index(secret)
    stop = start + len(secret)
    return _result(text + "\n"), tuple(text[start + start // WRAP : stop + stop // WRAP].split("\n"))


def _stream(line: str, secret: str) -> tuple[str, Pieces]:
    cut = line.index(secret) + len(secret) // 2
    deltas = [
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": part},
        }
        for part in (line[:cut], line[cut:])
    ]
    half = len(secret) // 2
    return "\n".join(json.dumps(delta) for delta in deltas), (secret[:half], secret[half:])


def _base64_block(line: str, _secret: str) -> tuple[str, Pieces]:
    text = base64.b64encode(f"A=1\n{line}\n".encode()).decode()
    return _result(f"echo {text} | base64 -d"), (text,)


def _base64_secret(_line: str, secret: str) -> tuple[str, Pieces]:
    text = base64.b64encode(secret.encode()).decode()
    return _result(f"  token: {text}"), (text,)


def _percent(line: str, secret: str) -> tuple[str, Pieces]:
    return _result(f"POST /cb?state=1&data={quote(line, safe='')}&x=2"), (quote(secret, safe=""),)


def _hex(_line: str, secret: str) -> tuple[str, Pieces]:
    text = secret.encode().hex()
    return _result(f"payload {text}"), (text,)


ENCODINGS: dict[str, Callable[[str, str], tuple[str, Pieces]]] = {
    "plain": _plain,
    "bare after a line end": _bare,
    "JSON in JSON": _nested,
    "JSON in JSON in JSON": _nested_twice,
    "colours": _coloured,
    "cat -n": _numbered,
    "diff": _diff,
    "tool input": _input,
    "JSON key": _key,
    "unicode escapes": _unicode,
    "after a NUL": _nul,
    "wrapped": _wrap,
    "two stream deltas": _stream,
    "base64 of a file": _base64_block,
    "base64 of the secret": _base64_secret,
    "percent": _percent,
    "hex": _hex,
}


def cases(encoding: str, seed: int) -> Iterator[Case]:
    """Every kind in one encoding."""
    write = ENCODINGS[encoding]
    for kind, (around, template) in KINDS.items():
        secret = expand(template, random.Random(f"{kind} {seed}").randrange(1 << 30))
        block, written = write(around.replace("{}", secret), secret)
        yield Case(kind, encoding, block.encode() + b"\n", secret, written)


def survives(case: Case, output: bytes) -> bool:
    """True when a piece of the secret, as it is or as it was written, can still be read, raw or decoded."""
    shown = [output.decode()]
    for line in output.splitlines():
        shown += [ANSI.sub("", text) for text in strings(json.loads(line))]
    text = "\0".join(shown)
    rows = [row for row in case.secret.split("\n") if "-----" not in row]
    return any(len(piece) >= _PIECE and piece in text for piece in (*case.written, *rows))
