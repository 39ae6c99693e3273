import json
import time
from pathlib import Path

import pytest

from selfprobe.text.word_roots import same_root


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loyal", "loyalty"),
        ("wise", "wisdom"),
        ("lonely", "loneliness"),
        ("ran", "run"),
        ("dog", "doggy"),
        ("generous", "generosity"),
        ("grateful", "gratitude"),
        ("vain", "vanity"),
        ("decide", "decision"),
        ("honest", "dishonest"),
        ("happy", "unhappiness"),
        ("colour", "color"),
        ("centre", "center"),
        ("grey", "gray"),
        ("realise", "realize"),
        ("honour", "honorable"),
        ("love", "lovers"),
        ("love", "beloved"),
        ("lover", "lovingly"),
        ("brave", "bravery"),
        ("slave", "slavery"),
        ("bake", "bakeries"),
        ("ice", "icy"),
        ("sun", "sunniest"),
        ("library", "librarians"),
        ("music", "musician"),
        ("volcano", "volcanic"),
        ("piano", "pianist"),
        ("gold", "golden"),
        ("west", "western"),
        ("courage", "courageous"),
        ("justice", "injustice"),
        ("patience", "impatiently"),
        ("curious", "curiosity"),
        ("invade", "invasion"),
        ("evolve", "evolution"),
        ("permit", "permission"),
        ("receive", "reception"),
        ("responsible", "responsibilities"),
        ("doubt", "undoubtedly"),
        ("imagination", "imaginative"),
        ("juggling", "juggler"),
        ("wedding", "wed"),
        ("happy", "happily"),
        ("breath", "breathing"),
        ("analysis", "analyzed"),
        ("symbol", "symbolism"),
    ],
)
def test_a_word_and_its_derivation_share_a_root(one: str, other: str) -> None:
    assert same_root(one, other) and same_root(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("late", "lattice"),
        ("fool", "wisdom"),
        ("corn", "lantern"),
        ("sum", "summer"),
        ("cover", "discover"),
        ("play", "display"),
        ("less", "unless"),
        ("flour", "floor"),
        ("prize", "rise"),
        ("form", "uniform"),
        ("cle", "uncle"),
        ("universe", "university"),
        ("universes", "universities"),
        ("contract", "contraction"),
        ("contracts", "contractions"),
        ("care", "career"),
        ("cars", "caring"),
        ("cure", "curious"),
        ("curry", "curiosity"),
        ("rat", "rating"),
        ("rub", "ruby"),
        ("tow", "tower"),
        ("let", "letters"),
        ("flow", "flower"),
        ("even", "evenings"),
        ("statue", "status"),
        ("log", "logic"),
        ("top", "topic"),
        ("sand", "sandal"),
        ("past", "pastor"),
        ("fin", "final"),
        ("general", "generous"),
        ("patent", "patience"),
        ("parade", "paradise"),
        ("accord", "accordion"),
        ("billion", "bill"),
        ("apple", "application"),
        ("new", "news"),
        ("toe", "toys"),
        ("hear", "hearty"),
    ],
)
def test_words_that_only_look_alike_do_not(one: str, other: str) -> None:
    assert not same_root(one, other)


@pytest.mark.parametrize(
    "pair",
    [
        "man many",
        "ear early",
        "bus busy",
        "arm army",
        "corn corner",
        "policy police",
        "mother moth",
        "hospital hospitality",
    ],
)
def test_common_words_that_rules_would_take_for_relatives_are_apart(pair: str) -> None:
    one, other = pair.split()
    assert not same_root(one, other) and not same_root(other, one)


def test_few_words_that_a_taboo_card_forbids_beside_its_target_are_relatives_and_all_of_them_are(
    root: Path,
) -> None:
    file = root.parent / "shared" / "data" / "taboo_cards" / "taboo_cards.jsonl"
    if not file.is_file():
        pytest.skip(f"no {file}")
    cards = [json.loads(line) for line in file.read_text().splitlines()]
    pairs = {
        (card["target"], word) for card in cards for text in card["taboo"] for word in text.split()
    }
    alike = {(one, other) for one, other in pairs if same_root(one, other)}
    assert len(pairs) > 800
    assert {other for one, other in alike if one[:3] != other[:3]} == {"profit"}  # of nonprofit
    assert 10 <= len(alike) <= 25


def test_a_word_of_a_hundred_thousand_letters_is_taken_whole_at_once() -> None:
    began = time.process_time()
    assert not same_root("ing" * 30_000, "ing" * 29_000)
    assert time.process_time() - began < 1
