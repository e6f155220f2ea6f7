"""French message catalog. It has the same keys and placeholders as the English one."""

from typing import Final

TEXTS: Final = {
    # Commands
    "title.menu": "Menu",
    "about.menu": "Tout ce que vous pouvez faire ici",
    "title.help": "Aide",
    "about.help": "Comment marche cette discussion",
    "title.balance": "Solde",
    "about.balance": "Combien il y a dans votre portefeuille",
    "title.send": "Envoyer de l'argent",
    "about.send": "À une carte ou à un numéro de téléphone",
    "title.history": "Historique",
    "about.history": "Vos dernières transactions",
    "title.statement": "Relevé",
    "about.statement": "Un PDF pour un mois ou plus",
    "title.cards": "Mes cartes",
    "about.cards": "Vos cartes et leur état",
    "title.link": "Ajouter une carte",
    "about.link": "Relier une carte à votre portefeuille",
    "title.block": "Bloquer une carte",
    "about.block": "Perdue, volée, abîmée ou pour un temps",
    "title.unblock": "Débloquer une carte",
    "about.unblock": "Remettre en service une carte bloquée",
    "title.change_pin": "Changer de PIN",
    "about.change_pin": "Choisir un nouveau code PIN",
    "title.kyc": "Vérifier l'identité",
    "about.kyc": "Envoyer des photos de vos documents",
    "title.limits": "Mes plafonds",
    "about.limits": "Combien vous pouvez envoyer et détenir",
    "title.language": "Langue",
    "about.language": "Anglais ou français",
    "title.person": "Parler à quelqu'un",
    "about.person": "Notre équipe vous contactera",
    "title.register": "S'inscrire",
    "about.register": "Ouvrir un portefeuille avec ce numéro",
    # Navigation
    "slow_down": "C'était beaucoup à la fois. Attendez {seconds} secondes et réécrivez.",
    "choose": "Choisir",
    "more": "Plus",
    "again": "Réessayer",
    "menu": "Bonjour ! 👋 Que souhaitez-vous faire ?",
    "menu.named": "Bonjour {name} ! 👋 Que souhaitez-vous faire ?",
    "what_next": "Envoyez *menu* pour voir ce que vous pouvez faire ici, ou *aide*.",
    "did_you_mean": "Vouliez-vous dire l'un de ceux-ci ?",
    "help": (
        "Je peux montrer votre solde et votre historique, envoyer de l'argent, m'occuper de vos "
        "cartes et plus encore.\n\n"
        "Choisissez dans le *menu*, ou écrivez simplement, par exemple :\n"
        "• solde\n• envoyer 500 à 076123456\n• bloquer ma carte\n\n"
        "*annuler* arrête ce qui est en cours. Ne dites votre PIN à personne : donnez-le "
        "seulement quand je le demande."
    ),
    "not_understood": "Désolé, je n'ai pas compris. Voici ce qui peut aider :",
    "not_understood.kind": "Je ne lis ici que du texte et des photos de documents.",
    "not_on_the_list": "Ce numéro n'est pas dans la liste.",
    "hello_again": "Bonjour ! 👋 Nous étions au milieu de quelque chose :",
    "thanks": "Avec plaisir ! 😊",
    "farewell": "Très bien ! Je suis là quand vous voulez. 👋",
    "fees": (
        "Les frais dépendent du montant. Je les montre avec le total avant que vous confirmiez, "
        "et rien n'est envoyé sans votre oui."
    ),
    "expired": "Ce bouton a expiré.",
    "late": "Cela m'est arrivé en retard, je préfère donc redemander.",
    "nothing_pending": "Rien n'attend votre réponse. Rien n'a été fait.",
    "cancelled": "D'accord, j'ai annulé : *{what}*.",
    "lapsed": (
        "Je n'ai plus eu de vos nouvelles, j'ai donc annulé ce qui était en cours. Si vous aviez "
        "déjà donné votre PIN, merci de regarder votre *historique*."
    ),
    "lapsed.pin": (
        "Cela a pris trop de temps, j'ai donc annulé ce qui était en cours. N'envoyez pas votre "
        "PIN maintenant et effacez ce message. Vous pouvez simplement recommencer."
    ),
    "withheld": (
        "Je n'ai pas gardé votre dernier message, car il contenait peut-être un PIN. Merci de "
        "le renvoyer."
    ),
    "unreachable": (
        "Je n'arrive pas à joindre le service de paiement. Rien n'est perdu : merci de réessayer "
        "dans un instant."
    ),
    "number_changed": (
        "Ce numéro de téléphone a changé. Pour protéger le portefeuille, je demanderai le PIN "
        "avant de montrer quoi que ce soit."
    ),
    # Answers that were not understood
    "unread.choice": "Merci de choisir l'une de ces réponses.",
    "unread.confirm": "Merci de répondre par *oui* ou par *non*.",
    "unread.pin": "Votre PIN a exactement 4 chiffres. Vous pouvez aussi envoyer *annuler*.",
    "unread.both_pins": (
        "Il me faut les deux PIN dans un seul message : d'abord l'ancien, puis le nouveau."
    ),
    "unread.phone": "Cela ne ressemble pas à un numéro de téléphone.",
    "unread.code": "Le code a 6 chiffres.",
    "unread.recipient": "Il me faut un numéro de carte ou de téléphone.",
    "unread.amount": (
        "Merci d'envoyer le montant en chiffres, en {currency}, par exemple 500 ou 250,50."
    ),
    "unread.serial": "Cela ne ressemble pas à un numéro de carte. Il est imprimé sur la carte.",
    "unread.card": "Ce n'est pas l'une de ces cartes.",
    "unread.names": "Merci d'envoyer votre prénom et votre nom, par exemple : Aminata Kamara",
    "unread.period": "Je n'ai pas pu lire cette période.",
    "unread.picture": "J'attends une photo. Envoyez *annuler* pour arrêter.",
    # Confirmation
    "confirm.yes": "Oui",
    "confirm.no": "Non",
    # PINs
    "pin.button": "Saisir le PIN",
    "pin.text.pin": "Merci d'envoyer votre PIN à 4 chiffres, ou *annuler*.",
    "pin.text.new_pin": "Merci d'envoyer le PIN à 4 chiffres que vous voulez, ou *annuler*.",
    "pin.text.change_pin": (
        "Merci d'envoyer votre ancien PIN et le nouveau dans un seul message, séparés par une "
        "espace, ou *annuler*."
    ),
    "pin.nowhere": (
        "Il faut votre PIN pour cela, et il ne peut pas être donné en sécurité dans cette "
        "discussion. Merci d'utiliser l'application ou de demander à notre équipe."
    ),
    "pin.not_as_text": (
        "Merci de ne pas écrire votre PIN dans la discussion. Je ne l'ai pas utilisé ; mieux vaut "
        "effacer ce message. Utilisez le formulaire."
    ),
    "pin.unasked": (
        "Cela ressemble à un PIN, et je n'en ai pas demandé. Merci de ne jamais envoyer votre PIN "
        "sans qu'on le demande. Je ne l'ai pas gardé ; mieux vaut effacer ce message."
    ),
    "pin.wrong": "Ce PIN n'est pas le bon. Essais restants : {left}.",
    "pin.weak": "Ce PIN est trop facile à deviner. Merci d'en choisir un autre.",
    "pin.locked_now": (
        "Ce PIN n'est pas le bon, et c'était le dernier essai. Votre PIN est bloqué pendant "
        "30 minutes, afin de protéger votre argent."
    ),
    "pin.locked_until": ("Votre PIN est bloqué jusqu'au *{until}* après trop d'essais."),
    "pin.forgotten": (
        "Je ne peux ni montrer ni remettre un PIN ici : pour votre sécurité, seule notre équipe "
        "le fait, après avoir vérifié que c'est bien vous. Dois-je lui demander de vous contacter ?"
    ),
    "form.expired": "Ce formulaire n'est plus valable. Rien n'en a été fait.",
    "form.closed": "Je n'ai pas encore reçu votre PIN.",
    # Identification
    "not_registered": (
        "Il n'y a pas encore de portefeuille avec ce numéro. Voulez-vous en ouvrir un ?"
    ),
    "not_active": (
        "Votre portefeuille n'est pas actif en ce moment, je ne peux donc pas le faire. Notre "
        "équipe peut vous en dire plus."
    ),
    "trust.ask": "Pour être sûr que c'est bien vous, il me faut votre PIN une fois.",
    "phone.ask": (
        "Je ne vois pas votre numéro. Avec quel numéro votre portefeuille est-il enregistré ? "
        "Merci de l'envoyer avec l'indicatif du pays, par exemple +23276123456."
    ),
    "code.ask": "J'ai envoyé un code à 6 chiffres à ce téléphone. Merci de me l'envoyer.",
    "code.again": "Un nouveau code",
    "code.other_phone": "Autre numéro",
    "code.wrong": "Ce code n'est pas le bon.",
    "code.right": "Merci, votre numéro est confirmé. ✅",
    "code.used_up": "Ce code n'est plus valable. Recommençons.",
    # Wallet
    "balance": "Vous avez *{available}*.",
    "balance.held": "Vous disposez de *{available}*.\n\nEn tout : {balance}\nRéservé : {held}",
    "history": "Vos dernières transactions :",
    "history.none": "Il n'y a pas encore de transactions.",
    "kind.other": "Transaction",
    "kind.transfer_p2p": "Transfert",
    "kind.transfer": "Transfert",
    "kind.pos_payment": "Paiement",
    "kind.online_payment": "Paiement",
    "kind.refund": "Remboursement",
    "kind.agent_cashin": "Dépôt",
    "kind.agent_cashout": "Retrait",
    "kind.partner_fund": "Recharge",
    "status.partially_refunded": "remboursée en partie",
    "status.under_review": "en cours d'examen",
    "status.failed": "échouée",
    "status.refunded": "remboursée",
    "limits": (
        "Vos plafonds (niveau {level}) :\n"
        "• Une transaction : *{max_transaction}*\n"
        "• Par jour : *{daily_limit}*\n"
        "• Par mois : *{monthly_limit}*\n"
        "• Dans le portefeuille : *{max_balance}*"
    ),
    "limits.raise": "Vérifiez votre identité pour les relever.",
    "statement.period": (
        "Quelle période pour le relevé ? Vous pouvez aussi l'écrire, par exemple : mars 2026"
    ),
    "period.this_month": "Ce mois-ci",
    "period.last_month": "Le mois dernier",
    "period.last_90": "90 derniers jours",
    "statement.file": "Votre relevé, du {first} au {last}.",
    "statement.link": (
        "Votre relevé, du {first} au {last} :\n{link}\n\nLe lien marche jusqu'au {until}. "
        "Quiconque l'a peut ouvrir le relevé, gardez-le donc pour vous."
    ),
    # Sending money
    "send.to": (
        "Qui doit recevoir l'argent ? Choisissez, ou envoyez un numéro de carte ou de téléphone."
    ),
    "send.to_new": ("Qui doit recevoir l'argent ? Envoyez-moi un numéro de carte ou de téléphone."),
    "send.to_unknown": (
        "Je ne connais pas encore « {name} ». Envoyez-moi son numéro de carte ou de téléphone."
    ),
    "send.to_self": (
        "C'est votre propre portefeuille. On ne peut envoyer de l'argent qu'à quelqu'un d'autre."
    ),
    "send.no_card": (
        "{name} n'a pas de carte active, et l'argent est envoyé à une carte. Demandez-lui d'en "
        "ajouter une."
    ),
    "send.nobody.card": "Je ne connais pas de carte avec ce numéro.",
    "send.nobody.phone": "Personne n'est inscrit avec ce numéro de téléphone.",
    "send.recipient_gone": (
        "Cette carte n'est plus utilisée, je l'ai donc retirée de votre liste. Demandez la "
        "nouvelle."
    ),
    "send.amount": "Quel montant pour {name} ?",
    "send.other_amount": "Quel montant voulez-vous envoyer à la place ?",
    "send.would_cost": "{amount} et {fee} de frais font *{total}*.",
    "send.take_back": (
        "Un paiement effectué ne peut pas être repris dans cette discussion. Dois-je demander à "
        "notre équipe de vous contacter ?"
    ),
    "send.confirm": (
        "Merci de vérifier :\n\nÀ : *{name}*\nCarte : {card}\nMontant : *{amount}*\n"
        "Frais : {fee}\nTotal : *{total}*\n\nDois-je l'envoyer ?"
    ),
    "send.pin": "Votre PIN, pour envoyer *{amount}* à *{name}* (total {total}).",
    "send.completed": (
        "C'est fait ! ✅ {name} a reçu *{amount}*.\n\nFrais : {fee}\nVotre nouveau solde : "
        "*{balance}*\nTransaction : {transaction}"
    ),
    "send.under_review": (
        "Votre paiement de *{amount}* à {name} est *en cours d'examen*. L'argent est mis de côté "
        "pendant la vérification, et nous vous tiendrons au courant.\n\nFrais : {fee}\n"
        "Votre solde : *{balance}*\nTransaction : {transaction}"
    ),
    "send.refused": "{why}\n\nAucun argent n'a été envoyé.",
    "send.uncertain": (
        "Je n'ai pas eu de réponse et ne sais pas encore si l'argent est parti. Merci de redonner "
        "votre PIN : cela *ne peut pas être payé deux fois*."
    ),
    "send.left_uncertain": (
        "Je ne demande plus rien, mais *le paiement est peut-être passé*. Merci de regarder votre "
        "historique avant de recommencer."
    ),
    "send.keep": "Garder le contact",
    "send.kept": "{name} est maintenant parmi vos contacts.",
    # Cards
    "cards": "Vos cartes :",
    "cards.none": "Aucune carte n'est encore reliée à votre portefeuille.",
    "card.ACTIVE": "active",
    "card.BLOCKED": "bloquée",
    "card.LOST": "bloquée pour toujours",
    "card.EXPIRED": "expirée",
    "card.UNASSIGNED": "non reliée",
    "card.child": "carte enfant",
    "link.serial": "Quel est le numéro de la carte ? Il est imprimé dessus.",
    "link.pin": "Votre PIN, pour relier la carte {card} à votre portefeuille.",
    "link.done": "C'est fait ! ✅ La carte {card} est reliée à votre portefeuille.",
    "block.card": "Quelle carte dois-je bloquer ?",
    "block.none": "Vous n'avez pas de carte à bloquer.",
    "block.reason": "Qu'est-il arrivé à la carte {card} ?",
    "reason.lost": "Perdue",
    "reason.stolen": "Volée",
    "reason.damaged": "Abîmée",
    "reason.customer_request": "Bloquer pour un temps",
    "final": "Bloquée pour toujours, sans retour",
    "not_final": "Vous pourrez la débloquer plus tard",
    "block.confirm": "Bloquer la carte {card} ? Vous pourrez la débloquer plus tard.",
    "block.confirm_final": (
        "Bloquer la carte {card} *pour toujours* ? C'est sans retour : il vous faudra une "
        "nouvelle carte."
    ),
    "block.done": "La carte {card} est bloquée. Vous pouvez la débloquer à tout moment.",
    "block.done_final": (
        "La carte {card} est bloquée pour toujours. Votre argent est en sécurité dans votre "
        "portefeuille."
    ),
    "unblock.card": "Quelle carte doit marcher de nouveau ?",
    "unblock.none": "Vous n'avez pas de carte à débloquer.",
    "unblock.pin": "Votre PIN, pour débloquer la carte {card}.",
    "unblock.done": "C'est fait ! ✅ La carte {card} marche de nouveau.",
    # Account
    "register.names": "Bienvenue ! Quels sont votre prénom et votre nom ?",
    "register.confirm": ("Dois-je ouvrir un portefeuille ?\n\nNom : *{name}*\nTéléphone : {phone}"),
    "register.pin": (
        "Choisissez un PIN à 4 chiffres. Il vous le faudra pour chaque paiement. Évitez 1234 ou "
        "une date de naissance."
    ),
    "register.done": "Bienvenue, {name} ! 🎉 Votre portefeuille est ouvert.",
    "register.already": "Il y a déjà un portefeuille avec ce numéro.",
    "change_pin.ask": "Votre ancien PIN, et le nouveau que vous voulez.",
    "change_pin.uncertain": (
        "Je n'ai pas eu de réponse. Votre PIN est peut-être déjà changé : si l'ancien est refusé, "
        "le nouveau est valable. Vous pouvez envoyer *annuler*."
    ),
    "change_pin.done": "C'est fait ! ✅ Votre PIN est changé.",
    "language.ask": "Quelle langue préférez-vous ?",
    "language.en": "English",
    "language.fr": "Français",
    "language.set": "D'accord, parlons français.",
    "person.confirm": "Dois-je demander à notre équipe de vous contacter ?",
    "person.asked": (
        "J'ai prévenu notre équipe. Quelqu'un va bientôt vous écrire ou vous appeler."
    ),
    # Documents
    "kyc.type": "Quel document voulez-vous envoyer d'abord ?",
    "kyc.next": "Merci, je l'ai reçu. Lequel ensuite ?",
    "kyc.enough": "C'est tout",
    "kyc.picture": "Merci d'envoyer une photo nette : *{document}*. Tout doit être lisible.",
    "kyc.too_many": (
        "Nous avons déjà plusieurs photos de ce document et nous les vérifions : *{document}*. "
        "Vous pouvez envoyer un autre document, ou attendre la fin de la vérification."
    ),
    "kyc.too_many_today": (
        "Vous avez envoyé autant de documents que nous en acceptons en une journée. "
        "Merci de réessayer demain."
    ),
    "kyc.done": "Merci ! Nous allons vérifier vos documents et vous tiendrons au courant.",
    "document.id_front": "Pièce d'identité, recto",
    "document.about.id_front": "Le côté avec votre photo, ou votre passeport",
    "document.id_back": "Pièce d'identité, verso",
    "document.about.id_back": "L'autre côté",
    "document.selfie": "Selfie",
    "document.about.selfie": "Votre visage, avec le document à côté",
    "document.proof_of_address": "Preuve d'adresse",
    "document.about.proof_of_address": "Une facture ou lettre des 3 derniers mois",
    "picture.what": (
        "Merci pour la photo. Pour que je sache ce qu'elle montre, choisissez d'abord puis "
        "renvoyez-la."
    ),
    "picture.not_now": (
        "Je ne peux pas utiliser de photo ici. Pour envoyer un document, choisissez *kyc*."
    ),
    "picture.refused": (
        "Je ne peux pas utiliser cette photo. Merci d'en envoyer une autre, en JPEG ou "
        "PNG, de 5 Mo au plus."
    ),
    "picture.unusable": "Je ne peux pas utiliser cette photo. Merci de la renvoyer en JPEG ou PNG.",
    # Gateway error codes
    "error.general": (
        "Désolé, cela n'a pas marché. Merci de réessayer plus tard ou de demander à notre équipe."
    ),
    "error.receiver": "Le destinataire ne peut pas recevoir ce paiement en ce moment.",
    "error.INVALID_PIN": "Ce PIN n'est pas le bon.",
    "error.SAME_PIN": "Le nouveau PIN doit être différent de l'ancien.",
    "error.INVALID_OTP": "Ce code n'est pas le bon.",
    "error.PERMANENT_BLOCK": "Cette carte est bloquée pour toujours.",
    "error.INSUFFICIENT_FUNDS": "Il n'y a pas assez d'argent dans votre portefeuille pour cela.",
    "error.ACCOUNT_LOCKED": "Votre PIN est bloqué pour un moment après trop d'essais.",
    "error.OTP_REQUIRED": (
        "Ce portefeuille est spécialement protégé. Merci de demander à notre équipe."
    ),
    "error.PIN_REQUIRED": "Il faut votre PIN pour cela.",
    "error.SUBSCRIBER_BLOCKED": "Votre portefeuille n'est pas actif en ce moment.",
    "error.CARD_NOT_ACTIVE": "Cette carte n'est pas active.",
    "error.COMPLIANCE_REJECTED": (
        "Une règle de sécurité ne me permet pas d'envoyer ce paiement. Un montant plus petit "
        "passera peut-être."
    ),
    "error.TRANSACTION_LIMIT_EXCEEDED": "C'est plus que ce que vous pouvez envoyer en une fois.",
    "error.CARD_LIMIT_EXCEEDED": "C'est plus que ce que cette carte peut dépenser en un jour.",
    "error.DAILY_LIMIT_EXCEEDED": "Ce serait plus que ce que vous pouvez envoyer en un jour.",
    "error.MONTHLY_LIMIT_EXCEEDED": "Ce serait plus que ce que vous pouvez envoyer en un mois.",
    "error.MAX_BALANCE_EXCEEDED": "Le portefeuille du destinataire ne peut pas contenir autant.",
    "error.SUBSCRIBER_NOT_FOUND": "Je ne trouve pas ce portefeuille.",
    "error.CARD_NOT_FOUND": "Je ne trouve pas cette carte. Merci de vérifier son numéro.",
    "error.DUPLICATE_PHONE": "Il y a déjà un portefeuille avec ce numéro.",
    "error.DUPLICATE_REQUEST": ("Un problème est survenu avec ce paiement."),
    "error.CARD_ALREADY_LINKED": "Cette carte est déjà reliée à un portefeuille.",
    "error.CARD_NOT_LINKED": "Cette carte n'est reliée à aucun portefeuille.",
    "error.ALREADY_BLOCKED": "Cette carte est déjà bloquée.",
    "error.NOT_BLOCKED": "Cette carte n'est pas bloquée.",
    "error.SELF_TRANSFER": (
        "C'est votre propre portefeuille. On ne peut envoyer de l'argent qu'à quelqu'un d'autre."
    ),
    "error.RATE_LIMITED": "C'était un peu trop à la fois. Merci de réessayer dans un instant.",
    "error.VALIDATION_FAILED": "Le service de paiement n'a pas accepté cela.",
    "error.SERVICE_UNAVAILABLE": (
        "Le service de paiement est occupé. Merci de réessayer dans un instant."
    ),
}
