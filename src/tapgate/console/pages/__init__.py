"""The pages of the console, one file for each noun: its pages, and what can be done from them."""
