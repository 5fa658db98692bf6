"""The program that holds the weights: llama.cpp's HTTP server, in a process of its own.

A separate process keeps the library's log away from notebook cells, and a crash away from the
kernel. It ends when its standard input closes, so it never outlives the kernel that started it.
"""

from __future__ import annotations

import os
import sys


def serve(path: str, n_ctx: int, threads: int) -> None:
    """Load a model file, print the server's address, and stay until standard input closes."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = n_ctx
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.port = 0
    params.warmup = False
    params.cache_ram_mib = 0  # only the live prefix is cached, never old conversations
    params.api_keys = [os.environ["COURSE_ENGINE_KEY"]]
    server = xllamacpp.Server(params)
    print(f"ENGINE {server.listening_address} {xllamacpp.__version__}", flush=True)
    sys.stdin.read()
    os._exit(0)  # the server's threads have no other way to end


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
