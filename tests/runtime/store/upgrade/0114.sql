UPDATE partners SET webhook_secret_by = 701 WHERE id = (SELECT min(id) FROM partners);
