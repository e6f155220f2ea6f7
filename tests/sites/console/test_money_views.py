"""Money views in the console: overview links, totals, a merchant's sales and liquidity."""

import html
import re

from builders.participants import cash_in, create_agent
from builders.reporting import create_sales
from drivers.console import ConsoleClient
from harness import Harness


async def test_overview_links_each_number_to_its_list(ada: ConsoleClient, harness: Harness) -> None:
    await create_sales(harness)
    text = await ada.get_page_text("/console/reports?period=week")
    for filters in ("flow=payments", "flow=money_in", "type=refund", "status=failed"):
        path = f"/console/transactions?period=week&{filters}"
        assert f'href="{path}"' in html.unescape(text), path
        assert (await ada.get(path)).status_code == 200
    assert "Payment volume" in text and "100.00 SLE" in text


async def test_totals_are_loaded_below_a_filtered_list(
    ada: ConsoleClient, harness: Harness
) -> None:
    await create_sales(harness)
    assert "/console/transactions/totals" not in await ada.get_page_text("/console/transactions")
    text = await ada.get_page_text("/console/transactions?flow=refunds&period=today")
    path = "/console/transactions/totals?flow=refunds&period=today"
    assert path in text and text.count("/console/transactions/txn_") == 1
    ordered = await ada.get_page_text("/console/transactions?order=oldest")
    newest = await ada.get_page_text("/console/transactions")
    find_ids = re.compile(r"/console/transactions/(txn_\w+)").findall
    assert find_ids(ordered) == find_ids(newest)[::-1]
    by_amount = await ada.get_page_text("/console/transactions?order=amount")
    assert sorted(find_ids(by_amount)) == sorted(find_ids(newest))
    assert "largest first" in by_amount and "largest first" not in newest
    assert (await ada.get("/console/transactions/export?order=amount")).status_code == 200
    totals = (await ada.get_partial(path)).text
    assert "1 transaction<" in totals and "40.00 SLE" in totals
    partial = (await ada.get_partial("/console/transactions?flow=payments")).text
    url = "/console/transactions/totals?flow=payments"
    assert f'id="totals" hx-swap-oob="true" hx-get="{url}"' in partial


async def test_merchant_page_loads_the_sales_of_a_period(
    ada: ConsoleClient, harness: Harness
) -> None:
    _, processor = await create_sales(harness)
    page = f"/console/processors/{processor}"
    assert f"{page}/summary?period=month" in await ada.get_page_text(page)
    text = (await ada.get_partial(f"{page}/summary?period=this_month")).text
    assert "100.00 SLE" in text and "40.00 SLE" in text
    export = f"/console/transactions/export?user_id={processor}&amp;period=this_month"
    assert export in text
    response = await ada.get(export.replace("&amp;", "&"))
    assert response.headers["Content-Type"].startswith("text/csv")
    assert response.text.count("pos_payment") == 1
    response = await ada.get(f"/console/transactions/export?user_id={processor}&period=yesterday")
    assert len(response.text.splitlines()) == 1


async def test_liquidity_page_names_agents_who_run_out(
    ada: ConsoleClient, harness: Harness
) -> None:
    agent = await create_agent(harness, balance="110", name="Bintu Conteh")
    customer = await harness.create_subscriber()
    await cash_in(harness, agent, customer, "100")
    text = await ada.get_page_text("/console/agents/liquidity")
    assert "Bintu Conteh" in text and "0.7 days" in text and "Fund float" in text
    page = f"/console/agents/liquidity?parent_agent_id={agent['id']}"
    assert "Liquidity of Bintu Conteh" in await ada.get_page_text(page)


async def test_totals_of_balances_are_loaded_below_filtered_lists(
    ada: ConsoleClient, harness: Harness
) -> None:
    await create_sales(harness)
    await create_agent(harness, balance="110")
    for name, query, total in (
        ("agents", "low_float=true", "110.00 SLE"),
        ("processors", "status=active", "1 record<"),
        ("partners", "status=suspended", "0 records"),
    ):
        page = f"/console/{name}"
        assert f"{page}/totals" not in await ada.get_page_text(page)
        assert f'hx-get="{page}/totals?{query}"' in await ada.get_page_text(f"{page}?{query}")
        assert total in (await ada.get_partial(f"{page}/totals?{query}")).text
        assert 'id="totals" hx-swap-oob="true"' in (await ada.get_partial(f"{page}?{query}")).text
