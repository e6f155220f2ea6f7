"""Every text fits three SMS parts, in every language and with names in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapgate.core.message_templates import TEMPLATE_LANGUAGES, TEMPLATES, MessageTemplate
from tapgate.messenger.channel.sms_text import (
    MAX_PARTS,
    SmsTextError,
    count_parts,
    render_sms,
)
from tapgate_sandbox.fake_provider import sms as provider

SMS_TEMPLATES = [template for template in TEMPLATES.values() if template.can_be_sms]
CODE = TEMPLATES["one_time_code"]
PIN_CHANGED = TEMPLATES["pin_changed"]
CORRECTED = TEMPLATES["money_corrected"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("a" * 306, 2),
        ("a" * 459, 3),
        ("a" * 460, 4),
        ("€" * 80, 1),
        ("€" * 81, 2),
        # A part has room for 76 characters of two units, and one unit stays free.
        ("€" * 228, 3),
        ("€" * 229, 4),
        ("ɔ" * 70, 1),
        ("ɔ" * 71, 2),
        ("ɔ" * 201, 3),
        ("ɔ" * 202, 4),
        ("👍" * 99, 3),
        ("👍" * 100, 4),
    ],
)
def test_parts_are_counted_as_phones_receive_them(text: str, parts: int) -> None:
    assert count_parts(text) == parts == provider.count_parts(text)


@given(st.text(max_size=500))
def test_provider_counts_the_same_parts(text: str) -> None:
    assert count_parts(text) == provider.count_parts(text)


@pytest.mark.parametrize("language", TEMPLATE_LANGUAGES)
@pytest.mark.parametrize("template", SMS_TEMPLATES, ids=lambda template: template.name)
def test_usual_texts_need_no_other_alphabet(template: MessageTemplate, language: str) -> None:
    text = render_sms(template, language, ["Aïssatou K."] * template.parameter_count)
    assert text.isascii() or count_parts(text + "e") == count_parts(text + "é")
    assert "..." not in text
    assert "*" not in text


_values = st.one_of(
    st.text(max_size=1024),
    st.sampled_from(["Aminata K.", "Ɔpɔŋ Ɛlɛ", "محمد علي", "123456", "50.00 SLE", "••••0001"]),
)


@given(
    st.sampled_from(SMS_TEMPLATES),
    st.sampled_from(TEMPLATE_LANGUAGES),
    st.lists(_values, min_size=4, max_size=20),
)
def test_every_text_fits(template: MessageTemplate, language: str, values: list[str]) -> None:
    try:
        text = render_sms(template, language, values)
    except SmsTextError:
        assert template is CODE
    else:
        assert text
        assert count_parts(text) <= MAX_PARTS


@given(st.text("0123456789", min_size=4, max_size=12), st.sampled_from(TEMPLATE_LANGUAGES))
def test_code_is_never_cut(code: str, language: str) -> None:
    assert code in render_sms(CODE, language, [code])


def test_code_that_does_not_fit_is_not_sent() -> None:
    with pytest.raises(SmsTextError):
        render_sms(CODE, "en", ["7" * 600])


def test_long_name_is_shortened_and_numbers_stay_whole() -> None:
    text = render_sms(
        CORRECTED, "en", ["Aminata " * 100, "added 50.00 SLE to your wallet", "txn_1"]
    )
    assert text.startswith("Aminata Aminata")
    assert "...: our team added 50.00 SLE to your wallet (transaction txn_1)." in text
    assert count_parts(text) == MAX_PARTS


def test_name_in_another_script_is_kept_if_it_fits() -> None:
    assert "محمد" in render_sms(PIN_CHANGED, "en", ["محمد", "your PIN"])


def test_name_in_another_script_gives_way_to_a_text_that_would_not_fit() -> None:
    parameters = ["محمد", "+232*****456", "+232*****789", "écrivez PAS MOI. " * 6]
    text = render_sms(TEMPLATES["phone_changed"], "fr", parameters)
    assert text.startswith("????")
    assert "+232*****789" in text


def test_accents_and_signs_outside_the_alphabet_are_replaced() -> None:
    text = render_sms(PIN_CHANGED, "fr", ["Françoise", "le code de la carte ••••0001\u00a0: prêt"])
    assert "Francoise" in text
    assert "****0001 : pret" in text


def test_missing_parameters_are_an_error() -> None:
    with pytest.raises(SmsTextError):
        render_sms(CORRECTED, "en", ["Aminata"])
