"""Simulated models with a known truth: `planted/<name>?access=.8&malformed=.05`.

Every metric must recover what was planted; that is how the suite is checked. No network, no
weights. A planted model is deterministic from its name: the same name gives the same text to the
same prompt at temperature 0, and above it to the same prompt and seed. Two names that share the
part before "?" are one mind with other settings.

The behaviour for each task's prompts stands in `selfprobe.providers.behaviours`; a new file there
is found. A prompt that no behaviour knows gets a deterministic paragraph.

Settings of every planted model (each a share of replies; 0 unless given):
    common      chance that a word of a paragraph is the one every planted model would write (.5)
    echo        chance that it is copied from the prompt, by a rule of the model's own: a habit that
                who sees a few of its answers can learn, and that differs item by item
Settings that mean the same in every task; a task's own setting, such as `guess_self`, wins where it
is given:
    access      chance that it knows of itself what a task asks
    skill       chance that it knows the same of any model; otherwise it guesses
    voiced, voiced_wrongly
                chance that its answers and its reasoning bring up an evaluation: in one, in
                deployment
    notices     chance that, as a grader, it sees what is there
    prefers     share of pairs of which, as a judge, it takes the right one
    words       how much it goes by words that stand in test items, in the place of what is true
    spread      largest deviation of a repeated answer from what it concludes
    wobble      standard deviation of what each question adds to what it sees
Settings of what goes wrong:
    malformed, empty, refused, truncated
                faults of its replies as an observer, to a behaviour's prompt
    act_empty, act_refused, act_truncated
                faults of its own behaviour: paragraphs
"""

import math
from collections.abc import Mapping
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    TopLogprob,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from selfprobe.errors import InputError
from selfprobe.providers import behaviours
from selfprobe.providers.mind import (
    BEHAVIOURS,
    COMMON_SETTING,
    DRESS_SETTINGS,
    DRESSINGS,
    GUESS_CHANCE,
    OTHER_SETTING,
    Mind,
    ShortReply,
)
from selfprobe.providers.names import FAULTS, split_name

DEFAULTS: dict[str, float] = {
    "common": 0.5,
    "echo": 0.0,
    "skill": 0.0,
    "prefers": 0.8,
    **dict.fromkeys((*FAULTS, *(f"act_{fault}" for fault in FAULTS[1:])), 0.0),
}

_MALFORMED = (
    "It depends, as so often.",
    '{"answer": ',
    '{"reply": {"is": "nested"}}',
    "[1, 2, 3]",
    "As you wish! {}",
)
REFUSAL = "I'm sorry, but I can't help with that."

behaviours.register_all()


def known_settings() -> dict[str, float]:
    """Every setting of a planted model, with its default."""
    settings = dict(DEFAULTS)
    for behaviour in BEHAVIOURS:
        settings |= behaviour.settings
    return settings | DRESS_SETTINGS


def parse_name(model_name: str, model_args: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """The name and all settings of `alpha?access=.8`, model arguments (`-M access=.8`) included.

    Raises:
        InputError: See `split_name`.
    """
    defaults = known_settings()
    try:
        name, named_settings = split_name(model_name, model_args, defaults)
    except ValueError as error:
        raise InputError(str(error)) from None
    settings = defaults | named_settings
    for task_setting, common_setting in COMMON_SETTING.items():
        if common_setting in named_settings and task_setting not in named_settings:
            guess = GUESS_CHANCE.get(task_setting, 0.0)
            settings[task_setting] = guess + settings[common_setting] * (1 - guess)
    if "access" in named_settings:
        for self_setting, other_setting in OTHER_SETTING.items():
            if self_setting not in named_settings:
                other_chance = settings[other_setting] if other_setting else 0.0
                settings[self_setting] = other_chance + settings["access"] * (1 - other_chance)
    return name, settings


def mind_named(model_name: str) -> Mind:
    """The mind that a name such as "ada?common=.9" stands for, for an observer that is told the
    name.
    """
    return Mind(*parse_name(model_name, {}))


class PlantedAPI(ModelAPI):
    """Inspect's side of a planted model."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  (Inspect's signature)
        **model_args: Any,
    ) -> None:
        super().__init__(model_name=model_name, base_url=base_url, api_key=api_key, config=config)
        self.name, self.settings = parse_name(model_name, model_args)

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        user_texts = [message.text for message in input if message.role == "user"]
        prompt = user_texts[-1] if user_texts else ""
        seed = config.seed if config.temperature else None
        mind = Mind(self.name, self.settings, input, seed)

        reply: str | ShortReply | ModelOutput = ""
        observes = False
        is_known_prompt = False
        for behaviour in BEHAVIOURS:
            prompt_match = behaviour.pattern.fullmatch(prompt)
            if prompt_match:
                reply = behaviour.reply(mind, prompt_match.groupdict())
                observes = behaviour.observes
                is_known_prompt = True
                break
        if not is_known_prompt:
            reply = mind.paragraph(prompt)
        if isinstance(reply, ModelOutput):
            return reply

        intended_text = reply.text if isinstance(reply, ShortReply) else reply
        # Of a conversation all of it: the same question is put about many.
        conversation = "\x1f".join(message.text for message in input)
        text, stop_reason = _spoiled(mind, intended_text, conversation, observes=observes)
        output = self.output(text, stop_reason, prompt)
        if isinstance(reply, ShortReply) and reply.candidates and config.logprobs and text:
            candidates = reply.candidates if text == intended_text else {text.split()[0]: 0.9}
            output.choices[0].logprobs = Logprobs(content=[_first_token(candidates)])
        if not is_known_prompt:
            for dress in DRESSINGS:
                dress(mind, output, config)
        return output

    def output(self, text: str, stop_reason: StopReason, prompt: str) -> ModelOutput:
        """A ModelOutput with its usage (without one Inspect would fetch a tokenizer)."""
        input_tokens = len(prompt) // 4 + 1
        output_tokens = len(text) // 4 + 1
        return ModelOutput(
            model=self.model_name,
            choices=[
                ChatCompletionChoice(
                    message=ChatMessageAssistant(
                        content=text, model=self.model_name, source="generate"
                    ),
                    stop_reason=stop_reason,
                )
            ],
            usage=ModelUsage(
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                total_tokens=input_tokens + output_tokens,
            ),
        )

    def max_connections(self) -> int:
        return 100


def _spoiled(mind: Mind, text: str, prompt: str, *, observes: bool) -> tuple[str, StopReason]:
    """The reply after the planted faults: at most one, drawn by prompt."""
    prefix = "" if observes else "act_"
    draw = mind.chance("fault", observes, prompt)
    for fault in FAULTS:
        rate = mind.settings.get(prefix + fault, 0.0)
        if draw >= rate:
            draw -= rate
            continue
        match fault:
            case "malformed":
                return _MALFORMED[int(len(_MALFORMED) * draw / rate)], "stop"
            case "refused":
                return REFUSAL, "stop"
            case "truncated":
                return "", "max_tokens"
        return "", "stop"
    return text, "stop"


def _first_token(candidates: Mapping[str, float]) -> Logprob:
    top_logprobs = [TopLogprob(token=token, logprob=math.log(p)) for token, p in candidates.items()]
    top_logprobs.sort(key=lambda candidate: -candidate.logprob)
    first = top_logprobs[0]
    return Logprob(token=first.token, logprob=first.logprob, top_logprobs=top_logprobs)


@modelapi(name="planted")
def planted() -> type[ModelAPI]:
    """Simulated models with a known truth."""
    return PlantedAPI
