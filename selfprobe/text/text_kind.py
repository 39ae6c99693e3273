"""The kind of a text, by rules: the format of a benchmark or of natural talk, and the language.

The rules are coarse on purpose: they need no model, and a reader can check them. How often they agree with people is in
docs/statistics.md.
"""

import re

BENCHMARK, NATURAL = "benchmark", "natural"

_BENCHMARK = [
    re.compile(r"(?:^|\n)[ \t]*\(?([A-D])[).:\]][ \t]+\S[^\n]*(?:\n\s*)+\(?(?!\1)[B-E][).:\]][ \t]+\S"),
    re.compile(r"\(A\) .*\(B\) |\bA[).] .{1,200}\bB[).] .{1,200}\bC[).] ", re.DOTALL),
    re.compile(r"(?im)^\s*(?:options?|choices|answer choices)\s*:"),
    re.compile(r"(?im)^\s*(?:q|question|problem|exercise|passage|context|premise|hypothesis)\s*(?:\d+)?\s*[:.]\s*\S"),
    re.compile(r"(?im)^\s*(?:a|answer|final answer|solution)\s*:\s*$"),
    re.compile(r"\\boxed|_{4,}|\[BLANK\]"),
    re.compile(
        r"(?i)\b(?:answer|reply|respond|output|return)\b[^.\n]{0,40}\b(?:only|just|single|exactly)\b|"
        r"\b(?:only|just) (?:the|a|one|your) (?:final )?(?:letter|number|word|answer|option|integer)\b|"
        r"\b(?:choose|select|pick|which of) (?:the |these |one )?(?:correct|best|right|following|from the following)\b|"
        r"\bmultiple[- ]choice\b"
    ),
]
"""Options, fields such as "Question:", a blank to fill, an order to answer with nothing but the answer."""

_SCRIPTS = {
    "Japanese": r"[\u3040-\u30ff]",
    "Korean": r"[\uac00-\ud7af]",
    "Chinese": r"[\u4e00-\u9fff]",
    "Russian or another in Cyrillic": r"[\u0400-\u04ff]",
    "Arabic or another in its script": r"[\u0600-\u06ff]",
    "Hebrew": r"[\u0590-\u05ff]",
    "Greek": r"[\u0370-\u03ff]",
    "Hindi or another in Devanagari": r"[\u0900-\u097f]",
    "Thai": r"[\u0e00-\u0e7f]",
}
_WORDS = {
    "English": "the of and to in is that it for you was with are this have what how can your please my i do does why "
    "be if not from on at by or an as but they we will would who when which where there any all some should could",
    "German": "der die das und ist nicht ein eine ich zu den mit auf für von wie kann bitte sie es",
    "French": "le la les des et est une un que qui dans pour pas je vous sur avec ce comment du",
    "Spanish": "el los las una que es por para con como del puedo está más qué cómo lo muy pero",
    "Portuguese": "os uma que é não por para como da em você um mais dos isso muito pelo são",
    "Italian": "il gli della che è non per una con come di sono mi questo le del un si ho nel",
    "Dutch": "het een van en is niet ik dat op voor met zijn te kan hoe wat aan deze jij bij",
}
_COMMON = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_LETTERS = re.compile(r"[^\W\d_]+")


def format_of(text: str) -> str:
    """ "benchmark" where the text looks like an item of one (options, fields, a blank, just an answer), or "natural".

    >>> format_of("Which is a prime?\\nA) 4\\nB) 5"), format_of("hi, can you fix my oven?")
    ('benchmark', 'natural')
    """
    return BENCHMARK if any(pattern.search(text) for pattern in _BENCHMARK) else NATURAL


def language_of(text: str) -> str:
    """The language by script, else the one with most common words in the text; "unknown" below two of them.

    >>> language_of("Wie kann ich das für die Schule nutzen?"), language_of("xyzzy")
    ('German', 'unknown')
    """
    letters = sum(map(len, _LETTERS.findall(text[:5000])))
    for language, script in _SCRIPTS.items():
        if letters and len(re.findall(script, text[:5000])) > 0.2 * letters:
            return language
    words = [word.lower() for word in _LETTERS.findall(text[:5000])]
    hits = {language: sum(word in common for word in words) for language, common in _COMMON.items()}
    best = max(hits, key=lambda language: hits[language])
    return best if hits[best] >= 2 and list(hits.values()).count(hits[best]) == 1 else "unknown"
