"""French texts: PINs, identification, cards, the account and documents."""

from typing import Final

TEXTS: Final = {
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
    # Cards
    "cards": "Vos cartes :",
    "cards.none": "Vous n'avez pas encore de carte.",
    "card.ACTIVE": "active",
    "card.BLOCKED": "bloquée",
    "card.LOST": "bloquée définitivement",
    "card.EXPIRED": "expirée",
    "card.UNASSIGNED": "non associée",
    "card.child": "carte enfant",
    "link.serial": (
        "Quel est le numéro de la carte ? Il est imprimé dessus. Ou approchez la carte de votre"
        " téléphone et collez le lien ici."
    ),
    "link.pin_tapped": (
        "Saisissez votre code PIN pour ajouter à votre compte la carte que vous avez approchée."
    ),
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
    "support.closed": (
        "Notre service client a clos votre demande. Si vous avez encore besoin d'aide, "
        "envoyez *parler à quelqu'un*."
    ),
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
}
