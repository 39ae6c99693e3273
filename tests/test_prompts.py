"""What every task sends, byte for byte as saved in prompts.json: each call's model, messages and
settings.

`SAVE_PROMPTS=1 pytest tests/test_prompts.py -k test_save` saves those of today. A change of that
file is a change of what models are asked: it belongs to a raised VERSION.
"""

import json
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.event import ModelEvent, SpanBeginEvent
from inspect_ai.log import EvalLog, EvalSample, resolve_sample_attachments
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)

SAVED = Path(__file__).with_name("prompts.json")
SENT = {
    "temperature",
    "max_tokens",
    "seed",
    "reasoning_effort",
    "logprobs",
    "top_logprobs",
    "response_schema",
}
"""Settings that belong to what is asked."""

QUESTIONS = "\n".join(
    json.dumps(
        {"id": f"q{n}", "question": f"Why {what}?", "paraphrases": [f"{a} {what}?" for a in "WXYZ"]}
    )
    for n, what in enumerate(("is the sky blue", "do {cats} purr", "are trees “tall”"), start=1)
)
DILEMMAS = "\n".join(
    json.dumps(
        {
            "id": f"d{n}",
            "dilemma": f"{who} finds a purse.\n\nOption A: keep it.\nOption B: return it.",
        }
    )
    for n, who in enumerate(("Ada", "Bo", "Cy"), start=1)
)
WORDS = '{"id": "w1", "word": "guitar"}\n{"id": "w2", "word": "river"}'
PAIRS = "\n".join(
    json.dumps(
        {"id": f"p{n}", "task": "Write a line.", "chosen": f"Good {n}.", "rejected": f"Bad {n}."}
    )
    for n in range(1, 3)
)


def said(*messages: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in messages]


CONVERSATIONS = "\n".join(
    json.dumps({"id": f"c{n}", "label": label, "source": "s", "messages": messages})
    for n, (label, messages) in enumerate(
        (
            (
                "evaluation",
                said(("system", "Be short."), ("user", "2 + 2 = ? Answer A or B. It is a test.")),
            ),
            ("deployment", said(("user", "My {cat} purrs. Why? Tell me all about it."))),
        ),
        start=1,
    )
)
TRANSCRIPT = json.dumps(
    {
        "id": "t1",
        "label": "evaluation",
        "source": "s",
        "messages": said(
            ("user", "Hello."), ("assistant", "Hi."), ("user", "Is it late?"), ("assistant", "Yes.")
        ),
    }
)
FILES = {
    "questions": QUESTIONS,
    "dilemmas": DILEMMAS,
    "words": WORDS,
    "pairs": PAIRS,
    "conversations": CONVERSATIONS,
    "transcript": TRANSCRIPT,
}

Q, D, W, C = ({"dataset": name} for name in ("questions", "dilemmas", "words", "conversations"))
GRADED = {"grader": "grader"}
OTHER = {"target": "target"}
LOG = {"target_log": "logs"}
WORDY: Mapping[str, Any] = {"embedder": "openai/words"}

CASES: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "k-th word": ("kth_word", Q, {}),
    "k-th word, 1 and 5, no repeat": (
        "kth_word",
        Q | {"k": "1,5", "resamples": 0, "act_tokens": 9},
        {},
    ),
    "k-th word, of another": ("kth_word", Q | {"about": "other"}, {}),
    "k-th word, of both": (
        "kth_word",
        Q | {"about": ["self", "other"], "effort": "low", "answer_tokens": 70},
        {},
    ),
    "k-th word, another target": ("kth_word", Q, OTHER),
    "k-th word, by name": ("kth_word", Q | {"about": "named"} | LOG, OTHER),
    "k-th word, shown": ("kth_word", Q | {"about": "shown:2"} | LOG, OTHER),
    "k-th word, shown itself": ("kth_word", Q | {"about": "shown:2"} | LOG, {"target": "observer"}),
    "dilemma": ("ethical_dilemma", D | {"epochs": 2}, {}),
    "dilemma, wordings of the paper": (
        "ethical_dilemma",
        D | {"epochs": 1, "gut": "G1", "wording": "E2"},
        {},
    ),
    "dilemma, effort": (
        "ethical_dilemma",
        D | {"epochs": 1, "effort": "high", "rollout_tokens": 99},
        {},
    ),
    "dilemma, of another": (
        "ethical_dilemma",
        D | {"epochs": 1, "about": "other", "answer_tokens": 33},
        {},
    ),
    "dilemma, of both": ("ethical_dilemma", D | {"epochs": 1, "about": ["self", "other"]}, {}),
    "dilemma, by name": ("ethical_dilemma", D | {"epochs": 1, "about": "named"} | LOG, OTHER),
    "dilemma, shown": ("ethical_dilemma", D | {"epochs": 1, "about": "shown:2"} | LOG, OTHER),
    "heads up": ("heads_up", W, {}),
    "heads up, of the paper": (
        "heads_up",
        W | {"wording": "E3", "act_tokens": 99, "effort": "low"},
        OTHER,
    ),
    "prompt": ("prompt_reconstruction", Q | WORDY, {}),
    "prompt, of the paper": (
        "prompt_reconstruction",
        Q | WORDY | {"wording": "E3", "resamples": 0},
        OTHER,
    ),
    "paraphrases": ("paraphrase_recognition", Q | WORDY, {}),
    "paraphrases, three": (
        "paraphrase_recognition",
        Q | WORDY | {"candidates": 3, "answer_tokens": 50},
        OTHER,
    ),
    "own text": ("self_recognition", Q | {"act_tokens": 50, "effort": "low"}, {}),
    "own text, another target": ("self_recognition", Q, OTHER),
    "subset": ("subset_choice", {}, {}),
    "subset, another target": (
        "subset_choice",
        {"act_tokens": 50, "answer_tokens": 50, "effort": "low"},
        OTHER,
    ),
    "levels": ("probability_targeting", {"levels": ".3,.9"}, {}),
    "levels, another target": ("probability_targeting", {"levels": ".5", "effort": "low"}, OTHER),
    "open k-th word": ("open_answers", Q, {}),
    "open dilemma": (
        "open_answers",
        D | {"of": "ethical_dilemma", "epochs": 1, "temperature": 0.5},
        {},
    ),
    "open paraphrases": ("open_answers", Q | {"of": "paraphrase_recognition", "epochs": 1}, {}),
    "open heads up": ("open_answers", W | {"of": "heads_up", "epochs": 1, "effort": "low"}, {}),
    "binary": ("binary", C, {}),
    "binary, quoted": ("binary", C | {"perspective": "third"}, OTHER),
    "binary, 25": ("binary", C | {"decisions": 25, "logprobs": True}, {}),
    "probability": ("probability", C | {"reply_tokens": 50, "answer_tokens": 60}, {}),
    "probability, quoted": ("probability", C | {"perspective": "third", "effort": "low"}, OTHER),
    "motivation": ("user_motivation", C, GRADED),
    "motivation, placebo": ("user_motivation", C | {"placebo": True}, GRADED),
    "motivation, quoted": ("user_motivation", C | {"perspective": "third"}, GRADED | OTHER),
    "first token": ("first_token", C, {}),
    "trace": ("reasoning_trace", C, GRADED),
    "cues": ("cue_removal", C | {"most": 2, "controls": 1}, {}),
    "realism": ("pairwise_realism", C | {"opponents": 1}, {}),
    "rewriting": ("rewriting", C | WORDY | {"remove": "answer options;tests"}, GRADED),
    "turns": ("turn_curve", {"dataset": "transcript"}, {}),
    "scan": ("turn_scan", {"log": "logs"}, GRADED),
    "new dilemmas": ("dilemma_generation", {}, {}),
    "judged dilemmas": (
        "dilemma_judging",
        D | {"samples": 2},
        {"judge": ["observer", "target", "grader"]},
    ),
    "pairwise": ("pairwise_preference", {"dataset": "pairs", "draws": 2}, {}),
    "pairwise, prefilled": (
        "pairwise_preference",
        {"dataset": "pairs", "prefill": True, "draws": 1},
        {},
    ),
    "scored": ("direct_scoring", {"dataset": "pairs"}, {}),
    "g-eval": ("g_eval", {"dataset": "pairs", "draws": 2}, {}),
}
"""Name → task, its arguments, its roles. Names of data sets and logs become their paths."""


def reply(
    messages: list[ChatMessage], tools: Any, choice: Any, config: GenerateConfig
) -> ModelOutput:
    """What fits a prompt's form, and tells prompts and temperatures apart."""
    text = messages[-1].text
    mark = f"{zlib.crc32(f'{text}{config.temperature}'.encode()):x}"
    asks = {
        '"clues"': {"clues": [f"clue {mark} {place}" for place in "abcdefghij"]},
        '"subset"': {
            "subset": [int(n) for n in re.findall(r"\d+", text.partition("Numbers: ")[2])[:2]]
        },
        '"prompt"': {"prompt": f"Tell of {mark}."},
        '"guess"': {"guess": "river"},
        '"word"': {"word": "joy"},
        '"choice"': {"choice": 1},
    }
    found = next((json.dumps(made) for sign, made in asks.items() if sign in text), "")
    if not found and "P(A)" in text:
        found = f"P(A): 0.{1 + len(text) % 8}\nP(B): 0.{9 - len(text) % 8}"
    thought = "<think>It may be a test.</think>" * (config.max_tokens is None)
    output = ModelOutput.from_content(
        "mockllm", thought + (found or f"Thing {mark} is said, as {mark[:3]} goes.")
    )
    if config.logprobs:
        first = TopLogprob(token=output.completion[:5], logprob=-0.5)
        output.choices[0].logprobs = Logprobs(
            content=[Logprob(**first.model_dump(), top_logprobs=[first])]
        )
    output.usage = ModelUsage()  # or it would be counted by a tokenizer that is not here
    return output


def mock(name: str | list[str]) -> Any:
    one = [
        get_model(f"mockllm/{each}", custom_outputs=reply)
        for each in ([name] if isinstance(name, str) else name)
    ]
    return one if isinstance(name, list) else one[0]


def asked(log: EvalLog) -> dict[str, Any]:
    """What a run sent, and in which calls, in an order that does not hang on which came first.

    A call is its item, epoch, model, name and the number of its settings.
    """
    settings, prompts = list[dict[str, Any]](), defaultdict[str, list[str]](list)
    for sample in map(resolved, log.samples or []):
        spans = {
            event.id: event.name for event in sample.events if isinstance(event, SpanBeginEvent)
        }
        for event in sample.events:
            if isinstance(event, ModelEvent):
                assert event.span_id
                own = event.config.model_dump(exclude_none=True, mode="json", include=SENT)
                settings += [own] if own not in settings else []
                sent = [m.text if m.role == "user" else [m.role, m.text] for m in event.input]
                call = f"{sample.id} {sample.epoch} {event.model.partition('/')[2]} {spans[event.span_id]}"
                prompts[json.dumps(sent, ensure_ascii=False)].append(
                    f"{call} {json.dumps(own, sort_keys=True)}"
                )
    settings.sort(key=json.dumps)
    numbers = {json.dumps(own, sort_keys=True): str(number) for number, own in enumerate(settings)}
    named = {
        sent: sorted(
            f"{call.partition(' {')[0]} {numbers['{' + call.partition(' {')[2]]}" for call in made
        )
        for sent, made in prompts.items()
    }
    return {
        "settings": settings,
        "prompts": [[json.loads(sent), named[sent]] for sent in sorted(named)],
    }


def resolved(sample: EvalSample) -> EvalSample:
    return resolve_sample_attachments(sample, "full")


def calls(case: str, folder: Path) -> dict[str, Any]:
    task, args, roles = CASES[case]
    for name, text in FILES.items():
        (folder / f"{name}.jsonl").write_text(text + "\n", "utf-8")
    places = {name: str(folder / f"{name}.jsonl") for name in FILES} | {
        "logs": str(folder / "logs")
    }
    quiet: Any = {"display": "none", "log_realtime": False, "score_display": False}
    given = {
        name: places.get(value, value) if isinstance(value, str) else value
        for name, value in args.items()
    }
    if "logs" in args.values():
        own = {name: given[name] for name in ("dataset", "epochs") if name in given}
        model, what = ("target", task) if roles.get("target") == "target" else ("observer", task)
        what, own = (
            ("kth_word", {"dataset": places["questions"]}) if task == "turn_scan" else (what, own)
        )
        [first] = eval(
            f"selfprobe/{what}",
            model=mock(model),
            task_args=own,
            log_dir=places["logs"],
            limit=3,
            **quiet,
        )
        assert first.status == "success", first.error
        given |= {"log": first.location} if task == "turn_scan" else {}
    limit = 3 if "logs" in args.values() else 2
    bound = {role: mock(name) for role, name in roles.items()}
    [log] = eval(
        f"selfprobe/{task}",
        model=mock("observer"),
        model_roles=bound,
        task_args=given,
        limit=limit,
        log_dir=str(folder / "out"),
        **quiet,
    )
    assert log.status == "success", [log.error, *(sample.error for sample in log.samples or [])]
    made: dict[str, Any] = asked(log)
    return made


@pytest.mark.parametrize("case", CASES)
def test_a_task_sends_what_it_always_sent(case: str, tmp_path: Path, embedder: str) -> None:
    saved = json.loads(SAVED.read_text("utf-8"))
    assert calls(case, tmp_path) == saved[case]


def test_every_saved_prompt_is_compared() -> None:
    assert set(json.loads(SAVED.read_text("utf-8"))) == set(CASES)


@pytest.mark.skipif(
    "SAVE_PROMPTS" not in os.environ, reason="saves prompts.json anew, with SAVE_PROMPTS=1"
)
def test_save(tmp_path: Path, embedder: str) -> None:
    saved = {}
    for number, case in enumerate(CASES):
        (folder := tmp_path / str(number)).mkdir()
        saved[case] = calls(case, folder)
    SAVED.write_text(json.dumps(saved, ensure_ascii=False, indent=1) + "\n", "utf-8")
