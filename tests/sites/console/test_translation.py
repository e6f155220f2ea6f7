"""The console in French: catalogs, escaping, and language choice."""

import ast
import html
import re
import tomllib
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from jinja2 import nodes

import tapgate
import tapgate_client
import tapgate_sandbox
from builders.approvals import build_rule, require_held, set_rules
from builders.participants import AGENTS_URL, create_agent
from drivers.console import ConsoleClient, ConsoleClients
from drivers.console_texts import (
    list_action_texts,
    list_approval_summaries,
    list_audit_terms,
    list_labels,
    list_module_texts,
    list_script_texts,
    list_template_texts,
)
from harness import Harness
from tapgate.sites.console.audit_events import AUDIT_EVENTS
from tapgate.sites.console.console import build_console
from tapgate.sites.console.labels import get_state_label, humanize, use_console_terms
from tapgate.sites.console.pages import approvals, compliance, disputes, float_requests, support
from tapgate.sites.console.pages.audit import RESOURCE_TYPES
from tapgate.sites.console.rendering import build_environment
from tapgate.sites.console.translation import translator as translator_module
from tapgate.sites.console.translation.html_texts import HtmlScanner
from tapgate.sites.console.translation.template_texts import TranslatingEnvironment, parse_template
from tapgate.sites.console.translation.translator import (
    Language,
    Translator,
    get_translator,
    negotiate,
)
from tapgate_client.errors import TABLE, ApiError, Code
from tapgate_client.schemas.admin import Admin, ApiKeyRecord
from tapgate_client.schemas.agents import AgentRecord
from tapgate_client.schemas.approvals import ApprovalRule, ApprovalStatus
from tapgate_client.schemas.branding import BrandingRecord
from tapgate_client.schemas.card_proofs import KeysetRecord
from tapgate_client.schemas.cards import CardRecord, CardStatus
from tapgate_client.schemas.compliance import (
    AccountRuleRecord,
    AlertRecord,
    AlertStatus,
    RuleRecord,
    RuleStatus,
)
from tapgate_client.schemas.disputes import DisputeStatus
from tapgate_client.schemas.fees import CommissionRule, FeeRule
from tapgate_client.schemas.float_requests import FloatRequestStatus
from tapgate_client.schemas.general_ledger import GlCode
from tapgate_client.schemas.partners import PartnerRecord
from tapgate_client.schemas.processors import ProcessorRecord, TerminalRecord
from tapgate_client.schemas.saved_replies import SavedReplyRecord
from tapgate_client.schemas.subscribers import SubscriberRecord
from tapgate_client.schemas.support import SupportRequestStatus
from tapgate_client.schemas.transactions import TransactionStatus
from tapgate_client.schemas.webhooks import WebhookEndpointRecord

_FRENCH: Final = get_translator(Language.FR)
_API_CATALOG: Final = "api.toml"
_EVENT_CATALOG: Final = "events.toml"
_SUMMARY_CATALOG: Final = "summaries.toml"
_STATE_CATALOG: Final = "states.toml"
_NAME_CATALOG: Final = "names.toml"
#: Catalogs with API texts, which are tested separately.
_OTHER: Final = {_API_CATALOG, _EVENT_CATALOG, _NAME_CATALOG, _STATE_CATALOG, _SUMMARY_CATALOG}
_PLACEHOLDER: Final = re.compile(r"{\w*}")
#: Words in the English interface that a French page does not contain.
_ENGLISH_WORDS: Final = re.compile(
    r"\b(the|and|with|your|customers?|cards|merchants?|amount|balance|settings|search|created|edit"
    r"|this|status:|limits|fees|none|never|yet|all|from|nothing)\b",
    re.IGNORECASE,
)
_TABS: Final = (approvals.TABS, compliance.TABS, disputes.TABS, float_requests.TABS, support.TABS)
_PAGES: Final = (
    "/console", "/console/work", "/console/reports", "/console/subscribers", "/console/cards",
    "/console/keysets",
    "/console/cards/upload", "/console/transactions", "/console/agents",
    "/console/agents/liquidity", "/console/processors", "/console/partners", "/console/ledger",
    "/console/compliance", "/console/compliance/rules", "/console/kyc", "/console/approvals",
    "/console/approvals/rules", "/console/support", "/console/saved-replies",
    "/console/disputes", "/console/float-requests",
    "/console/limits", "/console/webhooks",
    "/console/api-keys", "/console/request-logs", "/console/administrators", "/console/audit",
    "/console/nodes", "/console/settings", "/console/account", "/console/search",
)  # fmt: skip


def test_every_text_has_a_translation_and_every_translation_is_used() -> None:
    templates = list_template_texts()
    texts = list_action_texts() | list_module_texts() | list_labels() | list_script_texts()
    texts |= templates.keys()
    own = {f"{name}: {text}" for text, names in templates.items() for name in names}
    own |= {f"label: {label}" for label in list_labels()}
    translated = {
        key for name, catalog in _FRENCH.catalogs.items() if name not in _OTHER for key in catalog
    }
    assert sorted(texts - translated) == [], "without a translation"
    assert sorted(translated - texts - own) == [], "not used"


def test_no_text_in_an_expression_of_a_template_is_overlooked() -> None:
    """A text in a place that the translation does not know would stay English."""
    environment = build_environment("tapgate_sandbox.simulators", "tapgate.sites.console")
    found = " ".join(list_template_texts())
    overlooked = {
        constant.value
        for name in environment.list_templates()
        for constant in parse_template(environment, name).find_all(nodes.Const)
        if isinstance(constant.value, str)
        and re.match(r"[A-Z][a-z']+ ", constant.value)
        and " ".join(constant.value.split()) not in found
    }
    assert overlooked == set()


def test_every_translation_of_an_api_message_is_used() -> None:
    messages = {_normalize(text) for text in _list_strings()}
    messages |= {_normalize(text) for _, text in TABLE.values()}
    unused = [
        key
        for key in _FRENCH.catalogs[_API_CATALOG]
        if not {_normalize(key), _normalize(key).removesuffix(" {}")} & messages
        # composed from two parts, or from a type
        and not key.startswith(("Exceeds the threshold", "must be a "))
    ]
    assert unused == []


def test_states_agree_with_feminine_nouns() -> None:
    """Fails for a status for a feminine noun whose label is masculine only."""
    states = {
        "alert": AlertStatus,
        "approval": ApprovalStatus,
        "card": CardStatus,
        "dispute": DisputeStatus,
        "float_request": FloatRequestStatus,
        "rule": RuleStatus,
        "support_request": SupportRequestStatus,
        "transaction": TransactionStatus,
    }
    masculine = ("é", "é en partie", "if", "u", "ert", "it")
    used = set()
    for noun, statuses in states.items():
        for status in statuses:
            label = _FRENCH.translate_state(status, noun)
            assert not label.endswith(masculine) or label == "Faux positif", (noun, label)
            used.add(f"feminine: {get_state_label(status, noun)}")
    reasons = {"feminine: Damaged", "feminine: Stolen"}  # of blocked cards
    nouns = {f"gender: {noun}" for noun in (*states, "key")}
    tabs = {f"tab: {label}" for tabs in _TABS for label in tabs.values()}
    assert _FRENCH.catalogs[_STATE_CATALOG].keys() <= used | reasons | nouns | tabs
    assert _FRENCH.translate_state("ACTIVE", "subscriber") == "Actif"
    assert get_translator(Language.EN).translate_state("failed", "transaction") == "Declined"


def test_reasons_are_labels_or_texts_of_staff() -> None:
    english = get_translator(Language.EN)
    reasons = ("lost", "customer_request", "INVALID_PIN", "Lost phone", "lost it")
    assert [english.translate_reason(reason) for reason in reasons] == [
        "Lost", "Customer request", "Invalid PIN", "Lost phone", "lost it",
    ]  # fmt: skip
    assert _FRENCH.translate_reason("lost") == "Perdue"
    assert _FRENCH.translate_reason("INVALID_PIN") == _FRENCH.translate("Invalid PIN")


async def test_every_built_in_name_has_a_translation(harness: Harness) -> None:
    rows = await harness.database.fetch(
        """SELECT name FROM compliance_rules UNION SELECT name FROM gl_codes
           UNION SELECT label FROM saved_replies"""
    )
    names = {f"name: {row['name']}" for row in rows}
    assert names == _FRENCH.catalogs[_NAME_CATALOG].keys()


def test_every_audit_event_is_suggested_and_has_a_translation() -> None:
    terms = _FRENCH.catalogs[_EVENT_CATALOG]
    resources, actions = list_audit_terms()
    assert len(resources) > 20 and len(actions) > 60
    assert sorted(name for name in resources if f"resource: {name}" not in terms) == []
    assert sorted(name for name in actions if f"action: {name}" not in terms) == []
    suggested = {tuple(event.split(".")) for event in AUDIT_EVENTS}
    assert resources - {"endpoint"} <= {resource for resource, _ in suggested}
    assert actions <= {action for _, action in suggested}
    assert {f"resource: {resource}" for resource, _ in suggested} <= set(terms)
    assert {f"action: {action}" for _, action in suggested} <= set(terms)
    assert resources - {"access"} <= set(RESOURCE_TYPES)
    assert set(RESOURCE_TYPES) <= {name.removeprefix("resource: ") for name in terms}


def test_every_field_of_the_audit_log_has_a_translation() -> None:
    names = {
        name
        for record in (
            AccountRuleRecord, Admin, AgentRecord, AlertRecord, ApiKeyRecord, ApprovalRule,
            BrandingRecord, CardRecord, CommissionRule, FeeRule, GlCode, KeysetRecord,
            PartnerRecord, ProcessorRecord, RuleRecord, SavedReplyRecord,
            SubscriberRecord, TerminalRecord,
            WebhookEndpointRecord,
        )
        for name in record.__struct_fields__
    }  # fmt: skip
    same = {name for name in names if _FRENCH.translate_field(name) == humanize(name)}
    assert same <= {
        "action", "code", "description", "maximum", "messages", "minimum", "occurrences",
        "parent_agent_id", "type", "url", "version",
    }  # fmt: skip


def test_every_summary_of_an_approval_has_a_translation() -> None:
    """A summary that begins with a value, such as a verb, has a translation for each verb."""
    known = {_PLACEHOLDER.sub("{}", key) for key in _FRENCH.catalogs[_SUMMARY_CATALOG]}
    summaries = list_approval_summaries()
    assert len(summaries) > 15
    for summary in summaries:
        ending = summary.removeprefix("{}")
        assert any(key.endswith(ending) and key.count("{}") >= ending.count("{}") for key in known)
        assert ending != summary or summary in known, summary


@pytest.mark.parametrize(
    "summary, translation",
    [
        (
            "Fund agent Kargbo with 500.00 SLE",
            "Approvisionner l'agent Kargbo de 500,00\N{NO-BREAK SPACE}SLE",
        ),
        (
            "Transfer 5.00 SLE from merchant A to B to a customer",
            "Transférer 5,00\N{NO-BREAK SPACE}SLE du marchand A to B à un client",
        ),
        (
            "Rotate API key Shop, by API key Robot",
            "Renouveler la clé API Shop, par la clé API Robot",
        ),
        ("Something else", "Something else"),
    ],
)
def test_summary_of_an_approval_is_translated(summary: str, translation: str) -> None:
    assert _FRENCH.translate_summary(summary) == translation
    assert get_translator(Language.EN).translate_summary(summary) == summary


def test_audit_event_is_translated() -> None:
    assert _FRENCH.translate_event("card.blocked") == "Carte\u00a0: blocage"
    assert _FRENCH.translate_event("card.invented") == "Card invented"
    assert get_translator(Language.EN).translate_event("card.blocked") == "Card blocked"


async def test_audit_log_and_approvals_are_in_french(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    await set_rules(harness, build_rule("agent_fund"))
    agent, maker = await create_agent(harness), await harness.create_admin("F")
    funding = await harness.post(
        f"{AGENTS_URL}/{agent['id']}/fund", json={"amount": "500"}, auth=maker
    )
    approval = require_held(funding)
    ada = await console_clients.create_signed_in("A")
    await _choose(ada, "fr")
    inbox = html.unescape(await ada.get_page_text("/console/approvals"))
    assert "Approvisionner l'agent" in inbox and "Fund agent" not in inbox
    page = html.unescape(await ada.get_page_text(f"/console/approvals/{approval['id']}"))
    assert "Approvisionner l'agent" in page and "Demande d'approbation\u00a0: création" in page
    log = html.unescape(await ada.get_page_text("/console/audit"))
    assert "Demande d'approbation\u00a0: création" in log and "Approval created" not in log


def _list_strings() -> set[str]:
    """Return the strings of all modules, with {} for the values in them."""
    strings = set()
    packages = (
        Path(package.__file__).parent for package in (tapgate, tapgate_client, tapgate_sandbox)
    )
    for file in chain.from_iterable(folder.rglob("*.py") for folder in packages):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
                )
                strings.add("".join(map(str, parts)))
    return strings


def _normalize(text: str) -> str:
    return _PLACEHOLDER.sub("{}", use_console_terms(text))


def test_every_error_code_has_a_text() -> None:
    for code in Code:
        text = _FRENCH.translate_error(ApiError(code))
        assert text != use_console_terms(TABLE[code][1]), code


def test_translations_have_the_placeholders_of_their_texts() -> None:
    for name, catalog in _FRENCH.catalogs.items():
        for key, text in catalog.items():
            found = set(re.findall(r"{\w+}", text))
            expected = set(re.findall(r"{\w+}", key))
            # A value's message may be shorter than the API's message.
            is_valid = found <= expected if name == _API_CATALOG else found == expected
            assert is_valid, key


def test_a_text_has_one_translation() -> None:
    keys = Counter(key for catalog in _FRENCH.catalogs.values() for key in catalog)
    assert [key for key, count in keys.items() if count > 1] == []


def test_catalogs_are_valid_toml() -> None:
    for file in (Path(translator_module.__file__).parent / "fr").glob("*.toml"):
        texts = tomllib.loads(file.read_text())
        assert texts.keys() == _FRENCH.catalogs[file.name].keys(), file.name


def test_spaces_before_high_punctuation_do_not_break() -> None:
    assert _FRENCH.translate("Delete this key?") == "Supprimer cette clé\u00a0?"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>Name</p>", '<p>&lt;b&gt; &amp; "</p>'.replace('"', "&quot;")),
        ('<p title="Name">', '<p title="&lt;b&gt; &amp; &quot;">'),
        ('<p class="Name">', '<p class="Name">'),
        ("<code>Name</code>", "<code>Name</code>"),
        ("{{ 'Name' }}", "&lt;b&gt; &amp; &#34;"),
        ("{{ _('Name') }}", "&lt;b&gt; &amp; &#34;"),
        ("<p>{% if true %}Name{% endif %}</p>", "<p>&lt;b&gt; &amp; &quot;</p>"),
        (
            "<p{% if true %} title='x'{% endif %}>Name</p>",
            "<p title='x'>&lt;b&gt; &amp; &quot;</p>",
        ),
        ("<p>{{ a.b }} of {{ c | upper }}</p>", "<p>&lt;C&gt; / &lt;b&gt;</p>"),
        ("{{ 'Back to ' ~ c }}", "&lt;- &lt;c&gt;"),
    ],
)
def test_translations_and_values_are_escaped(source: str, expected: str) -> None:
    texts = {"Name": '<b> & "', "{b} of {c}": "{c} / {b}", "Back to {c}": "<- {c}"}
    translator = Translator(Language.FR, {"test.toml": texts})
    environment = TranslatingEnvironment(autoescape=True)
    environment.translate = translator.translate
    environment.macros = {}
    environment.globals["_"] = translator.translate
    rendered = environment.from_string(source).render(a={"b": "<b>"}, c="<c>")
    assert rendered == expected


def test_scanner_distinguishes_texts_from_tags() -> None:
    runs = list(HtmlScanner().split(['<a href="x" title="Open">Go</a>']))
    assert [run.pieces for run in runs if run.is_text] == [["Open"], ["Go"]]


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "en"),
        ("fr-CI,fr;q=0.9,en;q=0.8", "fr"),
        ("en-GB,en;q=0.9,fr;q=0.8", "en"),
        ("de,fr;q=0.2", "fr"),
        ("fr;q=0", "en"),
        ("fr;q=x,;;=,", "en"),
    ],
)
def test_language_is_negotiated(header: str | None, language: str) -> None:
    assert negotiate(header) == language


def test_both_languages_have_the_same_templates() -> None:
    """Every template compiles in French too."""
    environment = build_console().templates[Language.FR]
    for name in environment.list_templates():
        environment.get_template(name)


async def test_sign_in_page_has_the_language_of_the_browser(
    signed_out_client: ConsoleClient,
) -> None:
    page = await signed_out_client.get("/console/sign-in", **{"Accept-Language": "fr"})
    assert '<html lang="fr"' in page.text and "Se connecter" in page.text
    page = await signed_out_client.get("/console/sign-in")
    assert '<html lang="en"' in page.text and "Sign in" in page.text


async def test_preference_takes_precedence_over_the_browser(ada: ConsoleClient) -> None:
    await _choose(ada, "fr")
    page = await ada.get("/console/subscribers")
    assert '<html lang="fr"' in page.text and "Clients" in page.text
    assert '"X-Language": "fr"' in page.text and "/console/texts/fr.js" in page.text
    missing = await ada.get("/console/subscribers/none")
    assert missing.status_code == 404 and "introuvable" in missing.text
    await _choose(ada, "en")
    page = await ada.get("/console/subscribers", **{"Accept-Language": "fr"})
    assert '<html lang="en"' in page.text and "X-Language" not in page.text


async def test_dialog_has_the_language_of_its_page(ada: ConsoleClient) -> None:
    path = "/console/actions/subscriber.register"
    headers = {"HX-Request": "true", "X-Language": "fr"}
    assert "Ajouter un client" in (await ada.get(path, **headers)).text
    assert "Add customer" in (await ada.get(path, **{"HX-Request": "true"})).text
    headers["X-Language"] = "../en"
    assert "Add customer" in (await ada.get(path, **headers)).text


async def test_script_texts_are_served(signed_out_client: ConsoleClient) -> None:
    script = await signed_out_client.get("/console/texts/fr.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "Colonnes" in script.text
    assert (await signed_out_client.get("/console/texts/de.js")).status_code == 404


async def test_french_pages_contain_no_english_words(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    client = await console_clients.create_signed_in("A")
    await _choose(client, "fr")
    found = {}
    for path in _PAGES:
        page = await client.get(path)
        assert page.status_code == 200, path
        text = _extract_text(page.text).replace("Balance générale", "")
        words = set(_ENGLISH_WORDS.findall(text))
        if words:
            found[path] = words
    assert found == {}


async def _choose(client: ConsoleClient, language: str) -> None:
    await client.submit_action("account.preferences", {"language": language})


def _extract_text(page: str) -> str:
    """Return what people read, without names, code, node settings and texts marked as English."""
    body = re.sub(r"<(code|pre|kbd|style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    body = re.sub(r'<(\w+)[^>]* lang="en">.*?</\1>', " ", body, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", body))


@pytest.mark.parametrize(
    "summary, shown",
    [
        ("Change the fee rules of agent_cashout", "Change the fee rules of Cash-out"),
        (
            "Create admin Bo as finance_user, by API key K",
            "Create admin Bo as Finance, by API key K",
        ),
        ("Pay out 5.00 SLE to processor Shop", "Pay out 5.00 SLE to Merchant Shop"),
        (
            "Pay out 5.00 SLE to the account of processor Shop that ends in 0012",
            "Pay out 5.00 SLE to the account of Merchant Shop that ends in 0012",
        ),
        (
            "Return payout PO1 of 5.00 SLE to processor Shop",
            "Return payout PO1 of 5.00 SLE to Merchant Shop",
        ),
    ],
)
def test_summary_has_labels_instead_of_names_of_the_api(summary: str, shown: str) -> None:
    english = get_translator(Language.EN).translate_summary(summary)
    assert english == shown
    assert "_" not in _FRENCH.translate_summary(summary)
