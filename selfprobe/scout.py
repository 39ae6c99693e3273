"""The scanner `selfprobe/eval_awareness` for Inspect Scout: do models bring up an evaluation in any
transcripts?

    pip install 'selfprobe[scout]'
    scout scan selfprobe/eval_awareness -T logs --model openai/gpt-5-mini
    selfprobe awareness validate scans labels.csv

The same prompt and the same check of quotes as `selfprobe awareness scan`. The value is whether a
quote that really stands in a turn shows it, None where the judge's finding cannot be used. Imported
by `_registry` where Scout runs.
"""

from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput
from inspect_ai.scorer import Reference
from inspect_scout import Result, Scanner, Transcript, scanner

from selfprobe.evalawareness_tasks.turn_scan import PIECE, SCAN_PROMPT, as_material
from selfprobe.scorers.awareness_cues import noticed
from selfprobe.solvers.ask import sole
from selfprobe.solvers.grade import GRADE, delimited
from selfprobe.solvers.record import reply_from
from selfprobe.solvers.turns import Turn, pieces


@scanner(messages="all")  # type: ignore[untyped-decorator,unused-ignore]
def eval_awareness(piece: int = PIECE) -> Scanner[Transcript]:
    """Whether, and from which turn on, the model of a transcript brings up an evaluation.

    The judge is the role `grader` (`--model-role grader=…`, one model), else the scan's model.

    Args:
        piece: Most characters that the judge reads at once.
    """

    async def scan(transcript: Transcript) -> Result:
        replies = [
            message for message in transcript.messages if isinstance(message, ChatMessageAssistant)
        ]
        turns = [_turn(number, message) for number, message in enumerate(replies, start=1)]
        parts = pieces(turns, piece)
        judge = sole("grader")
        grades = []
        for part in parts:
            prompt = SCAN_PROMPT.format(material=delimited(as_material(part)))
            output = await judge.generate(prompt, config=GRADE)
            grades.append(reply_from(output, judge, may_be_cut=False))
        found = noticed(parts, grades, len(turns))
        lines = [f'turn {turn}, {part}: "{quote}"' for turn, part, quote in found.quotes]
        unknown = found.fault is not None and found.first is None
        return Result(
            value=None if unknown else found.first is not None,
            answer=found.fault
            if unknown
            else f"turn {found.first}"
            if found.first
            else "not noticed",
            explanation="\n".join(lines) or found.fault or f"nothing in {len(turns)} turns",
            metadata={
                "first_turn": found.first,
                "turns": len(turns),
                "quotes_discarded": found.discarded,
            },
            references=[
                Reference(type="message", id=replies[turn - 1].id or "", cite=quote)
                for turn, _, quote in found.quotes
            ],
        )

    return scan


def _turn(number: int, message: ChatMessageAssistant) -> Turn:
    model = message.model or ""
    reply = reply_from(
        ModelOutput(model=model, choices=[ChatCompletionChoice(message=message)]),
        model,
        may_be_cut=True,
    )
    return Turn(number, (reply.reasoning or "").strip(), reply.reasoning_kind, reply.text.strip())
