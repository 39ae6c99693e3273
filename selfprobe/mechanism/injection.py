"""Reading a model into which a thought was put: vectors of concepts, hooks that add them, and what
the next token says.

Nothing is generated: a conversation whose earlier turn is a note is read once under many vectors,
one a row, and each question is read from the memory of that turn. By default the vectors are added
on the note alone, so nothing is added where the answer is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from selfprobe.data import load
from selfprobe.mechanism import injection_prompts as prompts
from selfprobe.mechanism.injection_prompts import CONTROL_COUNTS, VectorKind
from selfprobe.probes.forward import model_lock, model_output
from selfprobe.probes.model import LocalModel, decoder_blocks
from selfprobe.probes.tokens import opened_chat, opened_conversation

Floats = npt.NDArray[np.float32]

WRITTEN_TOKENS = 24
"""Length of the text that is written under a vector, for the reader."""
CACHE_TOLERANCE = 0.02
"""Largest difference of a logit that is read from a copied cache from one that is read in full, in
standard deviations of the logits.
"""


@dataclass(frozen=True)
class Conversation:
    """A note that was read, as tokens, and where the vectors are added."""

    text: str
    tokens: tuple[int, ...]
    note_start: int
    """Number of tokens before the note; the first token of all is always among them."""
    turns: tuple[dict[str, str], ...]


@dataclass(frozen=True)
class CellReading:
    """What a model says under each vector, at one block and dose, after one note."""

    log_odds: Floats
    """Log-odds of Yes, [vector, question]."""
    masses: Floats
    """P(Yes) + P(No), [vector, question]."""
    names: Floats
    """Log-probabilities of words, [vector, frame, word]."""
    neutral: Floats
    """Mean log-probability of a token of a neutral text, [vector]."""


@dataclass(frozen=True)
class Injection:
    """Vectors that are added at a block."""

    block: int
    vectors: Tensor
    """[row, width], at their full length."""
    everywhere: bool = False
    """Whether they are added on all later tokens too."""


class AskedModel:
    """A model with the questions as its tokens.

    Args:
        judge: The model.
        words: Words that can be named, each one token after a space.

    Raises:
        ValueError: Its blocks have several residual streams, or Yes and No begin alike.
    """

    def __init__(self, judge: LocalModel, words: Sequence[str]) -> None:
        if judge.stream is not None:
            raise ValueError(
                f"{judge.name} has several residual streams, and a vector is added to one: use a "
                "model with one"
            )
        self.judge = judge
        self.words = tuple(words)
        self.word_tokens = [self.tokens_of(f" {word}")[0] for word in words]
        self.yes_tokens = sorted({self.tokens_of(word)[0] for word in prompts.YES_WORDS})
        self.no_tokens = sorted({self.tokens_of(word)[0] for word in prompts.NO_WORDS})
        if set(self.yes_tokens) & set(self.no_tokens):
            raise ValueError(f"Yes and No begin with the same token of {judge.name}: use another")
        self.questions = prompts.yes_no_questions()
        self.naming_questions = prompts.naming_questions()

    def tokens_of(self, text: str) -> list[int]:
        """Tokens of a text, without special ones that it does not hold."""
        tokens: list[int] = self.judge.tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    def conversation(self, note: str) -> Conversation:
        """The turns in which a note is read.

        Raises:
            ValueError: The chat template cuts or reorders them.
        """
        turns = (
            {"role": "user", "content": f"{prompts.INTRODUCTION}{note}"},
            {"role": "assistant", "content": prompts.ACKNOWLEDGEMENT},
        )
        text = self._rendered(turns)
        note_place = text.find(f"{prompts.INTRODUCTION}{note}")
        if note_place < 0 or text.find(prompts.ACKNOWLEDGEMENT, note_place) < 0:
            raise self._unkept_turn()
        note_start = len(self.tokens_of(text[:note_place]))
        return Conversation(text, tuple(self.tokens_of(text)), max(note_start, 1), turns)

    def asked_after(self, conversation: Conversation, question: prompts.AskedQuestion) -> list[int]:
        """Tokens of a question as the next turn, with the beginning of its reply.

        Raises:
            ValueError: The chat template changes the earlier turn.
        """
        turns = (*conversation.turns, {"role": "user", "content": question.text})
        text = self._rendered(turns, opens_reply=True)
        if not text.startswith(conversation.text):
            raise self._unkept_turn()
        return self.tokens_of(text[len(conversation.text) :] + question.reply_opening)

    def _rendered(self, turns: Sequence[Mapping[str, str]], *, opens_reply: bool = False) -> str:
        return opened_conversation(
            self.judge.tokenizer, turns, self.judge.chat, opens_reply=opens_reply
        )

    def _unkept_turn(self) -> ValueError:
        return ValueError(
            f"the chat template of {self.judge.name} cuts or reorders an earlier turn, so nothing "
            "can be put into it: use a model whose template keeps a conversation as it is"
        )

    # ---- reading

    def residual_states(self, tokens: Sequence[int], blocks: Sequence[int]) -> dict[int, Tensor]:
        """States after blocks, block → [token, width] in float32."""
        states: dict[int, Tensor] = {}

        def keep(block: int) -> Any:
            def hook(_module: Any, _inputs: Any, output: Any) -> None:
                states[block] = _hidden(output)[0].float().cpu()

            return hook

        layers = decoder_blocks(self.judge.model)
        handles = [layers[block].register_forward_hook(keep(block)) for block in blocks]
        try:
            self._forward(tokens, rows=1)
        finally:
            for handle in handles:
                handle.remove()
        return states

    def mean_lengths(self, conversation: Conversation, blocks: Sequence[int]) -> dict[int, float]:
        """Mean length of the states of the note, block → length."""
        states = self.residual_states(conversation.tokens, blocks)
        return {
            block: float(state[conversation.note_start :].norm(dim=1).mean())
            for block, state in states.items()
        }

    def _forward(
        self, tokens: Sequence[int], *, rows: int, cache: Any = None, keep: int = 1
    ) -> Any:
        ids = torch.tensor([list(tokens)], device=self.judge.device).expand(rows, -1)
        with torch.inference_mode(), model_lock(self.judge.model):
            return model_output(
                self.judge, input_ids=ids, past_key_values=cache, use_cache=True, keep=keep
            )

    @contextmanager
    def _adding(self, injection: Injection | None, added_tokens: Sequence[bool]) -> Iterator[None]:
        """A block in which vectors are added on the tokens of one forward that are marked."""
        if injection is None or not any(added_tokens):
            yield
            return
        marks = torch.tensor(added_tokens)

        def hook(_module: Any, _inputs: Any, output: Any) -> Any:
            hidden = _hidden(output)
            vectors = injection.vectors.to(hidden.device, hidden.dtype)
            marked = marks.to(hidden.device, hidden.dtype)
            hidden = hidden + vectors[:, None, :] * marked[None, :, None]
            return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

        block = decoder_blocks(self.judge.model)[injection.block]
        handle = block.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def read_note(self, conversation: Conversation, injection: Injection | None, rows: int) -> Any:
        """The cache of a note that was read under vectors."""
        length = len(conversation.tokens)
        marks = [position >= conversation.note_start for position in range(length)]
        with self._adding(injection, marks):
            return self._forward(conversation.tokens, rows=rows).past_key_values

    def read_after(
        self, cache: Any, tokens: Sequence[int], injection: Injection | None, rows: int, keep: int
    ) -> Tensor:
        """Logits [row, kept token, vocabulary] of what follows a note, from a copy of its cache."""
        marks = [bool(injection and injection.everywhere)] * len(tokens)
        with self._adding(injection, marks):
            output = self._forward(tokens, rows=rows, cache=deepcopy(cache), keep=keep)
        logits: Tensor = output.logits
        return logits.float()

    def read_cell(
        self, conversation: Conversation, injection: Injection | None, rows: int
    ) -> CellReading:
        """Everything that is asked after one note, under one vector a row."""
        cache = self.read_note(conversation, injection, rows)
        log_odds, masses = [], []
        for question in self.questions:
            tokens = self.asked_after(conversation, question)
            logits = self.read_after(cache, tokens, injection, rows, 1)
            odds, mass = self._yes_no(logits[:, -1])
            log_odds.append(odds)
            masses.append(mass)
        names = []
        for question in self.naming_questions:
            tokens = self.asked_after(conversation, question)
            logits = self.read_after(cache, tokens, injection, rows, 1)
            names.append(self._word_log_probs(logits[:, -1]))
        neutral_question = prompts.AskedQuestion("neutral", prompts.NEUTRAL_TEXT)
        neutral_tokens = self.asked_after(conversation, neutral_question)
        neutral_logits = self.read_after(
            cache, neutral_tokens, injection, rows, len(neutral_tokens)
        )
        return CellReading(
            np.stack(log_odds, axis=1),
            np.stack(masses, axis=1),
            np.stack(names, axis=1),
            _mean_log_prob(neutral_logits, neutral_tokens),
        )

    def _yes_no(self, logits: Tensor) -> tuple[Floats, Floats]:
        """Log-odds of Yes and P(Yes) + P(No), each [row]."""
        log_probs = logits.log_softmax(-1)
        yes = log_probs[:, self.yes_tokens].logsumexp(-1)
        no = log_probs[:, self.no_tokens].logsumexp(-1)
        return (yes - no).cpu().numpy(), (yes.exp() + no.exp()).cpu().numpy()

    def _word_log_probs(self, logits: Tensor) -> Floats:
        """Log-probabilities of the words, [row, word]."""
        log_probs: Floats = logits.log_softmax(-1)[:, self.word_tokens].cpu().numpy()
        return log_probs

    def written_texts(
        self, conversation: Conversation, injection: Injection, rows: int
    ) -> list[str]:
        """What is written after a note under each vector, always the most probable token."""
        cache = deepcopy(self.read_note(conversation, injection, rows))
        question = prompts.AskedQuestion("write", prompts.WRITING_PROMPT)
        tokens = self.asked_after(conversation, question)
        marks = [injection.everywhere]
        with self._adding(injection, marks * len(tokens)):
            output = self._forward(tokens, rows=rows, cache=cache)
        written = [output.logits[:, -1].argmax(-1)]
        for _ in range(WRITTEN_TOKENS - 1):
            with (
                self._adding(injection, marks),
                torch.inference_mode(),
                model_lock(self.judge.model),
            ):
                output = model_output(
                    self.judge,
                    input_ids=written[-1][:, None],
                    past_key_values=cache,
                    use_cache=True,
                    keep=1,
                )
            written.append(output.logits[:, -1].argmax(-1))
        end = self.judge.tokenizer.eos_token_id
        rows_of_tokens = [
            tokens[: tokens.index(end)] if end in tokens else tokens
            for tokens in torch.stack(written, dim=1).tolist()
        ]
        decode = self.judge.tokenizer.decode
        return [decode(tokens, skip_special_tokens=True) for tokens in rows_of_tokens]

    def read_texts(self, texts: Sequence[str]) -> Floats:
        """Log-probabilities of the words as what each text is about, [text, word]."""
        rows = []
        for text in texts:
            question = prompts.READER_PROMPT.format(text=text)
            asked = (
                opened_chat(self.judge.tokenizer, question, self.judge.chat) + prompts.NAMED_AFTER
            )
            logits = self._forward(self.tokens_of(asked), rows=1).logits.float()
            rows.append(self._word_log_probs(logits[:, -1])[0])
        return np.stack(rows)

    def check_cache(self, conversation: Conversation) -> None:
        """Hold what is read from a copied cache against a reading in full.

        Raises:
            ValueError: They differ, or the model has no cache that can be copied.
        """
        tokens = self.asked_after(conversation, self.questions[0])
        try:
            cache = self.read_note(conversation, None, 2)
            first = self.read_after(cache, tokens, None, 2, 1)[:, -1]
            again = self.read_after(cache, tokens, None, 2, 1)[:, -1]
        except (TypeError, AttributeError, RuntimeError, NotImplementedError) as error:
            raise ValueError(self._no_cache(str(error).partition("\n")[0])) from error
        whole = self._forward([*conversation.tokens, *tokens], rows=1).logits[:, -1].float()
        difference = max(float((first - whole).abs().max()), float((again - first).abs().max()))
        if not difference <= CACHE_TOLERANCE * float(whole.std()):
            raise ValueError(self._no_cache(f"logits differ by {difference:.2g}"))

    def _no_cache(self, reason: str) -> str:
        return (
            f"{self.judge.name} cannot go on from a copy of its cache ({reason}): use a model with "
            "plain attention"
        )


def _hidden(output: Any) -> Tensor:
    """The states in what a block returns."""
    hidden: Tensor = output[0] if isinstance(output, tuple) else output
    return hidden


def _mean_log_prob(logits: Tensor, tokens: Sequence[int]) -> Floats:
    """Mean log-probability of the tokens after the first, [row]."""
    targets = torch.tensor(list(tokens[1:]), device=logits.device)
    log_probs = logits[:, :-1].log_softmax(-1)
    picked = log_probs.gather(2, targets[None, :, None].expand(len(logits), -1, 1))
    means: Floats = picked.mean(dim=(1, 2)).cpu().numpy()
    return means


def concept_states(
    asked: AskedModel, words: Sequence[str], blocks: Sequence[int]
) -> dict[int, Tensor]:
    """State at the end of a request about each word, block → [word, width]."""
    states: dict[int, list[Tensor]] = {block: [] for block in blocks}
    for word in words:
        request = opened_chat(
            asked.judge.tokenizer, prompts.ELICITATION.format(word=word), asked.judge.chat
        )
        read_states = asked.residual_states(asked.tokens_of(request), blocks)
        for block, state in read_states.items():
            states[block].append(state[-1])
    return {block: torch.stack(word_states) for block, word_states in states.items()}


def base_words() -> list[str]:
    """The bundled words that a concept's state is compared with."""
    rows = load("injection", "word", ("use",)).rows
    return [str(row["word"]) for row in rows if row.get("use") == "base"]


def concept_vector(asked: AskedModel, word: str, base_words: Sequence[str], block: int) -> Tensor:
    """Direction of one concept at a block, at unit length."""
    states = concept_states(asked, [word, *base_words], [block])[block]
    return _unit(states[0] - states[1:].mean(0))


def injected_vectors(
    asked: AskedModel,
    concepts: Sequence[str],
    base_words: Sequence[str],
    blocks: Sequence[int],
    *,
    seed: int = 0,
) -> dict[int, Tensor]:
    """Vectors of unit length, block → [vector, width] in float32, in the order of `vector_labels`.

    A concept's vector is its state less the mean of the base words' states.

    Raises:
        ValueError: A concept has the state of the base words' mean, so it has no direction.
    """
    concept_of_block = concept_states(asked, concepts, blocks)
    base_of_block = concept_states(asked, base_words, blocks)
    by_block = {}
    for block in blocks:
        rng = np.random.default_rng((seed, block))
        base_states = base_of_block[block]
        vectors = [_unit(state - base_states.mean(0)) for state in concept_of_block[block]]
        width = base_states.shape[1]
        for _ in range(CONTROL_COUNTS[VectorKind.GAUSSIAN]):
            vectors.append(_unit(torch.tensor(rng.standard_normal(width), dtype=torch.float32)))
        for number in range(CONTROL_COUNTS[VectorKind.PERMUTED]):
            order = torch.tensor(rng.permutation(width))
            vectors.append(vectors[number % len(concepts)][order])
        for _ in range(CONTROL_COUNTS[VectorKind.WORDS]):
            first, second = rng.choice(len(base_words), 2, replace=False)
            vectors.append(_unit(base_states[first] - base_states[second]))
        by_block[block] = torch.stack(vectors)
    return by_block


def _unit(vector: Tensor) -> Tensor:
    """A vector at length 1.

    Raises:
        ValueError: It has no direction.
    """
    length = float(vector.norm())
    if not length > 0:
        raise ValueError(
            "a concept has no direction of its own: give more words to compare it with"
        )
    return vector / length
