"""Put what a program made into its page: `python docs/parts.py NAME FILE`.

Statistics and running have parts that programs make: <!-- NAME: … --> and <!-- end of NAME -->
stand around them. FILE is what the program wrote; it takes the part's place, and is removed where
it lies in docs/.
"""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
PART = r"(<!-- {name}: .*? -->\n)(.*?)(<!-- end of {name} -->\n)"


def put(name: str, text: str, docs: Path = DOCS) -> Path:
    """Replace a part by `text`; the page's file.

    Raises:
        ValueError: No page, or more than one, has the part.
    """
    part = re.compile(PART.format(name=re.escape(name)), re.DOTALL)
    pages = [
        page for page in sorted(docs.glob("*.md")) if part.search(page.read_text(encoding="utf-8"))
    ]
    if len(pages) != 1:
        raise ValueError(
            f"expected one page with <!-- {name}: … -->, found {', '.join(map(str, pages)) or 'none'}"
        )
    whole = pages[0].read_text(encoding="utf-8")
    pages[0].write_text(
        part.sub(lambda old: f"{old[1]}\n{text.strip()}\n\n{old[3]}", whole), encoding="utf-8"
    )
    return pages[0]


if __name__ == "__main__":
    made = Path(sys.argv[2]).resolve()
    print(put(sys.argv[1], made.read_text(encoding="utf-8")))
    if made.parent == DOCS.resolve():
        made.unlink()
