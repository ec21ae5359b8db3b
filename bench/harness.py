"""What does the harness itself cost per call to a model, and does its memory stay flat?

A model server on the loopback answers at once, in a process of its own. Conversations of ten turns
(nine tool calls, then a text) with a prompt of 8 KB and tool results of 2 KB go through the real
gateway. What is left is the harness: canonical requests, budget, HTTP, parsing, recording.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.memory import ALLOWED_KIB, SAMPLES, resident_kib, slope
from bench.table import table
from evolution.llm.calls import CallRecord, Role, Usage
from evolution.llm.endpoints import parse_models
from evolution.llm.pricing import parse_prices

TURNS = 10
PROMPT_BYTES = 8_000
RESULT_BYTES = 2_000
ALLOWED_SECONDS = 0.150
"""CPU per call, as the harness promises."""


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        turn = sum(message["role"] == "tool" for message in asked["messages"]) + 1
        message: dict[str, object] = {"role": "assistant", "content": "done"}
        if turn < TURNS:
            function = {"name": "look", "arguments": json.dumps({"at": f"file-{turn}"})}
            call = {"id": f"call_{turn}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        finish = "stop" if turn == TURNS else "tool_calls"
        body = json.dumps(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": asked["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Forgetful:
    """A log that only counts, so that what grows is the harness."""

    def __init__(self) -> None:
        self.total = Usage()

    def recall(self, key: str) -> CallRecord | None:
        return None

    def reserve(self, expected: Usage, seconds: float, fits: Callable[[Usage], None]) -> int | None:
        fits(self.total)
        return None

    def record(self, call: CallRecord, reserved: int | None = None) -> None:
        if not call.outcome.is_final:
            raise RuntimeError(f"{call.place}: {call.reason}")
        self.total += call.usage


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.harness", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def _serve() -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()
    return 0


def measure(url: str, calls: int, threads: int) -> tuple[list[tuple[int, int]], float, float]:
    """Resident KiB after every tenth, CPU seconds per call, wall seconds per call."""
    # What is measured is a running harness, not the seconds its libraries take to load.
    from pydantic_ai import Agent

    from evolution.llm.gateway import Gateway
    from evolution.llm.lines import Lines

    lines = Lines({})
    table_ = parse_models(f"default={url} tiny concurrency={threads}")
    agent: Agent[None, str] = Agent(tools=[])

    @agent.tool_plain
    def look(at: str) -> str:
        """Look at a file."""
        return at + "x" * RESULT_BYTES

    log = _Forgetful()

    def converse(number: int) -> None:
        with (
            Gateway(table_, log, lines, prices=parse_prices("tiny=1/1")) as gateway,
            gateway.at(f"step-{number}"),
        ):
            gateway.run(agent, "p" * PROMPT_BYTES, model=gateway.model_for(Role.MODIFIER))

    conversations = calls // TURNS
    samples: list[tuple[int, int]] = []
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(converse, range(-threads * 2, 0)))
        cpu, wall = time.process_time(), time.monotonic()
        for part in range(SAMPLES):
            numbers = range(part * conversations // SAMPLES, (part + 1) * conversations // SAMPLES)
            list(pool.map(converse, numbers))
            samples.append((numbers.stop * TURNS, resident_kib()))
    lines.close()
    made = samples[-1][0]
    return samples, (time.process_time() - cpu) / made, (time.monotonic() - wall) / made


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when a call costs what is promised and memory is flat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        return _serve()
    with _server() as url:
        samples, cpu, wall = measure(url, options.calls, options.threads)
    grown = slope(samples) * options.calls / 1000
    is_good = cpu <= ALLOWED_SECONDS and grown <= ALLOWED_KIB
    print(table(["calls", "resident KiB"], [list(sample) for sample in samples]))
    print(f"CPU {1000 * cpu:.1f} ms per call (allowed {1000 * ALLOWED_SECONDS:.0f})")
    print(f"wall {1000 * wall:.1f} ms per call, {options.threads} threads")
    print(f"memory {slope(samples):+.0f} KiB per 1,000 calls")
    if options.json:
        figures = {"cpu_seconds": cpu, "wall_seconds": wall, "samples": samples}
        print(json.dumps({"harness": {**figures, "is_good": is_good}}))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
