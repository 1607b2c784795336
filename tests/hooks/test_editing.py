"""The text of settings files: ours goes in and out, and every other byte stays."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.errors import RefusedError
from archiver.hooks.editing import EVENTS, all_off, commands, installed, removed
from archiver.hooks.spans import NotJsonError, parse

OURS = "/opt/archiver hook claude-code run"
OTHER = "'/home/a b/archiver' hook claude-code run --config '/etc/x y.toml'"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
foreign = st.fixed_dictionaries(
    {"type": st.just("command"), "command": texts.filter(lambda t: "hook" not in t)}
)
groups = st.builds(
    lambda matcher, entries, more: {
        **({"matcher": matcher} if matcher is not None else {}),
        "hooks": entries,
        **more,
    },
    st.none() | st.sampled_from(["", "*", "auto"]),
    st.lists(foreign, min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(["x", "once"]), scalars, max_size=1),
)
names = st.sampled_from([*EVENTS, "PreToolUse", "Notification"])
full_hooks = st.dictionaries(names, st.lists(groups, min_size=1, max_size=2), min_size=1, max_size=4)
loose_hooks = st.dictionaries(names, st.lists(groups | values, max_size=2), max_size=4)


def documents(hooks: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Settings with or without hooks, which stand anywhere among the rest."""
    rest = st.dictionaries(texts.filter(lambda name: name != "hooks"), values, max_size=3)
    return st.builds(
        lambda before, found, after: {**before, **({"hooks": found} if found is not None else {}), **after},
        rest,
        st.none() | hooks,
        rest,
    )


def plain(text: str) -> Any:
    """What the text means, by another way than that of the code: comments out, then the standard library."""
    bare = _TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else " ", text.removeprefix("\ufeff"))
    return json.loads(bare)


def comments(text: str) -> list[str]:
    return [found.rstrip() for found in _TOKEN.findall(text) if found[0] == "/"]


def without_empty(document: dict[str, Any]) -> dict[str, Any]:
    """Hooks that say nothing are nothing."""
    if "hooks" not in document:
        return document
    hooks = {name: found for name, found in document["hooks"].items() if found != []}
    return {name: value for name, value in document.items() if name != "hooks"} | (
        {"hooks": hooks} if hooks else {}
    )


def without_ours(document: dict[str, Any], command: str) -> dict[str, Any]:
    """What is left without groups that hold our entry alone; each event must have exactly one of them."""
    entry = {"type": "command", "command": command, "timeout": 10}
    hooks = dict(document["hooks"])
    for event in EVENTS:
        assert hooks[event].count({"hooks": [entry]}) == 1
        hooks[event] = [group for group in hooks[event] if group != {"hooks": [entry]}]
    return without_empty({**document, "hooks": hooks})


@settings(max_examples=40, deadline=None)
@given(
    documents(full_hooks), st.sampled_from([2, 4, "\t", None, 1]), st.booleans(), st.sampled_from(["", "\n"])
)
def test_in_and_out_again_is_the_same_file(
    document: dict[str, Any], indent: int | str | None, ascii_only: bool, end: str
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only) + end
    there = installed(text, OURS)
    assert removed(there) == text
    assert installed(there, OURS) == there
    assert without_ours(plain(there), OURS) == document
    assert list(plain(there)) == [*document, *(["hooks"] if "hooks" not in document else [])]


@st.composite
def untidy(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Settings as people write them: comments, odd white space, line ends of another system."""
    document = draw(documents(loose_hooks))
    text = json.dumps(document, indent=draw(st.sampled_from([None, 2])))
    gaps = st.sampled_from(["", " ", "\n", "\r\n\t", " /* , } */ ", ' // ] "hooks" {\n', "/**/"])
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text)
    made = "".join(
        piece
        if piece.startswith('"')
        else re.sub(r"[\[\]{},:]", lambda found: draw(gaps) + found[0] + draw(gaps), piece)
        for piece in pieces
    )
    return draw(st.sampled_from(["", "\ufeff"])) + made, document


@settings(max_examples=40, deadline=None)
@given(untidy())
def test_whatever_the_form_the_rest_means_the_same(given_text: tuple[str, dict[str, Any]]) -> None:
    text, document = given_text
    assert plain(text) == document
    there = installed(text, OURS)
    assert without_ours(plain(there), OURS) == without_empty(document)
    assert without_empty(plain(removed(there))) == without_empty(document)
    assert comments(there) == comments(text)


@settings(max_examples=20, deadline=None)
@given(documents(full_hooks))
def test_another_program_or_configuration_takes_the_place_of_the_old_one(document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=2)
    assert installed(installed(text, OTHER), OURS) == installed(text, OURS)
    assert set(commands(installed(text, OTHER)).values()) == {OTHER}


def test_entries_of_ours_in_the_group_of_somebody_else() -> None:
    other = {"type": "command", "command": "say done"}
    mine = {"type": "command", "command": OURS, "timeout": 10}
    text = json.dumps({"hooks": {"Stop": [{"matcher": "", "hooks": [mine, other, mine]}, {"hooks": [mine]}]}})
    assert plain(removed(text)) == {"hooks": {"Stop": [{"matcher": "", "hooks": [other]}]}}
    assert plain(installed(text, OURS))["hooks"]["Stop"] == [{"matcher": "", "hooks": [mine, other]}]


def test_comments_stay_where_they_were() -> None:
    text = '{\n  // mine\n  "model": "opus", // the large one\n  "env": {} /* none, yet */\n  // the end\n}\n'
    there = installed(text, OURS)
    assert removed(there) == text
    for comment in ("// mine", "// the large one", "/* none, yet */", "// the end"):
        assert there.count(comment) == 1


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/archiver sweep",
        "archiver-hook claude-code run",
        "echo archiver hook claude-code run",
        "'unbalanced",
    ],
)
def test_commands_of_others_are_left_alone(command: str) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    assert removed(text) == text
    assert commands(text) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1"),
        ("nonsense", "line 1, column 1"),
        ('{"a": 1,}', "line 1, column 9"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{"a": tru}', "line 1, column 7"),
        ('{"a": 01}', "line 1, column 7"),
        ('{"a": "\n"}', "line 1, column 7"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a": /* never closed', "line 1, column 7"),
        ("{'a': 1}", "line 1, column 2"),
        ('{"a": ' + "[" * 100_000, "nested too deep"),
        ("[]", "no object"),
        ('{"hooks": []}', "'hooks' is not an object"),
        ('{"hooks": {"Stop": {}}}', "'Stop' is not a list"),
        ('{"hooks": {}, "hooks": {}}', "'hooks' 2 times"),
        ('{"hooks": {"Stop": [], "Stop": []}}', "'Stop' 2 times"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=re.escape(said)):
        installed(text, OURS)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from('{}[]",:/*\\ntruefalse0123.-eE \n'), max_size=40))
def test_what_is_parsed_is_what_the_standard_library_parses(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        if not re.search(r"//|/\*", text):
            with pytest.raises(NotJsonError):
                parse(text)
        return
    node = parse(text)
    assert json.loads(text[node.start : node.end]) == expected


def test_hooks_that_are_switched_off_are_known() -> None:
    assert all_off('{"disableAllHooks": true}')
    assert not all_off('{"disableAllHooks": false, "a": {"disableAllHooks": true}}')
