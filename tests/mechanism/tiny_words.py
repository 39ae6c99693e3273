"""A tiny model with a word a token, so that labels are single tokens; and studies with a known
truth.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import logsumexp

from selfprobe.mechanism.induce import LABEL_WORDS, READ_COLUMNS, Labels
from selfprobe.probes.model import LocalModel, local_model
from selfprobe.probes.training import Training
from selfprobe.studies.induce import Induced, LabelReading, Material

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content | trim }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)
QUESTIONS = [f"Why is the {word} number {n} ?" for n, word in enumerate(["sky", "sea"] * 20)]
ASKED = (
    "What will your another assistant's first second word likely be ? Which comes in reply to this Predict the of answer "
    "you would give is text above Find were given Why sky sea number assistant s ' . ?"
)


def word_tokenizer(template: str | None = TEMPLATE) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<unk>", "<user>", "<system>", "<assistant>", "<end>"]
    words = [*special, *dict.fromkeys([*LABEL_WORDS, *ASKED.split(), *map(str, range(40))])]
    backend = Tokenizer(
        models.WordLevel(vocab={word: i for i, word in enumerate(words)}, unk_token="<unk>")
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.decoder = decoders.WordPiece()
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        additional_special_tokens=special[1:],
        padding_side="left",
    )
    made.chat_template = template
    return made


def tiny(family: str = "llama", *, template: str | None = TEMPLATE) -> LocalModel:
    """Two blocks with random weights."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    tokenizer = word_tokenizer(template)
    config = AutoConfig.for_model(
        family, vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=256, initializer_range=0.3,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    return local_model(model, tokenizer, name=f"tiny-{family}", revision="r0")


def saved(folder: Path, *, template: str | None = TEMPLATE) -> Path:
    judge = tiny()
    judge.model.save_pretrained(folder)
    word_tokenizer(template).save_pretrained(folder)
    return folder


MASS = 0.9
"""Probability that a planted model puts on the labels."""


def planted(
    strength: dict[str, float],
    *,
    taught: int = 40,
    held_out: int = 20,
    permuted: bool = False,
    seed: int = 0,
) -> Induced:
    """What a model would say that adds `strength` (in log-probability, by kind) to its own labels
    of each question.

    permuted: its answers to questions about itself follow the labels of other questions.
    """
    rng = np.random.default_rng(seed)
    labels = Labels(tuple(LABEL_WORDS[:50]), tuple(range(50)), tuple(range(50)))
    texts = tuple(f"question {i}" for i in range(taught + held_out))
    study = Material(texts, taught, labels, ())
    shape = (len(texts), len(READ_COLUMNS), 50)
    after = []
    for k in range(2):
        answers, said = study.answers(k), rng.normal(size=shape) * 0.3 - 6
        own = np.where(
            answers >= 0, answers, np.stack([rng.choice(50, 2, replace=False) for _ in texts])
        )
        other = np.concatenate([np.roll(own[:taught], 7, axis=0), np.roll(own[taught:], 7, axis=0)])
        for c, asked in enumerate(READ_COLUMNS):
            follows = other if permuted and asked.kind != "direct" else own
            said[np.arange(len(texts)), c, follows[:, asked.word]] += strength.get(asked.kind, 0.0)
        said += np.log(MASS) - logsumexp(said, axis=2, keepdims=True)
        after.append(LabelReading(k, said.astype(np.float32), answers))
    before = (rng.normal(size=shape) * 0.3 - 8).astype(np.float32)
    training = Training((4.0, 2.0, 0.1), 1.0, 100, 10, 1e6)
    return Induced("planted", study, before, tuple(after), (training, training))
