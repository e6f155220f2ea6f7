"""French texts: wallet, transfers and everyday questions."""

from typing import Final

TEXTS: Final = {
    # Wallet
    "balance": "Votre solde est de *{available}*.",
    "balance.held": (
        "Vous disposez de *{available}*.\n\nSolde total : {balance}\nMontant réservé : {held}"
    ),
    "history": "Vos dernières transactions :",
    "history.fee": "frais {fee}",
    "history.none": "Vous n'avez pas encore de transactions.",
    "type.other": "Transaction",
    "type.transfer_p2p": "Transfert",
    "type.transfer": "Transfert",
    "type.pos_payment": "Paiement",
    "type.online_payment": "Paiement",
    "type.refund": "Remboursement",
    "type.agent_cashin": "Dépôt",
    "type.agent_cashout": "Retrait",
    "type.partner_fund": "Recharge",
    "status.partially_refunded": "partiellement remboursée",
    "status.under_review": "en cours de vérification",
    "status.failed": "refusée",
    "status.refunded": "remboursée",
    "limits": (
        "Vos plafonds (niveau {level}) :\n"
        "• Par transaction : *{per_transaction}*\n"
        "• Aujourd'hui : {daily_used} utilisés sur {daily}, il reste *{daily_left}*\n"
        "• Ce mois-ci : {monthly_used} utilisés sur {monthly}, il reste *{monthly_left}*\n"
        "• Solde maximum : *{max_balance}*"
    ),
    "limits.raise": "Vérifiez votre identité pour augmenter vos plafonds.",
    "statement.period": (
        "Quelle période pour le relevé ? Choisissez-la ou écrivez-la, par exemple : mars 2026"
    ),
    "period.this_month": "Ce mois-ci",
    "period.last_month": "Le mois dernier",
    "period.last_90": "90 derniers jours",
    "statement.file": "Votre relevé, du {first} au {last}.",
    "statement.link": (
        "Votre relevé, du {first} au {last} :\n{link}\n\nLe lien est valable jusqu'au {until}. "
        "Toute personne qui a ce lien peut ouvrir votre relevé : ne le partagez pas."
    ),
    # Sending money
    "send.recipient": (
        "À qui souhaitez-vous envoyer de l'argent ? Choisissez un contact, ou envoyez un numéro "
        "de carte ou de téléphone."
    ),
    "send.recipient_new": (
        "À qui souhaitez-vous envoyer de l'argent ? Veuillez envoyer son numéro de carte ou de "
        "téléphone."
    ),
    "send.recipient_unknown": (
        "Je ne connais pas encore « {name} ». Veuillez envoyer son numéro de carte ou de téléphone."
    ),
    "send.recipient_self": (
        "C'est votre propre compte. Vous ne pouvez envoyer de l'argent qu'à une autre personne."
    ),
    "send.card_inactive": (
        "Cette carte de {name} ne peut pas recevoir d'argent pour le moment. Envoyez son numéro de "
        "téléphone ou un autre numéro de carte."
    ),
    "send.payee.card": "Carte : {payee}",
    "send.payee.phone": "Téléphone : {payee}",
    "send.not_found.card": "Je ne trouve pas de carte avec ce numéro.",
    "send.not_found.phone": "Aucun compte n'est ouvert avec ce numéro de téléphone.",
    "send.recipient_removed": (
        "Ce contact n'est plus utilisé, je l'ai donc retiré. Demandez le nouveau numéro de carte "
        "ou de téléphone."
    ),
    "send.amount": "Quel montant souhaitez-vous envoyer à {name} ?",
    "send.other_amount": "Quel montant souhaitez-vous envoyer à la place ?",
    "send.total_with_fee": "Avec {fee} de frais, le total est de *{total}*.",
    "send.confirm": (
        "Veuillez vérifier :\n\nÀ : *{name}*\n{recipient}\nMontant : *{amount}*\n"
        "Frais : {fee}\nTotal : *{total}*\n\nConfirmez-vous l'envoi ?"
    ),
    "send.pin": "Saisissez votre code PIN pour envoyer *{amount}* à *{name}* (total {total}).",
    "send.completed": (
        "C'est fait ! ✅ Vous avez envoyé *{amount}* à {name}.\n\nFrais : {fee}\n"
        "Votre nouveau solde : *{balance}*\nTransaction : {transaction}"
    ),
    "send.under_review": (
        "Votre paiement de *{amount}* à {name} est *en cours de vérification*. L'argent est "
        "réservé pendant la vérification. Nous vous dirons le résultat ici.\n\n"
        "Frais : {fee}\nVotre solde : *{balance}*\nTransaction : {transaction}"
    ),
    "send.declined": "{reason}\n\nL'argent n'a pas été envoyé.",
    "send.uncertain": (
        "Je n'ai pas reçu de réponse et je ne sais pas encore si l'argent a été envoyé. Veuillez "
        "saisir à nouveau votre code PIN. Vous *ne serez pas débité deux fois*."
    ),
    "send.outcome_unknown": (
        "*Le paiement a peut-être été effectué.* Consultez votre historique avant de recommencer."
    ),
    "send.save_contact": "Ajouter aux contacts",
    "send.contact_saved": (
        "C'est enregistré. La prochaine fois, écrivez simplement *envoyer 50 à {name}*."
    ),
    # Everyday questions
    "add_money": (
        "Pour ajouter de l'argent, allez chez un agent avec des espèces. Donnez votre numéro de "
        "téléphone ou votre carte et le montant. L'agent crédite votre compte. Votre code PIN "
        "n'est jamais nécessaire : ne le donnez à personne."
    ),
    "withdraw": (
        "Pour retirer des espèces, allez chez un agent. Donnez votre numéro de téléphone ou votre "
        "carte et le montant, puis validez vous-même avec votre code PIN sur l'appareil de "
        "l'agent. Comptez l'argent avant de partir. Ne donnez jamais votre code PIN."
    ),
    "agents.place": "Dans quel district ou quelle ville êtes-vous ?",
    "agents": "Agents à {place} :",
    "agents.none": "Je n'ai trouvé aucun agent avec « {place} » dans son adresse.",
    "wrong_recipient": (
        "L'argent déjà arrivé ne peut pas être repris dans ce chat. Voici ce qu'il faut faire :\n"
        "1. Vérifiez dans votre *historique* qui l'a reçu.\n"
        "2. Demandez à cette personne de le renvoyer.\n"
        "3. Prévenez tout de suite notre service client. Il pourra peut-être vous aider, mais ne "
        "peut rien promettre.\n\n"
        "Souhaitez-vous parler à une personne maintenant ?"
    ),
    "contact.hours": "Horaires : {text}",
    "contact.address": "Contact : {text}",
    "contact.chat": (
        "Vous pouvez utiliser ce chat à tout moment. Pour joindre notre équipe, choisissez "
        "*Service client*."
    ),
    "declined": "Votre paiement de *{amount}* du {at} a été refusé.",
    "declined.to": "Votre paiement de *{amount}* à {name} du {at} a été refusé.",
    "declined.none": (
        "Aucun de vos derniers paiements n'a été refusé. Pour un autre problème, notre service "
        "client peut vous aider."
    ),
    "declined.reason.other": (
        "Rien n'a été débité. Réessayez plus tard. Si cela se reproduit, contactez notre service "
        "client."
    ),
    "declined.reason.INSUFFICIENT_FUNDS": (
        "Il n'y avait pas assez d'argent sur votre compte pour le montant et les frais. Ajoutez de "
        "l'argent, puis réessayez."
    ),
    "declined.reason.TRANSACTION_LIMIT_EXCEEDED": (
        "Le montant dépassait votre plafond par transaction. Vous pouvez augmenter vos plafonds en "
        "vérifiant votre identité."
    ),
    "declined.reason.DAILY_LIMIT_EXCEEDED": (
        "Il aurait dépassé votre plafond par jour. Réessayez demain, ou augmentez vos plafonds en "
        "vérifiant votre identité."
    ),
    "declined.reason.MONTHLY_LIMIT_EXCEEDED": (
        "Il aurait dépassé votre plafond par mois. Réessayez le mois prochain, ou augmentez vos "
        "plafonds en vérifiant votre identité."
    ),
    "declined.reason.CARD_LIMIT_EXCEEDED": (
        "Il dépassait le plafond par jour de cette carte. Réessayez demain, ou utilisez une autre "
        "carte."
    ),
    "declined.reason.MAX_BALANCE_EXCEEDED": (
        "Le compte du bénéficiaire ne peut pas contenir autant. Demandez au bénéficiaire."
    ),
    "declined.reason.COMPLIANCE_REJECTED": (
        "Ce paiement n'a pas pu être effectué et rien n'a été débité. Pour toute question, "
        "contactez notre service client."
    ),
    "declined.reason.CARD_NOT_ACTIVE": (
        "La carte n'était pas active. Vérifiez vos cartes, puis réessayez."
    ),
    "declined.reason.SUBSCRIBER_BLOCKED": (
        "L'un des deux comptes n'était pas actif. Notre service client peut vous en dire plus."
    ),
}
