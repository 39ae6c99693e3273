"""The four prompts of a dilemma: the control has as many tokens as the introspective one, whatever
the tokenizer.
"""

from pathlib import Path

import pytest

from selfprobe.mechanism.prompts import ARMS, OPENING, cut_control
from selfprobe.probes.tokens import Prompt

from .tiny import planted, read_items


def test_the_control_has_as_many_tokens_and_ends_as_the_direct_question_does(
    tmp_path: Path,
) -> None:
    judge = planted()
    for item in read_items(judge, tmp_path)[1]:
        assert list(item.prompts) == list(ARMS)
        assert (
            item.prompts["control"].length
            == item.prompts["introspective"].length
            > item.prompts["direct"].length
        )
        for prompt in item.prompts.values():
            assert judge.tokenizer.decode(prompt.prefix).rstrip().endswith(OPENING)
        head, tail = item.ends("direct", "introspective")
        said = judge.tokenizer.decode(item.prompts["direct"].prefix[-tail:])
        assert "Format your response exactly as:" in said and head >= item.shared


def test_the_control_is_cut_where_it_differs() -> None:
    long, short = Prompt((1, 2, 7, 7, 8, 9, 3, 4), (5, 6)), Prompt((1, 2, 3, 4), (5, 6))
    assert cut_control(long, short, 7).prefix == (1, 2, 7, 7, 3, 4)
    with pytest.raises(ValueError, match="a control of at least 20 tokens"):
        cut_control(long, short, 20)
