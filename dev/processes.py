"""The product's processes, as the Procfile names them, under honcho; and what an earlier launcher left of them."""

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

import psutil
from honcho.environ import parse_procfile
from honcho.manager import SYSTEM_PRINTER_NAME, Manager
from honcho.printer import Message, Printer

from app.settings import ROOT
from dev.restarting import RestartedProcess

MARK = "DRAFTDESK_LAUNCHED_FOR"
"""Environment variable of every process that the launcher starts; its value is the data folder."""

END_LIMIT_S = 8
_FAILED = re.compile(r"stopped \(rc=(?!0\)|-15\))")


class _Console(Printer):  # type: ignore[misc]  # honcho has no types
    """Prints the lines of the processes; runs `on_started` once, each in a thread, when all of them are forked."""

    def __init__(self, *on_started: Callable[[], None]) -> None:
        super().__init__(sys.stdout, time_format="")  # each line has its own time
        self._on_started = list(on_started)

    def write(self, message: Message) -> None:
        while self._on_started:
            # Not before: a thread that runs during a fork may take a lock into the child.
            threading.Thread(target=self._on_started.pop(0), daemon=True).start()
        # Of honcho's own lines only the unexpected ends are news.
        if message.name != SYSTEM_PRINTER_NAME or _FAILED.search(message.data):
            super().write(message)


class _Manager(Manager):  # type: ignore[misc]  # honcho has no types
    """Honcho's manager, with processes that start again by themselves."""

    def __init__(self, printer: Printer) -> None:
        super().__init__(printer)
        self._process_ctor = RestartedProcess

    def terminate(self) -> None:
        """Ask every keeper to end its process: honcho asks the process itself, which would be started again."""
        for process in self._processes.values():
            if keeper := process.get("process"):
                keeper.terminate()

    def kill(self) -> None:
        """Kill what has not ended in time."""
        self.terminate()
        super().kill()

    def report_lost_keepers(self) -> None:
        """Tell the loop when a keeper was killed, until all have ended: nobody would end or hear its process."""
        keepers = {process["process"].sentinel: process["process"] for process in self._processes.values()}
        while keepers:
            for sentinel in wait(keepers):
                keeper = keepers.pop(sentinel)
                keeper.join()
                if keeper.exitcode:
                    stop = {"returncode": keeper.exitcode}
                    self.events.put(Message(type="stop", data=stop, time=None, name=keeper.name, colour=None))


def procfile() -> dict[str, str]:
    """Return the command of each process in the Procfile, by its name."""
    return dict(parse_procfile((ROOT / "Procfile").read_text()).processes)


def run_processes(
    commands: Mapping[str, str], environment: Mapping[str, str], on_started: Sequence[Callable[[], None]] = ()
) -> int:
    """Run the commands until a signal, or until one of them ends again and again; then end the others.

    Each of `on_started` runs in a thread. Returns 0 after SIGINT or SIGTERM, else 1.
    """
    manager = _Manager(_Console(*on_started, lambda: manager.report_lost_keepers()))
    for name, command in commands.items():
        manager.add_process(name, f"exec {command}", env=dict(environment), cwd=str(ROOT))
    manager.loop()
    return 0 if manager.returncode in (130, 143) else 1


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
