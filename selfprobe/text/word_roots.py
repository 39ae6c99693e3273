"""Shared roots of English words: loyal and loyalty, wise and wisdom, ran and run, love and beloved.

A word leads to what it is built from: by taking off endings as English spells them (loving to love,
sunny to sun, bravery to brave), by a list of irregular forms, and by a few prefixes. Two words
share a root where their ways meet.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache


def _irregular_forms(families: str) -> dict[str, str]:
    """Form → its word, of families such as "act: action active; be: is are"."""
    word_by_form: dict[str, str] = {}
    for family in families.split(";"):
        word, _, forms = family.partition(":")
        for form in forms.split():
            word_by_form[form] = word.strip()
    return word_by_form


_IRREGULAR = _irregular_forms("""
    able: enable disable; accurate: accuracy; act: action active actor actress; agree: agreed;
    analysis: analyze analyst; anger: angry; anxious: anxiety; apply: applicable applicant
    application; arrogant: arrogance; art: artist artistic artwork; be: is are was were been am;
    bear: borne; begin: began begun; believe: belief disbelief; bite: bit bitten; blow: blew
    blown; break: broke broken; breath: breathe; brief: brevity; bring: brought; build: built;
    buy: bought; catch: caught; child: children childish; choose: chose chosen choice; clear:
    clarity clarify; cloth: clothe; come: came; coward: cowardice; curious: curiosity; danger:
    endanger; day: daily; decide: decision decisive; deep: depth; defense: defence defensive;
    democracy: democratic; dentist: dentistry; die: dead death dying; dive: dove; do: did done
    does doing; dog: doggie; draw: drew drawn; drink: drank drunk; drive: drove driven; eat: ate
    eaten; edit: editor edition; enter: entrance entry; essence: essential; evolve: evolution;
    fail: failure; fall: fell fallen; feed: fed; feel: felt; fight: fought; find: found; fire:
    fiery; fly: flew flown flight flies; foot: feet; forest: forestry; forget: forgot forgotten;
    free: freed; freeze: froze frozen; friend: befriend; generous: generosity; give: gave given
    gift; go: went gone goes going; goose: geese; grateful: gratitude; gray: grey; grow: grew
    grown growth; hang: hung; head: behead; heal: health; heart: hearty; heresy: heretic; hero:
    heroine; hide: hid hidden; high: height; history: historic; hold: held; hoof: hooves; hot:
    heat; humble: humility; hunger: hungry; hypocrite: hypocrisy hypocritical; intimate:
    intimacy; jewel: jewelry; joy: enjoy; just: justice; keep: kept; knife: knives; know: knew
    known knowledge; leaf: leaves; leave: left; life: lives live living alive; little: belittle;
    loaf: loaves; long: length; lose: lost loss; louse: lice; love: beloved; man: men; marry:
    marriage; miracle: miraculous; mischief: mischievous; mouse: mice; nostalgia: nostalgic;
    office: officer official; ox: oxen; part: partial; person: people; pilgrim: pilgrimage;
    plow: plough; poet: poem poetry; prophet: prophecy prophesy; rich: enrich; ride: rode
    ridden; ring: rang rung; rise: rose risen; rival: rivalry; run: ran; sail: sailor; science:
    scientist scientific; see: saw seen; seize: seizure; sell: sold; send: sent; serve: service;
    shake: shook shaken; shoot: shot; simple: simplicity; sing: sang sung song; sink: sank sunk;
    sit: sat; slave: enslave; sleep: slept; speak: spoke spoken speech; spin: spun; stand:
    stood; steal: stole stolen; strong: strength; study: student; style: stylish; swear: swore
    sworn; sweep: swept; swim: swam swum; swing: swung; take: took taken; teach: taught; tell:
    told; thief: thieves theft; think: thought; throw: threw thrown; tooth: teeth; true: truth
    truly; try: trial; vain: vanity; vary: variant variance variation; waiter: waitress; wake:
    woke woken; warm: warmth; warrant: warranty; wear: wore worn; weave: wove woven; weigh:
    weight; wide: width; wife: wives; win: won; wolf: wolves; woman: women; write: wrote written
    """)
"""Form → the word that it belongs to, which the list has first."""

LONGEST_WORD = 40

_WHOLE_WORDS = frozenset(
    """
    adultery advance apply archery army artery assess assist balance barrier bather battery beer
    better bitter body bother boulder brother bully burden butter capable career carry center
    century city comment company concern concise contraction copper copy corner country courage
    cover crater culture curious curry demise dinner dozen during duty early easter empty entity
    evening every factor factory fairy family feature ferry final finance finish fleet flour
    flower forest fort foundation founder fury garden general generate generic generous german
    grateful gravy greed guest hammer hamper hamster handsome happen haven heaven herring
    holistic holy honest hospital hospitality hostage imply kitchen ladder lateral lather lavish
    lawyer letter lever levy limber linen listen literature liver logic logistic lumber manage
    manner many marry massage master material matter mention message metal mineral minister
    modest moment monster moral mother need news number offer oyster pacific panther paradize
    party passion passive pastor pasture pattern pellet penny pepper pigment policy polish
    politic poppy portion possible poster posture power proper property prosper puppet quarter
    quest random rather raven regression reply rival rubber rustic salvage sandal section seed
    seldom sentence sentient session several sewer shoulder shower siren sister slender soldier
    speed station statistic statue story study summer supper supply table tailor temper
    temperate temple tender token tower tradition transient treaty universe university utter
    version visage wafer wander warrant weed winter witness
    """.split()
)
"""Words that only look as if they were built from a shorter one, or have little to do with it."""

EndingSwaps = Sequence[tuple[re.Pattern[str], Sequence[str]]]
"""Pattern of an ending, and texts that stood there before; several, one after another."""


def _swaps(rules: Mapping[str, str]) -> EndingSwaps:
    return [(re.compile(pattern), endings.split(" ")) for pattern, endings in rules.items()]


_LAST_SWAPS = _swaps(
    {
        r"(?<=[lr])ves$": "f",
        r"(?<=\w{2})ies$": "y ie",
        r"(?<=\w[sxzo])es$|(?<=\w[cs]h)es$": "",
        r"(?<=\w{2}[^s])s$": "",
        r"(?<=\w{4})ly$": "",
        r"(?<=\w{2})ily$": "y",
    }
)
"""Plurals and adverbs, written like _SWAPS; no other ending follows."""

_SWAPS = _swaps(
    {
        r"(?<=\w{3})(?:ness|ful|less|hood|ship|some|like)$": "",
        r"(?<=\w{3})(?:ment|dom)$|(?<=\w{4})ly$|(?<=\w{3}[st])(?:ion|ive|ory|ure)$": " e",
        r"(?<=\w{2})i(?:ness|ful|less|hood|ly)$": "y",
        r"(?<=\w{3}[^i])ty$|(?<=\w{4})ation$": "",
        r"(?<=\w{3}[^aeiou])ly$": "le",
        r"(?<=\w{3}[ae]n)c[ey]$": "t",
        r"(?<=\w{3})osity$": "ous",
        r"(?<=\w)bility$": "ble",
        r"(?<=\w)itious$": "ition",
        r"(?<=\w{2}[lrni])sion$": "d de t te",
        r"(?<=\w{2}[aeou])sion$": "d de",
        r"(?<=\w{2})ssion$": "t",
        r"(?<=\wd)uction$": "uce",
        r"(?<=\w)olution$": "olve",
        r"(?<=\w{2})eption$": "eive",
        r"(?<=\w{2})ription$": "ribe",
        r"(?<=\w{2})ification$": "ify",
        r"(?<=\w{2})ication$": "y",
        r"(?<=\w{3}s)ize$": "is",
    }
)
"""Pattern of an ending → texts that stood there before."""


@dataclass(frozen=True)
class _Ending:
    """An ending that begins with a vowel."""

    text: str
    shortest_word: int
    """Letters of the shortest word that takes it."""
    lost_letters: str
    """Letters that such a word may lose."""


def _endings(shortest_word: int, lost_letters: str, texts: str) -> list[_Ending]:
    return [_Ending(text, shortest_word, lost_letters) for text in texts.split()]


_LAST_ENDINGS = _endings(3, "e", "ed est ing")
"""Endings like _ENDINGS, at the end of a word."""

_ENDINGS = [
    *_endings(3, "e", "ing er y ery"),
    *_endings(3, "", "ish"),
    *_endings(4, "", "en ern"),
    *_endings(4, "e", "al ity able ible ous age ance ence ify"),
    *_endings(4, "ey", "ism ize"),
    *_endings(4, "eyo", "ic ical ist"),
    *_endings(5, "e", "ant ent or eer ee ate ation ition ative"),
    *_endings(5, "yae", "ian an"),
]
"""Ending that begins with a vowel: letters of the shortest word that takes it, and what such a word
may lose.
"""

_BRITISH = [
    (re.compile(r"(?<=\w{3})our(?=(?:s|ed|ing|ful|less|able|ite|hood|ly)?$)"), "or"),
    (re.compile(r"(?<=\w{2}[bt])re(?=s?$)"), "er"),
    (re.compile(r"(?<=\w{3})is(?=(?:e[ds]?|ing|ation)$)"), "iz"),
]
"""Colour, centre, realise: as Americans spell them."""

_OPPOSITE = re.compile(
    r"(?:un(?!less)|non|dis(?=honest|loyal|agree|trust|obe|comfort|like|appear|order|connect"
    r"|infect|abl)"
    r"|i[mnlr](?=patien|mortal|moral|perfect|possib|polite|justice|sane|visib|correct|complete"
    r"|depend|secur|sincer|formal"
    r"|toler|legal|logical|legible|regular|rational|respons))(?P<root>\w{4,})"
)
"""Prefix of a word; the rest is the word that it is the opposite of."""

_WITHOUT_Y = re.compile("[aeiou]y$")
"""End of toy or grey: the y belongs to the word."""

_SHORT = re.compile(r"[^aeiouy]*[aeiouy][^aeiouwxy]")
"""Such a word doubles its last letter before a vowel, as run does in running: hoping comes from
hope.
"""


def same_root(word: str, other_word: str) -> bool:
    """True if one of two words is derived from the other, or both from a third.

    >>> same_root("loyal", "loyalty"), same_root("lonely", "loneliness")
    (True, True)
    >>> same_root("late", "lattice")
    False
    """
    steps_of_base, other_steps_of_base = _steps(word), _steps(other_word)
    for base in steps_of_base.keys() & other_steps_of_base.keys():
        steps, other_steps = steps_of_base[base], other_steps_of_base[base]
        if not steps or not other_steps or steps + other_steps <= MOST_STEPS:
            return True
    return False


MOST_STEPS = 2
"""Steps between two words and a third that both are derived from, at most."""


@lru_cache(maxsize=4096)
def _steps(word: str) -> Mapping[str, int]:
    """Words that a casefolded word may be built from → number of steps. Inflection is no step; not
    all are words.
    """
    if len(word) > LONGEST_WORD or word in _WHOLE_WORDS:
        return {word: 0}
    for british, american in _BRITISH:
        word = british.sub(american, word)
    level = {word, *_swapped(word, _LAST_SWAPS)}
    for derived in level - _WHOLE_WORDS:
        level.update(_without_endings(derived, _LAST_ENDINGS))

    steps_of_base = dict.fromkeys(level, 0)
    steps = 0
    while level:
        steps += 1
        bases = {base for derived in level - _WHOLE_WORDS for base in _bases(derived)}
        level = bases - steps_of_base.keys()
        steps_of_base |= dict.fromkeys(level, steps)
    return steps_of_base


def _bases(word: str) -> Iterator[str]:
    """Rests of a word without one ending or prefix."""
    if word in _IRREGULAR:
        yield _IRREGULAR[word]
        return
    if opposite := _OPPOSITE.fullmatch(word):
        yield opposite["root"]
    yield from _swapped(word, _SWAPS)
    yield from _without_endings(word, _ENDINGS)


def _swapped(word: str, swaps: EndingSwaps) -> Iterator[str]:
    for pattern, former_endings in swaps:
        if pattern.search(word):
            for former_ending in former_endings:
                yield pattern.sub(former_ending, word)


def _without_endings(word: str, endings: Iterable[_Ending]) -> Iterator[str]:
    """The words which, with one of the endings, may be spelled as this word."""
    if _WITHOUT_Y.search(word):
        return
    for ending in endings:
        if not word.endswith(ending.text):
            continue
        root = word.removesuffix(ending.text)
        for base in _unspelled(root, ending.lost_letters):
            if len(base) >= ending.shortest_word:
                yield base


def _unspelled(root: str, lost_letters: str) -> Iterator[str]:
    """The words that may be spelled so before a vowel: hop and hopp from hopp, hope from hop, happy
    from happ i.
    """
    if not re.search("[aeiouy]", root):
        return
    if not (_SHORT.fullmatch(root) or re.search("[^eo]e$", root)):
        yield root
    if root[-1] == root[-2:-1] and root[-1] not in "aeiou":
        yield root[:-1]
    if root[-1] == "i":
        yield f"{root[:-1]}y"
    for letter in lost_letters:
        yield root + letter
