"""How people ask for things in French, as it is written in West African chats too.

Laid out as the English ones.
"""

from tapgate.messenger.model.kinds import Command

GREETINGS = """
    bonjour; bonsoir; salut; coucou; bjr; bsr; slt; cc; bonne journée; bonne soirée; allô; allo
    bonjour monsieur; bonjour madame; bonsoir à tous; ça va; cava; comment ça va; cmt cv
    salam aleykoum; bonne arrivée; on dit quoi; wesh
"""

WORDS: dict[Command, str] = {
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
    "kyc": """
        vérifier; vérification; vérifier identité; vérifier mon identité; identité; pièce d'identité
        mon identité; identification; documents; kyc; carte d'identité; cni; justificatif
    """,
    "limits": """
        limites; limite; mes limites; plafond; plafonds; mon plafond; mes plafonds; ma limite
        limite journalière; plafond mensuel
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

SAMPLES: dict[Command, str] = {
    "menu": """
        montre-moi le menu
        affiche le menu
        revenir au menu
        retour au menu principal
        je veux voir le menu
        quels sont les services
        quelles sont les options
        la liste des services
        bonjour comment allez-vous
        bonjour comment ça va
        salut ça va
        bonsoir comment vas-tu
        bonjour je suis là
        bonjour tapgate
        allô il y a quelqu'un
        on recommence
        recommencer depuis le début
        retour à l'accueil
        commençons
        ouvrir le menu svp
        qu'est-ce que vous proposez
        montrez-moi tous vos services
    """,
    "help": """
        j'ai besoin d'assistance
        guidez-moi svp
        qu'est-ce que je dois écrire
        je ne comprends rien à ce service
        comment utiliser
        j'ai besoin d'aide
        pouvez-vous m'aider
        peux-tu m'aider
        aidez-moi s'il vous plaît
        je ne sais pas quoi faire
        je sais pas comment faire
        comment ça marche
        comment ça fonctionne
        comment utiliser ce service
        comment on fait
        comment faire
        que peux-tu faire
        que pouvez-vous faire
        qu'est-ce que je peux faire ici
        c'est quoi ça
        c'est quoi tapgate
        expliquez-moi comment ça marche
        je ne comprends pas
        je comprends rien
        je suis perdu
        je suis bloqué je ne sais pas quoi écrire
        besoin d'informations
        donnez-moi des explications
        quelles sont les commandes
        comment envoyer de l'argent
        comment je fais pour envoyer de l'argent
        quels sont les frais
        combien coûte un transfert
        c'est combien les frais d'envoi
    """,
    "balance": """
        combien dans mon compte
        j'ai quoi sur mon compte
        l'argent qui reste
        il me reste quoi
        combien j'ai là
        quel est mon solde
        c'est quoi mon solde
        je veux voir mon solde
        je veux connaître mon solde
        montre-moi mon solde
        donne-moi mon solde
        donnez-moi mon solde svp
        envoyez-moi mon solde
        consulter mon solde
        vérifier mon solde
        voir mon solde
        le solde de mon compte
        solde de mon portefeuille
        combien j'ai
        combien j'ai sur mon compte
        combien il me reste
        il me reste combien
        il reste combien sur mon compte
        combien d'argent j'ai
        j'ai combien sur mon compte
        j'ai combien dans mon portefeuille
        combien me reste-t-il
        combien y a-t-il sur mon compte
        y a combien sur ma carte
        est-ce que j'ai de l'argent
        est-ce qu'il y a de l'argent sur mon compte
        ai-je assez d'argent
        mon argent disponible
        solde disponible
        solde actuel
        il y a quoi dans mon compte
        mon salaire est-il arrivé
    """,
    "send": """
        je veux envoyer de l'argent
        je voudrais envoyer de l'argent
        j'aimerais envoyer de l'argent
        je souhaite envoyer de l'argent
        je dois envoyer de l'argent
        puis-je envoyer de l'argent
        est-ce que je peux envoyer de l'argent
        envoyer de l'argent à mon frère
        envoyer de l'argent à ma mère
        envoyer de l'argent à un ami
        envoyer de l'argent à quelqu'un
        envoie de l'argent à ma sœur
        envoyez de l'argent à mon père
        envoie 500 à 076123456
        envoie 2000 à la carte 1234
        envoyer 1000 au 077123456
        envoyez 5000 francs à fatou
        envoie 100 à mamadou
        je veux envoyer 500 à ma femme
        je veux envoyer 1000 francs au 620123456
        je veux faire un transfert
        je veux faire un virement
        faire un transfert à un ami
        transférer de l'argent
        transférer 300 à aminata
        transfère 200 à mon frère
        je veux transférer de l'argent sur une carte
        faire un envoi d'argent
        donner 500 à mon ami
        donne 100 à ma sœur
        payer quelqu'un
        payer 300 à moussa
        verser de l'argent à quelqu'un
        verser 1000 à mon fils
        je ve envoyer argent
        jveux envoyé de largent
        envoi 500 a mon frere
        fais un virement de 200 à mon cousin
        partager de l'argent avec un ami
        envoie l'argent à mon ami
    """,
    "history": """
        mes transactions de la semaine
        les transactions d'aujourd'hui
        les transferts que j'ai faits
        les paiements du mois dernier
        qu'est-ce qui est entré aujourd'hui
        qui m'a viré de l'argent
        montre-moi mes transactions
        voir mes transactions
        voir mon historique
        je veux voir mon historique
        historique de mon compte
        historique des transactions
        mes dernières transactions
        mes derniers paiements
        liste de mes opérations
        les dernières opérations sur mon compte
        les 5 dernières transactions
        qu'est-ce que j'ai dépensé
        j'ai dépensé combien
        mes dépenses
        où est passé mon argent
        à qui j'ai envoyé de l'argent
        qui m'a envoyé de l'argent
        qui m'a payé
        quels paiements j'ai faits
        est-ce que le transfert est passé
        est-ce que mon paiement est passé
        est-ce que l'argent est arrivé
        est-ce que l'argent a été envoyé
        as-tu envoyé l'argent
        avez-vous envoyé
        est-ce que tu as envoyé
        c'est envoyé
        est-ce que j'ai reçu de l'argent
        ai-je reçu de l'argent
        l'argent que j'ai envoyé hier
        mon dernier transfert
        les mouvements de mon compte
        qu'est-ce qui a été débité
        argent reçu
    """,
    "statement": """
        toutes mes transactions en pdf
        un document de mes transactions
        une preuve de mes paiements
        le rapport des opérations de l'année
        je veux mon relevé
        je veux un relevé de compte
        j'ai besoin d'un relevé
        envoyez-moi mon relevé
        envoie-moi mon relevé de compte
        donnez-moi mon relevé
        télécharger mon relevé
        relevé en pdf
        relevé du mois dernier
        relevé de ce mois
        relevé du mois d'octobre
        relevé de janvier à mars
        relevé de mes opérations
        un extrait de mon compte
        imprimer mon relevé
        je veux le pdf de mes transactions
        un document avec toutes mes opérations
        un justificatif de mes opérations pour l'ambassade
        rapport de mon compte
        obtenir un relevé bancaire
        puis-je avoir mon relevé
        exporter mes transactions
        le relevé des trois derniers mois
        releve svp
    """,
    "cards": """
        des informations sur mes cartes
        est-ce que ma carte fonctionne encore
        je peux voir mes cartes
        l'état de mes cartes
        voir mes cartes
        montre-moi mes cartes
        montrez mes cartes
        quelles sont mes cartes
        quelles cartes j'ai
        combien de cartes j'ai
        j'ai combien de cartes
        liste de mes cartes
        l'état de ma carte
        le statut de ma carte
        est-ce que ma carte est active
        est-ce que ma carte marche
        le numéro de ma carte
        le numéro de série de ma carte
        informations sur ma carte
        les cartes de mon compte
        les cartes de mes enfants
        la carte de mon enfant
        gérer mes cartes
        vérifier ma carte
        afficher mes cartes
        quand expire ma carte
        détails de ma carte
    """,
    "link": """
        enregistrer cette carte sur mon compte
        ma nouvelle carte n'est pas liée
        lier une carte pour mon enfant
        je viens de recevoir une carte
        je veux lier une carte
        je veux lier ma carte à mon compte
        lier une nouvelle carte
        lier ma nouvelle carte
        ajouter une carte à mon compte
        ajouter ma carte
        ajouter une autre carte
        j'ai une nouvelle carte
        j'ai reçu ma carte
        j'ai acheté une carte
        j'ai eu une nouvelle carte
        associer une carte à mon compte
        connecter ma carte à mon portefeuille
        rattacher une carte
        attacher ma carte
        activer ma nouvelle carte
        comment activer ma carte
        enregistrer ma carte
        enregistrer une nouvelle carte
        mettre une carte sur mon compte
        relier ma carte
        je veux utiliser une nouvelle carte
        configurer ma carte
    """,
    "block": """
        annulez la carte
        stoppez la carte
        j'ai égaré ma carte
        ma carte est introuvable
        je crois qu'on m'a volé ma carte
        mettre un blocage sur ma carte
        je veux bloquer ma carte
        il faut bloquer ma carte
        bloquez ma carte s'il vous plaît
        bloque la carte vite
        bloquez ma carte immédiatement
        j'ai perdu ma carte
        je ne trouve plus ma carte
        je trouve pas ma carte
        ma carte est perdue
        ma carte a disparu
        ma carte est volée
        ma carte a été volée
        on m'a volé ma carte
        on a volé ma carte
        quelqu'un a volé ma carte
        quelqu'un a pris ma carte
        quelqu'un utilise ma carte
        des voleurs ont pris ma carte
        faire opposition sur ma carte
        geler ma carte
        désactiver ma carte
        désactivez ma carte
        verrouiller ma carte
        suspendre ma carte
        stopper ma carte
        arrêter ma carte
        annuler ma carte
        déclarer une carte perdue
        signaler un vol de carte
        ma carte est abîmée
        jai perdu ma kart
    """,
    "unblock": """
        la carte est retrouvée
        enlevez le blocage
        pourquoi avez-vous bloqué ma carte
        je veux réutiliser ma carte bloquée
        j'avais bloqué ma carte par erreur
        je veux débloquer ma carte
        débloquez ma carte s'il vous plaît
        pouvez-vous débloquer ma carte
        débloquer la carte
        j'ai retrouvé ma carte
        j'ai trouvé ma carte perdue
        réactiver ma carte bloquée
        réactivez ma carte
        activer ma carte bloquée
        remettre ma carte en marche
        déverrouiller ma carte
        dégeler ma carte
        lever le blocage
        lever l'opposition
        enlever le blocage de ma carte
        retirer le blocage
        ma carte est bloquée
        ma carte est bloquée je veux l'utiliser
        pourquoi ma carte est bloquée
        rouvrir ma carte
        rétablir ma carte
        rendre ma carte active
    """,
    "change_pin": """
        je veux un autre code
        mon code est connu
        quelqu'un sait mon code pin
        j'ai perdu mon code
        changez mon code svp
        je veux changer mon code
        je veux changer mon code pin
        je veux changer mon code secret
        changer mon mot de passe
        comment changer mon code pin
        modifier mon code secret
        modifier mon pin
        je veux un nouveau code
        je veux un nouveau pin
        choisir un autre code
        mettre un nouveau code
        définir un nouveau code secret
        réinitialiser mon code
        réinitialiser mon pin
        remplacer mon code pin
        quelqu'un connaît mon code
        quelqu'un a vu mon code
        on a vu mon code secret
        mon code n'est plus secret
        j'ai oublié mon code
        j'ai oublié mon code pin
        j'ai oublié mon code secret
        je ne me souviens plus de mon code
        mot de passe oublié
        nouveau mot de passe
        changement de code secret
    """,
    "kyc": """
        comment envoyer mes documents
        de quoi avez-vous besoin pour vérifier
        j'ai ma pièce ici
        mon statut kyc
        pourquoi mon compte n'est pas vérifié
        je veux vérifier mon identité
        vérifier mon compte
        comment vérifier mon compte
        faire vérifier mon compte
        compléter ma vérification
        terminer mon kyc
        envoyer ma pièce d'identité
        envoyer ma carte d'identité
        envoyer mes documents
        envoyer une photo de ma carte d'identité
        voici mon passeport
        voici ma carte d'électeur
        télécharger mes documents
        soumettre mes papiers
        je veux envoyer mon passeport
        ma carte nationale d'identité
        faire un selfie
        envoyer mon selfie
        justificatif de domicile
        mon compte est-il vérifié
        est-ce que je suis vérifié
        où en est ma vérification
        ma vérification est acceptée
        augmenter mon niveau
        passer au niveau supérieur
        confirmer mon identité
        vérification d'identité
        quels papiers faut-il
        je veux m'identifier
    """,
    "limits": """
        montant max à envoyer
        le maximum par jour
        ai-je atteint ma limite
        combien je peux dépenser avec ma carte
        combien je peux recevoir
        quelles sont mes limites
        quelle est ma limite
        quel est mon plafond
        voir mes plafonds
        combien je peux envoyer
        combien puis-je envoyer
        combien je peux envoyer par jour
        combien je peux envoyer par mois
        je peux envoyer combien
        le maximum que je peux envoyer
        quel est le montant maximum
        montant maximal par transfert
        limite par jour
        limite de transfert
        limite d'envoi
        plafond de transfert
        plafond de mon compte
        solde maximum
        combien je peux garder sur mon compte
        est-ce qu'il y a une limite
        augmenter ma limite
        augmenter mon plafond
        ma limite est trop basse
        puis-je envoyer plus de 5000
        quels sont les frais
        combien coûte un transfert
        c'est combien les frais d'envoi
    """,
    "language": """
        je veux changer de langue
        changer la langue en anglais
        passer en français
        passer en anglais
        mettre en français
        mettre en anglais
        parlez-vous français
        tu parles français
        parlez-vous anglais
        je ne parle pas anglais
        je ne comprends pas l'anglais
        je parle pas anglais
        je préfère le français
        en français s'il vous plaît
        français svp
        anglais svp
        parle-moi en français
        parlez en français
        je veux parler en français
        choisir la langue
        une autre langue
        écrivez en français
        on peut parler français
        autres langues
    """,
    "person": """
        est-ce que je peux parler à quelqu'un
        puis-je parler avec quelqu'un
        j'ai perdu mon code
        il manque de l'argent sur mon compte
        on a pris mon argent
        le transfert a échoué
        ma transaction est en attente
        où est mon argent
        discuter avec un humain
        joindre le support
        vous avez coupé mon argent
        je veux déposer une plainte
        j'ai des soucis avec ma carte
        je veux parler à une personne
        je veux parler à quelqu'un
        je veux parler à un humain
        je veux parler à un conseiller
        je voudrais parler avec un agent
        parler avec une vraie personne
        mettez-moi en contact avec un conseiller
        passez-moi le service client
        contacter le service client
        appelez-moi
        rappelez-moi s'il vous plaît
        quelqu'un peut m'appeler
        donnez-moi votre numéro
        je veux faire une réclamation
        j'ai une plainte
        j'ai un problème
        il y a un problème avec mon compte
        problème sur mon compte
        on m'a débité deux fois
        mon argent a disparu
        mon argent n'est pas arrivé
        je n'ai pas reçu l'argent
        je n'ai pas reçu mon argent
        j'ai pas reçu l'argent
        l'argent n'est pas arrivé
        il n'a pas reçu l'argent
        elle n'a rien reçu
        je n'ai rien reçu
        j'ai envoyé l'argent à la mauvaise personne
        je me suis trompé de numéro
        j'ai fait une erreur de transfert
        je veux être remboursé
        remboursez-moi
        rendez-moi mon argent
        je veux récupérer mon argent
        annuler un transfert déjà fait
        je me suis fait arnaquer
        c'est une arnaque
        on m'a escroqué
        c'est une fraude
        mon compte a été piraté
        paiement échoué mais argent débité
        je veux voir le responsable
        signaler un problème
        es-tu un robot
        j'ai oublié mon code
        j'ai oublié mon code pin
        j'ai oublié mon code secret
        je ne me souviens plus de mon code
        fermer mon compte
        supprimer mon compte
    """,
    "register": """
        comment avoir un portefeuille
        comment créer un compte
        un compte pour moi svp
        je veux utiliser ce service je n'ai pas de compte
        ouvrir un portefeuille
        je veux m'inscrire
        je voudrais m'inscrire
        comment s'inscrire
        comment m'inscrire
        comment je fais pour m'inscrire
        je veux ouvrir un compte
        je veux créer un compte
        je veux un compte
        créer un compte pour moi
        ouvrez-moi un compte
        je n'ai pas de compte
        j'ai pas encore de compte
        je n'ai pas encore de compte
        comment avoir un compte
        comment ouvrir un compte
        je suis nouveau
        je suis nouvelle ici
        je suis un nouveau client
        je veux devenir client
        je veux rejoindre tapgate
        je veux commencer à utiliser tapgate
        créer mon portefeuille
        enregistrez-moi
        enregistrer mon numéro
        puis-je m'inscrire avec ce numéro
        jveux minscrire
    """,
    "cancel": """
        annuler le transfert
        annuler le paiement
        annuler l'opération
        annule tout
        annulez ce transfert s'il vous plaît
        je veux annuler
        arrêter le transfert
        arrête le paiement
        stoppe le transfert
        n'envoie pas l'argent
        n'envoyez pas l'argent
        ne pas envoyer l'argent
        il ne faut pas envoyer
        je ne veux pas envoyer
        je ne veux plus envoyer
        je veux plus envoyer d'argent
        je ne veux pas envoyer d'argent
        j'ai changé d'avis
        je ne veux plus
        je veux plus
        je veux pas continuer
        je ne veux pas continuer
        attends n'envoie pas
        attendez n'envoyez pas encore
        on laisse tomber
        on oublie le transfert
        je veux arrêter
        ce n'est pas le bon montant arrête
        ne fais pas ça
        je veux sortir
    """,
}

NOTHING = """
    pas de souci
    pas de problème
    il y a pas de quoi
    tu viens d'où
    tu as quel âge
    as-tu bien dormi
    tu fais quoi
    mon ami se marie
    il pleut
    je suis fatigué
    je suis content
    la vie est dure
    c'est dimanche aujourd'hui
    hier soir on a dansé
    merci mon frère
    le prix du riz
    j'aime cette application
    cette application est nulle
    partagez avec vos amis
    mes salutations à la famille
    donne-moi une minute
    merci
    merci beaucoup
    merci bien
    c'est gentil
    que dieu te bénisse
    mdr
    quel temps fait-il
    quelle heure est-il
    qui es-tu
    comment tu t'appelles
    je t'aime
    tu es bête
    joyeux anniversaire
    bonne année
    à demain
    hier
    demain
    demain matin
    plus tard
    je le ferai plus tard
    attends
    un instant
    attendez une minute
    laisse-moi réfléchir
    je suis au marché
    je m'appelle mamadou
    mon frère est malade
    j'ai faim
    qui a gagné le match
    raconte-moi une blague
    quelles sont les nouvelles
    je veux retirer de l'argent
    retrait d'argent
    faire un retrait
    je veux déposer de l'argent
    faire un dépôt
    recharger mon compte
    acheter du crédit
    acheter du crédit téléphonique
    acheter des unités
    payer ma facture
    payer l'électricité
    j'ai besoin d'un prêt
    prête-moi de l'argent
    envoie-moi de l'argent
    envoyez-moi de l'argent
    tu peux m'envoyer de l'argent
    dis à mon frère de m'envoyer de l'argent
    mon frère va m'envoyer de l'argent
    mon patron va envoyer l'argent demain
    il a dit qu'il va envoyer
    demander de l'argent
    quelqu'un me demande d'envoyer de l'argent
    est-ce que c'est sûr d'envoyer de l'argent
    combien de temps dure un transfert
    taux de change
    le taux du dollar
    où est votre bureau
    où se trouve l'agent le plus proche
    à quelle heure vous ouvrez
    vous recrutez
    je cherche du travail
    envoie-moi une photo
    envoie-moi ta position
    envoyez-moi le code
    renvoyez le code
    je n'ai pas reçu le code
    j'ai déjà envoyé
    j'ai déjà envoyé l'argent
    oui mais change le montant
    oui mais pas aujourd'hui
    oui mais à un autre numéro
    non je veux dire un autre numéro
    changer le montant
    changer le numéro
    le montant est faux
    ok mais attends
    tu es sûr
    c'est tout
    qu'est-ce que tu veux dire
    pourquoi
    c'est qui
    c'est bon
    vraiment
    le réseau est mauvais
    mon téléphone est cassé
    mets de la musique
"""
