"""English keywords for each command, including West African chat spellings."""

from tapgate.messenger.model import Command

#: Greetings also show the menu, but do not end a command in progress.
GREETINGS = """
    hi; hello; hey; helo; hallo; hy; hiya; yo; good morning; good afternoon; good evening
    good day; gud morning; gud evening; gm; morning; evening; greetings; hi there; hello there
    hey there; kushe; kushe o; kusheh; aw di bodi; how di body; how far; aw yu du; how una dey
    salaam; salam; assalamu alaikum; salam alaikum; whats up; wassup; sup
"""

KEYWORDS: dict[Command, str] = {
    "menu": f"""
        menu; main menu; the menu; show menu; home; start; begin; restart; start over; options; back
        services
        {GREETINGS}
    """,
    "help": """
        help; help me; help please; pls help; hlp; info; support info; guide
        instructions; faq
    """,
    "balance": """
        balance; my balance; bal; blnce; blance; ballance; balans; check balance; account balance
        wallet; wallet balance; my wallet; chk bal; check bal; mi balans; funds
    """,
    "send": """
        send; send money; money transfer; transfer; transfer money; snd mony; snd money; send mony
        send cash; send funds; make a transfer; new transfer; sen moni; send moni; remit
    """,
    "history": """
        history; my history; transactions; my transactions; transaction history; recent; activity
        recent transactions; last transactions; past transactions; trans history; hist
    """,
    "statement": """
        statement; my statement; account statement; statements; bank statement; monthly statement
        pdf; pdf statement; statment; mini statement; get statement
    """,
    "cards": "cards; my cards; my card; card; list cards; show cards; card list; card status; kard",
    "link": """
        link; link card; link a card; link my card; add card; add a card; new card; activate card
        connect card; pair card
    """,
    "block": """
        block; block card; block my card; freeze; freeze card; lock card; lost card; stolen card
        card lost; card stolen; block kard
    """,
    "unblock": """
        unblock; unblock card; unblock my card; unfreeze; unfreeze card; unlock card; unlock
        reactivate card
    """,
    "change_pin": """
        change pin; pin; new pin; change my pin; pin change; update pin; change_pin; modify pin
    """,
    "reset_pin": """
        reset pin; pin reset; reset my pin; reset_pin; forgot pin; forgot my pin; i forgot my pin
        forgotten pin; lost pin; recover pin; new code; resend code; send a new code
    """,
    "kyc": """
        kyc; verify; verification; verify identity; verify me; verify my identity; id; identity
        my kyc; identification; documents; upload id
    """,
    "limits": "limits; limit; my limits; my limit; daily limit; monthly limit; transfer limit",
    "add_money": """
        add money; deposit; top up; topup; add cash; deposit money; cash in; cashin; add funds
        load wallet; fund wallet; top up my wallet; put money; ad moni; dipozit; put moni
    """,
    "withdraw": """
        withdraw; withdrawal; cash out; cashout; withdraw cash; withdraw money; take out money
        get cash; widro; pul moni; pull money; kash awt
    """,
    "nearest_agent": """
        nearest agent; find agent; find an agent; agents; agent near me; agents near me
        closest agent; agent location; where is an agent; nearby agent; nearest_agent; fɛn ejɛnt
    """,
    "fees": """
        fees; fee; charges; the fees; your fees; transfer fee; transfer fees; sending fee; tariff
        tariffs; chaj
    """,
    "declined": """
        payment declined; why declined; declined payment; payment failed; why was i declined
        transaction failed; transaction declined; failed transaction; failed payment
    """,
    "wrong_recipient": """
        wrong recipient; wrong number; wrong person; sent to wrong number; wrong transfer
        sent to the wrong person; sent to wrong person; rɔŋ nɔmba; rɔŋ pɔsin; wrong_recipient
    """,
    "contact": """
        contact; opening hours; contact us; your number; office hours
        contact details; support number; customer care number; hotline; una nɔmba
    """,
    "language": """
        language; change language; lang; english; french; switch language; in english; in french
        languages; speak english; speak french
    """,
    "person": """
        person; human; agent; talk to a person; talk to person; real person; operator; support
        customer care; customer service; customer support; call center; live agent; complaint
        representative; talk to agent; care; staff
    """,
    "register": """
        register; registration; sign up; signup; join; open account; create account; new account
        registar; subscribe; enroll; register me
    """,
    "yes": """
        yes; y; yeah; yea; yep; yup; yh; yah; ya; ok; okay; okey; k; oki; sure; confirm; confirmed
        yes please; yes pls; yes confirm; i confirm; yes i confirm; yes i do; yes ok; ok yes
        okay yes; sure yes; yes sure; yes yes; correct; yes correct; that is correct; thats correct
        its correct; yes right; thats right; go ahead; yes go ahead; ok go ahead; proceed
        yes proceed; continue; yes continue; agreed; i agree; approve; approved; accept; i accept
        absolutely; of course; definitely; ok confirm; do it; yes do it; ok do it
        yes send; yes send it; yes send the money; ok send; ok send it; yes thanks; yes thank you
        alright; all right; na so; yes o; yes na so; yes sir; yes ma; yes boss
    """,
    "no": """
        no; n; nope; nah; nop; no no; no thanks; no thank you; no please; not now; not really; never
        i dont want; i dont agree; i do not agree; wrong; not correct; thats wrong; it is wrong
        incorrect; i disagree; disagree; refuse; reject; decline; no o; no way; nor; na lie; not yet
        no sir; no ma; its not correct; that is not correct; no dont; no dont send; no do not send
        no cancel; no stop; no wait
    """,
    "cancel": """
        cancel; cancel it; cancel that; cancel this; stop; stop it; stop that; abort; quit
        exit; end
        leave it; leave am; forget it; never mind; nevermind; dont send; do not send; dont send it
        do not send it; dont; do not; stop stop; wait stop; undo; cancl; cancle; nor send
        nor send am
        no send am; drop it; bye; goodbye; cancel please; please cancel; stop please; close
    """,
}
