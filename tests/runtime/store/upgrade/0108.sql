UPDATE fee_rules SET maximum = 1000000;
