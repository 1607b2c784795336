#!/bin/sh
# Build the wheel and use it where nothing of the checkout can be seen.
set -eu
python=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM
"$python" -m build --quiet --wheel --outdir "$scratch" .
case "$python" in /*) ;; *) python=$PWD/$python ;; esac
samples=$PWD/examples/sample-run
"$python" -m venv "$scratch/venv"
cd "$scratch"
bin=$scratch/venv/bin
"$bin/python" -m pip install --quiet "$scratch"/checkpoint_archiver-*.whl
export HOME=$scratch/home XDG_CONFIG_HOME=$scratch/home/config XDG_DATA_HOME=$scratch/home/data XDG_CACHE_HOME=$scratch/home/cache
mkdir -p "$HOME"
"$bin/python" - <<'CODE'
import archiver, archiver.schemas, pathlib
assert "site-packages" in archiver.__file__, archiver.__file__
assert "_schemas" in str(archiver.schemas.folder()), archiver.schemas.folder()
assert (pathlib.Path(archiver.__file__).parent / "py.typed").exists()
CODE
"$bin/archiver" --version
"$bin/archiver" schema record >/dev/null
"$bin/archiver" init "$scratch/store" >/dev/null
"$bin/archiver" archive "$samples" --run-id wheel-check --outcome failed >/dev/null
"$bin/archiver" verify --deep >/dev/null
"$bin/restore" wheel-check --into "$scratch/out" --accept age --accept git_commit >/dev/null
test -s "$scratch/out/checkpoint.json"
echo "the wheel works in a clean environment"
