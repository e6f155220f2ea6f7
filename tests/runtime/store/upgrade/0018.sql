UPDATE messenger.received SET sealed = '\x06';
