"""Measures and spans against the real SDK: what it hears, and that it can break nothing."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from archiver import telemetry

if TYPE_CHECKING:
    from hearing import Heard

pytest_plugins = ("hearing",)

ROOT = Path(__file__).parent.parent


def tell_all() -> None:
    telemetry.saved(
        raw=10_000, compacted=2_000, stored=500, seconds=0.25, findings={"github-token": 2, "jwt": 1}
    )
    telemetry.saved(raw=1, compacted=1, stored=1, seconds=0.5, to="spool")
    telemetry.failed_save("StoreUnreachableError")
    telemetry.delivered(1.5)
    telemetry.spool("/a", lambda: (2, 4000))
    telemetry.spool("/b", lambda: (1, 96))
    telemetry.restored(2.0, 7)
    telemetry.stale()
    telemetry.resumed()
    telemetry.replay_avoided(600.0, 1.25)
    telemetry.effect_recorded("intent")
    telemetry.effect_recorded("outcome", "spool")
    telemetry.duplicate_prevented()


def test_every_measure_is_heard_with_its_unit_and_its_attributes_alone(heard: Heard) -> None:
    tell_all()
    found = heard.measures()
    assert set(found) == {measure.name for measure in telemetry.MEASURES}
    for measure in telemetry.MEASURES:
        metric = found[measure.name]
        assert (metric.unit, metric.description) == (measure.unit, measure.about)
        assert (
            type(metric.data).__name__
            == {"counter": "Sum", "observable gauge": "Gauge", "histogram": "Histogram"}[measure.kind]
        )
        for point in metric.data.data_points:
            assert set(point.attributes) == set(measure.attributes)


def test_what_is_told_arrives(heard: Heard) -> None:
    tell_all()
    assert heard.value("archiver.save.duration", archiver__save__to="store") == 0.25
    assert heard.value("archiver.save.duration", archiver__save__to="spool") == 0.5
    assert heard.value("archiver.transcript.size") == 10_001
    assert heard.value("archiver.checkpoint.size") == 2_001
    assert heard.value("archiver.bundle.size") == 501
    assert heard.value("archiver.redaction.findings", archiver__rule="github-token") == 2
    assert heard.value("archiver.save.failures", error__type="StoreUnreachableError") == 1
    assert heard.value("archiver.spool.entries") == 3
    assert heard.value("archiver.spool.size") == 4096
    assert heard.value("archiver.restore.duration") == 2
    assert heard.value("archiver.replay.avoided.time") == 600
    assert heard.value("archiver.replay.avoided.cost") == 1.25
    assert (
        heard.value(
            "archiver.effect.recorded", archiver__effect__part="outcome", archiver__effect__to="spool"
        )
        == 1
    )
    telemetry.spool("/a", lambda: (0, 0))
    assert heard.value("archiver.spool.entries") == 1


def test_a_spool_that_cannot_be_looked_at_leaves_no_figure_and_all_others(
    heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    def depth() -> tuple[int, int]:
        raise PermissionError("locked")

    telemetry.spool("/a", depth)
    telemetry.stale()
    assert set(heard.measures()) == {"archiver.restore.stale"}
    assert "PermissionError" in caplog.text


def test_a_spool_that_was_opened_before_there_was_an_sdk_is_seen(
    use: Callable[[Any, Any], None], unheard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(telemetry, "_is_heard", lambda: False)
        telemetry.spool("/a", lambda: (5, 1))
    use(unheard.meters, unheard.tracers)
    telemetry.stale()
    assert unheard.value("archiver.spool.entries") == 5


def test_buckets_fit_seconds_and_bytes(heard: Heard) -> None:
    tell_all()
    for measure in telemetry.MEASURES:
        if measure.kind == "histogram":
            bounds = heard.measures()[measure.name].data.data_points[0].explicit_bounds
            assert bounds[0] == {"s": 0.005, "By": 1024}[measure.unit]
            assert list(bounds) == sorted(bounds)


def test_threads_lose_nothing(heard: Heard) -> None:
    def work() -> None:
        for _ in range(200):
            telemetry.stale()
            with telemetry.span("archiver.effect.begin"):
                telemetry.resumed()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard.value("archiver.restore.stale") == heard.value("archiver.resume.accepted") == 1600
    assert len(heard.spans()) == 1600


def test_spans_lie_in_each_other_and_tell_errors_by_their_class(heard: Heard) -> None:
    with (
        pytest.raises(ValueError, match="of the run"),
        telemetry.span("archiver.save", kind="full", parts=2),
        telemetry.span("archiver.save.seal"),
    ):
        raise ValueError("a text of the run")
    inner, outer = heard.spans()
    assert (inner.name, outer.name) == ("archiver.save.seal", "archiver.save")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert outer.parent is None
    assert dict(outer.attributes or {}) == {
        "archiver.kind": "full", "archiver.parts": 2, "error.type": "ValueError",
    }  # fmt: skip
    for span in (inner, outer):
        assert span.status.status_code is trace.StatusCode.ERROR
        assert not span.events
        assert "of the run" not in span.to_json()


def test_a_span_that_ends_well_says_so(heard: Heard) -> None:
    with telemetry.span("archiver.restore"):
        pass
    (span,) = heard.spans()
    assert span.status.status_code is trace.StatusCode.UNSET
    assert not span.attributes
    assert trace.get_current_span() is trace.INVALID_SPAN


class Hostile(SpanProcessor):
    """A processor that fails at the begin or at the end of a span."""

    def __init__(self, at: str) -> None:
        self._at = at

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self._at == "start":
            raise RuntimeError("no")

    def on_end(self, span: Any) -> None:
        if self._at == "end":
            raise OSError("no")


class Refusing(metrics.NoOpMeterProvider):
    """A provider that gives no meters."""

    def get_meter(self, *_: Any, **__: Any) -> Any:
        raise LookupError("no meters today")


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_provider_that_raises_reaches_nobody(
    at: str, use: Callable[[Any, Any], None], caplog: pytest.LogCaptureFixture
) -> None:
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(Hostile(at))
    use(Refusing(), tracers)
    with caplog.at_level(logging.WARNING, "archiver"):
        for _ in range(3):
            tell_all()
            done = []
            with telemetry.span("archiver.save"):
                done.append(1)
            assert done
        with pytest.raises(KeyError), telemetry.span("archiver.save"):
            raise KeyError("of the caller")
    said = [record.getMessage() for record in caplog.records]
    assert sorted(re.findall(r"failed with (\w+)", " ".join(said))) == sorted(
        ["LookupError", {"start": "RuntimeError", "end": "OSError"}[at]]
    )
    assert trace.get_current_span() is trace.INVALID_SPAN


QUIET = """
import sys
import archiver
from archiver import telemetry
telemetry.saved(raw=1, compacted=1, stored=1, seconds=1)
with telemetry.span("archiver.save"):
    telemetry.stale()
assert "opentelemetry" not in sys.modules
from opentelemetry import metrics
telemetry.stale()
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
telemetry.stale()
(metric,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
print(metric.name, metric.data.data_points[0].value)
"""


def test_the_api_is_not_loaded_for_nobody_and_an_sdk_may_come_later() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True)
    assert done.stdout.split() == ["archiver.restore.stale", "1"], done.stderr


def test_an_sdk_that_the_environment_names_is_loaded() -> None:
    script = (
        "import sys; from archiver import telemetry; telemetry.stale();"
        "print(type(sys.modules['opentelemetry.metrics'].get_meter_provider()).__module__)"
    )
    environment = {**os.environ, "OTEL_PYTHON_METER_PROVIDER": "sdk_meter_provider"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "opentelemetry.sdk.metrics._internal", done.stderr


FORK = """
import os, signal, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from archiver import telemetry

inside, forking, forked, lock = threading.Event(), threading.Event(), threading.Event(), threading.Lock()

def add(value, attributes):
    if threading.current_thread() is not threading.main_thread():
        with lock:
            inside.set()
            forking.wait()
            forked.wait(0.3)  # so long a fork in the middle would have the chance to happen
    else:
        lock.acquire()

telemetry._is_heard = lambda: True
telemetry._instrument = lambda measure: add
os.register_at_fork(before=forking.set, after_in_parent=forked.set)
thread = threading.Thread(target=telemetry.stale)
thread.start()
inside.wait()
child = os.fork()
if not child:
    signal.alarm(10)
    telemetry.stale()
    os._exit(0)
thread.join()
print(os.waitpid(child, 0)[1])
"""


def test_no_fork_leaves_a_child_with_a_lock_of_the_sdk() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "0", done.stderr


def rows(heading: str) -> list[list[str]]:
    """The cells of the table of docs/MEASURES.md that begins with that heading."""
    text = (ROOT / "docs" / "MEASURES.md").read_text(encoding="utf-8")
    table = text.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("| ").split(" |")] for line in table.splitlines()[2:]]


def test_the_document_has_every_measure_as_it_is() -> None:
    written = [
        [f"`{one.name}`", one.kind, one.unit, one.about, ", ".join(f"`{key}`" for key in one.attributes)]
        for one in telemetry.MEASURES
    ]
    assert [[*cells, ""][:5] for cells in rows("measure")] == written
    named = {key for one in telemetry.MEASURES for key in one.attributes}
    assert {cells[0].strip("`") for cells in rows("attribute")} == named


def test_the_document_has_every_span_and_every_span_is_made() -> None:
    names = set(get_args(telemetry.SpanName))
    assert {cells[0].strip("`") for cells in rows("span")} == names
    source = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "archiver").rglob("*.py")
        if path.name != "telemetry.py"
    )
    assert {name for name in names if f'span("{name}"' not in source} == set()
