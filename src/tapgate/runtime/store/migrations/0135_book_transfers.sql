-- migration: expand
-- Transfers to customers of another book. The ledger inserts the row in the database transaction
-- that debits the sender, and a worker delivers it to the other book.
CREATE TABLE book_transfers (
    id bigint PRIMARY KEY,                  -- the transaction that debited the sender
    book text NOT NULL,                     -- the recipient's book
    recipient_id text NOT NULL,             -- the subscriber's ID in that book
    recipient_name text NOT NULL,
    sender_name text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'delivered', 'returned', 'canceled')),
    refusal_code text,                      -- why the other book refuses it
    remote_transaction_id text,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL,
    error text,                             -- of the last attempt
    created_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX book_transfers_due ON book_transfers (next_attempt_at) WHERE status = 'pending';
CREATE INDEX book_transfers_by_book ON book_transfers (book, id);
