"""The options of a run: `run_config` is the value and its reader, `config_file` reads files of options."""
