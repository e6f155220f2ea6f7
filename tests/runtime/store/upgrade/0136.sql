UPDATE approvals SET reason = 'New agent in Bo' WHERE id = 811;
