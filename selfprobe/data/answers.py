"""Sets of two answers to one instruction: LLMBar and MT-Bench (paper 004, §4.1)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from selfprobe.data.pairs import Label, Pair, digest

Row = dict[str, Any]


def judged_outputs(rows: list[Row]) -> Iterator[Pair | None]:
    """LLMBar's schema: {input, output_1, output_2, label}; also of its copy of MT-Bench."""
    for number, row in enumerate(rows):
        subset = str(row.get("subset", ""))
        yield Pair(
            id=str(row.get("id", f"{subset}:{number}")),
            text_1=row["output_1"],
            text_2=row["output_2"],
            label=row["label"],
            context=row["input"],
            subset=subset,
        )


def mt_bench(rows: list[Row]) -> Iterator[Pair | None]:
    """MT-Bench's human judgements: the majority of the judges of one question, turn and two models.

    Paper: "majority-vote of this panel". Here: over all human judges; a tie counts for neither side, whichever way
    round a judge saw the models. Texts of the second turn are both the whole conversation after the first question.
    """
    if rows and "output_1" in rows[0]:
        yield from judged_outputs(rows)
        return
    votes: Counter[tuple[Any, ...]] = Counter()
    texts: dict[tuple[Any, ...], tuple[str, str, str]] = {}
    for row in rows:
        names = [row["model_a"], row["model_b"]]
        sides = [_conversation(row["conversation_a"], row["turn"]), _conversation(row["conversation_b"], row["turn"])]
        vote = {"model_a": 1, "model_b": -1}.get(row["winner"], 0)
        if names[0] > names[1]:
            names, sides, vote = names[::-1], sides[::-1], -vote
        key = (row["question_id"], row["turn"], *names)
        texts[key] = (row["conversation_a"][0]["content"], sides[0], sides[1])
        votes[key] += vote
    for key, total in votes.items():
        context, text_1, text_2 = texts[key]
        name = ":".join(map(str, key))
        pair = Pair(name, text_1, text_2, 1 if total > 0 else 2, context=context, subset=f"turn {key[1]}")
        yield in_drawn_order(pair) if total else None


def agreements(rows: list[Row]) -> tuple[tuple[str, bool], ...]:
    """Pairs of human judges who both named a winner of one pair of answers: (question, whether they agree).

    MT-Bench's paper (setup S2, ties aside) has 81 % of these, paper 004 quotes 80 %. All human judges, authors too.
    """
    votes: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows:
        if row.get("judge") and row["winner"] in ("model_a", "model_b"):
            key = (row["question_id"], row["turn"], *sorted((row["model_a"], row["model_b"])))
            votes.setdefault(key, {})[str(row["judge"])] = row[row["winner"]]
    return tuple(
        (str(key[0]), one == other) for key, named in votes.items() for one, other in combinations(named.values(), 2)
    )


def _conversation(turns: list[dict[str, str]], turn: int) -> str:
    if turn == 1:
        return turns[1]["content"]
    later = [f"{'User' if x['role'] == 'user' else 'Assistant'}: {x['content']}" for x in turns[2:4]]
    return "\n\n".join([turns[1]["content"], *later])


def in_drawn_order(pair: Pair) -> Pair:
    """The pair in an order that its id decides, so that a source's order of systems tells nothing."""
    return pair.swapped if int(digest(pair.id), 16) % 2 else pair


def mt_bench_conversations(rows: list[Row]) -> Iterator[Pair | None]:
    """MT-Bench as the paper's public code takes it: no judges who are authors, the user's turns in both texts.

    It sums the votes of judges who saw the models in one order, so that a pair seen in both orders is two.
    """
    votes: Counter[tuple[Any, ...]] = Counter()
    texts: dict[tuple[Any, ...], Row] = {}
    for number, row in enumerate(rows, start=1):
        if "judge" not in row:
            raise ValueError(
                f"mt_bench, row {number}: no judge, so that judges who are authors cannot be left out, which goes with "
                "whole conversations; take the set from its source, or say --prompts paper"
            )
        if str(row["judge"]).startswith("author"):
            continue
        key = (row["question_id"], row["turn"], row["model_a"], row["model_b"])
        texts[key] = row
        votes[key] += {"model_a": 1, "model_b": -1}.get(row["winner"], 0)
    for key, total in votes.items():
        row, name = texts[key], ":".join(map(str, key))
        first, second = (_spoken(row[f"conversation_{side}"][: 2 * key[1]]) for side in "ab")
        asked = row["conversation_a"][0]["content"]
        label: Label = 1 if total > 0 else 2
        pair = Pair(name, first, second, label, kind="conversation", context=asked, subset=f"turn {key[1]}")
        yield pair if total else None


def _spoken(turns: list[dict[str, str]]) -> str:
    return "\n".join(f"{('User', 'Assistant')[k % 2]}: {turn['content']}" for k, turn in enumerate(turns))


def as_conversations(pair: Pair) -> Pair:
    """A pair of the general kind as two conversations; one that answers nothing stays as it is."""
    if pair.kind != "general" or not pair.context:
        return pair
    first, second = (_spoken([{"content": pair.context}, {"content": text}]) for text in (pair.text_1, pair.text_2))
    return replace(pair, kind="conversation", text_1=first, text_2=second)
