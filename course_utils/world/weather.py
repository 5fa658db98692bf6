"""A weather service over real HTTP on this computer, whose faults can be switched on.

It is a real server behind a real socket, so that time limits, status codes and Retry-After are
the true ones. It listens on the loopback address only: nothing leaves the computer.
"""

from __future__ import annotations

import json
import socketserver
import threading
from collections import deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from course_utils.errors import CourseError
from course_utils.world.problems import WorldError

DATA = Path(__file__).parents[2] / "data" / "world" / "weather.json"
STALL = "stall"  # accept the request and never answer


class WeatherError(WorldError):
    """The service gave no weather. `transient` says whether trying again can help.

    `status` is the HTTP status (None if no answer came), `retry_after` the seconds that the
    service asks to wait (None if it does not say).
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        transient: bool,
        status: int | None = None,
        retry_after: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.transient = transient
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True)
class Fault:
    """What the service does instead of answering: a status such as 503, or STALL."""

    status: int | str
    retry_after: int | None = None


@dataclass(frozen=True)
class Served:
    """One line of the request log: the city asked for and the status sent (STALL if none)."""

    city: str
    status: int | str


class WeatherService:
    """The server, its data, its faults and its log. Use it with `with`, or `start()` and `stop()`.

    >>> with WeatherService() as service:
    ...     service.get_weather("Moscow")
    {'city': 'Moscow', 'temp_c': 2, 'sky': 'cloudy'}
    """

    def __init__(self, timeout_s: float = 2.0) -> None:
        self.timeout_s = timeout_s
        self.log: list[Served] = []
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self.reset()

    def fail_next(
        self, times: int = 1, status: int | str = 503, retry_after: int | None = None
    ) -> None:
        """Let the next requests fail, after those that were already told to.

        Args:
            times: How many requests fail.
            status: 429, 503 or any other HTTP status, or STALL to never answer.
            retry_after: Seconds for the Retry-After header; no header if None.
        """
        with self._lock:
            self._next.extend([Fault(status, retry_after)] * times)

    def fail_always(self, status: int | str = 503, retry_after: int | None = None) -> None:
        """Let every request fail until `reset()`; the arguments are those of `fail_next`."""
        with self._lock:
            self._always = Fault(status, retry_after)

    def reset(self) -> None:
        """Heal all faults, empty the log and read the data afresh."""
        with self._lock:
            self.cities: dict[str, dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))
            self.latency_s = 0.0
            self.log.clear()
            self._next: deque[Fault] = deque()
            self._always: Fault | None = None

    @property
    def url(self) -> str:
        """The address of the running service; the port is a free one, different every time."""
        if self._server is None:
            raise CourseError(
                "The weather service is not running: start() it, or use it in `with`."
            )
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def get_weather(self, city: str) -> dict[str, Any]:
        """Get the current weather of a city: temperature in degrees Celsius, and the sky.

        Args:
            city: The name of the city in Latin letters, such as Paris.
        """
        return get_weather(city, self.url, self.timeout_s)

    def start(self) -> WeatherService:
        """Start the server in a thread of its own."""
        if self._server is None:
            self._server = _Server(self)
            threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop the server and let stalled requests go."""
        if self._server is not None:
            server, self._server = self._server, None
            server.stopping.set()
            server.shutdown()
            server.server_close()

    def __enter__(self) -> WeatherService:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def answer(self, city: str) -> tuple[int | str, dict[str, Any], dict[str, str]]:
        """Decide status, body and headers for one request, and log it."""
        with self._lock:
            fault = self._next.popleft() if self._next else self._always
            by_name = {name.casefold(): name for name in self.cities}
            name = by_name.get(city.strip().casefold())
            status, headers = 200 if name else 404, {}
            body = {"city": name, **self.cities[name]} if name else _unknown(city)
            if fault:
                status, body = fault.status, {"error": "unavailable"}
                if fault.retry_after is not None:
                    headers["Retry-After"] = str(fault.retry_after)
            self.log.append(Served(city, status))
        return status, body, headers


def get_weather(city: str, url: str, timeout_s: float = 2.0) -> dict[str, Any]:
    """Ask the service at `url` and return {"city": …, "temp_c": …, "sky": …}.

    Raises:
        WeatherError: No answer within `timeout_s` seconds, no connection, or an error status.
    """
    import httpx

    try:
        # A proxy set in the environment must not see requests to this computer.
        with httpx.Client(timeout=timeout_s, trust_env=False) as client:
            response = client.get(f"{url}/weather", params={"city": city})
    except httpx.TimeoutException as error:
        raise WeatherError(
            f"The weather service did not answer within {timeout_s:g} s.",
            code="timeout",
            transient=True,
        ) from error
    except httpx.HTTPError as error:
        raise WeatherError(
            "The weather service cannot be reached.", code="unreachable", transient=True
        ) from error
    if response.status_code != 200:
        raise _refusal(city, response)
    return response.json()


def _refusal(city: str, response: Any) -> WeatherError:
    status, wait = response.status_code, response.headers.get("Retry-After", "")
    retry_after = float(wait) if wait.isdigit() else None
    if status == 404:
        return WeatherError(
            f"The weather service knows no city {city!r}.",
            code="city_not_found",
            transient=False,
            status=status,
            hint=response.json().get("hint", ""),
        )
    named = {429: ("rate_limited", "is asked too often"), 503: ("unavailable", "is down")}
    code, what = named.get(status, ("http_error", "failed"))
    wait_hint = f"Try again in {retry_after:g} s." if retry_after is not None else ""
    return WeatherError(
        f"The weather service {what} (status {status}).",
        code=code,
        transient=status == 429 or status >= 500,
        status=status,
        retry_after=retry_after,
        hint=wait_hint,
    )


def _unknown(city: str) -> dict[str, str]:
    hint = "Check the spelling." if city.isascii() else "City names are in Latin letters: Moscow."
    return {"error": "city_not_found", "city": city, "hint": hint}


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, service: WeatherService) -> None:
        self.service = service
        self.stopping = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        city = parse_qs(urlsplit(self.path).query).get("city", [""])[0]
        status, body, headers = self.server.service.answer(city)
        # Waiting on the event, not sleeping: stop() must not have to wait for a slow request.
        self.server.stopping.wait(None if status == STALL else self.server.service.latency_s)
        if status == STALL:
            return
        data = json.dumps(body, ensure_ascii=False).encode()
        try:
            self.send_response(int(status))
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            return  # the client's time limit was shorter than the latency: it has hung up

    def log_message(self, *details: object) -> None:
        """Stay silent: the log is a list, and a notebook's stderr stays empty."""
