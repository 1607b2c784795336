"""An OpenTelemetry SDK for one test: what it hears, as fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from archiver import telemetry


class Heard:
    """What an SDK in this process was told."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))

    def measures(self) -> dict[str, Any]:
        """The metrics by name."""
        data = self._reader.get_metrics_data()
        scopes = (
            [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        )
        assert {scope.scope.name for scope in scopes} <= {"archiver"}
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def value(self, name: str, **attributes: str) -> float:
        """What a counter or gauge stands at, or what a histogram adds up to."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        points = [p for p in self.measures()[name].data.data_points if dict(p.attributes) == wanted]
        assert len(points) == 1
        return float(points[0].sum if hasattr(points[0], "sum") else points[0].value)

    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any, Any], None]]:
    """Makes these the providers of the process for one test; an application may set them only once."""

    def set_up(meters: Any, tracers: Any) -> None:
        monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", meters)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracers)

    def forget() -> None:
        telemetry._instrument.cache_clear()
        telemetry._observe.cache_clear()
        telemetry._complained.clear()
        telemetry._spools.clear()

    forget()
    yield set_up
    forget()


@pytest.fixture
def unheard() -> Heard:
    """An SDK that is not the one of the process."""
    return Heard()


@pytest.fixture
def heard(use: Callable[[Any, Any], None], unheard: Heard) -> Heard:
    use(unheard.meters, unheard.tracers)
    return unheard
