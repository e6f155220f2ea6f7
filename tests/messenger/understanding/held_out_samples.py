"""Held-out texts in the style of real users, each with its expected command.

They measure how well the resolver generalizes, so they must not be added to its phrases.
"""

from typing import Final

from tapgate.messenger.model.common import Command, Language

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
    ("jai pas reçu l'argent", None),
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

SAMPLES: Final[dict[Language, tuple[Sample, ...]]] = {"en": ENGLISH, "fr": FRENCH}
