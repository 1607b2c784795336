"""Commands that a report ends with: copied into a shell they do what they say, whatever the run is called."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archiver import handover
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart, Workspace
from archiver.report_text import _code
from archiver.resuming import GoingOn, going_on
from archiver.shellwords import word

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SESSION = "0b8f7a52-1111-4222-8333-444455556666"


def claude(session: str | None, cwd: str | None, *names: str) -> Checkpoint:
    item: dict[str, Any] = {"type": "user", "uuid": "u", "message": {"role": "user", "content": "x"}}
    if session is not None:
        item["sessionId"] = session
    parts = [TranscriptPart(name=names[0] if names else f"{SESSION}.jsonl", items=Items.of([item]))]
    parts += [TranscriptPart(name=name, items=Items.of([item])) for name in names[1:]]
    return Checkpoint(
        run_id="r",
        task_id="t",
        created_at=NOW,
        checkpoint_at=NOW,
        workspace=Workspace(path=cwd),
        transcript=Transcript(dialect="claude-code", parts=tuple(parts)),
    )


def codex(session: str, cwd: str | None = None) -> Checkpoint:
    head = {"timestamp": "2026-01-02T03:04:05.000Z", "type": "session_meta", "payload": {"id": session}}
    part = TranscriptPart(name="x.jsonl", items=Items.of([head]))
    return claude(None, cwd).model_copy(update={"transcript": Transcript(dialect="codex", parts=(part,))})


def steps(checkpoint: Checkpoint, folder: Path = Path("/out/transcript"), *paths: str) -> GoingOn:
    names = paths or tuple(part.name for part in checkpoint.transcript.parts)
    return going_on(checkpoint, folder, [PurePosixPath(name) for name in names])


def handed_over(folder: Path, checkpoint: Checkpoint) -> None:
    for part in checkpoint.transcript.parts:
        path = folder / part.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(part.name)


def copied(found: GoingOn) -> str:
    """The steps as they come out of REPORT.md."""
    lines = [_code(step) for step in found.steps]
    assert all("\n" not in line for line in lines)
    return "\n".join(lines)


SHELLS = [shell for shell in ("bash", "dash", "sh", "zsh") if shutil.which(shell)]


def follow(found: GoingOn, home: Path, at: Path, shell: str = "bash") -> list[str]:
    """Run the copied steps in a shell, with a harness that says where it was started and with what."""
    tools = home / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    for name in ("claude", "codex"):
        (tools / name).write_text('#!/bin/sh\nprintf \'%s\\0\' "$PWD" "$@" >"$HOME/said"\n')
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(home), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [shell, "-c", f"set -eu\n{copied(found)}"], cwd=at, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return (home / "said").read_bytes().decode().split("\0")[:-1]


HOSTILE = {
    "plain": "project",
    "a quote": "it's",
    "a line end": "one\ntwo",
    "an escape": "a\x1b[2Jb\x07",
    "a command": "$(touch pwned)`touch pwned`;touch pwned",
    "a tilde": "~root",
    "bidi": "a\u202eb",
    "an option": "-rf",
    "a backslash": "a\\n'\\''b",
    "a glob": "*?[a]",
    "an accent and beyond": "é😀",
    "a tab and a return": "a\tb\rc",
    "no break": "a\u00a0b\u2028c",
    "a quote and a command behind a line end": "\n';touch pwned;#",
    "percent signs and an event": "\r100%d!!%",
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_session_of_claude_code_goes_where_it_is_looked_for(tmp_path: Path, name: str, shell: str) -> None:
    project = tmp_path / "w" / name
    project.mkdir(parents=True)
    folder = tmp_path / "out's\n" / "transcript"
    agent = f"{SESSION}/subagents/agent-1.jsonl"
    checkpoint = claude(
        SESSION, str(project), f"{SESSION}.jsonl", agent, "agent-2.jsonl", "CLAUDE.md", "memory/x"
    )
    handed_over(folder, checkpoint)
    home = tmp_path / "home"
    found = steps(checkpoint, folder)
    said = follow(found, home, tmp_path, shell)
    assert said == [str(project), "--resume", SESSION]
    (place,) = (home / ".claude" / "projects").iterdir()
    copies = sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())
    assert copies == sorted([agent, f"{SESSION}.jsonl", "agent-2.jsonl"])
    units = len(str(project).encode("utf-16-le")) // 2
    assert len(place.name) == units
    assert not list(tmp_path.rglob("pwned"))
    assert found.steps[-1].endswith(f"claude --resume {SESSION}")
    assert any("CLAUDE.md" in caution for caution in found.cautions)
    assert any("hooks" in caution for caution in found.cautions)


@pytest.mark.parametrize("cwd", [None, "", "relative", "~/x", "C:\\Users\\x", "a\0b", "\\\\host\\share"])
def test_without_a_folder_of_here_the_session_goes_to_that_of_the_reader(
    tmp_path: Path, cwd: str | None
) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    folder = tmp_path / "transcript"
    checkpoint = claude(SESSION, cwd)
    handed_over(folder, checkpoint)
    home = tmp_path / "home"
    found = steps(checkpoint, folder)
    assert follow(found, home, project) == [str(project), "--resume", SESSION]
    (place,) = (home / ".claude" / "projects").iterdir()
    assert place.name == "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project))
    assert [path.name for path in place.iterdir()] == [f"{SESSION}.jsonl"]
    assert found.steps[1].startswith("# do this in the folder of the project, which ")
    assert not any("hooks" in caution for caution in found.cautions)


def test_a_path_that_claude_code_shortens(tmp_path: Path) -> None:
    project = tmp_path / "/".join(["x" * 60] * 4)
    project.mkdir(parents=True)
    folder = tmp_path / "transcript"
    checkpoint = claude(SESSION, str(project))
    handed_over(folder, checkpoint)
    home = tmp_path / "home"
    slug = str(project).replace("/", "-").replace("_", "-")
    place = home / ".claude" / "projects" / f"{slug[:200]}-1a2b3c"
    place.mkdir(parents=True)
    follow(steps(checkpoint, folder), home, tmp_path)
    assert [path.name for path in place.iterdir()] == [f"{SESSION}.jsonl"]


@pytest.mark.parametrize(
    "session",
    ["--dangerously-skip-permissions", "-c", "$(touch pwned)", "a/../b", "..", "", "x" * 101, "a\nb"],
)
def test_a_session_id_is_never_an_option_or_a_path(session: str) -> None:
    for checkpoint in (claude(session, "/srv/x", "-x.jsonl"), codex(session, "/srv/x")):
        found = steps(checkpoint).steps
        assert found[-1].startswith("cat -v /out/transcript/")
        assert not [step for step in found if "--resume" in step or "codex resume" in step or "pwned" in step]
    # The file's own name is an id too.
    assert steps(claude(session, "/srv/x")).steps[-1] == f"cd /srv/x && claude --resume {SESSION}"


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-chat", "openai-responses", "opaque"])
def test_every_dialect_ends_with_a_command(tmp_path: Path, dialect: str) -> None:
    item = {"type": "message", "role": "user", "content": "x\u009b2J\u202e"}
    parts = (TranscriptPart(name="it's.jsonl", items=Items.of([item])),)
    checkpoint = claude(None, "/srv/x").model_copy(
        update={"transcript": Transcript(dialect=dialect, parts=parts)}
    )
    (tmp_path / "it's.jsonl").write_text(json.dumps(item, ensure_ascii=False))
    comment, command = steps(checkpoint, tmp_path).steps
    assert comment.startswith("# ")
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=True)
    assert b"message" in done.stdout
    assert done.stdout.isascii()


def test_without_a_transcript_the_state_is_what_goes_on() -> None:
    empty = claude(SESSION, "/srv/x").model_copy(update={"transcript": Transcript()})
    assert going_on(empty, Path("/out/transcript"), ()).steps[-1] == "cat -v /out/checkpoint.json"


@pytest.mark.parametrize("name", ["agent-a1b2.jsonl", f"{SESSION}/subagents/agent-1.jsonl", "renamed.jsonl"])
def test_what_a_sub_agent_did_is_no_session_to_resume(name: str) -> None:
    item = {
        "type": "user",
        "uuid": "u",
        "sessionId": SESSION,
        "isSidechain": True,
        "message": {"role": "user"},
    }
    part = TranscriptPart(name=name, items=Items.of([{"type": "summary"}, item, item]))
    checkpoint = claude(SESSION, "/srv/x").model_copy(
        update={"transcript": Transcript(dialect="claude-code", parts=(part,))}
    )
    assert steps(checkpoint).steps[-1] == f"cat -v /out/transcript/{name}"
    own = part.model_copy(update={"items": Items.of([item, item | {"isSidechain": False}])})
    mixed = checkpoint.model_copy(update={"transcript": Transcript(dialect="claude-code", parts=(own,))})
    resumes = steps(mixed).steps[-1] == f"cd /srv/x && claude --resume {SESSION}"
    assert resumes is (name == "renamed.jsonl")


def test_codex_finds_the_session_where_it_keeps_them_and_by_its_id(tmp_path: Path) -> None:
    folder = tmp_path / "transcript"
    for stated, kept in ((SESSION, True), ("another-id", False)):
        name = f"rollout-2025-12-31T23-59-59-{SESSION}.jsonl"
        checkpoint = codex(stated, str(tmp_path))
        part = checkpoint.transcript.parts[0].model_copy(update={"name": name})
        checkpoint = checkpoint.model_copy(update={"transcript": Transcript(dialect="codex", parts=(part,))})
        handed_over(folder, checkpoint)
        found = steps(checkpoint, folder)
        home, kept_in = tmp_path / "home", tmp_path / f"codex home {kept}"
        begin = GoingOn((f"export CODEX_HOME='{kept_in}'", *found.steps))
        assert follow(begin, home, tmp_path) == [str(tmp_path), "resume", stated]
        (file,) = [path for path in kept_in.rglob("*") if path.is_file()]
        day = "2025/12/31" if kept else "2026/01/02"
        assert str(file.parent) == str(kept_in / "sessions" / day)
        assert file.name.endswith(f"-{stated}.jsonl")
        assert not (home / ".codex").exists()


def test_a_session_of_codex(tmp_path: Path) -> None:
    project = tmp_path / "it's\nhere"
    project.mkdir()
    folder = tmp_path / "transcript"
    checkpoint = codex(SESSION, str(project))
    handed_over(folder, checkpoint)
    home = tmp_path / "home"
    found = steps(checkpoint, folder)
    assert follow(found, home, tmp_path) == [str(project), "resume", SESSION]
    (file,) = (home / ".codex" / "sessions" / "2026" / "01" / "02").iterdir()
    assert file.name == f"rollout-2026-01-02T03-04-05-{SESSION}.jsonl"
    assert follow(steps(codex(SESSION), folder), home, tmp_path) == [str(tmp_path), "resume", SESSION]


def test_hostile_folders_of_sub_agents_stay_bounded() -> None:
    names = [f"{number}/subagents/agent-1.jsonl" for number in range(5000)]
    checkpoint = claude(SESSION, "/srv/x", "s.jsonl", "-x/subagents/agent-1.jsonl", *names)
    found = steps(checkpoint)
    assert sum(map(len, found.steps)) < 10_000
    assert "/-x" not in " ".join(found.steps)


def test_files_with_names_of_configuration_are_told_of() -> None:
    names = [
        ".claude/settings.json",
        ".mcp.json",
        "sub/AGENTS.md",
        "claude.md",
        ".git/hooks/pre-commit",
        "a.jsonl",
    ]
    (caution, _) = steps(claude(SESSION, "/srv/x", "s.jsonl", *names)).cautions
    assert all(name in caution for name in names[:-1])
    assert "a.jsonl" not in caution
    assert len(steps(claude(SESSION, None, "s.jsonl", "notes.txt")).cautions) == 0


def test_what_lies_in_the_run_s_own_folder_is_told_of(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{}")
    (tmp_path / "CLAUDE.md").symlink_to("nowhere")
    (caution,) = steps(claude(SESSION, str(tmp_path))).cautions
    assert "there are .mcp.json, CLAUDE.md" in caution


@settings(deadline=None, max_examples=60)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
@example("\x1b'\\")
@example("\u202e9")
@example("-n\t")
@example("\t%s%%\\!")
@example("\n';touch pwned;#")
@example("a\n")
@example("\n';touch pwned;#\n")
@example(os.fsdecode(b"\xff'8"))
def test_a_word_is_read_back_by_every_shell(text: str) -> None:
    shown = word(text)
    assert shown.isprintable()
    for shell in SHELLS:
        done = subprocess.run([shell, "-c", f"printf '%s|' {shown}"], capture_output=True, cwd="/")
        read = os.fsencode(text) + b"|"
        if text.endswith("\n") and shell in ("dash", "sh"):
            assert done.stdout.count(b"|") == 1  # another word, but one, of which nothing is done
            assert (done.returncode, done.stderr) == (0, b"")
        else:
            assert done.stdout == read


def test_a_comment_is_nothing_to_a_prompt_that_knows_no_comments(tmp_path: Path) -> None:
    """zsh takes a comment for a command unless told otherwise, and so does bash when told so."""
    cwd = "~/x';$(touch pwned)`touch pwned`"
    found = [
        *steps(claude(SESSION, cwd)).steps[:2],
        *(steps(checkpoint).steps[0] for checkpoint in (claude(None, None, "-x.jsonl"), codex("a/../b"))),
        steps(claude(SESSION, f"/{'y' * 300}")).steps[1],
        handover._FIRST[0],
    ]
    assert all(step.startswith("# ") for step in found)
    _, said = at_a_prompt("\n".join(found), tmp_path)
    assert said.count("#: command not found") == len(found), said
    assert not list(tmp_path.iterdir())


def at_a_prompt(text: str, folder: Path) -> tuple[str, str]:
    """What bash prints, and says, when this is typed at its prompt."""
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-i", "+O", "interactive_comments"],
        input=f"PS1=\n{text}\n",
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "HISTFILE": "", "LC_ALL": "C.UTF-8"},
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("text", ["it's !!\there", "a!b'c!d", "\x07!touch pwned", "\n';touch pwned;#"])
def test_a_word_is_read_back_at_a_prompt(text: str, tmp_path: Path) -> None:
    out, _ = at_a_prompt(f"printf '%s|' {word(text)}", tmp_path)
    assert out == f"{text}|"
    assert text.isprintable() or "!" not in word(text)  # older shells look into what stands between `"`
    assert not list(tmp_path.iterdir())


def test_a_word_that_can_be_printed_is_quoted_as_ever() -> None:
    for text in ("a", "a b", "it's", "~", "", "é"):
        assert word(text) == shlex.quote(text)


def test_the_newest_session_counts_also_where_the_last_lines_only_speak_of_one() -> None:
    lines = [
        {"type": "user", "sessionId": "first", "message": {"role": "user", "content": "a"}},
        {"type": "user", "sessionId": "second", "message": {"role": "user", "content": "b"}},
        {"type": "summary", "summary": 'the field "sessionId" was', "note": {"sessionId": 7}},
    ]
    for number, expected in ((1, "first"), (2, "second"), (3, "second")):
        part = TranscriptPart(name="s.jsonl", items=Items.of(lines[:number]))
        checkpoint = claude("x", "/srv/x", "s.jsonl").model_copy(
            update={"transcript": Transcript(dialect="claude-code", parts=(part,))}
        )
        steps = going_on(checkpoint, Path("/out"), (PurePosixPath("s.jsonl"),)).steps
        assert steps[-1].endswith(f"claude --resume {expected}")
