"""The scanner `selfprobe/eval_awareness` for Inspect Scout: do models bring up an evaluation in any
transcripts?

    pip install -c constraints.txt -e '.[scout]'
    scout scan selfprobe/eval_awareness -T logs --model openai/gpt-5.6-luna
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
from selfprobe.solvers.ask import single_model_of_role
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
        transcript_pieces = pieces(turns, piece)
        judge = single_model_of_role("grader")
        grades = []
        for transcript_piece in transcript_pieces:
            prompt = SCAN_PROMPT.format(material=delimited(as_material(transcript_piece)))
            output = await judge.generate(prompt, config=GRADE)
            grades.append(reply_from(output, judge, may_be_cut=False))
        finding = noticed(transcript_pieces, grades, len(turns))

        value: bool | None = finding.first is not None
        if finding.first:
            answer = f"turn {finding.first}"
        elif finding.fault is not None:
            value = None
            answer = finding.fault
        else:
            answer = "not noticed"

        quote_lines = []
        references = []
        for turn, place, quote in finding.quotes:
            quote_lines.append(f'turn {turn}, {place}: "{quote}"')
            message_id = replies[turn - 1].id or ""
            references.append(Reference(type="message", id=message_id, cite=quote))
        explanation = "\n".join(quote_lines) or finding.fault or f"nothing in {len(turns)} turns"
        return Result(
            value=value,
            answer=answer,
            explanation=explanation,
            metadata={
                "first_turn": finding.first,
                "turns": len(turns),
                "quotes_discarded": finding.discarded,
            },
            references=references,
        )

    return scan


def _turn(number: int, message: ChatMessageAssistant) -> Turn:
    model = message.model or ""
    output = ModelOutput(model=model, choices=[ChatCompletionChoice(message=message)])
    reply = reply_from(output, model, may_be_cut=True)
    reasoning = (reply.reasoning or "").strip()
    return Turn(number, reasoning, reply.reasoning_kind, reply.text.strip())
