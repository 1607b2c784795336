"""Values assigned to names, in the syntax of many languages, and passwords that people made up."""

from __future__ import annotations

import json

import pytest

from archiver.redact.finder import Finder
from archiver.redact.passwords import is_made_up
from archiver.redact.scrub import Scrubber
from tests.redact.support import expand, lines, readable

WAYS = [
    'acmeToken = "{}"', "acmeToken='{}'", "acmeToken={}", "ACME_TOKEN ?= {}", 'acme_token ::= "{}"',
    'acme_TOKEN :::= "{}"', "acme_token := `{}`", '$acmeToken .= "{}"', '"acmeToken" => "{}",',
    ":acme_token => '{}'", 'var acmeToken string = "{}"', 'const acmeToken: &str = "{}";',
    'acme_token: str = "{}"', 'char acme_token[] = "{}";', 'private static final String ACME_TOKEN = "{}";',
    'let acmeToken = String("{}")', 'token := []byte("{}")', 'NSString *acmeToken = @"{}";',
    'System.setProperty("ACME_TOKEN", "{}")', "define('ACME_TOKEN', '{}');",
    "os.environ['ACME_TOKEN'] = '{}'",
    "<acmeToken>{}</acmeToken>", "<acmeToken>\n    {}\n</acmeToken>",
    "<a:acmeToken><![CDATA[{}]]></a:acmeToken>",
    '<add key="AcmeToken" value="{}" />', "- name: ACME_TOKEN\n  value: {}\n", 'acmeToken:\n  "{}"',
    "acme.token: {}", "set ACME_TOKEN={}", 'if acme_token == "{}":',
    'variable "acme_token" {{\n  type = string\n  default = "{}"\n}}',
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_assign_is_known(way: str, finder: Finder, scrubber: Scrubber) -> None:
    for seed in range(5):
        value = expand("{lownum:9}{upnum:6}7k{alnum:15}", seed)
        text = way.format(value)
        spans = finder.find(text.encode())
        assert any(text.encode()[span.start : span.end].decode() == value for span in spans), text
        for spelled in (json.dumps({"t": f"a\n{text}"}), json.dumps({"t": json.dumps([text])})):
            output = lines(scrubber, spelled.encode() + b"\n")
            assert value not in readable(output), spelled
        escaped = json.dumps({"t": text}).replace("<", "\\u003c").replace(">", "\\u003e")
        assert value not in readable(lines(scrubber, escaped.encode() + b"\n"))


@pytest.mark.parametrize(
    "text",
    [
        'password = "super$ecret"', "user = 'joe'\npassword = 'open sesame'", "DB_PASSWORD=whiteduke",
        "# REACT_APP_PASS=whiteduke\n", "[mail]\nUsername=someone\nPassword=blooberry\n",
        "Server=h;Port=1;User Id=app;Password=goodspec;Database=d;",
        '<add key="Password" value="CleartextWord1" />', "{username: 'joe', password: 'centipede'}",
        'if user == "joe" and password == "letmein7":', "+DB_PASSWORD=whiteduke\n+X=1", "password: duck99\n",
    ],
)  # fmt: skip
def test_passwords_of_people_are_found(text: str, finder: Finder) -> None:
    assert finder.find(text.encode()), text


@pytest.mark.parametrize(
    "text",
    [
        "password: string;", 'password: "Password"', 'label: { password: "Passwort" }', "password = password",
        "password = get_password(user)", "self.password = settings.password", 'password: "required"',
        "username: string\npassword: string\n", "PASS: TestCountTurns", "ok ? 'pass' : 'fail'",
        'passwordLabel: "Your password"', "password = models.CharField()", "the password is 'required'",
        "user = request.user\npassword = request.data", 'password = ""', "password: hidden",
        "this.user = user;\nthis.password = passphrase;", 'hash_password("sha256")', "password: bcrypt,",
        "PASSWORD=$(cat file)", "PASSWORD=${PASSWORD}", 'password: "&lt;none&gt;"',
        "List<Token>items</Token>",
        '["password", "username"]', "token, idx", 'confirmPassword: "confirm-password"',
        "password -> secretRef",
        'type: "password", name: "secret"', "password=$1", "user: me, password: process.env.PW",
        'url: "/reset", password: "users#edit"', "Password!", '{"username": "user", "password": "password"}',
        "username = args\npassword = secret_value\n",
        "keys = ['email', 'password', 'fullname', 'homepage']", 'LAST = ("secret", "dense")',
        "Url('http', 'user:password', 'host.test', 80)",
        "`username`, `password`, `certfile` and `keyfile`",
        '{"name": "Secret", "memberName": "SecretAccess"}',
        "auth = dict(Email=credentials[0], Passwd=credentials[1], x=1)",
        "self.pkcs12_password = pkcs12_password",
        "MLKEM768X25519PrivateKey = openssl.hpke.MLKEM768X25519PrivateKey\n",
        "arn:aws:secretsmanager:us-west-2:123456789012:secret:DatabaseSecret-a1b2c3", "PASS8 = 0x08000000;",
        "username: str\npassword: SecretStr\n", "Credential=mock_key1/20220524/us-east-1/s3/aws4_request",
    ],
)  # fmt: skip
def test_code_and_words_of_programs_are_no_passwords(text: str, finder: Finder) -> None:
    assert finder.find(text.encode()) == [], text


def test_the_value_beside_a_name_is_found_in_a_part_of_a_json_text(finder: Finder) -> None:
    value = expand("{alnum:12}7x")
    text = f'"name": "DB_PASSWORD", "value": "{value}"'.encode()
    assert [text[span.start : span.end].decode() for span in finder.find(text)] == [value]


@pytest.mark.parametrize(
    "text",
    [
        '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "x"\n{b64:70}\n{b64:70}\n',
        "-----BEGIN TENDERMINT PRIVATE KEY-----\nkdf: bcrypt\nsalt: {HEX:32}\ntype: secp256k1\n\n{b64:64}\n",
    ],
)
def test_private_keys_with_other_heads_are_found_whole(text: str, finder: Finder) -> None:
    filled = expand(text)
    (span,) = finder.find(filled.encode())
    assert filled[span.start : span.end].splitlines()[-1] == filled.splitlines()[-1]


@pytest.mark.parametrize(
    "header",
    [
        "Cookie: .AspNetCore.Cookies=CfDJ8{url:120}",
        "Cookie: wordpress_logged_in_{hex:32}=admin{alnum:43}9x",
    ],
)  # fmt: skip
def test_cookies_of_logins_are_found(header: str, finder: Finder) -> None:
    assert finder.find(expand(header).encode())


def test_what_is_made_up_depends_on_where_it_stands() -> None:
    assert is_made_up(b"blooberry", "paired")
    assert is_made_up(b"blooberry", "line")
    assert not is_made_up(b"blooberry", "literal")
    assert is_made_up(b"blueduck77", "literal")
    for place in ("literal", "paired", "line", "pair-line"):
        for label in (
            b"password",
            b"newPassword",
            b"string",
            b"sha256",
            b"a@b.org",
            b"${X}",
            b"x",
            b"forgot-password",
        ):
            assert not is_made_up(label, place), (label, place)  # type: ignore[arg-type]
