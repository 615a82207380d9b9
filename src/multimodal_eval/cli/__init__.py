"""The command line, one file per command. Heavy modules are imported inside the commands."""
