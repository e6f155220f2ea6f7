"""A round: the clients ask for what is planned while disasters strike, insist until each of them
has been answered, and then ask some things once more."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from torture.book import Book, Standing, allowed_refusals, told
from torture.disasters import Disasters
from torture.findings import Findings
from torture.installation import Installation
from torture.plan import Disaster, Round
from torture.tally import Tally
from torture.town import Town
from torture.wire import Answer, Line, NotSentError, UnansweredError

_CLIENTS: Final = 16
_TWINS: Final = 2  # at most, of one operation
_PAUSE_SECONDS: Final = 0.05
_INSIST_SECONDS: Final = 60.0
_CONFLICTS: Final = frozenset({"DUPLICATE_REQUEST", "DUPLICATE_REFERENCE"})


class Client:
    """Asks for one thing after the other. The extra lines are for twins."""

    def __init__(self, port: int) -> None:
        self.lines = [Line(port) for _ in range(1 + _TWINS)]

    def hang_up(self) -> None:
        for line in self.lines:
            line.close()


class Load:
    def __init__(
        self, installation: Installation, town: Town, book: Book, findings: Findings, plan: Round
    ) -> None:
        self._installation = installation
        self._town = town
        self._book = book
        self._findings = findings
        self._plan = plan
        self._clients = [Client(installation.port) for _ in range(_CLIENTS)]
        self._disasters = Disasters(
            installation, [line for client in self._clients for line in client.lines]
        )
        self._standings: list[Standing] = []
        self._tried: dict[str, asyncio.Event] = {}
        self._sent = 0
        self._answered = time.monotonic()
        self._due: list[tuple[int, asyncio.Event]] = []
        self.tally = Tally()

    async def run(self) -> list[Standing]:
        """All operations of the round, each answered."""
        try:
            await self._under_fire()
            await self._recover()
            await self._insist()
            await self._ask_again()
        finally:
            for client in self._clients:
                client.hang_up()
        for standing in self._standings:
            if standing.told is not None:
                self._book.settle(standing)
        self._count()
        return self._standings

    async def _under_fire(self) -> None:
        for operation in self._plan.operations:
            standing = Standing(operation)
            self._standings.append(standing)
            self._book.standings[operation.name] = standing
            self._tried[operation.name] = asyncio.Event()
        strikes = [self._strike(disaster) for disaster in self._plan.disasters]
        striking = [asyncio.create_task(strike) for strike in strikes]
        try:
            await self._share(self._standings, self._first_time)
            for _, due in self._due:
                due.set()
            await asyncio.gather(*striking)
        finally:
            for task in striking:
                task.cancel()
            await asyncio.gather(*striking, return_exceptions=True)

    async def _strike(self, disaster: Disaster) -> None:
        due = asyncio.Event()
        self._due.append((disaster.after, due))
        await due.wait()
        await self._disasters.strike(disaster)
        if self._disasters.needs_start:
            self._disasters.needs_start = False
            self._installation.start_again()

    async def _recover(self) -> None:
        await self._installation.until_healthy()

    async def _share(
        self,
        standings: Sequence[Standing],
        act: Callable[[Client, Standing], Coroutine[Any, Any, None]],
    ) -> None:
        """Among the clients, who go through their shares side by side."""

        async def work(client: Client, own: Sequence[Standing]) -> None:
            for standing in own:
                await act(client, standing)

        async with asyncio.TaskGroup() as group:
            for place, client in enumerate(self._clients):
                group.create_task(work(client, standings[place::_CLIENTS]))

    async def _first_time(self, client: Client, standing: Standing) -> None:
        operation = standing.operation
        try:
            if operation.kind == "refund" and not await self._may_refund(standing):
                return
            if operation.cut is not None:
                await self._break_off(client, standing)
            else:
                await self._try(client, standing)
            if operation.patient:
                await self._until_answered(client, standing)
        finally:
            self._tried[operation.name].set()

    async def _may_refund(self, standing: Standing) -> bool:
        """Only what is known to have been paid; else it is put off until that is known."""
        of = standing.operation.of
        if of in self._tried:
            await self._tried[of].wait()
        paid = self._book.standings[of].told
        if paid is None or not paid.done:
            return False
        standing.original = paid.transaction
        return True

    async def _break_off(self, client: Client, standing: Standing) -> None:
        assert standing.operation.cut is not None
        self._note_sent()
        line = client.lines[0]
        standing.attempts += 1
        standing.unanswered += 1
        try:
            line.close()
            await line.break_off(self._request(standing), standing.operation.cut)
        except NotSentError:
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _try(self, client: Client, standing: Standing) -> None:
        """Once; with its twins, if it has any."""
        self._note_sent()
        twins = standing.operation.twins
        self.tally.twins += twins
        request = self._request(standing)
        lines = client.lines[: 1 + twins]
        await asyncio.gather(*(self._attempt(line, standing, request) for line in lines))

    async def _until_answered(self, client: Client, standing: Standing) -> None:
        deadline = time.monotonic() + _INSIST_SECONDS
        while standing.told is None:
            if time.monotonic() > deadline:
                self._findings.add("unanswered", standing.operation.name, "never answered")
                return
            await self._attempt(client.lines[0], standing, self._request(standing))

    async def _attempt(self, line: Line, standing: Standing, request: bytes) -> None:
        standing.attempts += 1
        try:
            answer = await line.ask(request)
        except NotSentError:
            standing.unanswered += 1
            await asyncio.sleep(_PAUSE_SECONDS)
        except UnansweredError:
            standing.unanswered += 1
        else:
            self._take(standing, answer)
            if answer.status == 503:
                await asyncio.sleep(_PAUSE_SECONDS)

    def _take(self, standing: Standing, answer: Answer) -> None:
        name = standing.operation.name
        if answer.status == 503:
            standing.unanswered += 1
            return
        if answer.status >= 500:
            standing.unanswered += 1
            self._findings.add("failure", name, f"answered {answer.status} {answer.body}")
            return
        self._note_answered()
        said = told(standing.operation, answer)
        if said.code and said.code not in allowed_refusals(standing.operation):
            self._findings.add("refusal", name, f"refused: {answer.status} {answer.body}")
            if not said.recorded or said.code in _CONFLICTS or answer.status in (401, 404, 429):
                standing.unanswered += 1
                return
        before = standing.told
        if before is None:
            standing.told = said
            standing.done_before = answer.replayed and standing.unanswered > 0
        elif said != before and (said.recorded or before.recorded):
            self._findings.add("wrong figures", name, f"acknowledged {before}, then {said}")

    async def _insist(self) -> None:
        """Whatever was not answered is asked for again, the payments before their refunds."""
        open_ones = [one for one in self._standings if one.told is None]
        refunds = [one for one in open_ones if one.operation.kind == "refund"]
        await self._share(
            [one for one in open_ones if one.operation.kind != "refund"], self._until_answered
        )
        possible = []
        for refund in refunds:
            if await self._may_refund(refund):
                possible.append(refund)
            else:
                self._forget(refund)
        await self._share(possible, self._until_answered)

    def _forget(self, refund: Standing) -> None:
        self._standings.remove(refund)
        del self._book.standings[refund.operation.name]
        self.tally.not_asked += 1

    async def _ask_again(self) -> None:
        repeated = [one for one in self._standings if one.told and one.operation.repeated]
        repeated += [self._book.standings[name] for name in self._plan.again]
        altered = [
            one
            for one in self._standings
            if one.operation.altered and one.told is not None and _binds(one)
        ]
        self.tally.repeated, self.tally.altered = len(repeated), len(altered)
        await self._share(repeated, self._repeat)
        await self._share(altered, self._alter)

    async def _repeat(self, client: Client, standing: Standing) -> None:
        """The same answer as before, marked as a repetition."""
        answer = await self._surely(client, self._request(standing))
        if answer is None:
            return
        self._take(standing, answer)
        assert standing.told is not None
        if standing.told.recorded and not answer.replayed:
            self._findings.add(
                "doubled", standing.operation.name, f"repeated, and done anew: {answer.body}"
            )

    async def _alter(self, client: Client, standing: Standing) -> None:
        """Something else under a name that is taken."""
        operation = standing.operation
        request = self._town.request(operation, standing.original, altered=True)
        answer = await self._surely(client, request)
        if answer is not None and answer.code not in _CONFLICTS:
            self._findings.add(
                "doubled", operation.name, f"something else under its name: {answer.body}"
            )

    async def _surely(self, client: Client, request: bytes) -> Answer | None:
        deadline = time.monotonic() + _INSIST_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = await client.lines[0].ask(request)
            except (NotSentError, UnansweredError):
                answer = None
            if answer is not None and answer.status != 503:
                return answer
            await asyncio.sleep(_PAUSE_SECONDS)
        self._findings.add("unanswered", "a repetition", "never answered")
        return None

    def _request(self, standing: Standing) -> bytes:
        return self._town.request(standing.operation, standing.original)

    def _note_sent(self) -> None:
        self._sent += 1
        for after, due in self._due:
            if self._sent >= after:
                due.set()

    def _note_answered(self) -> None:
        now = time.monotonic()
        self.tally.silence_seconds = max(self.tally.silence_seconds, now - self._answered)
        self._answered = now

    def _count(self) -> None:
        tally = self.tally
        for standing in self._standings:
            tally.operations += 1
            if standing.told is None:
                continue
            if standing.told.done:
                tally.done += 1
            else:
                tally.declines[standing.told.code] += 1
            tally.unanswered += standing.unanswered > 0
            tally.done_before += standing.done_before


def _binds(standing: Standing) -> bool:
    """Whether its name stands for what was asked: a partner's reference that was declined does
    not."""
    assert standing.told is not None
    return standing.told.recorded and (standing.told.done or standing.operation.kind != "top_up")
