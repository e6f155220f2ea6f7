"""A whole run: an installation, its people, round after round of load, disaster and judgement."""

import contextlib
import time
from collections.abc import AsyncIterator

from tapgate.store.database import Database
from torture import settling
from torture.book import Book, Standing
from torture.events import Arrived, listening
from torture.findings import Findings
from torture.installation import WORKERS, Installation, NotHealthyError
from torture.interface import Interface
from torture.judge import Judge, Mark, mark
from torture.load import Load
from torture.plan import Round, round_of
from torture.report import Report
from torture.tally import Tally
from torture.town import Town


class Run:
    def __init__(
        self, installation: Installation, town: Town, arrived: Arrived, findings: Findings
    ) -> None:
        self.installation = installation
        self.town = town
        self.arrived = arrived
        self.findings = findings
        self.book = Book(settling.FUNDS)
        self.since = self.begun = Mark(0, 0, 0, {})

    async def begin(self) -> None:
        async with self._database() as database:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                if await database.fetchval("SELECT current_setting($1)", setting) != "on":
                    self.findings.add("start", setting, "is off: what is committed may be lost")
            self.since = self.begun = await mark(database, self.book)

    async def round(self, plan: Round) -> Tally:
        began = time.monotonic()
        self.findings.round = plan.number
        await self.installation.until_healthy(workers=WORKERS)
        load = Load(self.installation, self.town, self.book, self.findings, plan)
        standings = await load.run()
        await self.judge(standings)
        load.tally.seconds = time.monotonic() - began
        return load.tally

    async def judge(self, standings: list[Standing]) -> None:
        """These, and whether all that was there before still is."""
        interface = Interface(self.installation.port, self.town)
        try:
            async with self._database() as database:
                judge = Judge(database, interface, self.town, self.book, self.findings)
                await judge.judge(standings, self.since)
                await judge.prove()
                self.since = await mark(database, self.book)
        finally:
            interface.hang_up()
        self.arrived.take(self.findings)

    async def judge_all(self) -> None:
        """Everything since the beginning once more."""
        self.since = self.begun
        await self.judge(list(self.book.standings.values()))

    @contextlib.asynccontextmanager
    async def _database(self) -> AsyncIterator[Database]:
        database = await Database.connect(self.installation.database_url, size=1)
        try:
            yield database
        finally:
            await database.close()


@contextlib.asynccontextmanager
async def running(installation: Installation, findings: Findings) -> AsyncIterator[Run]:
    """On an installation that is started here; whoever made it stops it."""
    async with listening() as arrived:
        installation.start()
        await installation.until_healthy(workers=WORKERS)
        town = await settling.settle(installation.port, arrived.url)
        run = Run(installation, town, arrived, findings)
        await run.begin()
        yield run


async def torture(run: Run, seed: int, rounds: int, report: Report) -> None:
    """Ends early when it does not become healthy again."""
    for number in range(1, rounds + 1):
        before, plan = len(run.findings.all), round_of(seed, number)
        try:
            tally = await run.round(plan)
        except NotHealthyError as error:
            run.findings.add("start", "the gateway", str(error))
            return
        report.of_round(plan, tally, len(run.findings.all) - before)
    await run.judge_all()
    await run.arrived.judge(run.book.standings.values(), run.findings)
    report.of_events(run.arrived.ids, run.arrived.deliveries)
