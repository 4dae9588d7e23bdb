"""Commands in processes that find their libraries loaded: a server loads them once, and forks.

A small command spends most of its time on loading libraries, and the tests run hundreds of them.
Each still has a process of its own, with its arguments, folder, environment and streams. A script
called ``farfield``, first in the path, makes shells ask the server too. What cannot be seen here is
an import that is missing: README.md and examples/ run in processes that start afresh.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Sequence

LIBRARIES = (
    "farfield.cli",
    "polars",
    "rich.table",
    "scipy.stats",
    "sklearn.decomposition",
    "sklearn.linear_model",
    "plotly.graph_objs._figure",
    "plotly.io",
    "plotly.subplots",
    "numba",
    "faiss",
    "sentence_transformers",
    "transformers.models.bert.modeling_bert",
)


class Server:
    """A folder with the socket and the script, and the process behind them."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="farfield-")
        self.folder = self._folder.name
        client = shlex.join([sys.executable, "-I", "-S", __file__, self.folder])
        script = os.path.join(self.folder, "farfield")
        with open(script, "w") as file:
            file.write(f'#!/bin/sh\nexec {client} "$@"\n')
        os.chmod(script, 0o755)
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(os.path.join(self.folder, "socket"))
            door.listen()
            self._process = subprocess.Popen(
                [sys.executable, __file__, "serve", str(door.fileno())],
                env={"OMP_NUM_THREADS": "1", **os.environ},
                stdin=subprocess.PIPE,
                pass_fds=[door.fileno()],
            )

    def close(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


def call(
    folder: str, arguments: Sequence[str], cwd: str, streams: Sequence[int], wait: float | None
) -> int:
    """Run ``farfield`` with these arguments and streams (0, 1, 2), and return its status.

    Or, with the arguments ``-c`` and a program, Python, to which every warning is an error.
    """
    job = {"arguments": arguments, "cwd": cwd, "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(wait)
        server.connect(os.path.join(folder, "socket"))
        socket.send_fds(server, [b"."], streams)
        server.sendall(json.dumps(job).encode())
        server.shutdown(socket.SHUT_WR)
        return server.recv(1)[0]


def serve(door: socket.socket) -> None:
    """Fork for every call, and tell the caller how it ended, until standard input is closed."""
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    door.set_inheritable(False)
    gc.freeze()  # what is loaded is not copied
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for tests and commands, which end before
    running: dict[int, tuple[int, socket.socket]] = {}  # by what is ready when it has ended
    with door:
        while sys.stdin not in (ready := select.select([door, sys.stdin, *running], [], [])[0]):
            if door in ready:
                caller, _ = door.accept()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of threads that libraries have begun
                    child = os.fork()
                if child == 0:
                    os._exit(_run(caller))
                running[os.pidfd_open(child)] = child, caller
            for ended in running.keys() & set(ready):
                child, caller = running.pop(ended)
                os.close(ended)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                with contextlib.suppress(OSError), caller:  # it may be tired of waiting
                    caller.send(bytes([status % 256]))


def _run(caller: socket.socket) -> int:
    """Do what is asked for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _, streams, *_ = socket.recv_fds(caller, 1, 3)
    with caller.makefile("rb") as file:
        job = json.load(file)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["cwd"])
    sys.argv = ["farfield", *job["arguments"]]
    try:
        if sys.argv[1:2] == ["-c"]:
            warnings.simplefilter("error")
            sys.modules["__main__"] = main = types.ModuleType("__main__")
            exec(sys.argv[2], vars(main))
        else:
            importlib.import_module("farfield.cli").main()
    except SystemExit as done:
        return int(done.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        sys.exit(call(sys.argv[1], sys.argv[2:], os.getcwd(), [0, 1, 2], None))
