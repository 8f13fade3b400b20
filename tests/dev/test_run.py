"""`make run` answers each foreseeable trouble in one plain line, and leaves nothing behind."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.embedded import EmbeddedPostgres, EmbeddedValkey
from app.settings import ROOT
from dev.processes import MARK, end_leftovers

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is tested is that it is refused


@pytest.fixture
def folder() -> Iterator[Path]:
    """A data folder of the test's own with a short path."""
    with tempfile.TemporaryDirectory(prefix="ddrun-") as name:
        yield Path(name).resolve()


@pytest.fixture
def port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(**values: object) -> "subprocess.Popen[str]":
    """Start the launcher with these settings, on services that do not exist unless they are named."""
    environment = {"PATH": os.environ["PATH"], **{name.upper(): str(value) for name, value in values.items()}}
    return subprocess.Popen(
        [sys.executable, "-m", "dev.run"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def answer_of(launcher: "subprocess.Popen[str]") -> tuple[int, list[str]]:
    """Wait for the launcher's end; returns its exit code and its lines."""
    output, _ = launcher.communicate(timeout=60)
    return launcher.returncode, output.splitlines()


def test_a_port_in_use(folder: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        code, lines = answer_of(launch(var_dir=folder, port=port))
    assert code == 1
    assert lines == [
        f"Port {port} on 127.0.0.1 is in use. Stop what uses it, or choose another: make run PORT={port + 1}"
    ]
    assert not (folder / "postgres").exists()


def test_a_folder_that_can_not_be_used(port: int) -> None:
    code, lines = answer_of(launch(var_dir="/dev/null/var", port=port))
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith("/dev/null/var can't be used: ")


def test_settings_that_are_wrong(folder: Path) -> None:
    code, lines = answer_of(launch(var_dir=folder, port=70_000, max_steps="many"))
    assert code == 1
    assert len(lines) == 1
    assert "PORT: " in lines[0]
    assert "MAX_STEPS: " in lines[0]


def test_a_demo_that_others_could_reach_is_asked_for_by_name(folder: Path, port: int) -> None:
    code, lines = answer_of(launch(var_dir=folder, port=port, host=EVERYWHERE))
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith("HOST=0.0.0.0 can be reached from other machines, and without SECRET_KEY this is a demo")
    assert not list(folder.iterdir())


def test_a_wrong_setting_is_no_reason_for_a_demo(folder: Path, port: int) -> None:
    code, lines = answer_of(launch(var_dir=folder, port=port, host=EVERYWHERE, secret_key="x" * 32, planner="model"))
    assert code == 1
    assert lines == ["A setting is wrong. Value error, PLANNER=model needs LLM_BASE_URL"]


def test_outside_services_that_do_not_answer(folder: Path, port: int) -> None:
    nowhere = f"postgresql://nobody@127.0.0.1:{port}/none"
    code, lines = answer_of(launch(var_dir=folder, port=port, database_url=nowhere, redis_url="redis://127.0.0.1:1"))
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith("REDIS_URL does not answer: ")
    assert {path.name for path in folder.iterdir()} == {"run.lock"}, "nothing embedded was started"


def test_a_second_launcher_on_the_same_folder(folder: Path, port: int) -> None:
    with (folder / "run.lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        lock.write("4242")
        lock.flush()
        code, lines = answer_of(launch(var_dir=folder, port=port))
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"DraftDesk already runs on {folder} (process 4242).")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_start_leaves_nothing_running(folder: Path, port: int, number: signal.Signals) -> None:
    launcher = launch(var_dir=folder, port=port)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "Starting PostgreSQL ...\n"
    launcher.send_signal(number)
    code, lines = answer_of(launcher)
    assert code == 0
    assert not any("Traceback" in line for line in lines)
    assert not list(servers_of(folder))


def test_services_of_a_killed_launcher_are_taken_over_with_their_data(folder: Path) -> None:
    killed = EmbeddedValkey(folder), EmbeddedPostgres(folder)
    urls = [service.start() for service in killed]
    before = {process.pid for process in servers_of(folder)}
    later = EmbeddedValkey(folder), EmbeddedPostgres(folder)
    assert [service.start() for service in later] == urls
    assert all(service.taken_over for service in later)
    assert {process.pid for process in servers_of(folder)} >= before
    for service in later:
        service.stop()
    killed[0].stop()  # collects its child
    assert not list(servers_of(folder))


def test_half_a_data_folder_is_made_again(folder: Path) -> None:
    half = folder / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    service = EmbeddedPostgres(folder)
    service.start()
    service.stop()
    assert (folder / "postgres" / "PG_VERSION").exists()
    assert not half.exists()


def test_stale_pid_and_socket_files_do_no_harm(folder: Path) -> None:
    services = EmbeddedPostgres(folder), EmbeddedValkey(folder)
    for service in services:
        service.start()
    for process in list(servers_of(folder)):
        process.kill()
        process.wait(10)
    services[1].stop()  # collects its child
    assert (folder / "sockets" / "valkey.sock").exists()
    assert (folder / "postgres" / "postmaster.pid").exists()
    for service in services:
        service.start()
        service.stop()


def test_processes_of_a_killed_launcher_are_ended(folder: Path) -> None:
    left = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        env={MARK: str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert left.stdout is not None
    assert left.stdout.readline() == "up\n"
    assert end_leftovers(folder) == 1
    assert not psutil.pid_exists(left.pid)
    left.communicate()
    assert end_leftovers(folder) == 0


def servers_of(folder: Path) -> Iterator[psutil.Process]:
    """Yield the server processes whose command line names the folder."""
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and str(folder) in " ".join(process.cmdline()):
                yield process
        except psutil.Error:
            continue


def test_one_command_gives_a_page_that_outlives_what_dies_and_one_signal_ends_it(folder: Path, port: int) -> None:
    launcher = launch(var_dir=folder, port=port, web_processes=1)
    assert launcher.stdout is not None
    lines = []
    for line in launcher.stdout:
        lines.append(line.rstrip())
        if line.startswith("  Ctrl-C"):
            break
    assert f"  DraftDesk is ready:  http://127.0.0.1:{port}" in lines, lines
    assert [line for line in lines if "agent-demo" in line]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/sign-in", timeout=30) as page:
        assert page.status == 200
    for words, news in (
        ("jobs.embedder", "embedder listens on"),
        ("valkey-server", "Valkey is back."),
        ("postgres -D", "PostgreSQL is back."),
    ):
        _kill(folder, words)
        # Ends with the output, should the launcher end.
        assert any(news in line for line in iter(launcher.stdout.readline, "")), news
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/sign-in", timeout=30) as page:
        assert page.status == 200
    launcher.send_signal(signal.SIGINT)
    launcher.send_signal(signal.SIGINT)
    code, rest = answer_of(launcher)
    assert code == 0, rest
    assert rest[-1] == "Stopping; the data stays."
    assert not [line for line in rest if line.startswith("Traceback")], "the launcher's own"
    assert not list(servers_of(folder))
    assert end_leftovers(folder) == 0


def _kill(folder: Path, words: str) -> None:
    """Kill the one process of this folder whose command line has the words."""
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if words in line and (str(folder) in line or process.environ().get(MARK) == str(folder)):
                process.kill()
                return
        except psutil.Error:
            continue
    pytest.fail(f"{words} does not run")
