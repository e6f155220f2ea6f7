-- migration: expand
-- The ledger also reports money that an admin moved. A message may have a button, with which the
-- recipient objects to a change.
ALTER TABLE notices DROP CONSTRAINT notices_kind_check;
ALTER TABLE notices ADD CONSTRAINT notices_kind_check CHECK (kind IN (
    'money_received', 'payment_made', 'payment_released', 'payment_rejected', 'float_low',
    'money_corrected')) NOT VALID;
ALTER TABLE messages ADD COLUMN IF NOT EXISTS button text;
