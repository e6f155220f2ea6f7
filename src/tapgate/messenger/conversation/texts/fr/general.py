"""French texts: commands, navigation, answers that were not understood, and confirmations."""

from typing import Final

TEXTS: Final = {
    # Commands
    "title.menu": "Menu",
    "description.menu": "Tout ce que vous pouvez faire ici",
    "title.help": "Aide",
    "description.help": "Comment fonctionne cette discussion",
    "title.balance": "Solde",
    "description.balance": "Le montant disponible sur votre compte",
    "title.send": "Envoyer de l'argent",
    "description.send": "Vers une carte ou un numéro de téléphone",
    "title.history": "Historique",
    "description.history": "Vos dernières transactions",
    "title.statement": "Relevé",
    "description.statement": "Un PDF pour la période de votre choix",
    "title.cards": "Mes cartes",
    "description.cards": "Vos cartes et leur statut",
    "title.link": "Ajouter une carte",
    "description.link": "Associer une carte à votre compte",
    "title.block": "Bloquer une carte",
    "description.block": "Perte, vol, dommage ou blocage temporaire",
    "title.unblock": "Débloquer une carte",
    "description.unblock": "Réutiliser une carte bloquée",
    "title.change_pin": "Changer mon code PIN",
    "description.change_pin": "Choisir un nouveau code PIN",
    "title.reset_pin": "Code PIN oublié",
    "description.reset_pin": "Nouveau code PIN avec un code reçu",
    "title.kyc": "Vérifier l'identité",
    "description.kyc": "Envoyer des photos de vos documents",
    "title.limits": "Mes plafonds",
    "description.limits": "Les montants que vous pouvez envoyer et détenir",
    "title.add_money": "Dépôt",
    "description.add_money": "Mettre des espèces sur votre compte",
    "title.withdraw": "Retrait",
    "description.withdraw": "Retirer des espèces de votre compte",
    "title.nearest_agent": "Trouver un agent",
    "description.nearest_agent": "Les agents de votre district ou ville",
    "title.fees": "Frais",
    "description.fees": "Ce que coûte l'envoi d'un montant",
    "title.declined": "Paiement refusé",
    "description.declined": "Pourquoi votre dernier paiement a été refusé",
    "title.wrong_recipient": "Erreur d'envoi",
    "description.wrong_recipient": "Vous avez envoyé à la mauvaise personne",
    "title.contact": "Horaires et contact",
    "description.contact": "Quand et comment joindre le service client",
    "title.language": "Langue",
    "description.language": "Anglais ou français",
    "title.person": "Service client",
    "description.person": "Notre service client répond ici",
    "title.register": "S'inscrire",
    "description.register": "Ouvrir un compte avec ce numéro",
    # Navigation
    "rate_limited": (
        "Vous envoyez trop de messages. Veuillez patienter {seconds} secondes, puis réessayer."
    ),
    "choose": "Choisir",
    "more": "Plus",
    "retry": "Réessayer",
    "menu": "Bonjour ! 👋 Que souhaitez-vous faire ?",
    "menu.named": "Bonjour {name} ! 👋 Que souhaitez-vous faire ?",
    "what_next": "Envoyez *menu* pour voir ce que vous pouvez faire ici, ou *aide*.",
    "did_you_mean": "Vouliez-vous dire l'une de ces options ?",
    "did_you_mean.one": "Vouliez-vous dire ceci ?",
    "help": (
        "Je peux afficher votre solde et votre historique, envoyer de l'argent, gérer vos cartes "
        "et plus encore.\n\n"
        "Choisissez dans le *menu*, ou écrivez simplement, par exemple :\n"
        "• solde\n• envoyer 500 à 076123456\n• bloquer ma carte\n\n"
        "Envoyez *annuler* pour arrêter à tout moment. Ne communiquez jamais votre code PIN. "
        "Saisissez-le uniquement quand je vous le demande."
    ),
    "not_understood": "Désolé, je n'ai pas compris. Essayez l'une de ces options :",
    "unsupported_message": "Je ne peux lire ici que du texte et des photos de documents.",
    "option_not_listed": "Ce numéro n'est pas dans la liste.",
    "greeting_in_progress": "Bonjour ! 👋 Reprenons là où nous en étions :",
    "thanks": "Avec plaisir ! 😊",
    "goodbye": "Très bien ! Je suis là si vous avez besoin de moi. 👋",
    "fees": (
        "Les frais dépendent du montant, et vous les voyez toujours avant de confirmer. Pour quel "
        "montant souhaitez-vous connaître les frais ? Par exemple : *500 SLE*"
    ),
    "fees.short": (
        "Les frais dépendent du montant. Vous verrez les frais et le total avant de confirmer."
    ),
    "fees.quote": "Envoyer *{amount}* coûte *{fee}* de frais. Le total est de *{total}*.",
    "fees.pin": "Votre code PIN sera nécessaire pour l'envoi.",
    "fees.no_pin": "Votre code PIN ne sera pas nécessaire pour l'envoi.",
    "fees.left": "Vous pouvez encore envoyer *{day}* aujourd'hui et *{month}* ce mois-ci.",
    "expired": "Ce bouton a expiré.",
    "late": "Votre réponse est arrivée en retard. Par sécurité, je vous repose la question.",
    "nothing_pending": "Je n'attends pas de oui ou de non pour le moment.",
    "nothing_to_cancel": "Il n'y a rien à annuler pour le moment.",
    "canceled": "D'accord, c'est annulé : *{command}*.",
    "lapsed": (
        "Vous n'avez pas répondu à temps, j'ai donc annulé votre demande. Si vous aviez déjà "
        "donné votre code PIN, consultez votre *historique*."
    ),
    "lapsed.pin": (
        "Le délai est dépassé, j'ai donc annulé votre demande sans utiliser votre code PIN. "
        "Veuillez supprimer votre dernier message et recommencer."
    ),
    "withheld": (
        "Je n'ai pas conservé votre dernier message, car il contenait peut-être un code PIN. "
        "Veuillez le renvoyer."
    ),
    "unreachable": (
        "Le service de paiement est injoignable. Veuillez réessayer dans quelques minutes."
    ),
    "number_changed": (
        "Ce numéro de téléphone a changé. Pour protéger votre compte, je vous demanderai votre "
        "code PIN avant d'afficher quoi que ce soit."
    ),
    # Answers that were not understood
    "not_understood.choice": "Veuillez choisir l'une de ces options.",
    "not_understood.confirm": "Veuillez répondre par *oui* ou par *non*.",
    "not_understood.pin": "Le code PIN a exactement 4 chiffres. Pour arrêter, envoyez *annuler*.",
    "not_understood.both_pins": (
        "J'ai besoin des deux codes PIN dans un seul message : d'abord l'actuel, puis le nouveau."
    ),
    "not_understood.reset_pin": (
        "J'ai besoin du code à 6 chiffres et du nouveau code PIN à 4 chiffres. Pour arrêter, "
        "envoyez *annuler*."
    ),
    "not_understood.phone": "Cela ne ressemble pas à un numéro de téléphone.",
    "not_understood.code": "Le code a 6 chiffres.",
    "not_understood.recipient": "J'ai besoin d'un numéro de carte ou de téléphone.",
    "not_understood.amount": (
        "Veuillez envoyer le montant en {currency}, en chiffres, par exemple 500 ou 250,50."
    ),
    "not_understood.place": (
        "Envoyez seulement le nom de votre district ou de votre ville, par exemple : Bo"
    ),
    "not_understood.serial": (
        "Ce n'est ni un numéro de carte ni le lien d'une carte. Le numéro est imprimé sur la carte."
    ),
    "not_understood.card": "Ce n'est pas l'une de ces cartes.",
    "not_understood.names": "Envoyez votre prénom et votre nom, par exemple : Aminata Kamara",
    "not_understood.period": "Je n'ai pas compris cette période.",
    "not_understood.support": "Veuillez l'expliquer avec des mots.",
    "not_understood.picture": "J'attends une photo. Pour arrêter, envoyez *annuler*.",
    # Confirmation
    "confirm.yes": "Oui",
    "confirm.no": "Non",
}
