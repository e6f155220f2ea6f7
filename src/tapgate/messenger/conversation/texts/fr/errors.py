"""French texts: gateway error codes."""

from typing import Final

TEXTS: Final = {
    "error.general": (
        "Désolé, cela n'a pas fonctionné. Réessayez plus tard ou contactez notre service client."
    ),
    "error.receiver": "Le destinataire ne peut pas recevoir ce paiement pour le moment.",
    "error.INVALID_PIN": "Code PIN incorrect.",
    "error.SAME_PIN": "Le nouveau code PIN doit être différent de l'actuel.",
    "error.INVALID_OTP": "Code incorrect.",
    "error.PERMANENT_BLOCK": "Carte bloquée définitivement : elle ne peut pas être débloquée.",
    "error.INSUFFICIENT_FUNDS": "Votre solde est insuffisant pour cette opération.",
    "error.FORBIDDEN": (
        "Ce numéro de téléphone a été modifié récemment : le code PIN ne peut pas encore être "
        "réinitialisé. Réessayez demain ou contactez notre service client."
    ),
    "error.ACCOUNT_LOCKED": "Votre code PIN est temporairement bloqué : trop d'essais incorrects.",
    "error.OTP_REQUIRED": (
        "Ce compte bénéficie d'une protection renforcée. Veuillez contacter notre service client."
    ),
    "error.PIN_REQUIRED": "Cette opération nécessite votre code PIN.",
    "error.SUBSCRIBER_BLOCKED": "Votre compte n'est pas actif pour le moment.",
    "error.CARD_NOT_ACTIVE": "Cette carte n'est pas active.",
    "error.CARD_NOT_GENUINE": (
        "Je n'ai pas pu vérifier cette carte. Approchez-la à nouveau et collez le nouveau lien. Si"
        " cela ne fonctionne toujours pas, contactez notre assistance."
    ),
    "error.CARD_PROOF_USED": (
        "Ce lien a déjà servi. Approchez à nouveau la carte et collez le nouveau lien."
    ),
    "error.CARD_PROOF_REQUIRED": ("Approchez la carte de votre téléphone et collez le lien ici."),
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
