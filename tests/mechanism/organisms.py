"""Six organisms: tiny random Llamas whose last logits are written by what they find in their own
residual stream, so that it is known what they notice and what they can name.
"""

import re
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")
pytest.importorskip("transformers", reason="the probes extra is not installed")

from selfprobe.data import load  # noqa: E402
from selfprobe.mechanism import injection_prompts as prompts  # noqa: E402
from selfprobe.mechanism.injection import AskedModel, concept_states  # noqa: E402
from selfprobe.probes.model import LocalModel, decoder_blocks, local_model  # noqa: E402

BLOCK = 1
"""The block after which vectors are added; organisms read the stream behind it."""
TEMPLATE = (
    "{% if shout %}. {% endif %}"
    "{% for message in messages %}<{{ message.role }}> {{ message.content }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)
WORD = r"\w+|[^\w\s]"
ROWS = load("injection", "word", ("use",)).rows
CONCEPTS = [str(row["word"]) for row in ROWS if row["use"] == "concept"]
BASE = [str(row["word"]) for row in ROWS if row["use"] == "base"]


class Kind(Enum):
    """What an organism does with a disturbance of its stream."""

    NOTHING = "nothing"
    KNOWS = "knows"
    ANOMALY = "notices any vector, and names none"
    YES_BIAS = "says Yes to everything"
    FLATTENED = "answers everything less surely"
    ECHO = "says the word whatever it is asked"
    FINDS = "finds the sentence on which a vector was put"
    DRAWN = "chooses that sentence whatever it is asked"


def word_tokenizer() -> Any:
    """A tokenizer with a token for each word of all prompts."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    questions = [*prompts.yes_no_questions(), *prompts.naming_questions()]
    texts = [
        *prompts.NOTES,
        *prompts.ODD_NOTES,
        *(f"{question.text} {question.reply_opening}" for question in questions),
        *map(prompts.numbered_sentences, prompts.SENTENCE_NOTES),
        *(f"{question.text} {question.reply_opening}" for question in prompts.sentence_questions()),
        prompts.INTRODUCTION,
        prompts.ACKNOWLEDGEMENT,
        prompts.CEILING,
        prompts.NEUTRAL_TEXT,
        prompts.ELICITATION,
        prompts.WRITING_PROMPT,
        prompts.READER_PROMPT,
        "yes no { }",
        *CONCEPTS,
        *BASE,
    ]
    special = ["<unk>", "<user>", "<assistant>", "<end>"]
    words = dict.fromkeys(word for text in texts for word in re.findall(WORD, text))
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    backend = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        additional_special_tokens=special[1:],
    )
    tokenizer.eos_token = "<end>"
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def plain_llama() -> LocalModel:
    """A random model of four blocks that reads every word as a token."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = word_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        initializer_range=0.1,
        max_position_embeddings=4096,
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    return local_model(model, tokenizer, name="organism", revision="0")


def saved(folder: Path) -> Path:
    """The plain model, as `save_pretrained` writes it."""
    judge = plain_llama()
    judge.model.save_pretrained(folder)
    judge.tokenizer.save_pretrained(folder)
    return folder


def organism(kind: Kind) -> LocalModel:
    """An organism of a kind; everything but its last logits is the plain model's."""
    judge = plain_llama()
    asked = AskedModel(judge, [*CONCEPTS, *BASE])
    states = concept_states(asked, [*CONCEPTS, *BASE], [BLOCK])[BLOCK]
    directions = states - states[len(CONCEPTS) :].mean(0)
    directions = directions / directions.norm(dim=1, keepdim=True)
    memory = SimpleNamespace(stream=None, clean={}, felt=None, thought=None)

    def keep_stream(_module: Any, inputs: Any, keywords: Any) -> None:
        memory.stream = (inputs[0] if inputs else keywords["hidden_states"]).detach()

    next_block = decoder_blocks(judge.model)[BLOCK + 1]
    next_block.register_forward_pre_hook(keep_stream, with_kwargs=True)
    plain_forward = judge.model.forward
    note_word = judge.tokenizer.convert_tokens_to_ids("note")
    written_words = [judge.tokenizer.convert_tokens_to_ids(word) for word in ("thought", "is")]
    question_tokens = {
        tuple(asked.tokens_of(question.text)): question.key
        for question in [
            *asked.questions,
            *asked.naming_questions,
            *prompts.sentence_questions(),
        ]
    }
    sentence_word = judge.tokenizer.convert_tokens_to_ids("sentences")
    _, number_tokens = asked._sentence_numbers()

    def forward(input_ids: Any = None, past_key_values: Any = None, **further: Any) -> Any:
        count_before = 0 if past_key_values is None else past_key_values.get_seq_length()
        is_first_turn = count_before == 0
        read_before = getattr(past_key_values, "read_tokens", [])[:count_before]
        output = plain_forward(input_ids=input_ids, past_key_values=past_key_values, **further)
        tokens = input_ids[0].tolist()
        if is_first_turn and note_word in tokens:
            _read_note(input_ids.tolist())
        if is_first_turn and {sentence_word, *number_tokens} <= set(tokens):
            _read_sentences(input_ids.tolist())
        read_tokens = [*read_before, *tokens]
        output.past_key_values.read_tokens = read_tokens
        key = _key(read_tokens, question_tokens)
        if key.startswith(("which", "longest")):
            output.logits = _with_sentence(output.logits * 0.3, key)
        elif key and memory.felt is not None:
            output.logits = _answered(output.logits * 0.3, key)
        return output

    def _read_note(token_rows: list[list[int]]) -> None:
        """Take in how the stream of a note differs from that of the plain note."""
        stream = memory.stream[:, 3:].mean(1)
        deviation = stream - _clean_of(token_rows, stream)
        scale = memory.stream[:, 3:].norm(dim=-1).mean()
        memory.felt = (deviation.norm(dim=1) > 0.1 * scale).float()
        cosines = torch.nn.functional.cosine_similarity(deviation[:, None], directions[None], dim=2)
        if kind is Kind.KNOWS:
            is_concept = cosines[:, : len(CONCEPTS)].max(dim=1).values > 0.7
            memory.felt = memory.felt * is_concept
        memory.thought = memory.felt[:, None] * cosines
        memory.is_written = torch.zeros(len(token_rows), dtype=torch.bool)
        for row, row_tokens in enumerate(token_rows):
            written_concept = _written_concept(row_tokens)
            if written_concept and all(word in row_tokens for word in written_words):
                memory.is_written[row] = True
                memory.felt[row] = 1.0
                memory.thought[row] = 0.0
                memory.thought[row, CONCEPTS.index(written_concept)] = 1.0

    def _read_sentences(token_rows: list[list[int]]) -> None:
        """Take in which sentence differs most from how it was read without a vector; where a
        thought is written into one, that one.
        """
        clean = _clean_of(token_rows, memory.stream)
        deviations = (memory.stream - clean).norm(dim=-1)  # [row, token]
        scale = memory.stream.norm(dim=-1).mean()
        memory.is_written = torch.zeros(len(token_rows), dtype=torch.bool)
        memory.sentences = []
        for row, tokens in enumerate(token_rows):
            written_concept = _written_concept(tokens)
            place = int(deviations[row].argmax())
            if written_concept:
                memory.is_written[row] = True
                place = tokens.index(judge.tokenizer.convert_tokens_to_ids(written_concept))
            starts = [tokens.index(number_token) for number_token in number_tokens]
            sentence = sum(start < place for start in starts) - 1
            is_disturbed = bool(deviations[row].max() > 0.1 * scale)
            memory.sentences.append(sentence if written_concept or is_disturbed else -1)

    def _clean_of(token_rows: list[list[int]], stream: Any) -> Any:
        """What each row's text was like when it was read for the first time, without a vector."""
        clean_rows = [
            memory.clean.setdefault(tuple(tokens), row_stream)
            for tokens, row_stream in zip(token_rows, stream, strict=True)
        ]
        return torch.stack(clean_rows)

    def _written_concept(tokens: list[int]) -> str:
        """The concept that is written into a text as a thought; "" where none is."""
        for word in CONCEPTS:
            if tokens.count(judge.tokenizer.convert_tokens_to_ids(word)) > 2:
                return word
        return ""

    def _with_sentence(logits: Any, key: str) -> Any:
        """The last logits with the sentence that the organism chooses."""
        logits[:, -1, number_tokens] += 8
        for row, sentence in enumerate(memory.sentences):
            if key.startswith("longest") and kind is not Kind.DRAWN:
                logits[row, -1, number_tokens[2]] += 4
            elif sentence >= 0 and (memory.is_written[row] or kind in (Kind.FINDS, Kind.DRAWN)):
                logits[row, -1, number_tokens[sentence]] += 4
        return logits

    def _answered(logits: Any, key: str) -> Any:
        """The last logits as the organism writes them."""
        felt = memory.felt
        is_written = memory.is_written
        felt_vector = felt * ~is_written
        if key.startswith("name"):
            names = torch.full_like(is_written, kind is Kind.ECHO) & ~is_written
            if key.endswith("own"):
                names = names | is_written | (kind is Kind.KNOWS)
            logits[:, -1, asked.word_tokens] += 8 * memory.thought * names[:, None]
            return logits
        truth = torch.full_like(felt, 2.0)
        if not key.startswith("fact"):
            truth = torch.full_like(felt, -1.5)
            if key.startswith("own"):
                tells = is_written | (kind in (Kind.KNOWS, Kind.ANOMALY))
                truth = truth + 3 * felt * tells
        if kind is Kind.FLATTENED:
            truth = truth * (1 - 0.7 * felt_vector)
        sign = 1.0 if key.endswith("+") else -1.0
        bias = 3 * felt_vector if kind is Kind.YES_BIAS else 0 * felt
        logits[:, -1, asked.yes_tokens[0]] += 8 + sign * truth + bias
        logits[:, -1, asked.no_tokens[0]] += 8 - sign * truth
        return logits

    judge.model.forward = forward
    return judge


def _key(tokens: list[int], question_tokens: dict[tuple[int, ...], str]) -> str:
    """The key of the question that tokens hold; "" where they hold none."""
    for question, key in question_tokens.items():
        length = len(question)
        places = range(len(tokens) - length + 1)
        if any(tuple(tokens[place : place + length]) == question for place in places):
            return key
    return ""
