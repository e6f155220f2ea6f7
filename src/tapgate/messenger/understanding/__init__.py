"""What people write, understood without anybody else's help.

No I/O but for the optional language model, which may only name a command.
"""
