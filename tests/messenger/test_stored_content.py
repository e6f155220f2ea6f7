"""Stored messages: the JSON of earlier versions must decode, and its tags must not change."""

import msgspec

from cases import each
from tapgate.messenger.model import (
    Content,
    FormClosed,
    ImageFile,
    InlineImage,
    NumberChanged,
    OptionChosen,
    TextContent,
    UnsupportedMessage,
)


@each(
    "stored, content",
    [
        ('{"type":"Words","body":"hi"}', TextContent(body="hi")),
        ('{"type":"Tap","id":"cmd:menu"}', OptionChosen(id="cmd:menu")),
        ('{"type":"FlowReply"}', FormClosed()),
        (
            '{"type":"ImageFile","media_id":"m1","mime_type":null,"sha256":null}',
            ImageFile(media_id="m1", mime_type=None, sha256=None),
        ),
        (
            '{"type":"PictureInside","data":"data:","mimetype":null}',
            InlineImage(data="data:", mimetype=None),
        ),
        ('{"type":"ChangedNumber"}', NumberChanged()),
        ('{"type":"Other","kind":"sticker"}', UnsupportedMessage(kind="sticker")),
    ],
)
def test_content_is_stored_under_a_stable_tag(stored: str, content: Content) -> None:
    assert msgspec.json.encode(content).decode() == stored
    assert msgspec.json.decode(stored, type=Content) == content


def test_closed_form_of_an_earlier_version_decodes() -> None:
    stored = '{"type":"FlowReply","flow_token":"t1"}'
    assert msgspec.json.decode(stored, type=Content) == FormClosed()
