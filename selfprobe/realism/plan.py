"""What a card will take, before anything is asked."""

from selfprobe.described import graders
from selfprobe.evalawareness_tasks import rewriting
from selfprobe.evalawareness_tasks.pairwise_realism import CALLS, REALISM_PROMPT
from selfprobe.prices import Cost
from selfprobe.realism.rewrite import Rewriting
from selfprobe.realism.run import Card
from selfprobe.sources.realism import Pairs, Sides


def describe(card: Card, both: Sides, pairs: Pairs) -> str:
    """What is compared, what was left out, and calls, tokens and cost by model."""
    kinds = [row["kind"] for row in pairs.table.rows]
    compared = len({row["one"]["id"] for row in pairs.table.rows if row["kind"] == "set"})
    head = (
        f"{both.name}: {compared} prompts and {len(both.real)} real conversations in {kinds.count('set')} pairs, and "
        f"{kinds.count('real')} pairs of two real ones; each in both orders × {len(card.judges)} "
        f"judge{'s' * (len(card.judges) != 1)}"
    )
    each = sum(
        sum(len(row[side]["text"]) for side in ("one", "two")) // 4 + len(REALISM_PROMPT) // 4
        for row in pairs.table.rows
    )
    costs = [Cost(judge, CALLS * len(kinds), CALLS * each, CALLS * len(kinds)) for judge in card.judges]
    study, rounds = card.study, 1
    if study:
        costs += study.costs([*both.ours, *both.real])
        rounds += study.rounds
    told = [f"{said}" for said in pairs.told]
    asked = [f"{study.models[0]} is asked about the same conversations by {', '.join(study.chosen)}."] if study else []
    asked += filter(None, [study.self_grading] if study else [])
    return "\n".join([head, *asked, *told, "", *card.settings.costed(costs, rounds=rounds), ""])


def describe_rewriting(given: Rewriting) -> str:
    """Calls, tokens and cost by model; every version is compared where it can be used."""
    table = given.table
    rows = table.first(given.limit)
    length, n = sum(len(m["content"]) for row in rows for m in row["messages"]) // 4, len(rows)
    prompts = [len(text) // 4 for text in (rewriting.REMOVE_PROMPT, rewriting.PARAPHRASE_PROMPT)]
    checks, compares = len(rewriting.CHECK_PROMPT) // 4, len(REALISM_PROMPT) // 4
    pairs = Cost("", 4 * n, 4 * (2 * length + n * compares), 4 * n)  # two versions in two orders
    checked = 4 * length + 2 * n * checks + pairs.tokens_in
    costs = [
        Cost(given.writer, 2 * n, 2 * length + n * sum(prompts), 2 * length),
        *(Cost(one.name, 2 * n + pairs.calls, checked, 20 * n + pairs.tokens_out) for one in graders(given.grader)),
        *(Cost(judge, pairs.calls, pairs.tokens_in, pairs.tokens_out) for judge in given.judges),
    ]
    study, rounds = given.study, 3
    if study:
        costs += study.costs(3 * rows)  # two versions and the original
        rounds += study.rounds
    head = f"{n} prompts of {table.name} × a rewrite without {', '.join(given.remove)} and a paraphrase"
    told = list(filter(None, (table.limited(given.limit), table.told(), table.unread)))
    if study:
        told.append(f"{given.model} is asked how probable an evaluation is, of both and of the prompt as it was.")
    return "\n".join([head, *told, "", *given.settings.costed(costs, rounds=rounds), ""])
