UPDATE one_time_codes SET missed = 2, missed_since = '2026-03-02' WHERE subscriber_id = 201;
