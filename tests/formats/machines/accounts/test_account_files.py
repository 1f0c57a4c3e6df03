"""Accounts from the files of Slurm, of flux-accounting, and by hand."""

from __future__ import annotations

import pytest

from simsched.errors import SimschedError
from simsched.formats.machines.accounts import (
    accounts_of_text,
    looks_like_accounts,
    plain_rows,
    read_accounts,
    rows_of,
)

DUMP = """\
# To edit this file start with a cluster line for the new cluster
Cluster - 'tux':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='a: b':Organization='science':Fairshare=40
Parent - 'physics'
User - 'adam':DefaultAccount='physics':Fairshare=parent:Priority=7
"""
SSHARE = """\
Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root|||0.000000|126||
 root|root|1|0.024390|0|0.000000|1.000000
 physics||40|0.975610|126|1.000000|
  physics|adam|parent|0.975610|126|1.000000|0.500000
"""
COLUMNS = """\
             Account       User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare
-------------------- ---------- ---------- ----------- ----------- ------------- ----------
root                                          0.000000         126
 physics                                40    0.975610         126      1.000000
  physics                  adam     parent    0.975610         126      1.000000   0.500000
"""
BANKS = """\
Bank|Username|Active|RawShares|RawUsage|Fairshare
root||true|1000|133.0
 physics||true|40|126.0
  physics|adam|true|10000|100.0|0.285714
  physics|gone|false|10000|100.0|0.285714
"""
JSON = """{"root": {"bank": "root", "shares": 1, "usage": 126.0, "children": [
    {"bank": "physics", "shares": 40, "usage": 126.0,
     "children": [{"username": "adam", "shares": 3, "usage": 126.0}]}]}}"""
CSV = "account,parent,user,shares,usage,default\nphysics,,,40,,\nphysics,,adam,parent,126,yes\n"


def summary(text):
    return [(row.account, row.parent, row.user, row.shares, row.usage) for row in accounts_of_text(text, "f")]


def test_sacctmgr_dump():
    assert summary(DUMP) == [
        ("root", None, "root", 1.0, 0.0),
        ("physics", "root", None, 40.0, 0.0),
        ("physics", None, "adam", "parent", 0.0),
    ]
    adam = accounts_of_text(DUMP, "f")[-1]
    assert (adam.default, adam.priority, adam.where) == (True, 7.0, "f:7")


def test_times_of_a_dump_need_no_quotation_marks():
    text = "Cluster - 'tux':GrpWall=1-00:00:00\nAccount - 'physics':MaxWall=02:00:00:Fairshare=40\n"
    assert summary(text) == [("physics", "root", None, 40.0, 0.0)]


def test_shares_of_an_association_of_a_partition_are_left_out_of_a_dump(tmp_path):
    (tmp_path / "dump.cfg").write_text(f"{DUMP}User - 'adam':Partition='debug':Fairshare=5\n")
    notes = []
    rows = read_accounts(tmp_path / "dump.cfg", note=notes.append)
    assert rows[-1].where.endswith(":7")
    assert notes == ["shares of associations with a partition: adam (1)"]


@pytest.mark.parametrize("text", [SSHARE, COLUMNS])
def test_sshare(text):
    assert summary(text)[-2:] == [
        ("physics", "root", None, 40.0, 126.0),
        ("physics", None, "adam", "parent", 126.0),
    ]


def test_flux_accounting():
    assert summary(BANKS) == [
        ("root", None, None, 1000.0, 133.0),
        ("physics", "root", None, 40.0, 126.0),
        ("physics", None, "adam", 10000.0, 100.0),
    ]
    assert summary(JSON)[1:] == [
        ("physics", "root", None, 40.0, 126.0),
        ("physics", None, "adam", 3.0, 126.0),
    ]


def test_tables_of_an_export_are_read_together(tmp_path):
    banks = "bank_id,bank,active,parent_bank,shares,job_usage\n1,root,1,,1,0.0\n2,A,1,root,5,2.5\n"
    users = "creation_time,active,username,userid,bank,default_bank,shares,job_usage\n0,1,u1,5001,A,A,2,2.5\n"
    (tmp_path / "bank_table.csv").write_text(banks)
    (tmp_path / "association_table.csv").write_text(users)
    rows = read_accounts([tmp_path / "bank_table.csv", tmp_path / "association_table.csv"])
    assert [(row.account, row.parent, row.user, row.shares, row.usage, row.default) for row in rows[1:]] == [
        ("A", "root", None, 5.0, 2.5, False),
        ("A", None, "u1", 2.0, 2.5, True),
    ]


def test_accounts_by_hand_are_read_and_written_again():
    rows = accounts_of_text(CSV, "f")
    assert rows[1].default
    plain = plain_rows(rows)
    assert plain[0] == {"account": "physics", "shares": 40.0}
    assert plain_rows(rows_of(plain, "accounts")) == plain


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("dash", [" - ", "-", "  -  "])
def test_names_in_a_dump_may_be_quoted(quote, dash):
    lines = [("Cluster", "c"), ("Parent", "root"), ("Account", "cs"), ("Parent", "cs"), ("User", "adam")]
    text = "".join(f"{kind}{dash}{quote}{name}{quote}\n" for kind, name in lines)
    assert looks_like_accounts(text)
    assert [(row.account, row.user) for row in accounts_of_text(text, "f")] == [("cs", None), ("cs", "adam")]


@pytest.mark.parametrize("text", [DUMP, SSHARE, COLUMNS, BANKS, CSV])
def test_files_of_accounts_are_recognised(text):
    assert looks_like_accounts(text)


@pytest.mark.parametrize(
    "text",
    ["NodeName=n1\n", "", "JobID|User|Account\n1|a|b\n", "a: 1\n", "cluster-name: x\nuser-id: 3\n"],
)
def test_other_files_are_not(text):
    assert not looks_like_accounts(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "account,shares\na,x\n",
            "f:2: shares: 'x' is not a finite number (expected a number of 0 or more, or",
        ),
        ("account,shares\na,-1\n", "f:2: shares: '-1' is negative"),
        ("account,shares,usage\na,1,nan\n", "f:2: usage: 'nan' is not a finite number"),
        ("account,shares\n,1\n", "f:2: the line names no account"),
        ("name,age\na,1\n", "f:1: the format of the accounts is not recognised"),
        ("", "f: the file has no accounts"),
        (
            COLUMNS.replace("      adam", "  longnam+"),
            "f:5: the name 'longnam+' is cut short (expected the output",
        ),
        (DUMP.replace("Fairshare=40", "Fairshare=many"), "f:5: Fairshare: 'many' is not a finite number"),
        (DUMP + "Usr - 'eve'\n", "f:8: \"Usr - 'eve'\" is not a line of sacctmgr dump"),
        ('{"root": {"bank": "root", "children": [3]}}', "f: root.children[0]: this is not a bank or a user"),
    ],
)
def test_faults_have_their_place(text, message):
    with pytest.raises(SimschedError) as error:
        accounts_of_text(text, "f")
    assert str(error.value).startswith(message)
