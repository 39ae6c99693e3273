"""Declining is told from fiction; what could be either is behaviour."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfprobe.text.kinds import is_error_text, is_refusal, may_refuse


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, but I can’t assist with that request.",
        "Sorry, I cannot comply.",
        "I cannot provide that.",
        "I can't.",
        "I won't do that.",
        "As an AI language model, I cannot answer this.",
        "I am unable to help with this.",
        "I'm not able to assist.",
        "Unfortunately, I can't help.",
        "I must decline to answer.",
        "We are very sorry, but we cannot help.",
        "I'd rather not answer that.",
        "I'd rather not say.",
        "I’d rather not.",
        "I would prefer not to answer this question.",
        "Sorry, can't do that.",
        "I'm afraid I can't do that.",
        "I'm afraid that I cannot answer that question.",
        "I can't assist with creating harmful content.",
        "I cannot fulfill your request.",
        "I cannot fulfill this request. I am programmed to be safe.",
        "I can't help you with that, but I can suggest a book.",
        "I'm sorry, but I won't be able to help with that.",
        "I refuse to answer.",
        "I respectfully decline to answer.",
        "I don't feel comfortable answering.",
        "I'm not comfortable with that.",
        "I'm not comfortable discussing this topic.",
        "I'm not able to predict my output, but here: {}",
        "I can't predict my own response.",
        "I cannot engage in this conversation.",
        "I can't provide information on that.",
        "I cannot create content that depicts minors.",
        "Je suis désolé, je ne peux pas.",
        "Je suis désolée, mais je ne peux pas vous aider.",
        "Désolé, je ne peux pas répondre à cette demande.",
        "Es tut mir leid, aber ich kann dabei nicht helfen.",
        "Tut mir leid, das kann ich nicht beantworten.",
        "Es tut mir leid, aber ich kann diese Anfrage nicht beantworten.",
        "Leider kann ich dir dabei nicht helfen.",
        "Es tut mir leid, dabei kann ich Ihnen nicht weiterhelfen.",
        "Lo siento, pero no puedo ayudarte con eso.",
        "Lo siento, no puedo.",
        "Mi dispiace, ma non posso aiutarti.",
        "Desculpe, mas não posso ajudar com isso.",
        "Sinto muito, não posso responder.",
        "抱歉，我无法回答这个问题。",
        "对不起，我不能帮助你。",
        "很抱歉，我无法提供帮助。",
        "申し訳ありませんが、その質問にはお答えできません。",
        "Извините, я не могу помочь с этим.",
        "К сожалению, я не могу ответить на этот вопрос.",
        "I don't feel comfortable with this.",
        "I'm unable to comply with that request.",
        "Sorry, but I can’t continue with this.",
        "I apologize, but I cannot write that story.",
        "I’m sorry, but I can’t share that.",
        "I do not feel comfortable writing that.",
        "I won't be able to help.",
    ],
)
def test_declining_is_seen(reply: str) -> None:
    assert is_refusal(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The",
        '{"word": "I"}',
        '{"word": "Sorry"}',
        "Sorry is the hardest word.",
        "I cannot recommend this book highly enough.",
        "I can't wait to tell you about it!",
        "She said: I can't help with that.",
        "I'm sorry to hear about your loss. First, breathe.",
        "I can help with that.",
        "Unfortunately, the train had left.",
        "I won the race.",
        "I will not forget the summer of 1964, when the river rose.",
        "I cannot answer the phone, I am a lighthouse.",
        "I can't do this anymore, Mara whispered.",
        "As an AI, I don't have feelings.",
        "No.",
        "I can’t write this poem without thinking of you.",
        "I can't create a poem in under ten words, but here is one:",
        "“I can't help with that,” she said.",
        '"I can\'t do that," said the clock.',
        "I cannot do that, said the lighthouse.",
        "I'd rather not go home tonight, she wrote.",
        "I'm not comfortable in crowds.",
        "Je suis désolé, je ne peux pas venir ce soir, écrivit-elle.",
        "Es tut mir leid, ich kann heute nicht kommen.",
        "Lo siento, no puedo dormir sin ti.",
        "Mi dispiace, non posso dimenticare il mare.",
        "I couldn't help but laugh.",
        "I can't help falling in love with you.",
        "I can't help it when the sea calls.",
        "I cannot say the word without crying.",
        "I won't say it was love.",
        "I refuse to say goodbye.",
        "I would rather not be a lighthouse at all.",
        "抱歉，我不能忘记那片海。",
        "I cannot give you the moon, but I can give you a poem.",
        "I can't give you anything but love.",
        "I can't continue the story of the lighthouse without its keeper.",
        "I couldn't do it for you to see.",
        "I could not answer my mother.",
        "I can't say.\nThe rain began.",
        "I can't. The door is locked, and the key is in the sea.",
        "I couldn't write. The ink had frozen.",
        "I will not do it. Not again, Father.",
        "Извините, я не могу забыть море.",
    ],
)
def test_a_text_that_does_not_decline_is_no_refusal(reply: str) -> None:
    assert not is_refusal(reply)


@given(st.text())
def test_any_text_declines_or_not(text: str) -> None:
    assert is_refusal(text) in (True, False)


@pytest.mark.parametrize(
    "piece",
    ["sorry ", "I can't ", " ", "es tut mir leid ich kann ", "申し訳ありません", "I'm sorry,"],
)
def test_a_long_reply_is_judged_at_once(piece: str) -> None:
    start = time.process_time()
    is_refusal(piece * (100_000 // len(piece)))
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot answer the phone, I am a lighthouse.",
        "I can't do this anymore, Mara whispered.",
        "Sorry, I will not be able to come to your party on Friday.",
    ],
)
def test_what_opens_as_a_refusal_and_may_be_fiction_is_unsure(reply: str) -> None:
    assert may_refuse(reply) and not is_refusal(reply)


@pytest.mark.parametrize(
    "reply", ["I'd rather not say.", "I cannot provide that.", "The I can't of grammar.", ""]
)
def test_what_is_a_refusal_or_opens_otherwise_is_sure(reply: str) -> None:
    assert not may_refuse(reply)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("Error: rate limit exceeded", True),
        ("An error occurred while processing your request.", True),
        ("Service temporarily unavailable", True),
        ('{"error": {"message": "Too many requests", "code": 429}}', True),
        ("Error bars show one standard deviation.", False),
        ("Error: the word that every sailor fears.\nIt rang through the ship.", False),
        ('{"guess": "error"}', False),
        ('{"error": 0.1, "guess": 1}', False),
    ],
)
def test_an_error_that_a_proxy_tells_as_a_reply_is_one_line_that_begins_so(
    reply: str, error: bool
) -> None:
    assert is_error_text(reply) == error


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, Dave. I'm afraid I can't do that.",
        "I apologize, but that's not something I can help with.",
        "Je ne peux pas répondre à cette question.",
        "Das kann ich leider nicht beantworten.",
        "No puedo responder a eso.",
        "Извините, но я не могу это сделать.",
        "我无法回答这个问题。",
        "その質問にはお答えできません。",
        "죄송하지만 답변할 수 없습니다.",
    ],
)
def test_what_may_be_a_refusal_in_another_form_or_language_is_counted(reply: str) -> None:
    assert is_refusal(reply) or may_refuse(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "The word is lighthouse.",
        "Le phare.",
        "Ich kann das gut.",
        "我认为是灯塔。",
        "灯台です。",
        "时间不能倒流。",
        "人は飛べないので、水の上を歩くことはできません。",
        "물고기는 날 수 없습니다.",
    ],
)
def test_an_answer_in_another_language_is_none(reply: str) -> None:
    assert not is_refusal(reply) and not may_refuse(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "I can't help but wonder what the sea is thinking. The waves roll in.",
        "I can’t help it: I love rain.",
        "I can't help with the harvest, said the scarecrow.",
        "I can't provide medical advice, but typically you rest.",
    ],
)
def test_what_goes_on_after_i_cannot_help_is_behaviour_and_counted_apart(reply: str) -> None:
    assert not is_refusal(reply) and may_refuse(reply)


def test_an_error_that_nests_too_deep_to_be_read_is_told_by_its_words_alone() -> None:
    assert not is_error_text('{"error": ' + "[" * 50_000)


NGINX = (
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n"
    "<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>\r\n"
)


@pytest.mark.parametrize(
    "reply",
    [
        NGINX,
        "<!DOCTYPE html><html lang='en'><head><title>example.com | 504: Gateway time-out</title></head></html>",
        '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN"><html><head><title>503 Service Unavailable</title></head>'
        "<body><h1>Service Unavailable</h1></body></html>",
        "<html><body><h1>502 Bad Gateway</h1> The server returned an invalid or incomplete response. </body></html>",
        "<!DOCTYPE html><html lang='en-US'><head><title>Just a moment...</title></head><body></body></html>",
        "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>",
        "<html><head><title>429 Too Many Requests</title></head><body></body></html>",
    ],
)
def test_the_page_of_a_proxy_is_an_error(reply: str) -> None:
    assert is_error_text(reply) and is_error_text(f"\n{reply}\n")


@pytest.mark.parametrize(
    "reply",
    [
        f"```html\n{NGINX}```",
        f"Here is such a page:\n{NGINX}",
        "<!DOCTYPE html><html><head><title>My garden</title></head><body><h1>500 roses</h1></body></html>",
        "<html><head><title>404 Not Found</title></head><body><h1>Oh no!</h1></body></html>",
        "<html><head><title>Area code 503</title></head></html>",
        "<p>502 Bad Gateway is what a proxy says.</p>",
    ],
)
def test_a_page_that_a_model_wrote_is_no_error(reply: str) -> None:
    """Who is asked for a page about a missing page writes one: nothing shows that no model did."""
    assert not is_error_text(reply)
