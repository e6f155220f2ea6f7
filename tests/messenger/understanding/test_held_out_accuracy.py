"""Resolver accuracy on held-out texts in the style of real users.

The texts measure how well the resolver generalizes, so they must not be added to its phrases.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

import pytest

from cases import each
from tapgate.messenger.model import COMMANDS, Command, Intent, Language
from tapgate.messenger.understanding.resolver import resolve

Sample = tuple[str, Command | None]

ENGLISH: Final[tuple[Sample, ...]] = (
    ("i wan send money to my mama", "send"),
    ("pls transfer 200 to 076 112 233", "send"),
    ("how cn i pay sumone frm here", "send"),
    ("snd 50 leones 2 fatu", "send"),
    ("can u help me put cash for my broda in bo", "send"),
    ("i need to give mohamed 150 le", "send"),
    ("pay my landlord pls", "send"),
    ("abeg transfa am 500 now now", "send"),
    ("I'd like to wire something to my sister's number", "send"),
    # These mention money, sending or yes, but ask for something else or for nothing.
    ("did you send it", None),
    ("yesterday i got nothing", None),
    ("thank u i see the money", None),
    ("dont send anything", "cancel"),
    ("how much can i send in one day", "limits"),
    ("show me who i sent money to dis week", "history"),
    # The other commands.
    ("go back to the main manu", "menu"),
    ("how much remain for my acct", "balance"),
    ("i need a paper of my account for the bank, last month", "statement"),
    ("which cards i get for this wallet", "cards"),
    ("i buy new card i want add it to my acount", "link"),
    ("somebdy tief my card stop it now", "block"),
    ("i don find the card i lost, open it back", "unblock"),
    ("i want another secret number, my friend know the old one", "change_pin"),
    ("where do i upload my id card", "kyc"),
    ("can we speak french instead", "language"),
    ("let me talk to a human being", "person"),
    ("am new here how do i open wallet", "register"),
    ("yh go ahead", "yes"),
    ("nah pls", "no"),
    ("good morning my boss how di body", None),
)

FRENCH: Final[tuple[Sample, ...]] = (
    ("jveux envoyer de largent a ma mère", "send"),
    ("comment je fais pour payer qqn", "send"),
    ("stp transfere 200 a 076334455", "send"),
    ("je doi donner 50 a mon frere", "send"),
    ("envoi 100 leones à Fatou", "send"),
    ("fais moi un depot de 300 chez Aïcha", "send"),
    ("bjr je veu faire un transfer", "send"),
    ("on peut virer des sous à un ami ici ?", "send"),
    ("g besoin de faire parvenir un peu d'argent au village", "send"),
    # These mention money, sending or yes, but ask for something else or for nothing.
    ("jai pas reçu l'argent", "not_arrived"),
    ("tu as deja envoyé ?", None),
    ("oui mais hier yavait rien", None),
    ("n'envoie rien stp", "cancel"),
    ("c combien le max que je peux envoyer par jour", "limits"),
    ("a qui jai envoyé largent la semaine passée", "history"),
    # The other commands.
    ("aide moi stp je sais pas comment ca marche", "help"),
    ("il me reste cb sur mon compte", "balance"),
    ("je veux un relevé pour le mois de mars", "statement"),
    ("jai combien de cartes chez vous", "cards"),
    ("g une nouvelle carte a ajouté", "link"),
    ("on ma volé ma carte faut la bloqué vite", "block"),
    ("jai retrouvé ma carte tu peux la remettre en marche", "unblock"),
    ("je veux un autre code secret", "change_pin"),
    ("ou je peux envoyer la photo de ma piece d'identité", "kyc"),
    ("parle moi en anglais stp", "language"),
    ("je veu parler a qqn du service client", "person"),
    ("je nai pas encore de compte je veux minscrire", "register"),
    ("wé c bon vas y", "yes"),
    ("nn pas ça", "no"),
    ("slt cv la famille ?", None),
)

#: Texts for the commands that were added after the other texts.
LATER_ENGLISH: Final[tuple[Sample, ...]] = (
    ("i get cash for hand i want am inside my wallet", "add_money"),
    ("how will i collect my money in hand", "withdraw"),
    ("any tapgate shop for lumley side", "nearest_agent"),
    ("if i send 200 how much you go remove", "fees"),
    ("the shop machine say no to my card why", "declined"),
    ("the money go to another man by mistake", "wrong_recipient"),
    ("ok i will return that money to the person", "return_money"),
    ("i want hold the money he asks for", "keep_money"),
    ("i never bought this thing with my card", "dispute"),
    ("how do i prove to the landlord that this payment happened", "proof"),
    ("na not me change that phone number", "not_me"),
    ("please no more messages from una", "opt_out"),
    ("send me the messages again", "opt_in"),
    ("wat time una de close on friday", "contact"),
    ("my pin don comot for my head", "reset_pin"),
    ("my sister waits for the cash i sent, nothing there", "not_arrived"),
    ("the shop man says tell me your pin so i type it for you", "pin_safety"),
    ("got new simcard how to keep my wallet", "change_number"),
    ("put 10 leones credit on my phone", "airtime"),
    ("can this pay my electric", "bills"),
    ("i need to borrow small money", "loans"),
    ("confirm the cash-out", "confirm_cash_out"),
    ("agent mode", "agent_menu"),
    ("my personal wallet", "own_wallet"),
    ("show my float", "float"),
    ("customer cash in please", "cash_in"),
    ("customer cash out please", "cash_out"),
    ("please pay out commission", "commission"),
    ("please request float", "request_float"),
    ("show my float requests", "float_requests"),
)

LATER_FRENCH: Final[tuple[Sample, ...]] = (
    ("jai du cash je veux le mettre dessus", "add_money"),
    ("comment je recupere mes sous en liquide", "withdraw"),
    ("ya un point de retrait vers lumley ?", "nearest_agent"),
    ("vous prenez combien quand jenvoie 200", "fees"),
    ("la machine du magasin a dit non pourquoi", "declined"),
    ("g envoyé au mauvais gars", "wrong_recipient"),
    ("vous fermez a quel heure vendredi", "contact"),
    ("mon code mest sorti de la tete", "reset_pin"),
)

Samples = dict[Language, tuple[Sample, ...]]
SAMPLES: Final[Samples] = {"en": ENGLISH, "fr": FRENCH}
LATER_SAMPLES: Final[Samples] = {"en": LATER_ENGLISH, "fr": LATER_FRENCH}

Outcome = Literal["right", "asked", "nothing", "wrong"]
#: Commands that can lead to a movement of money.
MONEY_COMMANDS: frozenset[Command] = frozenset({"send", "yes"})


def test_held_out_samples_are_unique_and_cover_every_command() -> None:
    samples = [ENGLISH, FRENCH, LATER_ENGLISH, LATER_FRENCH]
    # A new command adds texts.
    assert all(len(group) >= size for group, size in zip(samples, (30, 30, 8, 8), strict=True))
    texts = [text for group in samples for text, _ in group]
    assert len(set(texts)) == len(texts)
    assert {command for group in samples for _, command in group} == {*COMMANDS, None}


@pytest.mark.parametrize("language_known", [True, False])
@each("samples, max_wrong", [(SAMPLES, 6), (LATER_SAMPLES, 2)])
def test_few_held_out_texts_are_misunderstood_and_none_moves_money(
    samples: Samples,
    max_wrong: int,
    language_known: bool,
    record_property: Callable[[str, object], None],
) -> None:
    outcomes: Counter[Outcome] = Counter()
    money_by_mistake: list[str] = []
    for language, texts in samples.items():
        for text, expected in texts:
            intent = resolve(text, language if language_known else None)
            outcomes[classify_outcome(intent, expected)] += 1
            if intent.command in MONEY_COMMANDS and intent.command != expected:
                money_by_mistake.append(text)
    condition = "with the language known" if language_known else "with the language not known"
    counts = ", ".join(
        f"{outcomes[outcome]} {outcome}" for outcome in ("right", "asked", "nothing", "wrong")
    )
    record_property(
        "figure",
        f"Of {outcomes.total()} held-out texts, {condition}: {counts}; "
        f"wrong money actions: {len(money_by_mistake)}",
    )
    assert not money_by_mistake
    assert outcomes["wrong"] <= max_wrong


def classify_outcome(intent: Intent, expected: Command | None) -> Outcome:
    """Classify an intent; an unneeded question counts as `asked`, since it starts nothing."""
    if intent.command is not None:
        return "right" if intent.command == expected else "wrong"
    if expected is None:
        return "asked" if intent.candidates else "right"
    return "asked" if expected in intent.candidates else "nothing"
