def approval_code(transaction_id: int) -> str:
    return f"{(transaction_id * 0x9E3779B97F4A7C15 % 2**64) >> 34:06X}"[:6]
