"""A chat-completion server on loopback that fails on demand."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 0,
    "model": "tiny",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "reasoning_signature": "c2lnbmVk",
                "tool_calls": [
                    {
                        "id": "call_a",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
                    },
                    {
                        "id": "call_b",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": '},
                    },
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 7,
        "completion_tokens": 5,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 3},
    },
}


class FaultServer:
    """Serves `/v1`; `faults` is a list of (status, headers, body) to send before good answers.

    The status 0 means: accept the request and stay silent. `listing` replaces the list of models.
    """

    def __init__(self, models=("tiny",)):
        self.faults: list[tuple[int, dict[str, str], bytes]] = []
        self.requests: list[dict] = []
        self.models = list(models)
        self.listing: bytes | None = None
        self.released = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                data = [
                    {"id": m, "object": "model", "created": 0, "owned_by": "me"}
                    for m in owner.models
                ]
                listing = json.dumps({"object": "list", "data": data}).encode()
                self.answer(200, {}, owner.listing or listing)

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                owner.requests.append(json.loads(self.rfile.read(length)))
                status, headers, body = (
                    owner.faults.pop(0) if owner.faults else (200, {}, json.dumps(ANSWER).encode())
                )
                if status == 0:
                    owner.released.wait(20)
                    return
                self.answer(status, headers, body)

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
