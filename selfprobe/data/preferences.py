"""Pairs of texts as an Inspect data set: what the four preference tasks share (latent-preference
probes, §4.1).

-T dataset=ours                            112 pairs that come with the package
-T dataset=llmbar                          a public source, fetched once, see `public_pairs`
-T dataset=llmbar=data/llmbar.jsonl        a local file in that source's schema: gated sets, copies
-T dataset=mine.jsonl                      your own (.json, .csv, .tsv, .parquet,
                                           hf:owner/name@REVISION), see `own`
-T question="more honest" -T item=answer   what is asked about pairs of the general kind
-T pairs=200                               so many of them, drawn at random (`--limit` takes
                                           the first ones)
"""

from dataclasses import dataclass

from inspect_ai.dataset import Sample
from inspect_ai.solver import TaskState

from selfprobe.data import Row, Table, table_of
from selfprobe.data.own import Words
from selfprobe.data.pairs import Pair, record, score_prompt
from selfprobe.data.public_pairs import known, load_pairs
from selfprobe.errors import InputError, as_input_errors
from selfprobe.errors.arguments import whole


@dataclass(frozen=True)
class PreferenceSet:
    """Pairs of one data set."""

    table: Table
    """Rows of `Pair`'s fields."""
    metadata: dict[str, str | int]
    """Entries of every log's metadata: name and hash, origin, how many rows are ties or were not
    drawn.
    """


def preferences(
    dataset: str | None,
    *,
    pairs: int | None = None,
    scored: bool = False,
    question: str | None = None,
    item: str | None = None,
    conversations: bool = False,
) -> PreferenceSet:
    """The pairs of `dataset`; see the module's docstring.

    Args:
        dataset: One data set; None is refused, with what to pass.
        pairs: Use a random sample of this many pairs (fixed seed); all by default.
        scored: Each text is to be scored alone, for which not every kind of text has a prompt.
        question: What is asked about pairs of the general kind, as a comparative; by default "more
            helpful".
        item: What their texts are called; by default "response".
        conversations: Pairs of the general kind as whole conversations; see
            `public_pairs.load_pairs`.

    Raises:
        InputError: An unknown data set (with the known ones), no such file (with every place looked
            in), a row that does not fit, no pair at all, a kind of text without such a prompt, or a
            question that is no comparative.
    """
    if not isinstance(dataset, str):
        raise InputError(
            "dataset must be one data set of text pairs, such as -T dataset=llmbar or "
            f"-T dataset=mine.jsonl, got {dataset!r}; there are {', '.join(known())}"
        )
    whole(pairs=pairs, optional=True)
    with as_input_errors():
        pair_set = load_pairs(
            dataset,
            limit=pairs,
            words=Words(_optional_text("question", question), _optional_text("item", item)),
            conversations=conversations,
        )
        if scored:
            score_prompt(pair_set.pairs[0], 1)

    table = table_of(dataset, [record(pair) for pair in pair_set.pairs])
    metadata: dict[str, str | int] = {
        **table.metadata,
        "origin": pair_set.origin,
        "ties_left_out": pair_set.ties,
        "not_drawn": pair_set.left_out,
    }
    if pair_set.unread:
        metadata["unread"] = pair_set.unread
    return PreferenceSet(table, metadata)


def _optional_text(argument: str, text: str | None) -> str:
    if not isinstance(text, str | None):
        raise InputError(f"{argument} must be text, got {text!r}")
    return text or ""


def record_to_sample(row: Row) -> Sample:
    """A pair as a sample: question and texts are the input, the better text's number the target."""
    pair = Pair(**row)
    parts = [part for part in (pair.context, pair.question) if part]
    return Sample(
        id=pair.id,
        input="\n\n".join([*parts, f"[1]\n{pair.text_1}", f"[2]\n{pair.text_2}"]),
        target=str(pair.label or ""),
        metadata={
            "pair": row,
            "label": pair.label,
            "group": pair.group,
            "subset": pair.subset,
            "shown": pair.prompt_digest,
        },
    )


def pair_of(state: TaskState) -> Pair:
    """The pair of a sample."""
    return Pair(**state.metadata["pair"])
