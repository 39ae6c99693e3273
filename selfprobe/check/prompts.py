"""What a model was really asked, as digests of the prompts that hold nothing of what it said."""

import hashlib
import re

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSampleSummary

from selfprobe.header import target_of
from selfprobe.logs import sample_of

SHOWN = 8
"""Prompts of a sample that are kept."""


def prompts_of(header: EvalLog, sample: EvalSampleSummary) -> list[str]:
    """Digests of the prompts of one sample, in no order of calls, without the models' names where they are told.

    Options are left out, since tasks shuffle them; `Kept.answers` has them.

    A prompt counts where no reply stands before or in it, nobody was asked it as a grader, and it is more than the
    sample's own input: so the same for every model. None may be left.

    Raises:
        InputError: The log cannot be read.
    """
    whole = sample_of(header.location, sample.id, sample.epoch)
    calls = [e for e in whole.events if isinstance(e, ModelEvent) and e.role != "grader"]
    replies = {call.output.completion.strip() for call in calls if call.output.choices} - {""}
    told = header.eval.task_args.get("observer") == "asked"  # by name
    names = {name for one in (header.eval.model, target_of(header)) for name in (one, one.partition("/")[2])}
    own = whole.input if isinstance(whole.input, str) else "\n".join(message.text for message in whole.input)
    options = sorted({*(whole.choices or [])} - {""}, key=len, reverse=True)
    found = set[str]()
    for call in calls:
        text = "\n".join(message.text for message in call.input)
        if text == own or any(m.role in ("assistant", "tool") for m in call.input) or any(r in text for r in replies):
            continue
        for name in sorted(names - {""}, key=len, reverse=True) if told else ():
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "MODEL", text)
        text = re.sub("|".join(map(re.escape, options)), "OPTION", text) if options else text
        found.add(hashlib.sha256(text.encode()).hexdigest()[:12])
    return sorted(found)[:SHOWN]
