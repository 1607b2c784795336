#!/bin/sh
# Archive the sample run into a local folder, look at it, change the world, and restore it.
# Usage: demo.sh BIN WORK — the folder of the `archiver` command, and a folder to work in (made anew).
set -eu
case $1 in /*) bin=$1 ;; *) bin=$PWD/$1 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$2"
mkdir -p "$2"
work=$(cd "$2" && pwd)
export HOME="$work/home" XDG_CONFIG_HOME="$work/home/.config" XDG_DATA_HOME="$work/home/.local/share"
export XDG_CACHE_HOME="$work/home/.cache" XDG_STATE_HOME="$work/home/.local/state"
mkdir -p "$HOME"
cd "$work"

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
run() {
    printf '$'
    for word in "$@"; do
        case $word in *" "*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$@"
}
archiver() { "$bin/archiver" "$@"; }
git_quiet() { git -C "$work/workspace" -c user.name=demo -c user.email=demo@localhost -c commit.gpgsign=false "$@"; }

say "A run that was interrupted: its workspace and its transcript, with a credential in a tool's output"
mkdir -p workspace/prices
echo "def parse(path): ..." > workspace/prices/parser.py
git init -q -b fix-prices workspace
git_quiet add . && git_quiet commit -q -m "Parse thousands separators"
session=$(ls "$here"/sample-run/*.jsonl)
# The run was three hours ago, whatever day that was.
then=$(date -u -d "3 hours ago" +%Y-%m-%dT%H 2> /dev/null || date -u -v-3H +%Y-%m-%dT%H)
# The credential is made here: nothing that looks like one stands in this repository.
credential="ghp_$(LC_ALL=C tr -dc 'A-Za-z0-9' < /dev/urandom | head -c 36)"
sed -e "s#/home/dev/price-feed#$work/workspace#g" -e "s#{{credential}}#$credential#g" -e "s#2026-03-02T10#$then#g" \
    "$session" > "$(basename "$session")"
echo "$(basename "$session"): $(wc -l < "$(basename "$session")") lines"

say "Set up a store and keys"
run archiver init "$work/store"

say "Save it"
run archiver archive "$(basename "$session")" --task fix-prices --outcome failed --note "all tests not run yet"

say "What is there"
run archiver list
run archiver show "$(basename "$session" .jsonl)"
run archiver verify --deep

if grep -rq "$credential" store home; then echo "the credential is in the store" >&2; exit 1; fi

say "Meanwhile somebody commits to the workspace"
echo "# changed" >> workspace/prices/parser.py
git_quiet commit -q -a -m "Somebody else's change"

say "Is it still safe to go on? The plan says what is stale, and changes nothing"
run archiver restore "$(basename "$session" .jsonl)" --plan || echo "(exit $?: something is stale)"

say "Decide: what did somebody change?"
run git -C "$work/workspace" log --oneline

say "Restore it all the same, knowing that, and say why"
run archiver restore "$(basename "$session" .jsonl)" --into "$work/restored" --accept git_commit --because "the commit only adds a comment"
run ls "$work/restored"

say "Go on: the report ends with the commands, to be copied from it"
sed -n '/^## Next/,$p' "$work/restored/REPORT.md"
sed -n '/^## Next/,$s/^    //p' "$work/restored/REPORT.md" | sed '$d' > "$work/next.sh"
HOME="$work/home" sh "$work/next.sh"
(cd "$work/home" && run find .claude -type f)

say "A key beside its store protects nothing"
echo "This demo keeps the key in $work/home and the store in $work/store: whoever can read this disk has both."
echo "Encryption starts to protect when the identity lies elsewhere: on another machine, or offline."
