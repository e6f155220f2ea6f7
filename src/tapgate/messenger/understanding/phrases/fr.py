"""French keywords for each command, including West African chat spellings."""

from tapgate.messenger.model import Command

GREETINGS = """
    bonjour; bonsoir; salut; coucou; bjr; bsr; slt; cc; bonne journée; bonne soirée; allô; allo
    bonjour monsieur; bonjour madame; bonsoir à tous; ça va; cava; comment ça va; cmt cv
    salam aleykoum; bonne arrivée; on dit quoi; wesh
"""

KEYWORDS: dict[Command, str] = {
    "menu": f"""
        menu; menu principal; le menu; accueil; début; debut; commencer; recommencer; options
        retour; services
        {GREETINGS}
    """,
    "help": """
        aide; aidez-moi; aide-moi; aidez moi svp; à l'aide; info; infos; renseignement; informations
        au secours; mode d'emploi; assistance
    """,
    "balance": """
        solde; mon solde; sold; le solde; solde du compte; consulter solde; voir solde; solde svp
        mon argent; portefeuille; reste; mon compte; balance
    """,
    "send": """
        envoyer; envoyer argent; envoyer de l'argent; envoi; envoi d'argent; envoie argent; virement
        transfert; transférer; transfert d'argent; faire un transfert; faire un virement
        envoyé argent
        nouveau transfert; envoyer largent; envoyer dargent
    """,
    "history": """
        historique; mon historique; transactions; mes transactions; opérations; mes opérations
        dernières opérations; dernières transactions; activité; mouvements; historik
    """,
    "statement": """
        relevé; mon relevé; relevé de compte; relever; relever de compte; extrait; extrait de compte
        pdf; relevé bancaire; relevé mensuel; relevés
    """,
    "cards": """
        cartes; mes cartes; ma carte; carte; liste des cartes; voir mes cartes; kart
        mes kart
    """,
    "link": """
        lier; lier carte; lier une carte; lier ma carte; ajouter carte; ajouter une carte
        nouvelle carte; activer carte; associer carte; connecter carte; activer ma carte
    """,
    "block": """
        bloquer; bloquer carte; bloquer ma carte; bloque ma carte; bloquez ma carte; carte perdue
        carte volée; opposition; faire opposition; geler carte; blocage; blocké carte; bloqué carte
    """,
    "unblock": """
        débloquer; débloquer carte; débloquer ma carte; débloque ma carte; débloquez ma carte
        déverrouiller; réactiver carte; déblocage; réactiver ma carte; dégeler
    """,
    "change_pin": """
        changer pin; changer code; changer mon code; changer mon pin; nouveau code; nouveau pin
        changer le code; changement de code; changer de code; modifier pin; modifier code
        changer code pin; code pin; code secret; changer code secret
    """,
    "reset_pin": """
        réinitialiser pin; réinitialiser code pin; réinitialiser mon code; pin oublié; code oublié
        code pin oublié; j'ai oublié mon code; j'ai oublié mon pin; renvoyer le code
        renvoyer un code; envoyer un nouveau code
    """,
    "kyc": """
        vérifier; vérification; vérifier identité; vérifier mon identité; identité; pièce d'identité
        mon identité; identification; documents; kyc; carte d'identité; cni; justificatif
    """,
    "limits": """
        limites; limite; mes limites; plafond; plafonds; mon plafond; mes plafonds; ma limite
        limite journalière; plafond mensuel
    """,
    "add_money": """
        dépôt; déposer; ajouter de l'argent; recharger; recharge; dépôt d'argent; faire un dépôt
        alimenter; alimenter mon compte; déposer de l'argent; recharger mon compte
    """,
    "withdraw": """
        retrait; retirer; retirer de l'argent; faire un retrait; retrait d'argent; retirer argent
        retirer du cash; prendre du cash
    """,
    "nearest_agent": """
        trouver un agent; agent proche; agents; point de service; agent le plus proche
        où trouver un agent; agents proches; points de service
    """,
    "fees": "frais; tarifs; tarif; les frais; frais d'envoi; frais de transfert",
    "declined": """
        paiement refusé; pourquoi refusé; transaction refusée; transfert refusé
        transaction échouée; paiement échoué; échec du paiement
    """,
    "wrong_recipient": """
        mauvais destinataire; mauvais numéro; erreur de numéro; erreur d'envoi; mauvaise personne
        erreur de destinataire; je me suis trompé de numéro; erreur de transfert
    """,
    "contact": """
        contact; horaires; contacts; vos horaires; heures d'ouverture; votre numéro; contacter
        coordonnées; numéro du service client
    """,
    "language": """
        langue; langues; changer langue; changer de langue; français; francais; anglais; en français
        en anglais; changer la langue; parler français; parler anglais
    """,
    "person": """
        personne; humain; conseiller; agent; service client; service clientèle; parler à quelqu'un
        parler à une personne; opérateur; réclamation; plainte; support; un conseiller
        parler à un agent
        parler à un conseiller; téléconseiller
    """,
    "register": """
        inscription; inscrire; s'inscrire; m'inscrire; ouvrir un compte; créer un compte
        nouveau compte; créer compte; ouvrir compte; enregistrer; enregistrement; adhérer
        inscris-moi
        inscrivez-moi
    """,
    "yes": """
        oui; ui; ouais; ouai; wi; oui oui; ok; okay; okey; d'accord; dac; dacc; daccord; confirmer
        confirme; je confirme; oui je confirme; confirmé; oui confirmer; oui confirme; oui svp
        oui s'il vous plaît; oui s'il te plaît; oui merci; oui d'accord; ok d'accord; oui ok; ok oui
        valider; je valide; oui je valide; validé; exact; oui exact; exactement; c'est exact
        c'est correct; correct; c'est ça; oui c'est ça; c'est bien ça; oui c'est bien ça
        c'est juste
        bien sûr; oui bien sûr; absolument; allez-y; vas-y; oui allez-y; oui vas-y; ok vas-y
        ok allez-y; continuer; continuez; oui continuer; oui continuez; j'accepte; accepter
        oui j'accepte; je suis d'accord; oui je suis d'accord; oui envoyer; oui envoie; oui envoyez
        oui envoie l'argent; ok envoie; ok envoyez; oui monsieur; oui madame; oui chef; entendu
    """,
    "no": """
        non; nn; nan; non non; non merci; pas maintenant; pas du tout; pas encore; jamais; faux
        c'est faux; ce n'est pas correct; c'est pas correct; ce n'est pas ça; c'est pas ça; refuser
        je refuse; pas d'accord; je ne suis pas d'accord; je suis pas d'accord; je ne veux pas
        je veux pas; non je ne veux pas; non je veux pas; incorrect; non pas ça; non n'envoie pas
        non n'envoyez pas; non annuler; non annule; non arrête; non monsieur; non madame
        surtout pas
        mauvais; non attends; non svp
    """,
    "cancel": """
        annuler; annule; annulez; annulé; annulation; arrêter; arrête; arrêtez; stop; stoppez
        quitter
        fin; sortir; laisser; laisse; laisse tomber; laissez tomber; n'envoie pas; n'envoyez pas
        ne pas envoyer; envoie pas; envoyez pas; ne l'envoie pas; abandonner; abandonne; tant pis
        oublie; oubliez; oublie ça; annule ça; annulez ça; annuler tout; au revoir; stop stop
        stop annule; annuler svp; annulez svp; arrête tout; fermer; terminer
    """,
}
