"""A stand-in for OpenAI's batch API on loopback: files, batches, results after some seconds.

Each line of a batch is answered by a `fakeserver`, so that planted truth comes back. Run by hand:

    python tests/batchserver.py --seconds 400 --port 8902
    OPENAI_API_KEY=x OPENAI_BASE_URL=http://127.0.0.1:8902/v1 \\
      inspect eval selfprobe/kth_word --model openai/alpha -M responses_api=false --batch --limit 4
"""

import argparse
import importlib.util
import json
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Batches:
    """What was submitted."""

    upstream: str
    """Base URL of the server that answers each line."""
    seconds: float
    """Until a batch is done."""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    direct: int = 0
    """Calls that came one by one."""

    @property
    def requests(self) -> int:
        """Lines of all batches."""
        return sum(batch["request_counts"]["total"] for batch in self.batches.values())

    def submit(self, file: str) -> dict[str, Any]:
        name = f"batch_{len(self.batches)}"
        total = len(self.files[file].splitlines())
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "input_file_id": file,
            "created_at": int(time.time()),
            "status": "in_progress",
            "request_counts": {"total": total, "completed": 0, "failed": 0},
            "due": time.monotonic() + self.seconds,
        }
        return self.batches[name]

    def look(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        if batch["status"] == "in_progress" and time.monotonic() >= batch["due"]:
            lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
            done = [
                {"custom_id": line["custom_id"], "response": self.answer(line["body"])}
                for line in lines
            ]
            self.files[f"out_{name}"] = "\n".join(map(json.dumps, done)).encode()
            counts = {"total": len(lines), "completed": len(lines), "failed": 0}
            batch |= {
                "status": "completed",
                "output_file_id": f"out_{name}",
                "request_counts": counts,
            }
        return {key: value for key, value in batch.items() if key != "due"}

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        call = urllib.request.Request(
            f"{self.upstream}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer x"},
        )
        with urllib.request.urlopen(call, timeout=30) as reply:
            return {"status_code": 200, "body": json.load(reply)}


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:
        batches: Batches = self.server.batches
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/files"):
            boundary = re.search(r"boundary=(\S+)", self.headers["Content-Type"])
            assert boundary is not None
            parts = body.split(b"--" + boundary[1].encode())
            [content] = [part.partition(b"\r\n\r\n")[2] for part in parts if b'name="file"' in part]
            name = f"file_{len(batches.files)}"
            batches.files[name] = content.strip()
            self._send(
                {
                    "id": name,
                    "object": "file",
                    "bytes": len(content),
                    "purpose": "batch",
                    "filename": "x",
                }
            )
        elif self.path.endswith("/batches"):
            self._send(batches.submit(json.loads(body)["input_file_id"]))
        else:
            batches.direct += 1
            self._send(batches.answer(json.loads(body))["body"])

    def do_GET(self) -> None:
        batches: Batches = self.server.batches
        *_, kind, name = self.path.removesuffix("/content").split("/")
        if kind == "files":
            self._bytes(batches.files[name])
        elif name in batches.batches:
            self._send(batches.look(name))
        else:
            self._send(
                {
                    "batches": len(batches.batches),
                    "requests": batches.requests,
                    "direct": batches.direct,
                }
            )

    def _send(self, value: dict[str, Any]) -> None:
        self._bytes(json.dumps({key: one for key, one in value.items() if key != "due"}).encode())

    def _bytes(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@contextmanager
def batching(upstream: str, seconds: float, port: int = 0) -> Iterator[tuple[str, Batches]]:
    """The base URL of a running stand-in, and what it holds."""
    batches = Batches(upstream, seconds)
    with ThreadingHTTPServer(("127.0.0.1", port), _Handler) as httpd:
        httpd.batches = batches  # type: ignore[attr-defined]
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}/v1", batches
        httpd.shutdown()


def main() -> None:
    """Serve until it is interrupted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--port", type=int, default=8902)
    given = parser.parse_args()
    spec = importlib.util.spec_from_file_location(
        "fakeserver", Path(__file__).parent / "fakeserver.py"
    )
    assert spec is not None and spec.loader is not None
    fakeserver = importlib.util.module_from_spec(spec)
    sys.modules["fakeserver"] = fakeserver
    spec.loader.exec_module(fakeserver)
    with (
        fakeserver.running() as answers,
        batching(answers.base_url, given.seconds, given.port) as (url, _),
    ):
        print(f"batches on {url}; GET {url}/stats/x counts", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
