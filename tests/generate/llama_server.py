"""llama.cpp's own server, from the package xllamacpp: python -m tests.generate.llama_server WEIGHTS.gguf PORT."""

from __future__ import annotations

import sys
import threading

import xllamacpp


def main() -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.port = sys.argv[1], int(sys.argv[2])
    parameters.hostnames, parameters.n_ctx, parameters.n_parallel = ["127.0.0.1"], 8192, 4
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    threading.Event().wait()  # until it is terminated


if __name__ == "__main__":
    main()
