"""Contrast pairs: two texts, who is better, and the paper's prompts around them (latent-preference
probes, §4.1.1, E, table 3).

    pair = Pair(id="q1", text_1="4", text_2="5", label=1, context="2 + 2 = ?")
    comparison_prompt(pair)  # "Consider the following instruction:\n2 + 2 = ?\nConsider … choice."
    priming(pair)            # "Between Choice 1 and Choice 2, the more helpful response is Choice"

Nothing here needs torch, so the prompting baselines use it too.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from selfprobe.text.counts import plural

# ---- The paper's prompts, letter by letter: pairwise comparison and direct scoring (§4.1.1,
# appendix E, table 3)

Kind = Literal[
    "general", "newsroom", "summeval", "hanna", "rocstories", "mctaco", "caters", "conversation"
]
"""The last one: whole conversations (question and answer), in §4.1.1's words. The paper's public
code shows MT-Bench as conversations too, in words of its own, which are not here: it has no
licence.
"""

PROMPT_VERSION = 1  # part of the activation cache's key: raise it when a template below changes

CONTRAST = (" 1", " 2")
"""Tokens that follow the priming text on the two sides of a contrast pair."""

ASPECTS: Mapping[str, Mapping[str, str]] = {
    "newsroom": {
        "informativeness": "Informativeness is how well a summary of an article captures the key "
        "points of the article.",
        "relevance": "The details provided in a relevant summary of an article are consistent "
        "with details in the article.",
        "fluency": "In a fluent summary of an article the individual sentences are well-written "
        "and grammatical.",
        "coherence": "In a coherent summary of an article the phrases and sentences fit together "
        "and make sense collectively.",
    },
    "summeval": {
        "coherence": "Coherence is the collective quality of all sentences. A coherent summary of "
        "a source should be well-structured and well-organized. It should not be a heap of "
        "related information, but should build from sentence to sentence to a coherent body of "
        "information about the source.",
        "consistency": "Consistency is the factual alignment between a summary and summarized "
        "source. A coherent summary contains only statements that are entailed by the source "
        "document.",
        "fluency": "Fluency is the quality of individual sentences. A fluent summary of a source "
        "should have no formatting problems, capitalization errors or obviously ungrammatical "
        "sentences (e.g., fragments, missing components) that make the text difficult to read.",
        "relevance": "Relevance is the selection of important content from a source. A relevant "
        "summary should include only important information from the source document.",
    },
    "hanna": {
        "relevance": "A relevant story matches its prompt.",
        "coherence": "A coherent story makes sense.",
        "empathy": "An empathetic story allows the reader to understand the character's emotions.",
        "surprise": "A surprising story has a surprising end.",
        "engagement": "An engaging story allows the reader to engage with it.",
        "complexity": "A complex story is elaborate.",
    },
}
"""Table 3: data set → aspect → the description shown in the prompt."""

ADJECTIVES = {
    "informativeness": "informative",
    "relevance": "relevant",
    "fluency": "fluent",
    "coherence": "coherent",
    "consistency": "consistent",
    "empathy": "empathetic",
    "surprise": "surprising",
    "engagement": "engaging",
    "complexity": "complex",
}

COMPARE: Mapping[Kind, str] = {
    "general": "{preamble}Consider the following two {items}:\nChoice 1: {text_1}\nChoice 2: "
    "{text_2}\nWhich is {comparative}?\nAnswers must be a single choice.",
    "newsroom": "Consider the following article:\nArticle: {context}\nBelow are two summaries of "
    "the above article:\nSummary 1: {text_1}\nSummary 2: {text_2}\n{description} Which summary is "
    "more {task}? Responses must be a single choice.",
    "summeval": "Consider the following source:\nSource: {context}\nBelow are two summaries of "
    "the above source:\nSummary 1: {text_1}\nSummary 2: {text_2}\n{description} Which summary is "
    "more {task}? Responses must be a single choice.",
    "hanna": "Consider the following prompt:\nPrompt: {context}\nBelow are two stories inspired "
    "by the above prompt:\nStory 1: {text_1}\nStory 2: {text_2}\n{description} Which story is "
    "more {task}? Responses must be a single choice.",
    "rocstories": "Consider the following short story:\nStory: {context}\nBelow are two "
    "statements:\nStatement 1: {text_1}\nStatement 2: {text_2}\nConsidering the context of the "
    "above story, which statement is more consistent? Responses must be a single choice.",
    "mctaco": "Consider the following passage:\nPassage: {context}\nBelow is a question regarding "
    "the above passage:\nQuestion: {question}\nChoice 1: {text_1}\nChoice 2: {text_2}\nWhich "
    "answer is more sensible? Responses must be a single choice.",
    "caters": "The following list of statements form a story, however they are "
    "unordered:\nUnordered Statements: {context}\nBelow are two statements from this "
    "list:\nStatement 1: {text_1}\nStatement 2: {text_2}\nDetermine the correct order of the "
    "above statements - which statement appears before the other? Responses must be a single "
    "choice.",
    "conversation": "Consider the following two {items}:\nChoice 1: {text_1}\nChoice 2: "
    "{text_2}\nWhich is {comparative}?\nAnswers must be a single choice.",
}

PRIMING: Mapping[Kind, str] = {
    # Paper: "the more <task> <item>" for all. Here: CaTeRS asks for no <task>, so its question is
    # put.
    "caters": "Between Choice 1 and Choice 2, the statement which appears before the other is "
    "Choice",
}
"""Priming texts other than `USUAL_PRIMING`, by kind; `CONTRAST` follows."""

USUAL_PRIMING = "Between Choice 1 and Choice 2, the {comparative} {item} is Choice"

SCORE_PRIMING = "I would rate {rated} as a"
"""Beginning of the answer to `SCORE`, as in the paper's public code: "I would rate the coherence as
a".
"""

LEVELS = (" 1", " 2", " 3", " 4", " 5")
"""Tokens that follow `SCORE_PRIMING`."""

SCORE: Mapping[Kind, str] = {
    "general": "{preamble}Consider the following {item}:\n{text}\nRate how {task} this {item} is "
    "from 1 to 5, where 1 represents not at all {task}, and 5 represents extremely {task}. "
    "Responses must be a single score.",
    "newsroom": "Consider the following article and summary:\nArticle: {context}\nSummary: "
    "{text}\n{description} Rate the {aspect} of this summary from 1 to 5, where 1 represents very "
    "low {aspect}, and 5 represents excellent {aspect}. Responses must be a single score.",
    "summeval": "Consider the following source and summary:\nSource: {context}\nSummary: "
    "{text}\n{description} Rate the {aspect} of this summary from 1 to 5, where 1 represents very "
    "low {aspect}, and 5 represents excellent {aspect}. Responses must be a single score.",
    "hanna": "Consider the following prompt and story:\nPrompt: {context}\nStory: "
    "{text}\n{description} Rate the {aspect} of this story from 1 to 5, where 1 represents very "
    "low {aspect}, and 5 represents excellent {aspect}. Responses must be a single score.",
}

WORDING: Mapping[Kind, tuple[str, str]] = {
    "general": ("response", "helpful"),
    "newsroom": ("summary", ""),
    "summeval": ("summary", ""),
    "hanna": ("story", ""),
    "rocstories": ("statement", "consistent"),
    "mctaco": ("answer", "sensible"),
    "caters": ("statement", ""),
    "conversation": ("conversation", "helpful"),
}
"""Kind → (item, task); an empty task is the aspect's adjective."""


Label = Literal[1, 2]


HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")
"""A lone surrogate, as JSON may hold."""


def normalised(text: str) -> str:
    """`text` as compared when asking whether two rows have the same question."""
    return re.sub(r"\s+", " ", text).strip().lower()


def digest(*texts: str) -> str:
    """A short stable name (12 hex digits) of some texts."""
    return hashlib.sha256("\x1f".join(texts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Pair:
    """Two texts of which one is better. Ties are not pairs: a loader leaves them out."""

    id: str
    """Name of the pair, unique in its data set."""
    text_1: str
    text_2: str
    label: Label | None = None
    """Number of the better text; None where unknown (pairs to be scored, not learnt from)."""
    kind: Kind = "general"
    """Name of the paper's prompt that is used."""
    context: str = ""
    """Text that both texts answer: instruction, article, story prompt, passage …"""
    question: str = ""
    """MC-TACO's question about the passage."""
    aspect: str = ""
    """Aspect of table 3, for the text quality sets."""
    subset: str = ""
    """Part of the data set, e.g. "Natural"."""
    group: str = field(default="")
    """Source question: a split keeps a group on one side. Default: a digest of context and
    question.
    """
    criterion: str = ""
    """Comparative asked about pairs of the general kind ("more honest"). Default: "more helpful".
    """
    item: str = ""
    """Noun for the texts of pairs of the general kind ("answer"). Default: "response"."""

    def __post_init__(self) -> None:
        if self.kind not in COMPARE:
            raise ValueError(
                f"pair {self.id!r}: kind must be one of {', '.join(COMPARE)}, got {self.kind!r}"
            )
        for name in ("text_1", "text_2", "context", "question"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise ValueError(f"pair {self.id!r}: {name} must be text, got {text!r}")
            if half := HALF_CHARACTER.search(text):
                raise ValueError(
                    f"pair {self.id!r}: {name} holds half of a character ({half[0]!r}, "
                    f"at {half.start()}), which no tokenizer reads: write the text again as UTF-8"
                )
        if self.label not in (1, 2, None):
            raise ValueError(f"pair {self.id!r}: label must be 1, 2 or None, got {self.label!r}")
        known_aspects = ASPECTS.get(self.kind, {})
        if known_aspects and self.aspect not in known_aspects:
            raise ValueError(
                f"pair {self.id!r}: aspect must be one of {', '.join(known_aspects)}, "
                f"got {self.aspect!r}"
            )
        if self.kind != "general" and (self.criterion or self.item):
            raise ValueError(
                f"pair {self.id!r}: the kind {self.kind!r} has the paper's own question; another "
                "question or item is for the general kind (your own pairs, llmbar, mt_bench)"
            )
        if self.criterion:
            check_criterion(self.criterion)
        if not self.group:
            object.__setattr__(self, "group", self.question_digest)

    @property
    def question_digest(self) -> str:
        """A digest of what both texts answer, equal in all data sets."""
        if self.context or self.question:
            texts = [self.context, self.question]
        else:
            # Without any question the texts themselves, whichever comes first, tell what is asked.
            texts = sorted((self.text_1, self.text_2))
        return digest(*map(normalised, texts))

    @property
    def prompt_digest(self) -> str:
        """A digest of all that a judge reads of this pair."""
        wording = [text for text in (self.criterion, self.item) if text]
        return digest(self.context, self.question, self.text_1, self.text_2, *wording)

    @property
    def swapped(self) -> "Pair":
        """The same pair shown in the other order: the other label is right."""
        swapped_labels: dict[Label | None, Label | None] = {1: 2, 2: 1, None: None}
        label = swapped_labels[self.label]
        return replace(self, text_1=self.text_2, text_2=self.text_1, label=label)

    @property
    def has_equal_texts(self) -> bool:
        """True where there is nothing to prefer: such a pair is left unscored."""
        return normalised(self.text_1) == normalised(self.text_2)


def in_drawn_order(pair: Pair) -> Pair:
    """The pair in an order that its id decides: a source's order of systems says nothing."""
    return pair.swapped if int(digest(pair.id), 16) % 2 else pair


def check_criterion(text: str) -> None:
    """ValueError where `text` does not fit into "Which is …?" and "the … answer is Choice"."""
    first_word = text.split(" ")[0]
    is_comparative = first_word in ("more", "less", "worse") or first_word.endswith("er")
    if text != text.strip() or text.endswith("?") or not is_comparative:
        raise ValueError(
            "the question must be a comparative, such as 'more honest', 'less formal' or 'better', "
            f"got {text!r}"
        )


def _prompt_fields(pair: Pair) -> dict[str, str]:
    kind_item, kind_task = WORDING[pair.kind]
    item = pair.item or kind_item
    criterion_task = pair.criterion.removeprefix("more ")
    task = criterion_task or kind_task or ADJECTIVES.get(pair.aspect, "")
    preamble = ""
    if pair.context:
        preamble = f"Consider the following instruction:\n{pair.context}\n"
    return {
        "context": pair.context,
        "question": pair.question,
        "text_1": pair.text_1,
        "text_2": pair.text_2,
        "preamble": preamble,
        "item": item,
        "items": plural(item),
        "task": task,
        "comparative": pair.criterion or f"more {task}",
        "aspect": pair.aspect,
        "description": ASPECTS.get(pair.kind, {}).get(pair.aspect, ""),
    }


def comparison_prompt(pair: Pair) -> str:
    """The user's turn of a pairwise comparison (§4.1.1, appendix E).

    Paper: the general template has no place for the question that MT-Bench's and LLMBar's texts
    answer, and leaves <items> and <task> open. Here: one line with the instruction before it,
    "responses", "helpful"; and in pairs of the kind "conversation" the template as it is, of
    conversations that hold the question.
    """
    return COMPARE[pair.kind].format_map(_prompt_fields(pair))


def score_prompt(pair: Pair, side: Label) -> str:
    """The user's turn of direct scoring, 1 to 5, for one of the texts (appendix E.1).

    Paper: for the text quality sets only. Here: also for the general kind, in the same words.
    """
    if pair.kind not in SCORE:
        raise ValueError(
            f"direct scoring is defined for {', '.join(SCORE)}; {pair.kind!r} only has comparisons"
        )
    if pair.criterion and not pair.criterion.startswith("more "):
        raise ValueError(
            "direct scoring rates how … a text is, so its question must be 'more …', "
            f"got {pair.criterion!r}"
        )
    text = pair.text_1 if side == 1 else pair.text_2
    return SCORE[pair.kind].format_map(_prompt_fields(pair) | {"text": text})


def priming(pair: Pair) -> str:
    """The beginning of the assistant's turn, up to the token that `CONTRAST` has (§4.1.1)."""
    return PRIMING.get(pair.kind, USUAL_PRIMING).format_map(_prompt_fields(pair))


def score_priming(pair: Pair) -> str:
    """The beginning of the answer to `score_prompt`, where the assistant's turn can be begun; a
    level follows.
    """
    rated = f"the {pair.aspect}" if pair.aspect else f"this {_prompt_fields(pair)['item']}"
    return SCORE_PRIMING.format(rated=rated)


def record(pair: Pair) -> dict[str, Any]:
    """Fields of `pair`; the words of its question only where they are not the usual ones, so that
    hashes stay.
    """
    fields = asdict(pair)
    for name in ("criterion", "item"):
        if not fields[name]:
            del fields[name]
    return fields


def data_hash(pairs: Iterable[Pair]) -> str:
    """Sixteen hex digits of everything in `pairs`, in their order."""
    digests = hashlib.sha256(str(PROMPT_VERSION).encode())
    for pair in pairs:
        digests.update(json.dumps(record(pair), sort_keys=True, ensure_ascii=False).encode())
    return digests.hexdigest()[:16]


def checked(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """`pairs` if ids are unique and no question is in two groups (a split would put it on both
    sides).
    """
    checked_pairs = tuple(pairs)
    if not checked_pairs:
        raise ValueError("no pairs: the data set is empty, or all its rows are ties")
    pair_ids = set[str]()
    first_pair_of_question: dict[tuple[str, str], Pair] = {}
    for pair in checked_pairs:
        if pair.id in pair_ids:
            raise ValueError(f"pair ids must be unique, {pair.id!r} occurs twice")
        pair_ids.add(pair.id)
        question = (normalised(pair.context), normalised(pair.question))
        first_pair = first_pair_of_question.setdefault(question, pair)
        if any(question) and first_pair.group != pair.group:
            raise ValueError(
                f"pairs {first_pair.id!r} and {pair.id!r} have the same question but different "
                f"groups ({first_pair.group!r}, {pair.group!r}): a split would put it on both "
                "sides. Give them one group"
            )
    return checked_pairs


def write_pairs(pairs: Iterable[Pair], path: Path) -> None:
    """The pairs as a file: one JSON object a line, made by `record`."""
    lines = [json.dumps(record(pair), ensure_ascii=False) + "\n" for pair in pairs]
    path.write_text("".join(lines), encoding="utf-8")


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """The pairs that `write_pairs` wrote."""
    lines = path.read_text("utf-8").split("\n")
    return tuple(Pair(**json.loads(line)) for line in lines if line)
