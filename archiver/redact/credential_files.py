"""Files that are credentials: which they are, by name and by content, and why.

In a workspace such a file is not carried: a copy with placeholders is of no use to whoever resumes the run,
and whoever may resume it has the file already. It is named in the receipt. The paths are those of the tools'
own documentation, wherever in a workspace they begin.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Credentials = Literal["leave-out", "redact"]
"""What becomes of files of credentials; `redact` carries those that are text, with placeholders."""
When = Literal["always", "found"]
"""`found`: only a file of that name in which something was found; many hold nothing but settings."""
Named = tuple[When, str]

NAMED: Final[tuple[tuple[str, When, str], ...]] = (
    (
        r"\.(?:codex|gemini|claude)/(?:auth|oauth_creds|\.credentials)\.json|opencode/auth\.json",
        "always",
        "a login of an agent",
    ),
    (r"\.env(?:\.[^/]+)?", "always", "variables of a program"),
    (r"[^/]+\.env|\.envrc", "found", "variables of a program"),
    (r"id_(?:rsa|dsa|ecdsa|ecdsa_sk|ed25519|ed25519_sk|xmss)", "always", "a private key of SSH"),
    (r"ssh_host_[^/]+_key", "always", "a private key of SSH"),
    (r"[^/]+\.(?:key|p8|ppk)", "always", "a private key"),
    (r"[^/]+\.(?:pem|crt|cer|cert)", "found", "a private key beside a certificate"),
    (r"[^/]+\.(?:p12|pfx|jks|jceks|bks|keystore)", "always", "a store of keys"),
    (r"[^/]+\.(?:kdbx?|psafe3|keychain(?:-db)?|1pux|agilekeychain)", "always", "a store of passwords"),
    (r"[^/]+\.keytab", "always", "keys of Kerberos"),
    (r"secring\.gpg|private-keys-v1\.d/[^/]+", "always", "private keys of GnuPG"),
    (r"[._]netrc|\.pgpass|pgpass\.conf|\.mylogin\.cnf", "always", "passwords of servers"),
    (r"\.git-credentials|git/credentials", "always", "passwords of git"),
    (r"\.my\.cnf|\.s3cfg|\.boto|\.databrickscfg|\.dockercfg|\.htpasswd", "found", "passwords of servers"),
    (
        r"\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|pip\.(?:conf|ini)|\.terraformrc|auth\.json|nuget\.config",
        "found",
        "tokens of a registry",
    ),
    (r"\.cargo/credentials(?:\.toml)?|\.gem/credentials", "always", "tokens of a registry"),
    (r"\.aws/credentials|\.aws/(?:sso|cli)/cache/[^/]+", "always", "keys of AWS"),
    (r"\.aws/config", "found", "keys of AWS"),
    (
        r"application_default_credentials\.json|gcloud/(?:credentials\.db|access_tokens\.db)",
        "always",
        "Google",
    ),
    (r"\.azure/(?:msal_token_cache|accessTokens|service_principal_entries)\.(?:json|bin)", "always", "Azure"),
    (r"\.docker/config\.json", "found", "logins of registries"),
    (r"kubeconfig|[^/]+\.kubeconfig|\.kube/config", "found", "logins of a cluster"),
    (r"[^/]+\.tfstate(?:\.backup)?|[^/]+\.tfvars(?:\.json)?", "found", "what Terraform knows in clear"),
    (r"credentials\.tfrc\.json|\.vault-token|\.vault_pass(?:word)?", "always", "a token"),
    (r"gh/hosts\.yml|glab-cli/config\.yml|\.config/hub", "found", "a token of a code host"),
    (r"\.cache/huggingface/token|\.huggingface/token", "always", "a token"),
    (
        r"\.streamlit/secrets\.toml|secrets\.(?:ya?ml|json|toml|properties)",
        "found",
        "settings that are secret",
    ),
    (
        r"[^/]+\.ovpn|wg[0-9]+\.conf|[^/]+\.(?:nmconnection|mobileconfig)",
        "found",
        "a key of a private network",
    ),
)
"""Pattern of the last parts of a path, in any case; when; what it is. The first that fits counts."""

_EXAMPLES = re.compile(
    r"(?:.*/)?\.env\.(?:.+\.)?(?:example|sample|template|tmpl|dist|defaults?|schema|vault)", re.IGNORECASE
)
"""Names by which people publish what has to be set, without values (or, the last, encrypted)."""
_COMPILED: Final = tuple(
    (re.compile(rf"(?:.*/)?(?:{pattern})", re.IGNORECASE | re.DOTALL), (when, what))
    for pattern, when, what in NAMED
)

_PLAIN: Final = frozenset(
    {
        *(
            "c",
            "cc",
            "cpp",
            "css",
            "go",
            "h",
            "html",
            "java",
            "js",
            "jsx",
            "md",
            "php",
            "pl",
            "png",
            "py",
            "pyc",
        ),
        *("rb", "rs", "rst", "scss", "sh", "so", "sql", "svg", "swift", "ts", "tsx", "txt", "vue", "xml"),
    }
)
"""Ends of names that no row has: most files of a tree need no further look."""

_TEXTS = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:[ \t\r\n]|#[^\n]{0,200}\n){0,40}(?:"
    rb"(?P<pem>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    rb"|(?P<age>AGE-(?:SECRET-KEY|PLUGIN)-)"
    rb"|(?P<putty>PuTTY-User-Key-File-[0-9]))"
)
_BYTES: Final = (
    (re.compile(rb"\xfe\xed\xfe\xed|\xce\xce\xce\xce"), "a store of keys of Java"),
    (
        re.compile(rb"\x03\xd9\xa2\x9a(?:\x67\xfb\x4b\xb5|\x65\xfb\x4b\xb5|\x66\xfb\x4b\xb5)"),
        "a KeePass database",
    ),
    (re.compile(rb"\x30\x82..\x02\x01\x03\x30", re.DOTALL), "a PKCS #12 store of keys"),
    (re.compile(rb"\x30\x82..\x02\x01\x00\x30.\x06", re.DOTALL), "a private key (PKCS #8)"),
    (re.compile(rb"\x30\x82..\x02\x01\x00\x02\x82", re.DOTALL), "a private key (PKCS #1)"),
)
_KINDS: Final = {"pem": "a private key", "age": "an identity of age", "putty": "a private key of PuTTY"}


def by_name(path: str) -> Named | None:
    """Whether a file of that path is one of credentials, and what it is."""
    name = path.rpartition("/")[2]
    if name.rpartition(".")[2] in _PLAIN and name[:1] != ".":
        return None
    if _EXAMPLES.fullmatch(path) is not None:
        return None
    return next((named for pattern, named in _COMPILED if pattern.fullmatch(path)), None)


def by_content(start: bytes) -> str | None:
    """What a file that begins so is, if it is nothing but a credential."""
    match = _TEXTS.match(start)
    if match is not None:
        return _KINDS[match.lastgroup or "pem"]
    return next((what for pattern, what in _BYTES if pattern.match(start)), None)


def reason(what: str) -> str:
    """What the receipt says of such a file."""
    return f"a file of credentials ({what}); not carried"
