UPDATE bank_statement_lines SET proposed_payout_id = 1194 WHERE id = 1212;
