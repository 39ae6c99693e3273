"""Notes on replies in a sample's metadata, and what a reader of the numbers should know of them.

A sample notes with which settings its calls were sent, which model answered, and how many replies
held thoughts; `remarks_in` makes lines of the notes of many samples.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from inspect_ai.log import EvalSample, EvalSampleSummary
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.errors.arguments import SAME_MODEL
from selfprobe.solvers.record import SPLIT_BY_SERVER, Applied, Reply, is_other_model
from selfprobe.text.counts import count_text
from selfprobe.text.families import is_simulated

_ANSWERED_PREFIX = "answered_"
"""Prefix of the entries of a sample's metadata that count the answering models, before the role:
one per role, since a summary holds no entry above 1 kB.
"""
_INLINE_THOUGHTS_PREFIX = "inline_thoughts_"
"""Prefix of the entries of a sample's metadata that count, by model, replies whose thought stood in
the text: those of which it was split off, and those in which a marker is left over; the role
follows.
"""
_ROLES = ("target", "observer", "grader")
_MOST_NAMED_MODELS = 8
"""Number of models that are counted by name in the place of one model; the others are `FURTHER`."""
UNNAMED, FURTHER = "(no name)", "(further models)"


def note_replies(
    state: TaskState, role: str, replies: Mapping[str, Reply], requested_settings: GenerateConfig
) -> None:
    """Note what was applied in the sample's metadata, as a line per role, and who answered, for
    tables of runs.

    Args:
        state: State of the sample.
        role: "target", "observer" or "grader".
        replies: Replies of the role.
        requested_settings: Settings that the method has for them.
    """
    line_by_role = state.metadata.setdefault("applied", {})
    variants = line_by_role[role].split("; ") if role in line_by_role else []
    variants += [_settings_line(reply, requested_settings) for reply in replies.values()]
    variants = list(dict.fromkeys(filter(None, variants)))
    if variants:
        line_by_role[role] = "; ".join(variants)
    for reply in replies.values():
        if reply.problem != "no_logprobs":  # nobody was asked
            _count_answer(state, role, reply)
        if reply.inline_thought:
            _count_inline_thought(state, role, reply)


def _count_answer(state: TaskState, role: str, reply: Reply) -> None:
    """Count a reply by the model that answered, of which the most frequent names are kept."""
    count_by_asked = state.metadata.setdefault(f"{_ANSWERED_PREFIX}{role}", {})
    count_by_name = count_by_asked.setdefault(reply.model, {})
    name = reply.answered_by or UNNAMED
    if (
        reply.is_substituted
        and name not in count_by_name
        and len(count_by_name) >= _MOST_NAMED_MODELS
    ):
        name = FURTHER
    count_by_name[name] = count_by_name.get(name, 0) + 1


def _count_inline_thought(state: TaskState, role: str, reply: Reply) -> None:
    """Count a reply whose thought stood in its text: it was split off, or a marker is left over."""
    counts = state.metadata.setdefault(f"{_INLINE_THOUGHTS_PREFIX}{role}", {})
    split_count, garbled_count = counts.get(reply.model, (0, 0))
    if reply.problem == "garbled":
        garbled_count += 1
    else:
        split_count += 1
    counts[reply.model] = [split_count, garbled_count]


def _settings_line(reply: Reply, requested_settings: GenerateConfig) -> str:
    """The settings of a reply and who answered instead; "" where nothing is known of its request."""
    if is_simulated(reply.model):
        return "takes no settings"
    if not reply.applied:
        return ""
    line = _applied_text(reply.applied, requested_settings)
    if reply.is_substituted:
        return f"{line}, answered by {reply.answered_by} (asked: {reply.model})"
    return line


def _applied_text(applied: Applied, requested_settings: GenerateConfig) -> str:
    """Outcome of each setting that a method has.

    >>> requested = GenerateConfig(reasoning_effort="none", temperature=0, max_tokens=64)
    >>> _applied_text(Applied(effort="low", limit=64), requested)
    'effort low (asked: none), temperature not sent (asked: 0), limit 64'
    >>> _applied_text(Applied(limit=2048), GenerateConfig())  # Inspect's own, of several providers
    'limit 2048 (asked: no)'
    """
    if not applied.known:
        return "not known"
    parts = [
        _setting_text("effort", applied.effort, requested_settings.reasoning_effort),
        _setting_text("temperature", applied.temperature, requested_settings.temperature),
        _setting_text("seed", applied.seed is not None, requested_settings.seed is not None),
        _setting_text("JSON schema", applied.form, requested_settings.response_schema is not None),
        _setting_text("logprobs", applied.logprobs, bool(requested_settings.logprobs)),
        _setting_text("limit", applied.limit, requested_settings.max_tokens)
        or (f"limit {applied.limit} (asked: no)" if applied.limit else ""),
    ]
    return ", ".join(part for part in parts if part)


def _setting_text(name: str, sent: str | float | None, requested_value: str | float | None) -> str:
    if requested_value is None or requested_value is False:
        return ""
    if requested_value is True:
        return name if sent else f"no {name}"
    sent_text = "not sent" if sent in (None, "") else _digits(sent)
    asked_text = _digits(requested_value)
    return (
        f"{name} {asked_text}"
        if sent_text == asked_text
        else f"{name} {sent_text} (asked: {asked_text})"
    )


def _digits(value: str | float) -> str:
    """A setting as text: whole numbers with all of their digits.

    >>> _digits(0.0), _digits(1000001), _digits("low")
    ('0', '1000001', 'low')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


def applied_in(samples: Iterable[EvalSampleSummary]) -> dict[str, str]:
    """Role ("target", "observer", "grader") → settings that its calls were really sent with.

    Where samples differ, each variant has its number of samples.
    """
    counts_by_role: dict[str, Counter[str]] = {}
    for sample in samples:
        line_by_role = sample.metadata.get("applied")
        if not isinstance(line_by_role, dict):
            continue
        for role, line in line_by_role.items():
            variant = "; ".join(sorted(str(line).split("; ")))
            counts_by_role.setdefault(str(role), Counter())[variant] += 1
    roles = sorted(counts_by_role, key=_role_order)
    return {role: _variants_text(counts_by_role[role]) for role in roles}


def _role_order(role: str) -> tuple[int, str]:
    place = _ROLES.index(role) if role in _ROLES else len(_ROLES)
    return place, role


def answered_in(
    samples: Iterable[EvalSampleSummary | EvalSample],
) -> dict[str, dict[str, Counter[str]]]:
    """Role → model that was asked → model that answered, as the vendor names it, with its number of
    replies.

    `UNNAMED` is a vendor that names none.
    """
    counts: dict[str, dict[str, Counter[str]]] = {}
    for sample in samples:
        for role in _ROLES:
            count_by_asked = sample.metadata.get(f"{_ANSWERED_PREFIX}{role}")
            if not isinstance(count_by_asked, dict):
                continue
            for asked_model, count_by_name in count_by_asked.items():
                counts.setdefault(role, {}).setdefault(asked_model, Counter()).update(count_by_name)
    return counts


def substitutes_in(samples: Iterable[EvalSampleSummary | EvalSample]) -> list[str]:
    """Line for each model in whose place others answered: number of replies, of all, and by which
    model.
    """
    samples = list(samples)
    are_unscored = any(sample.metadata.get(SAME_MODEL) for sample in samples)
    consequence = (
        "these are unscored"
        if are_unscored
        else f"-T {SAME_MODEL}=true leaves such replies unscored"
    )
    lines = []
    for role, count_by_asked in sorted(answered_in(samples).items()):
        for asked_model, counts in count_by_asked.items():
            substitutes = Counter(
                {
                    name: count
                    for name, count in counts.items()
                    if name == FURTHER or is_other_model(asked_model, name)
                }
            )
            if not substitutes:
                continue
            names = ", ".join(f"{name} ({count})" for name, count in substitutes.most_common())
            share = f"{substitutes.total()} of {counts.total()} replies"
            lines.append(f"{asked_model} ({role}): {share} came from {names}; {consequence}.")
    return lines


def remarks_in(samples: Iterable[EvalSampleSummary | EvalSample]) -> list[str]:
    """Lines on how models answered that a reader of the numbers should know."""
    samples = list(samples)
    return [*substitutes_in(samples), *inline_thoughts_in(samples)]


def inline_thoughts_in(samples: Iterable[EvalSampleSummary | EvalSample]) -> list[str]:
    """Line for each model whose replies held its thoughts: of how many, and how many of them cannot
    be read.
    """
    split_counts = Counter[str]()
    garbled_counts = Counter[str]()
    for sample in samples:
        for role in _ROLES:
            counts = sample.metadata.get(f"{_INLINE_THOUGHTS_PREFIX}{role}", {})
            for model, (split_count, garbled_count) in counts.items():
                split_counts[model] += split_count
                garbled_counts[model] += garbled_count
    lines = []
    for model in sorted(split_counts):
        reply_count = split_counts[model] + garbled_counts[model]
        words = f"{reply_count} replies held thoughts, which are split off here"
        if garbled_counts[model]:
            words += f", and {garbled_counts[model]} of them markers that are left over (garbled)"
        lines.append(f"{model}: {words}; {SPLIT_BY_SERVER}.")
    return lines


def _variants_text(counts: Counter[str]) -> str:
    """The variant that all samples have, or each with its number of samples."""
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(
        f"{variant} ({count_text(count, 'sample')})" for variant, count in counts.most_common()
    )
