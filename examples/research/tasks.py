"""Questions to this web, with what a right answer has to say: data for `verify`, made from `facts`.

They differ in where the answer is: on several sites, in a PDF file, behind a page that is out of date or wrong, or
nowhere at all.
"""

from dataclasses import dataclass
from typing import Final

from examples.research.facts import BINWISE, COMPETITORS, PALLETRY, SCANNER, SERVICE, STOCKWELL
from examples.research.site import DATA_SHEET, PRICE_LIST, SERVICE_REPORT


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that an answer may say."""

    what: str
    """In words, for the verdict."""
    pattern: str
    """A regular expression that finds it; case does not matter."""
    about: str | None = None
    """The company that it must be said of: named last before it in its sentence, else first after it, else earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question and how to judge the answer."""

    name: str
    text: str
    wanted: tuple[Claim, ...] = ()
    """What a right answer says."""
    doubtful: tuple[Claim, ...] = ()
    """What is wrong or out of date, so that it may be said only with a word that says so."""
    sources: tuple[tuple[str, ...], ...] = ()
    """Paths of the web; of each group at least one must be named as a source."""


def find_task(text: str) -> Task:
    """The task that is worded like this; one of which no answer is known if there is none."""
    wanted = _plain(text)
    return next((task for task in TASKS if _plain(task.text) == wanted), Task(name="other", text=text))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".?!")


def _number(value: float | str) -> str:
    """A pattern for a number that is not a part of another one."""
    return rf"(?<![\d.,]){value}(?:\.00)?(?!\d|[.,]\d)"


def _usd(what: str, about: str, *values: int) -> Claim:
    """One of these prices, said of a company."""
    return Claim(what, "|".join(_number(value) for value in values), about)


TASKS: Final = (
    Task(
        name="competitor-pricing",
        text="Find competitor pricing",
        wanted=tuple(
            _usd(f"a current price of {company.name}", company.name, *(plan.usd for plan in company.plans if plan.usd))
            for company in COMPETITORS
        ),
        sources=(
            (f"/{STOCKWELL.host}/pricing",),
            (f"/{BINWISE.host}/pricing", PRICE_LIST),
            (f"/{PALLETRY.host}/pricing",),
        ),
    ),
    Task(
        name="price-that-changed",
        text="What does the Team plan of Stockwell cost per month?",
        wanted=(_usd("the price of Team", "Stockwell", STOCKWELL.usd("Team")),),
        doubtful=(_usd("a former price of Team", "Stockwell", 49, 39),),
        sources=((f"/{STOCKWELL.host}/pricing",),),
    ),
    Task(
        name="price-in-a-file",
        text="How much is the Enterprise plan of Binwise per month?",
        wanted=(_usd("the price of Enterprise", "Binwise", BINWISE.usd("Enterprise")),),
        doubtful=(_usd("another price of Enterprise", "Binwise", 380, 140),),
        sources=((PRICE_LIST,),),
    ),
    Task(
        name="free-plan",
        text="Which competitor of Larkfield has a free plan, and how many items does it allow?",
        wanted=(Claim("the company", "Palletry"), Claim("the limit of 500 items", _number(500), "Palletry")),
        sources=((f"/{PALLETRY.host}/pricing",),),
    ),
    Task(
        name="chief-executive",
        text="Who is the chief executive of Binwise today?",
        wanted=(Claim("the name", BINWISE.chief),),
        doubtful=(Claim("the predecessor", "Vidal"),),
        sources=((f"/{BINWISE.host}/about", "/gazette.example/binwise-new-chief-executive"),),
    ),
    Task(
        name="founding",
        text="When and where was Stockwell founded?",
        wanted=(Claim("the year", _number(STOCKWELL.founded)), Claim("the city", STOCKWELL.city)),
        sources=((f"/{STOCKWELL.host}/about",),),
    ),
    Task(
        name="data-sheet",
        text="How long does the battery of the Palletry Scan 2 last, and what does the scanner weigh?",
        wanted=(
            Claim("the battery life", rf"{_number(SCANNER.battery_h)}[ -]?h"),
            Claim("the weight", rf"{_number(SCANNER.weight_g)} ?g"),
        ),
        doubtful=(Claim("a wrong battery life", rf"{_number(20)}[ -]?h"),),
        sources=((DATA_SHEET,),),
    ),
    Task(
        name="integrations",
        text="Which of Larkfield's competitors work together with Northgate ERP today?",
        wanted=(Claim("Binwise", "Binwise"), Claim("Palletry", "Palletry")),
        doubtful=(Claim("Cratelogic, which has closed", "Cratelogic"),),
        sources=((f"/{BINWISE.host}/integrations",), (f"/{PALLETRY.host}/integrations",)),
    ),
    Task(
        name="service-report",
        text="What was the uptime of Binwise in the third quarter of 2026, and what caused its longest incident?",
        wanted=(Claim("the uptime", _number(SERVICE.uptime)), Claim("the cause", "certificate")),
        sources=((SERVICE_REPORT,),),
    ),
    Task(
        name="no-such-plan",
        text="What does the Platinum plan of Stockwell cost?",
        wanted=(Claim("that there is none", r"\b(?:no|not|none|never|without)\b|n't\b"),),
        doubtful=(Claim("a price of Platinum", r"Platinum[^.;\n]*\$\s?\d"),),
        sources=((f"/{STOCKWELL.host}/pricing",),),
    ),
)
