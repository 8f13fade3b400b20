"""The product's processes, as the Procfile names them, under honcho; and what an earlier launcher left of them."""

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from honcho.environ import parse_procfile
from honcho.manager import SYSTEM_PRINTER_NAME, Manager
from honcho.printer import Message, Printer

from app.settings import ROOT

MARK = "DRAFTDESK_LAUNCHED_FOR"
"""Environment variable of every process that the launcher starts; its value is the data folder."""

END_LIMIT_S = 8
_FAILED = re.compile(r"stopped \(rc=(?!0\)|-15\))")


class _Console(Printer):  # type: ignore[misc]  # honcho has no types
    """Prints the lines of the processes and calls `on_started` once, when all of them have been forked."""

    def __init__(self, on_started: Callable[[], None]) -> None:
        super().__init__(sys.stdout, time_format="")  # each line has its own time
        self._on_started: Callable[[], None] | None = on_started

    def write(self, message: Message) -> None:
        if self._on_started is not None:
            # Not before: a thread that runs during a fork may take a lock into the child.
            threading.Thread(target=self._on_started, daemon=True).start()
            self._on_started = None
        # Of honcho's own lines only the unexpected ends are news.
        if message.name != SYSTEM_PRINTER_NAME or _FAILED.search(message.data):
            super().write(message)


def run_processes(environment: Mapping[str, str], on_started: Callable[[], None]) -> int:
    """Run everything in the Procfile until a signal or until one process ends, then end the others.

    Returns 0 after SIGINT or SIGTERM, else the exit code of the process that ended first.
    """
    manager = Manager(printer=_Console(on_started))
    for name, command in parse_procfile((ROOT / "Procfile").read_text()).processes.items():
        manager.add_process(name, f"exec {command}", env=dict(environment), cwd=str(ROOT))
    manager.loop()
    return 0 if manager.returncode in (130, 143) else manager.returncode or 1


def child_environment(values: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with the virtual environment first on the path, and `values`."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", **values}


def end_leftovers(var_dir: Path) -> int:
    """End the processes that a killed launcher left for this data folder; returns how many there were."""
    left = [process for process in psutil.process_iter() if _mark_of(process) == str(var_dir)]
    for process in left:
        _signal(process.terminate)
    _, stubborn = psutil.wait_procs(left, END_LIMIT_S)
    for process in stubborn:
        _signal(process.kill)
    psutil.wait_procs(stubborn, END_LIMIT_S)
    return len(left)


def _mark_of(process: psutil.Process) -> str | None:
    try:
        return None if process.pid == os.getpid() else process.environ().get(MARK)
    except psutil.Error:
        return None  # another user's, or gone


def _signal(send: Callable[[], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        send()
