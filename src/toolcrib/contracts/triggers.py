"""Triggers: what starts agents, workflows and tools without a person. A time, a webhook, or the end of another run.

Example:
    from toolcrib.contracts import CronSource, TriggerDefinition

    nightly = TriggerDefinition(
        name="nightly-review",
        when=CronSource(cron="0 6 * * mon-fri", timezone="Europe/Berlin"),
        start="desk",
        input={"message": "Review the deals that changed before ${event.scheduled_at}."},
        account="reviewer",
    )
"""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from toolcrib.contracts.base.base import Contract, JsonObject, Timestamp
from toolcrib.contracts.providers.providers import NAME_PATTERN
from toolcrib.contracts.runs.runs import RunStatus

CatchUp: TypeAlias = Literal["none", "last", "all"]
"""What is started of the times that passed while no server ran: nothing, the last one, or each."""
Overlap: TypeAlias = Literal["allow", "skip", "queue"]
"""What becomes of an occurrence while the run of the one before has not ended: it is started too, it is left out, or it
waits for that end."""
WebhookForm: TypeAlias = Literal["standard", "github", "stripe", "slack"]
"""How a webhook is signed. `standard`: as standardwebhooks.com says, which many services do."""
EndedStatus: TypeAlias = Literal["completed", "incomplete", "failed", "cancelled", "timed_out"]


class CronSource(Contract):
    """Times."""

    kind: Literal["cron"] = "cron"
    cron: str = Field(min_length=1, max_length=200)
    """Minute, hour, day of month, month, day of week, as in crontab(5): `0 6 * * mon-fri`. `L` is the last day of a
    month, and `mon#2` its second Monday."""
    timezone: str = "UTC"
    """A name of the IANA database, such as `Europe/Berlin`. When clocks go forward, a time that does not exist is moved
    behind the gap; when they go back, a time that comes twice counts once."""
    catch_up: CatchUp = "last"
    max_catch_up: int = Field(default=100, ge=1, le=1000)
    """Most runs that `all` starts; the newest count."""


class WebhookSource(Contract):
    """Signed requests to `POST /hooks/{realm}/{name}`. No API key is needed: the signature is the proof."""

    kind: Literal["webhook"] = "webhook"
    signature: WebhookForm = "standard"
    secret: str = Field(pattern=r"^\$\{(env|secret):[A-Za-z_][A-Za-z0-9_]*\}$")
    """Reference to the signing secret: `${secret:NAME}` or `${env:NAME}`. The account must be able to use it."""
    tolerance_s: float = Field(default=300.0, gt=0, le=3600)
    """Seconds by which the time in the signature may differ from this machine's; GitHub signs no time."""


class RunEndSource(Contract):
    """The end of runs of one agent, workflow or tool. Runs that are nested in others do not count."""

    kind: Literal["run_end"] = "run_end"
    tool: str = Field(pattern=NAME_PATTERN)
    """Its name."""
    statuses: tuple[EndedStatus, ...] = Field(default=("completed",), min_length=1)


TriggerSource: TypeAlias = Annotated[CronSource | WebhookSource | RunEndSource, Field(discriminator="kind")]


class TriggerDefinition(Contract):
    """What starts a run, which run, and as whom.

    Each occurrence is started once, however many servers share the store.
    """

    name: str = Field(pattern=NAME_PATTERN)
    """Unique per realm."""
    description: str = ""
    when: TriggerSource
    """What it waits for."""
    start: str = Field(min_length=1, max_length=200)
    """Agent, workflow or tool: `name` or `name@range`."""
    input: JsonObject = Field(default_factory=dict)
    """What it is started with. Texts may have expressions: `${event.scheduled_at}` of a time; `${event.body.…}`,
    `${event.headers.…}` and `${event.id}` of a webhook; `${event.run_id}`, `${event.status}`, `${event.output}` and
    `${event.error}` of a run."""
    account: str = Field(pattern=NAME_PATTERN)
    """The service account that the run acts as, with its grants, secrets and budgets."""
    overlap: Overlap = "skip"
    enabled: bool = True
    """A paused trigger starts nothing, and what passes meanwhile is not caught up."""

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        if isinstance(self.when, WebhookSource) and self.overlap == "queue":
            raise ValueError("overlap: a webhook cannot wait; use 'allow' or 'skip'")
        if isinstance(self.when, RunEndSource) and self.when.tool == self.start.partition("@")[0]:
            raise ValueError(f"start: {self.when.tool!r} would start itself at each of its ends; start something else")
        return self


class TriggerState(Contract):
    """How a trigger stands."""

    name: str
    enabled: bool
    next_at: Timestamp | None = None
    """Its next time; null if it is paused, or does not wait for a time."""
    last_at: Timestamp | None = None
    """When the last occurrence was that started a run."""
    last_run_id: str | None = None
    last_status: RunStatus | None = None
    """How that run stands; null if it was pruned."""
    started: int = 0
    """Runs that were started."""
    skipped: int = 0
    """Occurrences that were left out, because the run of the one before had not ended."""
    problem: str | None = None
    """Why the last occurrence started nothing."""


class TriggerStart(Contract):
    """What an occurrence came to."""

    trigger: str
    run_id: str | None = None
    """The run; null if nothing was started."""
    outcome: Literal["started", "known", "skipped", "failed"]
    """`known`: it had been started before. `skipped`: the run of the one before has not ended."""
    problem: str | None = None
