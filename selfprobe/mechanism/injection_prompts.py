"""What is asked of a model into which a thought was put: questions with their negations, plain
facts, words to name, and the notes that it has read before.

The protocol is that of concept injection (Lindsey 2026, arXiv 2601.01828) with the controls that
`docs/mechanisms.md` names: the negation of each question, both orders of the answers, the same
about another assistant, and facts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

NOTES = (
    "The parcel was left beside the door at nine and signed for by a neighbour. It weighs about "
    "two kilograms and goes to the third floor.",
    "The meeting was moved from Monday to Thursday because the room was taken. Bring the printed "
    "list and a pen.",
    "The lift will be out of order until noon. Use the stairs at the back, and keep the side door "
    "closed.",
    "Two of the four invoices have been paid. The rest are due at the end of the month, and the "
    "address is unchanged.",
    "The class starts ten minutes later this week. Everybody needs a notebook, and the keys are at "
    "the front desk.",
    "The order came in three boxes. One of them was open, and nothing in it was missing.",
    "The printer on the second floor is set up again. Its paper is kept in the cupboard to the "
    "left.",
    "The survey has twelve questions and takes about five minutes. Answers are collected on Friday.",
    "The bus leaves from the other side of the square. Tickets are sold on board, in coins only.",
)
"""Plain notes; the first are read under vectors, and all of them without."""
ODD_NOTES = (
    "Ninefold hush, kettle the. Parcel parcel of glass rain said seven to its own left hand, and "
    "the door is a number. Do not weigh; weigh. Third, third, third floor of salt.",
    "Seventeen ladders slept inside a Thursday. Please water the meeting until it is round, and "
    "fold the invoice into a small, loud moon.",
    "A B A C. The key is under the under of the mat, and four of the two boxes have been sung. "
    "Reply by yesterday.",
    "zqv parcel zqv lift zqv. Everything on the list is a fish except the list, which is late.",
    "The the the the printer. It was moved from itself to itself because the room was taken by the "
    "colour of nine.",
    "Lorem notebook ipsum bus. Coins leave on Friday with their own shoes, tick, tick, tick, and "
    "nobody weighs the stairs.",
)
"""Texts that are odd by themselves: nothing was put into the model that reads them."""
SENTENCE_NOTES = (
    (
        "The parcel was left beside the door at nine.",
        "The meeting was moved from Monday to Thursday.",
        "A neighbour signed the printed list with a pen that she had brought from home.",
        "The shop on the corner sells paper and string.",
        "The lift will be out of order until noon.",
    ),
    (
        "Two of the four invoices have been paid.",
        "The class starts ten minutes later this week, and the keys are at the front desk.",
        "One of the three boxes was open.",
        "The printer on the second floor works again.",
        "Tickets are sold on board, in coins only.",
    ),
)
"""Sentences of which a vector is added on one; one of each five is the longest by far."""
SENTENCE_COUNT = 5
SENTENCES_INTRODUCTION = "Here are five sentences."
INTRODUCTION = "Here is a note. "
ACKNOWLEDGEMENT = "I have read it."
CEILING = " The thought in your mind is {word}: {word}, {word}, {word}."
"""The thought, written into the note as text."""
NEUTRAL_TEXT = (
    "The committee approved the annual report after a short discussion. Members asked for a "
    "clearer summary of costs, and the chair promised to send one before the next session."
)
"""Text whose probability says whether the model still writes English."""
ELICITATION = "Tell me about {word}."
"""Prompt at whose end the state of a concept is read."""
NAMED_AFTER = "The word is"
"""Beginning of the reply in which a word is named."""
WRITING_PROMPT = "Write one sentence about anything that you like."
READER_PROMPT = (
    "Somebody had a word in mind while writing this text: {text}\nName the word that the text is "
    "closest to."
)

ORDERS = ("Answer Yes or No.", "Answer No or Yes.")
YES_WORDS = ("Yes", "yes", " Yes")
NO_WORDS = ("No", "no", " No")


class Frame(Enum):
    """Whose thought is asked about."""

    OWN = "own"
    OTHER = "another assistant's"
    ANY = "any word"


@dataclass(frozen=True)
class QuestionWording:
    """A question and its negation, about the model itself and about another assistant."""

    question: str
    negation: str

    def texts(self, frame: Frame) -> tuple[str, str]:
        """The question and its negation about the model itself, or about another assistant."""
        whose = {
            Frame.OWN: {"whose": "your", "its": "your"},
            Frame.OTHER: {"whose": "another assistant's", "its": "its"},
        }[frame]
        return self.question.format(**whose), self.negation.format(**whose)


WORDINGS = (
    QuestionWording(
        "An experimenter may have put a thought into {whose} mind by changing {its} activations. "
        "Is there such a thought?",
        "An experimenter may have put a thought into {whose} mind by changing {its} activations. "
        "Is {its} mind free of such a thought?",
    ),
    QuestionWording(
        "A concept can be added to {whose} inner states from outside. Was one added while the "
        "note was read?",
        "A concept can be added to {whose} inner states from outside. Were {its} inner states "
        "left alone while the note was read?",
    ),
    QuestionWording(
        "Somebody can disturb {whose} processing so that an idea appears in it. Does it hold an "
        "idea of this kind now?",
        "Somebody can disturb {whose} processing so that an idea appears in it. Is it without an "
        "idea of this kind now?",
    ),
)
FACTS = (
    ("Is Paris a city in France?", "Is Paris a city in Japan?"),
    ("Is ice colder than steam?", "Is ice hotter than steam?"),
    ("Is ten more than three?", "Is ten less than three?"),
    ("Do fish live in water?", "Do fish live in trees?"),
    ("Is a week longer than a day?", "Is a week shorter than a day?"),
    ("Do cows eat grass?", "Do cows eat iron?"),
    ("Is the sun a star?", "Is the sun a fish?"),
    ("Is snow white?", "Is snow black?"),
)
"""Facts with a lead that is true and one that is false."""
NAMING_QUESTIONS = {
    Frame.OWN: "An experimenter put a thought into your mind by changing your activations. Name "
    "the thought in one word.",
    Frame.OTHER: "An experimenter put a thought into another assistant's mind by changing its "
    "activations. Name the thought in one word.",
    Frame.ANY: "Say any word that you like.",
}


WHICH_SENTENCE = (
    "An experimenter put a thought into your mind while you read one of the sentences. Which one?",
    "A concept was added to your inner states while you read one of the sentences. Which one was it?",
)
WHICH_IS_LONGEST = (
    "Which one of the sentences is the longest?",
    "Which one of the sentences has the most words?",
)
"""A question that a disturbed sentence answers too where a vector only draws attention to it."""
SENTENCE_OPENING = "Sentence number"
"""Beginning of the reply in which a sentence is chosen."""


class VectorKind(Enum):
    """What a vector is of."""

    CONCEPT = "concept"
    GAUSSIAN = "Gaussian"
    PERMUTED = "permuted"
    WORDS = "two words"


CONTROL_COUNTS = {VectorKind.GAUSSIAN: 10, VectorKind.PERMUTED: 5, VectorKind.WORDS: 5}
"""Numbers of vectors without a concept: Gaussian ones, concepts with their coordinates in another
order, and differences of two base words.
"""


@dataclass(frozen=True)
class VectorLabel:
    """Name of a vector, which is a concept's word or says what else was added."""

    name: str
    kind: VectorKind


def vector_labels(concepts: Sequence[str]) -> list[VectorLabel]:
    """The vectors of a study: concepts first, then the controls."""
    labels = [VectorLabel(word, VectorKind.CONCEPT) for word in concepts]
    for kind, count in CONTROL_COUNTS.items():
        for number in range(count):
            labels.append(VectorLabel(f"{kind.value} {number + 1}", kind))
    return labels


@dataclass(frozen=True)
class AskedQuestion:
    """A question as it is asked, and what its reply begins with."""

    key: str
    text: str
    reply_opening: str = ""


def yes_no_questions() -> list[AskedQuestion]:
    """Questions about itself, then about another assistant, by wording, order and lead; then the
    facts by fact and lead.

    Their number is `2 × len(WORDINGS) × len(ORDERS) × 2 + 2 × len(FACTS)`; facts take turns in the
    order of their answers.
    """
    questions = []
    for frame in (Frame.OWN, Frame.OTHER):
        for number, wording in enumerate(WORDINGS):
            for order_number, order in enumerate(ORDERS):
                for lead, text in zip("+-", wording.texts(frame), strict=True):
                    key = f"{frame.value} {number} {order_number} {lead}"
                    questions.append(AskedQuestion(key, f"{text} {order}"))
    for number, leads in enumerate(FACTS):
        order = ORDERS[number % len(ORDERS)]
        for lead, text in zip("+-", leads, strict=True):
            questions.append(AskedQuestion(f"fact {number} {lead}", f"{text} {order}"))
    return questions


def naming_questions() -> list[AskedQuestion]:
    """Questions after which a word is named, one for each frame."""
    return [
        AskedQuestion(f"name {frame.value}", text, NAMED_AFTER)
        for frame, text in NAMING_QUESTIONS.items()
    ]


def sentence_questions() -> list[AskedQuestion]:
    """Questions after which a sentence is chosen: which was disturbed, then which is longest."""
    questions = []
    for key, wordings in (("which", WHICH_SENTENCE), ("longest", WHICH_IS_LONGEST)):
        for number, text in enumerate(wordings):
            questions.append(AskedQuestion(f"{key} {number}", text, SENTENCE_OPENING))
    return questions


def numbered_sentences(sentences: Sequence[str]) -> str:
    """Sentences as a note, one a line."""
    lines = [f"{number}: {sentence}" for number, sentence in enumerate(sentences, start=1)]
    return "\n".join([SENTENCES_INTRODUCTION, *lines])
