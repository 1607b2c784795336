"""What a release archived, every later one restores, and so does a decryptor that shares no code with us."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from archiver import saved, schemas
from archiver.catalog import Catalog
from archiver.errors import ArchiveFormatError
from archiver.restore import restore
from archiver.setup import Setup
from archiver.transcripts import get_dialect
from archiver.verify import verify

GOLDEN = Path(__file__).parent / "golden"
DECRYPT = Path(__file__).parent / "independent" / "decrypt.py"
STORES = sorted(path for path in GOLDEN.glob("v*/store") if path.is_dir())

sys.path.insert(0, str(GOLDEN))
import keys  # noqa: E402 - lies beside the golden stores
from make_increments import messages  # noqa: E402 - as above
from make_store import golden_setup, made_by_hand  # noqa: E402 - as above

RUNS = {
    "v1": ["12", "run-b", "task-7"],
    "v2": ["by-hand/1", "sample", "text"],
    "v2-dictionary": ["growing"],
    "v2-increments": ["growing"],
}
FORMATS = {"v2-dictionary": 3, "v2-increments": 2}
STATE = ("effects.jsonl", "evidence.jsonl", "receipt.json", "checkpoint.json")


@pytest.fixture(params=[path.parent.name for path in STORES])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(version: str, tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    shutil.copytree(GOLDEN / version / "store", folder)
    return folder


only_v1 = pytest.mark.parametrize("version", ["v1"])
only_increments = pytest.mark.parametrize("version", list(FORMATS))
only_v2 = pytest.mark.parametrize("version", ["v2"])


@pytest.fixture
def setup(store: Path) -> Setup:
    return golden_setup(store)


@pytest.fixture
def identity_file(tmp_path: Path) -> Path:
    path = tmp_path / "identity.txt"
    path.write_text(keys.identity().secret_text() + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def decrypted(identity_file: Path, *arguments: str) -> bytes:
    options = [one for one in arguments if one.startswith("--") or "/out" in one or one.endswith("/text")]
    files = [argument for argument in arguments if argument not in options]
    done = subprocess.run(
        [sys.executable, "-I", str(DECRYPT), *options, str(identity_file), *files], capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_there_is_a_golden_store_of_each_released_version() -> None:
    assert [path.parent.name for path in STORES] == list(RUNS)


def test_every_object_is_whole(setup: Setup) -> None:
    findings = list(verify(setup, deep=True))
    assert len(findings) >= 8
    assert [finding for finding in findings if not finding.ok] == []


def test_every_run_is_restored(version: str, setup: Setup, tmp_path: Path) -> None:
    runs = list(Catalog(setup).runs())
    assert runs == RUNS[version]
    for number, run in enumerate(runs):
        done = restore(run, setup, into=tmp_path / f"out{number}", accept=("age", "git_commit"))
        for part in done.checkpoint.transcript.parts:
            if part.media != "raw":
                assert get_dialect(done.checkpoint.transcript.dialect).problems(iter(part.items)) == []


@only_v2
def test_a_file_of_no_known_form_comes_back_byte_for_byte(setup: Setup, tmp_path: Path) -> None:
    restore("text", setup, into=tmp_path / "out", accept=("age", "git_commit"))
    assert (tmp_path / "out" / "transcript" / "note.txt").read_bytes() == b"kept whole\n"


@only_v1
def test_a_bundle_of_version_1_is_migrated_and_what_it_held_is_kept(setup: Setup, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (GOLDEN / "v1" / "rows.jsonl").read_text().splitlines()]
    expected = (GOLDEN / "v1" / "migrated.jsonl").read_text().splitlines()
    for number, run in enumerate(("task-7", "12", "run-b")):
        into = tmp_path / f"out{number}"
        done = restore(run, setup, into=into, at=1, accept=("age",))
        assert done.report.migrations == ("v1_to_v2",)
        assert json.loads((into / "original" / "checkpoint.json").read_bytes()) == rows[number]
        restored = json.loads((into / "checkpoint.json").read_bytes())
        migrated = json.loads(expected[number])
        for name in ("run_id", "task_id", "objective", "iteration", "created_at", "checkpoint_at"):
            assert restored[name] == migrated[name], name
        items = [item for part in done.checkpoint.transcript.parts for item in part.items.values()]
        assert items == [item for part in migrated["transcript"]["parts"] for item in part["items"]]


@only_v2
def test_a_document_of_another_version_than_its_record_is_no_checkpoint(setup: Setup) -> None:
    record = Catalog(setup).chain("sample").head.record
    row = json.loads((GOLDEN / "v1" / "rows.jsonl").read_text().splitlines()[0])
    with pytest.raises(ArchiveFormatError, match="another schema than its record"):
        saved._migrated({**row, "run_id": record.run, "task_id": record.task}, record)


@only_v2
def test_every_field_comes_back(setup: Setup, tmp_path: Path) -> None:
    done = restore("by-hand/1", setup, into=tmp_path / "out", accept=("age", "git_commit"))
    expected = made_by_hand().document(exclude={"transcript", "full_transcript", "environment"})
    found = done.checkpoint.document(exclude={"transcript", "full_transcript", "environment"})
    assert found == expected
    assert [list(part.items) for part in done.checkpoint.transcript.parts] == [
        list(part.items) for part in made_by_hand().transcript.parts
    ]


def test_an_independent_decryptor_reads_the_records(store: Path, identity_file: Path) -> None:
    schema = json.loads(schemas.text("v2/record"))
    previous: dict[Path, str] = {}
    records = sorted(store.glob("records/*/*.age"))
    assert len(records) == 4
    for path in records:
        body = decrypted(identity_file, "--record", str(path))
        document: dict[str, Any] = json.loads(body)
        jsonschema.validate(document, schema)
        assert document["previous"] == previous.get(path.parent)
        assert document["store"] == keys.STORE_ID
        previous[path.parent] = hashlib.sha256(body).hexdigest()


def test_an_independent_decryptor_unpacks_the_bundles(
    store: Path, setup: Setup, identity_file: Path, tmp_path: Path
) -> None:
    whole: dict[str, bytes] = {}
    for number, link in enumerate(
        link for run in Catalog(setup).runs() for link in Catalog(setup).chain(run).links
    ):
        bundle = link.record.bundle
        assert bundle is not None
        folder = tmp_path / f"out-{number}"
        folder.mkdir()
        behind = text(tmp_path, whole) if bundle.bases else ()
        decrypted(identity_file, *behind, "--untar", str(folder), str(store / bundle.name))
        whole = unpacked(folder, whole if bundle.bases else {})
        manifest = (folder / "manifest.json").read_bytes()
        assert hashlib.sha256(manifest).hexdigest() == bundle.manifest_sha256
        listed = {member["path"]: member["sha256"] for member in json.loads(manifest)["members"]}
        found = {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "manifest.json"
        }
        assert found == listed
        for name in {"manifest", "receipt"}.intersection(path.stem for path in folder.iterdir()):
            jsonschema.validate(
                json.loads((folder / f"{name}.json").read_bytes()), json.loads(schemas.text(f"v2/{name}"))
            )


def text(folder: Path, table: dict[str, bytes]) -> tuple[str, str]:
    """What a bundle is compressed behind whose base has this table, as the format says it, as an option."""
    paths = sorted(path for path in table if path.startswith("transcript/"))
    joined = b"".join(table[path] for path in (*paths, *STATE) if path in table)
    (folder / "text").write_bytes(joined[-524288:])
    return "--text", str(folder / "text")


def unpacked(folder: Path, base: dict[str, bytes]) -> dict[str, bytes]:
    """The members of a bundle that was unpacked there, over those of its base."""
    dropped = json.loads((folder / "manifest.json").read_bytes()).get("dropped", [])
    table = {path: data for path, data in base.items() if path not in dropped}
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json")
    return table | {str(path.relative_to(folder)): path.read_bytes() for path in files}


@only_increments
def test_each_of_a_chain_comes_back(setup: Setup, tmp_path: Path) -> None:
    links = Catalog(setup).chain("growing").links
    assert [link.record.bundle.bases for link in links if link.record.bundle] == [(), (1,), (1, 2), ()]
    for seq in range(1, 5):
        into = tmp_path / f"out-{seq}"
        done = restore("growing", setup, into=into, at=seq, accept=("age", "git_commit"))
        assert list(done.checkpoint.transcript.parts[0].items) == messages(seq)


@only_increments
def test_a_chain_is_put_together_by_the_text_alone(
    version: str, store: Path, identity_file: Path, tmp_path: Path
) -> None:
    """By what the format says of `base`, `dropped` and `dictionary`, with nothing of the package."""
    table: dict[str, bytes] = {}
    before: tuple[str, bytes] | None = None
    for seq in (1, 2, 3):
        (path,) = store.glob(f"bundles/growing/{seq:08d}-*.age")
        folder = tmp_path / f"out-{seq}"
        folder.mkdir()
        behind = text(tmp_path, table) if seq > 1 and version == "v2-dictionary" else ()
        decrypted(identity_file, *behind, "--untar", str(folder), str(path))
        raw = (folder / "manifest.json").read_bytes()
        manifest = json.loads(raw)
        if before is not None:
            sha256 = hashlib.sha256(before[1]).hexdigest()
            base = {"bundle": before[0], "sha256": sha256}
            assert (manifest["format"], manifest["base"]) == (FORMATS[version], base)
            assert manifest.get("dictionary") == ((tmp_path / "text").stat().st_size if behind else None)
        table = unpacked(folder, table)
        before = (str(path.relative_to(store)), raw)
    (part,) = json.loads(table["checkpoint.json"])["transcript"]["parts"]
    lines = b"".join(table[segment] for segment in part["segments"]).splitlines()
    assert [json.loads(line) for line in lines] == messages(3)


@pytest.mark.skipif(not shutil.which("zstd"), reason="needs zstd")
@pytest.mark.parametrize("version", ["v2-dictionary"])
def test_the_commands_of_the_format_unpack_a_chain(store: Path, identity_file: Path, tmp_path: Path) -> None:
    commands = (Path(__file__).parents[1] / "schemas" / "FORMAT.md").read_text().split("is opened by\n")[1]
    script = commands.split("\n\n")[0]
    folder = tmp_path / "chain"
    folder.mkdir()
    for seq in (1, 2, 3):
        (path,) = store.glob(f"bundles/growing/{seq:08d}-*.age")
        decrypt = f"{sys.executable} -I {DECRYPT} {identity_file} {path}"  # age itself is tested elsewhere
        filled = script.replace("age -d -i identity.txt bundle.tar.zst.age", decrypt)
        assert decrypt in filled
        filled = filled if seq > 1 else filled.replace(" -D ../text", "")
        subprocess.run(["bash", "-ec", filled], cwd=folder, check=True, capture_output=True)
        for gone in json.loads((folder / "manifest.json").read_bytes()).get("dropped", []):
            (folder / gone).unlink()
    (part,) = json.loads((folder / "checkpoint.json").read_bytes())["transcript"]["parts"]
    lines = b"".join((folder / segment).read_bytes() for segment in part["segments"]).splitlines()
    assert [json.loads(line) for line in lines] == messages(3)
