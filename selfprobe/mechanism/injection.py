"""Reading a model into which a thought was put: vectors of concepts, hooks that add them, and what
the next token says.

Nothing is generated: a conversation whose earlier turn is a note is read once under many vectors,
one a row, and each question is read from the memory of that turn. By default the vectors are added
on the note alone, so nothing is added where the answer is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from selfprobe.data import load
from selfprobe.mechanism import injection_prompts as prompts
from selfprobe.mechanism.injection_prompts import CONTROL_COUNTS, VectorKind
from selfprobe.mechanism.lower_blocks import recorded_passes, replayed_passes
from selfprobe.probes.forward import (
    MODEL_FAILURES,
    Float32Array,
    hidden_of,
    model_lock,
    model_output,
    with_hidden,
)
from selfprobe.probes.model import LocalModel, decoder_blocks
from selfprobe.probes.tokens import opened_chat, opened_conversation

WRITTEN_TOKENS = 24
"""Length of the text that is written under a vector, for the reader."""
FEWEST_SHARED_TOKENS = 5
"""Number of tokens from which it pays to read what questions begin with together once."""
TOKENS_WITH_LOGITS = 8
"""Number of tokens of the neutral text whose logits are held at the same time."""
CACHE_COPIES = 3
"""Copies of the memory of a note and a question that are held beside that of the note, where it
cannot be cut back.
"""
LOGIT_COPIES = 3
CACHE_TOLERANCE = 0.02
"""Largest difference of a logit that is read from a copied cache, or above blocks that are not run,
from one that is read in full, in standard deviations of the logits.
"""


@dataclass(frozen=True)
class Conversation:
    """A note that was read, as tokens, and where the vectors are added."""

    text: str
    tokens: tuple[int, ...]
    note_start: int
    """Number of tokens before the note; the first token of all is always among them."""
    turns: tuple[dict[str, str], ...]
    sentence_spans: tuple[tuple[int, int], ...] = ()
    """First token of each sentence, and the one after its last; none of a plain note."""
    token_rows: tuple[tuple[int, ...], ...] = ()
    """Tokens of each row where several notes are read together; none where all rows are alike."""


def read_together(conversations: Sequence[Conversation], most_rows: int) -> list[list[int]]:
    """Indices of conversations that can be read as rows of one, as many tokens each; at most
    `most_rows` together.
    """
    groups_by_length: dict[tuple[int, int], list[list[int]]] = {}
    for index, conversation in enumerate(conversations):
        key = (len(conversation.tokens), conversation.note_start)
        groups = groups_by_length.setdefault(key, [[]])
        if len(groups[-1]) == most_rows:
            groups.append([])
        groups[-1].append(index)
    return [group for groups in groups_by_length.values() for group in groups]


@dataclass(frozen=True)
class CellReading:
    """What a model says under each vector, at one block and dose, after one note."""

    log_odds: Float32Array
    """Log-odds of Yes, [vector, question]."""
    masses: Float32Array
    """P(Yes) + P(No), [vector, question]."""
    names: Float32Array
    """Log-probabilities of words, [vector, frame, word]."""
    neutral: Float32Array
    """Mean log-probability of a token of a neutral text, [vector]."""


@dataclass(frozen=True)
class SentenceReading:
    """Which sentence a model chooses under each vector, at one block and dose, after one note."""

    log_probs: Float32Array
    """Log-probabilities of the sentences' numbers, [row, question, sentence]."""
    masses: Float32Array
    """Probability of all numbers together, [row, question]."""


@dataclass(frozen=True)
class Injection:
    """Vectors that are added at a block."""

    block: int
    vectors: Tensor
    """[row, width], at their full length."""
    everywhere: bool = False
    """Whether they are added on all later tokens too."""
    spans: tuple[tuple[int, int], ...] = ()
    """First token under each row's vector, and the one after its last. Default: the whole note."""


Reading = Callable[[Conversation, Injection | None, int], Any]
"""What is read of a conversation, under one vector a row (or none), in a number of rows."""


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
        self.shared_blocks: tuple[int, ...] = ()
        """Blocks under whose vectors they and all below are run once; see `share_lower_blocks`."""
        self._recording: tuple[Conversation, dict[int, list[Any]]] | None = None

    def tokens_of(self, text: str) -> list[int]:
        """Tokens of a text, without special ones that it does not hold."""
        tokens: list[int] = self.judge.tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    def conversation(self, note: str) -> Conversation:
        """The turns in which a note is read.

        Raises:
            ValueError: The chat template cuts or reorders them.
        """
        return self._conversation(f"{prompts.INTRODUCTION}{note}", ())

    def sentence_conversation(self, sentences: Sequence[str]) -> Conversation:
        """The turns in which numbered sentences are read.

        Raises:
            ValueError: The chat template cuts or reorders them.
        """
        return self._conversation(prompts.numbered_sentences(sentences), sentences)

    def _conversation(self, content: str, sentences: Sequence[str]) -> Conversation:
        turns = (
            {"role": "user", "content": content},
            {"role": "assistant", "content": prompts.ACKNOWLEDGEMENT},
        )
        text = self._rendered(turns)
        continued_text = self._rendered((*turns, {"role": "user", "content": prompts.NEUTRAL_TEXT}))
        if not continued_text.startswith(text):
            # Qwen3 writes an empty thought into the last reply, and into no earlier one
            reply_start = continued_text.find(prompts.ACKNOWLEDGEMENT)
            text = continued_text[: reply_start + len(prompts.ACKNOWLEDGEMENT)]
        content_start = text.find(content)
        if content_start < 0 or text.find(prompts.ACKNOWLEDGEMENT, content_start) < 0:
            raise self._unkept_turn()
        note_start = len(self.tokens_of(text[:content_start]))
        spans = []
        for sentence in sentences:
            sentence_start = text.index(sentence, content_start)
            sentence_end = sentence_start + len(sentence)
            # a sentence's first token holds the space before it
            first_token = len(self.tokens_of(text[:sentence_start].rstrip()))
            end_token = len(self.tokens_of(text[:sentence_end]))
            spans.append((first_token, end_token))
        tokens = tuple(self.tokens_of(text))
        return Conversation(text, tokens, max(note_start, 1), turns, tuple(spans))

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

    # ---- blocks that are run once

    def share_lower_blocks(self, conversation: Conversation, blocks: Sequence[int]) -> None:
        """Run the blocks up to a vector's once for all vectors, where that gives what a reading in
        full gives.

        Args:
            conversation: What is read to see that.
            blocks: Blocks after which vectors are added.
        """
        edge_blocks = sorted({min(blocks), max(blocks)})
        if all(self._reads_alike(conversation, block) for block in edge_blocks):
            self.shared_blocks = tuple(blocks)

    def _reads_alike(self, conversation: Conversation, block: int) -> bool:
        """Whether an answer under a vector is the same where the blocks up to it are not run."""
        tokens = self.asked_after(conversation, self.questions[0])
        layers = decoder_blocks(self.judge.model)

        def answer(injection: Injection | None, rows: int) -> Tensor:
            cache = self.read_note(conversation, injection, rows)
            return self.read_after(cache, tokens, injection, rows, 1)[:, -1]

        try:
            with recorded_passes(layers, [block]) as passes:
                answer(None, 1)
            note_states = hidden_of(passes[block][0])[0, conversation.note_start :]
            disturbance = note_states.flip(-1).mean(0).float()
            vectors = torch.stack([torch.zeros_like(disturbance), disturbance])
            injection = Injection(block, vectors)
            whole = answer(injection, 2)
            with model_lock(self.judge.model), replayed_passes(layers, block, passes[block]):
                shared = answer(injection, 2)
        except MODEL_FAILURES:
            return False
        difference = float((shared - whole).abs().max())
        return difference <= CACHE_TOLERANCE * float(whole.std())

    @contextmanager
    def _above_shared_blocks(
        self, conversation: Conversation, injection: Injection | None, read: Reading
    ) -> Iterator[None]:
        """A reading under vectors, in which the blocks up to theirs are not run again."""
        if injection is None or injection.block not in self.shared_blocks:
            yield
            return
        layers = decoder_blocks(self.judge.model)
        with model_lock(self.judge.model):
            passes = self._passes_without_vector(conversation, read)
            with replayed_passes(layers, injection.block, passes[injection.block]):
                yield

    def _passes_without_vector(
        self, conversation: Conversation, read: Reading
    ) -> dict[int, list[Any]]:
        """What the blocks return in a reading without a vector; that of the last conversation is
        kept.
        """
        if self._recording is None or self._recording[0] != conversation:
            layers = decoder_blocks(self.judge.model)
            with recorded_passes(layers, self.shared_blocks) as passes:
                read(conversation, None, 1)
            self._recording = (conversation, passes)
        return self._recording[1]

    # ---- reading

    def residual_states(self, tokens: Sequence[int], blocks: Sequence[int]) -> dict[int, Tensor]:
        """States after blocks, block → [token, width] in float32."""
        states: dict[int, Tensor] = {}

        def keep(block: int) -> Any:
            def hook(_module: Any, _inputs: Any, output: Any) -> None:
                states[block] = hidden_of(output)[0].float().cpu()

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
        self,
        tokens: Sequence[int] | Sequence[Sequence[int]],
        *,
        rows: int,
        cache: Any = None,
        keep: int = 1,
    ) -> Any:
        """A forward pass of tokens that all rows have, or of each row's own."""
        ids = torch.tensor(tokens, device=self.judge.device).expand(rows, -1)
        with torch.inference_mode(), model_lock(self.judge.model):
            return model_output(
                self.judge, input_ids=ids, past_key_values=cache, use_cache=True, keep=keep
            )

    @contextmanager
    def _adding(self, injection: Injection | None, marks: Tensor) -> Iterator[None]:
        """A block in which vectors are added on the tokens of one forward that are marked, [row or
        1, token].
        """
        if injection is None or not bool(marks.any()):
            yield
            return

        def hook(_module: Any, _inputs: Any, output: Any) -> Any:
            hidden = hidden_of(output)
            vectors = injection.vectors.to(hidden.device, hidden.dtype)
            marked = marks.to(hidden.device, hidden.dtype)
            return with_hidden(output, hidden + vectors[:, None, :] * marked[:, :, None])

        block = decoder_blocks(self.judge.model)[injection.block]
        handle = block.register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    def read_note(self, conversation: Conversation, injection: Injection | None, rows: int) -> Any:
        """The cache of a note that was read under vectors."""
        places = torch.arange(len(conversation.tokens))[None]
        marks = places >= conversation.note_start
        if injection is not None and injection.spans:
            spans = torch.tensor(injection.spans)
            marks = (places >= spans[:, :1]) & (places < spans[:, 1:])
        tokens = conversation.token_rows or conversation.tokens
        with self._adding(injection, marks):
            return self._forward(tokens, rows=rows).past_key_values

    def read_after(
        self, cache: Any, tokens: Sequence[int], injection: Injection | None, rows: int, keep: int
    ) -> Tensor:
        """Logits [row, kept token, vocabulary] of what follows a note; its cache stays as it is."""
        with continued(cache) as branch_cache:
            return self.read_on(branch_cache, tokens, injection, rows, keep)

    def read_on(
        self, cache: Any, tokens: Sequence[int], injection: Injection | None, rows: int, keep: int
    ) -> Tensor:
        """The same, and the cache holds these tokens too afterwards."""
        with self._adding(injection, _later_marks(injection, len(tokens))):
            output = self._forward(tokens, rows=rows, cache=cache, keep=keep)
        logits: Tensor = output.logits
        return logits.float()

    def read_cell(
        self, conversation: Conversation, injection: Injection | None, rows: int
    ) -> CellReading:
        """Everything that is asked after one note, under one vector a row."""
        with self._above_shared_blocks(conversation, injection, self._read_cell):
            return self._read_cell(conversation, injection, rows)

    def _read_cell(
        self, conversation: Conversation, injection: Injection | None, rows: int
    ) -> CellReading:
        cache = self.read_note(conversation, injection, rows)
        log_odds: list[Any] = [None] * len(self.questions)
        masses: list[Any] = [None] * len(self.questions)
        names: list[Any] = [None] * len(self.naming_questions)
        branches = self.question_branches(conversation)
        for question, logits in self._read_branches(cache, branches, injection, rows):
            if question < len(self.questions):
                log_odds[question], masses[question] = self._yes_no(logits)
            else:
                names[question - len(self.questions)] = self._word_log_probs(logits)
        return CellReading(
            np.stack(log_odds, axis=1),
            np.stack(masses, axis=1),
            np.stack(names, axis=1),
            self._read_neutral_text(conversation, cache, injection, rows),
        )

    def question_branches(self, conversation: Conversation) -> list["TokenBranch"]:
        """What is asked after a note, by the number of the question; those of names follow the
        others.
        """
        questions = [*self.questions, *self.naming_questions]
        tokens = [self.asked_after(conversation, question) for question in questions]
        return token_branches(dict(enumerate(tokens)))

    def neutral_tokens(self, conversation: Conversation) -> list[int]:
        """The neutral text as the next turn after a note."""
        return self.asked_after(
            conversation, prompts.AskedQuestion("neutral", prompts.NEUTRAL_TEXT)
        )

    def _read_branches(
        self,
        cache: Any,
        branches: Sequence["TokenBranch"],
        injection: Injection | None,
        rows: int,
    ) -> Iterator[tuple[int, Tensor]]:
        """Each question with the logits [row, vocabulary] after it; what questions begin with
        together is read once.
        """
        for branch in branches:
            with continued(cache) as branch_cache:
                logits = self.read_on(branch_cache, branch.tokens, injection, rows, 1)[:, -1]
                if branch.question is not None:
                    yield branch.question, logits
                yield from self._read_branches(branch_cache, branch.branches, injection, rows)

    def _read_neutral_text(
        self, conversation: Conversation, cache: Any, injection: Injection | None, rows: int
    ) -> Float32Array:
        """Mean log-probability of a token of a neutral text after the first, [row]; a few tokens at
        a time, since logits of all take more memory than the model.
        """
        tokens = self.neutral_tokens(conversation)
        sums = torch.zeros(rows)
        with continued(cache) as text_cache:
            for start in range(0, len(tokens) - 1, TOKENS_WITH_LOGITS):
                read_tokens = tokens[start : min(start + TOKENS_WITH_LOGITS, len(tokens) - 1)]
                next_tokens = tokens[start + 1 : start + 1 + len(read_tokens)]
                logits = self.read_on(text_cache, read_tokens, injection, rows, len(read_tokens))
                targets = torch.tensor(next_tokens, device=logits.device)
                picked = logits.gather(2, targets[None, :, None].expand(rows, -1, 1))[..., 0]
                sums += (picked - logits.logsumexp(-1)).sum(1).cpu()
        means: Float32Array = (sums / (len(tokens) - 1)).numpy()
        return means

    def read_sentences(
        self, conversation: Conversation, injection: Injection | None, rows: int
    ) -> SentenceReading:
        """Which sentence is chosen at each question, with one vector a row."""
        with self._above_shared_blocks(conversation, injection, self._read_sentences):
            return self._read_sentences(conversation, injection, rows)

    def _read_sentences(
        self, conversation: Conversation, injection: Injection | None, rows: int
    ) -> SentenceReading:
        cache = self.read_note(conversation, injection, rows)
        _, number_tokens = self._sentence_numbers()
        questions = prompts.sentence_questions()
        by_question: list[Any] = [None] * len(questions)
        branches = self.sentence_branches(conversation)
        for question, logits in self._read_branches(cache, branches, injection, rows):
            by_question[question] = logits.log_softmax(-1)[:, number_tokens].cpu().numpy()
        log_probs: Float32Array = np.stack(by_question, axis=1)
        return SentenceReading(log_probs, np.exp(log_probs).sum(-1))

    def sentence_branches(self, conversation: Conversation) -> list["TokenBranch"]:
        """What is asked after the sentences, up to the number of one."""
        opening_tokens, _ = self._sentence_numbers()
        tokens_of_questions = {}
        for number, question in enumerate(prompts.sentence_questions()):
            tokens = self.asked_after(conversation, question)
            tokens_of_questions[number] = [*tokens, *opening_tokens]
        return token_branches(tokens_of_questions)

    def _sentence_numbers(self) -> tuple[list[int], list[int]]:
        """What all numbers begin with (a space that is a token of its own), and their last tokens.

        Raises:
            ValueError: A number has several tokens of its own.
        """
        numbers = range(1, prompts.SENTENCE_COUNT + 1)
        tokens_of_numbers = [self.tokens_of(f" {number}") for number in numbers]
        openings = {tuple(tokens[:-1]) for tokens in tokens_of_numbers}
        last_tokens = [tokens[-1] for tokens in tokens_of_numbers]
        if len(openings) > 1 or len(set(last_tokens)) < len(last_tokens):
            raise ValueError(
                f"the numbers 1 to {prompts.SENTENCE_COUNT} are not one token each of "
                f"{self.judge.name}: use --where earlier"
            )
        return list(openings.pop()), last_tokens

    def _yes_no(self, logits: Tensor) -> tuple[Float32Array, Float32Array]:
        """Log-odds of Yes and P(Yes) + P(No), each [row]."""
        log_probs = logits.log_softmax(-1)
        yes = log_probs[:, self.yes_tokens].logsumexp(-1)
        no = log_probs[:, self.no_tokens].logsumexp(-1)
        return (yes - no).cpu().numpy(), (yes.exp() + no.exp()).cpu().numpy()

    def _word_log_probs(self, logits: Tensor) -> Float32Array:
        """Log-probabilities of the words, [row, word]."""
        log_probs: Float32Array = logits.log_softmax(-1)[:, self.word_tokens].cpu().numpy()
        return log_probs

    def written_texts(
        self, conversation: Conversation, injection: Injection, rows: int
    ) -> list[str]:
        """What is written after a note under each vector, always the most probable token."""
        cache = self.read_note(conversation, injection, rows)
        question = prompts.AskedQuestion("write", prompts.WRITING_PROMPT)
        tokens = self.asked_after(conversation, question)
        with self._adding(injection, _later_marks(injection, len(tokens))):
            output = self._forward(tokens, rows=rows, cache=cache)
        written = [output.logits[:, -1].argmax(-1)]
        for _ in range(WRITTEN_TOKENS - 1):
            with (
                self._adding(injection, _later_marks(injection, 1)),
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
        texts: list[str] = []
        for row_tokens in torch.stack(written, dim=1).tolist():
            text_tokens = row_tokens[: row_tokens.index(end)] if end in row_tokens else row_tokens
            text = self.judge.tokenizer.decode(text_tokens, skip_special_tokens=True)
            texts.append(text)
        return texts

    def read_texts(self, texts: Sequence[str]) -> Float32Array:
        """Log-probabilities of the words as what each text is about, [text, word]."""
        rows = []
        for text in texts:
            question = prompts.READER_PROMPT.format(text=text)
            reader_prompt = (
                opened_chat(self.judge.tokenizer, question, self.judge.chat) + prompts.NAMED_AFTER
            )
            logits = self._forward(self.tokens_of(reader_prompt), rows=1).logits.float()
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


@contextmanager
def continued(cache: Any) -> Iterator[Any]:
    """A cache to read on with; the one that is given is as before afterwards.

    One that keeps all tokens is read on itself and cut back; of any other there is a copy.
    """
    if not keeps_all_tokens(cache):
        yield deepcopy(cache)
        return
    token_count = cache.get_seq_length()
    yield cache
    cache.crop(token_count - cache.get_seq_length())


def keeps_all_tokens(cache: Any) -> bool:
    """Whether all layers of a cache are of plain attention, so that it can be cut back."""
    is_growing = isinstance(cache, DynamicCache)
    return is_growing and all(type(layer) is DynamicLayer for layer in cache.layers)


def _later_marks(injection: Injection | None, count: int) -> Tensor:
    """Marks [1, token] of tokens after a note."""
    is_under_vectors = injection is not None and injection.everywhere
    return torch.full((1, count), is_under_vectors)


@dataclass(frozen=True)
class TokenBranch:
    """Tokens that some questions go on with together, and what follows them in each."""

    tokens: tuple[int, ...]
    branches: tuple["TokenBranch", ...] = ()
    question: int | None = None
    """The question that ends here; None where several go on."""

    @property
    def token_count(self) -> int:
        """Number of tokens in it and in what follows."""
        return len(self.tokens) + sum(branch.token_count for branch in self.branches)

    @property
    def longest(self) -> int:
        """Number of tokens on the longest way through it."""
        return len(self.tokens) + max((branch.longest for branch in self.branches), default=0)


def token_branches(tokens_of_questions: Mapping[int, Sequence[int]]) -> list[TokenBranch]:
    """Questions as branches, so that what several begin with is read once.

    Args:
        tokens_of_questions: Question → its tokens.
    """
    return _branches_after(tokens_of_questions, 0)


def _branches_after(
    tokens_of_questions: Mapping[int, Sequence[int]], shared_count: int
) -> list[TokenBranch]:
    """Branches of questions that are known to begin with as many tokens together, too few for a
    branch of their own.
    """
    groups: dict[int, dict[int, Sequence[int]]] = {}
    for question, tokens in tokens_of_questions.items():
        groups.setdefault(tokens[shared_count], {})[question] = tokens
    branches = []
    for group in groups.values():
        length = _shared_length(list(group.values()))
        if len(group) > 1 and length >= FEWEST_SHARED_TOKENS:
            further_tokens = {question: tokens[length:] for question, tokens in group.items()}
            shared_tokens = next(iter(group.values()))[:length]
            branches.append(
                TokenBranch(tuple(shared_tokens), tuple(_branches_after(further_tokens, 0)))
            )
        elif len(group) > 1 and length > shared_count:
            branches += _branches_after(group, length)
        else:
            branches += [
                TokenBranch(tuple(tokens), question=question) for question, tokens in group.items()
            ]
    return branches


def _shared_length(token_lists: Sequence[Sequence[int]]) -> int:
    """Number of tokens with which all begin, at least one less than the shortest has."""
    shortest = min(len(tokens) for tokens in token_lists)
    for place in range(shortest - 1):
        if len({tokens[place] for tokens in token_lists}) > 1:
            return place
    return shortest - 1


@dataclass(frozen=True)
class ReadingSpeed:
    """Cost of reading some rows together."""

    seconds_a_token: float
    """Seconds that one row's token takes."""
    cpu_seconds_a_token: float
    """CPU time of one row's token, on all cores."""
    memory: int
    """Bytes beyond the weights."""


def measured_speed(
    asked: AskedModel,
    conversation: Conversation,
    branches: Sequence[TokenBranch],
    rows: int,
    block: int | None = None,
) -> ReadingSpeed:
    """Cost of reading as many rows, by one note and the questions that begin as the first one.

    Args:
        asked: The model.
        conversation: The note.
        branches: What is asked after it.
        rows: Number of rows.
        block: Block after which each row gets a vector. Default: there is none.
    """
    branch = branches[:1]
    layers = decoder_blocks(asked.judge.model)
    shared_blocks = [block] if block is not None and block in asked.shared_blocks else []
    with recorded_passes(layers, shared_blocks) as passes:  # a first reading is slower, too
        _read_branch(asked, conversation, branch, 1)
    sharing: Any = nullcontext()
    if block is not None and shared_blocks:
        sharing = replayed_passes(layers, block, passes[block])
    with model_lock(asked.judge.model), sharing:
        start, cpu_start = perf_counter(), process_time()
        cache, logit_count = _read_branch(asked, conversation, branch, rows)
        seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_start
    tokens = len(conversation.tokens) + branch[0].token_count
    note_bytes = _byte_count(cache)
    longest = len(conversation.tokens) + max(item.longest for item in branch)
    question_bytes = note_bytes * longest // len(conversation.tokens)
    logit_bytes = 4 * logit_count * TOKENS_WITH_LOGITS
    cache_bytes = question_bytes
    if not keeps_all_tokens(cache):
        cache_bytes = note_bytes + CACHE_COPIES * question_bytes
    memory = cache_bytes + LOGIT_COPIES * logit_bytes
    row_tokens = rows * tokens
    return ReadingSpeed(seconds / row_tokens, cpu_seconds / row_tokens, memory)


def _read_branch(
    asked: AskedModel, conversation: Conversation, branch: Sequence[TokenBranch], rows: int
) -> tuple[Any, int]:
    """The cache of a note after which a branch was read, and the size of the last logits."""
    cache = asked.read_note(conversation, None, rows)
    logit_count = 0
    for _, logits in asked._read_branches(cache, branch, None, rows):
        logit_count = logits.numel()
    return cache, logit_count


def _byte_count(cache: Any) -> int:
    """Bytes of the keys and values in a cache."""
    tensors = [
        tensor
        for layer in cache.layers
        for tensor in vars(layer).values()
        if isinstance(tensor, Tensor)
    ]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


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
