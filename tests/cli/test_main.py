"""The frame of the command line: exit statuses, error lines, isolation of verbs."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from simsched import cli
from simsched._version import kernel_is_compiled, version
from simsched.errors import FormatError


@pytest.fixture
def verb(monkeypatch):
    """Install a verb ``probe`` that runs the function given."""

    def install(function):
        module = ModuleType("simsched.cli.probe_module")

        def register(subparsers):
            parser = subparsers.add_parser("probe")
            parser.add_argument("--number", type=int)
            parser.set_defaults(run=function)

        module.register = register
        monkeypatch.setitem(sys.modules, "simsched.cli.probe_module", module)
        monkeypatch.setitem(cli.VERBS, "probe", ("probe_module", "a probe"))

    return install


def raising(error):
    def function(args):
        raise error

    return function


def test_a_verb_gives_the_exit_status(verb):
    verb(lambda args: args.number)
    assert cli.main(["probe", "--number", "1"]) == 1
    assert cli.main(["probe"]) == 0


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (FormatError("not JSON", where="a.json:1:2"), 2, "simsched: error: a.json:1:2: not JSON\n"),
        (FileNotFoundError(2, "No such file", "x.json"), 2, "simsched: error: x.json: No such file\n"),
        (OSError("disc on fire"), 2, "simsched: error: disc on fire\n"),
        (RecursionError(), 2, "simsched: error: the input is nested too deeply\n"),
        (
            MemoryError(),
            2,
            (
                "simsched: error: out of memory: the input describes more than the memory of this machine "
                "holds\n"
            ),
        ),
        (FormatError("bad \x1b[31mcolour\udcff"), 2, "simsched: error: bad \\x1b[31mcolour\\udcff\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_errors_become_one_line_and_a_status(verb, capsys, error, status, text):
    verb(raising(error))
    assert cli.main(["probe"]) == status
    captured = capsys.readouterr()
    assert captured.err == text
    assert captured.out == ""


def test_a_bug_is_one_line_that_says_so_and_a_traceback_for_who_asks(verb, capsys, monkeypatch):
    verb(raising(ZeroDivisionError("a bug")))
    assert cli.main(["probe"]) == 2
    assert "internal error: ZeroDivisionError: a bug; please report it" in capsys.readouterr().err
    monkeypatch.setenv("SIMSCHED_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["probe"])


@pytest.mark.parametrize("argv", [["no-such-verb"], ["--no-such-option"], ["probe", "--number", "x"], []])
def test_wrong_arguments_are_status_2(verb, capsys, argv):
    verb(lambda args: 0)
    assert cli.main(argv) == 2
    assert "simsched" in capsys.readouterr().err


def test_help_and_version(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n    {verb}" in text for verb in cli.VERBS)
    assert cli.main(["--version"]) == 0
    how = "compiled" if kernel_is_compiled() else "interpreted: without a C compiler, long runs are slower"
    assert capsys.readouterr().out == f"simsched {version()} (kernel {how})\n"


def test_a_verb_without_its_module_does_not_break_the_others(verb, monkeypatch, capsys):
    verb(lambda args: 0)
    monkeypatch.setitem(cli.VERBS, "ghost", ("no_such_module", "a ghost"))
    assert cli.main(["--help"]) == 0
    assert cli.main(["probe"]) == 0
    assert cli.main(["completion", "bash"]) == 0
    capsys.readouterr()
    assert cli.main(["ghost"]) == 2
    assert capsys.readouterr().err.startswith("simsched: error: ghost: not installed")


def test_every_verb_of_the_table_is_registered_by_its_module():
    for name, (module, _) in cli.VERBS.items():
        subparsers = argparse.ArgumentParser().add_subparsers()
        cli.load_verbs(module).register(subparsers)
        assert name in subparsers.choices
        assert callable(subparsers.choices[name].get_default("run")) or subparsers.choices[name]._subparsers


def test_completion_has_whole_descriptions(capsys):
    assert cli.main(["completion", "powershell"]) == 0
    found = capsys.readouterr().out
    assert "Standard error lists everything that the format cannot represent.'" in found


def test_completion_knows_the_verbs(capsys):
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert all(verb in script for verb in cli.VERBS)


def test_a_reader_that_goes_away_is_no_error():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "simsched", "completion", "bash"],
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_an_empty_one(stream):
    command = (
        f'exec {stream}; exec "{sys.executable}" -c "from simsched.cli import main; raise SystemExit(main())"'
    )
    for words, status in (("shape core", 0), ("--help", 0), ("shape core=0", 2)):
        done = subprocess.run(["sh", "-c", f"{command} {words}"], capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert "Traceback" not in done.stderr


def in_ascii(*words, **options):
    """Run a command whose standard output holds ASCII only; return its output, and that it did not fail."""
    command = [sys.executable, "-m", "simsched", *words]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_the_output_cannot_hold_falls_back_to_plain_characters():
    assert in_ascii("match", "tiny", "core", "--format", "tree").decode("ascii").splitlines() == [
        "core",
        "  cluster  cluster0",
        "  `- node  node0  {batch}",
        "     `- core  1  [0]",
    ]
    assert "2 x node[0-1]" in in_ascii("cluster", "show", "tiny").decode("ascii")


def test_what_is_no_text_is_escaped(capsys):
    """A name of a file in another encoding, as Python hands it to us."""
    path = os.fsdecode(b"caf\xe9.json")
    assert cli.main(["cluster", "show", path]) == 2
    assert "caf\\udce9.json" in capsys.readouterr().err


def test_a_name_in_another_encoding_is_printed(tmp_path):
    file = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json")
    Path(file).write_text('{"groups": [{"name": "n", "count": 1, "cores": 1}]}')
    for form in ("text", "json"):
        command = [sys.executable, "-m", "simsched", "cluster", "show", file, "--format", form]
        done = subprocess.run(command, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["source"].endswith("caf\udce9.json")


NAMED = '{"jobs": [{"shape": "slot=1/core", "runtime": 5, "user": "J\u00fcrgen \u2026 \U0001f600"}]}'


def test_documents_keep_their_meaning_where_the_output_holds_ascii(tmp_path):
    """JSON is escaped, XML has references, and what has neither is written in UTF-8."""
    (tmp_path / "jobs.json").write_text(NAMED, encoding="utf-8")
    user = "J\u00fcrgen \u2026 \U0001f600"
    shown = in_ascii("forecast", "tiny", "jobs.json", "--at", "0", "--format", "json", cwd=tmp_path)
    assert json.loads(shown.decode("ascii")) == []
    lines = in_ascii("workload", "convert", "jobs.json", "--to", "jsonl", cwd=tmp_path)
    assert json.loads(lines.decode())["user"] == user
    objects = in_ascii("workload", "convert", "jobs.json", "--to", "sss", cwd=tmp_path)
    assert user in objects.decode()
    (tmp_path / "r.yaml").write_text("name: r\u00e9seau\ngroups: [{name: n, count: 1, cores: 1}]\n")
    facts = in_ascii("cluster", "show", "r.yaml", "--format", "json", cwd=tmp_path)
    assert json.loads(facts.decode("ascii"))["name"] == "r\u00e9seau"


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (["workload", "show", "tiny", "--bogus"], "simsched workload show"),
        (["workload", "make", "lublin", "--machine", "3", "--bogus"], "simsched workload make lublin"),
        (["convert", "--to", "shape", "x", "--bogus"], "simsched convert"),
        (["--bogus"], "simsched"),
    ],
)
def test_unknown_arguments_are_one_line_and_where_to_look(capsys, words, who):
    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert err == f"{who}: error: unrecognized arguments: --bogus\n(`{who} --help` lists its arguments)\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["feasable", "tiny", "core"], "feasible"),
        (["run", "tiny", "month", "-o", "x", "--queue-polizy", "easy"], "--queue-policy"),
        (["match", "tiny", "core", "--format", "tabel"], "table"),
        (["cluster", "shwo", "tiny"], "show"),
        (["feasible", "flat24", "core"], "flat240"),
        (["workload", "show", "mont"], "month"),
    ],
)
def test_a_near_miss_is_answered_with_what_was_meant(capsys, words, meant):
    assert cli.main(words) == 2
    err = capsys.readouterr().err
    assert f"; did you mean {meant}?" in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize(
    "words",
    [
        "feasible tiny --format json slot=1/core slot=2/core",
        "feasible tiny slot=1/core --format json slot=2/core",
        "feasible --format json tiny slot=1/core slot=2/core",
        "feasible tiny slot=1/core slot=2/core --format json",
    ],
)
def test_options_may_stand_between_positionals(capsys, words):
    assert cli.main(words.split()) == 0
    answers = json.loads(capsys.readouterr().out)
    assert [answer["request"] for answer in answers] == ["slot=1/core", "slot=2/core"]


def test_options_between_the_positionals_of_an_action(capsys, tmp_path):
    assert cli.main(["report", "--format", "csv", "nowhere", "--by", "user", "neither"]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("size - - --target p95_wait<=1h", "CLUSTER and WORKLOAD"),
        ("headroom - - --target p95_wait<=1h", "CLUSTER and WORKLOAD"),
        ("run - - -o out", "CLUSTER and WORKLOAD"),
        ("run tiny - -o out --config -", "WORKLOAD and --config"),
        ("run - first-steps -o out --outages /dev/stdin", "CLUSTER and --outages"),
        ("forecast - - --at 0", "CLUSTER and WORKLOAD"),
        ("feasible - -", "CLUSTER REQUEST"),
        ("feasible --cluster - --cluster - slot=1/core", "--cluster"),
        ("feasible tiny - --running -", "CLUSTER REQUEST and --running"),
        ("match tiny - -", "CLUSTER REQUEST"),
        ("cluster diff - -", "A and B"),
        ("workload convert - - --to swf", "WORKLOAD"),
        ("workload show - --cluster -", "CLUSTER and WORKLOAD"),
        ("validate - -", "FILE"),
        ("validate - --cluster -", "CLUSTER and FILE"),
        ("convert - --to shape --cluster -", "CLUSTER and FILE"),
    ],
)
def test_standard_input_is_read_once(command, where, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 2
    out, err = capsys.readouterr()
    assert err == (
        f"simsched: error: {where}: standard input is given 2 times but can be read only once "
        "(expected a file for all but one of them)\n"
    )
    assert out == ""
    assert not list(tmp_path.iterdir())


def test_without_a_verb_it_says_where_to_begin(capsys):
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    commands = [line.split("  ")[1] for line in err.splitlines() if line.startswith("  simsched")]
    assert [shlex.split(command)[1] for command in commands] == [
        "feasible",
        "match",
        "run",
        "report",
        "tutorial",
    ]
    assert cli.main([*shlex.split(commands[0])[1:]]) == 0


def test_short_options_that_most_programs_have(capsys):
    assert cli.main(["-V"]) == 0
    assert capsys.readouterr().out.startswith("simsched 0")
    assert cli.main(["help", "shape"]) == 0
    assert capsys.readouterr().out.startswith("usage: simsched shape")
    assert cli.main(["help"]) == 0


def test_an_option_before_its_verb_is_named_with_its_place(capsys):
    assert cli.main(["--quiet", "run", "tiny", "first-steps"]) == 2
    assert "--quiet; it goes after the verb: simsched run --quiet" in capsys.readouterr().err


def test_an_option_that_nothing_looks_at_is_named(verb, capsys):
    verb(lambda args: 0)
    assert cli.main(["probe", "--number", "7"]) == 0
    assert "--number was not used" in capsys.readouterr().err
    verb(lambda args: args.number - 7)
    assert cli.main(["probe", "--number", "7"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish", "powershell"])
def test_completion_of_every_shell_knows_values(capsys, shell):
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "conservative" in script
    assert "bestfit" in script
