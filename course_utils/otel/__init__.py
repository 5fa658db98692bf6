"""A run as OpenTelemetry spans in a local file that ordinary tracing tools open.

The file is OTLP/JSON lines, one run a line: what OpenTelemetry's file exporter writes and its
collector's `otlpjsonfile` receiver reads. The JSON comes from OpenTelemetry's own classes, which
obey its special rules (ids in hexadecimal, 64-bit numbers as text, enums as numbers). The names of
spans and attributes follow the semantic conventions for generative AI at one pinned revision,
because they are in development and still change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opentelemetry.proto_json.common.v1.common import InstrumentationScope
from opentelemetry.proto_json.resource.v1.resource import Resource
from opentelemetry.proto_json.trace.v1.trace import ResourceSpans, ScopeSpans, Status, TracesData

from course_utils.code_trace import as_run
from course_utils.errors import CourseError
from course_utils.otel.spans import RunSpans, attributes

__all__ = ["CONVENTIONS", "SCHEMA_URL", "export", "span_rows", "traces"]

# The last release of the conventions before those for GenAI moved to a repository of their own.
CONVENTIONS = "1.41.0"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS}"


def export(
    run: Any, path: Path | str, *, append: bool = False, content: bool = False, agent: str = "agent"
) -> int:
    """Write a run as one line of OTLP/JSON.

    One `invoke_agent` span holds a `chat` span for each reply and an `execute_tool` span for each
    call; the calls of a program lie in the span of the interpreter that ran it. Ids come from a
    hash of the run, so that the same run gives the same file.

    Args:
        run: A CodeRun, a Trace, or what `run_agent` returns.
        path: The file, by custom with the ending .jsonl.
        append: Keep what is in the file and add a line.
        content: Write the messages, arguments and results too. The conventions leave them out by
            default: they may hold what nobody wants in a log.
        agent: The name of the agent, `gen_ai.agent.name`.

    Returns:
        How many spans were written.

    Source: OpenTelemetry Semantic Conventions 1.41.0, "Semantic Conventions for GenAI agent and
    framework spans"; OpenTelemetry Protocol File Exporter.
    """
    data = traces(run, content=content, agent=agent)
    line = json.dumps(data.to_dict(), ensure_ascii=False) + "\n"
    with open(path, "a" if append else "w", encoding="utf-8", newline="\n") as file:
        file.write(line)
    return len(data.resource_spans[0].scope_spans[0].spans)


def traces(run: Any, *, content: bool = False, agent: str = "agent") -> TracesData:
    """The run as OpenTelemetry's TracesData; the arguments are those of `export`."""
    run = as_run(run)
    scope = ScopeSpans(
        scope=InstrumentationScope(name="course_utils.otel"),
        spans=RunSpans(run, content, agent).spans,
        schema_url=SCHEMA_URL,
    )
    resource = Resource(
        attributes=attributes(
            {
                "service.name": "tool-calls-to-agents",
                "course.clock": "one second for each reply and call; durations are not measured",
            }
        )
    )
    return TracesData(
        resource_spans=[
            ResourceSpans(resource=resource, scope_spans=[scope], schema_url=SCHEMA_URL)
        ]
    )


def span_rows(of: Any) -> list[dict[str, Any]]:
    """The spans of a file or a run for `course_utils.show.table`, indented below their parents.

    Args:
        of: The path of a file that `export` wrote, or a run as `export` takes it.

    Raises:
        CourseError: A line of the file is no OTLP/JSON; it is named.
    """
    if not isinstance(of, str | Path):
        return list(_rows(traces(of)))
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(Path(of).read_text(encoding="utf-8").split("\n"), 1):
        try:
            rows += _rows(TracesData.from_dict(json.loads(line))) if line else []
        except (ValueError, TypeError, KeyError) as error:
            raise CourseError(f"Line {number} of {Path(of).name} is no OTLP/JSON.") from error
    return rows


def _rows(data: TracesData) -> Iterator[dict[str, Any]]:
    depth: dict[bytes, int] = {}
    scopes = [scope for resource in data.resource_spans for scope in resource.scope_spans]
    for span in (span for scope in scopes for span in scope.spans):
        depth[span.span_id] = depth.get(span.parent_span_id, -1) + 1
        values = {pair.key: pair.value for pair in span.attributes}
        counts = [values.get(f"gen_ai.usage.{kind}_tokens") for kind in ("input", "output")]
        failed = span.status is not None and span.status.code == Status.StatusCode.STATUS_CODE_ERROR
        yield {
            "span": "· " * depth[span.span_id] + span.name,
            "input tokens": counts[0].int_value if counts[0] else None,
            "output tokens": counts[1].int_value if counts[1] else None,
            "status": values["error.type"].string_value if failed else "",
        }
