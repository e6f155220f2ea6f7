UPDATE approvals SET counted_for = maker_person WHERE id = 811;
UPDATE admins SET disabled_by = (SELECT min(id) FROM admins) WHERE id = (SELECT max(id) FROM admins);
