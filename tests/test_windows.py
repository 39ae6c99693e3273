"""What Windows lacks is taken from a process of Linux, in which commands still end well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from selfprobe.errors.output import from_here, relative

BEGINNING = """
import os, signal, sys
import click, filelock, fsspec, inspect_ai.log, inspect_ai.model, pandas, rich  # each has its own way on Windows

for name in dir(signal):
    if name.startswith("SIG") and name not in {"SIGINT", "SIGTERM", "SIGABRT", "SIG_IGN", "SIG_DFL"}:
        delattr(signal, name)
for name in ("alarm", "setitimer", "pthread_kill", "pthread_sigmask", "sigwait"):
    delattr(signal, name)
for name in (
    "fork", "geteuid", "getuid", "getgid", "setsid", "killpg", "getpgid", "uname", "getloadavg", "mkfifo", "nice",
    "sysconf", "statvfs", "chown", "pread", "O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "posix_spawn",
):
    delattr(os, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog", "curses"):
    sys.modules[name] = None
os.environ.pop("PWD", None)

from selfprobe.cli import main
main()
"""
"""Program that takes the words of a command; its pipes lack characters that a pipe of Windows
lacks.
"""
MATRIX = (
    "matrix",
    "--models",
    "planted/ada,planted/bo",
    "--tasks",
    "kth_word",
    "--limit",
    "2",
    "--yes",
)


def output_of(folder: Path, *words: str) -> str:
    """All that a command prints that ends with status 0."""
    environment = os.environ | {"PYTHONIOENCODING": "cp437", "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", BEGINNING, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    printed = (done.stdout + done.stderr).decode("cp437")
    assert done.returncode == 0, printed
    return printed


@pytest.mark.slow(15)
def test_help_lists_and_a_study_to_its_page_do_without_what_windows_lacks(tmp_path: Path) -> None:
    assert "Usage: " in output_of(tmp_path, "-h")
    assert "kth_word" in output_of(tmp_path, "tasks")
    assert "Page: matrix/index.html" in output_of(tmp_path, *MATRIX)
    assert "Report: report/index.html" in output_of(tmp_path, "report", "logs/matrix")


def test_a_log_on_another_drive_has_its_whole_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, start: object) -> str:
        raise ValueError(f"path is on mount 'D:', start on mount 'C:': {path}, {start}")

    monkeypatch.setattr(os.path, "relpath", refuse)
    assert from_here("/logs/a b.eval") == "/logs/a b.eval"
    assert relative("/logs/a b.eval", "/page") == "file:///logs/a%20b.eval"
