"""Labeled texts in the style of real users; a test checks that few are resolver phrases.

If several commands are listed, any of them is correct. `none` marks texts without a matching
command, for which a clarifying question is acceptable.
"""

_ENGLISH = """
menu            | hellooo!!
menu            | Good morning, how's the day?
menu            | show me the options pls
menu            | can i see the main menu again
menu            | kushe ya
help            | i dnt understand how dis works
help            | how can i use this thing
help            | Please I need assistance
help            | what can u do for me
help            | hw do i use it
help,send       | How do I send money to my brother?
balance         | wat is my balanse
balance         | how much cash do i have in there
balance         | blnce pls
balance         | Could you tell me my current balance?
balance         | how much i get for account
balance         | chek my acount balanc
balance         | How much money remains in my wallet
balance         | omos moni lef na mi wallet
send            | i wanna send some money
send            | snd 200 to my mama
send            | Please send Le 1,500 to 076 555 123
send            | transfr 300 to +232 77 123 456
send            | i'd like to transfer cash to my uncle
send            | I want to send money to Kadiatu
send            | send 75 to card TAP-000123
send            | trasnfer mony to frend
send            | a wan send small moni to mi sista
history         | show me transactions from last week
history         | wat did i spend dis week
history         | my recent payments
history         | list of my past transfers
history,person  | did you send it?
history,person  | Did the money I sent reach him?
history         | who sent me money this morning
history         | transacton histroy
statement       | i need my statement for september
statement       | can u send me my acount statement
statement       | pdf statement for last month please
statement       | Statment of acount pls
statement       | I'd like to download a bank statement
cards           | which cards are on my account?
cards           | show me all my cards please
cards           | let me see my card
cards           | is my card still active
cards           | list my crads
link            | i want to add my new card
link            | how to link card to wallet
link            | i got a new card, activate it
link            | pls link dis card to mi account
link            | connect a new card to my account
block           | someone has stolen my card!!
block           | i lost my crad
block           | plz blok my card
block           | my card got missing yesterday
block           | they tief mi kard
block           | block my card, someone will send money
block           | I need to freeze my card right now
unblock         | i found my card, unblock it
unblock         | pls unblok my card
unblock         | can you unlock the card again
unblock         | make my card active again, i found it
change_pin      | i want to chnage my pin
change_pin      | how can i set a new pin?
change_pin      | change pin number please
change_pin,person | forgot my pin
change_pin      | someone saw my pin, i want another one
kyc             | i want to verify my acount
kyc             | how do i upload my id
kyc             | here is my national id card
kyc             | is my identity verified already
kyc             | verfy my identity pls
limits          | how much can i transfer per day?
limits          | whats the max i can send
limits          | what is my dayly limit
limits          | my limits pls
limits          | how much am I allowed to keep on the wallet
language        | speak french please
language        | can you talk to me in french
language        | change languge
language        | i want english
person          | i want to talk with somebody
person          | let me talk to customer care now
person          | i need to speak to a human agent
not_arrived     | I did not receive money
not_arrived     | i sent 500 but she didn't receive it
person          | my money has disappeared from my account
wrong_recipient | I sent money to a wrong number
person          | pls call me i have a problem
person          | you people are thieves, give me back my money
register        | i wanna register
register        | how to open an account with you
register        | sign me up please
register        | i am new and want an account
register        | a wan open acount
yes             | YES!
yes             | Okay 👍
yes             | yess pls
yes             | Go ahead.
no              | Nooo
no              | no, thank you
no,cancel       | don't send
cancel          | STOP!!
cancel          | canceld it
cancel          | please stop the transfer
cancel,no       | i dont want to send it again
cancel          | i changed my mind, stop
none            | yesterday
none            | yes but change the amount
none            | yes but send only 200
none            | no problem
none            | what a beautiful day
none            | my sister is getting married on saturday
loans           | can you lend me 500
none            | send me 500 please
none            | my uncle will send the money
none            | Barcelona or Real Madrid?
airtime         | i want to buy airtime
none            | how old are you
none            | he told me to send money, is that normal?
none            | thx a lot my friend
none            | okay but not now
none            | xkcd zzz
"""

_FRENCH = """
menu            | Bonjouuur
menu            | bonsoir, vous allez bien ?
menu            | affichez le menu svp
menu            | slt cv
help            | j'ai besoin d'un coup de main
help            | comment je peux utiliser ça
help            | je comprend pas comment ca marche
help            | aidez moi je sais pas quoi faire
help,send       | Comment envoyer de l'argent à mon frère ?
balance         | cest quoi mon sold
balance         | combien j'ai dans mon compte svp
balance         | il reste combien dans le portefeuille
balance         | je voudrais connaitre mon solde actuel
balance         | mon solde stp
balance         | j'ai combien là
send            | je veux envoyé de l'argent à ma maman
send            | envoie 2000 à la carte CARD-123
send            | envoyez 1 500 au 076 12 34 56
send            | jaimerais faire un transfer d'argent
send            | envoyer 500 fcfa a mon pere
send            | je veux transférer 300 à Ibrahim
send            | virement vers un ami
history         | montre moi mes dernieres transaction
history         | je veux l'historique de mes opérations
history         | mes dépenses de la semaine
history,person  | est-ce que l'argent est bien parti ?
history         | qui m'a envoyé de l'argent aujourd'hui
statement       | je voudrais le relevé du mois de mars
statement       | envoyez moi le relevé en pdf
statement       | j'ai besoin d'un relever de compte
statement       | mon relevé bancaire svp
cards           | affiche mes cartes
cards           | je veux voir la liste de mes cartes
cards           | ma carte est-elle active ?
link            | je veux ajouter ma nouvelle carte
link            | associer ma carte au compte
link            | comment lier la carte à mon compte
block           | on a volé ma carte hier
block           | g perdu ma carte
block           | bloquer vite ma carte svp
block           | je retrouve plus ma carte
unblock         | j'ai retrouvé la carte, débloquez-la
unblock         | debloker ma carte
unblock         | pouvez vous réactiver ma carte
change_pin      | je voudrais changer mon code pin
change_pin      | modifier le code secret svp
change_pin,person | j'ai oublié le code
kyc             | vérification de mon identité
kyc             | je veux envoyer ma carte d'identité
kyc             | comment faire vérifier mon identité
limits          | c'est quoi mon plafond
limits          | combien puis-je envoyer en un jour
limits          | quelle est la limite par mois
language        | je veux parler français
language        | mettez l'anglais
language        | changer de langue svp
person          | je veux parler avec quelqu'un
person          | passez moi un conseiller svp
person,history  | je n'ai toujours pas reçu l'argent
person          | j'ai un souci avec mon compte
wrong_recipient | j'ai envoyé au mauvais numéro
register        | je veux minscrire
register        | comment ouvrir un compte chez vous
register        | créez moi un compte
yes             | Oui !
yes             | D’accord
yes             | oui je confirme
no              | Non merci
no              | nooon
cancel,no       | n'envoie pas !
cancel          | annulez le transfert svp
cancel          | laisse tomber
cancel,no       | je veux plus envoyer
none            | oui mais change le montant
none            | oui mais à mon autre frère
none            | hier soir
none            | il fait chaud aujourd'hui
none            | mon oncle va envoyer l'argent
none            | tu as mangé ?
none            | envoie-moi 500
none            | merci beaucoup mon ami
airtime         | je veux acheter du crédit
none            | le match est à quelle heure
"""


def _parse_samples(table: str) -> list[tuple[str, frozenset[str]]]:
    rows = (line.split("|", 1) for line in table.strip().splitlines())
    return [(text.strip(), frozenset(expected.strip().split(","))) for expected, text in rows]


SAMPLES = _parse_samples(_ENGLISH) + _parse_samples(_FRENCH)
