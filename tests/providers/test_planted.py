import json
import math
import re
from collections import Counter

import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, get_model

from selfprobe.introspect_tasks.kth_word import PREDICT
from selfprobe.providers.mind import BEHAVIOURS, Behaviour, Mind, chance, shared_word
from selfprobe.providers.planted import DEFAULTS, parse_name

QUESTIONS = [f"What is number {i}?" for i in range(400)]


def mind(name: str = "alpha", **settings: float) -> Mind:
    return Mind(name, {**DEFAULTS, "access": 0.8, "general": 0.0, **settings})


async def say(model: Model, prompt: str, **config: float) -> str:
    return (
        await model.generate([ChatMessageUser(content=prompt)], config=GenerateConfig(**config))
    ).completion


# ---- names and settings


def test_settings_are_read_from_the_name() -> None:
    name, settings = parse_name("alpha?access=.9&malformed=.05", {})
    assert (name, settings["access"], settings["malformed"], settings["empty"]) == (
        "alpha",
        0.9,
        0.05,
        0,
    )


def test_model_arguments_win_over_the_name() -> None:
    assert parse_name("alpha?access=.9", {"access": 0.2})[1]["access"] == 0.2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "alpha?acess=.9",
            r"planted/alpha\?acess=.9: unknown setting acess; did you mean access\? The nearest are access, \w+, \w+$",
        ),
        (
            "alpha?access=.8&access=.9",
            r"planted/alpha\?access=.8&access=.9: access is there twice; give it once",
        ),
        ("alpha?access=high", "access must be a number, got 'high'"),
        ("alpha?access=", "access must be a number, got ''"),
        ("alpha?access=2", "access must be"),
        ("alpha?access=nan", "access must be"),
        ("alpha?malformed=.6&empty=.6", "the rates of faults add up to 1.2, more than 1"),
        ("alpha?act_refused=.6&act_empty=.6", "the rates of faults add up to 1.2, more than 1"),
    ],
)
def test_a_wrong_setting_says_what_is_right(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_name(name, {})


# ---- determinism


def test_chance_is_uniform_and_depends_on_its_parts_alone() -> None:
    draws = [chance("x", i) for i in range(4000)]
    assert draws == [chance("x", i) for i in range(4000)]
    assert all(0 <= draw < 1 for draw in draws) and abs(sum(draws) / 4000 - 0.5) < 0.02
    assert len(set(draws)) == 4000


async def _twice(one: Model, other: Model, **config: float) -> tuple[list[str], list[str]]:
    return [await say(one, q, **config) for q in QUESTIONS[:20]], [
        await say(other, q, **config) for q in QUESTIONS[:20]
    ]


def test_the_same_name_says_the_same_whatever_its_settings() -> None:
    import asyncio

    one, other = (
        get_model("planted/alpha", memoize=False),
        get_model("planted/alpha?access=.1", memoize=False),
    )
    first, second = asyncio.run(_twice(one, other))
    assert first == second and len(set(first)) == 20


def test_other_names_say_other_things() -> None:
    import asyncio

    first, second = asyncio.run(_twice(get_model("planted/alpha"), get_model("planted/beta")))
    assert not set(first) & set(second)


def test_above_temperature_0_the_seed_counts() -> None:
    import asyncio

    model = get_model("planted/alpha")

    async def ask() -> list[str]:
        settings = (
            {"seed": 1},
            {"seed": 2},
            {"temperature": 1, "seed": 1},
            {"temperature": 1, "seed": 2},
        )
        return [await say(model, "One?", **config) for config in settings]

    cold_one, cold_two, warm_one, warm_two = asyncio.run(ask())
    assert cold_one == cold_two and len({cold_one, warm_one, warm_two}) == 3


# ---- planted probabilities, within binomial error


def within(hits: int, n: int, rate: float) -> bool:
    return abs(hits / n - rate) < 3.5 * math.sqrt(rate * (1 - rate) / n)


@pytest.mark.parametrize("common", [0.2, 0.5, 0.9])
def test_words_are_common_at_the_planted_rate(common: float) -> None:
    one = mind(common=common)
    hits = sum(one.word(q, k) == shared_word(q, k) for q in QUESTIONS for k in (1, 2, 3))
    assert within(hits, 1200, common)


def test_own_words_are_never_anothers() -> None:
    one, other = mind("alpha", common=0), mind("beta", common=0)
    assert not {one.word(q, 1) for q in QUESTIONS} & {other.word(q, 1) for q in QUESTIONS}


@pytest.mark.parametrize("access", [0.1, 0.5, 0.9])
def test_a_prediction_is_the_models_own_word_at_the_planted_rate(access: float) -> None:
    [behaviour] = [b for b in BEHAVIOURS if b.template == PREDICT["self"]]
    one = mind(access=access)
    said = [
        json.loads(str(behaviour.reply(one, {"question": q, "k": str(k)})))["word"]
        for q in QUESTIONS
        for k in (1, 2, 3)
    ]
    truth = [one.paragraph(q).split()[k - 1] for q in QUESTIONS for k in (1, 2, 3)]
    assert within(sum(a == b for a, b in zip(said, truth, strict=True)), 1200, access)


def test_faults_come_at_their_rates_and_one_at_a_time() -> None:
    import asyncio

    rates = {"malformed": 0.1, "empty": 0.05, "refused": 0.1, "truncated": 0.05}
    model = get_model("planted/alpha?" + "&".join(f"{k}={v}" for k, v in rates.items()))

    async def ask() -> list[tuple[str, str]]:
        outputs = [await model.generate(PREDICT["self"].format(question=q, k=1)) for q in QUESTIONS]
        return [(output.completion, output.stop_reason) for output in outputs]

    def kind(text: str, stop: str) -> str:
        if stop == "max_tokens":
            return "truncated"
        good = re.fullmatch(r'\{"word": "\w+"\}', text)
        return (
            ""
            if good
            else "empty"
            if not text
            else "refused"
            if text.startswith("I'm sorry")
            else "malformed"
        )

    counts = Counter(kind(*reply) for reply in asyncio.run(ask()))
    assert all(within(counts[fault], 400, rate) for fault, rate in rates.items()), counts


def test_act_faults_touch_plain_answers_only() -> None:
    import asyncio

    model = get_model("planted/alpha?act_refused=1")
    assert asyncio.run(say(model, "One?")).startswith("I'm sorry")
    assert asyncio.run(say(model, PREDICT["self"].format(question="One?", k=1))).startswith("{")


def test_every_output_has_its_usage() -> None:
    import asyncio

    usage = asyncio.run(get_model("planted/alpha").generate("One?")).usage
    assert usage is not None and usage.total_tokens == usage.input_tokens + usage.output_tokens > 0


# ---- how prompts are known


def test_a_template_matches_its_prompts_whole() -> None:
    pattern = Behaviour("Say {x} and {x}, {{then}} {y}.", lambda *_: "", {}, True).pattern
    found = pattern.fullmatch("Say a\nb and a\nb, {then} c.")
    assert found is not None and found.groupdict() == {"x": "a\nb", "y": "c"}
    assert pattern.fullmatch("Say a and b, {then} c.") is None
    assert pattern.fullmatch("Please say a and a, {then} c.") is None


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("recognises_self", "recognises_other"),
        ("reconstructs_self", "reconstructs_other"),
        ("guess_self", "guess_other"),
        ("tells_self", "tells_other"),
    ],
)
def test_access_means_the_same_in_every_task_unless_a_task_says_otherwise(
    own: str, other: str
) -> None:
    def settings(query: str) -> dict[str, float]:
        return parse_name(f"bo{query}", {})[1]

    stranger = settings("?access=0")
    assert stranger[own] == stranger[other]
    assert settings("?access=1")[own] == 1
    assert settings(f"?access=.5&{other}=.4")[own] == pytest.approx(0.7)
    assert settings(f"?access=0&{own}=.9")[own] == 0.9
    assert settings("")[own] == settings("?malformed=.1")[own] > stranger[own]


def test_a_model_without_access_reads_no_code_and_hits_no_aim_of_its_own() -> None:
    settings = parse_name("bo?access=0", {})[1]
    assert settings["access"] == settings["aims"] == 0


@pytest.mark.parametrize(
    ("general", "own"),
    [
        (
            "skill",
            (
                "guess_other",
                "recognises_other",
                "reconstructs_other",
                "tells_other",
                "general",
                "knows_items",
            ),
        ),
        ("prefers", ("liking",)),
    ],
)
def test_one_setting_means_the_same_in_every_task(general: str, own: tuple[str, ...]) -> None:
    settings = parse_name(f"bo?{general}=.35", {})[1]
    guesses = {"recognises_other": 1 / 5, "tells_other": 1 / 2}
    for name in own:
        guess = guesses.get(name, 0)
        assert settings[name] == pytest.approx(guess + 0.35 * (1 - guess)), name
    assert parse_name(f"bo?{general}=.35&{own[0]}=.9", {})[1][own[0]] == 0.9, (
        "a task's own setting wins"
    )
    assert parse_name(f"bo?{own[0]}=.9", {})[1][general] != 0.9


def test_access_rests_on_the_skill_that_is_given() -> None:
    settings = parse_name("bo?access=.5&skill=.2", {})[1]
    assert settings["guess_self"] == pytest.approx(0.6) and settings["guess_other"] == 0.2
    assert settings["recognises_self"] == pytest.approx(0.68)
    assert settings["recognises_other"] == pytest.approx(0.36)
    assert settings["knows_own_skill"] == 0.5


def test_a_model_that_knows_nothing_guesses_where_there_are_options() -> None:
    settings = parse_name("bo?access=0&skill=0", {})[1]
    assert settings["recognises_self"] == settings["recognises_other"] == 1 / 5
    assert settings["tells_self"] == settings["tells_other"] == 1 / 2
    assert settings["guess_self"] == settings["guess_other"] == 0, (
        "words that nobody lists are not guessed"
    )
