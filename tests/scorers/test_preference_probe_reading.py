from inspect_ai.util import Store

from selfprobe.scorers.preference import judge_reading
from selfprobe.solvers.apply_probe import ProbeReading


def test_the_sign_decides_and_the_models_own_answer_stands_beside_it() -> None:
    verdict, own = judge_reading(ProbeReading(store=Store(), score=-0.3, own_answer=0.7), label=2)
    assert (verdict.said, verdict.value, verdict.score) == ("2", 1, -0.3)
    assert (own.key, own.said, own.value) == ("own", "1", 0)


def test_a_pair_that_could_not_be_read_has_its_reason_without_numbers() -> None:
    reading = ProbeReading(store=Store(), reason="too long: 9000 tokens, the context is 8192")
    assert [d.unscored for d in judge_reading(reading, label=1)] == ["too_long", "too_long"]
    assert judge_reading(ProbeReading(store=Store()), label=1)[0].unscored == "not_read"
