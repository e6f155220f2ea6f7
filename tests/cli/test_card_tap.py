"""`tapgate card tap` prints proofs that the gateway accepts, outside production."""

import json

from builders.card_proofs import confirm, create_keyset, personalize
from builders.payments import PosDriver
from drivers.processes import run_command_on
from harness import PRODUCTION_ENVIRON, Harness, parse_error
from tapgate.http.api.services import Services


async def test_printed_taps_confirm_keys_and_pay(harness: Harness, services: Services) -> None:
    pos = await PosDriver.create(harness)
    missing = await run_command_on(services, "card", "tap", pos.card)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith(f"tapgate: card {pos.card} does not exist or has no keys")
    await personalize(harness, pos.card, await create_keyset(harness))
    first = await run_command_on(services, "card", "tap", pos.card, "--pending", "--json")
    assert first.returncode == 0, first.stderr
    confirmed = await confirm(harness, pos.card, json.loads(first.stdout))
    assert confirmed.status_code == 200, confirmed.text
    second = await run_command_on(services, "card", "tap", pos.card)
    proof = {"url": second.stdout.strip()}
    assert (await pos.pay(card_serial=None, card_proof=proof)).status_code == 200
    assert parse_error(await pos.pay(card_proof=proof)) == (409, "CARD_PROOF_USED")


async def test_taps_are_not_simulated_in_production(services: Services) -> None:
    result = await run_command_on(services, "card", "tap", "TAP-1", **PRODUCTION_ENVIRON)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "tapgate: taps cannot be simulated in staging and production\n"
