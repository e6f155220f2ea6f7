"""Engine: loads, executes and writes batches of commands, with one writer per node."""
