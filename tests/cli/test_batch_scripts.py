"""Batch scripts, and commands that submit jobs, as requests."""

from __future__ import annotations

import pytest

from simsched.cli import main

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=test
#SBATCH -N 2
#SBATCH --ntasks=8 --cpus-per-task 4
#SBATCH --gres=gpu:2
#SBATCH --mem=16G
#SBATCH -t 1-00:00:00   # a day
#SBATCH --constraint=rome&ib
#SBATCH --mail-type=END

module load x
#SBATCH -N 9
srun ./a.out
"""


@pytest.fixture
def convert(tmp_path, capsys):
    def convert(text, *words):
        (tmp_path / "job.sh").write_text(text)
        status = main(["convert", str(tmp_path / "job.sh"), *words])
        return status, *capsys.readouterr()

    return convert


def test_a_script_is_a_request_and_the_rest_of_its_options_is_noted(convert, tmp_path):
    status, out, err = convert(SCRIPT, "--to", "shape")
    assert (status, out) == (0, "node=2/slot/[core=16;gpu=2;memory=16384{unit:MiB}]\n")
    assert "--mail-type=END is not used" in err
    words = convert(SCRIPT, "--to", "jobspec")[1].split("system:")[1].split()
    assert words[:2] == ["duration:", "86400.0"]
    assert {"rome", "ib", "test"} <= set(words)


@pytest.mark.parametrize(
    ("command", "shape"),
    [
        ("sbatch job", "slot/core"),
        ("sbatch -n4 -c 2 job", "slot=4/core=2"),
        ("srun -N2 --ntasks-per-node=3 x", "node=2/slot/core=3"),
        ("srun --nodes=2-4 -n 5 x", "node=2/slot/core=3"),
        ("sbatch -N 3 --exclusive job.sh", "node=3{x}/slot/core"),
        ("sbatch --gpus=4 -n2 job", "slot=2/[core;gpu=2]"),
        ("sbatch -N2 --gpus-per-task=a100:1 -n4 job", "node=2/slot/[core=2;gpu=2]"),
        ("sbatch -n2 -c4 --mem-per-cpu=2000 job", "slot=2/[core=4;memory=8000{unit:MiB}]"),
        ("sbatch --mem=1G job", "node/slot/[core;memory=1024{unit:MiB}]"),
        ("flux submit -n4 -c2 -g1 ./app -n 9", "slot=4/[core=2;gpu]"),
        ("flux run -N2 -n4 x", "node=2/slot/core=2"),
        ("flux batch -N4 script.sh", "node=4{x}/slot/core"),
        ("$ flux submit --cores-per-task=3 x", "slot/core=3"),
        ("#FLUX: -N2 -n2\n#FLUX: --time-limit=1h\n", "node=2/slot/core"),
    ],
)
def test_commands_are_requests(convert, command, shape):
    assert convert(command + "\n", "--to", "shape")[:2] == (0, shape + "\n")


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        ("sbatch -t 90 x", 5400),
        ("flux submit -t 90 x", 5400),
        ("flux submit -t 2h x", 7200),
        ("srun -t 2:30 x", 150),
    ],
)
def test_times_are_those_of_the_command(convert, command, seconds):
    assert f"duration: {seconds}" in convert(command, "--to", "jobspec")[1]


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("sbatch -n x job", "job.sh: --ntasks 'x' is not valid (expected a whole number of 1 or more)"),
        ("srun a\nsbatch --mem=much b", "job.sh:2: --mem 'much' is not valid (expected a size such as 16G)"),
        ("#SBATCH -n 4\n#SBATCH -t soon\n", "job.sh:2: 'soon' is not a time"),
        ("sbatch --gpus=3 -n2 job", "job.sh: 3 gpus for 2 tasks (expected --nodes or --gpus-per-task)"),
        ("sbatch --gres='gpu", "job.sh: the options cannot be read"),
        ("flux submit -t ² x", "job.sh: '²' is not a duration"),
    ],
)
def test_faults_have_their_place(convert, command, fault):
    status, _, err = convert(command, "--to", "shape")
    assert status == 2
    assert fault in err
    assert err.count("\n") == 1


def test_a_command_on_the_command_line_is_a_request(capsys):
    assert main(["feasible", "tiny", "flux submit -N2 -n4 job.yaml"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "flux submit -N2 -n4 job.yaml: yes\n"
    assert "read as node=2/slot/core=2" in captured.err


@pytest.mark.parametrize(
    "words", [["run", "tiny"], ["workload", "show"], ["cluster", "show"], ["site", "import"]]
)
def test_where_it_is_no_request_the_message_says_what_takes_it(tmp_path, capsys, words):
    (tmp_path / "job.sh").write_text(SCRIPT)
    assert (
        main(
            [*words, str(tmp_path / "job.sh"), "-o", str(tmp_path / "out")][
                : 3 if words[1] == "show" else None
            ]
        )
        == 2
    )
    err = capsys.readouterr().err
    assert "a batch script or a command that submits a job: simsched feasible and match take it" in err
    assert err.count("\n") == 1


CONF = """\
ClusterName=moor
SelectTypeParameters=CR_Core
NodeName=n[1-2] Sockets=1 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=9000 \\
  Gres=gpu:A100:2,gpu:h100:2,gpu:1g.5gb:3
PartitionName=p Nodes=ALL Default=YES MaxTime=60
"""


@pytest.mark.parametrize(
    ("options", "shape", "words"),
    [
        ("-n 16", "slot=8/core", "yes"),
        ("-n 3 -c 3", "slot=5/core", "yes"),
        ("-n 1 -p p,q", "slot/core", "yes"),  # the first of them
        ("-N 1 -c 16 --mem=90G", "node/slot/core=8", "yes"),  # the site has no memory to request
        ("-N 1 -c 18", "node/slot/core=9", "would fit with: core=8"),
        ("-N 1 -n 8 --hint=nomultithread", "node/slot/core=8", "yes"),
        ("-N 1 --gres=gpu:a100:2", "node/slot/[core;gpu=2]", "yes"),
        ("-N 1 --gres=gpu:a100:3", "node/slot/[core;gpu=3]", "gpu=2 instead of 3"),
        ("-n 2 --gpus-per-task=v100:1", "slot=2/[core;gpu]", "no node has the property v100@gpu"),
        ("-N 1 --gres=gpu:3", "node/slot/[core;gpu=3]", "yes"),
        ("-N 1 --gres=gpu:1g.5gb:4", "node/slot/[core;mig-1g.5gb=4]", "mig-1g.5gb=3 instead of 4"),
    ],
)
def test_commands_of_slurm_count_as_their_site_does(tmp_path, capsys, options, shape, words):
    """Two threads are a core, gpus have types, slices are a resource of their own, memory does not count."""
    (tmp_path / "slurm.conf").write_text(CONF)
    assert main(["site", "import", str(tmp_path / "slurm.conf"), "-o", str(tmp_path / "site")]) == 0
    capsys.readouterr()
    status = main(["feasible", "--site", str(tmp_path / "site"), f"sbatch {options} job"])
    out, err = capsys.readouterr()
    assert f"read as {shape}\n" in err
    assert (status == 0) == (words == "yes")
    assert words in out
