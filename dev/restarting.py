"""One line of the Procfile, started again whenever it ends: what honcho's own process lacks."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Queue, parent_process
from subprocess import Popen
from types import FrameType

from honcho.printer import Message
from honcho.process import Process

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
SETTLED_S = 10.0
"""A process that lived this long had started well; its end is the first of a new row."""

DEATHS_IN_A_ROW = 5
PARENT_LOOK_EVERY_S = 0.5
OTHERS_LIMIT_S = 4.0
"""How long the children of a process that died may take to end."""


class RestartedProcess(Process):  # type: ignore[misc]  # honcho has no types
    """Runs its command until SIGTERM, the end of the launcher, or DEATHS_IN_A_ROW ends without settling.

    Lives in a process of its own, as honcho has it, where `run` is the whole program.
    """

    def run(self, events: "Queue[Message]", _ignore_signals: bool) -> None:
        """Run the command again and again; only the last end of it is honcho's `stop`."""
        self._events = events
        self._stopping = False
        # Handlers, for what is ignored here would be ignored by each child as well. Ctrl-C is the launcher's.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)
        threading.Thread(target=_end_with_launcher, args=(events,), daemon=True).start()
        deaths = 0
        while not self._stopping:
            lived_s = self._run_once()
            deaths = 1 if lived_s >= SETTLED_S else deaths + 1
            if self._stopping:
                break
            how = f"ended (code {self._child.returncode})"
            if deaths == DEATHS_IN_A_ROW:
                self._tell(f"{how}, {deaths} times in a row; giving up")
                break
            pause_s = min(FIRST_PAUSE_S * 2 ** (deaths - 1), LONGEST_PAUSE_S)
            self._tell(f"{how}; starting it again in {pause_s:g} s")
            _wait(pause_s, lambda: self._stopping)
        self._send_message({"returncode": self._child.returncode if self._child else 0}, type="stop")

    def _run_once(self) -> float:
        """Run the command to its end and return how many seconds it lived."""
        started = time.monotonic()
        self._child = child = self._child_ctor(self.cmd, env=self.env, cwd=self.cwd)
        self._send_message({"pid": child.pid}, type="start")
        if self._stopping:  # the signal came while it was being started
            _signal_group(child, signal.SIGTERM)
        silent = threading.Event()
        threading.Thread(target=_end_others, args=(child, silent), daemon=True).start()
        for line in iter(child.stdout.readline, b""):
            self._send_message(line)
        silent.set()
        child.stdout.close()
        child.wait()
        return time.monotonic() - started

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        # Once: to some programs a second signal means to drop everything.
        if not self._stopping:
            self._stopping = True
            if self._child is not None:
                _signal_group(self._child, signal.SIGTERM)

    def _tell(self, text: str) -> None:
        self._send_message(text.encode())


def _end_with_launcher(events: "Queue[Message]") -> None:
    """End this process once the launcher is gone: it would start again what the next launcher ends."""
    launcher = parent_process()
    while launcher is not None and os.getppid() == launcher.pid:
        time.sleep(PARENT_LOOK_EVERY_S)
    events.cancel_join_thread()  # nobody reads the last lines
    os.kill(os.getpid(), signal.SIGTERM)


def _end_others(child: "Popen[bytes]", silent: threading.Event) -> None:
    """End what a process that died has left in its group: it holds the port and the output."""
    child.wait()
    if silent.wait(0.1):
        return
    _signal_group(child, signal.SIGTERM)
    if not silent.wait(OTHERS_LIMIT_S):
        _signal_group(child, signal.SIGKILL)


def _signal_group(leader: "Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of a group that is gone
        os.killpg(leader.pid, number)


def _wait(limit_s: float, enough: Callable[[], bool]) -> None:
    # No Event: a signal handler that sets one may meet this thread inside it.
    end = time.monotonic() + limit_s
    while not enough() and time.monotonic() < end:
        time.sleep(0.05)
