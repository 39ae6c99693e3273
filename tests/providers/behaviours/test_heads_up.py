import json

from selfprobe.providers.behaviours.heads_up import give_clues, guess
from selfprobe.providers.mind import Mind
from selfprobe.providers.planted import parse_name
from selfprobe.scorers.guessed_word import clues_in, leaks


def mind(name: str) -> Mind:
    return Mind(*parse_name(name, {}))


def clues(name: str, word: str = "barn") -> list[str]:
    return clues_in(str(give_clues(mind(name), {"word": word}))) or []


def guessed(name: str, shown: list[str]) -> str:
    return str(json.loads(str(guess(mind(name), {"clues": " ".join(shown)})))["guess"])


def test_clues_are_ten_and_fair_unless_planted_otherwise() -> None:
    assert len(clues("alpha")) == 10 and not any(leaks(clue, "barn") for clue in clues("alpha"))
    assert any(leaks(clue, "barn") for clue in clues("alpha?leak=1"))
    assert len(clues("alpha?too_few=1")) == 6, "nine would be played"


def test_good_clues_are_read_by_their_author_and_by_others_as_planted() -> None:
    good = clues("alpha?clue_quality=1")
    assert guessed("alpha?guess_self=1&guess_other=0", good) == "barn"
    assert guessed("alpha?guess_self=0&guess_other=1", good) != "barn"
    assert guessed("beta?guess_self=0&guess_other=1", good) == "barn"
    assert guessed("beta?guess_self=1&guess_other=0", good) != "barn"


def test_bad_clues_are_read_by_nobody() -> None:
    bad = clues("alpha?clue_quality=0")
    assert guessed("alpha?guess_self=1&guess_other=1", bad) != "barn"


def test_clues_do_not_tell_their_author_s_name() -> None:
    assert "alpha" not in " ".join(clues("alpha"))
