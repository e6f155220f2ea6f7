UPDATE messenger.people SET role = 'wallet' WHERE ctid = (SELECT min(ctid) FROM messenger.people);
