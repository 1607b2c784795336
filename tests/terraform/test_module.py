"""The module by itself: form, validity, its own tests, and what its README says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from terraform.tool import MODULE, Terraform, program

_BLOCK = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
_DESCRIPTION = re.compile(r'^  description = "((?:[^"\\]|\\.)*)"$', re.MULTILINE)


def test_the_form() -> None:
    for where, text in ((MODULE, None), ("-", shown())):
        done = subprocess.run(
            [program(), "fmt", "-check", "-recursive", "-diff", where],
            input=text,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_and_its_examples_are_valid(module: Terraform) -> None:
    """All in one go, with what the README shows: each start of the provider takes seconds of a processor."""
    folder = module.folder / "examples"
    (folder / "readme").mkdir()
    (folder / "readme" / "main.tf").write_text(shown().replace("./modules/checkpoint-archiver", "../.."))
    (folder / "all.tf").write_text(_ALL.format(*(_given(folder / name) for name in ("minimal", "complete"))))
    Terraform(folder).init().run("validate")


def shown() -> str:
    """The `main.tf` of the README, with a recipient in the place of the one that is left out."""
    (text,) = re.findall(r"^```hcl\n(.*?)^```", (MODULE / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return str(text).replace("age1…", "age1" + "q" * 58)


def test_the_readme_shows_all_that_its_steps_ask_for() -> None:
    text = (MODULE / "README.md").read_text().split("## Usage\n")[1].split("\n## ")[0]
    asked = set(re.findall(r"terraform output -(?:raw|json) (\w+)", text))
    assert asked == {"archive_key_arn", "archiver_toml"}
    assert asked | {"role_arns"} == set(re.findall(r'^output "(\w+)"', shown(), re.MULTILINE))
    assert re.search(r'^provider "aws"', shown(), re.MULTILINE)


_ALL = """
module "readme" {{
  source = "./readme"
}}

module "minimal" {{
  source = "./minimal"
  {}
}}

module "complete" {{
  source = "./complete"
  {}
}}
"""


def _given(example: Path) -> str:
    """Something for each of its variables: of which type it has to be is looked at, not what it is."""
    found = _BLOCK.findall((example / "main.tf").read_text())
    return "\n  ".join(f"{name} = null" for kind, name, _ in found if kind == "variable")


def test_its_own_tests(module: Terraform) -> None:
    said = module.run("test")
    assert re.search(r"^Success! \d+ passed, 0 failed\.", said, re.MULTILINE), said


def blocks(kind: str) -> dict[str, str]:
    """The variables or outputs of the module: what stands between their braces, by name."""
    text = "".join(path.read_text() for path in sorted(MODULE.glob("*.tf")))
    return {name: body for word, name, body in _BLOCK.findall(text) if word == kind}


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the README's table below that heading, by the name in the first column."""
    text = (MODULE / "README.md").read_text()
    part = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_the_readme_has_every_input() -> None:
    rows, variables = table("Inputs"), blocks("variable")
    assert list(rows) == sorted(variables)
    for name, body in variables.items():
        described = _DESCRIPTION.search(body)
        assert described is not None, name
        default = re.search(r"^  default +=", body, re.MULTILINE)
        assert rows[name][-1] == described[1].replace('\\"', '"')
        assert (rows[name][0] == "required") is (default is None), name


def test_the_readme_has_every_output() -> None:
    rows = table("Outputs")
    found = {name: _DESCRIPTION.search(body) for name, body in blocks("output").items()}
    assert {name: [match[1]] for name, match in found.items() if match} == rows
    assert all(found.values())


def test_every_input_has_a_rule_where_one_can_be_broken() -> None:
    free = {"administrator_mfa", "force_destroy", "sweeper_archives", "tags"}
    assert {name for name, body in blocks("variable").items() if "validation {" not in body} == free


def test_nothing_of_a_machine_stands_in_it() -> None:
    for path in MODULE.rglob("*"):
        if path.suffix in {".tf", ".hcl", ".md"} and ".terraform" not in path.parts:
            text = path.read_text()
            assert not [place for place in (Path.home(), Path(__file__).parents[2]) if f"{place}/" in text], (
                path
            )


def test_the_readme_names_what_is_there() -> None:
    text = (MODULE / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert (MODULE / Path(target)).resolve().exists(), target
