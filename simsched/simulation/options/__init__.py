"""The options of a run: `run_config` is the value, `config_file` its form as TOML, YAML or JSON."""
