"""Subscribers on pages: hostile names, and what is refused is said in the dialog."""

from console.visitor import Visitor, Visitors
from world import World

HOSTILE = "<script>alert(1)</script>"


async def test_names_are_text(ada: Visitor, world: World) -> None:
    person = await world.subscriber(first_name=HOSTILE, last_name='"><img src=x onerror=alert(1)>')
    for path in ("/console/subscribers", f"/console/subscribers/{person['id']}"):
        answer = await ada.get(path)
        assert answer.status_code == 200
        assert "&lt;script&gt;alert(1)" in answer.text
        assert "<script>alert" not in answer.text and "<img src=x" not in answer.text


async def test_block_and_unblock(ada: Visitor, world: World) -> None:
    person = await world.subscriber()
    page = f"/console/subscribers/{person['id']}"
    await ada.page(page)
    done = await ada.act("subscriber.block", {"reason": "Lost the phone"}, id=person["id"])
    assert done.headers["HX-Redirect"] == page
    shown = await ada.page(page)
    assert "The subscriber is blocked." in shown and "Reason: Lost the phone" in shown
    again = await ada.post_part(
        f"/console/acts/subscriber.block?id={person['id']}", {"reason": "Once more"}
    )
    assert again.status_code == 200 and 'role="alert"' in again.text
    assert "Once more" in again.text, "what was typed is still there"


async def test_a_part_of_the_list_is_its_rows(visitors: Visitors, world: World) -> None:
    await world.subscriber(first_name="Fatmata")
    await world.subscriber(first_name="Ibrahim")
    support = await visitors.of("S")
    found = await support.part("/console/subscribers?search=fatmata")
    assert found.text.count("<tr>") == 1 and "Fatmata" in found.text
    assert "<html" not in found.text
