-- migration: expand
-- The number that an approval code spells; `calculate_approval_code` computes it from the same ID.
CREATE FUNCTION approval_number(transaction_id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN div(transaction_id::numeric * 11400714819323198485 % 18446744073709551616,
           17179869184)::integer;
