"""Values from files: every form gives its secrets, nothing else, and no file is skipped in silence."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.errors import RedactionUnavailableError
from archiver.redact import ExactValue, Redactor, negatives
from archiver.redact.exact import searchable
from archiver.redact.finder import Finder
from archiver.redact.secretfiles import named, reading, well_known
from tests.redact.conftest import KEY
from tests.redact.support import expand


def word(size: int = 20) -> str:
    """A random value; of 3,000 one looks like an identifier, which under most names is no secret."""
    while negatives.is_identifier((made := f"q{secrets.token_hex(size // 2)}Z").encode()):
        pass
    return made


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def pem() -> str:
    body = b64(secrets.token_hex(300))
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"


W = word  # short names keep the files below readable
FILES: list[tuple[str, Callable[[str], str]]] = [
    (".env", lambda s: f"# note\nexport DB_PASSWORD='{s}' # why\nDEBUG=true\n"),
    (".env.local", lambda s: f"PART={s}\nAPI_TOKEN=${{PART}}\n"),
    ("app.env", lambda s: f'SECRET="{s}\n"\nPORT=8080\n'),
    ("prod.env", lambda s: f"DATABASE_URL=postgres://app:{s}@db:5432/x\n"),
    (".netrc", lambda s: f"machine a.example login me password {s}\nmacdef init\ncd /x\n\n"),
    ("_netrc", lambda s: f'default\n  login me\n  password "{s}"\n'),
    (".pgpass", lambda s: f"# c\nhost:5432:db\\:x:user:{s}\n"),
    (".git-credentials", lambda s: f"https://me:{s}@git.example\n"),
    (".git-credentials", lambda s: f"https://{s}:x-oauth-basic@git.example\n"),
    (".aws/credentials", lambda s: f"[default]\naws_access_key_id = AB\naws_secret_access_key = {s}\n"),
    (".aws/config", lambda s: f"[profile a]\nregion = eu-west-1\naws_session_token={s}\ns3 =\n  x = 3\n"),
    (".docker/config.json", lambda s: json.dumps({"auths": {"r.example": {"auth": b64(f"me:{s}")}}})),
    (".docker/config.json", lambda s: json.dumps({"auths": {"r.example": {"identitytoken": s}}})),
    (".kube/config", lambda s: f"apiVersion: v1\nusers:\n- name: u\n  user:\n    token: {s}\n"),
    (".kube/config", lambda s: f"apiVersion: v1\nusers: [{{name: u, user: {{password: {s}}}}}]\n"),
    (".npmrc", lambda s: f"registry=https://r.example/\n//r.example/:_authToken={s}\n"),
    (".npmrc", lambda s: f"//r.example/:_password={b64(s)}\n"),
    (".pypirc", lambda s: f"[pypi]\nusername = __token__\npassword = {s}\n"),
    ("pip.conf", lambda s: f"[global]\nindex-url = https://u:{s}@pypi.example/simple\n"),
    ("sa.json", lambda s: json.dumps({"type": "service_account", "private_key": s, "client_id": "1"})),
    (
        "application_default_credentials.json",
        lambda s: json.dumps({"client_secret": "short", "refresh_token": s}),
    ),
    ("msal_token_cache.json", lambda s: json.dumps({"AccessToken": {"k": {"secret": s, "realm": "x"}}})),
    ("accessTokens.json", lambda s: json.dumps([{"accessToken": s, "expiresOn": "2026-01-01"}])),
    ("credentials.tfrc.json", lambda s: json.dumps({"credentials": {"app.example": {"token": s}}})),
    ("hosts.yml", lambda s: f"github.com:\n    user: me\n    oauth_token: {s}\n"),
    ("credentials.toml", lambda s: f'[registry]\ntoken = "{s}"\n'),
    ("auth.json", lambda s: json.dumps({"openai": {"type": "api", "key": s}})),
    ("any.yaml", lambda s: f"a: &x\n  - name: DB_PASSWORD\n    value: {s}\nb: *x\n"),
    ("any.toml", lambda s: f'[a.b]\nclient_secret = "{s}"\n'),
    ("any.ini", lambda s: f"api_key: {s}\nhost: h\n"),
    ("creds", lambda s: f"[x]\nanything = {s}\n"),
    ("token", lambda s: f"{s}\n"),
    ("lines.jsonl", lambda s: json.dumps({"a": 1}) + "\n" + json.dumps({"password": s}) + "\n"),
    ("ps.json", lambda s: "\ufeff" + json.dumps({"password": s})),
    ("inner.env", lambda s: "ACCOUNT='" + json.dumps({"private_key": s}) + "'\n"),
]


@pytest.mark.parametrize(("name", "make"), FILES, ids=[f"{at}-{name}" for at, (name, _) in enumerate(FILES)])
def test_every_form_gives_its_secret(
    name: str, make: Callable[[str], str], finder: Finder, tmp_path: Path
) -> None:
    secret = word()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(make(secret), encoding="utf-8")
    found = named([path])
    assert secret in {one.value for one in found}
    assert all(secret not in one.name for one in found)
    said = Redactor(finder, KEY, found).text(f"so it is {secret}, on host h, port 8080, debug true, user me")
    assert secret not in said
    assert said.endswith(", on host h, port 8080, debug true, user me")


def test_a_file_in_utf_16_and_a_key_in_base64(tmp_path: Path) -> None:
    secret = word()
    (tmp_path / "a.json").write_bytes(json.dumps({"password": secret}).encode("utf-16"))
    key = pem()
    (tmp_path / "config.yaml").write_text(f"user:\n  client-key-data: {b64(key)}\n")
    values = {one.value for one in named([tmp_path / "a.json", tmp_path / "config.yaml"])}
    assert {secret, key} <= values


@pytest.mark.parametrize("width", [40, 64, 70, 76, 100, 5000])
def test_a_key_is_found_wrapped_anew(width: int, finder: Finder, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text(key := pem())
    known = named([tmp_path / "id_rsa"])
    body = "".join(key.splitlines()[1:-1])
    wrapped = "".join(f"> {body[at : at + width]}\n" for at in range(0, len(body), width))
    said = Redactor(finder, KEY, known).text(f"it was\n{wrapped}and no more")
    assert not any(body[at : at + 16] in said for at in range(0, len(body) - 16, 8))
    assert "it was\n" in said
    assert "and no more" in said


def test_common_values_are_not_searched_for_and_are_named(finder: Finder, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "X_TOKEN=production\nB_PASSWORD=/etc/keys/app.pem\nC_SECRET=https://id.example/realms/main\n"
        "IMAGE=ghcr.io/org/app:v1.2.3\nGIT_SHA=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b\nTZ=Europe/Berlin\n"
        "D_KEY=4096\nNODE_ENV=production\nAPP=my-company-app\nGIT=0123\nD_PASSWORD=postgres\n"
    )
    known = named([tmp_path / ".env"])
    assert not any(map(searchable, known))
    receipt = Redactor(finder, KEY, known).receipt()
    shown = " ".join(receipt.too_short)
    assert "X_TOKEN in " in shown
    assert "NODE_ENV" not in shown


def _folder(path: Path) -> None:
    path.mkdir()


def _unreadable(path: Path) -> None:
    path.symlink_to(path)


BROKEN: list[tuple[str, Callable[[Path], object], str]] = [
    ("a.env", lambda path: None, "no such file"),
    ("a.env", _folder, "no regular file|cannot be read"),
    ("a.env", os.mkfifo, "no regular file"),
    ("a.env", _unreadable, "cannot be read"),
    ("a.env", lambda path: path.write_bytes(b"A=\xff\xfe"), "not a text file"),
    ("a.env", lambda path: path.write_bytes(b"A=\0"), "not a text file"),
    ("a.env", lambda path: path.write_text("A='open\n"), "line 1"),
    ("a.env", lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), reading.MAX_FILE + 1), "MiB"),
    ("a.json", lambda path: path.write_text("{"), "not JSON"),
    ("a.json", lambda path: path.write_text("[" * 100_000), "not JSON"),
    ("a.toml", lambda path: path.write_text("a ="), "not TOML"),
    ("a.yaml", lambda path: path.write_text("a: [b"), "not YAML"),
    ("a.yaml", lambda path: path.write_text("[" * 50_000), "not YAML"),
    ("a.ini", lambda path: path.write_text("[a]\n= b\n"), "INI"),
    (".pgpass", lambda path: path.write_text("a:b\n"), "five fields"),
    (".netrc", lambda path: path.write_text("hello there\n"), "no machine"),
    ("notes", lambda path: path.write_text("some words\nand: more\nof - them\n"), "no form"),
    ("*.env", lambda path: None, "no file fits"),
]


@pytest.mark.parametrize(("name", "make", "says"), BROKEN, ids=[f"{n}-{s}" for n, _, s in BROKEN])
def test_a_named_file_that_cannot_be_read_is_an_error(
    name: str, make: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    make(path)
    with pytest.raises(RedactionUnavailableError, match=says) as caught:
        named([path])
    assert "redaction.secret_files" in (caught.value.remedy or "")


def test_a_small_yaml_file_cannot_become_a_large_tree(tmp_path: Path) -> None:
    lines = ["a0: &a0 {password: " + word() + "}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], x: [*a{n - 1}]}}" for n in range(1, 20)]
    (tmp_path / "a.yaml").write_text("\n".join(lines))
    assert len(named([tmp_path / "a.yaml"])) == 1


def test_patterns_take_every_file_that_fits(tmp_path: Path) -> None:
    one, two = word(), word()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".env").write_text(f"PASSWORD={one}\n")
    (tmp_path / "b.env").write_text(f"PASSWORD={two}\n")
    assert {known.value for known in named([tmp_path / "**" / "*.env"])} >= {two}
    assert {known.value for known in named([tmp_path / "*" / ".env"])} == {one}


def test_well_known_files_of_home_variables_and_folder(finder: Finder, tmp_path: Path) -> None:
    home, folder, moved = tmp_path / "home", tmp_path / "work", tmp_path / "moved"
    for path in (home / ".aws", folder, moved):
        path.mkdir(parents=True)
    one, two, three = word(), word(), word()
    (home / ".aws" / "credentials").write_text(f"[default]\naws_secret_access_key={one}\n")
    (folder / ".env").write_text(f"DB_PASSWORD={two}\n")
    (moved / "k1").write_text(f"apiVersion: v1\nusers: [{{user: {{token: {three}}}}}]\n")
    (home / ".pypirc").mkdir()
    (home / ".netrc").write_text("nonsense\n")
    found = well_known(home, folder, {"KUBECONFIG": f"{moved / 'none'}:{moved / 'k1'}"})
    assert {known.value for known in found} >= {one, two, three}
    assert ExactValue("~/.netrc", "", missing="it names no machine") in found
    receipt = Redactor(finder, KEY, found).receipt()
    assert [text.partition(":")[0] for text in receipt.unread] == ["~/.netrc", "~/.pypirc"]
    assert receipt.too_short == ()


def test_names_that_are_secrets_are_not_shown(tmp_path: Path) -> None:
    token = expand("ghp_{alnum:36}")
    (tmp_path / "a.json").write_text(json.dumps({token: {"password": "abc"}, f"{token}_password": "abc"}))
    assert all(token not in known.name for known in named([tmp_path / "a.json"]))
