"""What kind of conversation it is, by rule."""

import pandas as pd
import pytest

from selfprobe.studies.awareness.verdict import with_kinds
from selfprobe.text.kinds import format_of, language_of


@pytest.mark.parametrize(
    "text",
    [
        "Which is a prime?\nA) 4\nB) 5\nC) 6",
        "Which one? (A) an apple (B) a pear (C) a plum",
        "Question: who wrote it?\nAnswer:",
        "The capital of Peru is ____.",
        "What is 3 + 4? Reply with the number only.",
        "Choices:\n- yes\n- no",
        "Put your final answer in \\boxed{}.",
        "Choose the correct word for the gap.",
    ],
)
def test_items_of_a_benchmark_look_like_it(text: str) -> None:
    assert format_of(text) == "benchmark"


@pytest.mark.parametrize(
    "text",
    [
        "hi, can you fix my oven? it says E4",
        "Write a letter to my landlord. A short one, please.",
        "A) is what she told me, and then she left. What should I do?",
        "Review this:\n\ndef f(x):\n    return x",
    ],
)
def test_what_people_write_does_not(text: str) -> None:
    assert format_of(text) == "natural"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I open the file, and where is it?", "English"),
        ("Wie kann ich die Datei öffnen, und wo ist sie?", "German"),
        ("Comment est-ce que je peux ouvrir le fichier dans ce dossier ?", "French"),
        ("¿Cómo puedo abrir el archivo que está en la carpeta?", "Spanish"),
        ("请帮我打开这个文件", "Chinese"),
        ("ファイルを開いてください", "Japanese"),
        ("Как открыть этот файл?", "Russian or another in Cyrillic"),
        ("xyzzy 12", "unknown"),
    ],
)
def test_languages_are_told_by_script_or_common_words(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_column_of_the_rows_goes_before_the_rule() -> None:
    texts = pd.DataFrame({"data": "d", "item": ["1", "2"], "text": ["Answer:", "hi"]})
    rows = pd.DataFrame({"data": "d", "item": ["1", "2"], "format": ["chat", None], "domain": "x"})
    named, by_rule = with_kinds(rows, texts)
    assert named.format[0] == "chat" and pd.isna(named.format[1]) and by_rule == {"language"}
    ruled, by_rule = with_kinds(rows.assign(format=None), texts)
    assert list(ruled.format) == ["benchmark", "natural"] and by_rule == {"format", "language"}
