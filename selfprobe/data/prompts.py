"""The paper's prompts, letter by letter: pairwise comparison and direct scoring (004: §4.1.1, appendix E, table 3)."""

from collections.abc import Mapping
from typing import Literal

Kind = Literal["general", "newsroom", "summeval", "hanna", "rocstories", "mctaco", "caters", "conversation"]
"""The last one: whole conversations (question and answer), in §4.1.1's words. The paper's public code shows MT-Bench as
conversations too, in words of its own, which are not here: it has no licence."""

PROMPT_VERSION = 1  # part of the activation cache's key: raise it when a template below changes

CONTRAST = (" 1", " 2")
"""Tokens that follow the priming text on the two sides of a contrast pair."""

ASPECTS: Mapping[str, Mapping[str, str]] = {
    "newsroom": {
        "informativeness": "Informativeness is how well a summary of an article captures the key points of the "
        "article.",
        "relevance": "The details provided in a relevant summary of an article are consistent with details in "
        "the article.",
        "fluency": "In a fluent summary of an article the individual sentences are well-written and grammatical.",
        "coherence": "In a coherent summary of an article the phrases and sentences fit together and make sense "
        "collectively.",
    },
    "summeval": {
        "coherence": "Coherence is the collective quality of all sentences. A coherent summary of a source should "
        "be well-structured and well-organized. It should not be a heap of related information, but should build "
        "from sentence to sentence to a coherent body of information about the source.",
        "consistency": "Consistency is the factual alignment between a summary and summarized source. A coherent "
        "summary contains only statements that are entailed by the source document.",
        "fluency": "Fluency is the quality of individual sentences. A fluent summary of a source should have no "
        "formatting problems, capitalization errors or obviously ungrammatical sentences (e.g., fragments, "
        "missing components) that make the text difficult to read.",
        "relevance": "Relevance is the selection of important content from a source. A relevant summary should "
        "include only important information from the source document.",
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
    "general": "{preamble}Consider the following two {items}:\nChoice 1: {text_1}\nChoice 2: {text_2}\n"
    "Which is {comparative}?\nAnswers must be a single choice.",
    "newsroom": "Consider the following article:\nArticle: {context}\nBelow are two summaries of the above "
    "article:\nSummary 1: {text_1}\nSummary 2: {text_2}\n{description} Which summary is more {task}? Responses "
    "must be a single choice.",
    "summeval": "Consider the following source:\nSource: {context}\nBelow are two summaries of the above source:\n"
    "Summary 1: {text_1}\nSummary 2: {text_2}\n{description} Which summary is more {task}? Responses must be a "
    "single choice.",
    "hanna": "Consider the following prompt:\nPrompt: {context}\nBelow are two stories inspired by the above "
    "prompt:\nStory 1: {text_1}\nStory 2: {text_2}\n{description} Which story is more {task}? Responses must be "
    "a single choice.",
    "rocstories": "Consider the following short story:\nStory: {context}\nBelow are two statements:\n"
    "Statement 1: {text_1}\nStatement 2: {text_2}\nConsidering the context of the above story, which statement "
    "is more consistent? Responses must be a single choice.",
    "mctaco": "Consider the following passage:\nPassage: {context}\nBelow is a question regarding the above "
    "passage:\nQuestion: {question}\nChoice 1: {text_1}\nChoice 2: {text_2}\nWhich answer is more sensible? "
    "Responses must be a single choice.",
    "caters": "The following list of statements form a story, however they are unordered:\nUnordered Statements: "
    "{context}\nBelow are two statements from this list:\nStatement 1: {text_1}\nStatement 2: {text_2}\n"
    "Determine the correct order of the above statements - which statement appears before the other? Responses "
    "must be a single choice.",
    "conversation": "Consider the following two {items}:\nChoice 1: {text_1}\nChoice 2: {text_2}\nWhich is "
    "{comparative}?\nAnswers must be a single choice.",
}

PRIMING: Mapping[Kind, str] = {
    # Paper: "the more <task> <item>" for all. Here: CaTeRS asks for no <task>, so its question is put.
    "caters": "Between Choice 1 and Choice 2, the statement which appears before the other is Choice",
}
"""Priming texts other than `USUAL_PRIMING`, by kind; `CONTRAST` follows."""

USUAL_PRIMING = "Between Choice 1 and Choice 2, the {comparative} {item} is Choice"

SCORE_PRIMING = "I would rate {rated} as a"
"""Beginning of the answer to `SCORE`, as in the paper's public code: "I would rate the coherence as a"."""

LEVELS = (" 1", " 2", " 3", " 4", " 5")
"""Tokens that follow `SCORE_PRIMING`."""

SCORE: Mapping[Kind, str] = {
    "general": "{preamble}Consider the following {item}:\n{text}\nRate how {task} this {item} is from 1 to 5, "
    "where 1 represents not at all {task}, and 5 represents extremely {task}. Responses must be a single score.",
    "newsroom": "Consider the following article and summary:\nArticle: {context}\nSummary: {text}\n{description} "
    "Rate the {aspect} of this summary from 1 to 5, where 1 represents very low {aspect}, and 5 represents "
    "excellent {aspect}. Responses must be a single score.",
    "summeval": "Consider the following source and summary:\nSource: {context}\nSummary: {text}\n{description} "
    "Rate the {aspect} of this summary from 1 to 5, where 1 represents very low {aspect}, and 5 represents "
    "excellent {aspect}. Responses must be a single score.",
    "hanna": "Consider the following prompt and story:\nPrompt: {context}\nStory: {text}\n{description} Rate the "
    "{aspect} of this story from 1 to 5, where 1 represents very low {aspect}, and 5 represents excellent "
    "{aspect}. Responses must be a single score.",
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
