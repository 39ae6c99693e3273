"""The shares of a wave, each in a process of its own on this machine.

A share tells its process's parent how many samples it has and waits until all shares can begin, so that a wrong key or
model shows before anything is asked. A process that was killed is replaced by another, which takes up what the first
one left. Ctrl-C reaches the parent alone; it passes it on, and each share closes its logs.
"""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import click
from inspect_ai.log import EvalLog

from selfprobe.errors import InputError, RunError
from selfprobe.progress import Key, Progress
from selfprobe.shares import GRACE, STARTS, Ended, Line, Outcome, Refused, Stopped, Work, outcome


@dataclass(frozen=True)
class _Begun:
    samples: int


@dataclass(frozen=True)
class _Done:
    key: Key


_Told = _Begun | _Done | Outcome


@dataclass(frozen=True)
class _Pipe:
    """A share's `Line` to the parent."""

    end: Connection

    def begin(self, samples: int) -> None:
        try:
            self.end.send(_Begun(samples))
            self.end.recv()
        except (EOFError, OSError):
            raise KeyboardInterrupt from None

    def done(self, key: Key) -> None:
        with suppress(OSError):  # the parent has stopped to listen, and interrupts this process
            self.end.send(_Done(key))


@dataclass(eq=False)
class _Share:
    work: Work
    starts: int = 0
    process: BaseProcess | None = None
    end: Connection | None = None
    waits: bool = False
    """For the word that it may ask."""

    def start(self) -> None:
        context = get_context("spawn")  # a fork takes threads' locks along, and no accelerator
        self.end, other = context.Pipe()
        self.process = context.Process(target=_run, args=(self.work.call, other), daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the process starts with it, until _run
        self.process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        other.close()  # else its end would not be seen here
        self.starts += 1

    def told(self) -> _Told:
        assert self.end is not None
        told: _Told = self.end.recv()
        return told

    def release(self) -> None:
        if self.end is not None and self.waits:
            with suppress(OSError):  # it was killed meanwhile, which is seen next
                self.end.send(True)
            self.waits = False

    def close(self) -> int:
        """Wait for the process; its exit status."""
        assert self.process is not None and self.end is not None
        self.process.join()
        self.end.close()
        status = self.process.exitcode
        self.end = self.process = None
        return status or 0


def run_shares(works: Sequence[Work], progress: Progress) -> list[EvalLog]:
    """Run each share in a process of its own; the headers of all logs.

    Args:
        works: The shares.
        progress: Is told of every sample.

    Raises:
        KeyboardInterrupt: The user stopped it; all processes have ended.
        InputError: A share's model cannot be had, or its folder is refused; nothing goes on.
        RunError: A process was killed again and again, or broke; the other shares are done.
    """
    shares = [_Share(work) for work in works]
    logs: list[EvalLog] = []
    broken: list[str] = []
    try:
        for share in shares:
            share.start()
        while running := [share for share in shares if share.end is not None]:
            ready = wait([share.end for share in running if share.end is not None])
            for share in [one for one in running if one.end in ready]:
                number = shares.index(share)
                try:
                    told = share.told()
                except (EOFError, OSError):
                    if why := _replaced(share):
                        if number not in progress.samples:
                            raise RunError(why) from None  # the others wait for it
                        broken.append(why)
                    continue
                if isinstance(told, Refused):
                    raise InputError(told.why)
                if isinstance(told, Stopped):
                    raise KeyboardInterrupt
                if isinstance(told, Ended):
                    logs += told.logs
                    share.close()
                elif isinstance(told, _Done):
                    progress.note(number, told.key)
                else:
                    share.waits = True
                    _begin(number, told.samples, shares, progress)
    finally:
        _stop(shares)
    if broken:
        raise RunError("; ".join(broken) + "; the same command goes on")
    return logs


def _begin(number: int, samples: int, shares: Sequence[_Share], progress: Progress) -> None:
    """Let all shares ask once each is ready; one that is a replacement at once."""
    progress.samples[number] = samples
    if len(progress.samples) < len(shares):
        return
    progress.announce()
    for share in shares:
        share.release()


def _replaced(share: _Share) -> str:
    """Start a process anew that was killed; why not, or ""."""
    status, share.waits = share.close(), False
    if status >= 0:  # it raised what no share should, and its traceback is on the terminal
        return f"the process of {share.work.models} broke with status {status}; see above"
    if share.starts >= STARTS:
        killed = f"was killed {STARTS} times (signal {-status})"
        return f"the process of {share.work.models} {killed}; is there too little memory?"
    again = f"another one takes its runs up ({share.starts + 1} of at most {STARTS})"
    click.echo(f"  the process of {share.work.models} was killed (signal {-status}); {again}", err=True)
    share.start()
    return ""


def _stop(shares: Sequence[_Share]) -> None:
    """End what still runs: interrupted, so that its logs are closed, and killed where that takes too long."""
    running = [share for share in shares if share.process is not None]
    processes = [share.process for share in running if share.process is not None]
    for share in running:
        if share.end is not None:
            share.end.close()  # what it tells now is read by nobody
    for process in processes:
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGINT)
    try:
        for process in processes:
            process.join(GRACE)
    finally:
        for process in processes:
            process.kill()
            process.join()


def _run(call: Callable[[Line], list[EvalLog]], end: Connection) -> None:
    """A share's process."""
    os.setsid()  # a terminal sends Ctrl-C to the whole group
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        told = outcome(call, _Pipe(end))
    except KeyboardInterrupt:
        told = Stopped()
    with suppress(OSError):
        end.send(told)


def _end_with_parent() -> None:
    """Where the parent was killed nobody hears of this process, and another command may take up its logs."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
