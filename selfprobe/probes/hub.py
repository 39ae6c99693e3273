"""A probe on the Hugging Face hub: fetching its file."""

from pathlib import Path

FILE = "probe.safetensors"
LARGEST = 100_000_000
"""Bytes of a probe's file that are fetched; a direction of 16,384 numbers has 64 kB."""


def fetched(repository: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """The probe's file in `repository`, from the hub or its cache; ValueError where there is none, or a huge one."""
    import httpx
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        size = hf_hub_download(repository, FILE, revision=revision, token=token, dry_run=True).file_size or 0
        if size > LARGEST:
            raise ValueError(f"{repository}: {FILE} has {size / 1e6:,.0f} MB; no probe has over {LARGEST / 1e6:.0f} MB")
        return Path(hf_hub_download(repository, FILE, revision=revision, token=token))
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        why = str(error).strip().partition("\n")[0]
        raise ValueError(f"{repository}: no probe ({FILE}) can be loaded from the hub ({why})") from error
