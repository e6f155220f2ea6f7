"""French message catalog. It has the same keys and placeholders as the English one."""

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
    "not_understood.serial": "Ce numéro de carte n'est pas valide. Il est imprimé sur la carte.",
    "not_understood.card": "Ce n'est pas l'une de ces cartes.",
    "not_understood.names": "Envoyez votre prénom et votre nom, par exemple : Aminata Kamara",
    "not_understood.period": "Je n'ai pas compris cette période.",
    "not_understood.support": "Veuillez l'expliquer avec des mots.",
    "not_understood.picture": "J'attends une photo. Pour arrêter, envoyez *annuler*.",
    # Confirmation
    "confirm.yes": "Oui",
    "confirm.no": "Non",
    # PINs
    "pin.button.pin": "Saisir le code PIN",
    "pin.button.new_pin": "Choisir le code PIN",
    "pin.button.change_pin": "Changer le code PIN",
    "pin.button.reset_pin": "Nouveau code PIN",
    "pin.text.pin": "Veuillez envoyer votre code PIN à 4 chiffres, ou *annuler*.",
    "pin.text.new_pin": "Veuillez envoyer le code PIN à 4 chiffres de votre choix, ou *annuler*.",
    "pin.text.change_pin": (
        "Veuillez envoyer votre code PIN actuel et le nouveau dans un seul message, séparés par "
        "une espace, ou *annuler*."
    ),
    "pin.text.reset_pin": (
        "Veuillez envoyer le code à 6 chiffres et le code PIN à 4 chiffres de votre choix dans un "
        "seul message, séparés par une espace, ou *annuler*."
    ),
    "pin.unavailable": (
        "Cette opération nécessite votre code PIN, qui ne doit pas être partagé dans cette "
        "discussion. Veuillez utiliser l'application ou contacter notre service client."
    ),
    "pin.not_as_text": (
        "N'envoyez pas votre code PIN dans la discussion. Je ne l'ai pas utilisé. Supprimez ce "
        "message et utilisez le formulaire."
    ),
    "pin.unsolicited": (
        "Cela ressemble à un code PIN, mais je n'en ai pas demandé. N'envoyez jamais votre code "
        "PIN sans que je le demande. Je ne l'ai pas conservé, mais veuillez supprimer ce message."
    ),
    "pin.wrong": "Code PIN incorrect. Il vous reste {left} essais.",
    "pin.wrong.last_try": "Code PIN incorrect. Il vous reste 1 essai.",
    "pin.weak": "Ce code PIN est trop facile à deviner. Veuillez en choisir un autre.",
    "pin.locked_now": (
        "Code PIN incorrect. C'était votre dernier essai : votre code PIN est bloqué pendant "
        "30 minutes pour protéger votre argent."
    ),
    "pin.locked_until": "Votre code PIN est bloqué jusqu'au *{until}* : trop d'essais incorrects.",
    "form.expired": "Ce formulaire a expiré. Je n'ai pas utilisé votre code PIN.",
    "form.closed": "Je n'ai pas encore reçu votre code PIN.",
    # Identification
    "not_registered": "Aucun compte n'est ouvert avec ce numéro. Souhaitez-vous en ouvrir un ?",
    "not_active": (
        "Votre compte n'est pas actif pour le moment, je ne peux donc pas faire cette opération. "
        "Veuillez contacter notre service client."
    ),
    "trust.ask": "Pour confirmer que c'est bien vous, j'ai besoin de votre code PIN une fois.",
    "phone.ask": (
        "Je ne vois pas votre numéro de téléphone. Veuillez envoyer le numéro de votre compte, "
        "avec l'indicatif du pays, par exemple +23276123456."
    ),
    "code.ask": "J'ai envoyé un code à 6 chiffres à ce numéro. Veuillez le saisir ici.",
    "code.resend": "Renvoyer un code",
    "code.other_phone": "Autre numéro",
    "code.wrong": "Code incorrect.",
    "code.correct": "Merci, votre numéro est confirmé. ✅",
    "code.expired": "Ce code n'est plus valable. Recommençons.",
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
    # Cards
    "cards": "Vos cartes :",
    "cards.none": "Vous n'avez pas encore de carte.",
    "card.ACTIVE": "active",
    "card.BLOCKED": "bloquée",
    "card.LOST": "bloquée définitivement",
    "card.EXPIRED": "expirée",
    "card.UNASSIGNED": "non associée",
    "card.child": "carte enfant",
    "link.serial": "Quel est le numéro de la carte ? Il est imprimé dessus.",
    "link.pin": "Saisissez votre code PIN pour ajouter la carte {card} à votre compte.",
    "link.done": "C'est fait ! ✅ La carte {card} est associée à votre compte.",
    "block.card": "Quelle carte souhaitez-vous bloquer ?",
    "block.none": "Vous n'avez aucune carte à bloquer.",
    "block.reason": "Pourquoi souhaitez-vous bloquer la carte {card} ?",
    "reason.lost": "Perdue",
    "reason.stolen": "Volée",
    "reason.damaged": "Abîmée",
    "reason.customer_request": "Bloquer temporairement",
    "block.permanent": "Définitif, sans retour possible",
    "block.temporary": "Vous pourrez la débloquer plus tard",
    "block.confirm": "Bloquer la carte {card} ? Vous pourrez la débloquer plus tard.",
    "block.confirm_permanent": (
        "Bloquer *définitivement* la carte {card} ? Vous ne pourrez pas revenir en arrière et il "
        "vous faudra une nouvelle carte."
    ),
    "block.done": "La carte {card} est bloquée. Vous pouvez la débloquer à tout moment.",
    "block.done_permanent": (
        "La carte {card} est bloquée définitivement. Votre argent est en sécurité sur votre compte."
    ),
    "unblock.card": "Quelle carte souhaitez-vous débloquer ?",
    "unblock.none": "Vous n'avez aucune carte à débloquer.",
    "unblock.pin": "Saisissez votre code PIN pour débloquer la carte {card}.",
    "unblock.done": "C'est fait ! ✅ La carte {card} est de nouveau active.",
    # Account
    "register.names": "Bienvenue ! Quels sont votre prénom et votre nom ?",
    "register.confirm": (
        "Dois-je ouvrir un compte avec ces informations ?\n\nNom : *{name}*\nTéléphone : {phone}"
    ),
    "register.pin": (
        "Choisissez un code PIN à 4 chiffres. Il vous servira à valider vos paiements. Évitez "
        "1234 ou une date de naissance."
    ),
    "register.done": "Bienvenue, {name} ! 🎉 Votre compte est prêt.",
    "register.already": "Un compte existe déjà avec ce numéro.",
    "change_pin.ask": (
        "Changeons votre code PIN. Si vous l'avez oublié, envoyez *code PIN oublié*."
    ),
    "change_pin.uncertain": (
        "Je n'ai pas reçu de réponse. Votre code PIN est peut-être déjà changé : si l'ancien ne "
        "fonctionne pas, le nouveau est actif. Vous pouvez envoyer *annuler*."
    ),
    "change_pin.done": "C'est fait ! ✅ Votre code PIN a été changé.",
    "reset_pin.confirm": (
        "Avez-vous oublié votre code PIN ? Je peux vous envoyer un code pour en choisir un nouveau."
    ),
    "reset_pin.untrusted": (
        "Ce numéro de téléphone a changé, je ne peux donc pas réinitialiser de code PIN ici. Notre "
        "service client peut vous aider. Souhaitez-vous le contacter ?"
    ),
    "reset_pin.which": "Quel code PIN souhaitez-vous réinitialiser ?",
    "reset_pin.own": "Mon compte",
    "reset_pin.agent": "Mon compte agent",
    "reset_pin.for.subscriber": "votre compte",
    "reset_pin.for.agent": "votre compte agent",
    "reset_pin.for.card": "la carte de {name}",
    "reset_pin.ask": (
        "Nous avons envoyé un code à 6 chiffres sur votre téléphone. Saisissez-le avec le nouveau "
        "code PIN pour *{holder}*. Le code est valable 5 minutes. Ne le communiquez à personne, "
        "même pas à nos agents."
    ),
    "reset_pin.ask_again": (
        "Saisissez le code à 6 chiffres que nous vous avons envoyé avec le nouveau code PIN pour "
        "*{holder}*. Ne le communiquez à personne, même pas à nos agents. Pour recevoir un autre "
        "code, envoyez *renvoyer un code*."
    ),
    "reset_pin.use_form": (
        "Veuillez saisir le code dans le formulaire, avec votre nouveau code PIN. Vous pouvez "
        "supprimer votre message."
    ),
    "reset_pin.wrong_code": "Code incorrect. Essais restants : {left}.",
    "reset_pin.code_invalid": (
        "Ce code est incorrect ou n'est plus valable. Souhaitez-vous en recevoir un nouveau ?"
    ),
    "reset_pin.too_many_codes": (
        "Nous avons déjà envoyé plusieurs codes sur votre téléphone. Vous pourrez en recevoir un "
        "nouveau dans {minutes} minutes. Si vous avez un code reçu il y a moins de 5 minutes, "
        "envoyez-le ici."
    ),
    "reset_pin.too_many_wrong": (
        "Trop de codes incorrects ont été saisis. Vous pourrez recevoir un nouveau code d'ici "
        "{hours} heures. Vous pouvez aussi contacter notre service client."
    ),
    "reset_pin.uncertain": (
        "Je n'ai pas reçu de réponse. Essayez votre nouveau code PIN : s'il ne fonctionne pas, "
        "envoyez *renvoyer un code*. Vous pouvez envoyer *annuler*."
    ),
    "reset_pin.done": "C'est fait ! ✅ Le nouveau code PIN est actif.",
    "language.ask": "Quelle langue préférez-vous ?",
    "language.en": "English",
    "language.fr": "Français",
    "language.set": "D'accord, continuons en français.",
    "support.confirm": "Souhaitez-vous que notre service client vous contacte ?",
    "support.ask": (
        "En quoi notre service client peut-il vous aider ? Écrivez-le en un seul message. "
        "N'envoyez jamais votre code PIN ni un autre code."
    ),
    "support.requested": (
        "J'ai transmis votre message à notre service client. Il vous répondra ici, dans ce chat."
    ),
    "support.reply": "*Service client :* {text}",
    "support.passed_on": (
        "J'ai transmis cela à notre service client. Écrivez ici si vous avez autre chose à ajouter."
    ),
    "support.full": (
        "Notre service client a déjà beaucoup de messages de votre part : je n'ai pas transmis "
        "celui-ci. Il vous répondra ici, dans ce chat."
    ),
    # Documents
    "kyc.type": "Quel document souhaitez-vous envoyer en premier ?",
    "kyc.next": "Merci, je l'ai reçu. Quel est le document suivant ?",
    "kyc.image": "Merci, j'ai reçu votre photo. Que montre-t-elle ?",
    "kyc.image.several": "J'ai reçu {count} photos de vous. Que montre la première ?",
    "kyc.next_image": "Merci, je l'ai reçu. Que montre votre autre photo ?",
    "kyc.next_image.several": (
        "Merci, je l'ai reçu. Il reste {count} photos. Que montre la suivante ?"
    ),
    "kyc.discard": "Ne pas l'utiliser",
    "kyc.finish": "C'est tout",
    "kyc.picture": (
        "Veuillez envoyer une photo nette : *{document}*. Tout le texte doit être lisible."
    ),
    "kyc.too_many": (
        "Nous avons déjà plusieurs photos de ce document et nous les vérifions : *{document}*. "
        "Vous pouvez envoyer un autre document ou attendre la fin de la vérification."
    ),
    "kyc.too_many_today": (
        "Vous avez atteint le nombre maximum de documents par jour. Veuillez réessayer demain."
    ),
    "kyc.done": (
        "Merci ! Nous allons vérifier vos documents et nous vous dirons le résultat ici. En "
        "attendant, vos plafonds ne changent pas."
    ),
    "document.id_front": "Pièce d'identité, recto",
    "document.description.id_front": "Le côté avec votre photo, ou votre passeport",
    "document.id_back": "Pièce d'identité, verso",
    "document.description.id_back": "L'autre côté",
    "document.selfie": "Selfie",
    "document.description.selfie": "Votre visage, avec le document à côté",
    "document.proof_of_address": "Justificatif de domicile",
    "document.description.proof_of_address": "Une facture ou une lettre des 3 derniers mois",
    "picture.kept": "Merci, je garde votre photo pendant une heure. Terminons d'abord ceci :",
    "picture.reminder": (
        "J'ai toujours votre photo. Choisissez *Vérifier l'identité* pour dire ce qu'elle montre."
    ),
    "picture.too_many": (
        "J'ai déjà 4 photos de vous, je n'ai donc pas gardé celle-ci. Dites-moi d'abord ce "
        "qu'elles montrent."
    ),
    "picture.discarded": "D'accord, j'ai supprimé cette photo.",
    "picture.all_discarded": "D'accord, j'ai supprimé ces photos.",
    "picture.expired": "Je n'ai plus cette photo. Veuillez la renvoyer.",
    "picture.rejected": (
        "Je ne peux pas utiliser cette photo. Envoyez-en une autre en JPEG ou PNG, de 5 Mo maximum."
    ),
    "picture.unusable": "Je ne peux pas utiliser cette photo. Renvoyez-la en JPEG ou PNG.",
    # Gateway error codes
    "error.general": (
        "Désolé, cela n'a pas fonctionné. Réessayez plus tard ou contactez notre service client."
    ),
    "error.receiver": "Le destinataire ne peut pas recevoir ce paiement pour le moment.",
    "error.INVALID_PIN": "Code PIN incorrect.",
    "error.SAME_PIN": "Le nouveau code PIN doit être différent de l'actuel.",
    "error.INVALID_OTP": "Code incorrect.",
    "error.PERMANENT_BLOCK": "Carte bloquée définitivement : elle ne peut pas être débloquée.",
    "error.INSUFFICIENT_FUNDS": "Votre solde est insuffisant pour cette opération.",
    "error.ACCOUNT_LOCKED": "Votre code PIN est temporairement bloqué : trop d'essais incorrects.",
    "error.OTP_REQUIRED": (
        "Ce compte bénéficie d'une protection renforcée. Veuillez contacter notre service client."
    ),
    "error.PIN_REQUIRED": "Cette opération nécessite votre code PIN.",
    "error.SUBSCRIBER_BLOCKED": "Votre compte n'est pas actif pour le moment.",
    "error.CARD_NOT_ACTIVE": "Cette carte n'est pas active.",
    "error.COMPLIANCE_REJECTED": (
        "Nous ne pouvons pas effectuer ce paiement. Pour toute question, contactez notre service "
        "client."
    ),
    "error.TRANSACTION_LIMIT_EXCEEDED": "Ce montant dépasse votre plafond par transaction.",
    "error.CARD_LIMIT_EXCEEDED": "Ce montant dépasse le plafond journalier de la carte.",
    "error.DAILY_LIMIT_EXCEEDED": "Ce paiement dépasserait votre plafond journalier.",
    "error.MONTHLY_LIMIT_EXCEEDED": "Ce paiement dépasserait votre plafond mensuel.",
    "error.MAX_BALANCE_EXCEEDED": "Le compte du destinataire ne peut pas contenir ce montant.",
    "error.SUBSCRIBER_NOT_FOUND": "Je ne trouve pas ce compte.",
    "error.CARD_NOT_FOUND": "Je ne trouve pas cette carte. Veuillez vérifier son numéro.",
    "error.DUPLICATE_PHONE": "Un compte existe déjà avec ce numéro.",
    "error.DUPLICATE_REQUEST": "Un problème est survenu avec ce paiement.",
    "error.CARD_ALREADY_LINKED": "Cette carte est déjà associée à un compte.",
    "error.CARD_NOT_LINKED": "Cette carte n'est associée à aucun compte.",
    "error.ALREADY_BLOCKED": "Cette carte est déjà bloquée.",
    "error.NOT_BLOCKED": "Cette carte n'est pas bloquée.",
    "error.SELF_TRANSFER": (
        "C'est votre propre compte. Vous ne pouvez envoyer de l'argent qu'à une autre personne."
    ),
    "error.RATE_LIMITED": "Trop de demandes. Réessayez dans un instant.",
    "error.VALIDATION_FAILED": "Le service de paiement n'a pas accepté cette demande.",
    "error.SERVICE_UNAVAILABLE": "Le service de paiement est occupé. Réessayez dans un instant.",
}
