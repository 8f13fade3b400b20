"""Make the virtual environment and install what the lock files pin. Runs on the system's Python, without packages.

`python3 -m dev.setup` for `make run`, `python3 -m dev.setup --dev` for tests and lint as well. Does nothing when the
lock files are as they were; an installation that was cut off is done again.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python must read this far and get a plain answer
    sys.exit("DraftDesk needs Python 3.11 or newer; this is %d.%d (%s)." % (*sys.version_info[:2], sys.executable))  # noqa: UP031

import errno
import fcntl
import hashlib
import shutil
import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
DEV_LOCK = ROOT / "requirements-dev.lock"
SPACE_MB = 1_500
"""Free space that an installation needs, packages and their downloads together."""


class SetupFailed(Exception):
    """One line for a person, maybe with the end of a command's output below it."""


def set_up(locks: Sequence[Path]) -> None:
    """Bring the virtual environment to the state that `locks` pin. Raises SetupFailed or OSError."""
    stamp = VENV / f"{locks[-1].stem}.sha256"
    wanted = _digest(locks)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    with _one_at_a_time():
        if stamp.exists() and stamp.read_text() == wanted:
            return
        free_mb = shutil.disk_usage(ROOT).free // 1_000_000
        if free_mb < SPACE_MB:
            raise SetupFailed(f"Only {free_mb} MB are free in {ROOT}; installing needs about {SPACE_MB} MB.")
        stamp.unlink(missing_ok=True)
        _make_venv()
        _install(locks)
        stamp.write_text(wanted)


def _digest(locks: Sequence[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for lock in locks:
        digest.update(lock.read_bytes())
    return digest.hexdigest()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Keep `make run` and `make test` from installing into the same place at once."""
    with (ROOT / ".setup.lock").open("w") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up in this folder to finish ...")
            fcntl.lockf(lock, fcntl.LOCK_EX)
        yield


def _make_venv() -> None:
    if PYTHON.exists() and _quiet([str(PYTHON), "-m", "pip", "--version"]).returncode == 0:
        return
    say(f"Making a virtual environment in .venv (Python {sys.version.split()[0]}) ...")
    made = _quiet([sys.executable, "-m", "venv", "--clear", str(VENV)])
    if made.returncode != 0:
        hint = " On Debian and Ubuntu: apt-get install python3-venv" if "ensurepip" in made.stdout else ""
        raise SetupFailed(f"The virtual environment could not be made.{hint}\n{_tail(made.stdout.splitlines())}")


def _install(locks: Sequence[Path]) -> None:
    """Run pip, with a counted line for each package in place of its own output."""
    total = sum(1 for lock in locks for line in lock.read_text().splitlines() if "==" in line)
    say(f"Installing about {total} pinned packages (the first time takes a few minutes) ...")
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off"]
    for lock in locks:
        command += ["-r", str(lock)]
    output: deque[str] = deque(maxlen=200)
    seen: set[str] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        for line in pip.stdout or ():
            output.append(line.rstrip())
            words = line.split()
            if words[:1] == ["Collecting"] and words[1] not in seen:
                seen.add(words[1])
                say(f"  {len(seen):3d}  {words[1].split(';')[0]}")
            elif words[:1] == ["Installing"]:
                say("  unpacking ...")
    if pip.returncode != 0:
        raise SetupFailed(f"The packages could not be installed; run it again to go on.\n{_tail(output)}")


def _quiet(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def _tail(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line}" for line in list(lines)[-12:])


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Set up and return an exit code."""
    try:
        set_up([LOCK, DEV_LOCK] if "--dev" in arguments else [LOCK])
    except SetupFailed as failed:
        say(str(failed))
        return 1
    except OSError as failed:
        problem = {
            errno.ENOSPC: "the disk is full",
            errno.EACCES: "it is not writable",
            errno.EROFS: "it is not writable",
        }.get(failed.errno or 0, failed.strerror)
        say(f"DraftDesk can't be set up in {failed.filename or ROOT}: {problem}.")
        return 1
    except KeyboardInterrupt:
        say("\nStopped; run it again to go on.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
