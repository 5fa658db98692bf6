"""JupyterLab on loopback and Chromium on top of it, as a learner has them."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
CHROMIUM = os.environ.get("COURSE_CHROMIUM") or shutil.which("chromium")
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab server over a copy of the notebooks; gives its address and token."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("notebooks", "data"):
        shutil.copytree(ROOT / name, folder / name)
    write_notebook(folder / "empty.ipynb", ["'second cell'"])
    own = tmp_path_factory.mktemp("jupyter")
    port, token = free_port(), secrets.token_hex(16)
    address = f"http://127.0.0.1:{port}"
    settings = {
        "JUPYTER_CONFIG_DIR": str(own / "config"),
        "JUPYTER_DATA_DIR": str(own / "data"),
        "JUPYTER_RUNTIME_DIR": str(own / "runtime"),
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
        "COURSE_MODEL": "recorded",
        "COURSE_THREADS": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    with open(own / "log.txt", "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [
                *[sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser"],
                *["--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"],
                *[f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"],
                "--expose-app-in-browser",
            ],
            env={**os.environ, **settings},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(f"{address}/api/status?token={token}", server, own / "log.txt")
            yield address, token
        finally:
            server.terminate()
            server.wait(20)


def wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    """Return once the server answers; fail with its log if it ends or stays silent."""
    for _ in range(240):
        if server.poll() is None:
            try:
                with urllib.request.urlopen(address, timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.5)
        else:
            break
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")


def write_notebook(path: Path, sources: list[str]) -> None:
    """Save a notebook of these code cells."""
    import nbformat

    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, path)


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """The folder where screenshots are kept, to be looked at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return SCREENSHOTS


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.fail("Chromium is not installed: apt-get install chromium, or set COURSE_CHROMIUM.")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def window(browser):
    """One browser profile for all tests, so that JupyterLab's files are fetched once."""
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    yield context
    context.close()


@pytest.fixture
def page(window, lab):
    """A fresh tab; `page.problems` collects what its console and its requests complain about."""
    page = window.new_page()
    page.set_default_timeout(120_000)
    page.problems = []

    def console(message) -> None:
        # A failed request is noted below, with its address.
        if message.type == "error" and "Failed to load resource" not in message.text:
            page.problems.append(f"console: {message.text}")

    def response(answer) -> None:
        if answer.status >= 400:
            page.problems.append(f"request: {answer.status} {answer.url}")

    page.on("pageerror", lambda error: page.problems.append(f"page: {error}"))
    page.on("console", console)
    page.on("response", response)
    yield page
    page.close()
    stop_kernels(*lab)


def stop_kernels(address: str, token: str) -> None:
    """End every kernel of the server, so that none competes with the next test."""
    headers = {"Authorization": f"token {token}"}
    with httpx.Client(base_url=f"{address}/api", headers=headers, timeout=60) as server:
        for kernel in server.get("/kernels").raise_for_status().json():
            server.delete(f"/kernels/{kernel['id']}").raise_for_status()
