-- General ledger: every account kind has a code of the company's chart of accounts.
CREATE TABLE gl_codes (
    kind text PRIMARY KEY CHECK (kind IN ('wallet', 'float', 'commission', 'settlement', 'clearing',
                                          'fees', 'commission_expense', 'cash')),
    gl_code text NOT NULL UNIQUE DEFERRABLE,    -- deferrable, so two kinds can swap their codes
    name text NOT NULL
);
INSERT INTO gl_codes VALUES
    ('cash', '1000', 'Cash and bank'),
    ('wallet', '2100', 'Customer wallets'),
    ('float', '2200', 'Agent float'),
    ('commission', '2300', 'Agent commission payable'),
    ('settlement', '2400', 'Merchant settlement'),
    ('clearing', '2500', 'Partner clearing'),
    ('fees', '4000', 'Fee income'),
    ('commission_expense', '5000', 'Agent commission expense');

-- Finds the transactions that completed later than they were created: released after a review. All
-- others are found by the time in their ID, so payments do not write to this index.
CREATE INDEX transactions_released ON transactions (completed_at) WHERE completed_at <> created_at;
