"""Pages in a real browser (Chromium, headless): the answer in the first screen, nothing cut off,
tables that sort.
"""

import html
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model

from selfprobe.cli import main
from selfprobe.page import (
    MOST_ANSWER_WORDS,
    Column,
    Details,
    Page,
    Section,
    Table,
    answer_words,
    number,
    percent,
    render,
)
from selfprobe.page.plots import interval_rows
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.matrix.numbers import analyse
from selfprobe.studies.matrix.page import results_page as matrix_page
from selfprobe.studies.report import report_page as report
from tests.studies import test_effect, test_outcome, test_probe_compare, test_rewrite
from tests.studies.test_cues import prompts
from tests.studies.test_scan import PLAN, conversation, says
from tests.studies.test_turns import talk

EXAMPLE = Path(__file__).parent.parent / "examples" / "report" / "index.html"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow(15), pytest.mark.skipif(BROWSER is None, reason="no chromium here")]

MEASURE = """<!doctype html><iframe width="390" height="800" src="page.html"></iframe><pre id="out"></pre><script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {
  const page = frame.contentDocument, table = page.querySelector("table"), cells = (at) => [...table.tBodies[0].rows].map((row) => row.cells[at].textContent);
  const out = { width: page.documentElement.scrollWidth, titles: [...page.querySelectorAll("th[title]")].map((head) => head.textContent), orders: [] };
  for (const head of table.tHead.rows[0].cells) {
    head.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" })); out.orders.push(cells(head.cellIndex));
    head.click(); out.orders.push(cells(head.cellIndex));
  }
  const filter = page.querySelector("input[type=search]");
  if (filter) { filter.value = "M/B"; filter.dispatchEvent(new Event("input")); }
  out.left = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
  document.getElementById("out").textContent = JSON.stringify(out);
});
</script>"""

FIRST = """<!doctype html><iframe width="WIDTH" height="HEIGHT" src="page.html"></iframe><pre id="out"></pre><script>
const frame = document.querySelector("iframe"), width = WIDTH, height = HEIGHT;
const inside = (box) => box.width > 0 && box.height > 0 && box.top < height;
frame.addEventListener("load", () => {
  const page = frame.contentDocument, seen = [], walk = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (!node.parentElement.checkVisibility() || ["SCRIPT", "STYLE"].includes(node.parentElement.tagName)) continue;
    for (const word of node.data.matchAll(/\\S+/g)) {
      const range = page.createRange(); range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      if ([...range.getClientRects()].some(inside)) seen.push(word[0]);
    }
  }
  const out = { seen, open: page.querySelectorAll("details[open]").length, width: page.documentElement.scrollWidth };
  const image = page.querySelector("img").getBoundingClientRect(), table = page.querySelector("table");
  out.image = { top: image.top, bottom: image.bottom, width: image.width };
  out.columns = table.tHead.rows[0].cells.length; out.table = inside(table.getBoundingClientRect());
  const wide = table.parentElement; out.cut = wide.scrollWidth - wide.clientWidth; out.answer = page.querySelector("p.answer").textContent;
  for (const part of page.querySelectorAll("details")) part.open = true;
  out.opened = page.documentElement.scrollWidth;
  out.cells = Math.max(...[...page.querySelectorAll("th, td")].map((cell) => cell.getBoundingClientRect().width));
  const texts = [...page.querySelectorAll("p, li, td, summary, figcaption")].map((part) => part.textContent), tables = [...page.querySelectorAll("table")];
  const under = (names) => tables.flatMap((table) => [...table.tBodies[0].rows].flatMap((row) => [...row.cells].filter((_, at) => names.test(table.tHead.rows[0].cells[at].textContent))));
  out.ps = [...texts.flatMap((text) => [...text.matchAll(/\\bp [=<] (\\d*\\.?\\d+(e-?\\d+)?)/g)].map((found) => found[1])), ...under(/(^|: | )p( \\(Holm\\))?$/).map((cell) => cell.textContent.replace("< ", ""))];
  out.dead = [...page.querySelectorAll("a[href^='#']:not(.png)")].map((link) => link.hash.slice(1)).filter((name) => !page.getElementById(name));
  out.bare = under(/^(item|id|conversation|transcript)$/).filter((cell) => !cell.querySelector("a")).map((cell) => cell.textContent);
  out.empty = tables.filter((table) => !/\\d/.test(table.tBodies[0].textContent)).map((table) => table.textContent);
  out.name = page.querySelector("figcaption a").getAttribute("href").split(/[/.]/)[1];
  const png = page.querySelector("a.png"); png.addEventListener("click", (event) => event.preventDefault()); png.click();
  out.png = [png.download, png.href.slice(0, 22)];
  document.getElementById("out").textContent = JSON.stringify(out);
});
</script>"""

Fixture = Callable[[str], Any]
Made = Callable[[Fixture, Path], str]
"""Fixtures by name, and a folder → the HTML of a page."""


def ran(*what: tuple[str, str, dict[str, Any]]) -> Made:
    """The report of a few runs: task, model, options."""

    def made(fixture: Fixture, folder: Path) -> str:
        for task, model, options in what:
            fixture("run_task")(task, model, folder / "logs", limit=12, **options)
        return render(report([str(folder / "logs")]), str(folder))

    return made


def a_matrix(**access: float) -> Made:
    """A page of a planted matrix: model → how often it knows itself."""

    def made(fixture: Fixture, folder: Path) -> str:
        models = {f"planted/{name}?access={x}": x for name, x in access.items()}
        results = fixture("matrix_results")(models, items=60)
        return render(
            matrix_page(results, analyse(results, rng=np.random.default_rng(0))), str(folder)
        )

    return made


def a_study(write: Callable[[Path], Path], *of: str) -> Made:
    """A study of what `write` put into the folder, as its command makes it; "" in `of` stands for
    that.
    """

    def made(fixture: Fixture, folder: Path) -> str:
        held = str(write(folder))
        places = ("--out", str(folder / "o"), "--log-dir", str(folder / "l"))
        called = CliRunner().invoke(main, [*(part or held for part in of), "--yes", *places])
        return page_in(folder / "o", called)

    return made


def page_in(folder: Path, called: Result) -> str:
    """The page that a command wrote."""
    assert called.exit_code == 0, called.output
    return (folder / "index.html").read_text("utf-8")


def features(fixture: Fixture, folder: Path) -> str:
    """Two subjects of user_motivation, and the one feature that both name."""
    for model in ("planted/a?voiced=.9&voiced_wrongly=.3&voiced_placebo=1", "planted/b?voiced=.3"):
        fixture("run_task")("selfprobe/user_motivation", model, folder / "l", limit=12, **JUDGE)
    given = [
        "awareness",
        "features",
        str(folder / "l"),
        "--embedder",
        fixture("embedder"),
        "--clusters",
        "1",
    ]
    given += [
        "--grader",
        "planted/g",
        "--yes",
        "--log-dir",
        str(folder / "named"),
        "--out",
        str(folder / "page"),
    ]
    return page_in(folder / "page", CliRunner().invoke(main, given))


def rewritten(fixture: Fixture, folder: Path) -> str:
    """Rewrites, with a subject that had no part in them."""
    judge = "planted/j?liking=.5&words=.8"
    return page_in(
        folder / "page",
        test_rewrite.run(folder, "planted/w", "planted/g", judge, "--model", SUBJECT),
    )


def effect(*names: str) -> Made:
    """Simulated subjects of `awareness effect`."""
    models = ",".join(f"subject/{name}" for name in names)
    return lambda _, folder: page_in(
        folder / "page", test_effect.effect("exact", folder, model=models)
    )


def outcome(fixture: Fixture, folder: Path) -> str:
    """Those of tests/studies/test_outcome.py, who differ in what they know."""
    for model in test_outcome.WORLDS:
        fixture("run_task")(test_outcome.sums(), model, folder / "logged")
    return page_in(folder / "page", test_outcome.run_outcome(folder / "logged", folder))


def mechanism(parts: str) -> Made:
    """`mechanism read` of a transformer with planted heads."""

    def made(_: Fixture, folder: Path) -> str:
        pytest.importorskip("torch", reason="the probes extra is not installed")
        from tests.studies import test_lens as lens

        given = (
            "--model",
            lens.saved(folder / "model"),
            "--dataset",
            lens.dilemmas(folder),
            "--out",
            folder / "out",
        )
        return page_in(folder / "out", lens.call(parts, *given))

    return made


def induced(_: Fixture, folder: Path) -> str:
    """`mechanism induce` of a tiny transformer."""
    pytest.importorskip("peft", reason="the mechanisms extra is not installed")
    from tests.studies import test_induce as induce

    induce.saved(folder / "model")
    data = folder / "questions.jsonl"
    data.write_text("\n".join(json.dumps({"question": text}) for text in induce.QUESTIONS))
    given = ("--model", folder / "model", "--dataset", data, "--out", folder / "out")
    return page_in(folder / "out", induce.call(*given, *induce.SMALL))


def inside(_: Fixture, folder: Path) -> str:
    """A transformer that keeps what it saw in one direction."""
    pytest.importorskip("torch", reason="the probes extra is not installed")
    from tests.studies import test_inside as kept

    (
        kept.model(folder / "a", "~"),
        kept.conversations(folder),
        kept.wrappers(folder),
        kept.sentences(folder),
    )
    return page_in(folder / "out", kept.call(*kept.given(folder), "--no-random-weights"))


def probes(_: Fixture, folder: Path) -> str:
    """`probe run` of a tiny transformer on two data sets."""
    pytest.importorskip("torch", reason="the probes extra is not installed")
    from tests.probes import test_probe_command as run

    files = [str(run.written(folder / f"{name}.jsonl", run.rows(name))) for name in ("one", "two")]
    given = (
        "--model",
        run.saved(folder / "model"),
        "--datasets",
        ",".join(files),
        "--out",
        folder / "out",
    )
    return page_in(folder / "out", run.call("run", *given, *run.TOY))


def probes_compared(_: Fixture, folder: Path) -> str:
    """Folders of `probe run` side by side, with made-up numbers."""
    made = [
        str(test_probe_compare.folder(folder / str(n), model))
        for n, model in enumerate(test_probe_compare.MODELS)
    ]
    return render(report(made), str(folder))


def transcripts(folder: Path) -> Path:
    """Of evaluations that give themselves away at turn 3, and of real use."""
    path = folder / "talks.jsonl"
    path.write_text(
        "\n".join(
            json.dumps(talk(n, label)) for n in range(8) for label in ("evaluation", "deployment")
        )
    )
    return path


def giveaways(folder: Path) -> Path:
    """Prompts, half of them with a sentence that gives them away."""
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, prompts())))
    return path


def awareness_logs(folder: Path) -> Path:
    """A log of an agent that brings an evaluation up in some transcripts."""
    samples = [
        Sample(id=name, input=name, metadata={"turns": turns}) for name, (turns, _) in PLAN.items()
    ]
    task = Task(dataset=samples, solver=conversation(), name="planted_agent")
    for model in ("mockllm/model", "mockllm/another"):
        eval(
            task,
            model=get_model(model, custom_outputs=says),
            log_dir=str(folder / "agent"),
            display="none",
        )
    return folder / "agent"


SUBJECT = "planted/ada?words=.95"
SUBJECTS = "planted/ada?wobble=.03,planted/bo?cued=0&wobble=.03,planted/cy?wobble=.05"
JUDGE = {"model_roles": {"grader": "planted/g"}}
PAGES: dict[str, Made] = {
    "matrix": a_matrix(ada=0.9, bo=0.1, cy=0.8, di=0.2, ed=0.1, fay=0.3, gus=0.2),
    "matrix without access": a_matrix(ada=0.4, bo=0.4, cy=0.4),
    "a model alone": ran(("selfprobe/kth_word", "planted/ada?access=.8", {})),
    "awareness": ran(
        ("selfprobe/binary", "planted/ada?notices=.9", {}),
        ("selfprobe/binary", "planted/bo?coin=1", {}),
        ("selfprobe/user_motivation", "planted/ada?notices=.9", JUDGE),
    ),
    "preferences": ran(
        ("selfprobe/pairwise_preference", "planted/ada?prefers=.9", {}),
        ("selfprobe/direct_scoring", "planted/ada?prefers=.9", {}),
    ),
    "realism card": ran(
        ("selfprobe/pairwise_realism", "planted/bea?liking=.9", {}),
        ("selfprobe/pairwise_realism", "planted/cal?liking=.8", {}),
    ),
    "turns": a_study(transcripts, "awareness", "turns", "", "--models", "planted/ada?wobble=.03"),
    "turns of several": a_study(transcripts, "awareness", "turns", "", "--models", SUBJECTS),
    "cues": a_study(
        giveaways,
        "awareness",
        "cues",
        "",
        "--models",
        "planted/ada?wobble=.03",
        "--grader",
        "planted/g",
    ),
    "cues of several": a_study(giveaways, "awareness", "cues", "", "--models", SUBJECTS),
    "scan": a_study(awareness_logs, "awareness", "scan", "", "--grader", "planted/g"),
    "features": features,
    "rewrite": rewritten,
    "effect": effect("wary"),
    "effect of several": effect("wary", "steady", "picky", "mute"),
    "outcome": outcome,
    "lens": mechanism("lens"),
    "attention": mechanism("attention"),
    "patch": mechanism("patch"),
    "read": mechanism("lens,attention,patch"),
    "induce": induced,
    "inside": inside,
    "probe run": probes,
    "probes compared": probes_compared,
}
"""The pages whose first screen is measured, by name: how each is made."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "measure.html").write_text(MEASURE, "utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


QUIET = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def opened(address: str, folder: Path, *options: str) -> tuple[str, list[str]]:
    """The page's text as the browser ends with it, and what stood in its console."""
    assert BROWSER
    more = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    more += [
        *QUIET,
        "--disable-quic",
        "--enable-logging=stderr",
        "--virtual-time-budget=4000",
        *options,
    ]
    done = subprocess.run(
        [BROWSER, *more, address], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout, [
        line for line in done.stderr.splitlines() if "CONSOLE" in line and "favicon" not in line
    ]


def measured(address: str, folder: Path) -> dict[str, Any]:
    text, console = opened(
        f"{address}measure.html?{time.monotonic_ns()}", folder, "--dump-dom"
    )  # never a kept one
    assert console == []
    found = re.search(r'<pre id="out">(.*?)</pre>', text, re.DOTALL)
    assert found and found[1], text[:500]
    shown: dict[str, Any] = json.loads(html.unescape(found[1]))
    return shown


@pytest.mark.parametrize("name", PAGES)
def test_the_first_screen_has_the_answer_and_little_else(
    name: str, address: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "page.html").write_text(PAGES[name](request.getfixturevalue, tmp_path), "utf-8")
    for width, height in ((1280, 900), (390, 844)):
        text = FIRST.replace("WIDTH", str(width)).replace("HEIGHT", str(height))
        (tmp_path / "measure.html").write_text(text, "utf-8")
        shown = measured(address, tmp_path)
        said = [word for word in shown["seen"] if any(sign.isalpha() for sign in word)]
        numbers = re.findall(
            r"[-+]?\.?\d[\d.,]*", " ".join(word for word in shown["seen"] if word not in said)
        )
        assert len(said) <= 80 and len(numbers) <= 25, (
            width,
            len(said),
            len(numbers),
            shown["seen"],
        )
        assert len(answer_words(shown["answer"])) <= MOST_ANSWER_WORDS and re.match(
            r"(Yes|No|Cannot tell)\b", shown["answer"]
        )
        seen_letters = "".join("".join(shown["seen"]).split())
        assert "".join(shown["answer"].split()) in seen_letters
        assert (
            shown["image"]["top"] > 0
            and shown["image"]["bottom"] <= height
            and shown["image"]["width"] > 250
        )
        assert shown["table"] and shown["columns"] <= 5 and shown["open"] == 0
        assert shown["cut"] <= 0, "the first table has all of its columns on the screen"
        assert shown["width"] <= width and shown["opened"] <= width, (
            "nothing is cut off, closed or open"
        )
        assert shown["cells"] <= width, "no column is too wide"
        assert shown["png"] == [f"{shown['name']}.png", "data:image/png;base64,"]
    assert shown["dead"] == [] == shown["bare"], "ids of items lead to their texts"
    assert shown["empty"] == [], "a method that scored nothing has no table of its own"
    assert [
        p for p in shown["ps"] if len(p.partition("e")[0].replace(".", "").lstrip("0")) > 2
    ] == []


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_a_long_first_table_has_its_filter_above_it_and_all_of_its_columns(
    width: int, height: int, address: str, tmp_path: Path
) -> None:
    rows = [
        {
            "model": f"openai-api/local/m{number}",
            "answer": "Cannot tell",
            "arm": "hint: a safety test",
            "score changes by": "−0.10 [−0.26, +0.06]",
            "p (Holm)": "1.0",
        }
        for number in range(16)
    ]
    columns = [Column(title, title) for title in rows[0]]
    picture = interval_rows(
        "arms", {"a": {"m": Estimate(0.5, 0.4, 0.6, 9, "item")}}, caption="x", axis="x"
    )
    page = Page("Q", answer="Yes: it is so.", picture=picture, table=Table(rows, columns))
    (tmp_path / "page.html").write_text(render(page, str(tmp_path)), "utf-8")
    script = """
  const box = page.querySelector("input[type=search]").getBoundingClientRect(), shown = page.querySelector("table").getBoundingClientRect();
  out.box = { bottom: box.bottom, left: box.left }; out.shown = { top: shown.top, left: shown.left };
  document.getElementById("out")"""
    text = FIRST.replace("WIDTH", str(width)).replace("HEIGHT", str(height))
    text = text.replace('\n  document.getElementById("out")', script)
    (tmp_path / "measure.html").write_text(text, "utf-8")
    shown = measured(address, tmp_path)
    assert shown["cut"] <= 0 and shown["opened"] <= width, shown
    assert shown["box"]["bottom"] <= shown["shown"]["top"] + 1
    assert abs(shown["box"]["left"] - shown["shown"]["left"]) <= 1


def test_the_example_fits_a_telephone_and_runs_nothing_but_its_own_script(
    address: str, tmp_path: Path
) -> None:
    shutil.copy(EXAMPLE, tmp_path / "page.html")
    shown = measured(address, tmp_path)
    assert shown["width"] <= 390
    assert {"on itself", "unscored", "item-specific"} <= set(shown["titles"])


def test_a_table_sorts_by_number_or_word_and_filters_and_a_text_runs_no_script(
    address: str, tmp_path: Path
) -> None:
    shares = {
        f"m/{letter}": share
        for letter, share in zip("cabdefghijklmn", range(14, 0, -1), strict=True)
    }
    rows = [
        {"model": model, "score": share / 2, "unscored": share / 100}
        for model, share in shares.items()
    ]
    rows[3] |= {
        "score": None,
        "model": "<script>alert(1)</script><img src=x onerror=console.log(1)>",
    }
    columns = (
        Column("model", "model"),
        Column("score", "score", number, help="Mean score."),
        Column("unscored", "unscored", percent, help="Share without a score."),
    )
    long = "planted/" + "x" * 300
    page = Page(
        long,
        "lead",
        [Section(long, [Table(rows, columns), Details(long, ["text"])], name="a", menu=long)],
    )
    (tmp_path / "page.html").write_text(render(page, str(tmp_path)), "utf-8")
    shown = measured(address, tmp_path)
    assert shown["width"] <= 390 and shown["titles"] == ["score", "unscored"] and shown["left"] == 1
    names, names_down, scores, scores_down, rates, _ = shown["orders"]
    assert names == list(reversed(names_down)) and names[1:3] == ["m/a", "m/b"]
    assert (
        scores[:2] == ["0.50", "1.00"]
        and scores[-1] == "–" == scores_down[-1]
        and scores_down[0] == "7.00"
    )
    assert rates[0] == "1 %" and rates[-1] == "14 %"


def test_a_page_prints_to_pdf(address: str, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path / "page.html")
    opened(f"{address}page.html", tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF") and (
        tmp_path / "page.pdf"
    ).stat().st_size > 50_000
