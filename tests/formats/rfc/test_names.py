"""Names of hosts that RFC 29 can write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import ClusterError
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.names import check_host


@pytest.mark.parametrize("name", ["", "a,b", "a[0]", "a]", "a b", "a\n", "x" * 256])
def test_names_that_a_hostlist_would_read_as_something_else(name):
    with pytest.raises(ClusterError, match="is not a host name"):
        check_host(name)


@given(
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="[],"), min_size=1, max_size=20
    )
)
def test_every_other_name_survives_a_hostlist(name):
    """Law: a name that passes is one host of a hostlist, and the same one."""
    check_host(name)
    assert list(Hostlist.parse(str(Hostlist.from_hosts([name])))) == [name]
