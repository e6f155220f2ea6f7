"""A whole run: an installation, its people, and round after round of load, disaster and judgement."""

import time
from pathlib import Path

from tapgate.store.database import Database
from torture import settling
from torture.book import Book
from torture.findings import Findings
from torture.installation import Installation, NotHealthyError
from torture.judge import Judge, Mark
from torture.load import Load
from torture.plan import Round, round_of
from torture.report import Report
from torture.town import Town


class Run:
    def __init__(self, installation: Installation, seed: int) -> None:
        self.installation = installation
        self.seed = seed
        self.findings = Findings()
        self.book = Book(settling.FUNDS)
        self.town = Town()
        self._mark: Mark | None = None

    async def begin(self) -> None:
        self.installation.start()
        await self.installation.until_healthy()
        self.town = await settling.settle(self.installation.port)
        database = await Database.connect(self.installation.database_url, size=1)
        try:
            self._mark = await self._judge(database).mark()
        finally:
            await database.close()

    async def rounds(self, count: int, report: Report, *, operations: int | None = None) -> None:
        """Ends early when it does not become healthy again."""
        for number in range(1, count + 1):
            plan = round_of(self.seed, number, operations=operations)
            try:
                await self.round(plan, report)
            except NotHealthyError as error:
                self.findings.add("start", "the gateway", str(error))
                return

    async def round(self, plan: Round, report: Report) -> None:
        began, before = time.monotonic(), len(self.findings.all)
        self.findings.round = plan.number
        await self.installation.until_healthy(workers=2)
        load = Load(self.installation, self.town, self.book, self.findings, plan)
        standings = await load.run()
        database = await Database.connect(self.installation.database_url, size=1)
        try:
            judge = self._judge(database)
            assert self._mark is not None
            await judge.judge(standings, self._mark)
            await judge.prove()
            self._mark = await judge.mark()
        finally:
            await database.close()
        load.tally.seconds = time.monotonic() - began
        report.of_round(plan, load.tally, len(self.findings.all) - before)

    def _judge(self, database: Database) -> Judge:
        return Judge(database, self.town, self.book, self.findings)
