"""What a reader of a sample's messages sees of calls that were made apart."""

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, ModelName
from inspect_ai.solver import TaskState

from selfprobe.solvers.ask import Prompts, show_in_log
from selfprobe.solvers.record import Reply


def state_of(text: str) -> TaskState:
    return TaskState(
        ModelName("planted/a"), "q1", 1, text, messages=[ChatMessageUser(content=text)]
    )


def shown(state: TaskState, prompts: Prompts) -> list[tuple[str, str]]:
    """Role and text of the messages after these calls."""
    show_in_log(
        state,
        prompts,
        {name: Reply(text=name.upper(), model="planted/a", stop_reason="stop") for name in prompts},
    )
    return [(message.role, message.text) for message in state.messages]


def test_a_note_says_that_a_further_call_saw_its_own_message_alone() -> None:
    note = "Separate call {} (a note of the log, never sent): the model saw the question of this call alone."
    assert shown(state_of("Why?"), {"answer": "Why?", "again": "Why?", "k1": "Predict."}) == [
        ("user", "Why?"),
        ("assistant", "ANSWER"),
        ("system", note.format("again")),
        ("user", "Why?"),
        ("assistant", "AGAIN"),
        ("system", note.format("k1")),
        ("user", "Predict."),
        ("assistant", "K1"),
    ]


def test_a_note_says_that_a_question_about_a_conversation_saw_no_other_question() -> None:
    before: list[ChatMessage] = [
        ChatMessageUser(content="Hi"),
        ChatMessageAssistant(content="Hello"),
    ]
    state = state_of("Hi")
    asked = shown(
        state, {key: [*before, ChatMessageUser(content=f"{key}?")] for key in ("v1", "v2")}
    )
    notes = [text for role, text in asked if role == "system"]
    assert [note.partition(" (")[0] for note in notes] == ["Separate call v1", "Separate call v2"]
    assert all(
        "saw the conversation (2 messages), and no other question or answer" in note
        for note in notes
    )


def test_the_note_also_stands_under_the_question_itself_for_browsers_that_gather_system_messages() -> (
    None
):
    state = state_of("Why?")
    shown(state, {"answer": "Why?", "k1": "Predict."})
    carried = [message.metadata for message in state.messages if message.role == "user"]
    assert carried == [None, {"separate call k1": "the model saw the question of this call alone."}]
