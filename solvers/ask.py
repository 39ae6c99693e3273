"""Send prompts that need not wait for each other, together."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from anyio import create_task_group
from inspect_ai.model import (
    CachePolicy,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ResponseSchema,
    get_model,
    model_roles,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolInfo
from inspect_ai.util import JSONSchema, span

from selfprobe.data import Table
from selfprobe.data.prices import LOCAL, LOCAL_LIMIT
from selfprobe.errors import InputError, one_line, warn_once
from selfprobe.errors.arguments import SAME_MODEL
from selfprobe.errors.inspect_private import (
    active_generate_config,
    active_model,
    sample_active,
    suspend_store_events,
)
from selfprobe.solvers.negotiate import RefusalsNoted, Refused, merged_settings, negotiated_reply
from selfprobe.solvers.record import SPLIT_BY_SERVER, Reply
from selfprobe.solvers.seeded_transformers import is_hugging_face, set_sampling

Prompts = Mapping[str, str | list[ChatMessage]]
"""Prompts to send, by the name under which the reply is recorded."""

PromptFunction = Callable[[TaskState], Prompts]

Settings = GenerateConfig | Callable[[TaskState], GenerateConfig]
"""Settings that the method fixes; a function where they differ by sample or epoch (the seed of a
rollout).
"""

Tools = Callable[[TaskState], Sequence[ToolInfo]]
"""Tools that came with a conversation; they are offered, and a call of one is not answered."""


def no_tools(state: TaskState) -> Sequence[ToolInfo]:
    """No tools, as for most prompts."""
    return ()


DEFAULT_RETRIES = GenerateConfig(max_retries=5, timeout=900, attempt_timeout=300)
"""Retries, and seconds for a call with all its attempts and for one attempt, where the command line
sets none.

Sent with every call: `attempt_timeout` does not reach role models otherwise, and Inspect retries
for ever by default, so that one hung call holds a run.
"""


def json_reply(
    field: str, kind: Literal["string", "integer"], *, longest: int | None = None
) -> ResponseSchema:
    """Settings for a reply that is one JSON object with one field, where the provider can enforce
    that.

    Paper: "JSON output was utilized where applicable" (E.1). Replies of other providers are parsed,
    too.

    Args:
        field: Name of the field, as the prompt gives it.
        kind: Its JSON type.
        longest: Largest number of characters of a string; keeps a small model from writing on until
            the token limit.
    """
    return ResponseSchema(
        name="reply",
        json_schema=JSONSchema(
            type="object",
            properties={field: JSONSchema(type=kind, maxLength=longest)},
            required=[field],
            additionalProperties=False,
        ),
    )


NO_SETTINGS = GenerateConfig()

StandIn = Callable[
    [str | None, str, str | list[ChatMessage], GenerateConfig, bool], Awaitable[Reply]
]
"""Function that replies in a rehearsal: role, name, prompt, settings and whether a reply may be cut
→ the reply.
"""

_stand_in: ContextVar[StandIn | None] = ContextVar("_stand_in", default=None)


@contextmanager
def rehearsal(stand_in: StandIn) -> Iterator[None]:
    """Context in which no model is asked: a task is played to count its calls
    (`selfprobe.study.described`).
    """
    token = _stand_in.set(stand_in)
    try:
        yield
    finally:
        _stand_in.reset(token)


def rehearsing() -> bool:
    """Whether a rehearsal is under way, in which no model is asked."""
    return _stand_in.get() is not None


async def ask(
    prompts: Prompts,
    *,
    role: str | Model | None,
    config: GenerateConfig,
    may_be_cut: bool,
    needs: GenerateConfig = NO_SETTINGS,
    tools: Sequence[ToolInfo] = (),
) -> dict[str, Reply]:
    """Replies to all prompts, asked concurrently, by name.

    Args:
        prompts: Prompts to send.
        role: The model role to ask, of one model; None or an unbound role is the evaluated model.
            Or a model itself (one of a panel).
        config: Settings of the method; they win over the command line's, DEFAULT_RETRIES does not. A
            setting that the model refuses is changed or left out (`negotiate`).
        may_be_cut: Whether a reply that ends at the token limit is good.
        needs: Settings that the method cannot do without, or that the user chose.
        tools: Tools that the model may call; a call is the reply, as text.

    Raises:
        Exception: The provider's error when the retries are used up; it ends the sample, and a
            resume (`inspect eval-retry`) asks again.
        Refused: The vendor refuses for good, or refused every call of this run.
        InputError: The role is of several models.
    """
    stand_in = _stand_in.get()
    if stand_in is not None:
        return await _rehearsed_replies(stand_in, prompts, role, config, needs, may_be_cut)
    model = role if isinstance(role, Model) else single_model_of_role(role)
    _warn_of_overridden(model, merged_settings(config, needs))
    wishes = merged_settings(_connection_settings(model), _local_limit(model), config)

    async def ask_one(name: str, prompt: str | list[ChatMessage]) -> Reply:
        def send(settings: GenerateConfig) -> Awaitable[ModelOutput]:
            _refuse_after_failure()
            set_sampling(model, settings)
            return model.generate(prompt, tools, config=settings, cache=_cache(name))

        async with span(name):  # name of the call in the transcript
            with RefusalsNoted(model, needs):
                return await negotiated_reply(
                    model,
                    send,
                    wishes=wishes,
                    needs=needs,
                    may_be_cut=may_be_cut,
                    prompt=_sole_text(prompt),
                    tools=bool(tools),
                )

    # Each call's span would log what other calls write into the store meanwhile; the solver's span
    # logs it once.
    with suspend_store_events():
        replies = await all_ended(ask_one(name, prompt) for name, prompt in prompts.items())
    return {
        name: flag_substituted_model(reply) for name, reply in zip(prompts, replies, strict=True)
    }


async def _rehearsed_replies(
    stand_in: StandIn,
    prompts: Prompts,
    role: str | Model | None,
    config: GenerateConfig,
    needs: GenerateConfig,
    may_be_cut: bool,
) -> dict[str, Reply]:
    settings = merged_settings(config, needs)
    role_name = str(role) if role else None
    replies = {}
    for name, prompt in prompts.items():
        replies[name] = await stand_in(role_name, name, prompt, settings, may_be_cut)
    return replies


def _sole_text(prompt: str | list[ChatMessage]) -> str:
    """Text of a prompt's only message; "" where it has several."""
    if isinstance(prompt, str):
        return prompt
    return prompt[0].text if len(prompt) == 1 else ""


T = TypeVar("T")


@dataclass
class _ConcurrentWork:
    """Work that is done at once, with the work that is done at once in it."""

    has_failed: bool = False


_concurrent_work: ContextVar[_ConcurrentWork | None] = ContextVar("_concurrent_work", default=None)


async def all_ended(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results of work that is done at once, in its order.

    Where a part fails, no further call is sent, and the calls that are under way end first: they
    are paid for.

    Args:
        coroutines: Coroutines that were not started.

    Raises:
        Exception: The first error.
    """
    result_by_number: dict[int, T] = {}
    errors: list[Exception] = []
    work = _concurrent_work.get() or _ConcurrentWork()

    async def end(number: int, coroutine: Coroutine[Any, Any, T]) -> None:
        try:
            result_by_number[number] = await coroutine
        except Exception as error:  # raised below
            errors.append(error)
            work.has_failed = True

    token = _concurrent_work.set(work)
    try:
        async with create_task_group() as group:
            for number, coroutine in enumerate(coroutines):
                group.start_soon(end, number, coroutine)
    finally:
        _concurrent_work.reset(token)
    if errors:
        raise errors[0]
    return [result_by_number[number] for number in sorted(result_by_number)]


def _refuse_after_failure() -> None:
    """Raise instead of sending a call of work that failed.

    Raises:
        Refused: It did; the error of the part that failed is the work's.
    """
    work = _concurrent_work.get()
    if work is not None and work.has_failed:
        raise Refused("not asked: another call of this sample failed")


def flag_substituted_model(reply: Reply) -> Reply:
    """A reply of this run, marked with a problem if another model wrote it and the run leaves such
    replies out.
    """
    if reply.inline_thought:
        warn_once(
            f"{reply.model} sends its thoughts inside its replies, where they are split off; "
            f"{SPLIT_BY_SERVER}"
        )
    if not reply.is_substituted:
        return reply
    active = sample_active()
    if active is not None and (active.sample.metadata or {}).get(SAME_MODEL):
        return reply.model_copy(update={"problem": "other_model"})
    _warn_of_substituted_model(reply)
    return reply


def panel(role: str) -> list[Model]:
    """Models of a role, in their order; none where it is unbound.

    Raises:
        InputError: One model is there twice.
    """
    bound = model_roles().get(role, [])
    models = bound if isinstance(bound, list) else [bound]
    names = [str(model) for model in models]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InputError(f"the role {role} has {name} twice; list each model once")
    return models


def single_model_of_role(role: str | None) -> Model:
    """Single model of a role; the evaluated model for None and for a role that is unbound.

    Raises:
        InputError: The role is of several models.
    """
    models = panel(role) if role else []
    if len(models) > 1:
        names = ", ".join(map(str, models))
        raise InputError(
            f"the role {role} takes one model, got {names}; pass --model-role {role}={models[0]}"
        )
    return get_model(role=role) if role else get_model()


def settings_for(state: TaskState, config: Settings) -> GenerateConfig:
    """Settings of this sample and epoch."""
    return config if isinstance(config, GenerateConfig) else config(state)


def in_a_run() -> bool:
    """Whether a task is built by the run that will use it, so that `get_model` already gives that
    run's models.

    Inspect builds the tasks that it gets by name or path in its event loop. A task object that a
    script or the matrix makes is built outside, where the models of the process's previous run may
    still stand.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return active_model() is not None


def task_metadata(table: Table) -> dict[str, str]:
    """The metadata of a task: its data, the suite's version, and the target where the run is known."""
    return table.metadata | ({"target": str(single_model_of_role("target"))} if in_a_run() else {})


def require_model(role: str | None = None) -> None:
    """Refuse a run that was given no model to ask, before each of its samples fails on that.

    Args:
        role: Model role that the task will ask; None or an unbound role is the evaluated model.

    Raises:
        InputError: While the task is built in such a run, or in one with several models in the
            role.
    """
    if in_a_run() and str(single_model_of_role(role)) == "none/none":
        raise InputError(
            "no model is given: pass --model provider/name, such as --model embedded/smollm2"
        )


_ALTERNATIVE_BY_SETTING = {
    "temperature": "",
    "top_logprobs": "",
    "logprobs": "",
    "seed": "",
    "response_schema": "",
    "max_tokens": "; -T answer_tokens=… sets it",
    "reasoning_effort": "; -T effort=… sets it",
}
"""Options of Inspect that methods set themselves, and alternatives for the user."""


def _warn_of_overridden(model: Model, settings: GenerateConfig) -> None:
    """Warn, once each, of settings from the user that a method overrides."""
    for setting, alternative in _ALTERNATIVE_BY_SETTING.items():
        user_value = getattr(model.config, setting)
        method_value = getattr(settings, setting)
        if user_value is None or method_value is None or user_value == method_value:
            continue
        option = f"--{setting.replace('_', '-')} {user_value}"
        warn_once(
            f"{option} of {model} is not used: this task sets the {setting} of its calls"
            f"{alternative}"
        )


_warned_substitutions: set[str] = set()
"""Models whose replies another model wrote, and for which a line was printed."""


def _warn_of_substituted_model(reply: Reply) -> None:
    if reply.model not in _warned_substitutions:
        _warned_substitutions.add(reply.model)
        warn_once(
            f"{reply.model} was asked, and {one_line(str(reply.answered_by))} answered; "
            f"-T {SAME_MODEL}=true leaves such replies unscored"
        )


def _connection_settings(model: Model) -> GenerateConfig:
    """DEFAULT_RETRIES, or the command line's values, and as many connections as a local server has
    slots.

    Inspect's adaptive connections start at 20 whatever the provider says, and would wait in the
    server's queue. A local server is slow at times, and never hangs: no timeouts. A batch takes
    minutes to a day, and a timeout would submit it again: no timeouts either.
    """
    slots: int | None = getattr(model.api, "slots", None)
    run_config = active_generate_config()
    batch = run_config.batch if model.config.batch is None else model.config.batch
    may_hang = slots is None and not batch and not is_hugging_face(model)
    defaults = DEFAULT_RETRIES
    if not may_hang:
        defaults = GenerateConfig(max_retries=DEFAULT_RETRIES.max_retries)
    user_config = GenerateConfig(
        max_retries=run_config.max_retries,
        timeout=run_config.timeout,
        attempt_timeout=run_config.attempt_timeout,
        max_connections=run_config.max_connections or slots,
        batch=batch,  # the command line's does not reach role models otherwise
    )
    return merged_settings(defaults, user_config)


def _local_limit(model: Model) -> GenerateConfig:
    """LOCAL_LIMIT for a model that runs here, where neither user nor method limits a reply.

    Otherwise a small model that falls into a loop would write for minutes, once per item.
    """
    is_local = str(model).partition("/")[0] in LOCAL
    is_limited = (
        active_generate_config().max_tokens is not None or model.config.max_tokens is not None
    )
    if is_local and not is_limited:
        return GenerateConfig(max_tokens=LOCAL_LIMIT)
    return NO_SETTINGS


def _cache(name: str) -> CachePolicy | bool:
    """Setting of Inspect's cache if the command line asks for it (`--cache`), for roles too.

    Each name has entries of its own: a prompt that is sent twice is a second draw, not the first
    one again.
    """
    run_cache = active_generate_config().cache
    if not run_cache:
        return False
    policy = run_cache if isinstance(run_cache, CachePolicy) else CachePolicy()
    return policy.model_copy(update={"scopes": {**policy.scopes, "reply": name}})


def show_in_log(state: TaskState, prompts: Prompts, replies: Mapping[str, Reply]) -> None:
    """Add prompts and replies to the end of the sample's messages, for readers of the log.

    Calls that were made separately stand there one after the other, so each but a first one begins
    with a note that was never sent. Inspect's log browser gathers such notes at the top, so the
    question carries the note too, as metadata, which the browser shows under it. No code of the
    suite reads messages: prompts are made of the sample's input and the Record.
    """
    for name, prompt in prompts.items():
        reply = replies[name]
        question = prompt if isinstance(prompt, str) else prompt[-1].text
        previous_message = state.messages[-1] if state.messages else None
        is_shown = (
            previous_message is not None
            and previous_message.role == "user"
            and previous_message.text == question
        )
        if not is_shown:
            note = _context_note(prompt)
            heading = f"Separate call {name} (a note of the log, never sent): {note}"
            state.messages.append(ChatMessageSystem(content=heading))
            metadata = {f"separate call {name}": note}
            state.messages.append(ChatMessageUser(content=question, metadata=metadata))
        state.messages.append(
            ChatMessageAssistant(content=reply.text, model=reply.model, source="generate")
        )
        state.output = ModelOutput.from_content(
            reply.model, reply.text, stop_reason=reply.stop_reason
        )


def _context_note(prompt: str | list[ChatMessage]) -> str:
    """What the model saw with this prompt."""
    if isinstance(prompt, str) or len(prompt) == 1:
        return "the model saw the question of this call alone."
    context = f"the conversation ({len(prompt) - 1} messages)"
    return f"before this question the model saw {context}, and no other question or answer."


@solver
def together(*solvers: Solver) -> Solver:
    """Run solvers at the same time on one state, such as an `act` and an `answer` that do not read
    each other.

    Messages are in the solvers' order, whichever ends first. In a rehearsal one runs after the
    other: there a prompt that shows acts to other items shows the item's own.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if rehearsing():
            for each_solver in solvers:
                state = await each_solver(state, generate)
            return state
        branches = [copy(state) for _ in solvers]
        for branch in branches:
            branch.messages = list(state.messages)

        async def solve_branch(branch_solver: Solver, branch: TaskState) -> TaskState:
            return await branch_solver(branch, generate)

        await all_ended(
            solve_branch(branch_solver, branch)
            for branch_solver, branch in zip(solvers, branches, strict=True)
        )
        shared_count = len(state.messages)
        for branch in branches:
            state.messages.extend(branch.messages[shared_count:])
            if len(branch.messages) > shared_count:
                state.output = branch.output
        return state

    return solve
