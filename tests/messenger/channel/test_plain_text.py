from tapgate.messenger.channel.render import render_plain_text
from tapgate.messenger.model import (
    DocumentReply,
    Option,
    OptionList,
    PinForm,
    PinRequest,
    Template,
    TextReply,
)


def test_replies_are_joined_into_one_text() -> None:
    options = (Option(id="a", title="Balance"), Option(id="b", title="Send", description="money"))
    more = Option(id="m", title="More")
    replies = (
        TextReply(text="Welcome."),
        OptionList(text="What next?", options=options, button="Menu", more=more),
        DocumentReply(link="https://example.com/s.pdf", filename="s.pdf", caption="Your statement"),
        PinRequest(text="Your PIN, please.", button="PIN", form="pin", operation="op"),
    )
    plain_text = render_plain_text(replies)
    expected = (
        "Welcome.\n\n"
        "What next?\n\n"
        "1. Balance\n"
        "2. Send - money\n\n"
        "Your statement\nhttps://example.com/s.pdf\n\n"
        "Your PIN, please."
    )
    assert plain_text == expected


def test_all_options_are_numbered_regardless_of_the_list_page() -> None:
    options = tuple(Option(id=str(item), title=f"Card {item}") for item in range(1, 31))
    more = Option(id="m", title="More")
    text = render_plain_text(
        [OptionList(text="", options=options, button="b", more=more, start=18)]
    )
    assert text.split("\n") == [f"{entry}. Card {entry}" for entry in range(1, 31)]


def test_form_renders_as_its_text_and_a_template_as_nothing() -> None:
    form = PinForm(text="Your PIN, please.", button="PIN", form="pin", token="t0ken")
    assert render_plain_text([form]) == "Your PIN, please."
    assert render_plain_text([Template(name="t", language="en", parameters=("1",))]) == ""
    assert render_plain_text([]) == ""
