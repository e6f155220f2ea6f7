"""Page texts in the languages of the messenger. The script shows the texts of results."""

from collections.abc import Mapping
from typing import Final

TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "title": "Verify a receipt",
        "intro": "Check that a transaction is part of a day that {operator} has closed and signed.",
        "private": "The proof stays in this browser. It is not sent anywhere.",
        "proof": "Proof",
        "proof.hint": "Paste the proof, or choose its file.",
        "keys": "Public keys",
        "keys.hint": "The keys of this server. To be independent of it, paste keys that you kept.",
        "verify": "Verify",
        "save": "Save the proof",
        "valid": "Valid: {id} is part of {date}, signed by {key}.",
        "invalid": "Not valid: {reason}.",
        "script": "This page needs JavaScript.",
        "reason.json": "the text is not JSON",
        "reason.link": "the link is incomplete",
        "reason.proof": "the text is not a proof",
        "reason.keys": "the keys are not a list of keys",
        "reason.transaction": "the leaf belongs to another transaction",
        "reason.key": "the keys do not contain the signing key",
        "reason.signature": "the signature of the day is not valid",
        "reason.totals": "the totals of the day do not match their hash",
        "reason.root": "the transaction is not part of the day",
        "reason.unsupported": "this browser cannot check Ed25519 signatures. Update the browser,"
        " open this page over https, or use the script in the guide",
    },
    "fr": {
        "title": "Vérifier un reçu",
        "intro": "Vérifiez qu'une transaction fait partie d'une journée clôturée et signée par"
        " {operator}.",
        "private": "La preuve reste dans ce navigateur. Elle n'est envoyée nulle part.",
        "proof": "Preuve",
        "proof.hint": "Collez la preuve ou choisissez son fichier.",
        "keys": "Clés publiques",
        "keys.hint": "Les clés de ce serveur. Pour ne pas en dépendre, collez des clés que vous"
        " avez conservées.",
        "verify": "Vérifier",
        "save": "Enregistrer la preuve",
        "valid": "Valide : {id} fait partie du {date}, signé par {key}.",
        "invalid": "Non valide : {reason}.",
        "script": "Cette page nécessite JavaScript.",
        "reason.json": "le texte n'est pas du JSON",
        "reason.link": "le lien est incomplet",
        "reason.proof": "le texte n'est pas une preuve",
        "reason.keys": "les clés ne sont pas une liste de clés",
        "reason.transaction": "la feuille appartient à une autre transaction",
        "reason.key": "les clés ne contiennent pas la clé de signature",
        "reason.signature": "la signature de la journée n'est pas valide",
        "reason.totals": "les totaux de la journée ne correspondent pas à leur empreinte",
        "reason.root": "la transaction ne fait pas partie de la journée",
        "reason.unsupported": "ce navigateur ne peut pas vérifier les signatures Ed25519."
        " Mettez-le à jour, ouvrez cette page en https ou utilisez le script du guide",
    },
}
