"""Measures and spans: the one door to OpenTelemetry, whose API does nothing without an SDK."""

from opentelemetry import metrics, trace

__all__ = ["metrics", "trace"]
