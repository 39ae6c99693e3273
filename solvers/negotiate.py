"""The one place that knows how a method's wishes meet a model.

A method *needs* some settings and would *like* others: no reasoning, temperature 0, a JSON schema, a short limit. What
a vendor refuses is sent otherwise or left out, as its answer says: the first error 400 that names the setting. That is
remembered for the model, and its first calls wait for one another, so that it costs one request a refused setting.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from inspect_ai.model import GenerateConfig, Model, ModelOutput, ModelUsage

from selfprobe.errors.arguments import one_of, whole
from selfprobe.solvers.objection import Effort, Objection, Refusal, gist
from selfprobe.solvers.record import Reply, reply_from
from selfprobe.solvers.refused import refuse_if_closed
from selfprobe.solvers.sent import applied, with_request
from selfprobe.solvers.terms import ROOM, Terms, terms_of
from selfprobe.text import busy

SETTINGS = ("reasoning_effort", "response_schema", "seed", "temperature", "logprobs", "max_tokens")
"""What can be negotiated, as Inspect calls it; in the order in which they are left out where a vendor says that one is
to blame, but not which. Models that know no effort do not reason, and replies without a schema are parsed all the same;
another temperature is another measurement.
"""

Send = Callable[[GenerateConfig], Awaitable[ModelOutput]]


def chosen(answer_tokens: int | None = None, effort: Effort | None = None) -> GenerateConfig:
    """What a user set with `-T answer_tokens` and `-T effort`: needs, which are sent as they are given.

    Raises:
        InputError: One of them is no such value.
    """
    whole(answer_tokens=answer_tokens, optional=True)
    if effort is not None:
        one_of("effort", effort, get_args(Effort))
    return GenerateConfig(max_tokens=answer_tokens, reasoning_effort=effort)


@dataclass
class _Call:
    """One reply under way."""

    terms: Terms
    wishes: GenerateConfig
    needs: GenerateConfig
    spent: dict[str, str] = field(default_factory=dict)
    """What it gave up, and the objection that it did so for."""
    guessed: list[str] = field(default_factory=list)
    """What it left out since the vendor named nothing."""
    guesses: list[list[str]] | None = None
    """What it could leave out then, one after the other; None before the first."""

    room: bool = False
    """Whether it was sent again with room to think."""
    likes: list[str] = field(init=False)
    """The settings that can be given up."""
    needs_logprobs: bool = field(init=False)

    def __post_init__(self) -> None:
        self.needs_logprobs = bool(self.needs.logprobs)
        if self.needs_logprobs:  # as a wish, the vendor may say of how many tokens
            self.wishes = self.wishes.merge(self.needs)
            self.needs = self.needs.model_copy(update=_without("logprobs"))
        self.likes = [n for n in SETTINGS if getattr(self.wishes, n) is not None and getattr(self.needs, n) is None]

    def settings(self) -> GenerateConfig:
        """What is sent, by what is known now: other calls learn too."""
        return self.terms.meet(self.wishes, self.likes, room=self.room).merge(self.needs)

    @property
    def trials(self) -> list[str]:
        """What it waits for others to try; of limits each, since a model may think within one and not another.

        In a batch nothing: a trial would be a batch of its own.
        """
        if self.wishes.batch:
            return []
        limit = [] if self.terms.thinks else [f"max_tokens {self.wishes.max_tokens}"]
        return [name for like in self.likes for name in (limit if like == "max_tokens" else [like])]

    def lacks_logprobs(self) -> bool:
        """Whether the model is known to give no candidates for the first token to a method that needs them."""
        return self.needs_logprobs and (self.terms.mute or not self.settings().logprobs)

    def gives_up(self, said: Objection, sent: GenerateConfig) -> bool:
        """Whether something was given up for an objection to what was sent, so that it is worth sending again."""
        if not said.fields:
            return self._guesses(sent, one_by_one=said.one_by_one)
        for name in said.fields:
            if name not in self.likes:
                if getattr(sent, name) is not None:  # a need
                    return False
            elif _of(sent, name) != _of(self.settings(), name):  # another call gave it up meanwhile
                return True
            elif getattr(sent, name) is None:
                self._insist(name, said)
            elif name not in self.terms.insisted:
                self.spent[name] = gist(said.text)
                self.terms.learn(name, said.instead(name, sent), sent)
                return True
        return False

    def _insist(self, name: str, said: Objection) -> None:
        """Take a setting back whose refusal came back the same without it: it was about something else."""
        if self.spent.get(name) == gist(said.text):
            self.terms.instead.pop(name, None)
            self.terms.insisted.add(name)

    def _guesses(self, sent: GenerateConfig, *, one_by_one: bool) -> bool:
        """Leave out, once a model, what it was never asked with but the limit: each alone or not, then all of it.

        Candidates for the first token that a method needs come last, and then nothing is sent.
        """
        if any(_of(sent, name) != _of(self.settings(), name) for name in self.likes):  # another call left it out
            return True
        self.failed()
        if self.guesses is None:
            kept = {"max_tokens", "logprobs" if self.needs_logprobs else "", *self.terms.taken, *self.terms.guessed}
            names = [name for name in self.likes if name not in kept and getattr(sent, name) is not None]
            self.terms.guessed.update(names)
            self.guesses = [[name] for name in names if one_by_one and len(names) > 1] + [names]
            self.guesses += [["logprobs"]] if one_by_one and self.needs_logprobs else []
        self.guessed = self.guesses.pop(0) if self.guesses else []
        self.terms.instead |= {name: _without(name) for name in self.guessed}
        return bool(self.guessed)

    def failed(self) -> None:
        """It was no setting's fault: what was left out on a guess is sent again."""
        for name in self.guessed:
            self.terms.instead.pop(name, None)

    def needs_room(self, reply: Reply, sent: GenerateConfig) -> bool:
        """Whether a reply used up its limit before it began, and should be asked for with a larger one; once."""
        nothing = reply.stop_reason == "max_tokens" and reply.problem and (reply.reasoned or not reply.text.strip())
        if self.room and self.terms.thinks is None:
            self.terms.thinks = not nothing and reply.stop_reason != "model_length"
        limit = sent.max_tokens or ROOM
        if not nothing or self.room or self.terms.thinks is False or "max_tokens" not in self.likes or limit >= ROOM:
            return False
        self.room = True
        return (self.settings().max_tokens or 0) > limit

    def overflows(self, reply: Reply, sent: GenerateConfig) -> bool:
        """Whether prompt and limit were more than the model holds, as its words tell, and a lower limit is sent."""
        if reply.stop_reason != "model_length" or "max_tokens" not in self.likes:
            return False
        said = Objection(("max_tokens",), reply.text)
        return said.instead("max_tokens", sent)["max_tokens"] is not None and self.gives_up(said, sent)


async def agree(
    model: Model,
    send: Send,
    *,
    wishes: GenerateConfig,
    needs: GenerateConfig,
    may_be_cut: bool,
    prompt: str = "",
    tools: bool = False,
) -> Reply:
    """One reply, with all needs and as many of the wishes as the model takes.

    Args:
        model: Who is asked.
        send: Sends the prompt with these settings.
        wishes: What the method would like.
        needs: What it cannot do without, or what the user chose; sent as it is, in the place of a wish.
        may_be_cut: Whether a reply that ends at the token limit is good.
        prompt: The text that is sent, where it is one message.
        tools: Whether tools are offered.

    Returns:
        The reply. Where candidates for the first token are needed and the model is known to give none, an empty one
        with the problem "no_logprobs", and nothing is sent.

    Raises:
        Exception: The vendor refuses for good, in its own words; of RuntimeError or of its client's classes.
        Refused: It did so before, for every call of this run; nothing is sent.
    """
    terms = terms_of(model)
    call = _Call(terms, wishes, needs)
    async with terms.turn(call.trials):
        while not call.lacks_logprobs():
            refuse_if_closed(model)
            sent = call.settings()
            with Refusal() as refusal:
                output, request = await with_request(model, send(sent))
            if refusal.said is not None and refusal.error is not None:
                if not call.gives_up(refusal.said, sent):
                    call.failed()
                    raise refusal.error
                continue
            reply = reply_from(output, model, may_be_cut=may_be_cut, prompt=prompt, tools=tools)
            if call.overflows(reply, sent) or call.needs_room(reply, sent):
                continue
            thinks = bool(terms.thinks) and "max_tokens" in call.likes
            reply = reply.model_copy(update={"applied": applied(request, thinks=thinks)})
            if needs.logprobs and reply.problem is None and not _has_logprobs(output):
                terms.mute = True
            usage = output.usage or ModelUsage()
            busy.calls.note(str(model), usage.total_tokens, usage.total_cost or 0.0)
            return reply
    return Reply(text="", model=str(model), stop_reason="unknown", problem="no_logprobs")


def _has_logprobs(output: ModelOutput) -> bool:
    logprobs = output.choices[0].logprobs if output.choices else None
    return bool(logprobs and logprobs.content)


def _of(config: GenerateConfig, name: str) -> tuple[Any, ...]:
    return (config.logprobs, config.top_logprobs) if name == "logprobs" else (getattr(config, name),)


def _without(name: str) -> dict[str, None]:
    return {"logprobs": None, "top_logprobs": None} if name == "logprobs" else {name: None}
