"""Rendered messages fit the provider's limits, and every option can be reached."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cases import each
from tapgate.messenger.channel.render import (
    Payload,
    RenderError,
    render_payloads,
    select_visible_options,
)
from tapgate.messenger.model import (
    COMMANDS,
    OPTIONS_PER_PAGE,
    DocumentReply,
    Option,
    OptionList,
    OutgoingMessage,
    PinForm,
    Template,
    TextReply,
)
from tapgate_sandbox.fake_provider import message_validation

PHONE = "+23276123456"
MORE_OPTION = Option(id="more:1", title="More")


def _render_single(message: OutgoingMessage) -> Payload:
    (payload,) = render_payloads(message, PHONE)
    return payload


def _build_offer(options: int, start: int = 0) -> OptionList:
    return OptionList(
        text="What next?",
        options=tuple(Option(id=f"o{item}", title=f"Option {item}") for item in range(options)),
        button="Choose",
        more=MORE_OPTION,
        start=start,
    )


def test_text_renders_as_a_text_payload() -> None:
    assert _render_single(TextReply(text="Hello")) == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "23276123456",
        "type": "text",
        "text": {"body": "Hello", "preview_url": False},
    }


def test_recipient_without_a_phone_number_is_addressed_by_user_id() -> None:
    (payload,) = render_payloads(TextReply(text="Hello"), "user:SL.123")
    assert payload["recipient"] == "SL.123"
    assert "to" not in payload
    assert message_validation.validate_message(payload) == "SL.123"


def test_long_text_is_split_between_words_without_loss() -> None:
    text = " ".join(f"word{number}" for number in range(2000))
    parts = [payload["text"]["body"] for payload in render_payloads(TextReply(text=text), PHONE)]
    assert len(parts) > 1
    assert " ".join(parts) == text


def test_up_to_three_options_render_as_buttons() -> None:
    interactive = _render_single(_build_offer(3))["interactive"]
    assert interactive == {
        "type": "button",
        "body": {"text": "What next?"},
        "action": {
            "buttons": [
                {"type": "reply", "reply": {"id": f"o{item}", "title": f"Option {item}"}}
                for item in range(3)
            ]
        },
    }


def test_more_than_three_options_render_as_a_list() -> None:
    interactive = _render_single(_build_offer(4))["interactive"]
    assert interactive["type"] == "list"
    assert interactive["action"] == {
        "button": "Choose",
        "sections": [
            {"rows": [{"id": f"o{item}", "title": f"Option {item}"} for item in range(4)]}
        ],
    }


@each(
    "options",
    [
        (Option(id="a", title="A card", description="of yours"), Option(id="b", title="B")),
        (Option(id="a", title="More than twenty letters"), Option(id="b", title="B")),
        (Option(id="a", title="Same"), Option(id="b", title="Same ")),
    ],
)
def test_options_that_do_not_fit_buttons_render_as_a_list(options: tuple[Option, ...]) -> None:
    option_list = OptionList(text="?", options=options, button="Choose", more=MORE_OPTION)
    assert _render_single(option_list)["interactive"]["type"] == "list"


def test_truncated_title_is_repeated_in_full_in_the_description() -> None:
    title = "Aminata Kamara-Williams of Freetown"
    options = (
        Option(id="a", title=title),
        Option(id="b", title=title, description="d" * 73),
        Option(id="c", title="Short\nand two lines"),
    )
    option_list = OptionList(
        text="?", options=options, button="Choose one of all these", more=MORE_OPTION
    )
    action = _render_single(option_list)["interactive"]["action"]
    assert action["button"] == "Choose one of all t…"
    assert action["sections"][0]["rows"] == [
        {"id": "a", "title": "Aminata Kamara-Williams…", "description": title},
        {"id": "b", "title": "Aminata Kamara-Williams…", "description": "d" * 71 + "…"},
        {"id": "c", "title": "Short and two lines"},
    ]


def test_eleven_options_are_paginated_with_a_more_option() -> None:
    expected = [f"o{number}" for number in range(10)]
    assert [option.id for option in select_visible_options(_build_offer(10))] == expected
    assert [option.id for option in select_visible_options(_build_offer(11))] == [
        *(f"o{number}" for number in range(9)),
        "more:1",
    ]
    assert [option.id for option in select_visible_options(_build_offer(11, start=9))] == [
        "o9",
        "o10",
    ]


@each("start", [-1, 11, 10**9])
def test_start_out_of_range_shows_the_first_page(start: int) -> None:
    expected = select_visible_options(_build_offer(11))
    assert select_visible_options(_build_offer(11, start=start)) == expected


def test_offer_without_options_renders_as_text() -> None:
    assert _render_single(_build_offer(0))["text"]["body"] == "What next?"


@each("option", [Option(id="", title="A"), Option(id="x" * 257, title="A")])
def test_option_with_an_invalid_id_is_rejected(option: Option) -> None:
    with pytest.raises(RenderError):
        render_payloads(
            OptionList(text="?", options=(option,), button="b", more=MORE_OPTION), PHONE
        )


def test_options_with_duplicate_ids_are_rejected() -> None:
    duplicates = (Option(id="a", title="A"), Option(id="a", title="B"))
    with pytest.raises(RenderError):
        render_payloads(
            OptionList(text="?", options=duplicates, button="b", more=MORE_OPTION), PHONE
        )


def test_pin_form_renders_as_a_flow_payload() -> None:
    form = PinForm(text="Send 5.00 SLE?", button="Enter your PIN", form="pin", token="t0ken")
    payload = _render_single(form)
    assert payload["interactive"] == {
        "type": "flow",
        "body": {"text": "Send 5.00 SLE?"},
        "action": {
            "name": "flow",
            "parameters": {
                "flow_message_version": "3",
                "flow_token": "t0ken",
                "flow_name": "tapgate_pin",
                "flow_cta": "Enter your PIN",
                "flow_action": "data_exchange",
                "mode": "published",
            },
        },
    }
    assert message_validation.validate_message(payload) == "23276123456"


def test_document_renders_as_a_document_payload() -> None:
    file = DocumentReply(link="https://example.com/s.pdf", filename="statement.pdf", caption="May")
    payload = _render_single(file)
    assert payload["document"] == {
        "link": "https://example.com/s.pdf",
        "filename": "statement.pdf",
        "caption": "May",
    }
    assert message_validation.validate_message(payload) == "23276123456"


def test_template_renders_as_a_template_payload() -> None:
    payload = _render_single(
        Template(name="receipt", language="fr", parameters=("5,00 SLE", "a\nb", ""))
    )
    assert payload["template"] == {
        "name": "receipt",
        "language": {"code": "fr"},
        "components": [
            {
                "type": "body",
                "parameters": [{"type": "text", "text": text} for text in ("5,00 SLE", "a b", "…")],
            }
        ],
    }
    assert message_validation.validate_message(payload) == "23276123456"
    found = _render_single(Template(name="t", language="en", parameters=()))["template"]
    assert "components" not in found


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.builds(
    lambda piece, times: piece * times,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.integers(1, 900),
)
OPTIONS = st.lists(
    st.builds(
        Option, id=st.text("abc:0123", min_size=1, max_size=200), title=TEXT, description=TEXT
    ),
    max_size=35,
    unique_by=lambda option: option.id,
).map(tuple)
OFFERS = st.builds(
    OptionList,
    text=TEXT,
    options=OPTIONS,
    button=TEXT,
    more=st.builds(Option, id=st.just("more"), title=TEXT, description=TEXT),
    start=st.integers(-3, 40),
)
TOKENS = st.text("abcdef0123", min_size=1, max_size=64)
FORMS = st.builds(
    PinForm, text=TEXT, button=TEXT, form=st.sampled_from(["pin", "new_pin"]), token=TOKENS
)
FILES = st.builds(DocumentReply, link=st.just("https://example.com/a"), filename=TEXT, caption=TEXT)
TEMPLATES = st.builds(
    Template,
    name=st.just("receipt"),
    language=st.sampled_from(["en", "fr"]),
    parameters=st.lists(TEXT, max_size=5).map(tuple),
)


@given(st.builds(TextReply, text=TEXT) | OFFERS | FORMS | FILES | TEMPLATES)
def test_any_rendered_message_passes_provider_validation(message: OutgoingMessage) -> None:
    rendered = render_payloads(message, PHONE)
    assert rendered
    for payload in rendered:
        message_validation.validate_message(payload)


@given(OFFERS)
def test_every_option_is_reachable_through_the_more_option(offer: OptionList) -> None:
    seen: list[Option] = []
    start = 0
    while True:
        options = select_visible_options(replace(offer, start=start))
        if offer.more not in options:
            break
        assert options[-1] == offer.more
        seen += options[:-1]
        start += OPTIONS_PER_PAGE
    assert tuple(seen) + options == offer.options


@given(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=9000))
def test_splitting_a_text_loses_no_characters(text: str) -> None:
    parts = render_payloads(TextReply(text=text), PHONE)
    assert "".join(part["text"]["body"] for part in parts) == text


@pytest.mark.parametrize(
    ("button", "payloads"),
    [
        (None, []),
        ("veto", ["cmd:not_me"]),
        ("recall", ["cmd:return_money", "cmd:keep_money"]),
        ("dispute", ["cmd:dispute"]),
        ("dispute:txn_01hq8v5k2m3n4", ["cmd:dispute:txn_01hq8v5k2m3n4"]),
    ],
)
def test_buttons_of_a_template_start_commands(button: str | None, payloads: list[str]) -> None:
    message = Template(name="t", language="en", parameters=("a",), button=button)
    (payload,) = render_payloads(message, PHONE)
    buttons = payload["template"]["components"][1:]
    assert [item["index"] for item in buttons] == [str(i) for i in range(len(payloads))]
    assert [item["parameters"][0]["payload"] for item in buttons] == payloads
    assert {item.split(":")[1] for item in payloads} <= set(COMMANDS)
