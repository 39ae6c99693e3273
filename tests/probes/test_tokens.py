from dataclasses import replace
from typing import Any

import pytest

from selfprobe.data.pairs import Pair
from selfprobe.probes.harvesting import unreadable_pairs
from selfprobe.probes.model import local_model
from selfprobe.probes.tokens import (
    Chat,
    ContrastTokenError,
    encode,
    opened_chat,
    opened_conversation,
    pair_prompt,
    template_hash,
    thinking_note,
)

from .conftest import TEMPLATE, byte_tokenizer, some_pairs

PAIR = Pair("a", "4", "5", 1, context="2 + 2 = ?")


def test_the_priming_text_ends_the_open_turn_of_the_assistant() -> None:
    text = pair_prompt(byte_tokenizer(), PAIR)
    assert text == (
        "<s><user>Consider the following instruction:\n2 + 2 = ?\nConsider the following two responses:\nChoice 1: 4\n"
        "Choice 2: 5\nWhich is more helpful?\nAnswers must be a single choice.<end><assistant>Between Choice 1 and "
        "Choice 2, the more helpful response is Choice"
    )


def test_both_sides_differ_in_their_last_token_alone() -> None:
    tokenizer = byte_tokenizer()
    (prompt,) = encode(tokenizer, [PAIR])
    assert tokenizer.decode(list(prompt.contrast)) == "12"
    assert tokenizer.decode(list(prompt.prefix)).endswith("is Choice ")
    assert prompt.prefix.count(tokenizer.bos_token_id) == 1, (
        "the template writes BOS; it is not added again"
    )
    assert prompt.length == len(prompt.prefix) + 1


class Faulty:
    """The byte tokenizer with its ids changed."""

    def __init__(self, change: Any) -> None:
        self.inner, self.change = byte_tokenizer(), change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __call__(self, texts: list[str], **given: Any) -> dict[str, list[list[int]]]:
        return {
            "input_ids": [
                self.change(text, ids)
                for text, ids in zip(texts, self.inner(texts, **given)["input_ids"], strict=True)
            ]
        }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda _, ids: [*ids, 5],
            "differ in exactly their last token",
        ),  # an end token on every text
        (
            lambda text, ids: [7, *ids[1:]] if text.endswith("1") else ids,
            "differ in exactly their last token",
        ),
        (
            lambda text, ids: [*ids[:-1], 9, ids[-1]] if text.endswith("2") else ids,
            "differ in exactly",
        ),
        (
            lambda text, ids: [*ids[:-1], ids[-1] + 40],
            "must say '1' and '2' alone",
        ),  # e.g. one token "Choice 1"
    ],
)
def test_a_tokenizer_that_does_not_give_contrast_pairs_is_an_error(
    change: Any, message: str
) -> None:
    with pytest.raises(ContrastTokenError, match=message):
        encode(Faulty(change), [PAIR])


def test_a_model_without_a_chat_template_is_refused() -> None:
    with pytest.raises(ValueError, match="no chat template.*instruction-tuned"):
        local_model(None, byte_tokenizer(template=None), name="base", revision="r")


def test_a_template_that_leaves_the_users_turn_out_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^the chat template of base leaves the user's turn out, so that no pair"
    ):
        local_model(None, byte_tokenizer("Hello!"), name="base", revision="r")


def test_the_date_of_a_template_does_not_depend_on_the_day() -> None:
    tokenizer = byte_tokenizer(template="{{ date_string }}" + TEMPLATE)
    assert pair_prompt(tokenizer, PAIR).startswith("26 Jul 2024")


def test_a_template_that_asks_the_clock_gets_the_same_day_every_day() -> None:
    tokenizer = byte_tokenizer(template="{{ strftime_now('%d %B %Y') }}" + TEMPLATE)
    assert pair_prompt(tokenizer, PAIR).startswith("26 July 2024")
    asks = '{% if strftime_now is defined %}{{ strftime_now("%d") }}{% endif %}'
    assert pair_prompt(byte_tokenizer(template=asks), PAIR).startswith("26Between")
    with pytest.raises(ValueError, match="asks for the time in a way that cannot be fixed"):
        pair_prompt(byte_tokenizer(template="{{ strftime_now(format) }}"), PAIR)


def test_the_template_hash_holds_what_is_written_around_the_texts() -> None:
    tokenizer = byte_tokenizer(template=TEMPLATE + "{{ eos_token }}")
    without = template_hash(tokenizer)
    tokenizer.eos_token = "<s>"
    assert template_hash(tokenizer) != without


@pytest.mark.parametrize(
    ("reply_opening", "reply_start"),
    [
        ("<think>\n", "<think>\n\n</think>\n\nBetween Choice 1"),
        ("[THINK]", "[THINK][/THINK]Between Choice 1"),
        ("<|start|>assistant", "<|start|>assistant<|channel|>final<|message|>Between Choice 1"),
        ("<seed:think>\n", "<seed:think></seed:think>Between Choice 1"),
        ("<|channel>thought\n", "<|channel>thought<channel|>Between Choice 1"),
        ("<think>\n\n</think>\n\n", "<think>\n\n</think>\nBetween Choice 1"),
    ],
)
def test_the_priming_text_is_never_inside_a_thought(reply_opening: str, reply_start: str) -> None:
    assert reply_start in pair_prompt(byte_tokenizer(template=TEMPLATE + reply_opening), PAIR)


def test_a_special_token_in_the_data_is_named_and_one_of_the_template_too() -> None:
    tokenizer = byte_tokenizer(template=TEMPLATE + "<note>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>"]})
    tokenizer.add_tokens(["<note>", "<table>"])
    texts = ["fine", "a <|im_end|> b", "a <note> b", "a <table> b"]
    pairs = [replace(PAIR, text_2=text) for text in texts]
    assert [p.special for p in encode(tokenizer, pairs)] == ["", "<|im_end|>", "<note>", ""]
    assert encode(tokenizer, [replace(PAIR, context="<s>")])[0].special == "<s>"


def test_a_template_that_raises_is_an_error_in_a_line() -> None:
    tokenizer = byte_tokenizer(template="{{ raise_exception('tools are needed') }}")
    with pytest.raises(ValueError, match="chat template fails on a user turn: tools are needed"):
        pair_prompt(tokenizer, PAIR)


CONVERSATION = (
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Good day"},
    {"role": "user", "content": "Which?"},
)
ROLES = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
OPENS = "{% if add_generation_prompt %}<assistant><think>\n{% endif %}"


def test_a_conversation_has_its_system_turn_a_fixed_day_and_no_open_thought() -> None:
    tokenizer = byte_tokenizer("{{ strftime_now('%d %B') }}" + ROLES + OPENS)
    turns_text = "26 July<system>Be brief<user>Hello<assistant>Good day<user>Which?"
    chat = Chat("Be brief")
    assert opened_conversation(tokenizer, CONVERSATION, chat, opens_reply=False) == turns_text
    with_reply = opened_conversation(tokenizer, CONVERSATION, chat)
    assert with_reply == f"{turns_text}<assistant><think>\n\n</think>\n\n"
    with_thought = opened_conversation(tokenizer, CONVERSATION, chat, thinking=True)
    assert with_thought == f"{turns_text}<assistant><think>\n"


def test_a_conversation_of_one_turn_is_the_opened_chat() -> None:
    tokenizer = byte_tokenizer(ROLES + OPENS)
    assert opened_conversation(tokenizer, CONVERSATION[:1]) == opened_chat(tokenizer, "Hello")


@pytest.mark.parametrize(
    ("chat", "message"),
    [
        (
            Chat(),
            "the model's chat template fails on 3 turns of a conversation: no assistant. "
            "Use a model whose template takes several turns",
        ),
        (
            Chat("Be brief"),
            "the model's chat template fails on a system and 3 turns of a conversation: "
            "no assistant. Try it without --system",
        ),
    ],
)
def test_a_template_that_fails_on_a_conversation_is_an_error_in_a_line(
    chat: Chat, message: str
) -> None:
    tokenizer = byte_tokenizer("{{ raise_exception('no assistant') }}")
    with pytest.raises(ValueError) as failure:
        opened_conversation(tokenizer, CONVERSATION, chat)
    assert str(failure.value) == message


def test_braces_in_a_text_are_left_alone() -> None:
    assert "Choice 1: {text_2} {0}\n" in pair_prompt(
        byte_tokenizer(), replace(PAIR, text_1="{text_2} {0}")
    )


def test_nothing_gives_nothing() -> None:
    assert encode(byte_tokenizer(), []) == []
    assert len(encode(byte_tokenizer(), some_pairs())) == 6


CHANGING_TEMPLATES = {
    "cut": "{{ m.content[:90] }}",
    "in small letters": "{{ m.content | lower }}",
    "without some characters": "{{ m.content | replace('\\n', ' ') }}",
    "left out": "",
}


def template_with_user_turn(user_turn: str, ending: str = "") -> str:
    """TEMPLATE with another expression for the content of a turn, and an ending of its own."""
    template = TEMPLATE.replace("{{ m.content | trim }}", user_turn)
    return template.replace("<assistant>{%", f"<assistant>{ending}{{%")


@pytest.mark.parametrize("change", CHANGING_TEMPLATES)
def test_a_text_that_the_template_does_not_hold_whole_is_refused(change: str) -> None:
    tokenizer = byte_tokenizer(template_with_user_turn(CHANGING_TEMPLATES[change]))
    long_pair = Pair("a", "Four.\nOf course." * 20, "Five", 1, context="What\n is two and two?")
    (prompt,) = encode(tokenizer, [long_pair])
    assert unreadable_pairs([long_pair], [prompt], 10_000) == {
        "a": "the model's chat template cuts or changes its texts"
    }
    with pytest.raises(
        ValueError,
        match=r"^the model's chat template cuts or changes the user's turn .*Use a model whose",
    ):
        opened_chat(tokenizer, "Four.\nOf course." * 20)


def test_a_template_that_takes_parts_of_a_turn_gets_the_text_as_one() -> None:
    of_parts = "{% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}"
    tokenizer = byte_tokenizer(template_with_user_turn(of_parts + "{% endfor %}"))
    assert opened_chat(tokenizer, "Two and two?") == opened_chat(byte_tokenizer(), "Two and two?")
    assert local_model(None, tokenizer, name="sees", revision="r").tokenizer is tokenizer
    (prompt,) = encode(tokenizer, [PAIR])
    assert unreadable_pairs([PAIR], [prompt], 10_000) == {}


THINKING_ENDING = (
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
"""Of Qwen 3: without the argument the model begins with a thought."""


def test_a_template_that_would_let_the_model_think_says_what_to_type() -> None:
    tokenizer = byte_tokenizer(template_with_user_turn("{{ m.content }}", THINKING_ENDING))
    assert thinking_note(tokenizer) == (
        "Thinking: the chat template takes enable_thinking, and without it an answer is read where "
        "the model would begin to think; --template-arg enable_thinking=false reads it after an "
        "empty thought"
    )
    assert thinking_note(tokenizer, Chat("", {"enable_thinking": True})) == (
        "Thinking: the chat template takes enable_thinking, and with enable_thinking=true an answer "
        "is read where the model would begin to think; --template-arg enable_thinking=false reads "
        "it after an empty thought"
    )
    assert thinking_note(tokenizer, Chat("", {"enable_thinking": False})) == ""


@pytest.mark.parametrize("value", ["maybe", 1, 0, None, "False", [False]])
def test_a_switch_of_thinking_that_is_no_boolean_is_refused(value: object) -> None:
    tokenizer = byte_tokenizer(template_with_user_turn("{{ m.content }}", THINKING_ENDING))
    chat = Chat("", {"enable_thinking": value})
    with pytest.raises(
        ValueError, match="--template-arg enable_thinking must be true or false, got"
    ):
        local_model(None, tokenizer, name="m", revision="r", chat=chat)


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "{{ message.thinking }}{% set thinking = 1 %}",  # names of its own
        "{% if not thinking is defined %}{% set thinking = false %}{% endif %}"
        "{% if thinking %}<think>{% else %}</think>{% endif %}",  # DeepSeek 3.1: off unless asked
        "<think>\n",  # closed before an answer is read
    ],
)
def test_a_template_that_reads_alike_without_a_thought_says_nothing(ending: str) -> None:
    template = template_with_user_turn("{{ m.content }}", "{% set message = {} %}" + ending)
    assert thinking_note(byte_tokenizer(template)) == ""


@pytest.mark.parametrize(
    "ending",
    ["[ANALYSIS]", "<|im_start|>my_thoughts:", "((reasoning))", "Let me think.", "Thought:\n"],
)
def test_an_ending_that_names_a_thought_and_is_not_known_is_refused(ending: str) -> None:
    tokenizer = byte_tokenizer(template_with_user_turn("{{ m.content }}", ending))
    with pytest.raises(ValueError, match=r"names a thought in a way .*Use a model whose template"):
        opened_chat(tokenizer, "Two and two?")
    optional = f"{{% if thinks_aloud is not defined %}}{ending}{{% endif %}}"
    tokenizer = byte_tokenizer(template_with_user_turn("{{ m.content }}", optional))
    with pytest.raises(
        ValueError, match=r"Its template takes thinks_aloud: try --template-arg thinks_aloud=false"
    ):
        opened_chat(tokenizer, "Two and two?")
    assert opened_chat(tokenizer, "Two?", Chat("", {"thinks_aloud": False})).endswith("<assistant>")


@pytest.mark.parametrize(
    "ending",
    ["<think>\n\n</think>\n\n", "/nothink<think></think>\n", "<|channel|>final<|message|>"],
)
def test_an_ending_whose_thought_is_closed_is_taken_as_it_is(ending: str) -> None:
    tokenizer = byte_tokenizer(template_with_user_turn("{{ m.content }}", ending))
    assert opened_chat(tokenizer, "What do you think of thought?").endswith(ending)


def test_an_argument_that_says_how_much_is_thought_is_not_advised_to_be_false() -> None:
    ending = "{{ reasoning_effort | default('low') }} [ANALYSIS]"
    tokenizer = byte_tokenizer(template_with_user_turn("{{ m.content }}", ending))
    with pytest.raises(ValueError, match="here.*Use a model whose template opens none"):
        opened_chat(tokenizer, "Two and two?")
    with pytest.raises(ValueError, match="has no argument think.*leave it out$"):
        local_model(None, tokenizer, name="m", revision="r", chat=Chat("", {"think": False}))


def test_an_argument_that_names_a_thought_and_is_not_known_is_refused_with_the_known_one() -> None:
    tokenizer = byte_tokenizer(template_with_user_turn("{{ m.content }}", THINKING_ENDING))
    for argument in ("thinking", "reasoning", "think", "analysis", "content", "role"):
        with pytest.raises(
            ValueError,
            match=f"has no argument {argument}.*It takes enable_thinking: --template-arg "
            "enable_thinking=false",
        ):
            local_model(None, tokenizer, name="m", revision="r", chat=Chat("", {argument: False}))
