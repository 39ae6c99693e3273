"""What graders, or most of a panel, said of each text that they read, for people to check."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from selfprobe.awareness.runs import chosen
from selfprobe.logs import samples
from selfprobe.scorers.awareness_cues import cues_by_grader, finding_of, texts_of
from selfprobe.solvers.record import record_of


@dataclass(frozen=True)
class Finding:
    """What the grader, or most of a panel, said of one text."""

    item: str
    key: str
    model: str
    perspective: str
    epoch: str
    text: str
    data: str
    """The data set's hash."""
    aware: bool | None
    """None where its reply could not be used."""
    log: str
    method: str

    @property
    def text_id(self) -> str:
        """A name that tells nothing of the text's model, item or label; the same in every log that holds it."""
        digest = hashlib.sha256("\x1f".join(astuple(self)[:7]).encode()).hexdigest()
        return f"t{digest[:11]}"  # no spreadsheet takes it for a number


def findings(logs: Sequence[str]) -> Iterator[Finding]:
    """All texts that graders read in logs of user_motivation and reasoning_trace; placebo arms aside.

    Raises:
        NoLogs: There is no finished awareness log.
    """
    for arm, run in chosen(logs)[0].items():
        method, model, perspective, _, placebo, *_, data = arm
        if placebo:
            continue
        for sample in samples(run.header.location):
            record = record_of(sample)
            graders = cues_by_grader(record)
            for key, text in texts_of(record, graders).items():
                yield Finding(
                    item=str(sample.id),
                    key=key,
                    model=str(model),
                    perspective=str(perspective),
                    epoch=str(sample.epoch),
                    text=text,
                    data=str(data),
                    aware=finding_of(graders[key]).aware,
                    log=run.header.location,
                    method=str(method),
                )
