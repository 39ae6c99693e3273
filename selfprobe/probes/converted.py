"""A GGUF file as the folder of safetensors that transformers reads; made once, in the cache."""

import hashlib
import json
import logging
import shutil
import struct
import tempfile
from pathlib import Path

import torch

logger = logging.getLogger(__name__)


def converted(gguf: Path) -> Path:
    """The folder with `gguf`'s weights as float32 safetensors; made at the first call (about half a minute).

    `save_pretrained` refuses a model that was loaded from GGUF (its config says it is quantised), so a fresh
    model is built from the config without that note and takes over the weights.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from selfprobe.weights import cache_folder

    sha256 = _sha256(gguf)
    folder = cache_folder() / "converted" / f"{gguf.stem}-{sha256[:16]}"
    if (folder / "config.json").is_file():
        return folder
    logger.warning("converting %s to safetensors in %s (once)", gguf.name, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    except (IndexError, KeyError, OSError, ValueError, struct.error) as error:
        told = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise ValueError(f"{gguf} cannot be converted, as it is damaged or of a kind unknown here ({told})") from error
    settings = {k: v for k, v in model.config.to_dict().items() if k != "quantization_config"}
    fresh = AutoModelForCausalLM.from_config(type(model.config).from_dict(settings), dtype=torch.float32)
    fresh.load_state_dict(model.state_dict())
    fresh.tie_weights()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "model"
        fresh.save_pretrained(made)
        tokenizer.save_pretrained(made)
        (made / "source.json").write_text(json.dumps({"gguf": gguf.name, "sha256": sha256}))
        try:
            made.rename(folder)
        except OSError:  # another process was faster: its folder is the same
            if not (folder / "config.json").is_file():
                raise
            shutil.rmtree(made)
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
