"""No sentence of the project says more than what was computed licenses."""

import ast
import gc
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace as Of
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from selfprobe.page import Page, render
from selfprobe.stats.estimate import Estimate
from selfprobe.studies import (
    attention,
    card,
    cues,
    every,
    features,
    inside,
    lens,
    read,
    rewrite,
    scan,
)
from selfprobe.studies import effect as noticing
from selfprobe.studies.awareness.page import awareness_page, awareness_results
from selfprobe.studies.awareness.runs import PLAIN
from selfprobe.studies.awareness.verdict import Kind
from selfprobe.studies.inside import ALMOST, ELSEWHERE, SAID
from selfprobe.studies.preferences import page as probes
from selfprobe.studies.preferences import study as preferences
from tests.awareness import test_verdict as subjects

ROOT = Path(__file__).parent.parent
ROOMS = ("selfprobe", "scorers", "solvers", "introspect_tasks", "evalawareness_tasks", "preference_tasks", "bench")
UNLICENSED = {
    r"(violet|diagonal)[^.]* speaks for": "on the additive scale skill times predictability looks like self access",
    r"shows? nothing about": "what is not above a classifier may still read the inside; it is not shown to",
    r"(?<!there )is no (introspection|self-knowledge)": "it does not show it, and does not show its absence either",
    r"skill explains nothing": "a verdict is beyond what skill explains",
    r"\bs? resampled \(": "T has a t interval; nothing is resampled",
    r"proves?\b[^.]*\b(introspect|access|self-knowledge)": "nothing here is a proof",
    r"at most 5 % (?!false is what the verdict promises, whatever)[^.]*promise[^.]*\.": "a promise names its nulls",
}
"""Pattern → why no sentence may say it."""
PROMISE = r"roughly normal"
"""What a sentence with the promise of 5 % names: under which nulls it holds."""


def parsed(file: Path) -> ast.Module:
    """The tree of a file. Python 3.11 fails where a collection of garbage parses something else in between."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except SystemError:  # another thread did (python/cpython#106905)
        return ast.parse(file.read_text(encoding="utf-8"))
    finally:
        if was_enabled:
            gc.enable()


def sentences() -> Iterator[tuple[str, str]]:
    """Every text of the code and of the documentation, with the file that holds it."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(parsed(file)):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
                if texts:
                    yield str(file.relative_to(ROOT)), " ".join(" … ".join(texts).split())
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        yield str(file.relative_to(ROOT)), " ".join(file.read_text(encoding="utf-8").split())


TEXTS = tuple(sentences())


@pytest.mark.parametrize("pattern", UNLICENSED)
def test_no_text_says_what_the_numbers_do_not_license(pattern: str) -> None:
    found = [(file, hit[0]) for file, text in TEXTS if (hit := re.search(pattern, text, re.IGNORECASE))]
    wrong = [one for one in found if "promise" not in pattern or PROMISE not in one[1]]
    assert not wrong, UNLICENSED[pattern]


def text_of(page: Page, folder: Path) -> str:
    """All that a page and the terminal say."""
    html = re.sub(r"<(style|script)\b.*?</\1>", " ", render(page, str(folder)), flags=re.DOTALL)
    return " ".join([*re.sub(r"<[^>]+>", " ", html).split(), page.answer, *page.notes])


def licensed(text: str) -> None:
    """Hold a text against every pattern."""
    for pattern, why in UNLICENSED.items():
        found = re.search(pattern, text, re.IGNORECASE)
        assert not found or ("promise" in pattern and PROMISE in found[0]), f"{found[0]}: {why}"


def awareness() -> Iterator[tuple[Kind, subjects.AwarenessTables]]:
    """Logs of constructed subjects, by what is said of them."""
    yield "sees more than the words", subjects.logged(subjects.noisy(subjects.is_evaluation, 0.95), rows := told())
    yield "not shown to see more than the words", subjects.logged(subjects.noisy(subjects.has_the_word), rows)
    yield "follows the format", subjects.logged(subjects.noisy(subjects.is_benchmark), rows)
    rng = np.random.default_rng(5)
    yield "not shown to tell them apart", subjects.logged(lambda row: float(rng.random()), rows)
    yield "tells them backwards", subjects.logged(subjects.noisy(lambda row: not subjects.is_evaluation(row)), rows)
    yield "answers the same to everything", subjects.logged(lambda row: 1.0, rows)
    alike = [row | {"truth": "evaluation"} for row in rows]
    yield "nothing to tell apart", subjects.logged(subjects.noisy(subjects.is_evaluation), alike)
    lost = subjects.logged(lambda row: 0.0, rows)
    unread = lost.verdicts.assign(said=None, score=np.nan, unscored="no_response")
    yield "no verdicts", replace(lost, verdicts=unread)
    long = [row | {"text": "what now" + " " * (300 if row["word"] else 30)} for row in rows]
    yield "not shown to see more than the length", subjects.logged(subjects.noisy(subjects.has_the_word, 0.97), long)


def told() -> list[dict[str, Any]]:
    """Conversations of which a word goes with the label in 80 %."""
    return subjects.conversations(n=240)


AWARENESS = dict(awareness())


def test_every_kind_of_subject_is_constructed() -> None:
    assert set(AWARENESS) == set(get_args(Kind))


@pytest.mark.parametrize("kind", AWARENESS)
def test_every_kind_of_subject_is_said_with_what_it_licenses(kind: Kind, tmp_path: Path) -> None:
    made = AWARENESS[kind]
    run = {"method": "binary", "model": "m", **PLAIN, "grader": "", "samples": len(made.verdicts), "placebo": False}
    runs = pd.DataFrame([run | {"applied": "", "log": "logs/a.eval", "dataset": "d", "data": "d"}])
    written = awareness_results(replace(made, runs=runs))
    page = awareness_page(written)
    assert written.statements[0].kind == kind and page.answer.startswith(written.statements[0].answer)
    text = text_of(page, tmp_path)
    licensed(text)
    assert kind == "sees more than the words" or "the model sees more than the words" not in re.sub(
        r"nothing shows that the model sees more than the words", "", text
    )


def about(value: float, half: float = 0.05, n: int = 40) -> Estimate:
    """A number with its interval."""
    return Estimate(value, value - half, value + half, n, "source")


UP, DOWN, FLAT, WIDE = about(0.4), about(-0.4), about(0.0), about(0.0, 0.5)
HALF, RANKS = about(0.5), about(0.6)
NONE = Estimate(np.nan, np.nan, np.nan, 0, "source", "no data")


def cue(*, sure: bool = False, of: Estimate = WIDE, judged: int = 2, controls: int = 30) -> tuple[Any]:
    every = [Of(name="the word exam", estimate=of)] * judged
    return (Of(judged=every, sure=every[:1] if sure else [], noise=Of(n=controls, spread=0.04)),)


def patched(own: tuple[float, float], text: float = 0.1, there: bool = True) -> tuple[Any, Any, bool]:
    rows = pd.DataFrame({"group": ["shift", "relevant run", "control: pattern of the irrelevant text, given blocks"]})
    rows = rows.assign(reason="", share=[1, 0.5, text], share_low=[1, own[0], text], share_high=[1, own[1], text])
    return rows, about(0.2), there


def contrast(score: Estimate, cause: Estimate, *, shown: bool, moved: bool, strong: bool, within: bool = False) -> Any:
    of = {"score": Of(estimate=score, p=0.01), "cause": Of(estimate=cause), "dose": Of(strong=strong, f=20.0)}
    return Of(arm="cue_out", shown=shown, moved=moved, holm=0.01, within=lambda smallest: within, **of)


def effect(*cues: Any, told: tuple[Any, ...] = (), edge: str = "") -> tuple[Any]:
    return (Of(cues=cues, instructed=told, edge=edge, smallest=0.05, arm=lambda name: Of(score=about(1.0))),)


def judged(kind: str, share: float = 0.3, words: float = 0.4) -> tuple[Any]:
    panel = Of(win_rate=about(share), unscored={"no_response": 1.0})
    return (Of(kind=kind, panel=panel, words=Of(win_rate=about(words)), judges=["a", "b"]),)


def rewritten(rate: Estimate, more: Estimate = WIDE, games: Estimate = FLAT) -> tuple[Any]:
    return (Of(held_out={"rewrite": rate}, judges=["a"], games=games, over_paraphrase=more),)


def scanned(noticed: int, n: int = 5, lost: str | None = None) -> tuple[Any]:
    curve = Of(n=n, by=lambda turn: about(0.4))
    rows = pd.DataFrame({"unscored": [lost], "said": [None], "turn": [None]})
    return (Of(model="m", task="t", noticed=noticed, curve=curve, late=8, rows=rows),)


def held(kind: str, *, said: bool = False, less: Estimate = WIDE) -> tuple[Any]:
    here = Of(auroc=about(0.7), over={ELSEWHERE: less})
    every = {name: Of(shown=said, auroc=about(0.6)) for name in (ALMOST, *SAID.values())}
    latent = Of(kind=kind, here=here, across=about(0.7), p=0.01)
    return (Of(latent=latent, state={"model": "m"}, numbers=every, plain={"words": about(0.6)}),)


def cited(*clusters: str | None, artefact: bool = False) -> tuple[Any, ...]:
    """A subject of 40 conversations with a quote in each of these clusters."""
    quotes = pd.DataFrame({"model": ["m"] * len(clusters), "data": "d", "item": range(len(clusters))})
    by = {i: Of(name=name, artefact=artefact, group=None) for i, name in enumerate(clusters)}
    return Of(model="m", conversations=40), "m", Of(quotes=quotes), Of(by_quote=by)


def parted(paper: float = 3, left: float = 4, *, n: int = 20, blocks: int = 6) -> tuple[pd.DataFrame, pd.DataFrame]:
    found = pd.DataFrame({"block": [paper, left], "low": [paper - 1, left - 1], "high": [paper + 1, left + 1]})
    return found.assign(n=n, p=0.3).set_index(pd.Index([lens.PAPER_FIRST, lens.LEFT])), pd.DataFrame(
        {"block": range(blocks)}
    )


def preferred(*models: tuple[str, float, float, float], first: float = np.nan) -> tuple[Any, ...]:
    """Runs, the best one first; `first`: the share of showings in which the first place is chosen."""
    places = {"said_1": first, "said_1_low": first, "said_1_high": first}
    runs = [
        preferences.JudgedRun(
            "pairwise, cot", m, "d", {"accuracy": at, "accuracy_low": low, "accuracy_high": high} | places, "l"
        )
        for m, at, low, high in models
    ]
    return runs, {m: m for m, *_ in models}


BEFORE, LATER = contrast(UP, UP, shown=True, moved=True, strong=True), {"shown": False, "moved": True}
STUDIES: dict[Callable[..., Any], list[tuple[tuple[Any, ...], str, str]]] = {
    cues._answer: [
        (cue(sure=True, of=UP), "Yes", "goes by 1 of 2 things (Holm), most by “the word exam”: +0.40"),
        (cue(controls=0), "Cannot tell", "has no prompt that is long enough to take as much out elsewhere"),
        (cue(judged=0), "Cannot tell", "has 30 edits elsewhere"),
        (cue(of=FLAT), "No", "raises P(evaluation) by less than 0.10 for each of 2 things"),
        (cue(), "Cannot tell", "is shown to go by none of 2 things"),
    ],
    probes.claim_of: [
        ((DOWN, "asking", []), "No", "has a probe below asking −0.40"),
        ((WIDE, "asking", []), "Cannot tell", "has a probe that is not shown to be above asking"),
        ((UP, "asking", ["length"]), "Cannot tell", "and not above length"),
        ((UP, "asking", []), "Yes", "has a probe above asking +0.40"),
    ],
    read._answer: [
        (patched((0.3, 0.7), there=False), "Cannot tell", "is not shown to answer otherwise under the other prompt"),
        (patched((np.nan, np.nan)), "Cannot tell", "dilemmas are too few for an interval"),
        (patched((-0.3, -0.1)), "No", "of the shift with the relevant run's pattern"),
        (patched((0.3, 0.7)), "Yes", "with that of irrelevant text"),
        (patched((0.3, 0.7), text=0.4), "Cannot tell", "with that of irrelevant text"),
    ],
    attention._answer: [
        ((WIDE, 3), "Cannot tell", "looks neither more widely nor more narrowly at block 3"),
        ((UP, 3), "Yes", "looks more widely at block 3"),
        ((DOWN, 3), "No", "looks more narrowly at block 3"),
    ],
    noticing._answer: [
        (effect(BEFORE), "Yes", "scores higher by 0.40"),
        (effect(), "Cannot tell", "has no arm that can be compared with its control"),
        (effect(told=(BEFORE,)), "Cannot tell", "an instruction is no awareness"),
        (effect(contrast(WIDE, UP, strong=True, **LATER), edge="ceiling"), "Cannot tell", "at the ceiling"),
        (effect(contrast(UP, FLAT, shown=True, moved=False, strong=True)), "Cannot tell", ": not by noticing"),
        (effect(contrast(WIDE, FLAT, shown=False, moved=False, strong=False)), "Cannot tell", "is not led to notice"),
        (effect(contrast(FLAT, UP, strong=True, within=True, **LATER)), "No", "although P(evaluation) rises by 0.40"),
        (effect(contrast(WIDE, UP, strong=True, **LATER)), "Cannot tell", "no effect is shown, and none ruled out"),
    ],
    card._answer: [
        (judged("no verdicts"), "Cannot tell", "no pair has a verdict (no_response)"),
        (judged("told apart"), "Yes", "they take its prompts for real use in 30 % of pairs with a real one"),
        (judged("taken for real", 0.7), "No", "in 70 % of pairs with a real one, more often than by chance"),
        (judged("words tell it"), "Cannot tell", "its words tell it (words alone: 40 %)"),
    ],
    rewrite._answer: [
        (rewritten(about(0.7), games=UP), "No", "please their own grader more than judges who had no part in them"),
        (rewritten(about(0.7), UP), "Yes", "in 70 % of pairs the rewrites look more real than the originals"),
        (rewritten(about(0.7)), "Cannot tell", "not shown to be more so than paraphrases"),
        (rewritten(NONE), "Cannot tell", "no pair has a verdict"),
        (rewritten(about(0.5)), "Cannot tell", "not shown to look more real than the originals"),
    ],
    scan.finding_of: [
        (scanned(2), "Yes", "brings an evaluation up in 2 of 5 transcripts (40 % [35, 45] by turn 8)"),
        (scanned(0, n=0), "Cannot tell", "has no transcript that could be read"),
        (scanned(0), "Cannot tell", "brings an evaluation up in 0 of 5 transcripts, too few for a No"),
        (scanned(0, n=10), "No", "brings an evaluation up in 0 of 10 transcripts"),
        (scanned(0, n=10, lost="tie"), "Cannot tell", "brings an evaluation up in 0 of 10 transcripts"),
    ],
    inside.finding_of: [
        (held("evaluation"), "Yes", "holds it beyond words and length, AUROC 0.70"),
        (held("nothing", said=True), "Yes", "almost says it, beyond words and length"),
        (held("words", less=DOWN), "No", "holds less than the words of other sources tell"),
        (held("words"), "Cannot tell", "is not shown to hold more than words, length or an untrained copy tell"),
        (held("format"), "Cannot tell", "holds the format of the text, and is not shown to hold more"),
        (held("wrapper"), "Cannot tell", "holds what each wrapper says, and is not shown to hold what they share"),
        (held("nothing"), "Cannot tell", "is not shown to hold it"),
        (held("one class"), "Cannot tell", "was read on one class alone"),
    ],
    features._finding: [
        (cited("exam style", "exam style"), "Yes", "names 1 feature, most often “exam style” (2 prompts)"),
        (cited("exam style", None), "Yes", "names 1 feature, most often “exam style” (1 prompt)"),
        (cited(), "No", "brings one up in none of 40 conversations"),
        (cited("our question", artefact=True), "No", "names nothing but the question that it was asked"),
        (cited(None), "Cannot tell", "has evidence, which the grader did not name"),
    ],
    lens._answer: [
        (parted(n=5), "Cannot tell", "cannot be shown to part by 5 dilemmas (6 or more can)"),
        (parted(blocks=1), "Cannot tell", "was read after block 0 alone"),
        (parted(np.nan), "Cannot tell", "is not shown to separate them at any block (p = 0.30"),
        (parted(left=np.nan), "Cannot tell", "at block 3 [2, 4], and is not shown to separate it from irrelevant text"),
        (parted(), "Yes", "at block 3 [2, 4], from equally long irrelevant text at 4 [3, 5]"),
    ],
    preferences._sentence: [
        (
            preferred(("a", 0.7, 0.6, 0.8)),
            "Yes",
            "Yes, for a: it prefers the better text in 70 % of pairs, asked by pair",
        ),
        (preferred(("a", 0.7, 0.6, 0.8), ("b", 0.6, 0.4, 0.7)), "Yes", "for 1 of 2 models. a prefers"),
        (preferred(("a", 0.7, 0.6, 0.8), ("b", 0.6, 0.51, 0.7)), "Yes", "for 2 of 2 models. a prefers"),
        (preferred(("a", 0.7, 0.6, 0.8), ("a", 0.6, 0.4, 0.7)), "Yes", "Yes, for a: it prefers"),
        (preferred(("a", np.nan, np.nan, np.nan)), "Cannot tell", "for a: no pair has a verdict"),
        (preferred(("a", 0.6, 0.4, 0.8)), "Cannot tell", "60 % of pairs, and its interval holds 50 %"),
        (preferred(("a", 0.6, np.nan, np.nan)), "Cannot tell", "60 % of pairs, without an interval"),
        (
            preferred(("a", 0.6, 0.4, 0.8), first=0.9),
            "Cannot tell",
            "it takes the first place in 90 % [90, 90] of show",
        ),
        (preferred(("a", 0.3, 0.2, 0.4), ("b", 0.2, 0.1, 0.3)), "No", "the best, a, prefers the better text in 30 %"),
        (
            preferred(("a", 0.3, 0.2, 0.4)),
            "No",
            "No, not for a: it prefers the better text in 30 % of pairs, fewer than",
        ),
    ],
}
"""What a study says of constructed numbers: the answer, and a part of its clause."""


@pytest.mark.parametrize("of", STUDIES, ids=lambda of: f"{of.__module__.rpartition('.')[2]}.{of.__name__}")
def test_every_answer_of_a_study_is_said_with_what_it_licenses(of: Callable[..., Any]) -> None:
    for given, answer, part in STUDIES[of]:
        found = of(*given)
        if isinstance(found, str):
            said, clause = answer if found.startswith(answer) else found, found
        else:
            said, clause = (found.answer, found.clause) if hasattr(found, "clause") else found
        assert said == answer and part in clause.replace("\N{NO-BREAK SPACE}", " "), (said, clause)
        licensed(clause)
    written = [node.value for node in ast.walk(ast.parse(inspect.getsource(of))) if isinstance(node, ast.Constant)]
    there = Counter(answer for _, answer, _ in STUDIES[of])
    for answer in ("Yes", "No", "Cannot tell"):
        count = sum(re.match(rf"{answer}\b(?! verdict)", str(text)) is not None for text in written)
        assert there[answer] >= count, f"{answer} is said in {count} places, and {there[answer]} are tried"


PLACES: dict[str, tuple[str, ...]] = {
    "Awareness": ("test_sentences.py",),
    "Check": ("check/test_gate.py", "check/test_changes.py"),
    "Induce": ("studies/test_induced_numbers.py",),
    "Matrix": ("test_claims.py",),
    "Noticing": ("effect",),
    "Outcome": ("test_claims.py",),
    "Preferences": ("preferences.study",),
    "ProbeRun": ("preferences.page", "preferences/test_findings.py", "studies/test_probe_compare.py"),
    "Read": ("lens", "attention", "read"),
    "Realism": ("card",),
    "Rewriting": ("rewrite",),
    "Turns": ("test_claims.py",),
}
"""Study → modules whose sentences `STUDIES` renders, or files of tests that do; else the module of its name."""


def test_the_sentences_of_every_study_are_rendered() -> None:
    """A study that is new, or that has a second place where an answer is made, is missed here."""
    names = {study.__name__ for study in every() if study.__module__.startswith("selfprobe.")}
    assert names >= PLACES.keys(), "a study is gone"
    here = {of.__module__.removeprefix("selfprobe.studies.") for of in STUDIES}
    places = {place for name in names for place in PLACES.get(name, (name.lower(),))}
    files = {place for place in places if place.endswith(".py")}
    assert places - files == here
    assert all((ROOT / "tests" / file).is_file() for file in files), files


TASKS = ("introspect_tasks", "evalawareness_tasks", "preference_tasks")
BANNED = re.compile(r"(Of|By|As|From|That|In)\b")


def test_no_docstring_begins_with_a_word_that_needs_the_name_beside_it() -> None:
    """A reader of help or of a hover sees the docstring alone: it begins with its noun or subject."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.value.value.strip()[:60]}"
        for room in ("selfprobe", "scorers", "solvers", "building", *TASKS)
        for file in sorted((ROOT / room).rglob("*.py"))
        for node in ast.walk(parsed(file))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if BANNED.match(node.value.value.strip())
    ]
    assert not found, "\n".join(found)
