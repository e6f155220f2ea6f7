INSERT INTO one_time_code_sends VALUES ('+23276000202', '{2026-03-02 12:30Z}');
