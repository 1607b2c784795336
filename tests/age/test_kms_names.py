"""ARNs and contexts: one spelling for each meaning, and reasons for what is refused."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_kms import ARN, BUNDLE

from archiver import age
from archiver.age import Context, context
from archiver.errors import ContextMismatchError, HeaderError, InvalidKeyError, UsageError

UUID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.mark.parametrize(
    ("text", "region"),
    [
        (f"arn:aws:kms:eu-central-1:111122223333:key/{UUID}", "eu-central-1"),
        (f"arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/{UUID}", "us-gov-west-1"),
        (f"arn:aws-cn:kms:cn-north-1:000000000000:key/mrk-{UUID.replace('-', '')}", "cn-north-1"),
    ],
)
def test_what_is_an_arn(text: str, region: str) -> None:
    found = age.parse_recipient(text)
    assert isinstance(found, age.KmsRecipient)
    assert (str(found), str(found.arn), found.arn.region) == (text, text, region)
    assert found.fingerprint == hashlib.sha256(text.encode()).hexdigest()[:32]


def test_replicas_are_of_one_family_and_other_keys_are_not() -> None:
    id_ = f"key/mrk-{UUID.replace('-', '')}"
    first = age.parse_arn(f"arn:aws:kms:eu-central-1:111122223333:{id_}")
    assert age.parse_arn(f"arn:aws:kms:us-east-1:111122223333:{id_}").family == first.family
    for other in (
        f"arn:aws-cn:kms:eu-central-1:111122223333:{id_}",
        f"arn:aws:kms:eu-central-1:111122223334:{id_}",
        f"arn:aws:kms:eu-central-1:111122223333:{id_[:-1]}0",
    ):
        assert age.parse_arn(other).family != first.family
    single = [age.parse_arn(f"arn:aws:kms:{region}:111122223333:key/{UUID}") for region in ("a", "b")]
    assert single[0].family != single[1].family


@pytest.mark.parametrize(
    "text",
    [
        f"arn:aws:kms:eu-central-1:11112222333:key/{UUID}",
        f"arn:aws:kms:eu-central-1:1111222233334:key/{UUID}",
        f"arn:aws:kms:eu-central-1:111122223333:key/{UUID.upper()}",
        f"arn:aws:kms:eu-central-1:111122223333:key/{UUID}\n",
        f"arn:aws:kms:eu-central-1:111122223333:key/mrk-{UUID}",
        f"arn:aws:kms::111122223333:key/{UUID}",
        f"arn:aws:s3:eu-central-1:111122223333:key/{UUID}",
        f"arn:aws:kms:eu-central-1:111122223333:{UUID}",
        f"arn:AWS:kms:eu-central-1:111122223333:key/{UUID}",
        "arn:aws:kms:eu-central-1:111122223333:key/",
        "arn:",
    ],
)
def test_what_is_no_arn(text: str) -> None:
    with pytest.raises(InvalidKeyError, match="not the ARN of a KMS key") as caught:
        age.parse_recipient(text)
    assert "arn:aws:kms:REGION:ACCOUNT:key/ID" in (caught.value.remedy or "")


def test_an_alias_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidKeyError, match="can be moved to another key"):
        age.parse_recipient("arn:aws:kms:eu-central-1:111122223333:alias/runs")


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
CONTEXTS = st.builds(Context, WORDS, WORDS, WORDS, st.sampled_from(["record", "bundle", "effect", "note"]))


def test_the_text_is_what_the_format_says() -> None:
    assert BUNDLE.text() == "application=checkpoint-archiver&object=bundle&run=run-1&task=task%201"
    odd = Context("a.b_c~d", "R&D=1", "§ %41\n", "note")
    assert odd.text() == "application=a.b_c~d&object=note&run=R%26D%3D1&task=%C2%A7%20%2541%0A"
    assert list(odd.pairs().items()) == [
        ("application", "a.b_c~d"),
        ("object", "note"),
        ("run", "R&D=1"),
        ("task", "§ %41\n"),
    ]


@given(CONTEXTS)
def test_every_context_is_read_as_it_is_written(made: Context) -> None:
    assert context.parse_context(made.text()) == made
    assert made.text().isascii()
    assert made.text().isprintable()
    assert " " not in made.text()


@given(CONTEXTS, st.data())
def test_what_is_read_is_written_the_same(made: Context, draw: st.DataObject) -> None:
    """Change, drop or add one character: what still parses has exactly that text."""
    text = made.text()
    at = draw.draw(st.integers(0, len(text)))
    new = draw.draw(st.sampled_from(["", "%", "a", "A", "&", "=", "%41", "%c3", "+", " ", "é"]))
    changed = text[:at] + new + text[at + draw.draw(st.sampled_from([0, 1])) :]
    try:
        again = context.parse_context(changed)
    except HeaderError:
        return
    assert again.text() == changed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "application=a&object=bundle&run=r",
        "application=a&object=bundle&run=r&task=t&more=m",
        "object=bundle&application=a&run=r&task=t",
        "application=a&object=folder&run=r&task=t",
        "application=a&object=bundle&run=&task=t",
        "application=a&object=bundle&run=%61&task=t",
        "application=a&object=bundle&run=%c3%a9&task=t",
        "application=a&object=bundle&run=%FF&task=t",
        "application=a&object=bundle&run=%ED%A0%80&task=t",
        "application=a&object=bundle&run=%&task=t",
        "application=a&object=bundle&run=a+b&task=t",
        "application=a&object=%62undle&run=r&task=t",
    ],
)
def test_what_is_no_context(text: str) -> None:
    with pytest.raises(HeaderError, match="one canonical form"):
        context.parse_context(text)


@pytest.mark.parametrize(
    "made",
    [
        Context("a", "r", None, "record"),
        Context("a", "", "t", "record"),
        Context("", "r", "t", "record"),
        Context("a", "r", "\ud800", "record"),
    ],
)
def test_a_context_without_a_text_seals_nothing(made: Context) -> None:
    with pytest.raises(UsageError):
        made.text()


def test_a_difference_is_named() -> None:
    assert BUNDLE.difference(BUNDLE) is None
    assert BUNDLE.difference(Context("checkpoint-archiver", "run-1", None, "bundle")) is None
    for other, words in [
        (Context("other", "run-1", "task 1", "bundle"), "for application 'checkpoint-archiver', not for"),
        (Context("checkpoint-archiver", "run-2", None, "bundle"), "for run 'run-1', not for run 'run-2'"),
        (Context("checkpoint-archiver", "run-1", "t", "bundle"), "for task 'task 1', not for task 't'"),
        (Context("checkpoint-archiver", "run-1", None, "record"), "for object 'bundle', not for object"),
    ]:
        assert words in (BUNDLE.difference(other) or "")


def test_a_demand_is_that_of_every_context() -> None:
    age.demand_context([], "run-1", "task 1", "bundle", where="it")
    age.demand_context([BUNDLE], "run-1", "task 1", "bundle", where="it")
    with pytest.raises(ContextMismatchError, match=r"^it: it was sealed for task 'task 1', not for task 't'"):
        age.demand_context([BUNDLE], "run-1", "t", "bundle", where="it")


def test_nothing_is_wrapped_without_kms_or_context() -> None:
    with pytest.raises(UsageError, match="without KMS and the context"):
        age.KmsRecipient(ARN).wrap(bytes(16))
