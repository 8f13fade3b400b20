"""A process that ends is started again; one that can't go on ends them all, with everything that it started."""

import signal
import subprocess
import sys
import time

import psutil

from app.settings import ROOT

LAUNCHER = """
import os, sys
from dev import restarting
from dev.processes import run_processes
restarting.FIRST_PAUSE_S = float(sys.argv[1])
sys.exit(run_processes({"one": sys.argv[2], "other": "sleep 1000"}, os.environ))
"""
DIES_BEFORE_ITS_CHILD = "sh -c 'sleep 1000 & echo child=$!; kill -9 $$'"


def run_with(pause_s: float, command: str) -> "subprocess.Popen[str]":
    """Run the command and another one under the launcher's process manager."""
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(pause_s), command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_what_dies_again_and_again_ends_everything_and_leaves_nothing() -> None:
    output, _ = (launcher := run_with(0.01, DIES_BEFORE_ITS_CHILD)).communicate(timeout=60)
    assert launcher.returncode == 1, output
    assert output.count("ended (code -9); starting it again in") == 4
    assert "ended (code -9), 5 times in a row; giving up" in output
    children = [int(line.partition("child=")[2]) for line in output.splitlines() if "child=" in line]
    assert len(children) == 5
    assert not [
        pid for pid in children if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ]


def test_a_signal_ends_the_wait_for_the_next_start() -> None:
    launcher = run_with(60, "sh -c 'exit 3'")
    assert launcher.stdout is not None
    for line in launcher.stdout:
        if "ended (code 3); starting it again in 8 s" in line:
            break
    asked = time.monotonic()
    launcher.send_signal(signal.SIGTERM)
    output, _ = launcher.communicate(timeout=30)
    assert launcher.returncode == 0, output
    assert time.monotonic() - asked < 5


def test_a_launcher_that_is_killed_leaves_nothing() -> None:
    launcher = run_with(0.1, "sh -c 'echo up; sleep 1000'")
    assert launcher.stdout is not None
    for line in launcher.stdout:
        if line.rstrip().endswith("| up"):
            break
    left = psutil.Process(launcher.pid).children(recursive=True)
    launcher.kill()
    launcher.communicate(timeout=30)
    _, alive = psutil.wait_procs(left, 15)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_a_keeper_that_is_killed_ends_everything() -> None:
    launcher = run_with(60, "sh -c 'echo up; sleep 1000'")
    assert launcher.stdout is not None
    for line in launcher.stdout:
        if line.rstrip().endswith("| up"):
            break
    keeper = next(child for child in psutil.Process(launcher.pid).children() if "sleep" in str(descendants(child)))
    keeper.kill()
    output, _ = launcher.communicate(timeout=30)
    assert launcher.returncode == 1, output


def descendants(process: psutil.Process) -> list[list[str]]:
    """Return the command lines of what a process has started."""
    return [child.cmdline() for child in process.children(recursive=True)]
