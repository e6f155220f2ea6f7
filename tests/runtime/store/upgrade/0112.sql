UPDATE messages SET button = 'object' WHERE id = (SELECT min(id) FROM messages);
