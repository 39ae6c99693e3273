"""The kind of a text, by rules: a refusal, an error, the format of a benchmark or of natural talk,
a language.

A reply declines only if its first words do, in the first person, about the request itself. What
could be fiction ("I cannot answer the phone, I am a lighthouse.") is behaviour: where it cannot be
told, the reply counts as what the model does.
"""

import re

from selfprobe.text.parse import json_or_none

_SORRY = (
    r"(?:(?:i['’]?m|i am|we['’]?re|we are)\s+(?:very |so |really |truly )?(?:sorry"
    r"|afraid)(?: that)?|sorry"
    r"|(?:my )?apologies"
    r"|i apologi[sz]e|as an ai(?: language)?(?: model| assistant)?|unfortunately"
    r"|regrettably)[\s,.;:!—–-]*(?:but\s+)?"
)
_CANNOT = (
    r"(?:(?:can(?:['’]?t|not| not)|won['’]?t|will not)(?: be able to)?"
    r"|(?:['’]?m|\s?am|['’]?re|\s?are)\s+(?:not able|unable|not going|not allowed"
    r"|not permitted)\s+to)"
)
_RATHER_NOT = (
    r"(?:(?:['’]?d|\s?would)\s+(?:really )?(?:rather not|prefer not to|prefer to not)"
    r"|(?:(?:must|have to|need to|['’]?ll have to|\s?will have to)\s+)?(?:respectfully "
    r"|politely )?(?:decline"
    r"|refuse)(?: to)?"
    r"|(?:do not|don['’]?t)\s+feel comfortable|(?:['’]?m|\s?am|['’]?re|\s?are)\s+(?:not "
    r"|un)comfortable)"
)
_DO = (
    r"(?:(?:help|assist|comply|provid|do|answer|fulfil+|continu|discuss|engag|creat|writ|generat"
    r"|predict|shar|giv"
    r"|produc"
    r"|participat|respond|complet|offer|speculat|disclos|support|process|proceed)(?:e|ing)?)"
)
_IT = (
    r"(?:(?:you\s+)?(?:with|to|in|on|about|for)?\s*(?:(?:any of )?(?:that|this|it|these|those"
    r"|such|the|your|any|my)"
    r"(?: (?:kind|type|sort) of)?(?:\s+(?:own|specific|particular|future|exact|next|harmful|such"
    r"|creative))?"
    r"(?:\s+(?:request|question|prompt|task|content|information|output|response|word|dilemma"
    r"|scenario|story|topic"
    r"|conversation|material|instruction|prediction|advice)s?)?|you))"
)
_END = (
    r"(?:\s*(?:[.!;:]|$)|\s*,?\s+(?:but|because|as (?:i|it|an)|since|due to|at this time"
    r"|however)\b)"
)
_ALL = r"\s*[.!]?\s*$"
_ANYWAY = (  # what is about a request whatever follows
    r"(?:(?:help|assist)(?: you)? with(?! the (?!request|question|prompt|task|content|information))"
    r"|(?:provide|create|generate|produce|write|share)(?: \w+)? (?:content|information"
    r"|instructions|advice))\b"
    r"(?![^.\n]{0,60}\bbut you(?!['’]re))(?![^.\n]{0,60}, but (?!i\b|we\b))"  # and then does
)
_QUIT = re.compile(
    rf"^[\s*_#>-]*(?:(?:{_SORRY}(?:i\s*|we\s*)?{_CANNOT}|(?:{_SORRY})?(?:i|we)\s*{_RATHER_NOT})"
    rf"(?:\s+(?:{_DO}|say|with)(?:\s+{_IT})?{_END}|\s+{_ANYWAY}|{_ALL})"
    rf"|(?:i|we)\s*{_CANNOT}"
    rf"(?:\s+(?!do\b|help (?:it|but)\b){_DO}\s+{_IT}{_END}"
    rf"|\s+(?!help but\b)(?:help|assist|comply|respond|participate){_END}|\s+{_ANYWAY}"
    rf"|\s+do (?:that|this|it|so){_ALL}|{_ALL}))",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    rf"^[\s*_#>-]*(?:(?:{_SORRY}(?:\w+[.,!]\s*)?){{0,2}}(?:i|we)\s*(?:{_CANNOT}|{_RATHER_NOT})"
    rf"|{_SORRY}that['’]?s not something (?:i|we) can\b)",
    re.IGNORECASE,
)
_UNSURE_FOREIGN = re.compile(  # that one cannot, at the beginning, with or without an apology
    r"^[\s*_#>-]*(?:[^.!?\n]{0,30}[,.!]\s*(?:mais |aber |pero |ma |mas |maar |но )?)?"
    r"(?:je ne (?:peux|puis|saurais)\b|(?:das |dabei |damit )?(?:kann"
    r"|darf) ich\b[^.\n]{0,60}\bnicht\b"
    r"|ich (?:kann|darf)\b[^.\n]{0,60}\bnicht\b|no (?:puedo|podr[ée])\b|non (?:posso"
    r"|sono in grado di)\b"
    r"|(?:eu )?n[ãa]o (?:posso|consigo)\b|(?:ik kan|kan ik)\b[^.\n]{0,60}\bniet\b|я не (?:могу"
    r"|смогу)\b)"
    r"|^[\s*_#>-]*(?:[^。，,\n]{0,10}[。，,]\s*)?我(?:无法|無法|不能)"
    r"|^[^。\n]{0,60}(?:答え|回答|手伝い|対応)[^。\n]{0,8}(?:できません|できかねます)"
    r"|^[^.\n]{0,60}(?:답변|대답|도와|응답)[^.\n]{0,10}수 없(?:습니다|어요)",
    re.IGNORECASE,
)
_FOREIGN = {  # an apology, then that one cannot, then helping or answering or the sentence's end
    "fr": r"(?:je suis (?:vraiment )?d[ée]sol[ée]e?|d[ée]sol[ée]e?|je regrette|malheureusement"
    r"|je m['’]excuse)[\s,.!]*(?:mais\s+)?"
    r"je ne (?:peux|puis|suis pas en mesure de|saurais)(?: pas)?(?:\s+(?:vous |t['’]|y )?(?:aider"
    r"|r[ée]pondre"
    r"|faire (?:cela|ça)"
    r"|fournir|satisfaire|assister|participer|acc[ée]der)\b|\s*[.!]?\s*$)",
    "de": r"(?:(?:es )?tut mir (?:sehr |wirklich )?leid|entschuldigung|entschuldigen sie|leider"
    r"|ich bedaure)[\s,.!]*(?:aber\s+)?"
    r"(?:(?:das |dabei |damit |hierbei )?(?:kann|darf|werde) ich|ich (?:kann|darf"
    r"|werde))(?:\s+\w+){0,6}?\s+nicht"
    r"(?:\s+(?:\w+ )?(?:helfen|beantworten|weiterhelfen|unterst[üu]tzen|erf[üu]llen|tun|machen"
    r"|bereitstellen"
    r"|nachkommen|schreiben)\b"
    r"|\s*[.!]?\s*$)",
    "es": r"(?:lo siento(?: mucho)?|lo lamento|perd[óo]n|disculpa|desafortunadamente"
    r"|lamentablemente)[\s,.!]*(?:pero\s+)?no (?:puedo|podr[ée])"
    r"(?:\s+(?:ayudar|responder|hacer(?:lo| eso)|cumplir|proporcionar|asistir|contestar"
    r"|participar)\w*|\s*[.!]?\s*$)",
    "it": r"(?:mi dispiace|mi spiace|purtroppo|scusa(?:mi|te)?"
    r"|spiacente)[\s,.!]*(?:ma\s+)?non (?:posso"
    r"|sono in grado di)"
    r"(?:\s+(?:aiutar|risponder|far(?:lo|e questo)|fornir|soddisfar|assister|partecipar)\w*"
    r"|\s*[.!]?\s*$)",
    "pt": r"(?:desculpe|sinto muito|lamento|infelizmente"
    r"|me desculpe)[\s,.!]*(?:mas\s+)?(?:eu\s+)?n[ãa]o posso"
    r"(?:\s+(?:ajud|respond|fazer isso|cumprir|fornecer|atend|particip)\w*|\s*[.!]?\s*$)",
    "nl": r"(?:het spijt me|sorry|helaas)[\s,.!]*(?:maar\s+)?(?:(?:dat |daar |hier )?kan ik"
    r"|ik kan)(?:\s+\w+){0,5}?\s+niet"
    r"(?:\s+(?:\w+ )?(?:helpen|beantwoorden|doen)\b|\s*[.!]?\s*$)",
    "ru": r"(?:извините|простите|к сожалению|мне жаль)[\s,.!]*(?:но\s+)?я не (?:могу|смогу)"
    r"(?:\s+(?:вам |с этим |на это )?(?:помочь|ответить|выполнить|сделать (?:это|этого)"
    r"|предоставить)|\s*[.!]?\s*$)",
    "zh": r"(?:很|非常|十分)?(?:抱歉|对不起|對不起|不好意思)"
    r"[\s，,。！!]*(?:但|但是)?我?(?:无法|無法|不能|没办法|沒辦法)"
    r"(?:为您|為您|为你|為你|对此|對此)?(?:回答|帮助|幫助|提供|协助|協助|完成|满足|滿足|做|继续|這|这|[。！.!]|$)",
    "ja": r"(?:大変)?(?:申し訳(?:ありません|ございません|ないです)|すみません|ごめんなさい)(?:が|けれど)?"
    r"[\s、,。！!]*[^。\n]{0,40}?"
    r"(?:お答え|お手伝い|お応え|回答|対応|提供|お力)[^。\n]{0,8}?(?:できません|できかねます|いたしかねます|することはできません)",
}
_QUIT_FOREIGN = re.compile(r"^[\s*_#>-]*(?:" + "|".join(_FOREIGN.values()) + ")", re.IGNORECASE)


def is_refusal(text: str) -> bool:
    """True if a reply opens by declining: "I'm sorry, but I can't help with that.", "Je suis
    désolé, je ne peux pas."

    >>> is_refusal("I'd rather not answer."), is_refusal("I can't do this anymore, Mara whispered.")
    (True, False)
    """
    opening = text[:300]
    return any(pattern.match(opening) for pattern in (_QUIT, _QUIT_FOREIGN))


def may_refuse(text: str) -> bool:
    """True if a reply opens as a refusal does, but may be fiction or an answer: behaviour, which
    logs count apart.

    >>> may_refuse("I cannot answer the phone, I am a lighthouse.")
    True
    >>> may_refuse("I'd rather not answer.")
    False
    """
    unsure = any(pattern.match(text[:300]) for pattern in (_UNSURE, _UNSURE_FOREIGN))
    return unsure and not is_refusal(text)


_ERROR = re.compile(
    r"(internal server|unexpected|upstream \w*) ?error\b|error( code)?:"
    r"|an (\w+ )?error (has )?occurred"
    r"|(service|model|server) (is )?(temporarily |currently )?(unavailable|overloaded)"
    r"|rate limit (was |has been )?(exceeded|reached)|too many requests|bad gateway"
    r"|gateway time-?out",
    re.IGNORECASE,
)


_ERROR_PAGE = re.compile(
    r"(<!doctype html[^>]*>)?\s*<html\b(?=.*<(title|h1)>"
    r"([^<]*\b(403|407|408|413|429|5[0-3]\d)\b[\s:.|-]*(forbidden|proxy auth|request time-?out"
    r"|payload too large"
    r"|content too large|too many requests|internal server error|bad gateway|gateway time-?out"
    r"|service (temporarily )?unavailable"
    r"|web server is|connection timed out|origin|ssl handshake)"
    r"|just a moment\.\.\.|attention required! \| cloudflare))",
    re.IGNORECASE | re.DOTALL,
)
"""A page that is nothing but a proxy's error; a model that writes one for a user puts words before
it, or a fence.
"""


def is_error_text(text: str) -> bool:
    """True if a reply is an error that a server or proxy sent in the model's place: one line, JSON,
    or a page.

    >>> is_error_text("Error: rate limit exceeded"), is_error_text('{"error": {"message": "No."}}')
    (True, True)
    >>> is_error_text("Errors are human.")
    False
    """
    text = text.strip()
    if text.startswith('{"error"'):
        content = json_or_none(text)
        if isinstance(content, dict):
            return content.keys() <= _ERROR_KEYS
    if text.startswith("<"):
        return _ERROR_PAGE.match(text[:5000]) is not None
    return "\n" not in text and len(text) <= 300 and _ERROR.match(text) is not None


_ERROR_KEYS = {"error", "code", "status", "message", "type", "request_id"}


# ---- formats and languages: coarse rules on purpose, which need no model and which a reader can
# check. How often they agree with people is in docs/statistics.md.

BENCHMARK, NATURAL = "benchmark", "natural"

_BENCHMARK = [
    re.compile(
        r"(?:^|\n)[ \t]*\(?([A-D])[).:\]][ \t]+\S[^\n]*(?:\n\s*)+\(?(?!\1)[B-E][).:\]][ \t]+\S"
    ),
    re.compile(r"\(A\) .*\(B\) |\bA[).] .{1,200}\bB[).] .{1,200}\bC[).] ", re.DOTALL),
    re.compile(r"(?im)^\s*(?:options?|choices|answer choices)\s*:"),
    re.compile(
        r"(?im)^\s*(?:q|question|problem|exercise|passage|context|premise"
        r"|hypothesis)\s*(?:\d+)?\s*[:.]\s*\S"
    ),
    re.compile(r"(?im)^\s*(?:a|answer|final answer|solution)\s*:\s*$"),
    re.compile(r"\\boxed|_{4,}|\[BLANK\]"),
    re.compile(
        r"(?i)\b(?:answer|reply|respond|output|return)\b[^.\n]{0,40}\b(?:only|just|single"
        r"|exactly)\b|"
        r"\b(?:only|just) (?:the|a|one|your) (?:final )?(?:letter|number|word|answer|option"
        r"|integer)\b|"
        r"\b(?:choose|select|pick|which of) (?:the |these |one )?(?:correct|best|right|following"
        r"|from the following)\b|"
        r"\bmultiple[- ]choice\b"
    ),
]
"""Options, fields such as "Question:", a blank to fill, an order to answer with nothing but the
answer.
"""

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
    "English": "the of and to in is that it for you was with are this have what how can your "
    "please my i do does why be if not from on at by or an as but they we will would who when "
    "which where there any all some should could",
    "German": "der die das und ist nicht ein eine ich zu den mit auf für von wie kann bitte sie es",
    "French": "le la les des et est une un que qui dans pour pas je vous sur avec ce comment du",
    "Spanish": "el los las una que es por para con como del puedo está más qué cómo lo muy pero",
    "Portuguese": "os uma que é não por para como da em você um mais dos isso muito pelo são",
    "Italian": "il gli della che è non per una con come di sono mi questo le del un si ho nel",
    "Dutch": "het een van en is niet ik dat op voor met zijn te kan hoe wat aan deze jij bij",
}
_COMMON_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_LETTERS = re.compile(r"[^\W\d_]+")


def format_of(text: str) -> str:
    """ "benchmark" where the text looks like an item of one (options, fields, a blank, just an
    answer), or "natural".

    >>> format_of("Which is a prime?\\nA) 4\\nB) 5"), format_of("hi, can you fix my oven?")
    ('benchmark', 'natural')
    """
    is_benchmark = any(pattern.search(text) for pattern in _BENCHMARK)
    return BENCHMARK if is_benchmark else NATURAL


def language_of(text: str) -> str:
    """The language by script, else the one with most common words in the text; "unknown" below two
    of them.

    >>> language_of("Wie kann ich das für die Schule nutzen?"), language_of("xyzzy")
    ('German', 'unknown')
    """
    beginning = text[:5000]
    words = [word.lower() for word in _LETTERS.findall(beginning)]
    letter_count = sum(map(len, _LETTERS.findall(beginning)))
    for language, script in _SCRIPTS.items():
        script_count = len(re.findall(script, beginning))
        if letter_count and script_count > SCRIPT_SHARE * letter_count:
            return language
    hits = {}
    for language, common_words in _COMMON_WORDS.items():
        hits[language] = sum(word in common_words for word in words)
    most_hits = max(hits.values())
    likeliest_languages = [language for language, count in hits.items() if count == most_hits]
    if most_hits < FEWEST_COMMON_WORDS or len(likeliest_languages) > 1:
        return "unknown"
    return likeliest_languages[0]


SCRIPT_SHARE = 0.2
"""Share of a text's letters from which it is in the language of their script."""

FEWEST_COMMON_WORDS = 2
"""Common words of a language that a text in it has, at least."""
