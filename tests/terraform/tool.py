"""Terraform as these tests run it: offline, with a provider from a folder, in a copy of the module."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

MODULE = Path(__file__).parents[2] / "terraform"
MIRROR = "ARCHIVER_TERRAFORM_MIRROR"
"""Variable with the folder that `terraform providers mirror` fills: `registry.terraform.io/` lies in it."""
REQUIRED = "ARCHIVER_TERRAFORM_REQUIRED"
"""Variable that makes a failure of what would be skipped."""

_REQUIRED = bool(os.environ.get(REQUIRED))
_MIRROR = os.environ.get(MIRROR)  # read now: tests have an environment without variables of this program


def missing(what: str) -> None:
    """Skip for want of something, or fail where it is demanded."""
    if _REQUIRED:
        pytest.fail(f"{what}, and {REQUIRED} is set")
    pytest.skip(what)


def program() -> str:
    """The path of `terraform`."""
    found = shutil.which("terraform")
    if found is None:
        missing("terraform is not installed")
    return str(found)


def mirror() -> Path:
    """The folder with the provider."""
    if _MIRROR is None:
        missing(
            f"{MIRROR} names no folder with the provider hashicorp/aws; "
            "`terraform -chdir=terraform providers mirror FOLDER` fills one"
        )
    folder = Path(str(_MIRROR))
    if not (folder / "registry.terraform.io" / "hashicorp" / "aws").is_dir():
        missing(f"{MIRROR} is {folder}, which has no registry.terraform.io/hashicorp/aws")
    return folder.resolve()


def copied(into: Path) -> Path:
    """A copy of the module and its examples, in which Terraform may leave files."""
    left = shutil.ignore_patterns(".terraform*", "*.tfstate*")
    return Path(shutil.copytree(MODULE, into, ignore=left))


@dataclass
class Terraform:
    """Terraform in one folder."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *words: str, codes: tuple[int, ...] = (0,), within: float = 600) -> str:
        """What it prints; it must end with one of these exit codes."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TF_"))}
        done = subprocess.run(
            [program(), *words, "-no-color"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=within,
            env=own
            | {"CHECKPOINT_DISABLE": "1", "TF_CLI_CONFIG_FILE": os.devnull, "TF_IN_AUTOMATION": "1"}
            | {"GOGC": "400"}  # each start of the provider reads its schema: less is collected meanwhile
            | self.environment,
        )
        assert done.returncode in codes, done.stdout[-3000:] + done.stderr[-5000:]
        return done.stdout

    def init(self) -> Terraform:
        """Take the provider from the mirror; nothing else is asked."""
        self.run("init", "-input=false", "-backend=false", f"-plugin-dir={mirror()}")
        return self
