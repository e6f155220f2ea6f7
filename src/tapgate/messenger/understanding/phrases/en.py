"""How people ask for things in English, as it is written in West African chats too.

`WORDS` are taken literally and nothing else is (but for their spelling): the words that work
anywhere, and everything that says yes or no. `SAMPLES` are also what other texts are compared
with. A phrase that stands under two commands makes the messenger ask which one was meant.
"""

from tapgate.messenger.model.kinds import Command

#: Show the menu too, but end nothing.
GREETINGS = """
    hi; hello; hey; helo; hallo; hy; hiya; yo; good morning; good afternoon; good evening
    good day; gud morning; gud evening; gm; morning; evening; greetings; hi there; hello there
    hey there; kushe; kushe o; kusheh; aw di bodi; how di body; how far; aw yu du; how una dey
    salaam; salam; assalamu alaikum; salam alaikum; whats up; wassup; sup
"""

WORDS: dict[Command, str] = {
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
        change pin; pin; new pin; reset pin; change my pin; pin change; update pin; change_pin
        pin reset; modify pin
    """,
    "kyc": """
        kyc; verify; verification; verify identity; verify me; verify my identity; id; identity
        my kyc; identification; documents; upload id
    """,
    "limits": "limits; limit; my limits; my limit; daily limit; monthly limit; transfer limit",
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

SAMPLES: dict[Command, str] = {
    "menu": """
        show me the menu
        go back to the menu
        take me to the main menu
        back to start
        what are the options
        show me all services
        list of services
        open the menu please
        i want to see the menu
        hello good morning
        hi how are you
        hello how are you doing today
        good evening sir
        good morning my friend
        hi tapgate
        hello is anyone there
        kushe how di bodi
        can we start again
        return to main screen
        what services do you have
        what else is on the list
        let us start from the beginning
        let us begin
    """,
    "help": """
        i need assistance with this
        guide me please
        how is it used
        what do i have to type
        i am lost here
        i need help
        can you help me
        please help me
        i dont know what to do
        how does this work
        how do i use this
        how to use this service
        what can you do
        what can i do here
        what is this
        how does tapgate work
        explain to me how it works
        i do not understand
        i am confused
        i am stuck
        show me how to do it
        teach me how to use it
        help me out here
        give me instructions
        i need some information
        a nor sabi aw for do am
        i no understand
        abeg help me
        what should i write
        what commands are there
        how do i send money
        how can i send money
        what are the fees
        how much does it cost to send money
        what is the charge for sending
    """,
    "balance": """
        money in my wallet
        what remains in my account
        how much have i got
        how is my account
        tell me what i have left
        how much cash is there
        what is my balance
        whats my balance
        show my balance
        check my balance
        tell me my balance
        my account balance please
        how much money do i have
        how much do i have
        how much is in my account
        how much is in my wallet
        how much is left
        how much money is left in my account
        how much do i have left
        how much remains on my card
        i want to know my balance
        i want to check my balance
        can you check my balance for me
        let me see my balance
        see my money
        do i have money
        do i have enough money
        is there money in my account
        what have i got in my wallet
        amount in my account
        current balance
        available balance
        wats my bal
        pls chek my balance
        send me my balance
        give me my balance
        wetin be my balance
        omos a get na mi account
        omos moni a get
        how much dey my account
        how much i get for my wallet
        remaining balance
        has my salary come in
    """,
    "send": """
        i want to send money
        i would like to send money
        i need to send money
        can i send money
        please send money for me
        send money to my brother
        send money to my mother
        send money to a friend
        send money to someone
        send money to another person
        send some money to my wife
        send cash to my sister
        i want to transfer money
        i want to make a transfer
        transfer money to a card
        transfer funds to somebody
        transfer to another account
        transfer 500 to 076123456
        send 500 to 076123456
        send le 200 to +23276123456
        send 1000 sle to my father
        send 50 to aminata
        send 100 leones to card 1234
        send money to card 1234
        pay 300 to mohamed
        pay someone
        pay my friend 200
        please transfer 250 to fatu
        help me send 500 to my mum
        i wan send money
        i wan for send moni
        a wan sen moni to mi broda
        a want for send money
        make i send money give my pikin
        abeg send 100 to my sister
        give 200 to my brother
        do a transfer for me
        wire money to my cousin
        remit money to my family
        move money to another wallet
        share money with a friend
        let me send some cash
        pls snd 500 to my bro
        i want to pay a person
    """,
    "history": """
        transactions of this week
        my transactions today
        show transfers i made
        payments from last month
        what came in today
        let me see what i spent
        the last money i sent
        show my transactions
        show my last transactions
        show me my recent transactions
        list my transactions
        my transaction history please
        see my payment history
        what did i spend
        what did i buy
        where did my money go
        who did i send money to
        who sent me money
        who paid me
        what payments did i make
        last payments
        previous payments
        show the last 5 transactions
        what happened on my account
        recent activity on my account
        i want to see my history
        check my past transactions
        did my payment go through
        did the money arrive
        did the transfer go through
        did you send it
        did it go
        was the money sent
        has the money been sent
        did i receive any money
        have i received money
        money i sent yesterday
        what did i do yesterday
        my last transfer
        my spending
        wetin i spend
        show all the money that came in
        what was deducted from my account
        trnsactions list
    """,
    "statement": """
        all my transactions in a pdf
        a document with my transactions
        proof of my payments
        account report for the year
        i need it for the bank my statement
        i need a statement
        i want my account statement
        send me my statement
        send me a statement
        get my bank statement
        download my statement
        download statement as pdf
        statement for last month
        statement for this month
        statement of october
        statement of account
        statement from january to march
        monthly statement please
        i need a pdf of my account
        give me a document of all my transactions
        i need proof of my transactions for the embassy
        print my statement
        export my transactions
        email me my statement
        can i have the statement of my account
        generate a statement
        account summary for the month
        full report of my account
        transactions as a pdf document
        pls snd my statment
        i want statement for last 3 months
    """,
    "cards": """
        give me information about my card
        does my card still work
        what is the state of my cards
        the number on my card
        can i see the card i have
        show my cards
        show me my cards
        list my cards
        what cards do i have
        which cards do i have
        how many cards do i have
        see my cards
        view my cards
        the status of my card
        is my card active
        is my card working
        is my card still blocked
        what is my card number
        my card serial number
        my card details
        check my card
        show all cards on my account
        the cards on my account
        my children cards
        card of my child
        manage my cards
        card information
        which card na my own
        let me see the cards i have
        when does my card expire
        are my cards ok
    """,
    "link": """
        add my card to my account
        register this card on my account
        i received a new card today
        put my new card on my phone
        my new card is not linked
        link another card for my child
        i want to link a card
        link my new card
        link a card to my account
        add a new card to my account
        add another card
        i have a new card
        i got a new card
        i bought a card
        connect my card to my wallet
        attach a card
        activate my new card
        how do i activate my card
        register my card
        register a new card
        connect this card with my phone number
        put a card on my account
        pair my nfc card
        join my card to my account
        set up my card
        i just received my card
        i wan add card
        a wan link mi kard
        use a new card
        bind my card
        assign a card to me
        tie my card to my wallet
    """,
    "block": """
        cancel the card
        stop the card
        my card has gone missing
        i think my card is stolen
        turn off my card
        put a block on my card
        my purse was stolen with my card
        i want to block my card
        please block my card
        block the card now
        block my card immediately
        i lost my card
        i have lost my card
        i cant find my card
        my card is missing
        my card is lost
        my card was stolen
        someone stole my card
        somebody took my card
        they stole my card
        thief took my wallet and card
        they have tief my kard
        mi kard don loss
        my card don loss
        a loss mi kard
        freeze my card
        lock my card
        disable my card
        deactivate my card
        stop my card
        stop my card from working
        suspend my card
        switch off my card
        report a lost card
        report stolen card
        someone is using my card
        i dropped my card somewhere
        i misplaced my card
        my card is damaged
        cancel my card
        block it my card is gone
    """,
    "unblock": """
        the card was found
        remove the lock from my card
        can i use my blocked card again
        why did you block my card
        undo the block on my card
        my card was blocked by mistake
        i want to unblock my card
        please unblock my card
        can you unblock my card
        unblock the card
        i found my card
        i found my card again
        i have found my lost card
        my card is back
        i don see my card
        a don fen mi kard
        unfreeze my card
        unlock my card please
        reactivate my card
        enable my card again
        activate my blocked card
        open my card again
        make my card work again
        remove the block on my card
        lift the block
        my card is blocked i want to use it
        why is my card blocked
        my card is locked
        take the block off
        restore my card
        turn my card back on
        free my card
    """,
    "change_pin": """
        i want a different pin
        someone knows my secret code
        my pin has been seen
        my code is known change it
        lost my pin
        i cannot remember my code
        i want to change my pin
        change my pin code
        change my secret code
        change my password
        change my pass code
        how do i change my pin
        i need a new pin
        i want a new pin
        set a new pin
        set my pin
        choose another pin
        update my pin number
        modify my pin
        reset my pin
        reset my pin number
        replace my pin
        somebody knows my pin
        someone saw my pin
        my pin is not safe
        i forgot my pin
        i forget my pin
        i dont remember my pin
        a forget mi pin
        i wan change my pin
        chnge my pin
        pin code change please
        new password
        make another pin
    """,
    "kyc": """
        how do i send my documents
        check my identity
        what do i need to verify
        i have my id here
        my kyc status
        why is my account not verified
        i want to verify my identity
        verify my account
        how do i verify my account
        complete my verification
        complete my kyc
        upload my documents
        upload my id card
        send my id card
        send my documents
        send a picture of my id
        here is my passport
        here is my voter id
        my national id
        submit my passport
        submit my kyc documents
        i want to send you my passport photo
        take a selfie
        send my selfie
        proof of address
        is my account verified
        am i verified
        my verification status
        has my kyc been approved
        upgrade my account
        upgrade my level
        raise my account level
        increase my kyc level
        confirm my identity
        identity verification please
        i want to become verified
        what papers do you need from me
    """,
    "limits": """
        what is the most i can send
        max amount to send
        maximum transfer amount
        am i over my limit
        how much can i spend with my card
        how much can i receive
        what are my limits
        what is my limit
        show my limits
        how much can i send
        how much can i send per day
        how much am i allowed to send
        how much can i send in a day
        maximum i can send
        what is the maximum amount
        the most i can transfer in a month
        what is my daily limit
        what is my monthly limit
        maximum balance
        how much can i keep in my wallet
        how much money can i hold
        transaction limits
        spending limit
        sending limit
        transfer limits for my account
        is there a limit
        check my limit
        what is the highest amount i can send
        i want to know my limits
        can i send more than 5000
        increase my limit
        raise my limit
        my limit is too low
        how much does it cost to send money
        what are the fees
        what is the charge for sending
    """,
    "language": """
        i want to change the language
        change the language to french
        change to english
        switch to french
        switch to english
        can we speak french
        can we speak english
        do you speak english
        do you speak french
        speak to me in french
        talk to me in english
        i dont speak french
        i dont understand french
        i dont speak english
        i prefer english
        french please
        english please
        use another language
        choose my language
        set language
        other languages
        write in english
        i want it in french
        can i have this in english
        do you speak krio
        change langage
    """,
    "person": """
        i cannot remember my code
        lost my pin
        some money is missing from my account
        money disappeared
        you deducted my money
        the transfer failed
        my transaction is pending since yesterday
        the money was taken but nothing came
        where is my money
        please i want somebody to assist me
        is there a human i can chat with
        chat with support
        you cut my money for nothing
        i want to talk to a person
        i want to speak to someone
        i want to talk to somebody
        can i talk to someone
        can i talk to somebody
        may i speak with someone
        talk to a human being
        let me speak with a human
        can i speak to a real person
        speak to an agent
        connect me to an agent
        connect me with customer care
        call me
        please call me back
        can someone call me
        give me your phone number
        i want to make a complaint
        i have a complaint
        i have a problem
        there is a problem with my account
        something is wrong with my account
        i was charged twice
        you charged me two times
        my money is missing
        my money is gone
        i did not receive my money
        i did not receive the money
        i have not received the money
        i didnt get my money
        the money did not arrive
        i never got the money
        he did not get the money
        my money has not come
        mi moni nor kam
        i sent money to the wrong person
        i sent to the wrong number
        i made a mistake with my transfer
        i want my money back
        refund my money
        give me back my money
        reverse the transaction
        i was scammed
        somebody cheated me
        this is fraud
        someone used my account
        my account was hacked
        the shop took too much money
        my payment failed but money was taken
        i want to talk to the manager
        i want to report a problem
        are you a robot
        i forgot my pin
        i dont remember my pin
        a want for talk to person
        i wan talk to person
        close my account
        delete my account
    """,
    "register": """
        make a new account for me
        how can i get a wallet
        register a new customer
        how to create account
        i want to use this service i have no account
        open wallet for me
        i want to register
        how do i register
        how can i register
        i want to sign up
        sign me up
        i want to open an account
        open an account for me
        open a new account
        create an account for me
        i want an account
        i dont have an account
        i have no account yet
        how do i get an account
        i want to join
        i want to join tapgate
        how do i join
        i am new here
        i am a new customer
        i want to become a customer
        i want to start using tapgate
        i wan register
        a wan register
        a want for open account
        make i register
        create my wallet
        i need a wallet
        get me started with an account
        can i register with this number
        register my phone number
        rejista
    """,
    "cancel": """
        cancel the transfer
        cancel the payment
        cancel my transaction
        cancel everything
        please cancel this transfer
        i want to cancel
        stop the transfer
        stop the payment
        stop this transaction
        stop sending
        dont send the money
        do not send the money
        please dont send it
        i dont want to send
        i dont want to send money
        i do not want to send it anymore
        i changed my mind
        i have changed my mind
        i no longer want it
        i dont want to continue
        i dont want this again
        a nor wan send am again
        i no wan send again
        nor send di moni
        hold on dont send
        wait dont send it yet
        lets forget about it
        forget about the transfer
        get me out of this
        i want to stop
        not the right amount stop it
        do not do it
        leave that one
    """,
}

#: What is said to a messenger and asks nothing that it could do.
NOTHING = """
    hm
    hmm ok
    huh
    eh
    uh
    blah
    blah blah
    no worries
    no wahala
    no vex
    how old is your company
    where are you from
    what is your job
    who made you
    how was your day
    have you eaten
    my friend got married
    the weather is hot
    i am tired
    i am happy today
    send my greetings to your family
    pay attention
    give me a minute
    share this with your friends
    the money is too small
    money is hard to get
    life is hard
    today is sunday
    ok thanks bye
    thank you my brother
    last night
    i love this app
    this app is bad
    what is the price of rice
    what is bitcoin
    thank you
    thanks
    thank you very much
    thanks a lot
    tenki
    tenki ya
    god bless you
    nice
    great
    lol
    haha
    how is the weather today
    what time is it
    who are you
    what is your name
    i love you
    you are stupid
    are you married
    happy birthday
    merry christmas
    see you tomorrow
    yesterday
    tomorrow
    tomorrow morning
    i will do it later
    maybe later
    wait
    one moment
    please wait a minute
    let me think
    i am at the market
    my name is mohamed
    my brother is sick
    i am hungry
    the football match was great
    who won the match
    tell me a joke
    sing a song
    what is the news
    i want to withdraw money
    withdraw cash
    cash out
    i want to deposit money
    top up my account
    add money to my wallet
    fund my wallet
    buy airtime
    buy data
    buy credit for my phone
    i want to buy electricity
    pay my light bill
    pay my dstv
    i need a loan
    lend me money
    borrow me some money
    send me money
    please send me money
    send me some money
    can you send me money
    ask my brother to send me money
    my brother will send me money
    my boss will send money tomorrow
    he said he will send it
    someone sent me a message
    she wants me to send money is it a scam
    should i send money to a stranger
    request money
    is it safe to send money
    how long does a transfer take
    exchange rate of the dollar
    dollar rate today
    convert leones to dollars
    where is your office
    where is the nearest agent
    find an agent near me
    what time do you open
    do you have jobs
    i am looking for work
    send me a photo
    send me your location
    send me the code
    send the code again
    i did not get the code
    send it to my email
    i sent it already
    i already sent the money
    yes but change the amount
    yes but not today
    yes but to another number
    no i mean another number
    change the amount
    change the number
    the amount is wrong
    ok but wait
    are you sure
    is that all
    what do you mean
    why
    who is this
    good
    really
    i will tell you tomorrow
    the network is bad
    my phone is broken
    my battery is low
    play music
    asdfgh
    qwerty
"""
